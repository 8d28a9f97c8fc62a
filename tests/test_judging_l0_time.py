"""L0-08 on announcements and ends of many activities, each written before the rules were tried on it (tests/data/l0)."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from anthrolab.judging.l0.activities import ACTIVITIES
from anthrolab.judging.l0.clock import Clock
from anthrolab.judging.l0.gate import prefilter
from anthrolab.judging.l0.time_logic import announced
from anthrolab.runtime.dialogue import Message

START = datetime(2026, 3, 6, 20, 31)
ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "l0" / "time_fresh.jsonl").read_text(encoding="utf-8").splitlines()
]


def impossible(messages: list[list]) -> str | None:  # type: ignore[type-arg]
    """What the clock says of the last message, read as the gate reads it: only ends that pass the prefilter."""
    chat = [Message(speaker=speaker, content=text, at=START + timedelta(seconds=at), opener=False) for at, speaker, text in messages]
    clock, said = Clock(chat), None
    for i, message in enumerate(chat):
        said = clock.finished(i) if prefilter().rules(message.content) & prefilter().bits["over"] else None
    return said


@pytest.mark.parametrize("messages", [row["messages"] for row in ROWS if not row["hit"]])
def test_what_can_be_true_is_left_alone(messages: list[list]) -> None:  # type: ignore[type-arg]
    assert impossible(messages) is None


def test_nearly_all_impossible_ends_are_found() -> None:
    hits = [row["messages"] for row in ROWS if row["hit"]]
    missed = [messages for messages in hits if impossible(messages) is None]
    assert len(missed) <= 0.1 * len(hits), missed


@pytest.mark.parametrize(("after_s", "too_soon"), [(119, True), (120, False), (3600, False)])
def test_the_least_time_is_a_bound(after_s: int, too_soon: bool) -> None:
    assert (impossible([[0, "a", "我去洗澡了"], [after_s, "a", "洗完了"]]) is not None) == too_soon


@pytest.mark.parametrize(("after_s", "too_soon"), [(600, True), (1500, False)])
def test_a_duration_that_was_announced_counts(after_s: int, too_soon: bool) -> None:
    """A fifth of two hours is 24 minutes."""
    assert (impossible([[0, "a", "进去开个会 两个小时"], [after_s, "a", "散会了"]]) is not None) == too_soon


def test_only_the_own_end_counts() -> None:
    assert impossible([[0, "a", "我去洗澡了"], [5, "b", "洗完了"]]) is None
    assert impossible([[0, "a", "我去洗澡了"], [5, "a", "我妈洗完了"]]) is None


def test_an_end_is_told_once() -> None:
    assert impossible([[0, "a", "我去洗澡了"], [5, "a", "洗完了"], [9, "a", "洗完了 真的"]]) is None


def test_every_activity_has_a_name_and_a_time() -> None:
    for activity in ACTIVITIES:
        assert bool(activity.verbs) == bool(activity.objects)
        assert activity.verbs or activity.begin
        assert 10 <= activity.least_s <= 1800


@pytest.mark.parametrize(
    "text", ["晚上再跑步", "你快去洗澡", "我妈去做饭了", "在洗碗", "就剩最后一件没洗 我去洗衣服", "要去洗澡吗"]
)
def test_no_start_of_the_own(text: str) -> None:
    assert announced(text) is None


def test_a_chat_without_an_end_is_only_noted() -> None:
    """What is lazy must not lose what is late: the announcement is read when its end comes, many messages on."""
    talk = [[i, "a", "我去洗澡了" if not i else "嗯 水好大"] for i in range(40)]
    assert impossible([*talk, [60, "a", "洗完了"]]) is not None


def test_one_end_ends_all_that_it_may_end() -> None:
    begun = [[0, "a", "我去洗澡了"], [2, "a", "我先去做饭"], [4000, "a", "都弄完了"]]
    assert impossible(begun) is None
    assert impossible([*begun, [4001, "a", "洗完了"]]) is None


def test_the_end_words_let_every_end_through() -> None:
    bits = prefilter().bits["over"]
    told = [m[2] for row in ROWS if row["hit"] for m in row["messages"][-1:]]
    assert [text for text in told if impossible([[0, "a", text]]) is None and not prefilter().rules(text) & bits] == []


def test_what_ended_long_ago_is_not_the_end_of_this() -> None:
    assert impossible([[0, "a", "我这会儿正搬东西呢"], [13, "a", "早搬回来了，九月地板就翻好了"]]) is None
    assert impossible([[0, "a", "我去洗澡了"], [5, "a", "去年就洗完了"]]) is None
    assert impossible([[0, "a", "今天带娃们练发球 赢了两局"], [60, "a", "膝盖能上台了啊，赢了吧！"]]) is None
    assert impossible([[0, "a", "我去洗澡了"], [5, "a", "洗完了"]]) is not None
