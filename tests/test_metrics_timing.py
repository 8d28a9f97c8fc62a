"""Timing measures: a chat counted by hand, a slow literal count under random scripts, and what a log cannot tell."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import fields, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.metrics.asks import Asks
from anthrolab.metrics.timing import Times, Timing, TimingError, measure, pool, timing_of
from anthrolab.runtime.dialogue import Ask, Decision, Dialogue, Draft, Message, Participant, Speaker, other
from anthrolab.runtime.policy import Answer
from anthrolab.runtime.schedule import SILENCE, Asked, Plan, Rules
from anthrolab.runtime.session import play
from tests.cards_for_tests import make_seats
from tests.test_runtime_schedule import rules, texts

START = datetime(2026, 3, 6, 20, 31)
BROKEN = None
"""Stands in a script for a reply that breaks the contract."""
Script = dict[str, list[Plan | None]]


class Watched:
    """A policy that answers from a list (silence once it runs out) and keeps what it was shown and what it said."""

    def __init__(self, script: Iterable[Plan | None]) -> None:
        self.script = iter(script)
        self.seen: list[tuple[Asked, Answer]] = []

    async def decide(self, ask: Asked) -> Answer:
        plan = next(self.script, SILENCE)
        answer = Answer(None, error="no JSON in the reply") if plan is BROKEN else Answer(plan)
        self.seen.append((ask, answer))
        return answer


def chat(script: Script, limits: Rules | None = None) -> tuple[Dialogue, dict[Speaker, Watched]]:
    """A dialogue of two scripts; b's opener is 周末有空没, at second 0."""
    policies: dict[Speaker, Watched] = {"a": Watched(script["a"]), "b": Watched(script["b"])}
    limits = limits or Rules(horizon_s=900)
    return asyncio.run(play("d", make_seats(), policies, limits, evaluated_role="a")), policies


BY_HAND: Script = {
    "a": [
        Plan("有啊 咋了", 12),  # at 0: the opener is answered at 12; meets b's draft
        Plan("你说", 3),  # at 12: follow-up at 15; meets b's draft
        SILENCE,  # at 15
        SILENCE,  # at 20, woken: read but silent, and back at 290
        Plan("我球拍断线了", 200),  # at 90, woken: reply at 290
        Plan("要不你借我一把", 30),  # at 290: a draft for 320
        Plan("行 周日吧", 5),  # at 300, woken with that draft: replaced; reply at 305
        Plan("哈哈哈哈", 60),  # at 305: a draft for 365
        SILENCE,  # at 309, woken with that draft: withdrawn, read but silent, never back
    ],
    "b": [
        Plan("我抢到场地了", 40),  # at 0: a draft for 40
        Plan("我抢到场地了！", 20),  # at 12, woken with that draft: kept, for 32
        Plan("我抢到场地了 周六的", 5),  # at 15, woken with that draft: revised; reply at 20
        Plan("来不来", 70),  # at 20: follow-up at 90
        SILENCE,  # at 90
        Plan("那算了", 10),  # at 290, woken: reply at 300; meets a's draft
        BROKEN,  # at 300
        Plan("好的呀", 4),  # at 305, woken: reply at 309; meets a's draft
        Plan("我抢到场地了 周六的", 11),  # at 309: a guard drops it at 320, said before
    ],
}


def test_a_chat_counted_by_hand() -> None:
    dialogue, _ = chat(BY_HAND)
    at = [int((m.at - START).total_seconds()) for m in dialogue.messages]
    assert [(m.speaker, s) for m, s in zip(dialogue.messages, at, strict=True)] == [
        ("b", 0), ("a", 12), ("a", 15), ("b", 20), ("b", 90), ("a", 290), ("b", 300), ("a", 305), ("b", 309),
    ]  # fmt: skip
    assert measure([dialogue], "evaluated") == Timing(
        dialogues=1,
        messages=4,
        replies=Times((12, 200, 5)),
        follow_ups=Times((3,)),
        bursts=(2, 1, 1),
        asks=Asks(
            dialogues=1, asks=9, errors=0, decided=9, silent=3, woken=5, read=5, read_silent=2, came_back=1,
            interruptions=2, keep=0, revise=0, replace=1, withdraw=1, unsent=0, sent=4, crossed=2,
        ),
        guarded=0,
    )  # fmt: skip
    assert measure([dialogue], "partner") == Timing(
        dialogues=1,
        messages=4,
        replies=Times((5, 10, 4)),
        follow_ups=Times((70,)),
        bursts=(2, 1, 1),
        asks=Asks(
            dialogues=1, asks=9, errors=1, decided=8, silent=1, woken=4, read=4, read_silent=0, came_back=0,
            interruptions=2, keep=1, revise=1, replace=0, withdraw=0, unsent=0, sent=4, crossed=2,
        ),
        guarded=1,
    )  # fmt: skip


def test_rates_and_quantiles_by_hand() -> None:
    dialogue, _ = chat(BY_HAND)
    t = measure([dialogue], "evaluated")
    assert t.asks is not None
    # 5, 12, 200: the quartiles lie half way to the neighbours, 90% lies at 12 + 0.8 x 188
    assert [t.replies.quantile(q) for q in (0.25, 0.5, 0.75, 0.9)] == pytest.approx([8.5, 12, 106, 162.4])
    assert (t.replies.under(5), t.replies.under(6), t.replies.over(60), t.replies.over(200)) == (0, 1, 1, 0)
    assert (t.burst_lengths, t.mean_burst, t.long_bursts) == ({1: 2, 2: 1}, 4 / 3, 1)
    a = t.asks
    assert (a.silence_rate, a.read_silent_rate, a.came_back_rate) == (3 / 9, 2 / 5, 1 / 2)
    assert (a.interruption_rate, a.reconsidered, a.revision_rate, a.overlap_rate) == (2 / 5, 2, 1 / 2, 2 / 4)
    assert a.typing_rate is None


CUT: Script = {
    "a": [Plan("来了 咋了", 30), SILENCE, Plan("等我问下我妈", 600)],  # at 0: reply at 30; at 50: a reply for 650
    "b": [SILENCE, Plan("周末打球不", 20)],  # at 30: reply at 50
}
CUT_AT = Rules(horizon_s=480)
"""a decided twice to answer, after 30 s and after 600 s; the second answer lies beyond the horizon."""


def unsent(script: Script, limits: Rules, speaker: Speaker = "a") -> tuple[tuple[int, ...], tuple[int, int, int]]:
    """The delays of a side's replies, and how much it left unsent at the end: in all, replies, follow-ups."""
    t = timing_of(chat(script, limits)[0], speaker)
    assert t.asks is not None
    return t.replies.seconds, (t.asks.unsent, t.asks.unsent_replies, t.asks.unsent_follow_ups)


def test_a_reply_that_the_horizon_cut_off_has_no_delay_but_is_counted() -> None:
    assert unsent(CUT, CUT_AT) == ((30,), (1, 1, 0))
    assert unsent(CUT, CUT_AT, "b") == ((20,), (0, 0, 0))
    assert unsent(CUT, Rules(horizon_s=650)) == ((30, 600), (0, 0, 0))  # due just at the horizon: it goes out


def test_what_was_unsent_at_the_end_is_told_apart_by_the_last_message() -> None:
    follow_up: Script = {"a": [Plan("来了 咋了", 30), Plan("人呢", 600)], "b": []}
    assert unsent(follow_up, CUT_AT) == ((30,), (1, 0, 1))
    to_the_own_opener: Script = {"a": [], "b": [Plan("在不在", 600)]}  # neither reply nor follow-up
    assert unsent(to_the_own_opener, CUT_AT, "b") == ((), (1, 0, 0))
    # b's reply at 50 is the last message that the limit allows: a's follow-up for 130 would now be a reply
    limit: Script = {"a": [Plan("来了 咋了", 30), Plan("人呢", 100)], "b": [SILENCE, Plan("周末打球不", 20)]}
    assert unsent(limit, Rules(horizon_s=480, max_messages=3)) == ((30,), (1, 1, 0))
    assert unsent(limit, Rules(horizon_s=480, max_messages=3), "b") == ((20,), (0, 0, 0))


def test_a_draft_that_a_guard_dropped_is_not_unsent_even_in_the_same_second_as_one_that_is() -> None:
    script: Script = {
        "a": [
            Plan("我球拍断线了", 5), SILENCE,  # at 0, at 5
            Plan("我球拍断线了", 10),  # at 10: a guard drops it at 20, said before
            Plan("要要要要", 0),  # at 20: out at once
            Plan("我球拍断线了", 0),  # at 20: b's draft of the same second comes first, and is the last message
        ],
        "b": [
            SILENCE, Plan("真的假的", 5), Plan("我有多的拍子", 10), Plan("你要不要", 0), Plan("你要不要", 0),
        ],
    }  # fmt: skip
    limit = Rules(horizon_s=480, max_messages=6)
    dialogue, _ = chat(script, limit)
    assert [(g.speaker, (g.at - START).seconds) for g in dialogue.guards or []] == [("a", 20)]
    assert dialogue.messages[-1].content == "你要不要"
    assert unsent(script, limit)[1] == (1, 1, 0)
    assert unsent({"a": script["a"][:3], "b": script["b"][:3]}, limit)[1] == (0, 0, 0)


def test_one_draft_kept_through_three_messages_is_three_interruptions() -> None:
    script: Script = {
        "a": [Plan("我想想", 400)] * 4,
        "b": [Plan("在吗在吗", 10), Plan("说句话呗", 10), Plan("好吧不理我", 10), SILENCE],
    }
    counted = timing_of(chat(script)[0], "a").asks
    assert counted is not None
    assert (counted.interruptions, counted.keep, counted.reconsidered, counted.lost) == (3, 3, 3, 0)
    assert counted.decided - counted.silent == 1 + 3  # one message in the end


def waits(dialogue: Dialogue, me: Watched, limits: Rules) -> bool:
    """True if the last thing decided on was due after the end: beyond the horizon, or behind the last message allowed."""
    if not me.seen:
        return False
    ask, answer = me.seen[-1]
    if answer.plan is None or answer.plan.silent:
        return False
    due = ask.now_s + min(max(answer.plan.delay_s, 0), limits.max_delay_s)
    if dialogue.stop != "max_messages":
        return due > limits.horizon_s
    # the asks before the last message saw all others: on a tie with it the one who did not send theirs comes first
    end, before = dialogue.messages[-1], ask.messages[-1].speaker
    ended = int((end.at - START).total_seconds())
    return ask.speaker != end.speaker and (due, ask.speaker == before) > (ended, end.speaker == before)


def literal(dialogue: Dialogue, watched: dict[Speaker, Watched], me: Speaker, limits: Rules) -> dict[str, Any]:
    """The definitions word by word, slowly, from what the policies saw and not from the log."""
    messages = dialogue.messages
    delays, gaps = [], []
    for i, m in enumerate(messages):
        if m.speaker != me or m.opener:
            continue
        partners = [j for j in range(i) if messages[j].speaker != me]
        own_since = [j for j in range(partners[-1] if partners else 0, i) if messages[j].speaker == me]
        if partners and not own_since:
            delays.append((m.at - messages[partners[-1]].at).seconds)
        if own_since and not messages[own_since[-1]].opener:
            gaps.append((m.at - messages[own_since[-1]].at).seconds)
    runs = [(key, len(list(run))) for key, run in groupby(messages, key=lambda m: (m.speaker, m.opener))]
    n: Counter[str] = Counter()
    for ask, answer in watched[me].seen:
        silent = answer.plan is not None and (answer.plan.end or answer.plan.content.strip() == "")
        n["asks"] += 1
        n["errors"] += answer.plan is None
        n["decided"] += answer.plan is not None
        n["silent"] += silent
        if ask.messages[-1].speaker == me:
            continue
        n["woken"] += 1
        n["read"] += answer.plan is not None
        n["read_silent"] += silent
        n["came_back"] += silent and any(m.speaker == me for m in messages[len(ask.messages) :])
        n["interruptions"] += ask.draft is not None
        n["lost"] += ask.draft is not None and answer.plan is None
        n["withdraw"] += ask.draft is not None and silent
        n["changed or kept"] += ask.draft is not None and answer.plan is not None and not silent
    if waits(dialogue, watched[me], limits):
        n["unsent"] = 1
        n["unsent_replies"] = messages[-1].speaker != me
        n["unsent_follow_ups"] = messages[-1].speaker == me and not messages[-1].opener
    for ask, _ in watched[other(me)].seen:
        if ask.messages[-1].speaker == me and len(ask.messages) > 1:
            n["sent"] += 1
            n["crossed"] += ask.draft is not None
    return {"delays": delays, "gaps": gaps, "bursts": [n for key, n in runs if key == (me, False)], **n}


plans = st.one_of(st.just(BROKEN), st.builds(Plan, texts, st.sampled_from([0, 0, 1, 5, 30, 200]), st.booleans()))
scripts = st.fixed_dictionaries({"a": st.lists(plans, max_size=14), "b": st.lists(plans, max_size=14)})


@settings(max_examples=300)
@given(rules, scripts)
def test_equals_the_slow_literal_count(limits: Rules, script: Script) -> None:
    dialogue, watched = chat(script, limits)
    found: dict[Speaker, Timing] = {"a": timing_of(dialogue, "a"), "b": timing_of(dialogue, "b")}
    for me, t in found.items():
        slow = literal(dialogue, watched, me, limits)
        assert (list(t.replies.seconds), list(t.follow_ups.seconds)) == (slow.pop("delays"), slow.pop("gaps"))
        assert list(t.bursts) == slow.pop("bursts")
        assert t.messages == sum(m.speaker == me and not m.opener for m in dialogue.messages) == sum(t.bursts)
        assert t.asks is not None
        assert t.asks.keep + t.asks.revise + t.asks.replace == slow.pop("changed or kept", 0)
        assert {key: getattr(t.asks, key) for key in slow} == slow
        assert t.guarded == sum(g.speaker == me for g in dialogue.guards or [])
        # what interrupts one side is what the other sends over its drafts
        theirs = found[other(me)].asks
        assert theirs is not None and t.asks.interruptions == theirs.crossed


paced = st.builds(
    replace, rules, min_gap_s=st.sampled_from([0, 3, 60]), follow_up_delays=st.sampled_from([(), (5,), (0, 200)]),
)  # fmt: skip


@settings(max_examples=200)
@given(paced, scripts)
def test_every_message_decided_on_went_out_or_is_counted_by_what_became_of_it(limits: Rules, script: Script) -> None:
    dialogue, _ = chat(script, limits)
    for me in ("a", "b"):
        t = timing_of(dialogue, me)  # type: ignore[arg-type]
        assert t.asks is not None and t.guarded is not None
        a = t.asks
        assert a.decided - a.silent == t.messages + a.interruptions + t.guarded + a.unsent
        assert a.interruptions == a.keep + a.revise + a.replace + a.withdraw + a.lost
        assert a.unsent == a.unsent_replies + a.unsent_follow_ups or dialogue.messages[-1].opener
        assert not (a.unsent and dialogue.stop == "closed")


@settings(max_examples=50)
@given(st.lists(st.tuples(rules, scripts), min_size=1, max_size=4))
def test_pooling_lays_dialogues_end_to_end(chats: list[tuple[Rules, Script]]) -> None:
    dialogues = [chat(script, limits)[0] for limits, script in chats]
    single = [measure([d], "partner") for d in dialogues]
    pooled = measure(dialogues, "partner")
    assert pooled == pool([pool(single[:2]), pool(single[2:])])
    assert pooled.dialogues == len(dialogues)
    assert pooled.replies.seconds == tuple(s for t in single for s in t.replies.seconds)
    assert pooled.asks is not None
    for f in fields(Asks):
        assert getattr(pooled.asks, f.name) == sum(getattr(t.asks, f.name) for t in single), f.name


def message(speaker: Speaker, at_s: int, *, opener: bool = False) -> Message:
    return Message(speaker=speaker, content=f"第{at_s}秒", at=START + timedelta(seconds=at_s), opener=opener)


def record(messages: list[Message], asks: list[Ask] | None = None, evaluated: Speaker = "a") -> Dialogue:
    """A dialogue from elsewhere."""
    speakers: dict[Speaker, Participant] = {"a": Participant(name="小林"), "b": Participant(name="老周")}
    return Dialogue(dialogue_id="x1", evaluated_role=evaluated, speakers=speakers, messages=messages, asks=asks)


def ask(speaker: Speaker, at_s: int, says: str | None = None, *, draft: str | None = None, **more: Any) -> Ask:
    now = START + timedelta(seconds=at_s)
    decision = None if more.get("error") else Decision(content=says or "", at=now, end=says is None)
    previous = None if draft is None else Draft(content=draft, at=now)
    return Ask(speaker=speaker, now=now, previous_draft=previous, decision=decision, **more)


def test_the_opener_is_answered_but_is_nobodys_own_message() -> None:
    messages = [message("a", 0, opener=True), message("a", 7), message("a", 9), message("b", 30)]
    a, b = (measure([record(messages)], side) for side in ("evaluated", "partner"))
    # 7 s after the own opener is neither a reply nor a follow-up
    assert (a.messages, a.replies.seconds, a.follow_ups.seconds, a.bursts) == (2, (), (2,), (2,))
    assert (b.messages, b.replies.seconds, b.follow_ups.seconds, b.bursts) == (1, (21,), (), (1,))
    answered = timing_of(record([message("a", 0, opener=True), message("b", 8)]), "b")
    assert answered.replies.seconds == (8,)


def test_a_chat_without_an_opener_begins_with_a_burst_and_no_reply() -> None:
    t = timing_of(record([message("a", 0), message("b", 4), message("a", 9)]), "a")
    assert (t.replies.seconds, t.bursts) == ((5,), (1, 1))


def test_what_only_asks_can_tell_is_none_without_them_and_not_zero() -> None:
    outside = record([message("b", 0, opener=True), message("a", 4)])
    t = measure([outside], "evaluated")
    assert (t.asks, t.guarded) == (None, None)
    assert t.replies.seconds == (4,)
    # pooled with a log, only the log's dialogues count for it
    inside, _ = chat(BY_HAND)
    both = measure([outside, inside], "evaluated")
    assert both.asks == measure([inside], "evaluated").asks
    assert both.asks is not None and (both.dialogues, both.asks.dialogues, both.guarded) == (2, 1, 0)


def test_rates_of_nothing_are_none() -> None:
    empty = measure([], "evaluated")
    assert empty == Timing()
    assert timing_of(record([]), "a") == Timing(dialogues=1)
    assert (empty.mean_burst, empty.long_bursts, empty.burst_lengths) == (None, 0, {})
    assert (Times().quantile(0.5), Times().under(5), Times().over(60)) == (None, 0, 0)
    a = Asks()
    rates = [a.silence_rate, a.read_silent_rate, a.came_back_rate, a.interruption_rate, a.revision_rate, a.overlap_rate]
    assert rates == [None] * 6


def test_errors_are_no_silence_and_no_choice() -> None:
    messages = [message("b", 0, opener=True), message("b", 5)]
    asks = [
        ask("b", 0, "在吗"), ask("a", 0, "来了来了"),
        ask("b", 5), ask("a", 5, draft="来了来了", error="no JSON in the reply"),
    ]  # fmt: skip
    t = timing_of(record(messages, asks), "a")
    assert t.asks == Asks(dialogues=1, asks=2, errors=1, decided=1, woken=2, read=1, interruptions=1)
    assert t.asks.lost == 1
    assert (t.asks.silence_rate, t.asks.read_silent_rate, t.asks.revision_rate) == (0, 0, None)


def test_how_an_interruption_found_the_draft_is_counted_where_it_is_known() -> None:
    messages = [message("b", s, opener=s == 0) for s in range(5)]
    found = ("typing", "waiting", "typing", None)
    asks = [ask("b", 0), ask("a", 0, "来了")]
    for s, how in enumerate(found, 1):
        asks += [ask("b", s), ask("a", s, "来了", draft="来了", interrupted=how)]
    counted = timing_of(record(messages, asks), "a").asks
    assert counted is not None
    assert (counted.interruptions, counted.typing, counted.waiting, counted.keep) == (4, 2, 1, 4)
    assert counted.typing_rate == 2 / 3


def test_a_recorded_action_stands_and_a_missing_one_is_read_from_the_texts() -> None:
    messages = [message("b", 0, opener=True), message("b", 5)]

    def actions(says: str | None, action: Any = None) -> dict[str, int]:
        asks = [ask("b", 0), ask("a", 0, "周末去不去"), ask("b", 5), ask("a", 5, says, draft="周末去不去打球", action=action)]
        counted = timing_of(record(messages, asks), "a").asks
        assert counted is not None
        return {k: getattr(counted, k) for k in ("keep", "revise", "replace", "withdraw") if getattr(counted, k)}

    assert actions("周末去不去打球！") == {"keep": 1}
    assert actions("周末还去不去打球啊") == {"revise": 1}
    assert actions("我妈来了") == {"replace": 1}
    assert actions(None) == {"withdraw": 1}
    assert actions("周末去不去打球！", "replace") == {"replace": 1}
    assert actions("周末去不去打球！", "new") == {"keep": 1}  # there was a draft, so the label is wrong


def test_a_log_that_is_no_pairs_is_read_by_the_clock() -> None:
    messages = [message("b", 0, opener=True), message("a", 10), message("b", 30)]
    asks = [ask("a", 3, "在"), ask("b", 12, "来"), ask("a", 31)]
    t = timing_of(record(messages, asks), "a").asks
    assert t == Asks(dialogues=1, asks=2, decided=2, silent=1, woken=2, read=2, read_silent=1, sent=1)
    before_all = timing_of(record([message("b", 9)], [ask("a", 3, "在")]), "a").asks
    assert before_all == Asks(dialogues=1, asks=1, decided=1, unsent=1, unsent_replies=1)


def test_messages_out_of_order_are_refused() -> None:
    dialogue = record([message("b", 10, opener=True), message("a", 4)])
    with pytest.raises(TimingError, match="x1: message 2 is earlier than the one before it; put"):
        measure([dialogue], "evaluated")


def test_the_sides_follow_the_evaluated_role() -> None:
    messages = [message("b", 0, opener=True), message("a", 4), message("b", 30)]
    assert measure([record(messages, evaluated="a")], "evaluated").replies.seconds == (4,)
    assert measure([record(messages, evaluated="b")], "evaluated").replies.seconds == (26,)
    assert measure([record(messages, evaluated="b")], "partner").replies.seconds == (4,)
