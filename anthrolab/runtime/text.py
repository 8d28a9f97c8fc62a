"""How texts are compared: what counts as the same message, and what counts as a goodbye."""

import unicodedata
from functools import lru_cache

FAREWELLS = frozenset(
    ["拜拜", "拜", "拜拜啦", "拜拜了", "88", "886", "再见", "晚安", "晚安啦", "晚安晚安", "安", "先睡了", "我先睡了", "睡了", "睡啦", "我睡了", "回头聊", "回聊", "改天聊", "下次聊", "先这样", "那先这样", "先不说了", "不说了", "我先忙了", "先忙了", "先下了", "我先下了", "溜了", "闪了", "撤了", "明天见", "明儿见", "早点睡", "早点休息"]
)
"""Messages that, alone, close a chat. Compared after `normalise`: equal, not containing."""


@lru_cache(maxsize=65536)
def normalise(text: str) -> str:
    """NFKC, case folding, then no white space, punctuation or symbols (Unicode categories P and S).

    >>> normalise("ＯＫ 好的呀！")
    'ok好的呀'
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if not c.isspace() and unicodedata.category(c)[0] not in "PS")


def line_key(line: str) -> str:
    """What two noted lines share if they say the same: NFKC, case folding, no blanks, no closing punctuation. Signs,
    points and digits inside count: 欠他1.5万 is not 欠他15万.

    >>> line_key("怕狗。") == line_key("怕 狗")
    True
    """
    return "".join(unicodedata.normalize("NFKC", line).casefold().split()).rstrip("。.!！~～…")


def is_farewell(text: str, farewells: frozenset[str] = FAREWELLS) -> bool:
    """True if the whole message, normalised, is a goodbye."""
    return normalise(text) in farewells
