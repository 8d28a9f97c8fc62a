"""L0-08: a long activity announced and then finished by the same speaker in an impossible time.

None: something done before (刚洗完澡), a plan (等会去洗澡), somebody else's, a condition (洗完了找你), the rest of
something (就剩一件了), an end that fits the time.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import add
from typing import Self

from anthrolab.judging.l0.activities import ACTIVITIES
from anthrolab.judging.l0.framing import asked, plain, quoted, reported, supposed
from anthrolab.judging.l0.time_words import (
    CLAUSE,
    DURATION,
    ENDINGS,
    FOR_OTHERS,
    GENERIC,
    LATER,
    NOT_DONE,
    ONGOING,
    OTHERS,
    REST,
    START,
    TAIL,
)


def _alternatives(words: str) -> list[str]:
    """The alternatives of a regular expression at its outermost level."""
    found, depth, start = [], 0, 0
    for i, sign in enumerate(words + "|"):
        depth += (sign in "([") - (sign in ")]")
        if sign == "|" and not depth:
            found.append(words[start:i])
            start = i + 1
    return [word for word in found if word]


def _keys(words: str) -> set[str]:
    """What each alternative begins with: two characters, or one; all of 子?, of [孩娃], of (?:饭|菜)."""
    keys = set()
    for word in _alternatives(words):
        word = re.sub(r"^\^\(\?:[^()]*\)\*", "", word)
        if group := re.match(r"\(\?:([^()]*)\)|\[([^\]]*)\]", word):
            keys |= {key[0] for key in (group[1] or "").split("|") if key} | set(group[2] or "")
        else:
            keys.add(word[:2] if re.match(r"\w{2}(?!\?)", word) else word[0])
    return keys


@dataclass(frozen=True)
class _Table:
    """From keys to bits of activities; sets find in a microsecond which keys stand in a message."""

    keys: dict[str, int]
    singles: frozenset[str]
    pairs: frozenset[str]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, int]]) -> Self:
        """`rows` are alternatives and the bits that each of them stands for."""
        keys: dict[str, int] = {}
        for words, bits in rows:
            for key in _keys(words):
                keys[key] = keys.get(key, 0) | bits
        return cls(keys, frozenset(k for k in keys if len(k) == 1), frozenset(k for k in keys if len(k) == 2))

    def bits(self, text: str) -> int:
        """All bits of the keys in `text`."""
        bits = 0
        for key in self.singles.intersection(text):
            bits |= self.keys[key]
        for key in self.pairs.intersection(map(add, text, text[1:])):
            bits |= self.keys[key]
        return bits


@cache
def _names() -> _Table:
    """The activities that a key begins a verb of (low bits), an object, or another name (high bits)."""
    n = len(ACTIVITIES)
    return _Table.of(
        (words, 1 << (i + place * n))
        for i, a in enumerate(ACTIVITIES)
        for place, words in enumerate((a.verbs, a.objects, a.begin))
    )


@cache
def _ends() -> _Table:
    """The activities whose end may be told by words that begin with a key."""
    rows = [
        ("|".join((a.verbs or "做|弄", a.done, "回来" if a.out else "")), 1 << i) for i, a in enumerate(ACTIVITIES)
    ]
    return _Table.of(rows)


def _positions(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def end_triggers() -> str:
    """Words without one of which no end is told."""
    words = (word for a in ACTIVITIES for word in _alternatives(a.done) if _GENERAL_ENDINGS.isdisjoint(word))
    return " ".join((ENDINGS, *sorted(key for word in words for key in _keys(word) if len(key) > 1)))


@cache
def _name(activity: int) -> re.Pattern[str]:
    """The activity as it is named: 洗个澡, 地我拖一下, 把这季追完, 夜跑."""
    verbs, objects, begin = (
        f"(?:{words})" if words else ""
        for words in (ACTIVITIES[activity].verbs, ACTIVITIES[activity].objects, ACTIVITIES[activity].begin)
    )
    if not verbs:
        return re.compile(begin, re.I)
    ways = [
        rf"{verbs}[^，,。！!？?~～…\s完好过]{{0,7}}?{objects}",
        rf"{objects}[^。！!？?]{{0,9}}?{verbs}(?!完|好|过|的|得|到|干净)",
        rf"把[^，,。\s]{{0,8}}{objects}[^，,。\s]{{0,3}}{verbs}(?:完|好|干净)",
    ]
    return re.compile("|".join(([begin] if begin else []) + ways), re.I)


_GENERAL_ENDINGS = frozenset("完好到")
_GENERIC = re.compile(GENERIC)
_GENERIC_CORE = re.compile("[做弄搞忙干整](?:完|好|定|妥|利索)|完事|收工|大功告成|[我全都弄]好了")
"""What GENERIC cannot match without."""
_GOES_ON = re.compile("[了啦]?(?:的|再|找|后|给|跟|之|叫|喊|告诉|打给|联系|这|那|你)")
_ANOTHER = re.compile(f"(?:{OTHERS.pattern})$|刚才|昨|早就|上次")
_RIGHT_NOW = re.compile("现在|这就|开始")
_WITH_PARTICLE = re.compile("[了啦咯去]$")


@cache
def _end(activity: int) -> re.Pattern[str]:
    """How its end is told, in one clause."""
    a = ACTIVITIES[activity]
    own = rf"^(?:我|都|全部|全|已经|刚刚|刚|终于|总算|可算|好了|[一两三几这那个整本把局集遍套张场的也就\d]|{a.objects or '$'})*"
    ways = [
        rf"{own}(?:{a.verbs or '[做弄]'})[^，,。\s的]{{0,2}}?(?:完|好(?=$|了|啦|咯|喽|[喝吃晾晒收交出上])|光了|干净了|熟了)",
        GENERIC,
        *([a.done] if a.done else []),
        *(["回来"] if a.out else []),
    ]
    return re.compile("|".join(ways), re.I)


def announced(text: str) -> list[int] | None:
    """Positions in ACTIVITIES of what the message says that its speaker starts now; None for nothing."""
    flat = plain(text)
    return [activity for activity in _positions(named(text)) if starts(flat, activity)] or None


def named(text: str) -> int:
    """Bits of the activities that the message names and may announce, by its words alone."""
    bits, n = _names().bits(text), len(ACTIVITIES)
    mask = (bits & bits >> n | bits >> 2 * n) & (1 << n) - 1
    return 0 if not mask or text[-1] in "吗没?？" or REST.search(plain(text)) else mask


def starts(flat: str, activity: int) -> bool:
    """A plain message that names the activity says that its speaker starts it now."""
    for m in _name(activity).finditer(flat):
        head = flat[_clause_start(flat, m.start()) : m.start()]
        rest = CLAUSE.match(flat, m.end())
        tail = rest.group() if rest else ""
        said = head + m.group() + tail
        if _RIGHT_NOW.search(flat):
            said = re.sub("想|打算|准备", "", said)
        if LATER.search(said) or ONGOING.search(head) or not TAIL.fullmatch(tail):
            continue
        if _somebody_else(head):
            continue
        if not (head + tail.rstrip("啊呀哈哦啦嗷哟") == "" or START.search(said) or _WITH_PARTICLE.search(said) or DURATION.search(flat)):
            continue
        waiting = head.startswith("等我")
        if asked(flat, m.end()) or reported(flat, m.start()) or quoted(flat, m.start()):
            continue
        if waiting or not supposed(flat, m.start(), m.end()):
            return True
    return False


def _somebody_else(head: str) -> bool:
    """我妈去做饭; not 给我妈做饭, 妈我去做饭."""
    others = list(OTHERS.finditer(head))
    return bool(others) and "我" not in head[others[-1].end() :] and not FOR_OTHERS.search(head[: others[0].start()])


def _clause_start(flat: str, pos: int) -> int:
    start = 0
    for m in CLAUSE.finditer(flat, 0, pos):
        start = m.start()
        if m.end() < pos:
            start = pos
    return start


def may_be_over(flat: str) -> Sequence[int]:
    """Positions in ACTIVITIES of what a plain message may tell the end of, by its words alone."""
    if _GENERIC_CORE.search(flat) and any(_GENERIC.search(clause) for clause in CLAUSE.findall(flat)):
        return range(len(ACTIVITIES))
    return list(_positions(_ends().bits(flat)))


def ended(flat: str, among: Sequence[int] | None = None) -> list[int]:
    """Those activities (of `among`, if given) of which a plain message says that its speaker has just finished them."""
    if flat[-1:] in "吗没" or "?" in flat or "？" in flat:
        return []
    activities = may_be_over(flat) if among is None else among
    if not activities:
        return []
    told = []
    for clause in CLAUSE.finditer(flat):
        said = clause.group()
        if not NOT_DONE.search(said):
            told.append((clause.start(), clause.end(), said))
        if _ANOTHER.search(said):
            break
    return [activity for activity in activities if _told(flat, told, _end(activity))] if told else []


def _told(flat: str, clauses: Sequence[tuple[int, int, str]], end: re.Pattern[str]) -> bool:
    for start, stop, said in clauses:
        m = end.search(said)
        if m and not _GOES_ON.match(said, m.end()) and _is_over(said, m):
            return not (supposed(flat, start, stop) or quoted(flat, start))
    return False


def _is_over(said: str, m: re.Match[str]) -> bool:
    """洗完了, 洗完, 洗完晾上了; 开饭, 一觉睡到天亮."""
    return bool(re.search("了|啦|咯|喽|过|$", said[m.end() - 1 :])) and len(said) <= 16
