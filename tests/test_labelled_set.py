"""The labelled set and what gate and rules judge make of it: the part that ships, one from another seed, and lines held out.

Precision here is found / (found + false alarms); a positive is a violation or a failed checkbox.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from anthrolab.cards.library import Library, load_library
from anthrolab.judging.calibration.measure import Measure, measures, units
from anthrolab.judging.l0.gate import check
from anthrolab.judging.labelled.bank import Bank, load_banks
from anthrolab.judging.labelled.items import Labelled, applied, load_labelled, untouched
from anthrolab.judging.labelled.making import RULED, cases_of, make_from_bank
from anthrolab.judging.labelled.whole_set import CONSTRAINTS, Counts, make_set
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.judging.rules import RulesJudge
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.runtime.written import load_gold

DATA = Path(__file__).parent.parent / "data"
UNSEEN = Path(__file__).parent / "data" / "labelled" / "unseen"
"""Lines for the gate by an author who knew neither it nor the banks that ship."""
HELD_OUT = Path(__file__).parent / "data" / "labelled" / "banks"
"""Such lines for the rules judge; those for the gate were opened in a second round of its making."""
SHIPPED = DATA / "labelled" / "set.jsonl"

DECIDED = (
    "D1.3", "D1.4", "D1.5", "D2.1", "D2.4", "D3.3", "D4.4", "D5.1", "D5.2", "D5.3", "E1.3", "E4.1", "E4.2", "E4.5", "E5.2", "E5.4",
)  # fmt: skip
"""Checkboxes that the rules judge decides well enough: precision of at least 0.95, recall of at least 0.7."""


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library(DATA)


@pytest.fixture(scope="module")
def rubric() -> Rubric:
    return load_rubric()


@pytest.fixture(scope="module")
def gold(library: Library) -> dict[str, Dialogue]:
    return load_gold(DATA, library)


@pytest.fixture(scope="module")
def banks() -> dict[str, Bank]:
    return load_banks(DATA / "labelled" / "banks")


def measured(items: Sequence[Labelled], gold: Mapping[str, Dialogue], library: Library, rubric: Rubric) -> dict[tuple[str, str], Measure]:
    judge = RulesJudge(rubric)
    verdicts, gates = {}, {}
    for item in [*items, *untouched(gold, [*CONSTRAINTS, *(b.id for b in rubric.boxes())])]:
        dialogue = applied(item, gold)
        people, scenario = dialogue.cards_of(library.personas), library.scenarios[dialogue.scenario or ""]
        verdicts[item.id] = judge.verdict(dialogue, people, scenario)
        gates[item.id] = check(dialogue, people, scenario)
    every = [*items, *untouched(gold, [*CONSTRAINTS, *(b.id for b in rubric.boxes())])]
    return {(m.id, m.source): m for m in measures(units(every, verdicts, gates, rubric), verdicts, gates, rubric)}


@pytest.fixture(scope="module")
def shipped(gold: dict[str, Dialogue], library: Library, rubric: Rubric) -> dict[tuple[str, str], Measure]:
    return measured(load_labelled(SHIPPED), gold, library, rubric)


@pytest.fixture(scope="module")
def other_seed(gold: dict[str, Dialogue], library: Library, rubric: Rubric, banks: dict[str, Bank]) -> dict[tuple[str, str], Measure]:
    """Half as many again, from another seed: other lines of the banks, at other places of other dialogues."""
    return measured(make_set(gold, library, banks, rubric, seed=20261129, counts=Counts(ruled=16, judged=5, box=4)), gold, library, rubric)


def test_the_shipped_set_is_made_from_banks_and_gold_dialogues(
    gold: dict[str, Dialogue], library: Library, rubric: Rubric, banks: dict[str, Bank]
) -> None:
    made = make_set(gold, library, banks, rubric, seed=1, counts=Counts())
    assert load_labelled(SHIPPED) == made, "run: anthrolab labelled --out data/labelled/set.jsonl"


def test_there_is_enough_of_every_kind(rubric: Rubric) -> None:
    items = load_labelled(SHIPPED)
    positives = Counter(f.id for item in items for f in item.fails)
    look_alikes = Counter(_target(item) for item in items if not item.fails)
    for i in CONSTRAINTS:
        assert positives[i] >= (30 if i in RULED else 10), i
        assert look_alikes[i] >= (30 if i in RULED else 10), i
    for box in rubric.boxes():
        assert positives[box.id] >= 8, box.id
    assert len({item.gold for item in items}) == 50 and {item.role for item in items} == {"a", "b"}
    assert all(len({str(o) for o in item.ops}) == len(item.ops) for item in items)


def _target(item: Labelled) -> str:
    """The id that an item is about, with which its own id begins."""
    return re.match(r"L0-\d\d|[DE]\d\.\d", item.id)[0]  # type: ignore[index]


@pytest.mark.parametrize("part", ["shipped", "other_seed"])
@pytest.mark.parametrize("constraint", RULED)
def test_the_gate_is_precise_and_finds_nine_of_ten(request: pytest.FixtureRequest, part: str, constraint: str) -> None:
    m = request.getfixturevalue(part)[constraint, "gate"]
    assert m.found >= 0.98 * (m.found + m.false_alarms), f"{constraint}: {m.false_alarms} false alarms, {m.found} found"
    assert m.found >= 0.90 * m.positives, f"{constraint}: {m.found} of {m.positives}"


@pytest.mark.parametrize("part", ["shipped", "other_seed"])
@pytest.mark.parametrize("box", DECIDED)
def test_the_rules_judge_decides_these_boxes(request: pytest.FixtureRequest, part: str, box: str) -> None:
    m = request.getfixturevalue(part)[box, "judge"]
    assert m.found >= 0.95 * (m.found + m.false_alarms), f"{box}: {m.false_alarms} false alarms, {m.found} found"
    assert m.found >= 0.7 * m.positives, f"{box}: {m.found} of {m.positives}"


@pytest.mark.parametrize("part", ["shipped", "other_seed"])
def test_the_rules_judge_makes_nothing_up(request: pytest.FixtureRequest, part: str, rubric: Rubric) -> None:
    """Boxes that it decides less well are never failed where they hold, and those without a rule get no answer."""
    table: Mapping[tuple[str, str], Measure] = request.getfixturevalue(part)
    for box in rubric.boxes():
        m = table[box.id, "judge"]
        assert m.false_alarms == 0, box.id
        if box.rule is None:
            assert m.answered == 0, box.id


@pytest.mark.parametrize(
    ("constraint", "recall"), [("L0-01", 0.6), ("L0-02", 0.8), ("L0-03", 0.45), ("L0-06", 0.8), ("L0-08", 0.6)]
)
def test_the_gate_on_lines_that_nobody_saw_while_it_was_made(
    gold: dict[str, Dialogue], library: Library, rubric: Rubric, constraint: str, recall: float
) -> None:
    """It finds less of them (the docs print how much); what it alleges must still be true."""
    m = on_unseen(constraint, UNSEEN, gold, library, rubric)
    assert m.found >= 0.98 * (m.found + m.false_alarms), f"{constraint}: {m.false_alarms} false alarms, {m.found} found"
    assert m.found >= recall * m.positives, f"{constraint}: {m.found} of {m.positives}"


ROBUST = ("D1.3", "D1.4", "D1.5", "D2.1", "D2.4", "D3.3", "D4.4", "D5.1", "D5.2", "E2.1", "E4.5", "E5.4")
"""Checkboxes of which that holds for lines that nobody saw, too; of the others the rules find less (docs/judges.md)."""


@pytest.mark.parametrize("box", sorted(path.stem for path in HELD_OUT.glob("[DE]*.yaml")))
def test_the_rules_judge_on_lines_that_nobody_saw_while_it_was_made(
    gold: dict[str, Dialogue], library: Library, rubric: Rubric, box: str
) -> None:
    m = on_unseen(box, HELD_OUT, gold, library, rubric)
    assert m.false_alarms == 0, f"{box}: {m.false_alarms} false alarms, {m.found} found"
    assert m.found >= (0.7 if box in ROBUST else 0) * m.positives, f"{box}: {m.found} of {m.positives}"


def on_unseen(target: str, folder: Path, gold: Mapping[str, Dialogue], library: Library, rubric: Rubric) -> Measure:
    """Every entry of a bank once."""
    bank = load_banks(folder)[target]
    turn_scope = target in {b.id for b in rubric.boxes("turn")}
    items = make_from_bank(bank, cases_of(gold, library), 7, fails=len(bank.fails), holds=len(bank.holds), turn_scope=turn_scope)
    return measured(items, gold, library, rubric)[target, "gate" if target in RULED else "judge"]
