"""Whether words of the person state a thing of themselves: asked, supposed, reported, denied, joked or of another time, they do not.

The five hard facts are read by the rules of the gate (`judging.l0.facts.states`), which know most turns of phrase, and must
besides be said of 我; what is not read as a statement is none. Precision comes first: what is missed here still stands in the chat itself.
"""

import re
from collections.abc import Callable
from typing import get_args

from anthrolab.cards.persona import RelationshipStatus
from anthrolab.judging.l0 import facts, framing
from anthrolab.judging.l0.facts.numerals import number
from anthrolab.judging.l0.facts.places import REGIONS, known_places
from anthrolab.live.context import Kind, Reason
from anthrolab.live.meaning import NUMBER, meant
from anthrolab.live.moment import mood, place, relationship
from anthrolab.live.names import name
from anthrolab.live.utterance import OTHERS, Uttered

VALUE_CHARS = 12
"""Characters of a value that is shown outside its quotation."""

_NUMBER = re.compile(NUMBER)
_ROUGHLY = re.compile(
    "虚岁|虚|快|奔|马上|过完|过了?年|过个年|翻过年|开年|明年|后年|下个?月|再过|再有|就要|该|将近|接近|不到|没到|没满|左右|大概|大约|差不多|出头|多岁|几岁|来岁|开外|上下|应该|好像|对外|心理|号称"
)
_AGE_ENDS = re.compile(r"\s*(?:周?岁)?(?:的人|整|years? old|yo)?(?:了|啦|喽|咯|啊|呀|哦|噢|哈|呢|嘛|哒|滴)*(?=$|[\s，,。.！!~～…]|[还都也就才没怎]|\W)", re.IGNORECASE)
_ORIGIN = re.compile("老家|从小|打小|自小|长大|出生|生在|土生土长|土著|祖籍|人(?![都也])|的$|的[，,。！!\\s]|来的|本地|我们|咱们")
_MOVED = re.compile(r"\s*(我)?(?:刚刚?|才|已经|最近|这周|上周|上个?月|今年|前阵子|\s)*(?:搬|调|转)(?:到|来|回)了?")
_MOVED_ENDS = re.compile(r"(?:市|这边)?(?:来|住|工作|上班)?了?[啊呀啦呢嘛哈]?[。！!\s，,~～…]*")
_LIVES = re.compile(r"(?:市|省|县)?(?:[\u4e00-\u9fff]{1,2}区)?(?:这边|市区|郊区)?(?:上班|工作|打工|定居|生活|读书|上学|上大学|读研|读博|念书|教书|开店|做生意|租房|待|住)?(?:着|了)?(?:(?:快|有|都)?[\d一二两三四五六七八九十几好多半]+年(?:多)?了?)?(?:的|呢|啊|呀|哦|嘛|哈|啦)*[\s，,。.！!~～…]*")
_AS_WORK = ("我是{}", "我是一名{}", "我{}的", "我{}了", "我{}")
_WORK_ENDS = re.compile(r"(?:的(?! )|了|呢|啊|呀|哦|嘛|哈|啦|来着|而已|一枚|一个|[^年]{1,4}年了?|(?<=[上读念])学)*(?:$|[\s，,。.！!~～…])")
_GOES_AGAINST = re.compile(r"^\s*就[不没]|我(?:也|都|肯定|一定|绝对|就|早)(?:不敢|会|不会|要|得|想|该|生气|喜欢|愿意|嫁|娶)|你\s*(?:就)?\s*是(?!不是|做|干|哪|什)")
"""What follows a supposition without an if: 我是男的我也喜欢她; and the giving out of parts: 我是老师 你是学生."""
_STATUS_ENDS = re.compile(r"(?:狗|汪|人士|一枚|一条|的|了|呢|啊|呀|哦|嘛|哈|啦|着|好|都|快|已经|有|[\d一两二三四五六七八九十几多]+年)*(?:$|[\s，,。.！!~～…])")


def unstated(kind: Kind, said: Uttered) -> Reason | None:
    """Why these words do not state this value of the person; None if they do. Not for `said` and `topic`."""
    if len(said.value) > VALUE_CHARS + 8 * (kind == "name"):
        return "too long"
    if reason := said.frame():
        return reason
    unread: Reason | None = "not stated of themselves" if said.torn() else _READERS[kind](said)
    return unread and (said.of_other() or unread)


def _age(said: Uttered) -> Reason | None:
    if not _NUMBER.fullmatch(said.value) or not 6 <= number(said.value) <= 110:
        return "no value of this kind"
    if _ROUGHLY.search(framing.sentence_before(said.text, said.start) + said.value + said.closes):
        return "not exact"
    rest = said.text[said.end :]
    if not _AGE_ENDS.match(rest.lstrip() if re.match(r"\s+周?岁", rest) else rest):
        return "not stated of themselves"
    return None if said.states("age", number(said.value)) else "not stated of themselves"


def _gender(said: Uttered) -> Reason | None:
    if said.value not in ("男", "女"):
        return "no value of this kind"
    return None if said.states("gender", said.value) and not _GOES_AGAINST.search(said.text[said.end :]) else "not stated of themselves"


def _city(said: Uttered) -> Reason | None:
    if said.value not in known_places() and said.value not in REGIONS:
        return "no value of this kind"
    if _moved(said):
        return None
    # Where one is from is not where one lives.
    if _ORIGIN.search(said.opens + said.value + said.closes) or not _LIVES.fullmatch(said.closes):
        return "not stated of themselves"
    return None if said.states("city", said.value) else "not stated of themselves"


def _moved(said: Uttered) -> bool:
    """The speaker has just moved to the value, which the gate, with its one card for a whole chat, need not know."""
    if not (m := _MOVED.fullmatch(said.opens)) or not _MOVED_ENDS.fullmatch(said.closes):
        return False
    earlier = framing.sentence_before(said.text, said.start - len(said.opens))
    if framing.PAST.search(earlier) or framing.FUTURE.search(earlier):
        return False
    if m[1]:
        return True
    return said.mine() and not OTHERS.search(" ".join([*said.before, said.text])) and not said.heard.is_about_another(False)


def _occupation(said: Uttered) -> Reason | None:
    if len(said.value) < 2 or not any(facts.states(form.format(said.value), "occupation", said.value) for form in _AS_WORK):
        return "no value of this kind"
    rest = said.text[said.end :]
    if not _WORK_ENDS.match(rest) or _GOES_AGAINST.search(rest):
        return "not stated of themselves"
    return None if said.states("occupation", said.value) else "not stated of themselves"


def _relationship_status(said: Uttered) -> Reason | None:
    if not (own := meant(said.value)):
        return "no value of this kind"
    stated = {status for status in get_args(RelationshipStatus) if said.states("relationship", status)}
    if _GOES_AGAINST.search(said.text[said.end :]):
        return "not stated of themselves"
    return None if stated == own and _STATUS_ENDS.match(said.text[said.end :]) else "not stated of themselves"


_READERS: dict[Kind, Callable[[Uttered], Reason | None]] = {
    "name": name, "age": _age, "gender": _gender, "city": _city, "occupation": _occupation,
    "relationship_status": _relationship_status, "relationship": relationship, "place": place, "mood": mood,
}  # fmt: skip
