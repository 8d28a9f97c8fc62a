"""First-person ages: 我今年32, 我都三十二了, 我快五十了, 奔三, 虚岁66, 过完年我就24了; births are in `births`."""

import re
from collections.abc import Sequence

from anthrolab.judging.l0.facts.births import FRAMES as BIRTH_FRAMES
from anthrolab.judging.l0.facts.births import TRIGGERS as BIRTH_TRIGGERS
from anthrolab.judging.l0.facts.births import birth_contradiction
from anthrolab.judging.l0.facts.numerals import number
from anthrolab.judging.l0.facts.speaker import claims_nothing
from anthrolab.judging.l0.framing import sentence_before

__all__ = ["FRAMES", "TRIGGERS", "contradiction", "number"]

_NUMERALS = "一二三四五六七八九"
_ARABIC = "0123456789０１２３４５６７８９"
_AGES_BY_NAME = {
    "而立": 30, "不惑": 40, "半百": 50, "知天命": 50, "花甲": 60, "古稀": 70, "耄耋": 80,
}  # fmt: skip
"""Names of round ages, said with 年过, 年近 or 已是; flowery names of youth (二八, 芳龄) are said in jest and left out."""

TRIGGERS = " ".join(
    [x + y for x in _ARABIC for y in _ARABIC]
    + [x + y for x in _NUMERALS + "廿" for y in _NUMERALS]
    + [f"{x}十" for x in _NUMERALS] + [f"十{x}" for x in _NUMERALS + "岁了多几"] + [f"奔{x}" for x in _NUMERALS]
    + ["成年 ", *_AGES_BY_NAME, BIRTH_TRIGGERS]
)  # fmt: skip
_NUMBER = r"(\d{1,3}|[一二三四五六七八九]十有[一二三四五六七八九]|(?:[一二三四五六七八九]?十|廿)[一二三四五六七八九]?|[二三四五六七八九][一二三四五六七八九])"
_SELF = r"(?:我|本人)(?:自己|们俩)?"
_ADVERBS = r"(?:今年|现在|如今|都|也|已经|才|刚满|刚|满|毕竟|好歹|是|一个|一|个|这个|这|其实|就|还|明明|整|刚好|正好|差不多|也就|虚岁|周岁|实岁|真的|,|，|\s){0,6}"
_OF_ME = r"岁?的(?!时候|那|生日|年龄|朋友|同|客|差|孩子|儿子|女儿|闺女|我?[爸妈])"
_TAIL = (
    r"(?=$|[，,。.！!；;\s~…]|啊|呀|啦|了|咯|喽|嘞|哦|哈|还没|还单|还在|还得|的人|的男|的女|的大|的小|的老|的糙|的单身|本命|属|周岁|呢)"
)

_EXACT = re.compile(
    rf"{_SELF}({_ADVERBS}?){_NUMBER}\s*(周?岁)?(?![\d多几来好出\-~到至.:：/%])(?:了|啦|的人了?)?{_TAIL}"
)
_THIS_YEAR = re.compile(
    rf"{_SELF}(?:也|都|其实|\s){{0,6}}(?:今年|虚岁|周岁|实岁)(?:都|也|才|已经|刚|满|刚满|就|是|虚岁|周岁|实岁|\s){{0,6}}{_NUMBER}\s*周?岁"
)
_ON_PAPER = re.compile(
    rf"(?:我(?:的)?)?(?:身份证|户口本?|证件|护照|档案)(?:上|里)?(?:年龄|写的?|是|写着|填的?|我|才|都|\s){{0,4}}{_NUMBER}(?:周?岁)?(?=$|[，,。！!\s]|了|呢|啊)"
)
_NEARLY = re.compile(
    rf"{_SELF}(?:今年|现在|都|也|已经|这|是|一个|个|\s){{0,6}}(?:快|奔|马上|就要|快要|将近|接近|眼看|眼瞅着|要){{1,6}}(?:到|奔)?{_NUMBER}(?:岁)?(?:了|的人)"
)
_DECADE = re.compile(
    rf"{_SELF}(?:今年|现在|都|也|才|已经|这|是|一个|一|个|小|\s){{0,6}}([二三四五六七八九]十|[2-9]0)(?:多|好几|来|几|出头|大几|开外|啷当)(?:岁)?(?:了|的人|{_OF_ME}|$|[，,。！!\s])"
)
_RUNS_TO = re.compile(
    rf"{_SELF}(?:今年|现在|都|也|已经|这|是|要|快|马上|\s){{0,6}}奔([二三四五六七八九])(?!十)(?:了|的人|$|[，,。\s])"
)
_NEXT = re.compile(
    rf"我?(?:过完(?:这个|了)?年|过了(?:这个)?年|过个年|开年|开春|翻过年|下个?月|明年|年底|生日一过|过完生日)[，,\s]*(?:我)?(?:就|都|也|要|该|是|刚好|正好|整|满|\s){{0,6}}(?:(?<=就)|(?<=满)|(?<=就要)|(?<=该)){_NUMBER}(?:周?岁)?(?:了|的人|啦|$|[，,。！!\s])"
)
_IN_YEARS = re.compile(
    rf"再(?:过|有)([一两三四五六\d])年[，,\s]*(?:我)?(?:就|都|也|要|该|是|满|\s){{1,4}}{_NUMBER}(?:周?岁)?(?:了|的人|啦)"
)
_BIRTHDAY = re.compile(
    rf"我(?:今天|昨天|前天|上周|上个?月|刚|才|前几天|前两天|\s){{0,6}}(?:过完|过了|过的|刚过|过)(?:了|完)?{_NUMBER}岁?(?:的)?(?:大寿|生日)(?!那|时|的)"
)
_TURNED_NAME = re.compile(
    rf"{_SELF}(?:今年|现在|都|也|已经|已|这|是|一个|\s){{0,6}}(?:年过|年近|过了|快到|到了|已到|将近)({'|'.join(_AGES_BY_NAME)})(?:之年)?(?:了|的人|的|$|[，,。！!\s])"
)
_LIVED = re.compile(
    rf"{_SELF}(?:都|也|已经|这|白|\s){{0,4}}活(?:了|到){_NUMBER}(?:多|来|几)?[年岁](?:了|[，,\s]|$|头一回|还是?头|没见|也没|都没|什么|啥)"
)
_NOT_YET = re.compile(
    rf"我(?:都|也|才|可|明明|现在|今年|离){{0,4}}(?:还没(?:到|满|有|过)?|不到|还不到|没到|没满|还差.{{1,4}}才)(?:{_NUMBER})(?:周?岁)?(?=$|[，,。！!\s]|呢|啊|呀|的人|好吧|好吗)"
)
_MINOR = re.compile(
    r"我(?:现在|今年|可|都|也|是|其实|\s){0,4}(?:还没(?:有)?(?:成年|满十八|满18)|还?未成年|还?未满(?:十八|18)|没成年|刚成年|是个?未成年人?)(?=$|[，,。！!\s]|呢|啊|呀|的|了|人|没多久|不久|没几)"
)
_ENGLISH = re.compile(r"(?:\bI\s?['’]?\s?a?m|\bim)\s(?:only |just |already )?(\d{2})(?: years? old| yo\b| y/o|岁)", re.I)
_EXACTLY = (_THIS_YEAR, _EXACT, _ON_PAPER, _ENGLISH)

_PAST_OR_PLAN = re.compile(
    "那年|那会|当时|那时|当年|以前|小时候|年轻|刚来|年前|年后|明年|后年|再过|过两年|过几年|等我|等到|到了|到我|以后|将来|下辈子|永远|"
    "年方|芳龄|心理年龄|看起来|看着|长得|像|体重|工龄|驾龄|教龄|党龄|排|号|身高|考了|得了|第|智商|骨龄|测|身体年龄|皮肤"
)
_BEFORE_OR_WISH = re.compile(
    "那年|那会|当时|那时|当年|以前|小时候|年轻|下辈子|永远|心理年龄|看起来|看着|长得|像|如果|要是|等我|等到|工龄|驾龄|教龄|党龄|党|结婚|工作|入"
)
_JOKE = re.compile("永远|芳龄|刚满18|刚满十八|年方|二八|心态|哈哈|嘿嘿|嘻嘻|😂|🤣|😏|😎|🐶|狗头|偷笑|坏笑|旺柴|捂脸")
_OTHER_COUNT = re.compile(
    "级|段|分|斤|公斤|kg|层|楼|页|章|集|关|排|号|步|公里|km|块|元|钱|单|个|度|码|星|胜|局|杀|连|天|次|票|名|多少|几"
)
_NEW_YEAR = re.compile("虚岁|马上|快|要|就|过完年|过了年|明年|生日|下个月|实岁|周岁|虚|刚满")
_AGE_TALK = "岁|年纪|多大|叫老|叫叔|叫姐|叫姨|叫哥|年轻|显老|显小|成年|刚上大学|刚毕业|比你[大小]|比我[大小]|[大小]你"

FRAMES = re.compile(
    rf"(?:都|也|毕竟|好歹|反正|才|马上|快)?是?(?:今年(?:都|也|才|刚|刚满|满|已经|正好|刚好|\s){{0,4}}{_NUMBER}(?:周?岁|了|的人|[，,。\s]|$|啊|呀|啦|呢)"
    rf"|刚满{_NUMBER}(?:周?岁|[，,。\s]|$|呢|啊)(?!减|送)"
    rf"|(?:虚岁|周岁|实岁)(?:都|才|刚|是|\s)?{_NUMBER}"
    rf"|(?:快|奔)?{_NUMBER}(?:好几|多|几|出头|开外)?岁?的人了"
    rf"|奔[三四五六七八]的人了"
    rf"|(?:身份证|户口本?|证件|护照|档案)(?:上|里)?(?:年龄|写的?|是|写着|填的?|才|都|\s){{0,4}}{_NUMBER}(?:周?岁)?(?:$|[，,。！!\s]|了|呢|啊)"
    rf"|年[过近](?:{'|'.join(_AGES_BY_NAME)})的人了"
    rf"|活了{_NUMBER}(?:多|来|几)?年"
    rf"|(?:过完(?:这个|了)?年|过了(?:这个)?年|过个年|翻过年|下个?月|明年)就(?:都|要|该|是|满)?{_NUMBER}岁?(?:了|啦))"
    + f"|{BIRTH_FRAMES}"
)
"""How a clause without 我 begins that states an age."""


def contradiction(text: str, age: int, year: int | None, recent: Sequence[str] = ()) -> tuple[int, int] | None:
    """The span of the first statement that no person of `age` years would make; None if there is none."""
    for pattern in (*_EXACTLY, _NEARLY, _DECADE, _RUNS_TO, _TURNED_NAME, _LIVED, _NOT_YET, _MINOR):
        for m in pattern.finditer(text):
            if _fits(m, age, recent) or claims_nothing(text, m.start(), m.end()):
                continue
            if _PAST_OR_PLAN.search(sentence_before(text, m.start()) + m.group()):
                continue
            if pattern in (*_EXACTLY, _NEARLY) and _stated(m) <= 20 and _JOKE.search(text):
                continue
            return m.span()
    for pattern in (_NEXT, _IN_YEARS, _BIRTHDAY):
        for m in pattern.finditer(text):
            ahead = number(m[1]) if pattern is _IN_YEARS else int(pattern is _NEXT)
            if abs(number(m[m.lastindex or 1]) - ahead - age) <= 1 or claims_nothing(text, m.start(), m.end()):
                continue
            if not _BEFORE_OR_WISH.search(text) and "我" in text:
                return m.span()
    return birth_contradiction(text, age, year)


def _fits(m: re.Match[str], age: int, recent: Sequence[str]) -> bool:
    """A person of this age may say so, or the number is no age."""
    if m.re is _MINOR:
        return age < 19
    if m.re is _EXACT:
        return _fits_exactly(m, age) or not _is_age(m, m.string, recent)
    if m.re in _EXACTLY:
        return _fits_exactly(m, age)
    if m.re is _TURNED_NAME:
        return _AGES_BY_NAME[m[1]] - 6 <= age <= _AGES_BY_NAME[m[1]] + 12
    stated = number(m[1])
    if m.re is _NEARLY:
        return stated < 10 or stated - (8 if stated % 10 == 0 else 3) <= age <= stated + 1
    if m.re is _DECADE:
        return stated - 2 <= age <= stated + 11
    if m.re is _LIVED:
        return stated < 15 or stated - 3 <= age <= stated + 11
    if m.re is _NOT_YET:
        return not 15 <= stated <= 100 or age <= stated
    return stated * 10 - 10 <= age <= stated * 10 + 2


def _stated(m: re.Match[str]) -> int:
    return number(m[2] if m.re is _EXACT else m[1])


def _fits_exactly(m: re.Match[str], age: int) -> bool:
    stated = _stated(m)
    if stated == age:
        return True
    if "虚" in m.group():
        return stated - 2 <= age < stated
    if m.re is _ON_PAPER:
        return abs(stated - age) <= 3
    if "的人" in m.group() and stated % 10 == 0:
        return abs(stated - age) <= 6
    if stated % 10 == 0 and "岁" not in m.group() and "今年" not in m.group():
        return abs(stated - age) <= 2
    return bool(_NEW_YEAR.search(m.string[max(0, m.start() - 6) : m.end()])) and stated - 1 == age


def _is_age(m: re.Match[str], text: str, recent: Sequence[str]) -> bool:
    """A number with 岁 or 今年 is an age; a bare one only as 我都32了, and not among other counts."""
    adverbs, stated = m[1], number(m[2])
    if m[3]:
        return stated >= 5
    if not 10 <= stated <= 110:
        return False
    if "今年" in adverbs or "岁" in adverbs:
        return True
    if m.group().startswith("本人") and not adverbs:
        return True
    said = "了" in m.group() or "的人" in m.group() or text[m.end() : m.end() + 1] == "了"
    emphasised = re.search("都|也|已经|毕竟|才|刚满", adverbs) or not adverbs.strip()
    about_age = re.search(_AGE_TALK, "".join([text, *recent[-1:]]))
    counts_itself = _OTHER_COUNT.search(re.sub("的人|[这那]个|这些|那些", "", text)) and not re.search(_AGE_TALK, text)
    among_counts = recent and _OTHER_COUNT.search(recent[-1].replace("岁", "")) and not about_age
    return bool(
        (said or "才" in adverbs or "刚满" in adverbs or about_age)
        and emphasised
        and not (counts_itself or among_counts)
    )
