"""What is counted as found, missed, falsely alleged and unanswered, by hand."""

import pytest

from anthrolab.intervals import Rate
from anthrolab.judging.calibration.measure import (
    LabelError,
    Measure,
    answered_ids,
    gold_passed,
    measures,
    strict_outcome,
    units,
)
from anthrolab.judging.l0.result import L0Result, Violation
from tests.labelled_for_tests import SMALL, item, verdict

FINE = {"D1.1": "++++", "D1.2": "++++"}


def gate(*found: tuple[str, int], executed: tuple[str, ...] = ("L0-01", "L0-06")) -> L0Result:
    own = tuple(Violation(i, at, "said") for i, at in found)  # type: ignore[arg-type]
    return L0Result(not own, "fatal" if own else None, own, (), executed)  # type: ignore[arg-type]


def by_id(items: list, verdicts: list, gates: dict | None = None) -> dict[tuple[str, str], Measure]:  # type: ignore[type-arg]
    keyed = {v.dialogue_id: v for v in verdicts}
    found = units(items, keyed, gates or {}, SMALL)
    return {(m.id, m.source): m for m in measures(found, keyed, gates or {}, SMALL)}


def test_a_turn_checkbox_counts_in_its_turn_only() -> None:
    items = [item("x", ("D1.1", 2)), item("y", ("D1.1", 2)), item("z", ("D1.1", 2)), item("u", ("D1.1", 2))]
    said = [
        verdict("x", {**FINE, "D1.1": "+-++"}),  # found
        verdict("y", {**FINE, "D1.1": "++-+"}),  # alleged in the turn after: missed
        verdict("z", {**FINE, "D1.1": "++++"}),  # missed
        verdict("u", {**FINE, "D1.1": "+?++"}),  # unanswered
    ]
    m = by_id(items, said)["D1.1", "judge"]
    assert (m.found, m.missed, m.unanswered, m.elsewhere, m.positives) == (1, 2, 1, 1, 4)
    assert (m.held, m.false_alarms) == (0, 0), "a turn that no label speaks of is no false alarm"
    assert m.recall == Rate(1, 4)
    assert (m.coverage, m.coverage.value) == (Rate(15, 16), 15 / 16)


def test_what_holds_is_one_false_alarm_a_dialogue_however_many_turns_fail() -> None:
    items = [item(key, holds=["D1.2"]) for key in "xyz"]
    said = [verdict(key, {**FINE, "D1.2": signs}) for key, signs in zip("xyz", ("--+-", "++++", "++?+"), strict=True)]
    m = by_id(items, said)["D1.2", "judge"]
    assert (m.held, m.false_alarms, m.held_unanswered) == (3, 1, 1)
    assert m.false_alarm_rate == Rate(1, 3)
    assert m.precision == Rate(0, 1)
    assert m.recall.value is None


def test_a_failing_turn_is_an_alarm_although_another_turn_is_unanswered() -> None:
    m = by_id([item("x", holds=["D1.2"])], [verdict("x", {**FINE, "D1.2": "?-++"})])["D1.2", "judge"]
    assert (m.false_alarms, m.held_unanswered) == (1, 0)


def test_a_dialogue_checkbox_counts_once() -> None:
    items = [item("x", ("E1.1", None)), item("y", ("E1.1", None)), item("n", holds=["E1.1"])]
    said = [verdict("x", FINE, "-"), verdict("y", FINE, "+"), verdict("n", FINE, "-")]
    m = by_id(items, said)["E1.1", "judge"]
    assert (m.found, m.missed, m.held, m.false_alarms) == (1, 1, 1, 1)
    assert (m.recall, m.precision, m.coverage) == (Rate(1, 2), Rate(1, 2), Rate(3, 3))


def test_constraints_by_gate_by_judge_and_by_both() -> None:
    items = [item("x", ("L0-06", 3)), item("y", ("L0-06", 3)), item("z", ("L0-06", 3)), item("n", holds=["L0-06"])]
    gates = {"x": gate(("L0-06", 3)), "y": gate(), "z": gate(("L0-06", 5)), "n": gate()}
    said = [
        verdict("x", FINE, l0={"L0-06": False}),
        verdict("y", FINE, l0={"L0-06": 3}),
        verdict("z", FINE, l0={"L0-06": None}),
        verdict("n", FINE, l0={"L0-06": 1}),
    ]
    m = by_id(items, said, gates)
    rules, judge, both = (m["L0-06", s] for s in ("gate", "judge", "both"))
    assert (rules.found, rules.missed, rules.unanswered, rules.elsewhere, rules.false_alarms) == (1, 2, 0, 1, 0)
    assert (judge.found, judge.missed, judge.unanswered, judge.false_alarms, judge.coverage) == (1, 1, 1, 1, Rate(3, 4))
    assert (both.found, both.missed, both.unanswered, both.elsewhere, both.false_alarms) == (2, 0, 1, 1, 1)


def test_a_constraint_without_a_message_is_found_anywhere() -> None:
    m = by_id([item("x", ("L0-01", None))], [], {"x": gate(("L0-01", 5))})["L0-01", "gate"]
    assert (m.found, m.missed) == (1, 0)


def test_a_constraint_that_the_gate_does_not_decide_is_unanswered_there() -> None:
    items = [item("x", ("L0-07", 3)), item("n", holds=["L0-07"])]
    gates = {"x": gate(), "n": gate()}
    rules = by_id(items, [], gates)["L0-07", "gate"]
    assert (rules.unanswered, rules.held_unanswered, rules.coverage) == (1, 1, Rate(0, 2))
    assert ("L0-07", "judge") not in by_id(items, [verdict("x", FINE), verdict("n", FINE)], gates)


def test_a_dialogue_that_was_not_judged_counts_nowhere() -> None:
    m = by_id([item("x", ("D1.1", 1)), item("y", ("D1.1", 1))], [verdict("x", {**FINE, "D1.1": "-+++"})])
    assert m["D1.1", "judge"].recall == Rate(1, 1)


def test_measures_come_in_the_order_of_constraints_and_rubric() -> None:
    made = by_id([item("x", ("D1.1", 1))], [verdict("x", FINE, l0={"L0-07": False})], {"x": gate()})
    assert list(made)[:2] == [("L0-01", "gate"), ("L0-02", "gate")]
    assert list(made)[-3:] == [("D1.1", "judge"), ("D1.2", "judge"), ("E1.1", "judge")]
    assert ("L0-07", "judge") in made


def test_labels_that_do_not_fit_are_named() -> None:
    with pytest.raises(LabelError, match=r"x: D1.1: turn 5: the dialogue has turns 1 to 4"):
        by_id([item("x", ("D1.1", 5))], [verdict("x", FINE)])
    with pytest.raises(LabelError, match=r"x: D9.1: is neither a constraint nor a checkbox of the rubric small"):
        by_id([item("x", ("D9.1", 1))], [verdict("x", FINE)])
    with pytest.raises(LabelError, match=r"x: D9.1"):
        by_id([item("x", holds=["D9.1"])], [verdict("x", FINE)])


def test_ids_that_the_judge_answers() -> None:
    said = [verdict("x", {"D1.1": "????", "D1.2": "???+"}, "?", {"L0-07": None, "L0-09": False})]
    made = by_id([item("x")], said, {"x": gate()})
    assert answered_ids(made.values()) == {"D1.2", "L0-09"}


def test_gold_is_passed_where_gate_and_judge_pass_it() -> None:
    items = [item(key, edit="none") for key in "abcde"] + [item("edited")]
    gates = {key: gate() for key in "abcd"} | {"e": gate(("L0-01", 1)), "edited": gate()}
    said = [
        verdict("a", FINE),
        verdict("b", {**FINE, "D1.1": "++-+"}),
        verdict("c", FINE, l0={"L0-09": 1}),  # fatal
        verdict("d", FINE, l0={"L0-07": 1}),  # major: for diagnosis only
        verdict("e", FINE),  # fatal by the gate
        verdict("edited", FINE),
    ]
    assert gold_passed(items, {v.dialogue_id: v for v in said}, gates) == Rate(2, 5)
    assert [strict_outcome(v) for v in said[:4]] == [True, False, False, True]


def test_nothing_assessed_is_no_pass_of_gold() -> None:
    silent = verdict("a", {"D1.1": "????", "D1.2": "????"}, "?")
    assert gold_passed([item("a", edit="none")], {"a": silent}, {"a": gate()}) == Rate(0, 1)
