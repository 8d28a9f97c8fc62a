"""First-person ages: 我今年32, 我都三十二了, 我快五十了, 奔三, 我是95后."""

import re
from collections.abc import Sequence

from anthrolab.judging.l0.framing import no_claim, sentence_before

_NUMERALS = "一二三四五六七八九"
_ARABIC = "0123456789０１２３４５６７８９"
TRIGGERS = " ".join(
    [x + y for x in _ARABIC for y in _ARABIC]
    + [x + y for x in _NUMERALS + "廿" for y in _NUMERALS]
    + [f"{x}十" for x in _NUMERALS] + [f"十{x}" for x in _NUMERALS + "岁了多几"] + [f"奔{x}" for x in _NUMERALS]
)  # fmt: skip
_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"两": 2}
_NUMBER = r"(\d{1,3}|(?:[一二三四五六七八九]?十|廿)[一二三四五六七八九]?|[二三四五六七八九][一二三四五六七八九])"
_SELF = r"(?:我|俺|咱|本人|我自己|我们俩)"
_ADVERBS = r"(?:今年|现在|如今|都|也|已经|才|刚满|刚|满|毕竟|好歹|是|一个|个|这个|这|其实|就|还|明明|虚岁|周岁|实岁|,|，|\s){0,6}"
_TAIL = r"(?=$|[，,。.！!；;\s~…]|啊|呀|啦|了|咯|哦|哈|还没|还单|还在|还得|的人|的男|的女|的大|本命|属|周岁|呢)"

_EXACT = re.compile(
    rf"{_SELF}({_ADVERBS}?){_NUMBER}\s*(周?岁)?(?![\d多几来好出\-~到至.:：/%])(?:了|啦|的人了?)?{_TAIL}"
)
_THIS_YEAR = re.compile(
    rf"{_SELF}(?:也|都|其实|\s){{0,6}}(?:今年|虚岁|周岁)(?:都|也|才|已经|刚|满|刚满|就|是|虚岁|周岁|\s){{0,6}}{_NUMBER}\s*周?岁"
)
_NEARLY = re.compile(
    rf"{_SELF}(?:今年|现在|都|也|已经|这|是|一个|个|\s){{0,6}}(?:快|奔|马上|就要|快要|将近|接近|眼看|眼瞅着|要){{1,6}}(?:到|奔)?{_NUMBER}(?:岁)?(?:了|的人)"
)
_DECADE = re.compile(
    rf"{_SELF}(?:今年|现在|都|也|才|已经|这|是|一个|个|小|\s){{0,6}}([二三四五六七八九]十|[2-9]0)(?:多|好几|来|几|出头|大几|开外)(?:岁)?(?:了|的人|的女|的男|的大|的中年|的小|$|[，,。！!\s])"
)
_RUNS_TO = re.compile(
    rf"{_SELF}(?:今年|现在|都|也|已经|这|是|要|快|马上|\s){{0,6}}奔([二三四五六七八九])(?!十)(?:了|的人|$|[，,。\s])"
)
_BORN = re.compile(
    rf"{_SELF}们?(?:也|都|是|可是|这种|这代|这些|这个|一个|个|作为|其实|,|\s){{0,6}}((?:19|20)?\d{{2}})(?:年的|年(?:出)?生(?:的|人)?|后)(?=$|[^\d\u4e00-\u9fff]|啊|呀|了|吧|哪|都|也|的|就|没|不)"
)

_PAST_OR_PLAN = re.compile(
    "那年|那会|当时|那时|当年|以前|小时候|年轻|刚来|年前|年后|明年|后年|再过|过两年|过几年|等我|等到|到了|到我|以后|将来|下辈子|永远|"
    "年方|芳龄|心理年龄|看起来|看着|长得|像|体重|工龄|驾龄|教龄|党龄|排|号|身高|考了|得了|第|智商|骨龄|测|身体年龄|皮肤"
)
_JOKE = re.compile("永远|芳龄|刚满18|刚满十八|年方|二八|心态|哈哈|嘿嘿|嘻嘻|😂|🤣|😏|😎|🐶|狗头|偷笑|坏笑|旺柴|捂脸")
_OTHER_COUNT = re.compile(
    "级|段|分|斤|公斤|kg|层|楼|页|章|集|关|排|号|步|公里|km|块|元|钱|单|个|度|码|星|胜|局|杀|连|天|次|票|名|多少|几"
)
_NEW_YEAR = re.compile("虚岁|马上|快|要|就|过完年|过了年|明年|生日|下个月|实岁|周岁|虚")


def number(text: str) -> int:
    """32, 三十二, 廿七, 三二 and 十八 as integers."""
    if text.isdigit():
        return int(text)
    if text.startswith("廿"):
        return 20 + (_DIGITS[text[1]] if len(text) > 1 else 0)
    if "十" in text:
        tens, _, ones = text.partition("十")
        return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0)
    return int("".join(str(_DIGITS[c]) for c in text))


def contradiction(text: str, age: int, year: int | None, recent: Sequence[str] = ()) -> tuple[int, int] | None:
    """The span of the first statement that no person of `age` years would make; None if there is none."""
    for pattern in (_THIS_YEAR, _EXACT, _NEARLY, _DECADE, _RUNS_TO, _BORN):
        for m in pattern.finditer(text):
            if _fits(m, age, year, recent) or no_claim(text, m.start(), m.end()):
                continue
            if _PAST_OR_PLAN.search(sentence_before(text, m.start()) + m.group()):
                continue
            if pattern is not _BORN and _stated(m) <= 20 and _JOKE.search(text):
                continue
            return m.span()
    return None


def _fits(m: re.Match[str], age: int, year: int | None, recent: Sequence[str]) -> bool:
    """A person of this age may say so, or the number is no age."""
    if m.re is _THIS_YEAR:
        return _fits_exactly(m, age)
    if m.re is _EXACT:
        return _fits_exactly(m, age) or not _is_age(m, m.string, recent)
    if m.re is _BORN:
        return _fits_birth(m, age, year)
    stated = number(m[1])
    if m.re is _NEARLY:
        return stated < 10 or stated - (8 if stated % 10 == 0 else 3) <= age <= stated + 1
    if m.re is _DECADE:
        return stated - 2 <= age <= stated + 11
    return stated * 10 - 10 <= age <= stated * 10 + 2


def _stated(m: re.Match[str]) -> int:
    return number(m[m.lastindex or 1]) if m.re is not _EXACT else number(m[2])


def _fits_exactly(m: re.Match[str], age: int) -> bool:
    stated = _stated(m)
    if stated == age:
        return True
    if "虚" in m.group():
        return stated - 2 <= age < stated
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
    among_counts = _OTHER_COUNT.search(text.replace("的人", "")) or (
        recent and _OTHER_COUNT.search(recent[-1].replace("岁", ""))
    )
    return bool(
        (said or "才" in adverbs)
        and emphasised
        and not (among_counts and not re.search("岁|年纪|多大", "".join([text, *recent[-1:]])))
    )


def _fits_birth(m: re.Match[str], age: int, year: int | None) -> bool:
    if year is None:
        return True
    digits = m[1]
    born = int(digits) if len(digits) == 4 else int(digits) + (2000 if int(digits) <= year % 100 else 1900)
    if "后" in m.group()[-1:]:
        if born % 5:
            return True
        return year - born - 10 <= age <= year - born + 1
    return year - born - 1 <= age <= year - born
