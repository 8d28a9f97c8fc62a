"""What is watched beside the reward, and when it raises an alarm."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.runtime.dialogue import Ask, Decision, Dialogue, Message, Participant
from anthrolab.training.grpo.trend import noise_around_line, trend_p
from anthrolab.training.grpo.watch import POWER, WATCHED, WatchSettings, alarms, least_visible, watched
from anthrolab.training.settings import TrainingError

AT = datetime(2026, 3, 6, 20, 31)
SHORT = WatchSettings.of(window=3)
LOOSE = WatchSettings.of(window=2, level=0.5, least_change=0.1)
USUAL = WatchSettings()
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


def steps(first: float, last: float, before: int = 10, after: int = 10) -> list[float]:
    """A quantity that jumps once."""
    return [first] * before + [last] * after


RISING = [0.4] * 10 + [0.6] * 10


def test_messages_that_grow_raise_one_alarm_when_it_has_lasted_for_a_window() -> None:
    rows = log(RISING, chars=steps(10, 20))
    (alarm,) = alarms(rows, SHORT)
    # ten low and k high ones in order, up or down: p is 2 of 10 + k over k. k = 5: 2 / 3003, and level 0.05 / 6 / (4 * 5) = 1 / 2400 is
    # asked for at the fourth look (15 to 17); k = 6: 2 / 8008 is below it, so it is off at 16, and for three steps at 18
    assert (alarm.step, alarm.quantity) == (18, "chars")
    assert alarm.said == (
        "characters a message went from 10.00 to 20.00 while the reward did not fall (0.400 to 0.600); read some dialogues before you trust the reward"
    )
    assert found(rows[: alarm.step - 1]) == []


def test_a_run_whose_reward_is_noisy_and_whose_chats_fall_apart_is_told() -> None:
    """Rewards of the first steps of a real training of one case a step."""
    rewards = [0.897, 0.455, 0.867, 0.954, 0.786] + [1.0] * 294
    rows = log(
        rewards, chars=[8.1, 5.4, 6.0, 6.9, 7.1] + [200.0] * 294, distinct_2=[0.89, 1.0, 0.96, 0.97, 0.77] + [0.01] * 294, violations=[0.0] * 5 + [9.0] * 294
    )  # fmt: skip
    seen = found(rows, USUAL)
    assert {q for _, q in seen} == {"chars", "distinct_2", "violations"} and len(seen) == 3
    assert all(step <= 20 for step, _ in seen)


def test_there_is_no_alarm_before_two_whole_windows_have_lasted_for_one() -> None:
    rows = log([0.4] * 30, chars=[10 * 1.2**i for i in range(30)])
    assert SHORT.least_batches == 8 and USUAL.least_batches == 14
    assert found(rows, USUAL) == [(14, "chars")]
    assert found(rows[:13], USUAL) == []


def test_the_levels_of_all_looks_and_quantities_add_up_to_no_more_than_the_level() -> None:
    looks = [USUAL.level_at(n) for n in range(2 * USUAL.window, 100_000, USUAL.window)]
    assert 0.999 * USUAL.level < len(WATCHED) * sum(looks) <= USUAL.level
    assert USUAL.level_at(10) == USUAL.level_at(14) > USUAL.level_at(15)


def test_a_quantity_that_runs_off_is_an_alarm_with_a_flat_reward_and_none_with_a_falling_one() -> None:
    assert {q for _, q in found(log([0.6] * 20, chars=steps(10, 20)))} == {"chars"}
    assert found(log(steps(0.6, 0.3), chars=steps(10, 20))) == []


def test_a_reward_that_rises_with_everything_else_steady_is_no_alarm() -> None:
    assert found(log(steps(0.2, 0.9))) == []


def test_a_small_change_is_no_alarm_however_sure_it_is() -> None:
    assert found(log(RISING, chars=steps(10, 12.9))) == []  # 29%, and 30% are asked for
    assert {q for _, q in found(log(RISING, chars=steps(10, 13.1)))} == {"chars"}
    assert found(log(RISING, chars=steps(2, 3.5))) == []  # 75% of very little


def test_a_change_that_does_not_last_is_no_alarm() -> None:
    peak = [10, 10, 10, 10, 10, 11, 14, 18, 24, 32, 10, 10, 10]
    assert found(log([0.5] * 13, chars=peak)) == []
    assert found(log([0.5] * 13, chars=[*peak[:10], 40, 50, 60])) != []


@pytest.mark.parametrize(
    ("name", "first", "last", "alarm"),
    [("chars", 20, 10, True), ("messages", 8, 3, True), ("distinct_2", 0.6, 0.3, True), ("distinct_2", 0.3, 0.6, False), ("silent", 0.2, 0.6, True),
     ("violations", 0, 1, True), ("violations", 1, 0, False), ("rules_score", 60, 54, True), ("rules_score", 60, 70, False)],
)  # fmt: skip
def test_each_quantity_is_a_bad_sign_in_its_own_direction(name: str, first: float, last: float, alarm: bool) -> None:
    assert [q for _, q in found(log(RISING, **{name: steps(first, last)}))] == ([name] if alarm else [])


def test_a_score_of_the_rules_judge_that_falls_needs_no_thirty_percent() -> None:
    assert [q for _, q in found(log(RISING, rules_score=steps(60, 54.9)))] == ["rules_score"]
    assert found(log(RISING, rules_score=[None] * 20)) == []


def test_what_comes_back_and_runs_off_again_is_two_alarms() -> None:
    rows = log([0.5] * 75, chars=steps(10, 20) + [10.0] * 25 + [20.0] * 30)
    assert [q for _, q in found(rows)] == ["chars", "chars"]


def test_steps_without_a_reward_or_a_value_are_not_counted() -> None:
    plain = log(RISING, chars=steps(10, 20))
    (step, _), = found(plain)
    for gap in ({"reward": None, "chars": 99.0}, {"reward": 0.0, "chars": None}):
        rows = [*plain[:2], {**plain[2], **gap}, *({**r, "step": r["step"] + 1} for r in plain[2:])]
        assert found(rows) == [(step + 1, "chars")]


def test_the_p_value_of_a_trend_is_as_by_hand() -> None:
    # ranks 1 2 4 3 5: r = 1 - 6 * 2 / (5 * 24) = 0.9, t(3) = 0.9 * sqrt(3 / 0.19) = 3.576, p = 0.0187 (one-sided)
    assert trend_p([1.0, 2.0, 40.0, 3.0, 50.0], up=True) == pytest.approx(0.01869, abs=1e-5)
    assert trend_p([1.0, 2.0, 40.0, 3.0, 50.0], up=False) == pytest.approx(1 - 0.01869, abs=1e-5)
    assert trend_p([1.0, 2.0, 3.0, 4.0], up=True) == pytest.approx(1 / 24), "one in all orders, though t knows no end"
    assert trend_p([0.0] * 7 + [1.0] * 3, up=True) == pytest.approx(1 / 120), "one in 10 over 3, where t says 0.003"
    assert trend_p([3.0] * 9, up=True) == trend_p([1.0, 2.0], up=True) == 1.0


def test_the_noise_is_that_around_the_line() -> None:
    assert noise_around_line([1.0, 3.0, 5.0, 7.0]) == pytest.approx(0, abs=1e-9)
    assert noise_around_line([0.0, 1.0, -2.0, 1.0, 0.0]) == pytest.approx((6 / 3) ** 0.5)  # the line is 0


def training(draws: np.random.Generator, count: int, *, gain: float = 0.0, chars: float = 0.0) -> list[dict[str, Any]]:
    """A training of one case a step: noise from step to step as a real one has it, a reward that rises by `gain`, messages that
    grow steadily by the share `chars`, and all else as it was."""
    z, part = draws.normal(size=(count, 6)), np.linspace(0, 1, count)
    columns = {
        "reward": np.clip(0.6 + gain * part + 0.25 * z[:, 0], 0, 1), "chars": 7 * (1 + chars * part + 0.25 * z[:, 1]), "messages": 3 + 1.1 * z[:, 2],
        "distinct_2": 0.85 + 0.1 * z[:, 3], "silent": np.clip(0.1 + 0.2 * z[:, 4], 0, 1), "violations": draws.poisson(0.5, count) / 2,
        "rules_score": 60 + 12 * z[:, 5],
    }  # fmt: skip
    return [{"step": i + 1, **{name: float(v[i]) for name, v in columns.items()}} for i in range(count)]


@pytest.mark.parametrize(("count", "trainings"), [(20, 200), (60, 100), (200, 30)])
@pytest.mark.parametrize("gain", [0.0, 0.3])
def test_noise_alone_raises_an_alarm_in_at_most_five_percent_of_trainings(count: int, trainings: int, gain: float) -> None:
    draws = np.random.default_rng(5)
    quiet = WatchSettings.of(least_change=1e-9)  # the size of the change is not what keeps it quiet
    for settings_ in (USUAL, quiet):
        false = sum(bool(alarms(training(draws, count, gain=gain), settings_)) for _ in range(trainings))
        assert false <= 0.05 * trainings


def test_messages_that_double_are_found_in_most_trainings_of_thirty_steps() -> None:
    draws = np.random.default_rng(6)
    told = [{a.quantity for a in alarms(training(draws, 30, gain=0.2, chars=1.0), USUAL)} for _ in range(100)]
    assert sum("chars" in t for t in told) >= 70
    assert sum(bool(t - {"chars"}) for t in told) <= 5


@pytest.mark.parametrize("count", [20, 40, 100])
def test_a_drift_that_is_said_to_be_visible_is_found_about_as_often_as_is_said(count: int) -> None:
    draws = np.random.default_rng(8)
    least = {v.quantity.name: v.least for v in least_visible(training(np.random.default_rng(1), count), USUAL)}["chars"]
    truth = np.mean([{v.quantity.name: v.least for v in least_visible(training(draws, count), USUAL)}["chars"] for _ in range(40)])
    assert least == pytest.approx(truth, rel=0.5), "one run's noise says about as much as that of many"
    share = np.mean([any(a.quantity == "chars" for a in alarms(training(draws, count, chars=float(truth) / 7), USUAL)) for _ in range(100)])
    assert POWER - 0.15 <= share <= 1.0
    half = np.mean([any(a.quantity == "chars" for a in alarms(training(draws, count, chars=float(truth) / 14), USUAL)) for _ in range(100)])
    assert half < 0.5


def test_nothing_is_visible_before_an_alarm_could_come() -> None:
    rows = training(np.random.default_rng(1), 14)
    assert least_visible(rows[:13], USUAL) == []
    assert [v.quantity.name for v in least_visible(rows, USUAL)] == [q.name for q in WATCHED]
    steady = {v.quantity.name: v for v in least_visible(log([0.5] * 20), USUAL)}
    assert steady["chars"].first == 10 and steady["chars"].least == pytest.approx(3 * 20 / 11), "without noise, the change that matters at all"


def test_a_setting_that_cannot_be_is_refused_by_name() -> None:
    for name, value in (("window", 1), ("level", 0.0), ("level", 0.6), ("stop", "yes"), ("least_change", float("inf"))):
        with pytest.raises(TrainingError, match=name):
            WatchSettings.of(**{name: value})


VALUES = st.floats(0, 1, width=32)
ROWS = st.lists(st.tuples(st.none() | VALUES, st.none() | VALUES, VALUES), max_size=16).map(
    lambda rows: log([r[0] for r in rows], chars=[None if r[1] is None else 40 * r[1] for r in rows], distinct_2=[r[2] for r in rows])
)


@settings(deadline=None)
@given(ROWS, st.integers(0, 16))
def test_what_is_said_of_a_step_does_not_change_later(rows: list[dict[str, Any]], known: int) -> None:
    assert alarms(rows[:known], LOOSE) == [a for a in alarms(rows, LOOSE) if a.step <= known]


@settings(deadline=None)
@given(ROWS)
def test_alarms_are_of_steps_and_quantities_in_the_log_and_none_twice(rows: list[dict[str, Any]]) -> None:
    seen = found(rows, LOOSE)
    assert len(set(seen)) == len(seen) and seen == sorted(seen, key=lambda a: a[0])
    assert {q for _, q in seen} <= {q.name for q in WATCHED}
    assert {s for s, _ in seen} <= {r["step"] for r in rows}


@settings(deadline=None)
@given(st.lists(VALUES, max_size=16))
def test_steady_quantities_raise_no_alarm_whatever_the_reward_does(rewards: list[float]) -> None:
    assert found(log(rewards), LOOSE) == []


@settings(deadline=None)
@given(ROWS)
def test_a_reward_that_only_falls_raises_no_alarm_whatever_else_happens(rows: list[dict[str, Any]]) -> None:
    falling = [{**row, "reward": 1 - 0.05 * i} for i, row in enumerate(rows)]
    assert found(falling, LOOSE) == []


@settings(deadline=None)
@given(st.lists(VALUES, min_size=3, max_size=12))
def test_a_trend_up_is_one_down_in_the_other_order_and_asks_for_nothing_but_ranks(values: list[float]) -> None:
    assert trend_p(values, up=True) == pytest.approx(trend_p(values[::-1], up=False))
    assert trend_p(values, up=True) == pytest.approx(trend_p([8.0 * v + 2 for v in values], up=True), abs=1e-9) or len(set(values)) != len({8.0 * v + 2 for v in values})
    assert 0 < trend_p(values, up=True) <= 1
