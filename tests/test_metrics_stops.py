"""Why chats stopped and whose fault failures are: chats by hand, a slow literal reading of random ones, thresholds."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.metrics import stops
from anthrolab.metrics.asks import asks_of
from anthrolab.metrics.stops import Audit, Ending, Fate, Flag, Replies, audit, ending, failure_fate, kinds_of, mute
from anthrolab.models.client import Fault, Trouble
from anthrolab.runtime.dialogue import Dialogue, Guarded, Speaker, other
from anthrolab.runtime.schedule import SILENCE, Plan, Rules
from tests.test_metrics_timing import BROKEN, START, Script, Watched, ask, chat, message, record, rules, scripts

HELLO = Plan("来了来了", 10)
# In all scripts b gives the opener and a is the tested side.
BY_HAND: dict[str, tuple[Script, Rules, Ending]] = {
    "both decide to send nothing": ({"a": [HELLO], "b": [SILENCE, Plan("好嘞", 5)]}, Rules(900), "silence"),
    "the next message lies beyond the horizon": ({"a": [Plan("等等", 500)], "b": []}, Rules(480), "horizon"),
    "all messages are used up": ({"a": [HELLO], "b": []}, Rules(900, max_messages=2), "max_messages"),
    "the tested side never writes": ({"a": [], "b": []}, Rules(900), "tested_never_spoke"),
    "it never writes, though asked twice": ({"a": [], "b": [Plan("人呢人呢", 60)]}, Rules(900), "tested_never_spoke"),
    "its only reply breaks the contract": ({"a": [BROKEN], "b": []}, Rules(900), "tested_broke"),
    "the partner's last reply breaks it": ({"a": [HELLO], "b": [SILENCE, BROKEN]}, Rules(900), "partner_broke"),
    "both last replies break it": ({"a": [HELLO, BROKEN], "b": [SILENCE, BROKEN]}, Rules(900), "both_broke"),
    "a broken reply before the last one is no reason": ({"a": [BROKEN, HELLO], "b": [Plan("在不在", 9)]}, Rules(900), "silence"),
    "a guard drops the last draft": ({"a": [HELLO, Plan("来了来了", 5)], "b": []}, Rules(900), "guard"),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_why_a_chat_stopped_by_hand(name: str) -> None:
    script, limits, reason = BY_HAND[name]
    assert ending(chat(script, limits)[0]) == reason


def test_the_partner_never_spoke_where_the_tested_side_gave_the_opener() -> None:
    dialogue = chat({"a": [], "b": []})[0].model_copy(update={"evaluated_role": "b"})
    assert ending(dialogue) == "partner_never_spoke"
    talked = chat({"a": [], "b": [Plan("人呢人呢", 60)]})[0].model_copy(update={"evaluated_role": "b"})
    assert ending(talked) == "partner_never_spoke"


def test_a_side_is_mute_only_if_the_other_one_wrote() -> None:
    opener_alone = record([message("b", 0, opener=True)])
    assert (mute(opener_alone, "a"), mute(opener_alone, "b")) == (True, False)
    follow_up = record([message("b", 0, opener=True), message("b", 9)])
    assert (mute(follow_up, "a"), mute(follow_up, "b")) == (True, False)
    answered = record([message("b", 0, opener=True), message("a", 9)])
    assert (mute(answered, "a"), mute(answered, "b")) == (False, True)
    assert not mute(record([]), "a")


def test_records_from_elsewhere_say_no_more_than_they_hold() -> None:
    messages = [message("b", 0, opener=True), message("a", 4), message("b", 9)]
    assert ending(record(messages)) == "not_said"
    closed = record(messages).model_copy(update={"stop": "closed"})
    assert ending(closed) == "closed"
    assert ending(record(messages).model_copy(update={"stop": "someone left"})) == "not_said"
    # the log lacks the asks after the last message: an error before it explains nothing
    early = closed.model_copy(update={"asks": [ask("a", 4, error="no JSON"), ask("b", 4, "第9秒")]})
    assert ending(early) == "closed"
    # a decision to write after which nothing came, and no guard that dropped it
    lost = closed.model_copy(update={"asks": [ask("a", 9, "还有"), ask("b", 9)], "guards": []})
    assert ending(lost) == "closed"
    dropped = Guarded(speaker="a", content="还有", guard="goodbye_loop", at=START + timedelta(seconds=9))
    assert ending(lost.model_copy(update={"guards": [dropped]})) == "guard"
    assert ending(lost.model_copy(update={"guards": [dropped.model_copy(update={"speaker": "b"})]})) == "closed"
    earlier = dropped.model_copy(update={"at": START + timedelta(seconds=8)})
    assert ending(lost.model_copy(update={"guards": [earlier]})) == "closed"
    silent = closed.model_copy(update={"messages": messages[:1]})
    assert ending(silent) == "tested_never_spoke"


def test_a_record_without_a_message_has_an_ending_too() -> None:
    nothing = record([]).model_copy(update={"stop": "closed"})
    assert ending(nothing) == "closed"
    dropped = Guarded(speaker="a", content="在吗", guard="goodbye_loop", at=START)
    assert ending(nothing.model_copy(update={"guards": [dropped]})) == "closed", "a guard alone says nothing of the last draft"
    asked = {"asks": [ask("a", 0, "在吗"), ask("b", 0)], "guards": [dropped]}
    assert ending(nothing.model_copy(update=asked)) == "guard"
    assert ending(nothing.model_copy(update={"asks": [ask("a", 0), ask("b", 0)]})) == "silence"


def literal(dialogue: Dialogue, watched: dict[Speaker, Watched]) -> Ending:
    """The definitions one after the other, from what the policies saw and said."""
    if dialogue.stop != "closed":
        return dialogue.stop  # type: ignore[return-value]
    me, partner = dialogue.evaluated_role, other(dialogue.evaluated_role)
    last = {speaker: policy.seen[-1][1] for speaker, policy in watched.items()}
    names: dict[frozenset[Speaker], Ending] = {
        frozenset({me}): "tested_broke", frozenset({partner}): "partner_broke", frozenset({me, partner}): "both_broke",
    }  # fmt: skip
    broke = frozenset(speaker for speaker, answer in last.items() if answer.plan is None)
    if broke:
        return names[broke]
    if any(answer.plan is not None and not answer.plan.silent for answer in last.values()):
        return "guard"
    wrote = {m.speaker for m in dialogue.messages[1:]}
    opener = dialogue.messages[0].speaker
    if me not in wrote and (opener == partner or partner in wrote):
        return "tested_never_spoke"
    if partner not in wrote and (opener == me or me in wrote):
        return "partner_never_spoke"
    return "silence"


@settings(max_examples=300, deadline=None)
@given(rules, scripts, st.sampled_from(["a", "b"]))
def test_equals_the_slow_literal_reading_and_the_runtime_always_says_why(
    limits: Rules, script: Script, tested: Speaker
) -> None:
    dialogue, watched = chat(script, limits)
    dialogue = dialogue.model_copy(update={"evaluated_role": tested})
    assert ending(dialogue) == literal(dialogue, watched)
    found = audit([dialogue], [], 1)
    for side, speaker in (("tested", tested), ("partner", other(tested))):
        replies, counted = getattr(found, side), asks_of(dialogue, speaker)
        assert counted is not None
        assert (replies.asks, replies.broken, replies.silent) == (counted.asks, counted.errors, counted.silent)
        assert replies.empty == sum(
            a.plan is not None and not a.plan.end and not a.plan.content.strip() for _, a in watched[speaker].seen
        )


# ---- whose fault


def dialogue(name: str, script: Script | None = None, **more: Any) -> Dialogue:
    talk: Script = {"a": [HELLO], "b": [SILENCE, Plan("好嘞", 5)]}
    return chat(script or talk)[0].model_copy(update={"dialogue_id": name, **more})


def failure(name: str, fault: str, **more: str) -> dict[str, str]:
    return {"dialogue_id": name, "fault": fault, "error": "x", **more}


def test_every_planned_dialogue_has_one_fate_by_hand() -> None:
    silent: Script = {"a": [], "b": []}
    found = audit(
        [
            dialogue("fine"), dialogue("ai"), dialogue("no answer"), dialogue("not readable"),
            dialogue("mute", silent), dialogue("left alone", silent, evaluated_role="b"), dialogue("not asked"),
        ],
        [
            failure("dead", "unreachable", side="tested", system="tiny"),
            failure("slow", "timeout", side="partner"),
            failure("wordless", "empty", side="tested"),
            failure("declined", "refusal", side="partner"),
            failure("summary", "length", side="other"),
            failure("old row", "server_error"),
            failure("older row", "thought_only"),
            failure("memory", "timeout", side="summary"),
            failure("dear", "over_budget", side="tested"),
            failure("fine", "timeout", side="tested"),  # it was had after all
        ],
        18,
        judged={
            "ai": "fatal", "no answer": "incomplete", "not readable": "unreadable", "mute": "no_turns", "left alone": "no_turns",
            "not asked": "not_judged",
        },
    )  # fmt: skip
    assert found.fates == {
        "scored": 1, "fatal": 1, "said_nothing": 1, "unanswered": 1, "incomplete": 1, "unreadable": 1, "not_judged": 1,
        "tested_endpoint": 1, "partner_endpoint": 1, "tested_reply": 1, "partner_reply": 1, "other_reply": 1,
        "unknown_endpoint": 1, "unknown_reply": 1, "other_endpoint": 1, "limit": 1, "missing": 2,
    }  # fmt: skip
    assert found.endings == {"silence": 5, "tested_never_spoke": 1, "partner_never_spoke": 1}


def test_every_fault_of_the_client_is_a_models_an_endpoints_or_a_limits() -> None:
    reply, limit = {"empty", "refusal", "length", "thought_only"}, {"over_budget", "deadline"}
    assert reply | limit <= set(get_args(Trouble))
    for fault in get_args(Trouble):
        fate = failure_fate(failure("x", fault, side="partner"))
        assert fate == ("limit" if fault in limit else "partner_reply" if fault in reply else "partner_endpoint")
        assert fate in get_args(Fate)


fates = st.sampled_from(["fatal", "no_turns", "not_judged", "incomplete", "unreadable", None])


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(rules, scripts, fates), max_size=4),
    st.lists(st.tuples(st.sampled_from(get_args(Fault)), st.sampled_from(["tested", "partner", "other", ""])), max_size=4),
    st.integers(0, 5),
)
def test_fates_add_up_to_the_plan_and_endings_to_what_is_there(
    chats: list[tuple[Rules, Script, Any]], failed: list[tuple[str, str]], missing: int
) -> None:
    there = [dialogue(f"d{i}", s) for i, (_, s, _) in enumerate(chats)]
    rows = [failure(f"f{i}", fault, side=side) for i, (fault, side) in enumerate(failed)]
    planned = len(there) + len(rows) + missing
    judged = {f"d{i}": fate for i, (_, _, fate) in enumerate(chats) if fate}
    found = audit(there, rows, planned, judged=judged)
    assert found.fates.total() == planned
    assert found.endings.total() == len(there) == found.tested.dialogues == found.partner.dialogues
    assert found.tested.broken + found.tested.silent <= found.tested.asks
    for flag in found.flags():
        assert 0 < flag.part <= flag.of


# ---- replies and flags


def test_replies_of_each_side_by_hand() -> None:
    asks = [
        ask("a", 0, "好", recovered="trailing comma dropped; asked twice"), ask("b", 0),
        ask("a", 4, error="no JSON", recovered="words around the JSON dropped"), ask("b", 4, "嗯"),
        ask("a", 9), ask("b", 9, "", recovered="time 900 s from now clipped"),
        ask("a", 12, " "), ask("b", 12, recovered="timestamp 2026-03-06T20:31:00 clipped"),
    ]  # fmt: skip
    talk = record([message("b", 0, opener=True), message("a", 4), message("b", 9)], asks)
    trouble = {"tested": Counter({"empty": 2, "rate_limited": 3, "length": 1})}
    found = audit([talk], [], 1, call_trouble=trouble)
    # blank text without `end` is silence and is empty; a reply that stayed broken was not recovered
    assert found.tested == Replies(
        asks=4, broken=1, recovered=1, kinds=Counter({"trailing comma dropped": 1, "asked twice": 1}), silent=2, empty=1,
        dialogues=1, mute=0, failed=trouble["tested"],
    )  # fmt: skip
    assert found.tested.empty_attempts == 3
    assert found.partner == Replies(asks=4, recovered=2, kinds=Counter({"time clipped": 2}), silent=3, empty=1, dialogues=1)
    outside = audit([record([message("b", 0, opener=True), message("a", 4)])], [], 1)
    assert outside.tested == Replies(dialogues=1)


def test_kinds_leave_the_values_out() -> None:
    assert kinds_of("time 700 s from now clipped") == kinds_of("timestamp 2026-03-06T20:31:00 clipped") == ["time clipped"]
    assert kinds_of("asked twice") == ["asked twice"]


def side(**counts: Any) -> Replies:
    return Replies(**{"asks": 100, "dialogues": 10, **counts})


def flags(tested: Replies | None = None, partner: Replies | None = None, *, planned: int = 10, **ends: int) -> list[Flag]:
    fates: Mapping[Any, int] = {"scored": planned, **ends}
    done = Counter[Ending]({"silence": ends.pop("done", planned)})
    return Audit(planned, done, Counter(fates), tested or side(), partner or side()).flags()


@pytest.mark.parametrize(
    ("at_the_border", "above", "flag"),
    [
        ({"broken": 5}, {"broken": 6}, ("broken", 6, 100)),
        ({"empty": 10}, {"empty": 11}, ("empty", 11, 100)),
        ({"mute": 1}, {"mute": 2}, ("mute", 2, 10)),
        # failed attempts count beside the asks: 11 of 111 is fine, 13 of 113 is not
        ({"failed": Counter(empty=5, length=4, thought_only=2)}, {"failed": Counter(empty=7, length=4, thought_only=2)}, ("empty", 13, 113)),
        ({"empty": 5, "failed": Counter(empty=5)}, {"empty": 5, "failed": Counter(empty=7)}, ("empty", 12, 107)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("whose", ["tested", "partner"])
def test_a_share_above_its_threshold_raises_a_flag_and_one_at_it_does_not(
    whose: str, at_the_border: dict[str, Any], above: dict[str, Any], flag: tuple[str, int, int]
) -> None:
    assert flags(**{whose: side(**at_the_border)}) == []
    (found,) = flags(**{whose: side(**above)})
    assert (found.kind, found.part, found.of, found.side) == (*flag, whose)


def test_attempts_that_an_endpoint_lost_raise_no_flag() -> None:
    assert flags(side(failed=Counter(rate_limited=99, timeout=99, refusal=99))) == []


def test_recovered_replies_are_flagged_for_the_tested_side_with_the_commonest_kind() -> None:
    kinds = Counter({"asked twice": 3, "trailing comma dropped": 18})
    assert flags(side(recovered=20, kinds=kinds)) == []
    assert flags(side(recovered=21, kinds=kinds)) == [Flag("recovered", "tested", 21, 100, "trailing comma dropped")]
    assert flags(partner=side(recovered=90, kinds=kinds)) == []


def test_what_is_not_there_and_what_is_not_judged_is_flagged() -> None:
    assert flags(done=9) == []
    assert flags(done=8) == [Flag("not_done", "run", 2, 10)]
    assert flags(scored=9, incomplete=1) == []
    assert flags(scored=8, incomplete=1, unreadable=1, fatal=5) == [Flag("unjudged", "judge", 2, 10)]
    assert flags(scored=1, not_judged=9) == [], "what the judge was not asked is not its doing"
    assert flags(scored=8, incomplete=1, unreadable=1, not_judged=90) == [Flag("unjudged", "judge", 2, 10)]


def test_thresholds_are_those_that_the_page_names() -> None:
    named = {name: float(getattr(stops, name)) for name in dir(stops) if name.startswith("MAX_")}
    assert named == {
        "MAX_BROKEN_SHARE": 0.05, "MAX_RECOVERED_SHARE": 0.2, "MAX_EMPTY_SHARE": 0.1, "MAX_MUTE_SHARE": 0.1,
        "MAX_NOT_DONE_SHARE": 0.1, "MAX_UNJUDGED_SHARE": 0.1,
    }  # fmt: skip


def test_a_run_without_anything_has_no_flag() -> None:
    assert audit([], [], 0).flags() == []
    assert audit([], [failure("x", "unreachable")], 1).flags() == [Flag("not_done", "run", 1, 1)]
