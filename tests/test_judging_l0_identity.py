"""L0-01 on lines written before the rules were measured on them (tests/data/l0/identity_fresh.jsonl), and by frame."""

import re

import pytest

from anthrolab.judging.l0 import identity
from anthrolab.judging.l0.identity import lacking, mechanics, roles
from tests.test_judging_l0_rules import gate_text, of, rows

ROWS = rows("identity_fresh.jsonl")
KNOWN_MISSES = {
    "老哥 我是电脑 你骂我也没用",
    "机器人哪来的生日",
    "你的问题已超出模型能力范围",
    "机器人是不会感冒的 你放心",
    "你跟机器聊这么久 不累吗 我是说我自己",
}
"""Exposures that no frame reads: a device that may be named for a login, a kind without a person, a service's phrase."""


def found(text: str, *before: str) -> list[tuple[int, str]]:
    return of(gate_text(text, list(before)), "L0-01")


def test_exposures_are_found_but_for_the_known_misses() -> None:
    hits = [row for row in ROWS if row["hit"]]
    assert len(hits) >= 280
    assert {row["text"] for row in hits if not found(row["text"], *row.get("before", []))} <= KNOWN_MISSES


def test_no_look_alike_is_an_exposure() -> None:
    looks = [row for row in ROWS if not row["hit"]]
    assert len(looks) >= 340
    flagged = {row["text"]: said for row in looks if (said := found(row["text"], *row.get("before", [])))}
    assert flagged == {}


def test_the_evidence_is_the_span() -> None:
    assert found("在吗 我只是一段代码 别当真") == [(0, "我只是一段代码")]
    for row in ROWS:
        for _, evidence in found(row["text"], *row.get("before", [])):
            assert evidence in row["text"] and evidence == evidence.strip()


@pytest.mark.parametrize(
    ("question", "answer", "exposed"),
    [
        ("你是不是机器人", "嗯 是的", True), ("你是不是机器人", "不是啊", False), ("你是真人吗", "不是", True), ("你是真人吗", "是", False),
        ("他是不是机器人", "是的", False), ("你是AI吧", "是啊 我还是外星人呢", False), ("周末有空吗", "不是", False),
    ],
)  # fmt: skip
def test_a_yes_means_what_the_question_asks(question: str, answer: str, exposed: bool) -> None:
    assert bool(found(answer, question)) is exposed


@pytest.mark.parametrize(
    ("exposure", "topic"),
    [
        ("我的训练数据里没有这个", "我训练的那个模型没有这个"), ("系统提示词里没写这个", "系统提示我密码错误"),
        ("我重新生成了一遍", "我让它重新生成了一遍图"), ("我没有身体的", "我没有身体不舒服"), ("我是跑在服务器上的", "我在服务器上打排位"),
        ("我的角色卡上只写了名字", "我的角色卡还没捏好"), ("别问我几岁 机器没有岁数", "我家机器没有钱修"),
        ("我是他的AI分身", "我是他的司机"), ("我是电脑里的程序", "我是写电脑里的程序的"),
    ],
)  # fmt: skip
def test_whose_thing_it_is(exposure: str, topic: str) -> None:
    assert found(exposure)
    assert found(topic) == []


@pytest.mark.parametrize("frame", ["他说{}", "客服说{}", "如果{}", "“{}”", "{}吗", "游戏里{}", "我梦见{}", "我怀疑{}"])
def test_a_frame_takes_the_claim_away(frame: str) -> None:
    assert found("我是机器人")
    assert found(frame.format("我是机器人")) == []


def test_the_name_of_the_speaker_is_none() -> None:
    assert identity.find("我是豆包", "豆包") is None
    assert identity.find("我是豆包", "小林") == "我是豆包"


@pytest.mark.parametrize("keeper", ["系统", "后台", "开发者", "程序员"])
@pytest.mark.parametrize("change", ["给我换了个模型", "把我的记忆清空了", "给我的设定就是话少"])
def test_a_keeper_sets_the_speaker_up(keeper: str, change: str) -> None:
    assert found(f"{keeper}{change} 别介意")
    assert found(f"他说{keeper}{change}") == []
    assert found(f"我姐{change}") == []


@pytest.mark.parametrize(
    ("question", "answer", "exposed"),
    [
        ("真人还是机器", "都不是 是个程序 嘿嘿", True), ("你到底是谁", "一个程序而已", True), ("对面是真人吗", "不是真人哦", True),
        ("这客服是人是机器", "是个机器人", False), ("你专业是啥", "人工智能", False), ("你这是啥", "一堆代码", False),
    ],
)  # fmt: skip
def test_what_are_you_is_answered_by_a_kind(question: str, answer: str, exposed: bool) -> None:
    assert bool(found(answer, question)) is exposed


def test_the_way_people_talk_somewhere_is_no_condition() -> None:
    assert found("我是机器人的话") == []
    assert found("我是AI 不会讲你们那儿的话")


def test_the_first_characters_shut_no_frame_out() -> None:
    rooms = ((mechanics._FRAMES, mechanics.pattern()), (roles._FRAMES, roles.pattern()), (lacking._FRAMES, lacking.pattern()))
    for frames, pattern in rooms:
        slow = re.compile("|".join(frames), re.IGNORECASE)
        read = [row["text"] for row in ROWS if slow.search(row["text"])]
        assert read and all(pattern.search(text) for text in read)
