"""Flips over repeats, and recall and false alarms by place and length, by hand."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from anthrolab.intervals import Rate
from anthrolab.judging.calibration.measure import units
from anthrolab.judging.calibration.sensitivity import (
    by_dialogue_length,
    by_message_length,
    by_position,
    flips,
    outcome_flips,
)
from anthrolab.judging.verdict import Verdict
from tests.labelled_for_tests import SMALL, TEXTS, chat, item, verdict

FINE = {"D1.1": "++++", "D1.2": "++++"}


def keyed(*verdicts: Verdict) -> Mapping[str, Verdict]:
    return {v.dialogue_id: v for v in verdicts}


def test_two_judgings_flip_where_both_answer_and_differ() -> None:
    first = keyed(verdict("x", {"D1.1": "++-?", "D1.2": "++++"}, "+", {"L0-07": False}))
    second = keyed(verdict("x", {"D1.1": "-+--", "D1.2": "++++"}, "?", {"L0-07": 3}))
    # D1.1: changed in turn 1; turn 4 was unanswered once; E1.1 has one answer only
    assert flips([first, second]) == {"D1.1": Rate(1, 3), "D1.2": Rate(0, 4), "E1.1": Rate(0, 0), "L0-07": Rate(1, 1)}


def test_of_three_judgings_all_pairs_count() -> None:
    said = [keyed(verdict("x", FINE, sign)) for sign in "+-+"]
    assert flips(said)["E1.1"] == Rate(2, 3)


def test_a_single_judging_says_nothing_of_flips() -> None:
    assert all(rate == Rate(0, 0) for rate in flips([keyed(verdict("x", FINE))]).values())


@given(st.lists(st.sampled_from("+-"), min_size=2, max_size=6))
def test_pairs_are_those_counted_one_by_one(signs: list[str]) -> None:
    literal = [(a, b) for n, a in enumerate(signs) for b in signs[n + 1 :]]
    rate = flips([keyed(verdict("x", FINE, sign)) for sign in signs])["E1.1"]
    assert rate == Rate(sum(a != b for a, b in literal), len(literal))


def test_outcomes_flip_by_dialogue_and_only_those_wanted() -> None:
    broken = {**FINE, "D1.1": "+++-"}
    first = keyed(verdict("x", FINE), verdict("y", FINE), verdict("z", FINE))
    second = keyed(verdict("x", broken), verdict("y", FINE), verdict("z", broken))
    assert outcome_flips([first, second], ["x", "y"]) == Rate(1, 2)


def test_recall_by_third_of_the_dialogue() -> None:
    # eight messages: 1 is in the first third, 3 and 5 in the middle, 7 in the last
    items = [item(f"t{n}", ("D1.1", n)) for n in range(1, 5)] + [item("e", ("E1.1", None)), item("g", ("L0-07", 7))]
    said = keyed(
        verdict("t1", {**FINE, "D1.1": "-+++"}), verdict("t2", {**FINE, "D1.1": "+-++"}), verdict("t3", FINE),
        verdict("t4", FINE), verdict("e", FINE, "-"), verdict("g", FINE, l0={"L0-07": 7}),
    )  # fmt: skip
    found = units(items, said, {}, SMALL)
    dialogues = {i.id: chat(i.id) for i in items}
    bins = by_position(found, dialogues, {"D1.1", "L0-07"})
    assert [(b.label, b.recall) for b in bins] == [
        ("first third", Rate(1, 1)), ("middle third", Rate(1, 2)), ("last third", Rate(1, 2)),
    ]  # fmt: skip
    without = by_position(found, dialogues, {"L0-07"})
    assert [b.recall for b in without] == [Rate(0, 0), Rate(0, 0), Rate(1, 1)], "ids never answered are no matter of place"


def test_dialogues_are_parted_at_the_median_number_of_messages() -> None:
    items = [item("short", ("E1.1", None)), item("middle", holds=["E1.1"]), item("long", ("E1.1", None), holds=["D1.2"])]
    dialogues = {"short": chat("short", TEXTS[:6]), "middle": chat("middle"), "long": chat("long", [*TEXTS, "嗯", "哈"])}
    said = keyed(verdict("short", FINE, "-"), verdict("middle", FINE, "-"), verdict("long", {**FINE, "D1.2": "+++-"}, "+"))
    up, over = by_dialogue_length(units(items, said, {}, SMALL), dialogues, {"E1.1", "D1.2"})
    assert (up.label, up.recall, up.false_alarms) == ("dialogues up to 8 messages", Rate(1, 1), Rate(1, 1))
    assert (over.label, over.recall, over.false_alarms) == ("dialogues over 8 messages", Rate(0, 1), Rate(1, 1))


def test_false_alarms_by_message_count_single_answers_to_what_holds() -> None:
    # the evaluated messages have 5, 6, 7 and 8 characters: median 6.5
    dialogues = {"x": chat("x")}
    assert [len(dialogues["x"].messages[i].content) for i in dialogues["x"].turns()] == [5, 6, 7, 8]
    said = keyed(verdict("x", {"D1.1": "-+--", "D1.2": "----"}))
    short, long = by_message_length([item("x", holds=["D1.1"])], dialogues, said)
    assert (short.label, short.false_alarms) == ("messages up to 6.5 characters", Rate(1, 2))
    assert (long.label, long.false_alarms) == ("messages over 6.5 characters", Rate(2, 2))


def test_nothing_judged_has_no_lengths() -> None:
    assert by_dialogue_length([], {}, set()) == by_message_length([item("x", holds=["D1.1"])], {}, {}) == []
