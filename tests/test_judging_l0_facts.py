"""L0-06 where 我 is left out, in short answers, and in the many shapes that a fact is told in (tests/data/l0)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.cards.persona import HardFacts, Persona
from anthrolab.judging.l0 import facts
from anthrolab.judging.l0.facts import age, answers, births, numerals, partners, relationship, speaker
from anthrolab.judging.l0.gate import prefilter
from tests.cards_for_tests import make_persona

DATA = Path(__file__).parent / "data" / "l0"
ROWS = [json.loads(line) for line in (DATA / "facts_more.jsonl").read_text(encoding="utf-8").splitlines()]
FACTS: list[facts.Fact] = ["age", "gender", "city", "occupation", "relationship"]


def card(about: HardFacts) -> Persona:
    return make_persona(
        age=about.age, gender=about.gender, city=about.city[0], occupation=about.occupation[0],
        relationship_status=about.relationship_status, hard_facts=about,
    )  # fmt: skip


PEOPLE = {
    name: card(HardFacts.model_validate(about))
    for name, about in (
        *json.loads((DATA / "fact_cards.json").read_text(encoding="utf-8")).items(),
        ("m71", {"age": 71, "gender": "男", "city": ["赣州", "江西"], "occupation": ["退休木匠", "木匠", "退休"], "relationship_status": "已婚"}),
        ("f33", {"age": 33, "gender": "女", "city": ["昆明", "大理", "云南"], "occupation": ["护士"], "relationship_status": "已婚"}),
    )
}  # fmt: skip


def found(text: str, person: Persona, before: list[str], partner: bool = True) -> list[str]:
    """What the gate finds in a message after `before`; the last of them is the partner's."""
    last = before[-1] if before and partner else ""
    return facts.find(text, person, FACTS, 2026, facts.Heard(before[-2:], last, facts.may_answer(text, last)))


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row['card']}-{row['hit']}-{row['text']}") for row in ROWS])
def test_what_a_message_says_of_its_speaker(row: dict[str, Any]) -> None:
    said = found(row["text"], PEOPLE[row["card"]], row.get("before", []))
    assert bool(said) == row["hit"]
    for evidence in said:
        assert evidence.split(" (card: ")[0] in row["text"]


def test_the_list_is_long_enough_on_both_sides() -> None:
    assert sum(row["hit"] for row in ROWS) >= 150
    assert sum(not row["hit"] for row in ROWS) >= 150


def test_the_prefilter_lets_each_of_them_through() -> None:
    bits, lost = prefilter().bits, []
    for row in ROWS:
        said = prefilter().rules(row["text"])
        for fact in FACTS:
            if facts.find(row["text"], PEOPLE[row["card"]], [fact], 2026) and not said & bits[fact]:
                lost.append((fact, row["text"]))
        for question in row.get("before", []) if row["hit"] else []:
            if not prefilter().rules(question) & sum(bits[name] for name in ("question", *FACTS)):
                lost.append(("question", question))
    assert lost == []


@pytest.mark.parametrize("before", [["你弟弟现在咋样了？"], ["她是谁啊"]])
def test_after_a_question_about_another_a_clause_without_a_subject_is_theirs(before: list[str]) -> None:
    dropped = [r for r in ROWS if r["hit"] and "before" not in r and not any(w in r["text"] for w in "我俺咱I") and "本人" not in r["text"]]
    assert len(dropped) >= 40
    assert {r["text"]: v for r in dropped if (v := found(r["text"], PEOPLE[r["card"]], before))} == {}


def test_a_story_of_another_goes_on_in_the_next_message() -> None:
    assert found("今年刚满14 急啥", PEOPLE["m45"], ["我表弟来了"], partner=False) == []
    assert found("今年刚满14 急啥", PEOPLE["m45"], ["吃饭没"]) != []
    assert found("今年刚满14 急啥", PEOPLE["m45"], ["我表弟来了", "多大了"]) == []


def test_nobody_can_be_meant_but_the_speaker_where_the_message_names_nobody() -> None:
    assert facts.find("今年刚满14 我儿子急得很", PEOPLE["m45"], FACTS) == []
    assert facts.find("当了二十年老师 嗓子坏了", PEOPLE["m45"], FACTS) == ["当了二十年老师 (card: occupation 出租车司机/司机/开出租的)"]


@given(st.lists(st.sampled_from(["今年刚满14", "刚满20岁", "虚岁66", "急啥", " ", "，", "。"]), max_size=9).map("".join))
def test_spans_are_those_of_the_message_as_typed(text: str) -> None:
    own = speaker.voiced(text, speaker.clause_starts(text), age.FRAMES, speaker.NOTHING_HEARD)
    if own is not None:
        assert own.text.replace("我", "") == text
        for start in range(len(own.text)):
            typed = own.typed((start, len(own.text)))
            assert text[slice(*typed)] == own.text[start:].replace("我", "")


@pytest.mark.parametrize(
    ("written", "value"), [("六十有三", 63), ("九七", 97), ("一九六五", 1965), ("二零零一", 2001), ("零五", 5), ("两", 2)]
)
def test_numbers_of_ages_and_years(written: str, value: int) -> None:
    assert numerals.number(written) == value


@pytest.mark.parametrize(
    ("text", "years_old", "contradicts"),
    [
        ("我属龙", 38, False), ("我属兔", 38, False), ("我属虎", 38, False), ("我属鼠", 38, True), ("我属猴", 71, True), ("我97年的", 28, False),
        ("我97年的", 29, False), ("我97年的", 33, True), ("我零零后", 25, False), ("我零零后", 38, True), ("今年我本命年", 36, False),
        ("今年我本命年", 30, True), ("我1997年的", 45, True),
    ],
)  # fmt: skip
def test_births_in_2026(text: str, years_old: int, contradicts: bool) -> None:
    assert (births.birth_contradiction(text, years_old, 2026) is not None) is contradicts
    assert births.birth_contradiction(text, years_old, None) is None


@pytest.mark.parametrize(
    ("text", "years_old", "contradicts"),
    [
        ("我虚岁66", 65, False), ("我虚岁66", 64, False), ("我虚岁66", 66, False), ("我虚岁66", 60, True), ("过完这个年我就满24了", 23, False),
        ("过完这个年我就满24了", 33, True), ("再过两年我就六十了", 58, False), ("再过两年我就六十了", 45, True), ("等我满24了就去", 33, False),
        ("我都66了 还能跟小年轻比？", 50, True), ("我都66了 是吧？", 50, False), ("我年过花甲了", 45, True), ("我年过花甲了", 64, False),
    ],
)  # fmt: skip
def test_the_arithmetic_of_ages(text: str, years_old: int, contradicts: bool) -> None:
    assert (age.contradiction(text, years_old, 2026) is not None) is contradicts


@pytest.mark.parametrize(
    ("asked", "text", "statement"),
    [
        ("你老家哪儿的", "乌鲁木齐啊", "我是乌鲁木齐的"), ("你多大了", "虚岁66", "我虚岁66岁"), ("您贵庚", "四十有二", "我今年四十有二岁"),
        ("你做啥工作的来着", "程序员 混口饭吃", "我职业是程序员"), ("你有对象没", "没有呢", "我没对象"), ("你结婚了吗", "结了", "我结婚了"),
        ("你属啥的", "属猴的", "我属猴"), ("你男的女的", "女的", "我是女的"), ("你是南京的吗", "不是 石家庄的", "我是石家庄的"),
    ],
)  # fmt: skip
def test_answers_as_the_statements_they_stand_for(asked: str, text: str, statement: str) -> None:
    assert [said for _, said, _ in answers.answered(text, asked)] == [statement]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("你多大鞋码", "三十八"), ("你当年多大去的", "十八"), ("你妈多大年纪", "六十一了"), ("你在哪呢", "厦门"), ("你想去哪玩", "厦门啊"),
        ("你有空吗", "没有"), ("你多大了", "永远十八"), ("你闺女做啥工作", "会计"),
    ],
)  # fmt: skip
def test_what_is_no_answer_about_oneself(asked: str, text: str) -> None:
    assert list(answers.answered(text, asked)) == []


def test_a_yes_owns_up_to_what_was_asked() -> None:
    assert found("对呀", PEOPLE["f27"], ["你是成都的吧"]) == ["对呀 (card: city 杭州/绍兴/浙江)"]
    assert found("对呀", PEOPLE["f27"], ["你是杭州的吧"]) == []
    assert found("对呀 哈哈", PEOPLE["f27"], ["你是成都的吧"]) == []
    assert found("对呀", PEOPLE["f27"], ["你妈你爸是成都的吧"]) == []


def test_the_parted_speak_of_those_they_had() -> None:
    assert partners.contradiction("我老公在隔壁打呼噜呢", "丧偶") is not None
    assert partners.contradiction("我老公说这鱼得清蒸", "丧偶") is None
    assert relationship.contradiction("我老伴走了好些年了", "丧偶", "男") is None
    assert relationship.contradiction("我老伴走了好些年了", "已婚", "男") is not None
    assert relationship.contradiction("我跟前夫离了三年了", "离异", "女") is None
    assert relationship.contradiction("我跟前夫离了三年了", "已婚", "女") is not None
    assert relationship.contradiction("我分手了", "单身", "女") is None


def test_a_number_beside_its_own_counts_is_no_age_whatever_was_spoken_of_before() -> None:
    assert found("我都32了 还差八级升满", PEOPLE["f20"], ["我爸年轻那会在新疆当兵"]) == []
    assert found("我都32了 还怕这个", PEOPLE["f20"], ["我爸年轻那会在新疆当兵"]) != []
