"""When two things that were inferred say the same, and whether words tell something again that was taken away or set right.

It looks at values and letters, not at sense: 我今年二十五岁 tells an age of 25 again, 我是九几年的 does not, for these rules.
"""

import re
from functools import lru_cache
from itertools import pairwise
from typing import get_args

from anthrolab.cards.persona import RelationshipStatus
from anthrolab.judging.l0.facts import states
from anthrolab.judging.l0.facts.numerals import number
from anthrolab.judging.l0.facts.places import REGIONS, known_places
from anthrolab.judging.l0.framing import plain
from anthrolab.runtime.text import line_key

NUMBER = r"\d{1,3}|(?:[一二三四五六七八九]?十|廿)[一二三四五六七八九]?|[二三四五六七八九][一二三四五六七八九]"
"""An age as it is written."""

_BARE = re.compile("[我俺咱你您他她的地得了着在是有和跟对就也都还很好太又没不要会能去来这那个吗呢吧啊呀哦嘛\\W_]")
_TIES = "单身|单着|单的|对象|男朋友|女朋友|男友|女友|男票|女票|结婚|结了婚|离婚|离了|离异|离过|已婚|未婚|老公|老婆|媳妇|恋爱|分手|失恋|脱单|光棍|丧偶|守寡|前夫|前妻|成家|嫁|娶|谈着"
_SIDES = {
    "女": "女(?!朋友|友|票|儿|神|主|装|排|足|篮|团)|姑娘|妹子|小姐姐|大姨妈|例假|怀孕|老公",
    "男": "男(?!朋友|友|票|神|主|装|排|足|篮|团)|爷们|汉子|小伙|大叔|胡子|老婆",
}
_SPEAK_OF: dict[str, re.Pattern[str]] = {
    "age": re.compile(rf"(?:{NUMBER})\s*周?岁|今年|岁数|年龄|[0-9〇零一二三四五六七八九]{{2}}后|属[鼠牛虎兔龙蛇马羊猴鸡狗猪]|years? old"),
    "gender": re.compile("|".join(_SIDES.values())),
    "relationship_status": re.compile(_TIES),
    "name": re.compile("叫|名字|姓|name"),
    "occupation": re.compile("我(?:就|也|还|现在)*(?:是|做|干|当|开|教|在.{1,10}(?:上班|工作|教书|实习))|上班|工作|职业"),
    "place": re.compile("我.{0,3}(?:在|到)"),
    "relationship": re.compile("[我你咱].{0,3}是"),
}


def meaning(kind: str, value: str) -> str:
    """What a value comes to, whichever way it is written: 25, ２５ and 二十五 are one age, 成都 and 成都市 one city, 没对象 and
    单身 one status."""
    text = line_key(value)
    if kind == "age" and (m := re.search(NUMBER, text)):
        return str(number(m.group()))
    if kind == "gender" and (m := re.search("[女男]", text)):
        return m.group()
    if kind == "city":
        return text.removesuffix("市")
    return "/".join(sorted(meant(text))) or text if kind == "relationship_status" else text


@lru_cache(maxsize=1024)
def meant(value: str) -> frozenset[str]:
    """The relationship statuses that somebody of whom it is true may say of themselves in these words."""
    words = f"我{value.removeprefix('我')}"
    return frozenset(s for s in get_args(RelationshipStatus) if states(words, "relationship", s))


def told_again(kind: str, value: str, text: str) -> bool:
    """Whether a text tells this value of a kind, as far as its letters show: the value itself, whichever way it is written, or,
    for a longer one, most of its words."""
    key = line_key(plain(text))
    if kind == "age" and meaning(kind, value).isdigit():
        return any(number(m) == int(meaning(kind, value)) for m in re.findall(NUMBER, key))
    if kind == "gender":
        return bool(re.search(_SIDES.get(meaning(kind, value), re.escape(value)), key))
    if kind == "relationship_status" and re.search(_TIES, key):
        return True
    own = meaning(kind, value) if kind == "city" else line_key(plain(value))
    return bool(own) and (own in key or len(_pairs(own) & _pairs(key)) >= 2)


def speaks_of(kind: str, text: str) -> bool:
    """Whether a text may state some value of this kind of its speaker."""
    if kind == "city":
        return any(name in text for name in (*known_places(), *REGIONS))
    pattern = _SPEAK_OF.get(kind)
    return bool(pattern and pattern.search(plain(text)))


def _pairs(text: str) -> set[str]:
    """The pairs of letters that carry sense."""
    return {pair for piece in _BARE.split(text) for pair in map("".join, pairwise(piece))}
