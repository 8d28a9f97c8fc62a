"""Whether words of the person state a thing of themselves: asked, supposed, reported, denied, joked or of another time, they do not.

The five hard facts are read by the rules of the gate (`judging.l0.facts.states`), which know most turns of phrase; what they do
not read as a statement is none. Precision comes first: what is missed here still stands in the chat itself.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

from anthrolab.cards.persona import RelationshipStatus
from anthrolab.judging.l0 import facts, framing
from anthrolab.judging.l0.facts.numerals import number
from anthrolab.judging.l0.facts.places import REGIONS, known_places
from anthrolab.judging.l0.facts.speaker import PARTNERS, PEOPLE, as_me
from anthrolab.live.context import Kind, Reason

VALUE_CHARS = 12
"""Characters of a value that is shown outside its quotation."""

_NUMBER = re.compile(r"\d{1,3}|(?:[一二三四五六七八九]?十|廿)[一二三四五六七八九]?|[二三四五六七八九][一二三四五六七八九]")
_NOT = re.compile(r"不是|没在|不在|没有|不算|并非|(?<![特区个分级性告])别|不要|不想|又不|才不|从不|不叫|不姓|\bnot\b|n['’]t\b", re.IGNORECASE)
_MADE_TO = re.compile("[让叫要逼劝催求盼]我.")
_JOKE = re.compile(
    "哈哈|嘿嘿|嘻嘻|呵呵|😂|🤣|😏|😜|🤪|🐶|狗头|旺柴|坏笑|偷笑|doge|hhh|2333|lol|开玩笑|逗你|骗你的|才怪|是是是|对对对|行行行|好好好|可真是|我可太|满意了吧|行了吧", re.IGNORECASE
)
_ROUGHLY = re.compile(
    "虚岁|虚|快|奔|马上|过完|过了?年|过个年|翻过年|开年|明年|后年|下个?月|再过|再有|就要|该|将近|接近|不到|没到|没满|左右|大概|大约|差不多|出头|多岁|几岁|来岁|开外|上下|应该|好像"
)
_ORIGIN = re.compile("老家|从小|打小|自小|长大|出生|生在|土生土长|土著|祖籍|人(?![都也])|的$|的[，,。！!\\s]|来的|本地|我们|咱们")
_MOVED = re.compile(r"\s*(我)?(?:刚刚?|才|已经|最近|这周|上周|上个?月|今年|前阵子|\s)*(?:搬|调|转)(?:到|来|回)了?")
_MOVED_ENDS = re.compile(r"(?:市|这边)?(?:来|住|工作|上班)?了?[啊呀啦呢嘛哈]?[。！!\s，,~～…]*")
_AS_WORK = ("我是{}", "我是一名{}", "我{}的", "我{}了", "我{}")
_CALLED_IN = re.compile("^(?:不|得|了|个|过|他|她|它|你|人|车|外卖|快递|滴滴|代驾|跑腿|救护|警察|保安|服务|闪送|醒|苦|好|什么|啥)")
_WORN = re.compile(r"[\u4e00-\u9fff·]{1,8}|[A-Za-z][A-Za-z .'-]{0,18}[A-Za-z]")
_TIES = re.compile("老公|老婆|媳妇|对象|男朋友|女朋友|男友|女友|情人|爸|妈|爹|娘|爷|奶|祖宗|主人|奴|儿子|女儿|宝贝|偶像|粉丝|上帝|神|管理员|开发者|老板|系统|助手|AI|机器人", re.IGNORECASE)
"""What one calls oneself or the other in love, in scorn or to give orders: no name, and no tie that is told on."""
_MOODS = re.compile(
    "开心|高兴|快乐|难过|伤心|难受|烦|累|困死|生气|气死|火大|郁闷|焦虑|慌|害怕|爽|激动|紧张|无聊|委屈|崩溃|emo|心情|孤独|孤单|想哭|哭了|失落|丧|压力|不爽|憋屈|舒服|放松|轻松|失望|绝望|郁|烦躁|happy|sad|tired|upset",
    re.IGNORECASE,
)
_OURS = re.compile("(?:我俩|我们俩?|我和你|我跟你)(?:都|可|也|就|毕竟|好歹|还|算|不愧)*是[^你他她]{0,4}$")
_TO_YOU = re.compile("^\\s*我(?:可|就|也)?是你(?:的)?[^，,]{0,4}$")
_HERE = r"(?:在|到了?|回到?了?|堵在|困在|待在|躺在|坐在)"
_OTHERS = re.compile("|".join([*PEOPLE, *PARTNERS]))


@dataclass(frozen=True)
class Uttered:
    """A message of the person, and where in it the claimed value stands: `text` in half-width forms with 我 for 俺 and 咱, of
    the length it was typed in. `before`: up to two contents before it, `asked`: the last of these if it is the persona's.
    `year`: the calendar year of the chat."""

    text: str
    start: int
    end: int
    before: Sequence[str] = ()
    asked: str = ""
    year: int | None = None

    @classmethod
    def of(cls, content: str, start: int, end: int, before: Sequence[str], asked: str, year: int | None) -> "Uttered":
        """With the message as typed."""
        return cls(as_me(framing.plain(content)), start, end, before, asked, year)

    @property
    def value(self) -> str:
        """The claimed value as it stands in the message."""
        return self.text[self.start : self.end]

    @property
    def clause(self) -> str:
        """The clause around the value."""
        return framing.clause_before(self.text, self.start) + self.value + framing.clause_after(self.text, self.end)

    @property
    def heard(self) -> facts.Heard:
        """What stands before the message, as the gate's rules want it."""
        return facts.Heard(self.before, self.asked, bool(self.asked) and facts.may_answer(self.text, self.asked))

    def states(self, fact: facts.Fact, value: int | str) -> bool:
        """The gate's rules read this value out of the whole message."""
        return facts.states(self.text, fact, value, self.year, self.heard)

    def moved(self) -> bool:
        """The speaker has just moved to the value, which the gate, with its one card for a whole chat, need not know."""
        before, after = framing.clause_before(self.text, self.start), framing.clause_after(self.text, self.end)
        if not (m := _MOVED.fullmatch(before)) or not _MOVED_ENDS.fullmatch(after):
            return False
        return bool(m[1]) or not (_OTHERS.search(" ".join([*self.before, self.text])) or self.heard.is_about_another(False))

    def frame(self) -> Reason | None:
        """Why nothing is stated here, whatever it is."""
        if framing.asked(self.text, self.end):
            return "a question"
        clause = framing.clause_before(self.text, self.start)
        opens = self.start - len(clause)
        begins = {self.start, opens, opens + max(0, clause.rfind("我"))}
        if any(framing.supposed(self.text, begin, self.end) for begin in begins):
            return "supposed"
        if _MADE_TO.search(clause):
            return "supposed"
        if _NOT.search(clause):
            return "negated"
        if any(framing.reported(self.text, begin) or framing.quoted(self.text, begin) for begin in begins):
            return "quoted from others"
        return "a joke" if _JOKE.search(self.text) else None

    def of_other(self) -> Reason | None:
        """The words are of another time or of somebody else."""
        sentence, clause = framing.sentence_before(self.text, self.start), framing.clause_before(self.text, self.start)
        if framing.PAST.search(sentence) or framing.FUTURE.search(sentence) or self.text.startswith("过", self.end):
            return "past or planned"
        return "about somebody else" if _OTHERS.search(clause) or "你" in clause else None


def unstated(kind: Kind, said: Uttered) -> Reason | None:
    """Why these words do not state this value of the person; None if they do. Not for `said` and `topic`."""
    if len(said.value) > VALUE_CHARS + 8 * (kind == "name"):
        return "too long"
    if reason := said.frame():
        return reason
    reason = _READERS[kind](said)
    return reason and (said.of_other() or reason)


def _name(said: Uttered) -> Reason | None:
    if not _WORN.fullmatch(said.value) or _CALLED_IN.search(said.value) or _TIES.search(said.value):
        return "no value of this kind"
    before, after = framing.clause_before(said.text, said.start), framing.sentence_after(said.text, said.end)
    over = not framing.clause_after(said.text, said.end).strip(" ，,。.！!~～啊呀哦哈吧")
    introduced = re.fullmatch(r"\s*(?:我|本人)?(?:的)?(?:真名|大名|全名|名字|本名)?(?:就|也)?(?:叫|(?<=名字)是|(?<=名)是)|.*\bmy name(?: is|'s) |.*\bcall me ", before, re.IGNORECASE)
    offered = re.fullmatch(r"\s*(?:你|你们|就|可以|直接|以后|那|也|平时|喊|都)*(?:叫|喊)我", before) and re.match("(?:就|都|也)(?:行|好|可以|成|是了)|即可|得了", after)
    return None if (introduced and over) or offered else "not stated of themselves"


def _age(said: Uttered) -> Reason | None:
    if not _NUMBER.fullmatch(said.value) or not 6 <= number(said.value) <= 110:
        return "no value of this kind"
    if _ROUGHLY.search(framing.sentence_before(said.text, said.start) + said.value + framing.clause_after(said.text, said.end)):
        return "not exact"
    return None if said.states("age", number(said.value)) else "not stated of themselves"


def _gender(said: Uttered) -> Reason | None:
    if said.value not in ("男", "女"):
        return "no value of this kind"
    return None if said.states("gender", said.value) else "not stated of themselves"


def _city(said: Uttered) -> Reason | None:
    if said.value not in known_places() and said.value not in REGIONS:
        return "no value of this kind"
    if said.of_other() is None and said.moved():
        return None
    # Where one is from is not where one lives.
    return "not stated of themselves" if _ORIGIN.search(said.clause) or not said.states("city", said.value) else None


def _occupation(said: Uttered) -> Reason | None:
    if len(said.value) < 2 or not any(facts.states(form.format(said.value), "occupation", said.value) for form in _AS_WORK):
        return "no value of this kind"
    return None if said.states("occupation", said.value) else "not stated of themselves"


def _relationship_status(said: Uttered) -> Reason | None:
    alone = Uttered(f"我{said.value.removeprefix('我')}", 0, 0)
    meant = {status for status in get_args(RelationshipStatus) if alone.states("relationship", status)}
    if not meant:
        return "no value of this kind"
    stated = {status for status in get_args(RelationshipStatus) if said.states("relationship", status)}
    return None if stated == meant else "not stated of themselves"


def _relationship(said: Uttered) -> Reason | None:
    if _TIES.search(said.value):
        return "tells the persona what to be"
    before = framing.clause_before(said.text, said.start)
    if _OURS.search(before):
        return said.of_other()
    return None if _TO_YOU.search(before) and not framing.PAST.search(before) else "not stated of themselves"


def _place(said: Uttered) -> Reason | None:
    if not re.search(rf"{_HERE}(?:了)?$", framing.clause_before(said.text, said.start)):
        return "not stated of themselves"
    return said.of_other()


def _mood(said: Uttered) -> Reason | None:
    if not _MOODS.search(said.value):
        return "no value of this kind"
    if re.search("[不没]\\S{0,2}$", framing.clause_before(said.text, said.start)):
        return "negated"
    return said.of_other()


_READERS: dict[Kind, Callable[[Uttered], Reason | None]] = {
    "name": _name, "age": _age, "gender": _gender, "city": _city, "occupation": _occupation,
    "relationship_status": _relationship_status, "relationship": _relationship, "place": _place, "mood": _mood,
}  # fmt: skip
