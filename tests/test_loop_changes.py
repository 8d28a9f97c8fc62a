"""New texts for messages: the log follows, nothing else changes, and whatever else changes is found."""

import asyncio
import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from anthrolab.loop.changes import ChangeError, Refusal, apply, differences, unasked_changes
from anthrolab.models.fence import inert
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.runtime.schedule import Asked, Plan, Rules
from anthrolab.runtime.scripted import ScriptedPolicy
from anthrolab.runtime.session import play, replay
from tests.cards_for_tests import make_seats

RULES = Rules(horizon_s=3600, max_messages=14)


def played(a: list[Plan], b: list[Plan], rules: Rules = RULES) -> Dialogue:
    policies = {"a": ScriptedPolicy(a), "b": ScriptedPolicy(b)}
    return asyncio.run(play("d", make_seats(), policies, rules, evaluated_role="a"))  # type: ignore[arg-type]


def kept_draft() -> Dialogue:
    """b opens; a drafts 首先我有空, keeps it through b's second message (with a comma more), and sends it third; b answers."""
    a = [Plan("首先我有空", 60), Plan("首先，我有空", 50), Plan(end=True), Plan("周六吧", 20)]
    b = [Plan("说话呀", 10), Plan(end=True), Plan("那行", 9)]
    dialogue = played(a, b)
    assert [(m.speaker, m.content) for m in dialogue.messages] == [
        ("b", "周末有空没"), ("b", "说话呀"), ("a", "首先，我有空"), ("b", "那行"), ("a", "周六吧"),
    ]  # fmt: skip
    return dialogue


def test_the_decisions_behind_a_message_follow_through_the_drafts_that_were_kept() -> None:
    before = kept_draft()
    after = apply(before, {2: "有空啊"}, RULES)
    assert differences(before, after) == [
        "messages[2].content: '首先，我有空' -> '有空啊'",
        "asks[1].decision.content: '首先我有空' -> '有空啊'",
        "asks[3].previous_draft.content: '首先我有空' -> '有空啊'",
        "asks[3].decision.content: '首先，我有空' -> '有空啊'",
    ]
    assert [m.content for m in replay(after, RULES).messages] == ["周末有空没", "说话呀", "有空啊", "那行", "周六吧"]
    assert before.to_line() == kept_draft().to_line(), "the original is not touched"


def test_a_draft_that_was_rewritten_before_it_went_out_stays_and_the_action_follows() -> None:
    before = played([Plan("周六下午打球", 60), Plan("周六下午三点打球", 50)], [Plan("几点", 10)])
    asks = before.asks or []
    assert [a.action for a in asks if a.speaker == "a"][:2] == ["new", "revise"]
    after = apply(before, {2: "行吧"}, RULES)
    own = [a for a in after.asks or [] if a.speaker == "a"]
    assert own[0].decision and own[0].decision.content == "周六下午打球"
    assert own[1].previous_draft and own[1].previous_draft.content == "周六下午打球" and own[1].action == "replace"
    assert unasked_changes(before, after, [2], RULES) == []


def test_the_state_of_an_interrupted_draft_follows_its_length() -> None:
    rules = replace(RULES, typing_chars_per_minute=60)
    before = played([Plan("好", 60), Plan("好", 50)], [Plan("在不在", 10)], rules)
    assert [a.interrupted for a in before.asks or []][3] == "waiting"
    after = apply(before, {2: "好" * 55 + "呀"}, rules)
    assert [a.interrupted for a in after.asks or []][3] == "typing" and unasked_changes(before, after, [2], rules) == []
    assert [a.interrupted for a in before.asks or []][3] == "waiting"


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ({0: "在不"}, "opener"), ({1: "快说"}, "partner"), ({9: "啊"}, "no_such_message"), ({-1: "啊"}, "no_such_message"),
        ({2: "好\n明天见"}, "unseen"), ({2: "好<|im_end|>"}, "unseen"), ({2: "好\u202e的"}, "unseen"),
        ({2: " \n"}, "empty"), ({2: "首先，我有空 "}, "no_change"),
    ],
)  # fmt: skip
def test_only_own_messages_get_a_text_and_it_must_be_a_new_one(texts: dict[int, str], reason: Refusal) -> None:
    with pytest.raises(ChangeError) as refused:
        apply(kept_draft(), texts, RULES)
    assert refused.value.reason == reason


def test_a_text_that_a_guard_would_drop_is_refused_and_so_is_one_that_sets_a_dropped_draft_free() -> None:
    before = kept_draft()
    with pytest.raises(ChangeError, match="scheduler would send other messages") as refused:
        apply(before, {4: "有空的呀 走"} | {2: "有空的呀，走"}, RULES)
    assert refused.value.reason == "guard"
    repeated = played([Plan("周六下午吧", 5), Plan(end=True), Plan("周六下午吧", 5)], [Plan(end=True), Plan("几点", 9)])
    assert repeated.guards and repeated.guards[0].guard == "self_repetition"
    with pytest.raises(ChangeError) as refused:
        apply(repeated, {1: "周日下午吧"}, RULES)
    assert refused.value.reason == "guard"


def test_a_draft_that_another_guard_would_drop_now_is_no_change_either() -> None:
    rules = replace(RULES, max_consecutive=1)
    before = played([Plan("周六下午吧", 5), Plan("周六下午吧", 5)], [Plan(end=True), Plan(end=True)], rules)
    assert before.guards and [g.guard for g in before.guards] == ["self_repetition"]
    with pytest.raises(ChangeError, match="would drop other drafts") as refused:
        apply(before, {1: "周日下午吧"}, rules)
    assert refused.value.reason == "guard"


def test_a_log_that_does_not_give_its_messages_is_not_changed() -> None:
    before = kept_draft()
    broken = before.model_copy(update={"asks": (before.asks or [])[:-2]})
    with pytest.raises(ChangeError) as refused:
        apply(broken, {2: "有空啊"}, RULES)
    assert refused.value.reason == "log"
    with pytest.raises(ChangeError) as refused:
        apply(before, {2: "有空啊"}, replace(RULES, max_delay_s=7))
    assert refused.value.reason == "log"
    with pytest.raises(ValueError, match="rules are needed"):
        apply(before, {2: "有空啊"})


def test_a_dialogue_from_elsewhere_changes_in_its_messages_only() -> None:
    before = kept_draft().model_copy(update={"asks": None, "guards": None, "binding": None})
    after = apply(before, {2: "有空啊"})
    assert differences(before, after) == ["messages[2].content: '首先，我有空' -> '有空啊'"]
    assert unasked_changes(before, after, [2]) == []


def function_of_state(ask: Asked) -> Plan:
    """Chats with kept, revised and withdrawn drafts: b is quick and often silent, a slow and mostly keeps what it has."""
    n = len(ask.messages)
    if ask.draft is not None:
        kept = Plan(ask.draft.content, max(0, ask.draft.due_s - ask.now_s))
        return {0: Plan(end=True), 1: Plan(ask.draft.content + "，改过", 20)}.get(n % 5, kept)
    if ask.speaker == "b":
        return Plan(f"乙说第{n}句", 4 + n % 3) if n % 3 else Plan(end=True)
    return Plan(f"甲说第{n}句", 9 + n % 4)


def long_chat(typing: int = 0) -> tuple[Dialogue, Rules]:
    rules = replace(RULES, typing_chars_per_minute=typing)
    policies = {s: ScriptedPolicy(function_of_state) for s in "ab"}
    dialogue = asyncio.run(play("d", make_seats(), policies, rules, evaluated_role="a"))  # type: ignore[arg-type]
    assert len(dialogue.turns()) > 3 and {"keep", "revise", "withdraw"} <= {a.action for a in dialogue.asks or []}
    return dialogue, rules


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda text: text.strip() and "\n" not in text.strip() and inert(text) == " ".join(text.split())
)


@settings(max_examples=80, deadline=None)
@given(st.data(), st.sampled_from([0, 120]))
def test_after_apply_exactly_the_asked_messages_differ_and_the_log_gives_them(data: st.DataObject, typing: int) -> None:
    before, rules = long_chat(typing)
    chosen = data.draw(st.dictionaries(st.sampled_from(before.turns()), texts, min_size=1, max_size=3))
    try:
        after = apply(before, chosen, rules)
    except ChangeError as refused:
        event(refused.reason)
        assume(refused.reason not in ("guard", "no_change"))
        raise
    assert [m.content for m in after.messages] == [chosen.get(i, m.content) for i, m in enumerate(before.messages)]
    assert [(m.speaker, m.content) for m in replay(after, rules).messages] == [(m.speaker, m.content) for m in after.messages]
    places = [d.split(":")[0] for d in differences(before, after)]
    assert [p for p in places if not p.startswith("asks")] == [f"messages[{i}].content" for i in sorted(chosen)]
    assert all(p.endswith((".content", ".action", ".interrupted")) for p in places)
    assert [(a.now, a.decision and a.decision.at) for a in after.asks or []] == [(a.now, a.decision and a.decision.at) for a in before.asks or []]
    assert unasked_changes(before, after, chosen, rules) == []
    dropped = sorted(chosen)[1:]
    assert bool(unasked_changes(before, after, dropped, rules)), "the first one was not allowed here"


def leaves(value: Any, place: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in leaves(v, (*place, k))]
    if isinstance(value, list):
        return [(*place, "+")] * bool(value) + [p for i, v in enumerate(value) for p in leaves(v, (*place, i))]
    return [place]


def mutate(row: dict[str, Any], place: tuple[str | int, ...]) -> None:
    """Change one place: a list loses its last entry or gets it twice, any other value becomes another one of its kind."""
    target: Any = row
    for step in place[:-1]:
        target = target[step]
    last = place[-1]
    if last == "+":
        target.append(copy.deepcopy(target[-1])) if len(target) % 2 else target.pop()
        return
    value = target[last]
    if isinstance(value, bool):
        target[last] = not value
    elif isinstance(value, int):
        target[last] = value + 1
    elif value is None:
        target[last] = "x"
    elif value in ("a", "b"):
        target[last] = "b" if value == "a" else "a"
    elif value[:5] == "2026-":
        target[last] = value[:-1] + ("1" if value[-1] != "1" else "2")
    else:
        target[last] = value + "改"


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_other_change_to_the_record_is_found(data: st.DataObject) -> None:
    before, rules = long_chat()
    position = data.draw(st.sampled_from(before.turns()))
    after = apply(before, {position: "换成这一句"}, rules)
    row = json.loads(after.to_line())
    place = data.draw(st.sampled_from([p for p in leaves(row) if p[:3] != ("messages", position, "content")]))
    mutate(row, place)
    try:
        other = Dialogue.model_validate_json(json.dumps(row))
    except ValidationError:
        assume(False)
    assert other.to_line() != after.to_line()
    assert unasked_changes(before, other, [position], rules), place
    assert differences(after, other)


def test_a_number_that_became_a_truth_value_and_a_field_more_are_differences() -> None:
    before = kept_draft()
    row = json.loads(before.to_line())
    more = Dialogue.model_validate_json(json.dumps({**row, "note": {"sample": 0}}))
    less = Dialogue.model_validate_json(json.dumps({**row, "note": {"sample": False}}))
    assert differences(more, less) == ["note.sample: 0 -> False"]
    assert differences(before, more) == ["note: None -> {'sample': 0}"] == unasked_changes(before, more, [], RULES)
