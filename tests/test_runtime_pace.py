"""Timing beyond the minimum: gaps, follow-ups, typing, and what becomes of an interrupted draft."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.runtime.dialogue import Dialogue
from anthrolab.runtime.drafts import action_of
from anthrolab.runtime.schedule import Asked, Plan, Rules, Sent, converse
from anthrolab.runtime.scripted import ScriptedPolicy
from anthrolab.runtime.session import play
from tests.cards_for_tests import make_seats

EAGER = st.lists(st.builds(Plan, st.integers(0, 10**6).map(lambda n: f"第{n}件事"), st.integers(0, 40)), max_size=12)


def times(rules: Rules, a: list[Plan], b: list[Plan]) -> list[tuple[str, int]]:
    lines = {"a": iter(a), "b": iter(b)}
    dance = converse(rules, Sent("b", "在吗", 0))
    try:
        asks = next(dance)
        while True:
            asks = dance.send(tuple(next(lines[x.speaker], Plan(end=True)) for x in asks))  # type: ignore[arg-type]
    except StopIteration as stop:
        return [(m.speaker, m.at_s) for m in stop.value.messages]


def test_by_hand_a_gap_pushes_own_messages_apart_and_not_the_partners() -> None:
    burst = [Plan("一", 2), Plan("二", 2), Plan("三", 2)]
    assert times(Rules(600), burst, []) == [("b", 0), ("a", 2), ("a", 4), ("a", 6)]
    assert times(Rules(600, min_gap_s=5), burst, []) == [("b", 0), ("a", 2), ("a", 7), ("a", 12)]
    # b's opener was at 0: its own next message waits for 5, though a's is at 2.
    assert times(Rules(600, min_gap_s=5), [Plan("一", 2), Plan(end=True)], [Plan(end=True), Plan("嗯", 1)])[2] == ("b", 5)


def test_by_hand_follow_ups_wait_longer_and_longer() -> None:
    burst = [Plan("一", 2), Plan("二", 2), Plan("三", 2), Plan("四", 90)]
    rules = Rules(600, follow_up_delays=(10, 30))
    # 一 answers; 二 is the first follow-up (10 s), 三 the second (30 s), 四 as planned, since 90 is more than 30.
    assert times(rules, burst, []) == [("b", 0), ("a", 2), ("a", 12), ("a", 42), ("a", 132)]


def test_an_answer_in_between_ends_the_row_of_follow_ups() -> None:
    rules = Rules(600, follow_up_delays=(10, 30))
    course = times(rules, [Plan("一", 1), Plan(end=True), Plan("二", 1)], [Plan(end=True), Plan("嗯", 3), Plan(end=True)])
    assert course == [("b", 0), ("a", 1), ("b", 4), ("a", 5)]


@given(EAGER, EAGER, st.integers(0, 50), st.lists(st.integers(0, 90), max_size=4))
def test_gaps_hold_in_every_course(a: list[Plan], b: list[Plan], gap: int, delays: list[int]) -> None:
    rules = Rules(3600, min_gap_s=gap, follow_up_delays=tuple(delays), max_consecutive=9)
    course = times(rules, a, b)
    for speaker in "ab":
        own = [at for who, at in course if who == speaker]
        assert all(later - earlier >= gap for earlier, later in pairwise(own))
    in_a_row = 0
    for (who, at), (next_who, next_at) in pairwise(course):
        in_a_row = in_a_row + 1 if who == next_who else 0
        if in_a_row and delays:
            assert next_at - at >= delays[min(in_a_row, len(delays)) - 1]


def test_off_means_off() -> None:
    plans = [Plan("一", 2), Plan("二", 0), Plan("三", 2)]
    assert times(Rules(600), plans, plans) == times(Rules(600, min_gap_s=0, follow_up_delays=()), plans, plans)


@pytest.mark.parametrize("bad", [{"min_gap_s": -1}, {"follow_up_delays": (3, -1)}, {"typing_chars_per_minute": -1}])
def test_a_pace_below_nothing_is_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 0"):
        Rules(600, **bad)  # type: ignore[arg-type]


def chat(rules: Rules, a: list[Plan], b: list[Plan]) -> Dialogue:
    policies = {"a": ScriptedPolicy(a), "b": ScriptedPolicy(b)}
    return asyncio.run(play("d", make_seats(), policies, rules, evaluated_role="a"))  # type: ignore[arg-type]


def test_a_draft_is_typed_in_its_last_seconds_only() -> None:
    # a's ten characters at 60 a minute take 10 s: due at 40, typed from 30 on. b writes at 20, then at 35.
    ten = "我在想要不要过去一趟"
    assert len(ten) == 10
    a = [Plan(ten, 40), Plan(ten, 20), Plan(end=True)]
    b = [Plan("在忙吗", 20), Plan("？", 15), Plan(end=True)]
    asks = chat(Rules(600, typing_chars_per_minute=60), a, b).asks
    assert asks is not None
    assert [(x.interrupted, x.action) for x in asks if x.previous_draft] == [("waiting", "keep"), ("typing", "withdraw")]
    off = chat(Rules(600), a, b).asks
    assert off is not None
    assert [x.interrupted for x in off if x.previous_draft] == [None, None]


def test_nobody_types_before_the_decision_was_made() -> None:
    # 600 characters a minute would need 10 s for 100 characters, but the draft is due 5 s after the decision.
    long = "长" * 100
    asks = chat(Rules(600, typing_chars_per_minute=600), [Plan(long, 5), Plan(end=True)], [Plan("诶", 0), Plan(end=True)]).asks
    assert asks is not None
    assert [x.interrupted for x in asks if x.previous_draft] == ["typing"]


@pytest.mark.parametrize(
    ("previous", "content", "silent", "action"),
    [
        (None, "好", False, "new"),
        (None, "", True, "silent"),
        ("周末去不去", "周末去不去？", False, "keep"),
        ("周末去不去打球", "周末还去不去打球啊", False, "revise"),
        ("周末去不去打球", "我妈住院了", False, "replace"),
        ("周末去不去打球", "", True, "withdraw"),
        ("[捂脸]", "……", False, "replace"),
        ("？", "？", False, "keep"),
        ("？", "……", False, "replace"),
    ],
)
def test_what_became_of_a_draft(previous: str | None, content: str, silent: bool, action: str) -> None:
    assert action_of(previous, content, silent) == action


def test_the_action_stands_in_the_record_of_every_decided_ask() -> None:
    dialogue = chat(Rules(600), [Plan("晚点说", 30), Plan("晚点再说", 20), Plan(end=True)], [Plan("嗯嗯好", 10), Plan(end=True)])
    assert dialogue.asks is not None
    assert [(x.speaker, x.action) for x in dialogue.asks[:4]] == [("b", "new"), ("a", "new"), ("b", "silent"), ("a", "revise")]


def test_a_policy_is_told_that_it_was_typing() -> None:
    seen: list[Asked] = []

    def record(ask: Asked) -> Plan:
        seen.append(ask)
        return Plan("写到一半的话", 30) if len(seen) == 1 else Plan(end=True)

    policies = {"a": ScriptedPolicy(record), "b": ScriptedPolicy([Plan("诶", 29), Plan(end=True)])}
    rules = Rules(600, typing_chars_per_minute=60)
    asyncio.run(play("d", make_seats(), policies, rules, evaluated_role="a"))  # type: ignore[arg-type]
    assert [x.interrupted for x in seen] == [None, "typing"]


def test_two_very_long_drafts_are_compared_in_no_time() -> None:
    """Without a bound the comparison of these two takes more than ten minutes."""
    assert action_of("啊" * 20_000, "啊" * 19_999 + "吧", False) == "revise"
