"""What is watched beside the reward, and when it raises an alarm."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.runtime.dialogue import Ask, Decision, Dialogue, Message, Participant
from anthrolab.training.grpo.watch import WATCHED, WatchSettings, alarms, watched
from anthrolab.training.settings import TrainingError

AT = datetime(2026, 3, 6, 20, 31)
SHORT = WatchSettings.of(window=2)
STEADY = {"chars": 10.0, "messages": 5.0, "distinct_2": 0.5, "silent": 0.2, "violations": 0.0, "rules_score": 60.0}


def chat(own: Sequence[str], silences: int = 0, errors: int = 0) -> Dialogue:
    """A chat in which side a says `own`, each answered by b, after an opener of a's own."""
    messages = [Message(speaker="a", content="在不在呀在不在呀", at=AT, opener=True)]
    for text in own:
        messages += [Message(speaker="a", content=text, at=AT, opener=False), Message(speaker="b", content="嗯嗯嗯嗯嗯嗯嗯", at=AT, opener=False)]
    said = [Decision(content=text, at=AT, end=False) for text in own] + [Decision(content="", at=AT, end=True)] * silences
    asks = [Ask(speaker="a", now=AT, decision=d) for d in said] + [Ask(speaker="a", now=AT, error="no JSON")] * errors
    asks += [Ask(speaker="b", now=AT, decision=Decision(content="", at=AT, end=True))] * 5
    return Dialogue(dialogue_id="d", evaluated_role="a", speakers={"a": Participant(name="甲"), "b": Participant(name="乙")}, messages=messages, asks=asks)


def log(rewards: Sequence[float | None], **quantities: Sequence[float | None]) -> list[dict[str, Any]]:
    """Rows of a log from step 1 on, with everything else steady."""
    rows: list[dict[str, Any]] = [{"step": i, "reward": r, **STEADY} for i, r in enumerate(rewards, 1)]
    for name, values in quantities.items():
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    return rows


def found(rows: Sequence[dict[str, Any]], settings: WatchSettings = SHORT) -> list[tuple[int, str]]:
    return [(a.step, a.quantity) for a in alarms(rows, settings)]


def test_what_is_watched_of_two_dialogues_is_as_counted_by_hand() -> None:
    seen = watched([chat(["abcd", "ab"], silences=1), chat(["ab"], silences=0, errors=2)], [1, 0])
    assert seen == {
        "chars": pytest.approx(8 / 3),  # 4, 2 and 2 characters
        "messages": 1.5,
        "distinct_2": pytest.approx(3 / 5),  # ab bc cd | ab | ab
        "silent": pytest.approx(1 / 4),  # of 2 + 1 and 1 decisions; broken replies are none
        "violations": 0.5,
    }


def test_pairs_do_not_cross_messages_and_single_characters_have_none() -> None:
    assert watched([chat(["好", "的"])], [0])["distinct_2"] is None
    assert watched([chat(["哈哈哈哈"])], [0])["distinct_2"] == pytest.approx(1 / 3)


def test_nothing_to_watch_is_no_value_and_never_zero() -> None:
    assert set(watched([], []).values()) == {None}
    silent = watched([chat([])], [0])
    assert (silent["chars"], silent["messages"], silent["silent"]) == (None, 0.0, None)


def test_violations_are_one_number_a_dialogue() -> None:
    with pytest.raises(ValueError, match="one number a dialogue"):
        watched([chat(["在"])], [])


def test_messages_that_grow_while_the_reward_rises_raise_one_alarm_at_the_first_step_that_shows_it() -> None:
    rows = log([0.4, 0.4, 0.6, 0.6, 0.6, 0.6], chars=[10, 10, 20, 20, 20, 20])
    (alarm,) = alarms(rows, SHORT)
    assert (alarm.step, alarm.quantity) == (4, "chars")
    assert "the reward rose from 0.400 to 0.600 while characters a message went from 10.00 to 20.00" in alarm.said


def test_there_is_no_alarm_before_two_whole_windows() -> None:
    rows = log([0.4, 0.4, 0.9], chars=[10, 10, 90])
    assert found(rows) == []


def test_a_quantity_that_runs_off_without_a_rising_reward_is_no_alarm() -> None:
    assert found(log([0.6, 0.6, 0.6, 0.6], chars=[10, 10, 20, 20])) == []
    assert found(log([0.6, 0.6, 0.3, 0.3], chars=[10, 10, 20, 20])) == []


def test_a_reward_that_rises_with_everything_else_steady_is_no_alarm() -> None:
    assert found(log([0.2, 0.2, 0.9, 0.9])) == []


def test_a_small_change_is_no_alarm_however_sure_it_is() -> None:
    assert found(log([0.4, 0.4, 0.6, 0.6], chars=[10, 10, 12.9, 12.9])) == []  # 29%, and 30% are asked for
    assert found(log([0.4, 0.4, 0.6, 0.6], chars=[10, 10, 13.1, 13.1])) == [(4, "chars")]
    assert found(log([0.4, 0.4, 0.6, 0.6], chars=[2, 2, 3.5, 3.5])) == []  # 75% of very little


def test_a_change_within_the_noise_from_step_to_step_is_no_alarm() -> None:
    rows = log([0.4, 0.4, 0.6, 0.6], chars=[10, 12, 20, 22])  # change 10, standard error sqrt((2 + 2) / 2) = 1.41
    assert found(rows, WatchSettings.of(window=2, noise=7.0)) == [(4, "chars")]
    assert found(rows, WatchSettings.of(window=2, noise=7.1)) == []


def test_a_rise_of_the_reward_within_its_noise_is_no_alarm() -> None:
    rows = log([0.4, 0.5, 0.6, 0.7], chars=[10, 10, 20, 20])  # rise 0.2, standard error 0.0707
    assert found(rows, WatchSettings.of(window=2, noise=2.8)) == [(4, "chars")]
    assert found(rows, WatchSettings.of(window=2, noise=2.9)) == []


def test_a_steady_drift_does_not_count_as_noise() -> None:
    rows = log([0.4 + 0.02 * i for i in range(10)], chars=[10 + i for i in range(10)])
    assert found(rows, WatchSettings.of(window=5, noise=3.0)) == [(10, "chars")]


@pytest.mark.parametrize(
    ("name", "first", "last", "alarm"),
    [("chars", 20, 10, True), ("messages", 8, 3, True), ("distinct_2", 0.6, 0.3, True), ("distinct_2", 0.3, 0.6, False), ("silent", 0.2, 0.6, True),
     ("violations", 0, 1, True), ("violations", 1, 0, False), ("rules_score", 60, 54, True), ("rules_score", 60, 70, False)],
)  # fmt: skip
def test_each_quantity_is_a_bad_sign_in_its_own_direction(name: str, first: float, last: float, alarm: bool) -> None:
    rows = log([0.4, 0.4, 0.6, 0.6], **{name: [first, first, last, last]})
    assert found(rows) == ([(4, name)] if alarm else [])


def test_a_score_of_the_rules_judge_that_falls_needs_no_thirty_percent() -> None:
    assert found(log([0.4, 0.4, 0.6, 0.6], rules_score=[60, 60, 54.9, 54.9])) == [(4, "rules_score")]
    assert found(log([0.4, 0.4, 0.6, 0.6], rules_score=[None] * 4)) == []


def test_what_comes_back_and_runs_off_again_is_two_alarms() -> None:
    rows = log([0.4, 0.4] + [0.6] * 8, chars=[10, 10, 20, 20, 10, 10, 10, 20, 20, 20])
    assert found(rows) == [(4, "chars"), (9, "chars")]


def test_steps_without_a_reward_or_a_value_are_not_counted() -> None:
    rows = log([0.4, None, 0.4, 0.6, 0.6], chars=[10, 99, 10, 20, 20])
    assert found(rows) == [(5, "chars")]
    rows = log([0.4, 0.9, 0.4, 0.6, 0.6], chars=[10, None, 10, 20, 20])
    assert found(rows) == [(5, "chars")]


def test_a_setting_that_cannot_be_is_refused_by_name() -> None:
    for name, value in (("window", 1), ("noise", -1.0), ("stop", "yes"), ("least_change", float("inf"))):
        with pytest.raises(TrainingError, match=name):
            WatchSettings.of(**{name: value})


VALUES = st.floats(0, 1, width=32)
ROWS = st.lists(st.tuples(st.none() | VALUES, st.none() | VALUES, VALUES), max_size=16).map(
    lambda rows: log([r[0] for r in rows], chars=[None if r[1] is None else 40 * r[1] for r in rows], distinct_2=[r[2] for r in rows])
)


@settings(deadline=None)
@given(ROWS, st.integers(0, 16))
def test_what_is_said_of_a_step_does_not_change_later(rows: list[dict[str, Any]], known: int) -> None:
    loose = WatchSettings.of(window=2, noise=0.5, least_rise=0.0, least_change=0.1)
    assert alarms(rows[:known], loose) == [a for a in alarms(rows, loose) if a.step <= known]


@settings(deadline=None)
@given(ROWS)
def test_alarms_are_of_steps_and_quantities_in_the_log_and_none_twice(rows: list[dict[str, Any]]) -> None:
    seen = found(rows, WatchSettings.of(window=2, noise=0.0, least_rise=0.0, least_change=0.1))
    assert len(set(seen)) == len(seen) and seen == sorted(seen, key=lambda a: a[0])
    assert {q for _, q in seen} <= {q.name for q in WATCHED}
    assert {s for s, _ in seen} <= {r["step"] for r in rows}


@settings(deadline=None)
@given(st.lists(VALUES, max_size=16))
def test_steady_quantities_raise_no_alarm_whatever_the_reward_does(rewards: list[float]) -> None:
    assert found(log(rewards), WatchSettings.of(window=2, noise=0.0, least_rise=0.0)) == []


@settings(deadline=None)
@given(ROWS)
def test_a_reward_that_only_falls_raises_no_alarm_whatever_else_happens(rows: list[dict[str, Any]]) -> None:
    falling = [{**row, "reward": 1 - 0.05 * i} for i, row in enumerate(rows)]
    assert found(falling, WatchSettings.of(window=2, noise=0.0, least_rise=0.0)) == []
