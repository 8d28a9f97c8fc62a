"""What the person sets right or takes away by hand stays so: in other figures, as another kind, in a quotation, after going back."""

import pytest

from anthrolab.live.context import (
    EMPTY,
    HAND_CHARS,
    Context,
    Inferred,
    corrected,
    merged,
    refreshed,
    rewound,
    without,
)
from anthrolab.runtime.prompt import chat_system
from tests.cards_for_tests import make_seats

SEAT = make_seats()["a"]


def said(kind: str, value: str, message: int, quote: str | None = None) -> Inferred:
    return Inferred.model_validate({"kind": kind, "value": value, "quote": quote or value, "message": message})


def values(context: Context) -> list[tuple[str, str]]:
    return [(e.kind, e.value) for e in context.entries]


def test_a_value_set_by_hand_is_never_changed() -> None:
    context = corrected(Context(entries=[said("age", "25", 0)], upto=1), "age", " 26 ")
    assert values(context) == [("age", "26")] and context.earlier == [said("age", "25", 0)]
    after, refused = merged(context, [said("age", "25", 5)], 6)
    assert after.entries == context.entries and [r.reason for r in refused] == ["set by hand"]


def test_what_was_taken_away_by_hand_never_comes_back() -> None:
    entry = said("city", "成都", 3, "我在成都上班")
    context = without(Context(entries=[entry], upto=4), entry)
    assert (context.entries, context.removed) == ([], [entry])
    claims = [said("city", "成都", 7, "我住成都"), said("said", "我在成都上班", 3), said("said", "我都说了我在成都", 9), said("age", "25", 3)]
    after, refused = merged(context, claims, 10)
    assert after.entries == [] and [r.reason for r in refused] == ["taken away by hand"] * 4
    other, _ = merged(context, [said("city", "杭州", 8)], 10)
    assert values(other) == [("city", "杭州")], "another value is another matter"
    assert values(corrected(context, "city", "成都")) == [("city", "成都")] and corrected(context, "city", "成都").removed == []


AGAIN: list[tuple[tuple[str, str, str], tuple[str, str, str]]] = [
    (("age", "25", "我今年25岁"), ("age", "二十五", "我今年二十五岁")), (("age", "25", "我今年25岁"), ("age", "２５", "我今年２５岁")),
    (("age", "25", "我今年25岁"), ("said", "我今年二十五岁了", "我今年二十五岁了")), (("age", "三十二", "我三十二了"), ("said", "都32的人了", "都32的人了")),
    (("relationship_status", "单身", "我单身"), ("relationship_status", "没对象", "我没对象")),
    (("relationship_status", "单身", "我单身"), ("said", "我一直没对象", "我一直没对象")), (("gender", "女", "我是女生"), ("said", "我就是个女的", "我就是个女的")),
    (("city", "成都", "我在成都上班"), ("city", "成都市", "我住成都市")), (("city", "成都", "我在成都上班"), ("place", "成都", "我在成都")),
    (("said", "我对花生过敏", "我对花生过敏"), ("topic", "花生过敏", "又花生过敏了")), (("said", "我对花生过敏", "我对花生过敏"), ("topic", "花生", "花生")),
    (("said", "我对花生过敏", "我对花生过敏"), ("said", "花生我过敏，吃不了", "花生我过敏，吃不了")), (("topic", "花生过敏", "花生过敏"), ("said", "我对花生过敏的", "我对花生过敏的")),
    (("said", "我在成都上班", "我在成都上班"), ("city", "成都", "我住成都")), (("mood", "累", "我好累"), ("said", "我今天真的好累", "我今天真的好累")),
    (("name", "小鱼", "我叫小鱼"), ("said", "叫我小鱼儿吧", "叫我小鱼儿吧")),
]  # fmt: skip


@pytest.mark.parametrize(("gone", "new"), AGAIN, ids=lambda e: f"{e[0]} {e[1]}")
def test_what_was_taken_away_does_not_come_back_in_other_figures_or_as_another_kind(gone: tuple[str, str, str], new: tuple[str, str, str]) -> None:
    old = said(gone[0], gone[1], 0, gone[2])
    after, refused = merged(without(Context(entries=[old], upto=1), old), [said(new[0], new[1], 6, new[2])], 7)
    assert after.entries == [] and [r.reason for r in refused] == ["taken away by hand"]


def test_what_says_another_thing_comes_in_although_something_of_its_kind_was_taken_away() -> None:
    for gone, new in [
        (said("age", "25", 0), said("age", "二十六", 6)), (said("said", "我对花生过敏", 0), said("said", "我爱吃花生", 6)), (said("mood", "累", 0), said("mood", "开心", 6)),
        (said("city", "成都", 0), said("said", "我养了只猫", 6)), (said("gender", "女", 0), said("relationship_status", "有女朋友", 6)),
    ]:  # fmt: skip
        after, _ = merged(without(Context(entries=[gone], upto=1), gone), [new], 7)
        assert after.entries == [new]


def test_a_quotation_that_holds_what_was_taken_away_is_not_told_on() -> None:
    city, age = said("city", "兰州", 0, "我在兰州上班，今年25岁"), said("age", "25", 0, "我在兰州上班，今年25岁")
    known = Context(entries=[city, age, said("place", "公司", 3, "在公司，兰州下雨了")])
    assert "（说过“我在兰州上班，今年25岁”）" in chat_system(refreshed(SEAT, known))
    z = chat_system(refreshed(SEAT, without(known, city)))
    assert "年龄25岁\n" in z and "先前说自己在哪：“公司”\n" in z and "兰州" not in z


def test_a_value_set_by_hand_is_not_gainsaid_by_the_words_it_replaced() -> None:
    context = corrected(Context(entries=[said("age", "25", 0, "我今年25岁")], upto=1), "age", "26")
    claims = [said("said", "我今年25岁", 0), said("topic", "今年25岁", 0), said("said", "都说了我25", 4), said("said", "我是二十五岁的人了", 5)]
    after, refused = merged(context, claims, 6)
    assert values(after) == [("age", "26")] and [r.reason for r in refused] == ["set by hand"] * 4
    nurse = corrected(Context(entries=[said("occupation", "护士", 0, "我是护士 天天倒班")], upto=1), "occupation", "医生")
    after, refused = merged(nurse, [said("said", "天天倒班", 0), said("said", "天天倒班", 4)], 5)
    assert [e.message for e in after.of("said")] == [4] and [r.reason for r in refused] == ["set by hand"]
    fresh, refused = merged(corrected(EMPTY, "relationship_status", "已婚"), [said("said", "我单身好多年了", 2), said("said", "我对花生过敏", 2)], 3)
    assert values(fresh) == [("relationship_status", "已婚"), ("said", "我对花生过敏")] and len(refused) == 1


def test_after_going_back_another_message_in_the_same_place_is_read_afresh() -> None:
    gone = said("city", "成都", 3, "我在成都上班")
    back = rewound(without(Context(entries=[gone], upto=4), gone), 3)
    after, refused = merged(back, [said("age", "25", 3, "我今年25")], 4)
    assert values(after) == [("age", "25")] and refused == []
    again, refused = merged(back, [said("city", "成都", 3, "我住成都")], 4)
    assert again.entries == [] and [r.reason for r in refused] == ["taken away by hand"]


def test_a_correction_must_have_something_in_it_and_an_entry_must_be_there() -> None:
    for value in (" \n", "长" * (HAND_CHARS + 1)):
        with pytest.raises(ValueError, match=f"city: has .* characters; write 1 to {HAND_CHARS}"):
            corrected(EMPTY, "city", value)
    with pytest.raises(ValueError, match="there is no entry"):
        without(EMPTY, said("age", "25", 0))


def test_going_back_in_the_chat_takes_back_what_was_inferred_after_and_brings_back_what_that_replaced() -> None:
    first, later = said("city", "北京", 0), said("city", "杭州", 6)
    context, _ = merged(Context(entries=[first], upto=2), [later, said("said", "我怕狗", 7), said("age", "25", 1)], 8)
    context = corrected(context, "name", "小鱼")
    back = rewound(context, 4)
    assert sorted(values(back)) == [("age", "25"), ("city", "北京"), ("name", "小鱼")] and back.upto == 4 and back.earlier == []
    assert rewound(context, 8) == context
    taken = rewound(without(context, later), 4)
    assert ("city", "杭州") not in values(taken) and taken.removed == [later.model_copy(update={"message": None})]
