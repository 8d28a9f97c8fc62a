"""The scheduler: known answers, properties under random scripts, and rebuilding a session from its log."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.runtime.dialogue import Ask, Dialogue
from anthrolab.runtime.schedule import Asked, Course, Plan, Rules, Sent, converse
from anthrolab.runtime.scripted import ScriptedPolicy
from anthrolab.runtime.session import play, replay
from anthrolab.runtime.text import normalise
from tests.cards_for_tests import make_seats
from tests.spec import scheduler as vectors

VECTORS = Path(__file__).parent / "data" / "spec" / "scheduler_vectors.json"

texts = st.sampled_from(["在吗", "在吗！", "嗯嗯", "哈哈哈", "晚安", "拜拜", "好的呀", "ＯＫ 好的呀", "ok好的呀", "", " ", "周末去不去", "😂"])
plans = st.builds(Plan, texts, st.integers(-30, 900), st.booleans())
rules = st.builds(
    Rules,
    horizon_s=st.integers(0, 1500),
    max_delay_s=st.integers(0, 600),
    max_consecutive=st.integers(1, 4),
    max_messages=st.integers(1, 12),
    repeat_exempt_chars=st.integers(0, 3),
)
scripts = st.fixed_dictionaries({"a": st.lists(plans, max_size=14), "b": st.lists(plans, max_size=14)})


def run(limits: Rules, script: dict[str, list[Plan]], opener: Sent) -> tuple[Course, list[tuple[Asked, Plan]]]:
    lines = {s: iter(p) for s, p in script.items()}
    seen: list[tuple[Asked, Plan]] = []

    def answer(ask: Asked) -> Plan:
        plan = next(lines[ask.speaker], Plan(end=True))
        seen.append((ask, plan))
        return plan

    dance = converse(limits, opener)
    try:
        asks = next(dance)
        while True:
            asks = dance.send((answer(asks[0]), answer(asks[1])))
    except StopIteration as stop:
        return stop.value, seen


def test_every_known_answer_matches(capsys: pytest.CaptureFixture[str]) -> None:
    assert vectors.main(str(VECTORS)) == 0
    assert capsys.readouterr().out.strip().endswith("26/26 matched")


def test_a_wrong_known_answer_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = VECTORS.read_text(encoding="utf-8").replace('"stop": "horizon"', '"stop": "closed"', 1)
    (tmp_path / "changed.json").write_text(changed, encoding="utf-8")
    assert vectors.main(str(tmp_path / "changed.json")) == 1
    assert "25/26 matched" in capsys.readouterr().out


@given(rules, scripts, st.sampled_from("ab"), texts.filter(str.strip))
def test_what_holds_in_every_course(limits: Rules, script: dict[str, list[Plan]], first: str, opener: str) -> None:
    course, seen = run(limits, script, Sent(first, opener, 0))  # type: ignore[arg-type]
    times = [m.at_s for m in course.messages]
    assert times == sorted(times) and times[0] == 0
    assert all(t <= limits.horizon_s for t in times[1:])
    assert 1 <= len(course.messages) <= limits.max_messages
    assert (course.stop == "max_messages") == (len(course.messages) == limits.max_messages)
    # Two asks an event, same time, same messages; the sender holds no draft.
    for ask, partner in zip(course.asks[::2], course.asks[1::2], strict=True):
        assert ask.now_s == partner.now_s and ask.messages == partner.messages
        assert ask.speaker == ask.messages[-1].speaker != partner.speaker and ask.draft is None
    # At most one draft a speaker: every message and every dropped draft is the last plan of its speaker.
    for event in [*course.messages[1:], *course.guards]:
        content = event.content
        mine = [(a, p) for a, p in seen if a.speaker == event.speaker and a.now_s <= event.at_s]
        assert any(
            p.content == content and a.now_s + min(max(p.delay_s, 0), limits.max_delay_s) == event.at_s
            for a, p in mine
            if not p.silent
        )
    assert all(m.content.strip() for m in course.messages)


@given(rules, scripts, st.sampled_from("ab"))
def test_guards_hold_on_what_was_sent(limits: Rules, script: dict[str, list[Plan]], first: str) -> None:
    course, _ = run(limits, script, Sent(first, "在吗", 0))  # type: ignore[arg-type]
    for i, message in enumerate(course.messages[1:], 1):
        before = course.messages[:i]
        text = normalise(message.content)
        if len(text) > limits.repeat_exempt_chars:
            assert text not in {normalise(m.content) for m in before if m.speaker == message.speaker}
        tail = before[-limits.max_consecutive :]
        assert not (len(tail) == limits.max_consecutive and all(m.speaker == message.speaker for m in tail))


@given(rules, scripts, st.sampled_from("ab"))
def test_an_ask_shows_the_one_unsent_draft(limits: Rules, script: dict[str, list[Plan]], first: str) -> None:
    _, seen = run(limits, script, Sent(first, "在吗", 0))  # type: ignore[arg-type]
    for i, (ask, _plan) in enumerate(seen):
        if ask.draft is None:
            continue
        previous_ask, previous = [x for x in seen[:i] if x[0].speaker == ask.speaker][-1]
        assert ask.draft.content == previous.content
        assert ask.draft.due_s == previous_ask.now_s + min(max(previous.delay_s, 0), limits.max_delay_s)
        assert ask.draft.due_s >= ask.now_s


def dialogue_of(limits: Rules, script: dict[str, list[Plan]]) -> Dialogue:
    policies = {s: ScriptedPolicy(p) for s, p in script.items()}
    return asyncio.run(play("d", make_seats(), policies, limits, evaluated_role="a"))  # type: ignore[arg-type]


@settings(max_examples=60)
@given(rules, scripts)
def test_the_log_alone_rebuilds_every_state(limits: Rules, script: dict[str, list[Plan]]) -> None:
    dialogue = dialogue_of(limits, script)
    reread = Dialogue.model_validate_json(dialogue.to_line())
    assert reread == dialogue
    if not dialogue.asks:
        return
    course = replay(reread, limits)
    start = dialogue.start
    assert start is not None
    assert [(m.speaker, m.content, m.at) for m in dialogue.messages] == [
        (m.speaker, m.content, start + timedelta(seconds=m.at_s)) for m in course.messages
    ]
    assert [(a.speaker, a.now, a.previous_draft and a.previous_draft.content) for a in dialogue.asks] == [
        (a.speaker, start + timedelta(seconds=a.now_s), a.draft and a.draft.content) for a in course.asks
    ]
    assert course.stop == dialogue.stop


@settings(max_examples=30)
@given(rules, scripts)
def test_two_runs_are_byte_identical(limits: Rules, script: dict[str, list[Plan]]) -> None:
    assert dialogue_of(limits, script).to_line() == dialogue_of(limits, script).to_line()


def function_of_state(ask: Asked) -> Plan:
    """A model that decides by what it sees, so that it can go on from any event."""
    n, mine = len(ask.messages), sum(m.speaker == ask.speaker for m in ask.messages)
    if (n + (ask.speaker == "a")) % 4 == 0:  # never both at once: the chat goes on
        return Plan(end=True)
    if ask.draft is not None and n % 2:
        return Plan(ask.draft.content, max(0, ask.draft.due_s - ask.now_s))
    return Plan(f"{ask.speaker}说第{n}句" + ("，改过" if ask.draft else ""), (n * 13 + mine * 5) % 37)


@settings(max_examples=40, deadline=None)
@given(rules, st.integers(0, 60), st.tuples(st.integers(0, 9), st.lists(st.integers(0, 30), max_size=3), st.sampled_from([0, 200])))
def test_going_on_from_any_event_gives_the_byte_identical_rest(
    limits: Rules, cut: int, pace: tuple[int, list[int], int]
) -> None:
    limits = replace(limits, min_gap_s=pace[0], follow_up_delays=tuple(pace[1]), typing_chars_per_minute=pace[2])

    def played(logged: Sequence[Ask] = ()) -> Dialogue:
        policies = {s: ScriptedPolicy(function_of_state) for s in ("a", "b")}
        return asyncio.run(play("d", make_seats(), policies, limits, evaluated_role="a", logged=logged))  # type: ignore[arg-type]

    whole = played()
    asks = Dialogue.model_validate_json(whole.to_line()).asks or []
    cut = min(2 * cut, len(asks))
    assert played(asks[:cut]).to_line() == whole.to_line()


def test_going_on_asks_the_policies_only_for_what_comes_after_the_log() -> None:
    asked: list[Asked] = []

    def count(ask: Asked) -> Plan:
        asked.append(ask)
        return function_of_state(ask)

    limits = Rules(horizon_s=900, max_messages=20)
    whole = asyncio.run(play("d", make_seats(), {s: ScriptedPolicy(count) for s in "ab"}, limits, evaluated_role="a"))  # type: ignore[misc]
    assert whole.asks is not None
    total, cut = len(asked), 12
    asked.clear()
    asyncio.run(
        play("d", make_seats(), {s: ScriptedPolicy(count) for s in "ab"}, limits, evaluated_role="a", logged=whole.asks[:cut])  # type: ignore[misc]
    )
    assert len(asked) == total - cut > 0
    with pytest.raises(ValueError, match="give an even number"):
        asyncio.run(play("d", make_seats(), {}, limits, evaluated_role="a", logged=whole.asks[:3]))
    with pytest.raises(ValueError, match="the log has no ask of"):
        asyncio.run(play("d", make_seats(), {}, limits, evaluated_role="a", logged=whole.asks[1:3]))


def test_going_on_keeps_errors_labels_and_calls_of_the_log() -> None:
    dialogue = dialogue_of(Rules(horizon_s=600), {"a": [Plan("好", 5), Plan("嗯", 9)], "b": [Plan("去哪", 3)]})
    assert dialogue.asks is not None
    dialogue.asks[0].recovered, dialogue.asks[0].call = "asked twice", "c1"
    silent = next(a for a in dialogue.asks if a.decision and a.decision.end)
    silent.decision, silent.action, silent.error, silent.call = None, None, "role is missing", "c2"
    again = asyncio.run(
        play("d", make_seats(), {}, Rules(horizon_s=600), evaluated_role="a", logged=dialogue.asks)
    )
    assert again.to_line() == dialogue.to_line()


def test_replay_refuses_a_log_that_does_not_fit() -> None:
    dialogue = dialogue_of(Rules(horizon_s=600), {"a": [Plan("好", 5)], "b": [Plan("去哪", 3)]})
    assert dialogue.asks is not None
    dialogue.asks.pop(1)
    with pytest.raises(ValueError, match="no ask of"):
        replay(dialogue, Rules(horizon_s=600))


def test_replay_refuses_other_rules_surplus_asks_and_other_messages() -> None:
    limits = Rules(horizon_s=600)
    dialogue = dialogue_of(limits, {"a": [Plan("好", 50), Plan("嗯嗯嗯嗯", 400)], "b": [Plan("去哪", 300)]})
    assert dialogue.asks is not None and len(dialogue.messages) > 2
    replay(dialogue, limits)
    with pytest.raises(ValueError, match="the log has no ask of"):
        replay(dialogue, Rules(horizon_s=600, max_delay_s=10))
    other = dialogue.model_copy(deep=True)
    next(a for a in other.asks or [] if a.previous_draft).previous_draft = None
    with pytest.raises(ValueError, match="with this unsent draft"):
        replay(other, limits)
    with pytest.raises(ValueError, match="goes on after the chat is over"):
        replay(dialogue.model_copy(update={"asks": [*dialogue.asks, *dialogue.asks[-2:]]}), limits)
    with pytest.raises(ValueError, match="do not give its messages"):
        replay(dialogue.model_copy(update={"messages": dialogue.messages[:-1]}), limits)


@pytest.mark.parametrize("bad", [{"horizon_s": -1}, {"horizon_s": 1, "max_messages": 0}, {"horizon_s": 1, "max_consecutive": 0}])
def test_rules_refuse_impossible_limits(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least"):
        Rules(**bad)
