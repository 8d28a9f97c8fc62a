"""What a message is on its surface: its length, filler, a question, a near copy of another."""

import re
import unicodedata
from functools import lru_cache

from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, failed
from anthrolab.runtime.text import normalise

OVERSEEN = 40
"""Longest message, in characters, in which the absence of every known sign is taken for a pass."""

_FILLER = re.compile(
    r"(?:嗯|恩|哦|噢|喔|额|呃|哈|嘿|呵|嘻|嘤|啊|呀|哎|唉|诶|欸|哇|好的|好滴|好吧|好嘞|好|行吧|行|对|是的|是啊|没错|"
    r"ok|okk|okay|h+|6+|啦|吧|的|呢|嘛|emm+|em)+"
)
_WH = r"什么|啥|怎么|咋|为什么|为啥|哪|谁|几点|几号|几个|几天|多少|多久|多大|多远|干嘛|干吗"
_EITHER = r"是不是|有没有|要不要|能不能|会不会|好不好|行不行|可不可以|去不去|想不想|对不对|知不知道"
_QUESTION = re.compile(rf"[?？]|吗[~～。!！…\s]*$|(?:{_EITHER})|了没[有]?[~～…\s]*$")
_OPEN_QUESTION = re.compile(rf"(?:{_WH})")
_NO_QUESTION = re.compile(
    r"没什么|没啥|不管|无论|什么的|啥的|谁知道|哪有|哪里哪里|怎么都|怎么也|什么都|啥都|哪都|谁都|不知道|不晓得|忘了|"
    r"多少有|多少也|不怎么|不咋|怎么说呢|为什么不(?!是)|哪怕|哪儿都|要不是"
)
_GENERIC_QUESTION = re.compile(
    r"你?(?:咋|怎么)[了啦]|真的吗|真的假的|真假|是吗|是不是|对吧|对不对|然后呢|后来呢|为啥|为什么|你呢|在吗|在不在|有空吗|"
    r"(?:啥|什么)(?:情况|意思)|(?:咋|怎么)回事|好不好|行不行|什么|啥|谁|哪"
)


def letters(text: str) -> int:
    """Characters that are not white space."""
    return sum(not c.isspace() for c in text)


def shown(text: str) -> str:
    """A message as evidence in a reason: one line, at most 30 characters."""
    line = " ".join(text.split())
    return f"「{line if len(line) <= 30 else line[:29] + '…'}」"


def by_lists(text: str, sure: re.Pattern[str], perhaps: re.Pattern[str], what: str, told: re.Pattern[str] | None = None) -> Finding:
    """Fails on a sign of the first list, unless a sign of `told` says that it may be reported or mocked (undecided);
    passes a message free of both lists and short enough to be overseen."""
    if hit := sure.search(text):
        return UNDECIDED if told and told.search(text) else failed(f"{what} {shown(hit.group())}")
    return UNDECIDED if perhaps.search(text) or letters(text) > OVERSEEN else PASSED


@lru_cache(maxsize=65536)
def is_filler(text: str) -> bool:
    """True for a message with nothing in it but acknowledgement, laughter, emoji or punctuation."""
    core = normalise(text)
    return not core or bool(_FILLER.fullmatch(core))


def is_question(text: str) -> bool:
    """True if the message surely asks something; a rhetorical or embedded question word is not enough."""
    if _QUESTION.search(text):
        return True
    return bool(_OPEN_QUESTION.search(text)) and not _NO_QUESTION.search(text)


def is_real_question(text: str) -> bool:
    """A question that asks for something particular: not 咋了, 真的吗, 你呢."""
    return len(normalise(text)) >= 4 and not is_stock_question(text) and is_question(text)


def is_stock_question(text: str) -> bool:
    """咋了, 真的吗, 你呢 and the like, alone."""
    return bool(_GENERIC_QUESTION.fullmatch(normalise(text).rstrip("呀啊嘛")))


def has_emoji(text: str) -> bool:
    """True if there is a pictograph, or a WeChat emoji in words such as [捂脸]."""
    if re.search(r"\[[一-鿿]{1,4}\]", text):
        return True
    return any(ord(c) >= 0x2600 and unicodedata.category(c) == "So" for c in text)


@lru_cache(maxsize=65536)
def _pairs(core: str) -> frozenset[str]:
    return frozenset(core[i : i + 2] for i in range(len(core) - 1))


def similarity(first: str, second: str) -> float:
    """Dice coefficient of the character pairs of two messages, normalised: 0 (nothing shared) to 1 (equal).

    >>> similarity("你几点下班？", "你几点下班")
    1.0
    """
    a, b = normalise(first), normalise(second)
    if a == b:
        return 1.0
    pairs_a, pairs_b = _pairs(a), _pairs(b)
    total = len(pairs_a) + len(pairs_b)
    return 2 * len(pairs_a & pairs_b) / total if total else 0.0


def is_near_copy(first: str, second: str) -> bool:
    """True for two messages of at least 6 characters (normalised) that are nearly the same text."""
    return min(len(normalise(first)), len(normalise(second))) >= 6 and similarity(first, second) >= 0.85
