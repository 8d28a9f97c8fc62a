"""Each rule-decided L0 constraint on hits and near-misses written as people type (tests/data/l0)."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from anthrolab.cards.persona import HardFacts, Persona
from anthrolab.judging.l0 import L0Result, check
from anthrolab.judging.l0.facts import age, city, gender, occupation, places, relationship
from anthrolab.runtime.dialogue import Dialogue, Message, Participant, Speaker
from tests.cards_for_tests import make_persona

DATA = Path(__file__).parent / "data" / "l0"
START = datetime(2026, 3, 6, 20, 31)
FACTS = {
    name: HardFacts.model_validate(facts)
    for name, facts in json.loads((DATA / "fact_cards.json").read_text(encoding="utf-8")).items()
}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def card(facts: HardFacts) -> Persona:
    return make_persona(
        age=facts.age, gender=facts.gender, city=facts.city[0], occupation=facts.occupation[0],
        relationship_status=facts.relationship_status, hard_facts=facts,
    )  # fmt: skip


def chat(messages: list[tuple[float, Speaker, str]]) -> Dialogue:
    """A dialogue of (seconds after the start, speaker, text); a is evaluated."""
    return Dialogue(
        dialogue_id="d",
        evaluated_role="a",
        speakers={"a": Participant(name="林晓雯", persona="p01"), "b": Participant(name="周子航")},
        messages=[
            Message(speaker=speaker, content=text, at=START + timedelta(seconds=at), opener=False)
            for at, speaker, text in messages
        ],
    )


def gate_text(text: str, before: list[str], facts: HardFacts | None = None) -> L0Result:
    """The gate on a's message after the partner's messages `before`."""
    messages: list[tuple[float, Speaker, str]] = [(60 * i, "b", said) for i, said in enumerate(before)]
    dialogue = chat([*messages, (60 * len(before), "a", text)])
    return check(dialogue, {"a": card(facts)} if facts else {})


def of(result: L0Result, constraint: str) -> list[tuple[int, str]]:
    return [(v.message_index, v.evidence) for v in result.violations if v.id == constraint]


@pytest.mark.parametrize("name", ["identity", "medium", "presence", "facts", "time_logic", "repetition"])
def test_the_lists_have_enough_hits_and_near_misses(name: str) -> None:
    listed = rows(f"{name}.jsonl")
    assert sum(row["hit"] for row in listed) >= 25
    assert sum(not row["hit"] for row in listed) >= 25


@pytest.mark.parametrize(
    ("constraint", "row"),
    [
        pytest.param(constraint, row, id=f"{name}-{row['hit']}-{row['text']}")
        for constraint, name in (("L0-01", "identity"), ("L0-02", "medium"), ("L0-03", "presence"))
        for row in rows(f"{name}.jsonl")
    ],
)
def test_what_a_single_message_claims(constraint: str, row: dict[str, Any]) -> None:
    before = row.get("before", [])
    found = of(gate_text(row["text"], before), constraint)
    assert bool(found) == row["hit"]
    for index, evidence in found:
        assert index == len(before)
        assert evidence and evidence in row["text"]


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{row['card']}-{row['hit']}-{row['text']}") for row in rows("facts.jsonl")]
)
def test_first_person_facts_against_the_card(row: dict[str, Any]) -> None:
    found = of(gate_text(row["text"], row.get("before", []), FACTS[row["card"]]), "L0-06")
    assert bool(found) == row["hit"]
    if found:
        assert found[0][1].split(" (card: ")[0] in row["text"]


@pytest.mark.parametrize(
    "row", [pytest.param(r, id=f"{r['hit']}-{r['messages'][-1][1]}") for r in rows("time_logic.jsonl")]
)
def test_long_activities_take_their_time(row: dict[str, Any]) -> None:
    found = of(check(chat([(at, "a", text) for at, text in row["messages"]]), {}), "L0-08")
    assert bool(found) == row["hit"]
    if found:
        assert found[0][0] == len(row["messages"]) - 1
        assert row["messages"][0][1] in found[0][1]


def test_the_partner_does_not_finish_my_shower() -> None:
    assert of(check(chat([(0, "a", "我去洗澡了"), (5, "b", "洗完了")]), {}), "L0-08") == []
    assert check(chat([(0, "b", "我去洗澡了"), (5, "a", "洗完了")]), {}).partner_violations == ()


@pytest.mark.parametrize(
    "row", [pytest.param(r, id=f"{r['hit']}-{r['messages'][-1]}") for r in rows("repetition.jsonl")]
)
def test_exact_copies(row: dict[str, Any]) -> None:
    messages: list[tuple[float, Speaker, str]] = []
    for i, line in enumerate(row["messages"]):
        speaker, _, text = line.partition(":")
        messages.append((30 * i, "a" if speaker == "a" else "b", text))
    assert [index for index, _ in of(check(chat(messages), {}), "L0-05")] == ([row["at"]] if row["hit"] else [])


@pytest.mark.parametrize("facts", FACTS.values(), ids=FACTS.keys())
def test_ordinary_messages_are_left_alone(facts: HardFacts) -> None:
    benign = (DATA / "benign.txt").read_text(encoding="utf-8").splitlines()
    assert len(set(benign)) >= 150
    flagged = {text: gate_text(text, [], facts).violations for text in benign}
    assert {text: v for text, v in flagged.items() if v} == {}


@pytest.mark.parametrize("facts", FACTS.values(), ids=FACTS.keys())
def test_a_person_may_say_all_that_the_card_says(facts: HardFacts) -> None:
    said = [f"我今年{facts.age}了", f"我{facts.age}岁", f"我都{facts.age}岁的人了"]
    said += [
        sentence.format(place)
        for place in facts.city
        for sentence in ("我是{}人", "我住{}", "我在{}上班", "我老家{}的")
    ]
    said += [
        sentence.format(work)
        for work in facts.occupation
        for sentence in ("我是{}", "我做{}的", "我当{}的", "我是一名{}")
    ]
    assert {text: v for text in said if (v := of(gate_text(text, [], facts), "L0-06"))} == {}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("32", 32),
        ("三十二", 32),
        ("十八", 18),
        ("三十", 30),
        ("十", 10),
        ("廿七", 27),
        ("廿", 20),
        ("三二", 32),
        ("九十九", 99),
    ],
)
def test_numbers_as_people_write_them(written: str, value: int) -> None:
    assert age.number(written) == value


@pytest.mark.parametrize(
    ("stated", "own", "possible"),
    [
        ("浙江", ["杭州"], True), ("杭州", ["杭州西湖区"], True), ("杭州", ["浙江"], True), ("宁波", ["杭州", "浙江"], False),
        ("佛山", ["顺德", "广东"], True), ("昆山", ["苏州"], True), ("苏州", ["南京"], False), ("东北", ["佳木斯"], True),
        ("东北", ["西安"], False), ("江浙沪", ["上海"], True), ("浦东", ["上海"], True), ("日本", ["上海"], False),
        ("上海", ["某个不认识的镇"], True),
    ],
)  # fmt: skip
def test_which_places_may_be_the_same(stated: str, own: list[str], possible: bool) -> None:
    assert places.may_be_the_same(stated, own) is possible


def test_a_birth_decade_needs_the_year_of_the_chat() -> None:
    assert age.contradiction("我80后", 27, 2026) == (0, 4)
    assert age.contradiction("我80后", 27, None) is None
    assert age.contradiction("我90后", 27, 2026) is None


def test_statuses_exclude_each_other_only_where_they_must() -> None:
    assert relationship.contradiction("我单身", "离异", "男") is None
    assert relationship.contradiction("我单身", "已婚", "男") is not None
    assert relationship.contradiction("我老婆今天加班", "恋爱", "男") is None
    assert relationship.contradiction("我没有女朋友", "恋爱", "女") is None


def test_each_fact_reads_only_its_own_statements() -> None:
    text = "我今年32了 是个大男人"
    assert age.contradiction(text, 27, None) is not None
    assert city.contradiction(text, ["杭州"]) is None
    assert occupation.contradiction(text, ["会计"]) is None
    assert gender.contradiction("我们男人都这样", "女") == (0, 4)
