"""The whole labelled set: every constraint and every checkbox, from the banks and the computed edits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from anthrolab.cards.library import Library
from anthrolab.judging.l0.result import ConstraintId
from anthrolab.judging.labelled.bank import Bank
from anthrolab.judging.labelled.edits import COMPUTED_FAILS, COMPUTED_HOLDS
from anthrolab.judging.labelled.items import Labelled, LabelledError
from anthrolab.judging.labelled.making import RULED, Case, cases_of, make_computed, make_from_bank
from anthrolab.judging.rubric import Rubric
from anthrolab.runtime.dialogue import Dialogue

CONSTRAINTS: tuple[ConstraintId, ...] = get_args(ConstraintId)


@dataclass(frozen=True)
class Counts:
    """Items of each kind: positives and look-alikes of a constraint that rules decide, of one that only a model or a
    person can, and of a checkbox (look-alikes only as far as its bank has entries)."""

    ruled: int = 32
    judged: int = 10
    box: int = 8

    def of(self, target: str) -> int:
        """For an id."""
        if target in RULED:
            return self.ruled
        return self.judged if target.startswith("L0") else self.box


def make_set(
    gold: Mapping[str, Dialogue], library: Library, banks: Mapping[str, Bank], rubric: Rubric, seed: int, counts: Counts
) -> list[Labelled]:
    """Items of all ids in a fixed order. LabelledError for an id with neither a bank nor a computed edit."""
    cases = cases_of(gold, library)
    turn_boxes = {box.id for box in rubric.boxes("turn")}
    targets = [*CONSTRAINTS, *(box.id for box in rubric.boxes())]
    if unknown := set(banks) - set(targets):
        raise LabelledError(f"bank {', '.join(sorted(unknown))}: no constraint and no checkbox of that id; rename the file")
    return [item for target in targets for item in _of_one(target, cases, banks.get(target), seed, counts.of(target), target in turn_boxes)]


def _of_one(target: str, cases: Sequence[Case], bank: Bank | None, seed: int, count: int, turn_scope: bool) -> Iterator[Labelled]:
    fails, holds = COMPUTED_FAILS.get(target, ()), COMPUTED_HOLDS.get(target, ())
    if bank is None and not fails:
        raise LabelledError(f"{target}: no bank and no computed edit makes it fail; write {target}.yaml")
    computed = (count + 1) // 2 if bank else count
    if fails:
        yield from make_computed(target, fails, cases, seed, count=computed, positive=True, turn_scope=turn_scope)
    if holds:
        yield from make_computed(target, holds, cases, seed, count=computed, positive=False, turn_scope=turn_scope)
    if bank is not None:
        look_alikes = count - computed if holds else count if target.startswith("L0") else min(count, len(bank.holds))
        yield from make_from_bank(
            bank, cases, seed, fails=count - computed if fails else count, holds=look_alikes, turn_scope=turn_scope
        )
