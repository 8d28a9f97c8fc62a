"""The verdict on a judge: each threshold by itself, and every reason in words."""

import json
from dataclasses import replace
from typing import Any

import pytest

from anthrolab.intervals import Rate, wilson
from anthrolab.judging.calibration.fitness import BY_CONSTRUCTION, LABELS, LOW_END, WHY, Fitness, fitness
from anthrolab.judging.calibration.measure import Measure
from anthrolab.judging.l0.result import SEVERITY
from anthrolab.judging.rubric import load_rubric
from anthrolab.judging.rules import rule_boxes
from anthrolab.judging.verdict import JUDGED_L0

RUBRIC = load_rubric()
BOXES = [b.id for b in RUBRIC.boxes()]
FINE = Measure("", "judge", found=20, missed=0, unanswered=0, elsewhere=0, held=20, false_alarms=0, held_unanswered=0, asked=40, answered=40)


def of(i: str, **changes: Any) -> Measure:
    source = changes.pop("source", "judge" if i in (*BOXES, *JUDGED_L0) else "gate")
    return replace(FINE, id=i, source=source, **changes)


def judged(*changed: Measure, gold: Rate = Rate(100, 100), flipped: Rate = Rate(0, 100)) -> Fitness:  # noqa: B008
    measured = {(m.id, m.source): m for m in map(of, [*SEVERITY, *BOXES])} | {(m.id, m.source): m for m in changed}
    return fitness("oracle", list(measured.values()), gold, flipped, RUBRIC)


def unmet(verdict: Fitness) -> dict[str, bool | None]:
    return {c.name: c.met for c in verdict.criteria if not c.met}


def test_a_judge_that_meets_everything_is_fit() -> None:
    verdict = judged()
    assert verdict.fit
    assert verdict.words == "judge oracle: fit for strict ACC"
    assert verdict.reasons == []
    assert {c.name for c in verdict.criteria} == set(WHY)


@pytest.mark.parametrize(
    ("verdict", "criterion", "met"),
    [
        (judged(gold=Rate(89, 100)), "gold cases passed", False),
        (judged(gold=Rate(49, 49)), "gold cases passed", None),
        (judged(flipped=Rate(6, 100)), "repeats", False),
        (judged(flipped=Rate(0, 0)), "repeats", None),
        (judged(of("D1.2", answered=39)), "coverage", False),
        (judged(of("D1.2", missed=6)), "recall", False),  # 20 of 26
        (judged(of("L0-03", found=20, missed=6)), "recall", False),
        (judged(of("D1.2", false_alarms=3)), "precision", False),  # 20 of 23
        (judged(of("D1.2", found=7)), "labels", None),
        (judged(of("D1.2", held=7)), "labels", None),
    ],
)  # fmt: skip
def test_one_thing_amiss_is_one_reason_against(verdict: Fitness, criterion: str, met: bool | None) -> None:
    assert not verdict.fit
    assert unmet(verdict) == {criterion: met}
    assert len(verdict.reasons) == 1


@pytest.mark.parametrize("verdict", [judged(gold=Rate(90, 100)), judged(flipped=Rate(5, 100)), judged(of("D1.2", missed=5)),
                                     judged(of("D1.2", found=18, false_alarms=2)), judged(of("D1.2", found=8, held=8))])  # fmt: skip
def test_thresholds_are_included(verdict: Fitness) -> None:
    assert verdict.fit


def test_of_the_fewest_labels_one_may_be_missed_and_not_two() -> None:
    assert judged(of("D1.2", found=LABELS - 1, missed=1)).fit
    assert unmet(judged(of("D1.2", found=LABELS - 2, missed=2))) == {"recall": False}
    assert unmet(judged(of("D1.2", found=8, missed=2))) == {"recall": False}, "0.8, but the interval reaches below a half"
    for n, enough in ((LABELS, True), (LABELS - 1, False)):
        ends = wilson(n - 1, n)
        assert ends is not None
        assert (ends.low > LOW_END) is enough, "what WHY['labels'] says"


def test_wrong_once_in_2800_answers_passes_nine_of_ten_cases() -> None:
    passes_all = (1 - 1 / 2800) ** 300
    assert passes_all == pytest.approx(0.9, abs=0.002)


def test_either_finding_a_constraint_is_enough_where_both_may() -> None:
    gate, judge = of("L0-06", source="gate", found=4, missed=16), of("L0-06", found=16, missed=4)
    assert unmet(judged(replace(gate, source="both"), gate, judge)) == {"recall": False}
    assert judged(of("L0-06", source="both"), gate, judge).fit


def test_the_rules_judge_is_unfit_in_words() -> None:
    silent = [b for b in BOXES if b not in rule_boxes(RUBRIC)]
    measured = [of(i, source="gate") for i in SEVERITY if i not in ("L0-07", "L0-09", "L0-10")]
    measured += [of(i, source="gate", answered=0, found=0, unanswered=20) for i in ("L0-07", "L0-09", "L0-10")]
    measured += [of(b) if b not in silent else of(b, answered=0, found=0, unanswered=20) for b in BOXES]
    verdict = fitness("rules", measured, Rate(100, 100), Rate(0, 100), RUBRIC)
    assert verdict.words == "judge rules: not fit for strict ACC"
    assert unmet(verdict) == {"coverage": False}
    (reason,) = verdict.reasons
    assert f"answers {len(BOXES) - len(silent)} of 49 ids at all" in reason
    assert f"never answered: {', '.join([*JUDGED_L0, *silent])}" in reason


def test_what_is_true_by_construction_is_said_of_the_rules_judge_alone() -> None:
    measured = [of(i) for i in [*SEVERITY, *BOXES]]
    for name, marked in (("rules", True), ("oracle", False)):
        text = fitness(name, measured, Rate(100, 100), Rate(0, 100), RUBRIC).as_markdown()
        assert ("1 (100 of 100), by construction" in text) is marked
        assert ("answered and measured, partly by construction" in text) is marked
        assert all((words in text) is marked for words in BY_CONSTRUCTION.values())
    nothing = fitness("rules", measured, Rate(0, 0), Rate(0, 100), RUBRIC)
    assert nothing.criteria[0].found == "none"


def test_reasons_name_ids_and_counts() -> None:
    verdict = judged(of("D1.2", found=10, missed=10), of("E4.1", found=9, missed=11), of("D2.1", answered=30, asked=40))
    text = "\n".join(verdict.reasons)
    assert "below: D1.2 0.5 (10 of 20), E4.1 0.45 (9 of 20)" in text
    assert "sometimes unanswered: D2.1 30 of 40" in text
    assert "D1.1" not in text
    (few,) = judged(of("D1.2", found=8, missed=2)).reasons
    assert "below: D1.2 0.8 (8 of 10) with an interval from 0.49" in few


def test_written_forms_say_the_same() -> None:
    verdict = judged(gold=Rate(89, 100))
    row = json.loads(json.dumps(verdict.as_row()))
    assert (row["fit"], row["verdict"], row["reasons"]) == (False, verdict.words, verdict.reasons)
    text = verdict.as_markdown()
    assert text.startswith("# Judge oracle: not fit for strict ACC\n")
    assert f"- {verdict.reasons[0]}\n" in text
    assert all(WHY[c.name] in text for c in verdict.criteria)
    assert "Reasons against" not in judged().as_markdown()
