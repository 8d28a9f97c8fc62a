"""Catchphrases, punctuation and emoji held against the persona card (D3.3)."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from anthrolab.cards.persona import ExpressionHabits
from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import has_emoji, letters, shown

_NEVER_PERIOD = re.compile(
    r"(?:不|没|没有)(?:会|用|打|加|带|点)?(?:逗号|、)?(?:标点|句号)|(?:标点|句号)(?:都|全|也)?(?:从来|从)?(?:不打|不用|不加|没有|省)"
)
_HARDLY = re.compile(r"几乎|基本|一般|多半|很少|少打|平时|手打|有时|偶尔")
_NEVER_EMOJI = re.compile(r"(?:不|没)(?:会|用|打|带|发|爱用|爱发)|^没有|^无$|一个不发|都不发")
_EMOJI_NAME = re.compile(r"\[[^\]]{1,6}\]")
_NO_MARKS = re.compile(r"(?<!末了)(?<!句尾)(?<!最后)(?:不打|不用|没有|没|不加)标点|标点(?:都|全)?(?:不打|不用|省)")
_ALL_MARKS = re.compile(r"标点(?:一个不少|都?打全|齐全)|句句(?:收在句号|有句号|收尾)|一(?:句|条)一个句号|句号(?:规规矩矩|一个不少|都打)")
_NEVER = {
    "！": re.compile(r"(?:从不|不|从来不)(?:打|用)(?:感叹号|叹号)|只(?:会)?打句号"),
    "？": re.compile(r"(?:从不|不|从来不)(?:打|用)问号|也不打问号|(?:问话|问句)(?:也|都)?(?:只打|是|用)句号|只(?:会)?打句号"),
    "…": re.compile(r"(?:从不|不|从来不)(?:打|用)省略号"),
    "，": re.compile(r"(?:从不|不|从来不)(?:打|用)逗号|该停一下的地方全用句号"),
}
_SIGNS = {"！": "[！!]", "？": "[？?]", "…": r"…|\.{3}|。{3}", "，": "[，,]"}
_CLOSED_EMOJI = re.compile(r"^(?:只(?:会|发|有|用)|就(?:发|用)|跟谁都是)")
_REFUSED_EMOJI = re.compile(r"(?:不|从不|不会)(?:发|用|打)((?:\[[^\]]{1,6}\])+)")


def rules_out_period(punctuation: str) -> bool:
    """Whether a card says that the person never ends on a full stop: a clause that denies it, none that grants it.

    >>> [rules_out_period(t) for t in ("不打句号，用空格断开", "标点全省，换行断句", "不打句号；气了才打句号", "很少打标点")]
    [True, True, False, False]
    """
    clauses = re.split("[，；、。]", punctuation)
    denied = [c for c in clauses if _NEVER_PERIOD.search(c) and not _HARDLY.search(c)]
    granted = [c for c in clauses if ("句号" in c or "“。" in c) and not _NEVER_PERIOD.search(c)]
    doubtful = any(c.startswith(("但", "除")) or (_HARDLY.search(c) and ("标点" in c or "手打" in c)) for c in clauses)
    return bool(denied) and not granted and not doubtful


def rules_out_marks(punctuation: str) -> bool:
    """Whether a card says that the person sets no punctuation at all (a question mark may slip in), without a clause that grants some.

    >>> [rules_out_marks(t) for t in ("不打标点，用空格", "没有标点，空一格算断开", "标点全省；句尾偶尔一个问号", "不打句号")]
    [True, True, False, False]
    """
    granted = re.search(r"偶尔|有时|手打|除了|(?:打|用|带|点|剩)(?:成|满|连)?.{0,4}(?:感叹号|问号|省略号|逗号|句号)(?<!不打问号)", punctuation)
    return bool(_NO_MARKS.search(punctuation)) and rules_out_period(punctuation) and not granted


def rules_out_emoji(emoji: str) -> bool:
    """Whether a card says that the person uses no emoji: a denial, and none that is named.

    >>> [rules_out_emoji(t) for t in ("不发表情，嫌假", "用🙏和😭，被气到就什么都不用", "不发[微笑]，顶多一个[握手]", "很少")]
    [True, False, False, False]
    """
    return bool(_NEVER_EMOJI.search(emoji)) and not _EMOJI_NAME.search(emoji) and not has_emoji(emoji) and not _HARDLY.search(emoji)


def emoji_in(text: str) -> list[str]:
    """The emoji of a text, WeChat's in words included.

    >>> emoji_in("好[捂脸]😂")
    ['[捂脸]', '😂']
    """
    names = re.findall(r"\[(?:[一-鿿]{1,4}|OK|Emm|666|Doge|NO)\]", text)
    return [*names, *(c for c in text if ord(c) >= 0x2600 and unicodedata.category(c) == "So")]


@dataclass(frozen=True)
class _Habits:
    """What a card surely rules out."""

    no_period: bool
    no_marks: bool
    no_emoji: bool
    all_marks: bool
    never: tuple[str, ...]
    only_emoji: frozenset[str] | None
    refused_emoji: frozenset[str]
    one_emoji: bool


@lru_cache(maxsize=1024)
def _read(punctuation: str, emoji: str) -> _Habits:
    closed = bool(_CLOSED_EMOJI.search(emoji)) and bool(emoji_in(emoji))
    refused = "".join(m.group(1) for m in _REFUSED_EMOJI.finditer(emoji))
    return _Habits(
        no_period=rules_out_period(punctuation),
        no_marks=rules_out_marks(punctuation),
        no_emoji=rules_out_emoji(emoji),
        all_marks=bool(_ALL_MARKS.search(punctuation)) and not _HARDLY.search(punctuation) and "急了" not in punctuation,
        never=tuple(sign for sign, pattern in _NEVER.items() if pattern.search(punctuation)),
        only_emoji=frozenset(emoji_in(emoji)) if closed else None,
        refused_emoji=frozenset(emoji_in(refused)),
        one_emoji=bool(re.search("[最顶至]多一个", emoji)),
    )


def typing_habits(scene: Scene, index: int) -> Finding:
    """Fails on a mark or an emoji that the card rules out, on no mark at all in eight characters of a person who sets
    every one, on three catchphrases in one message, and on one catchphrase in four own messages running.

    Passes where the card rules out full stops and emoji and neither is there; most cards leave it undecided.
    """
    if scene.persona is None:
        return UNDECIDED
    card, text = scene.persona.expression_habits, scene.dialogue.messages[index].content
    habits = _read(card.punctuation, card.emoji)
    if fault := _wrong_marks(habits, text):
        return failed(f"{fault}, against the card ({card.punctuation}): {shown(text)}")
    if fault := _wrong_emoji(habits, text):
        return failed(f"{fault}, against the card ({card.emoji}): {shown(text)}")
    if fault := _overdone(scene, index, card):
        return failed(fault)
    return PASSED if habits.no_period and habits.no_emoji else UNDECIDED


def _wrong_marks(habits: _Habits, text: str) -> str | None:
    if habits.no_period and "。" in text:
        return "a full stop"
    if habits.no_marks and re.search("[，,。！!；;：]|…", text):
        return "punctuation"
    for sign in habits.never:
        if re.search(_SIGNS[sign], text):
            return f"'{sign}'"
    if habits.all_marks and letters(text) >= 8 and not re.search(r"[^\w\s]", text):
        return "no punctuation"
    return None


def _wrong_emoji(habits: _Habits, text: str) -> str | None:
    found = emoji_in(text)
    if habits.no_emoji and found:
        return "an emoji"
    if habits.only_emoji is not None and (other := [e for e in found if e not in habits.only_emoji]):
        return f"another emoji {other[0]}"
    if refused := [e for e in found if e in habits.refused_emoji]:
        return f"the emoji {refused[0]}"
    return "several emoji" if habits.one_emoji and len(found) > 1 else None


def _overdone(scene: Scene, index: int, card: ExpressionHabits) -> str | None:
    text = scene.dialogue.messages[index].content
    phrases = [p for p in card.catchphrases if len(p) >= 2]
    used = [p for p in phrases if p in text]
    if len(used) >= 3 or sum(text.count(p) for p in used) >= 4:
        return f"{len(used)} catchphrases in one message: {shown(text)}"
    recent = [m.content for m in scene.own_before(index)[-3:]] + [text]
    for phrase in used:
        if len(recent) == 4 and all(phrase in message for message in recent):
            return f"the catchphrase {shown(phrase)} in four messages running"
    return None
