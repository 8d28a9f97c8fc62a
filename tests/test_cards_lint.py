"""The card linter: each kind of fault is found where it is put, and the corpus has none."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anthrolab.cards.library import Library, load_library
from anthrolab.cards.lint import lint
from anthrolab.cards.lint.secrets import given_away, stage_directions
from anthrolab.cards.persona import HardFacts
from anthrolab.judging.testable import untestable

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library(DATA)


def changed(card: Any, field: str, value: object) -> Any:
    """A copy of a card with one field, given by its path, set to a value (unchecked)."""
    head, _, rest = field.partition(".")
    if isinstance(card, list):
        parts = list(card)
        parts[int(head) - 1] = changed(parts[int(head) - 1], rest, value) if rest else value
        return parts
    return card.model_copy(update={head: changed(getattr(card, head), rest, value) if rest else value})


def with_card(library: Library, key: str, changes: Mapping[str, object]) -> Library:
    kind = "personas" if key.startswith("p") else "scenarios"
    card = getattr(library, kind)[key]
    for field, value in changes.items():
        card = changed(card, field, value)
    return replace(library, **{kind: getattr(library, kind) | {key: card}})


def test_the_corpus_is_clean(library: Library) -> None:
    assert [str(f) for f in (*lint(library), *untestable(library.personas))] == []


@pytest.mark.parametrize(
    ("key", "changes", "field", "said"),
    [
        ("p01", {"interests.1": "待填"}, "interests.1", "placeholder"),
        ("p01", {"interests.1": "TODO 写一个爱好"}, "interests.1", "placeholder"),
        ("p01", {"weak_topics.1": "{topic}"}, "weak_topics.1", "placeholder"),
        ("p01", {"weak_topics.1": "待定"}, "weak_topics.1", "placeholder"),
        ("p01", {"weak_topics.1": "聚会时间待定的时候"}, "weak_topics.1", ""),
        ("p01", {"education": "无"}, "education", "placeholder"),
        ("s01", {"speakers.a.trigger": "某某今天生病了"}, "speakers.a.trigger", "placeholder"),
        ("p09", {"name": "谭国祥"}, "name", "that of p01"),
        ("s09", {"title": "联赛抽签"}, "title", "that of s01"),
        ("p24", {"interests.1": "乒乓球，直板正胶，从厂里工会打到现在"}, "card", "word for word"),
        ("p01", {"education": "高二在读"}, "education", "at 68 years"),
        ("p13", {"relationship_status": "离异多年"}, "relationship_status", "hard_facts.relationship_status is 已婚"),
        ("p13", {"hard_facts.occupation": ["飞行员"]}, "hard_facts.occupation", "no entry is part of occupation"),
        ("s01", {"speakers.a.knows.1": "周四拿的片子，右膝半月板伤了"}, "speakers.a.knows.1", ""),
        ("s01", {"speakers.b.knows.1": "听人说他右膝半月板伤了，医生交代"}, "speakers.b.knows", "partner's own side"),
        ("s01", {"title": "右膝半月板伤了医生交代"}, "title/relationship", "both read"),
        ("s01", {"goal": "商量半月板伤了怎么办"}, "goal/tone", "only one side knows"),
        ("s01", {"tone": "先僵后软"}, "goal/tone", "how the chat will turn out"),
        ("s01", {"relationship": "a是厂医，b是学生"}, "relationship", "by its letter"),
        ("s01", {"speakers.b.place": "家里阳台，刚给辣椒浇完水，右膝盖上搭着一袋冰"}, "speakers.b.place", "is the same"),
        ("s01", {"speakers.b.place": "家里客厅，和谭爷爷面对面"}, "speakers.b.place", "remote"),
        ("s01", {"speakers.b.trigger": "6月27号（周五）联赛头一轮"}, "speakers.b.trigger", "is a Saturday"),
        ("s01", {"speakers.b.trigger": "2月30号周一要报到"}, "speakers.b.trigger", "no day of the calendar"),
        ("s01", {"speakers.b.knows.1": "66岁，直板正胶"}, "speakers.b.knows.1", "谭国祥 is 68"),
        ("s01", {"speakers.a.knows.1": "不懂投简历、网上面试这一套"}, "speakers.a.knows", ""),
        ("s01", {"speakers.b.knows.1": "投简历、网上面试这一套他不懂"}, "speakers.b.knows", "weak topic"),
        ("s07", {"relationship": "母子，隔着两个省"}, "relationship", "at least 16 years"),
        ("s04", {"relationship": "大学同班同学"}, "relationship", "at most 5 years"),
        ("s12", {"relationship": "情侣，谈了七年"}, "relationship", "is 已婚"),
        ("s01", {"relationship": "夫妻，结婚七年"}, "relationship", "is 恋爱"),
    ],
)  # fmt: skip
def test_a_fault_is_found_in_its_field(library: Library, key: str, changes: Mapping[str, object], field: str, said: str) -> None:
    found = [f for f in lint(with_card(library, key, changes)) if f.card == key and f.field == field and said in f.message]
    if said:
        assert found
    else:
        assert not [f for f in lint(with_card(library, key, changes)) if f.card == key]


def test_a_copied_card_is_a_near_duplicate(library: Library) -> None:
    twin = library.personas["p01"].model_copy(update={"id": "p99", "name": "谭国瑞"})
    found = lint(replace(library, personas=library.personas | {"p99": twin}))
    assert any(f.card == "p99" and "the same as p01" in f.message for f in found)


def test_a_catchphrase_of_three_people_is_found(library: Library) -> None:
    people = dict(library.personas)
    for key in ("p02", "p03", "p05"):
        habits = people[key].expression_habits.model_copy(update={"catchphrases": ["莫急 莫急"]})
        people[key] = people[key].model_copy(update={"expression_habits": habits})
    assert any(f.card == "p05" and "莫急" in f.message for f in lint(replace(library, personas=people)))


def test_a_memory_of_what_only_the_partner_knows_is_found(library: Library) -> None:
    (owner, partner), memory = next((k, m) for k, m in library.memories.items() if any(
        {k[0], k[1]} == {b.persona_a, b.persona_b} for b in library.bindings.values()))  # fmt: skip
    binding = next(b for b in library.bindings.values() if {owner, partner} == {b.persona_a, b.persona_b})
    sides = library.scenarios[binding.scenario].speakers
    secret = (sides.b if binding.persona_a == owner else sides.a).trigger[:40]
    leaking = memory.model_copy(update={"facts": [secret]})
    found = lint(replace(library, memories=library.memories | {(owner, partner): leaking}))
    assert any(f.card == f"{owner}-{partner}" and partner in f.message for f in found)


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ({"occupation": ["律师", "空姐", "程序员", "厨师", "兽医"]}, "hard_facts.occupation"),
        ({"city": ["北京", "上海", "拉萨", "三亚", "哈尔滨"]}, "hard_facts.city"),  # anything would be true
    ],
)
def test_a_fact_that_the_gate_cannot_test_is_found(library: Library, facts: Mapping[str, object], field: str) -> None:
    cook = library.personas["p22"]
    broken = cook.model_copy(update={"hard_facts": HardFacts.model_validate({**cook.hard_facts.model_dump(), **facts})})
    assert field in {f.field for f in untestable({"p22": broken})}


@pytest.mark.parametrize(
    ("key", "field", "text", "given", "directions"),
    [
        ("s10", "tone", "嘻嘻哈哈里有点舍不得", {"舍不", "不得"}, []),  # a's emotion
        ("s12", "goal", "三年定期这两天到期，商量怎么放", {"三年定", "年定期"}, []),  # a's trigger
        ("s10", "goal", "今晚不睡", set(), []),  # 今晚 stands in b's trigger, and is no secret
        ("s11", "goal", "从手机说到照片", set(), ["说到"]),
        ("s03", "tone", "谈着谈着带出心里话", set(), ["谈着谈着"]),
        ("s09", "tone", "一个冲一个累，慢慢软下来", set(), ["一个冲一个", "慢慢"]),
        ("r01s3", "tone", "先僵，说开了再软下来", set(), ["先", "再"]),
    ],
)
def test_what_gives_a_side_away(library: Library, key: str, field: str, text: str, given: set[str], directions: list[str]) -> None:
    neutral = library.all_scenarios()[key].model_copy(update={"goal": "闲聊", "tone": "平常"})
    told = neutral.model_copy(update={field: text})
    assert given_away(told) == given
    assert stage_directions(told) == directions
