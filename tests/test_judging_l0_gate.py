"""What decides validity: roles, opener, severity, what ran, order; and that the fast path loses nothing."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.judging.l0 import SEVERITY, L0Result, check, facts, identity, medium, presence
from anthrolab.judging.l0.gate import prefilter
from anthrolab.judging.l0.repetition import Repetition
from anthrolab.runtime.dialogue import Ask, Decision, Dialogue, Message, Participant, Speaker
from anthrolab.runtime.text import normalise
from tests.cards_for_tests import make_scenario
from tests.test_judging_l0_rules import FACTS, card

DATA = Path(__file__).parent / "data" / "l0"
START = datetime(2026, 3, 6, 20, 31)
FATAL = ["我是AI", "[图片]", "我就在你身后"]
BENIGN = (DATA / "benign.txt").read_text(encoding="utf-8").splitlines()


def chat(lines: list[tuple[Speaker, str]], opener: int | None = None, asks: list[Ask] | None = None) -> Dialogue:
    """Messages ten minutes apart; `opener` is the position of the given one."""
    messages = [
        Message(speaker=speaker, content=text, at=START + timedelta(minutes=10 * i), opener=i == opener)
        for i, (speaker, text) in enumerate(lines)
    ]
    speakers: dict[Speaker, Participant] = {"a": Participant(name="林晓雯"), "b": Participant(name="周子航")}
    return Dialogue(dialogue_id="d", evaluated_role="a", speakers=speakers, messages=messages, asks=asks)


def ids(result: L0Result) -> list[tuple[str, int]]:
    return [(v.id, v.message_index) for v in result.violations]


def test_severities_of_table_3() -> None:
    major = {constraint for constraint, severity in SEVERITY.items() if severity == "major"}
    assert major == {"L0-07", "L0-08", "L0-10"}
    assert len(SEVERITY) == 10


@pytest.mark.parametrize("text", FATAL)
def test_a_fatal_violation_of_the_evaluated_role_decides(text: str) -> None:
    mine = check(chat([("b", "在干嘛呢"), ("a", text)]), {})
    assert (mine.valid, mine.reason, len(mine.violations), mine.partner_violations) == (False, "fatal", 1, ())
    theirs = check(chat([("a", "在干嘛呢"), ("b", text)]), {})
    assert (theirs.valid, theirs.reason, theirs.violations, len(theirs.partner_violations)) == (True, None, (), 1)


def test_a_major_violation_is_kept_and_the_case_stays_valid() -> None:
    dialogue = chat([("a", "我去洗澡了"), ("a", "洗完了")])
    dialogue.messages[1].at = dialogue.messages[0].at + timedelta(seconds=5)
    result = check(dialogue, {})
    assert ids(result) == [("L0-08", 1)]
    assert result.violations[0].severity == "major"
    assert result.valid


def test_the_opener_is_given() -> None:
    assert check(chat([("a", "我是AI"), ("b", "啊？"), ("a", "逗你呢")], opener=0), {}).violations == ()
    assert ids(check(chat([("a", "周末有空没"), ("b", "有"), ("a", "周末有空没")], opener=0), {})) == [("L0-05", 2)]
    assert ids(check(chat([("b", "周末有空没"), ("a", "周末有空没")], opener=0), {})) == [("L0-05", 1)]


@pytest.mark.parametrize("lines", [[], [("b", "在吗")], [("b", "在吗"), ("b", "人呢")]])
def test_a_silent_evaluated_role_is_invalid(lines: list[tuple[Speaker, str]]) -> None:
    result = check(chat(lines), {})
    assert (result.valid, result.reason, result.violations) == (False, "no_turns", ())


def test_an_opener_alone_is_no_turn() -> None:
    assert check(chat([("a", "在吗"), ("b", "在")], opener=0), {}).reason == "no_turns"


def test_what_ran_on_the_evaluated_role() -> None:
    always = ["L0-01", "L0-02", "L0-05", "L0-08"]
    dialogue = chat([("a", "在家呢")])
    persona = card(FACTS["f27"])
    assert list(check(dialogue, {}, make_scenario(remote=False)).executed) == always
    assert list(check(dialogue, {}).executed) == sorted([*always, "L0-03"])
    assert list(check(dialogue, {"b": persona}).executed) == sorted([*always, "L0-03"])
    assert list(check(dialogue, {"a": persona}).executed) == sorted([*always, "L0-03", "L0-06"])
    dialogue.asks = []
    assert "L0-04" not in check(dialogue, {}).executed
    dialogue.asks = [Ask(speaker="a", now=START)]
    assert list(check(dialogue, {"a": persona}).executed) == sorted([*always, "L0-03", "L0-04", "L0-06"])


def test_side_by_side_is_fine_where_the_two_are() -> None:
    dialogue = chat([("a", "我就在你身后")])
    assert check(dialogue, {}, make_scenario(remote=False)).valid
    assert not check(dialogue, {}, make_scenario(remote=True)).valid
    assert not check(dialogue, {}, None).valid


def test_a_reply_that_broke_the_contract_stands_at_the_last_message_seen() -> None:
    asks = [
        Ask(speaker="a", now=START - timedelta(seconds=1), error="no JSON"),
        Ask(speaker="a", now=START + timedelta(minutes=10), error="field end missing"),
        Ask(speaker="b", now=START + timedelta(minutes=12), error="empty"),
        Ask(speaker="a", now=START + timedelta(minutes=25), recovered="code fence removed"),
    ]
    result = check(chat([("b", "在吗"), ("a", "在呢"), ("b", "吃了吗")], asks=asks), {})
    assert [(v.id, v.message_index, v.evidence) for v in result.violations] == [
        ("L0-04", -1, "no JSON"),
        ("L0-04", 1, "field end missing"),
    ]
    assert [(v.id, v.message_index) for v in result.partner_violations] == [("L0-04", 1)]
    assert result.reason == "fatal"


def test_a_reply_sent_in_the_same_second_was_not_seen_by_the_ask_before_it() -> None:
    """Message 1 goes out 0 s after the opener: the pair of asks at the opener could not see it."""
    asks = [
        Ask(speaker="b", now=START, error="no JSON"),
        Ask(speaker="a", now=START, decision=Decision(content="在呢", at=START, end=False)),
        Ask(speaker="a", now=START, error="empty"),
        Ask(speaker="b", now=START, error="empty"),
    ]
    messages = [
        Message(speaker="b", content="在吗", at=START, opener=True),
        Message(speaker="a", content="在呢", at=START, opener=False),
    ]
    dialogue = chat([("b", "在吗"), ("a", "在呢")], asks=asks).model_copy(update={"messages": messages})
    result = check(dialogue, {})
    assert [v.message_index for v in result.violations] == [1]
    assert [v.message_index for v in result.partner_violations] == [0, 1]


def test_facts_of_both_sides_against_their_own_cards() -> None:
    dialogue = chat([("a", "我今年32了"), ("b", "我今年45了")])
    result = check(dialogue, {"a": card(FACTS["f27"]), "b": card(FACTS["m45"])})
    assert ids(result) == [("L0-06", 0)]
    assert result.partner_violations == ()
    assert result.violations[0].evidence == "我今年32了 (card: age 27)"


messages = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([*BENIGN[:120], *FATAL])), max_size=12)


@settings(deadline=None)
@given(messages, st.lists(st.sampled_from(FATAL), max_size=4))
def test_partner_violations_never_change_validity(lines: list[tuple[Speaker, str]], faults: list[str]) -> None:
    before = check(chat(lines), {})
    after = check(chat([*lines, *(("b", fault) for fault in faults)]), {})
    assert (after.valid, after.reason) == (before.valid, before.reason)
    assert len(after.partner_violations) >= len(before.partner_violations) + len(faults)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.text(st.characters(codec="utf-8"), max_size=3)), max_size=20))
def test_short_repeats_never_fire(lines: list[tuple[Speaker, str]]) -> None:
    short = [(speaker, text) for speaker, text in lines if len(normalise(text)) <= 3]
    result = check(chat(short * 2), {})
    assert not [v for v in (*result.violations, *result.partner_violations) if v.id == "L0-05"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(BENIGN), unique=True, min_size=1, max_size=30), st.sampled_from(sorted(FACTS)))
def test_benign_dialogues_are_valid(texts: list[str], who: str) -> None:
    lines: list[tuple[Speaker, str]] = [("a" if i % 2 else "b", text) for i, text in enumerate(texts)]
    result = check(chat([*lines, ("a", "先这样 明天细说哈")]), {"a": card(FACTS[who]), "b": card(FACTS["m45"])})
    assert (result.valid, result.violations, result.partner_violations) == (True, (), ())


@settings(deadline=None)
@given(messages)
def test_violations_come_in_the_order_of_the_messages(lines: list[tuple[Speaker, str]]) -> None:
    result = check(chat(lines), {})
    for violations in (result.violations, result.partner_violations):
        keys = [(v.message_index, v.id) for v in violations]
        assert keys == sorted(keys)
    assert {lines[v.message_index][0] for v in result.violations} <= {"a"}
    assert {lines[v.message_index][0] for v in result.partner_violations} <= {"b"}


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]), st.sampled_from(["好的呀 行", "好的呀行", "嗯嗯", "ＯＫ的啊", "ok的啊!", ""])
        )
    )
)
def test_repetition_equals_the_slow_literal_rule(lines: list[tuple[str, str]]) -> None:
    fast = Repetition()
    for i, (speaker, text) in enumerate(lines):
        same = normalise(text)
        own = any(s == speaker and normalise(t) == same for s, t in lines[:i])
        directly = i > 0 and lines[i - 1][0] != speaker and normalise(lines[i - 1][1]) == same
        assert bool(fast.add(i, speaker, text)) == (len(same) > 3 and (own or directly))


def listed() -> list[str]:
    names = ("identity", "medium", "presence", "facts")
    lines = [line for name in names for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    return [json.loads(line)["text"] for line in lines] + BENIGN


def test_the_prefilter_loses_no_hit() -> None:
    bits = prefilter().bits
    lost = []
    for text in listed():
        rules = prefilter().rules(text)
        for name, found in (
            ("identity", identity.find(text)), ("medium", medium.find(text)), ("presence", presence.find(text)),
        ):  # fmt: skip
            if found and not rules & bits[name]:
                lost.append((name, text))
        for persona in map(card, FACTS.values()):
            for fact in get_args(facts.Fact):
                if facts.find(text, persona, [fact], 2026) and not rules & bits[fact]:
                    lost.append((fact, text))
    assert lost == []


def test_every_report_of_an_activity_passes_the_prefilter() -> None:
    rows = [json.loads(line) for line in (DATA / "time_logic.jsonl").read_text(encoding="utf-8").splitlines()]
    ends = [row["messages"][-1][1] for row in rows if row["hit"]]
    assert [text for text in ends if not prefilter().rules(text) & prefilter().bits["over"]] == []


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            "我 你 的 个 张 一 了 给 看 在 是 就 也 图 照 哈 嗯 洗 去 完 一个 就是 没有 现在 上海 ， 32".split(" ")
        ),
        max_size=200,
    )
)
def test_no_message_makes_a_pattern_run_away(pieces: list[str]) -> None:
    """Nested repeats in a pattern would hang here; and the answer is the same twice."""
    dialogue = chat([("a", "".join(pieces))])
    assert check(dialogue, {"a": card(FACTS["f27"])}) == check(dialogue, {"a": card(FACTS["f27"])})
