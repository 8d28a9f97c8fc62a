"""Whose fact a clause without a subject states: the speaker's, or that of somebody the talk is about.

Chinese chat drops 我 (今年刚满14, 在南宁住了大半辈子), and drops a child's or a friend's name in just the same words. So a
clause is read as the speaker's own only where nobody else is named: in its message, or in what it may go on from.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from anthrolab.judging.l0.framing import CLAUSE_END, no_claim

PEOPLE = (
    "爸 妈 爹 娘 爷 奶 姥 公公 婆婆 外公 外婆 叔 伯 姨 姑 舅 哥 姐 弟 妹 嫂 儿子 女儿 闺女 孩子 娃 崽 孙 侄 外甥 儿媳 女婿 亲家 "
    "岳 丈人 丈母 亲戚 家里人 前夫 前妻 前任 同事 同学 室友 舍友 闺蜜 朋友 兄弟 战友 徒弟 师傅 老师 主任 校长 老板 领导 经理 "
    "客户 顾客 病人 患者 乘客 房东 租客 邻居 隔壁 楼上 楼下 对门 老乡 网友 同行 人家 别人 有人 那人 这人 他 她 它 "
    "老太太 老头 大爷 大妈 大叔 阿姨 小伙 小姑娘 姑娘 男孩 女孩 学生 师兄 师姐 学长 学姐 队友 新来 主播 明星 演员 相亲 介绍 "
    "老张 老李 老王 老陈 老刘 小张 小李 小王 小陈 小刘 猫 狗 母猪 母牛 他家 人们 这些人 有的人 有些人 大家 现在的"
).split()
"""People (and animals) that a clause without a subject may be about; partners are in PARTNERS."""

PARTNERS = "老公 老婆 媳妇 丈夫 妻子 爱人 先生 太太 老伴 那口子 对象 男朋友 女朋友 男友 女友 男人 女人".split()
"""Husbands, wives and lovers: other people too, but to name one is to speak of oneself where the fact is the tie itself."""

_NO_KIN = {"姐": "(?<!空)姐", "朋友": "(?<![男女])朋友", "娘": "(?<![姑老])娘", "狗": "(?<!单身)狗", "哥": "(?<!小)哥"}
_NAMED = [_NO_KIN.get(name, name) for name in PEOPLE]
_PEOPLE = re.compile("|".join(_NAMED))
_PEOPLE_OR_PARTNERS = re.compile("|".join([*_NAMED, *PARTNERS]))
_OF_YOURS = re.compile(rf"你(?:们)?(?:家|那|的|那个)?(?:{'|'.join([*PEOPLE, *PARTNERS])})|他|她")
_QUESTION = re.compile("[?？]|吗|呢$|多大|几岁|哪|什么|啥|咋|怎么|谁|几|没有?$|不$|吧$|来着$")
_TAG = re.compile(
    r"(?:是不?是?|对不?对?|不?像|算不?算?|老不?老?)(?:吧|吗|么|嘛|不|啊|[?？])*\s*$|你?(?:敢|能)?信(?:吗|不|么)|你(?:觉得|看|猜|说)(?:像|呢|对|是)"
)
_OF_MYSELF = re.compile("头一[回次]听|没听(?:说)?过|没骗你|不骗你|骗你干|自己算|[笑怪]我|笑话我|别把我")
"""What one says of oneself beside a fact, whoever was spoken of before."""


@dataclass(frozen=True)
class Heard:
    """What stands before a message: the last two of either side, the last if it is the partner's, and whether it may
    ask for a fact that this message gives."""

    recent: Sequence[str] = ()
    partner: str = ""
    answered: bool = False

    def is_about_another(self, tie: bool) -> bool:
        """The talk may be about somebody else, so a clause without a subject may be too; `tie`: partners do not count."""
        people = _PEOPLE if tie else _PEOPLE_OR_PARTNERS
        last = self.recent[-1] if self.recent else ""
        if not self.partner:
            return bool(people.search(last))
        if not tie and _OF_YOURS.search(last):
            return True
        if not _QUESTION.search(last):
            return bool(tie and re.search("他|她", last))
        named = people.search(last) or "谁" in last
        return bool(named or ("你" not in last and any(people.search(said) for said in self.recent)))


NOTHING_HEARD = Heard()


def claims_nothing(text: str, start: int, end: int) -> bool:
    """As `framing.no_claim`, and no claim either where a tag after a blank asks for it: 我都66了 是吧？"""
    blank = CLAUSE_END.search(text, end)
    if blank and blank.group().isspace() and _TAG.match(text, blank.end()):
        return True
    return no_claim(text, start, end)


@dataclass(frozen=True)
class Voiced:
    """A message with the dropped 我 put in at `places` (of the message as typed)."""

    text: str
    places: tuple[int, ...]

    def typed(self, span: tuple[int, int]) -> tuple[int, int]:
        """Where a span of `text` stands in the message as typed."""
        start, end = (at - sum(place + n < at for n, place in enumerate(self.places)) for at in span)
        return start, end


def voiced(text: str, begins: Sequence[int], frames: re.Pattern[str], heard: Heard, *, tie: bool = False) -> Voiced | None:
    """The message with 我 before every clause (of those at `begins`) that starts like one of `frames`; None if none does.

    `tie`: the frames are about the speaker's partner, whom they name.
    """
    matched = [m for begin in begins if (m := frames.match(text, begin))]
    if not matched or (heard.is_about_another(tie) and not _OF_MYSELF.search(text)):
        return None
    # What the frame itself names (大姨妈来了, 当了十年老师) is nobody else.
    around = " ".join(text[a:b] for a, b in zip([0, *(m.end() for m in matched)], [*(m.start() for m in matched), len(text)], strict=True))
    if (_PEOPLE if tie else _PEOPLE_OR_PARTNERS).search(around):
        return None
    starts = [m.start() for m in matched]
    pieces = [text[a:b] for a, b in zip([0, *starts], [*starts, len(text)], strict=True)]
    return Voiced("我".join(pieces), tuple(starts))


def as_me(text: str) -> str:
    """俺 and 咱 as 我; lengths do not change."""
    return text.replace("俺", "我").replace("咱", "我")


def clause_starts(text: str) -> list[int]:
    """Where the clauses of a message begin."""
    return [0, *(m.end() for m in CLAUSE_END.finditer(text))]
