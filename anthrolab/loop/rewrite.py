"""One repair: a model rewrites what failed, and only a dialogue that then passes gate and judge is kept (paper section 4.5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, cast

from pydantic import Field

from anthrolab.cards.library import Library
from anthrolab.files import content_hash
from anthrolab.judging.calibration.judged import raise_final
from anthrolab.judging.l0 import check
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.verdict import Judge, Verdict
from anthrolab.loop.changes import ChangeError, Refusal, apply, check_text, unasked_changes
from anthrolab.loop.filter import PAPER, Filtered, FilterResult, Lineage, Thresholds, filter_dialogue
from anthrolab.loop.hints import Hints
from anthrolab.loop.records import NOT_SENT, FailureRecord, failure_records
from anthrolab.loop.repair_prompt import SCHEMA, instructions, last_lines, prompts_hash, question, read_changes
from anthrolab.models.client import Fault, ModelError
from anthrolab.runtime.auxiliary import Auxiliary
from anthrolab.runtime.dialogue import Dialogue, Record
from anthrolab.runtime.schedule import Rules

Outcome = Literal["repaired", "failed", "refused", "no_answer", "not_repairable", "model_error"]
"""repaired: accepted now. Else what became of the last attempt: failed (gate or judge still find fault), refused (a change
that may not be made), no_answer (no readable answer after asking again). not_repairable: no message is to blame, so that the
writer was not asked. model_error: a model gave no reply; this one is no result and stays to be done."""


class Change(Record):
    """A new text for a message (position from 0)."""

    message: int
    content: str


class Attempt(Record):
    """One answer of the writer and what came of it. why: of a refusal, of an unreadable answer, or the filter's."""

    changes: list[Change] = Field(default=[])
    refused: Refusal | None = None
    why: str
    filter_result: FilterResult | None = None
    call: str | None = None


class Repair(Record):
    """What became of one dialogue: one JSON line in `repairs.jsonl`.

    basis: content hash of all that the result depends on (dialogue, records, judge, rubric, thresholds, writer, prompts).
    fault: of a model error. dialogue: the repaired dialogue with its lineage, only where it was accepted.
    """

    dialogue_id: str
    outcome: Outcome
    why: str
    fault: str | None = None
    attempts: list[Attempt] = Field(default=[])
    dialogue_hash: str
    judge: str
    judge_identity: str
    rubric: str
    writer: str
    basis: str
    dialogue: Filtered | None = None

    def to_line(self) -> str:
        """The record as one JSON line, fields in declared order."""
        return self.model_dump_json()


@dataclass(frozen=True)
class Repairer:
    """Everything that all repairs of a round have in common.

    writer: the chat model that rewrites. judge: the one that judged the round. rules: the scheduler's rules of a dialogue.
    attempts: answers asked for; free: own messages that may be chosen for a fault of the whole dialogue; longest: characters
    of a new text.
    """

    writer: Auxiliary
    judge: Judge
    rubric: Rubric
    hints: Hints
    library: Library
    rules: Callable[[Dialogue], Rules]
    thresholds: Thresholds = PAPER
    attempts: int = 2
    free: int = 3
    longest: int = 300
    round: int | None = None

    @cached_property
    def identity(self) -> str:
        """Changes with writer, judge, rubric, thresholds, limits, prompts and how answers are read."""
        asked = self.writer.system.as_judge().request(messages=[{"role": "system", "content": ""}, {"role": "user", "content": ""}])
        return content_hash([
            asked.key(self.writer.client.identity), self.judge.identity, self.rubric.hash, self.thresholds.model_dump(mode="json"),
            self.attempts, self.free, self.longest, prompts_hash(),
        ])  # fmt: skip

    def records(self, filtered: Filtered) -> list[FailureRecord]:
        """The failure records of a dialogue."""
        return failure_records(filtered, self.rubric, self.hints, self.library.all_scenarios(), self.round)

    def basis(self, filtered: Filtered) -> str:
        """What `Repair.basis` holds."""
        return content_hash([self.identity, filtered.bare().to_line(), [r.to_line() for r in self.records(filtered)]])

    def row(self, filtered: Filtered, outcome: Outcome, why: str, attempts: Sequence[Attempt] = (), **more: object) -> Repair:
        """A result of this dialogue."""
        return Repair(
            dialogue_id=filtered.dialogue_id, outcome=outcome, why=why, attempts=list(attempts),
            dialogue_hash=content_hash(filtered.bare().to_line()), judge=self.judge.name, judge_identity=self.judge.identity,
            rubric=self.rubric.hash, writer=self.writer.system.name, basis=self.basis(filtered), **more,  # type: ignore[arg-type]
        )  # fmt: skip


class Scope(NamedTuple):
    """What may be rewritten: the failing messages, and how many other own ones."""

    failing: frozenset[int]
    free: int


async def repair_one(filtered: Filtered, by: Repairer) -> Repair:
    """Have a rejected or invalid dialogue repaired, in at most `by.attempts` attempts, the later ones told what came of
    the one before. ModelError if writer or judge gave no reply: then nothing is decided."""
    parent, records = filtered.bare(), by.records(filtered)
    scope = _scope(parent, records, by.free)
    if scope is None:
        return by.row(filtered, "not_repairable", "what failed is no message that could be rewritten")
    personas, scenario = parent.cards_of(by.library.personas), by.library.all_scenarios().get(parent.scenario or "")
    attempts: list[Attempt] = []
    outcome: Outcome = "failed"
    last: list[str] = []
    for number in range(1, by.attempts + 1):
        asked = question(parent, personas, scenario, records, by.rubric, scope.failing, scope.free, last)
        read, reply = await by.writer.ask(
            instructions(by.longest), asked, SCHEMA, f"{parent.dialogue_id}/repair{number}", read_changes
        )
        if read.value is None:
            outcome, last = "no_answer", []
            attempts.append(Attempt(why=read.error or "", call=reply.call))
            continue
        changes, still = read.value, list[FailureRecord]()
        attempt = Attempt(changes=[Change(message=i, content=text) for i, text in changes], why="", call=reply.call)
        try:
            changed = _changed(parent, changes, scope, by)
        except ChangeError as e:
            outcome, attempt = "refused", attempt.model_copy(update={"refused": e.reason, "why": str(e)})
        else:
            outcome, result = "failed", await _filtered(changed, by)
            attempt = attempt.model_copy(update={"why": result.why, "filter_result": result})
            if result.status == "accepted":
                lineage = Lineage(
                    parent=parent.dialogue_id, parent_hash=content_hash(parent.to_line()), changed=sorted(i for i, _ in changes),
                    records=[r.id for r in records], writer=by.writer.system.name, attempt=number, round=by.round,
                )  # fmt: skip
                kept = Filtered.of(changed, result, lineage)
                return by.row(filtered, "repaired", result.why, [*attempts, attempt], dialogue=kept)
            still = by.records(Filtered.of(changed, result))
            again = _scope(changed, still, by.free)
            if again is not None:
                own = {i for i, _ in changes}  # a text of its own that fails now may be changed again; no other message
                scope = Scope(scope.failing | (again.failing & own), max(scope.free, again.free))
        attempts.append(attempt)
        last = last_lines(changes, attempt.refused, still, by.rubric)
    return by.row(filtered, outcome, attempts[-1].why if attempts else "no attempt is allowed", attempts)


def _scope(dialogue: Dialogue, records: Sequence[FailureRecord], free: int) -> Scope | None:
    """What may be rewritten; None where a rewriting cannot help, since a fault lies in no own message."""
    own = set(dialogue.turns())
    places = (r.message_index for r in records if r.box not in NOT_SENT)
    failing = frozenset(i for i in places if i is not None and i in own)
    elsewhere = [r for r in records if r.kind != "checkbox" and (r.box in NOT_SENT or r.message_index not in own)]
    whole = any(r.kind == "checkbox" and r.message_index is None for r in records)
    if elsewhere or not (failing or whole):
        return None
    return Scope(failing, free if whole else 0)


def _changed(parent: Dialogue, changes: Sequence[tuple[int, str]], scope: Scope, by: Repairer) -> Dialogue:
    """The dialogue with the writer's texts, under an id of its own; ChangeError if one of them may not be written."""
    where = parent.dialogue_id
    if not changes:
        raise ChangeError("no_change", f"{where}: nothing is changed")
    texts: dict[int, str] = {}
    for position, text in changes:
        check_text(parent, position, text)
        if position in texts:
            raise ChangeError("two_texts", f"{where}: message {position}: is given two texts")
        if len(text.strip()) > by.longest:
            raise ChangeError("too_long", f"{where}: message {position}: {len(text.strip())} characters; at most {by.longest}")
        texts[position] = text.strip()
    chosen = [i for i in texts if i not in scope.failing]
    if chosen and not scope.free:
        raise ChangeError("not_failing", f"{where}: message {chosen[0]}: did not fail")
    if len(chosen) > scope.free:
        raise ChangeError("too_many", f"{where}: {len(chosen)} messages that did not fail are changed; at most {scope.free}")
    rules = by.rules(parent) if parent.asks else None
    changed = apply(parent, texts, rules)
    if strange := unasked_changes(parent, changed, texts, rules):
        raise ChangeError("other_changes", f"{where}: {strange[0]}")
    return changed.model_copy(update={"dialogue_id": f"{where}-repair"})


async def _filtered(dialogue: Dialogue, by: Repairer) -> FilterResult:
    """Gate, judge and filter again. ModelError where the judge gave no reply to a call."""
    personas, scenario = dialogue.cards_of(by.library.personas), by.library.all_scenarios().get(dialogue.scenario or "")
    gate = check(dialogue, personas, scenario)
    verdict: Verdict | None = None
    if gate.valid:
        verdict = await by.judge.judge(dialogue, personas, scenario)
        raise_final(verdict)
        for error in verdict.errors:
            if error.fault.startswith("model_error:"):
                raise ModelError(cast("Fault", error.fault.removeprefix("model_error:")), error.message, "judge", by.judge.name)
    return filter_dialogue(dialogue, gate, verdict, by.rubric, by.thresholds)
