"""Rules that hold a message against the persona's typing habits, or against the person's own earlier messages."""

import re

from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import has_emoji, is_filler, is_near_copy, letters, shown
from anthrolab.runtime.text import is_farewell, normalise

_NUMBER = r"[0-9]+|[一二两三四五六七八九十百]+"
_CHARACTERS = re.compile(rf"({_NUMBER})[来多几]?个?字")
_LONG_ONES = re.compile(r"长[段的]|大段|长篇|一长")
_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"两": 2}
_NEVER_PERIOD = re.compile(
    r"(?:不|没|没有)(?:会|用|打|加|带|点)?(?:逗号|、)?(?:标点|句号)|(?:标点|句号)(?:都|全|也)?(?:从来|从)?(?:不打|不用|不加|没有|省)"
)
_HARDLY = re.compile(r"几乎|基本|一般|多半|很少|少打|平时|手打|有时")
_NEVER_EMOJI = re.compile(r"(?:不|没)(?:会|用|打|带|发|爱用|爱发)|^没有|^无$|一个不发|都不发")
_NAMES_EMOJI = re.compile(r"\[[^\]]{1,6}\]")


def chinese_number(text: str) -> int:
    """The (upper) number written in digits or in Chinese, up to the hundreds.

    >>> [chinese_number(t) for t in ("15", "五六", "十五六", "二三十", "一百二十")]
    [15, 6, 16, 30, 120]
    """
    if text.isascii():
        return int(text)
    total = digit = 0
    for c in text:
        if c in _DIGITS:
            digit = _DIGITS[c]
        else:
            total += (digit or 1) * (10 if c == "十" else 100)
            digit = 0
    return total + digit


def usual_length(typical_length: str) -> int | None:
    """The longest usual message, in characters, that a persona card names; None if it names no number.

    >>> usual_length("一条五六个字，爱连发，长的也就二十来个字")
    20
    """
    found = [chinese_number(m.group(1)) for m in _CHARACTERS.finditer(typical_length)]
    return max(found) if found and max(found) > 1 else None


def message_length(scene: Scene, index: int) -> Finding:
    """Passes up to twice the person's usual length (at least 25 characters; 40 if the card names no number), fails
    beyond four times (at least 60), undecided between. Without a number, or for a person who is said to send a long
    one at times, the limit is at least 120."""
    habit = scene.persona.expression_habits.typical_length if scene.persona else ""
    usual = usual_length(habit)
    fits, too_long = (max(25, 2 * usual), max(60, 4 * usual)) if usual else (40, 120)
    if _LONG_ONES.search(habit):
        too_long = max(120, too_long)
    length = letters(scene.dialogue.messages[index].content)
    if length > too_long:
        return failed(f"{length} characters in one message (limit {too_long})")
    return PASSED if length <= fits else UNDECIDED


def not_a_near_copy(scene: Scene, index: int) -> Finding:
    """Fails on a near copy of an own earlier message or an exact one of the partner's, or if most of a message was
    said word for word before; never passes (one-sided)."""
    text = scene.dialogue.messages[index].content
    if is_filler(text) or is_farewell(text):
        return UNDECIDED
    for earlier in scene.own_before(index):
        if is_near_copy(text, earlier.content):
            return failed(f"says again {shown(earlier.content)}")
    again = _said_again(text, [m.content for m in scene.own_before(index)])
    if again >= 0.7:
        return failed(f"{again:.0%} of it was said before: {shown(text)}")
    before = scene.dialogue.messages[:index]
    if len(normalise(text)) >= 6 and any(normalise(text) == normalise(m.content) for m in before):
        return failed(f"copies the partner's {shown(text)}")
    return UNDECIDED


def _said_again(text: str, earlier: list[str]) -> float:
    """Share of a message's runs of four characters that stand in earlier messages; 0 for fewer than eight runs."""
    core = normalise(text)
    runs = {core[i : i + 4] for i in range(len(core) - 3)}
    if len(runs) < 8:
        return 0.0
    return sum(any(run in normalise(e) for e in earlier) for run in runs) / len(runs)


def no_filler_burst(scene: Scene, index: int) -> Finding:
    """Fails on filler that is the third in a row, the second of the same kind in a row, or the fourth own message
    running with nothing else; passes otherwise."""
    messages = scene.dialogue.messages
    if not is_filler(messages[index].content):
        return PASSED
    row = [messages[index].content]
    for message in reversed(messages[:index]):
        if message.speaker != messages[index].speaker or not is_filler(message.content):
            break
        row.append(message.content)
    same_kind = len(row) == 2 and set(normalise(row[0])) == set(normalise(row[1]))
    if len(row) >= 3 or same_kind:
        return failed(f"{len(row)} fillers in a row: {shown(' / '.join(reversed(row)))}")
    recent = [m.content for m in scene.own_before(index)[-3:]]
    if len(recent) == 3 and all(map(is_filler, recent)):
        return failed(f"the fourth own message running that is only filler: {shown(messages[index].content)}")
    return PASSED


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


def rules_out_emoji(emoji: str) -> bool:
    """Whether a card says that the person uses no emoji: a denial, and none that is named.

    >>> [rules_out_emoji(t) for t in ("不发表情，嫌假", "用🙏和😭，被气到就什么都不用", "不发[微笑]，顶多一个[握手]", "很少")]
    [True, False, False, False]
    """
    return bool(_NEVER_EMOJI.search(emoji)) and not _NAMES_EMOJI.search(emoji) and not has_emoji(emoji) and not _HARDLY.search(emoji)


def typing_habits(scene: Scene, index: int) -> Finding:
    """Against a card that rules out full stops or emoji, or with one catchphrase in four own messages running.

    Passes where the card rules out both and neither is there; most cards leave it undecided.
    """
    if scene.persona is None:
        return UNDECIDED
    habits, text = scene.persona.expression_habits, scene.dialogue.messages[index].content
    no_period, no_emoji = rules_out_period(habits.punctuation), rules_out_emoji(habits.emoji)
    if no_period and "。" in text:
        return failed(f"a full stop, against the card ({habits.punctuation}): {shown(text)}")
    if no_emoji and has_emoji(text):
        return failed(f"an emoji, against the card ({habits.emoji}): {shown(text)}")
    recent = [m.content for m in scene.own_before(index)[-3:]] + [text]
    for phrase in habits.catchphrases:
        if len(phrase) >= 2 and len(recent) == 4 and all(phrase in message for message in recent):
            return failed(f"the catchphrase {shown(phrase)} in four messages running")
    return PASSED if no_period and no_emoji else UNDECIDED
