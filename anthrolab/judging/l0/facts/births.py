"""First-person births: 我九七年的, 我是80后, 零零后一枚, 我属猴, 今年我本命年; compared with the year of the chat."""

import re

from anthrolab.judging.l0.facts.numerals import number
from anthrolab.judging.l0.facts.speaker import claims_nothing
from anthrolab.judging.l0.framing import sentence_before

ANIMALS = "鼠牛虎兔龙蛇马羊猴鸡狗猪"
"""The animals of the lunar years; 1924, 1936 ... are years of the rat."""

_DIGIT = "[零〇一二三四五六七八九]"
TRIGGERS = " ".join(
    [*(f"属{animal}" for animal in ANIMALS), "属小 属大 本命", *(f"{a}零 零{a}" for a in "零一二三五六七八九")]
)
_ADVERBS = r"们?(?:也|都|是|可是|这种|这代|这些|这个|一个|一|个|作为|其实|就|老|,|\s){0,6}"
_BORN = re.compile(
    rf"(?:我|本人){_ADVERBS}((?:19|20)?\d{{2}}|一九{_DIGIT}{{2}}|二[零〇]{_DIGIT}{{2}}|{_DIGIT}{{2}})(?:年(?:出)?生人?(?:的(?:人)?)?|年的|后)"
    r"(?=$|[^\d\u4e00-\u9fff]|啊|呀|了|吧|哪|都|也|的|就|没|不|表示|一枚|一个|听|路过|人|属|老阿姨|老大叔|老太|老头|阿姨|大叔|大妈|大爷)(?!的(?:酒|茶|房|车|老房|书|歌|电影))"
)
_ANIMAL = re.compile(
    rf"我(?:就|也|是|可是|都|刚好|正好|\s){{0,4}}属(?:小|大|老)?([{ANIMALS}])(?=$|的|[，,。！!\s]|啊|呀|嘛|今年)"
)
_ANIMAL_YEAR = re.compile(r"(?:今年(?:是|刚好|正好|就是)?我(?:的)?|我今年(?:是|刚好|正好|就是)?)本命年")
_NOT_MINE = re.compile("像|装|当|以为|带|教|招|面试|现在的|这届|整顿")

FRAMES = rf"(?:作为(?:一个)?)?(?:\d{{2}}|{_DIGIT}{{2}})后(?:一枚|一个|表示|路过|老阿姨|大叔)"


def birth_contradiction(text: str, age: int, year: int | None) -> tuple[int, int] | None:
    """The span of the first birth that the age on the card excludes in this year; None without a year."""
    if year is None:
        return None
    for pattern in (_BORN, _ANIMAL, _ANIMAL_YEAR):
        for m in pattern.finditer(text):
            if _fits(m, age, year) or claims_nothing(text, m.start(), m.end()):
                continue
            if not _NOT_MINE.search(sentence_before(text, m.start())):
                return m.span()
    return None


def _fits(m: re.Match[str], age: int, year: int) -> bool:
    # A year younger or older: the birthday may be to come, and the lunar year begins after the calendar's.
    if m.re is not _BORN:
        animals = [ANIMALS[(year - age - n - 4) % 12] for n in (0, 1, 2)]
        return (ANIMALS[(year - 4) % 12] if m.re is _ANIMAL_YEAR else m[1]) in animals
    digits = number(m[1])
    born = digits if digits >= 100 else digits + (2000 if digits <= year % 100 else 1900)
    if m.group().endswith("后"):
        return born % 5 != 0 or year - born - 10 <= age <= year - born + 1
    return year - born - 2 <= age <= year - born + 1
