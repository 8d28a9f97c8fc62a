"""L0-03 on lines of many kinds of nearness, each written before the rules were tried on it (tests/data/l0)."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from anthrolab.judging.l0 import presence
from anthrolab.judging.l0.gate import prefilter
from anthrolab.judging.l0.presence.frames import here_and_now

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "l0" / "presence_fresh.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
NEAR = [row["text"] for row in ROWS if row["hit"]]
APART = [row["text"] for row in ROWS if not row["hit"]]


@pytest.mark.parametrize("text", APART)
def test_what_people_write_from_afar_is_left_alone(text: str) -> None:
    assert presence.find(text) is None


def test_nearly_all_that_can_only_be_said_side_by_side_is_found() -> None:
    missed = [text for text in NEAR if presence.find(text) is None]
    assert len(missed) <= 0.12 * len(NEAR), missed


def test_the_evidence_is_the_offending_span() -> None:
    for text in NEAR:
        found = presence.find(text)
        assert found is None or (found and found in text)


def test_every_hit_passes_the_prefilter() -> None:
    bit = prefilter().bits["presence"]
    assert [text for text in NEAR if presence.find(text) and not prefilter().rules(text) & bit] == []


@pytest.mark.parametrize(
    ("near", "apart"),
    [
        ("你耳朵红了", "你耳朵肯定红了"),
        ("你耳朵红了", "你耳朵红了没"),
        ("你领带歪了", "估计你领带歪了"),
        ("把桌上的盐递给我", "昨天把桌上的盐递给我那个人"),
        ("我看见你了 你回头", "回头我看见你了再说"),
        ("（伸手揉了揉你的头发）", "（摸摸头）"),
        ("（伸手揉了揉你的头发）", "（想伸手揉揉你的头发）"),
        ("你挡着我看路牌了", "你挡着我财路了"),
        ("你靠着我睡吧", "要是你靠着我睡就好了"),
        ("你踩我脚了", "他踩我脚了"),
        ("咱俩挤一把伞", "小时候咱俩挤一把伞"),
    ],
)
def test_one_word_takes_nearness_back(near: str, apart: str) -> None:
    assert presence.find(near) is not None
    assert presence.find(apart) is None


def test_the_triggers_of_a_room_let_its_patterns_match() -> None:
    lost = []
    for text in NEAR:
        pairs = {a + b for a, b in pairwise(text)} | set(text)
        for triggers, pattern in presence._rooms():
            if triggers.isdisjoint(pairs) and any(here_and_now(text, m) for m in pattern.finditer(text)):
                lost.append(text)
    # Another room finds all of them but a few.
    assert [text for text in lost if presence.find(text) is None] == []


@pytest.mark.parametrize(
    ("bid", "act"),
    [("胳膊抬起来", "我给你量体温"), ("侧个身", "我过不去"), ("按住", "我来钉"), ("裤腿卷上去", "我给你擦擦")],
)
def test_a_bodily_request_counts_only_with_what_is_done_by_it(bid: str, act: str) -> None:
    assert presence.find(f"{bid} {act}") is not None
    assert presence.find(bid) is None
    assert presence.find(act) is None
