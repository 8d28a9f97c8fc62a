"""Rules that hold a message against the person's usual length, or against their own earlier messages."""

import re

from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import is_filler, is_near_copy, letters, shown
from anthrolab.runtime.text import is_farewell, normalise

_NUMBER = r"[0-9]+|[一二两三四五六七八九十百]+"
_CHARACTERS = re.compile(rf"({_NUMBER})[来多几]?个?字")
_LONG_ONES = re.compile(r"长[段的]|大段|长篇|一长")
_ACKNOWLEDGES = re.compile(
    r"(?:是|对|好|行|得|中|要得|可以|确实|也是|真的|这样|这样子|在|懂了?|明白了?|知道了?|晓得了?|收到|了解|原来如此|有道理|没问题|没事|是吗|嗯|哦|噢|嗯呐|谢谢)+"
    r"[啊呀哦噢的呢了嘛哈吧]*"
)
_NAMED_EMOJI = re.compile(r"(?:\[[一-鿿A-Za-z]{1,6}\]\s*)+")
_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"两": 2}


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
    beyond four times (at least 60, at most 120), undecided between. Without a number, or for a person who is said to
    send a long one at times, the limit is 120."""
    habit = scene.persona.expression_habits.typical_length if scene.persona else ""
    usual = usual_length(habit)
    fits, too_long = (max(25, 2 * usual), min(max(60, 4 * usual), 120)) if usual else (40, 120)
    if _LONG_ONES.search(habit):
        too_long = 120
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
    running with nothing else; passes otherwise. In a row of three, an acknowledgement in words (收到, 这样啊) counts if
    most are bare, or two the same."""
    messages = scene.dialogue.messages
    if not _says_nothing(messages[index].content):
        return PASSED
    row = [messages[index].content]
    for message in reversed(messages[:index]):
        if message.speaker != messages[index].speaker or not _says_nothing(message.content):
            break
        row.append(message.content)
    bare = sum(map(is_filler, row))
    twice = len({frozenset(normalise(text)) for text in row}) < len(row)
    if (len(row) >= 3 and (bare > len(row) // 2 or twice)) or (len(row) == bare == 2 and twice):
        return failed(f"{len(row)} fillers in a row: {shown(' / '.join(reversed(row)))}")
    recent = [m.content for m in scene.own_before(index)[-3:]]
    if len(recent) == 3 and all(map(is_filler, [*recent, messages[index].content])):
        return failed(f"the fourth own message running that is only filler: {shown(messages[index].content)}")
    return PASSED


def _says_nothing(text: str) -> bool:
    return is_filler(text) or bool(_ACKNOWLEDGES.fullmatch(normalise(text)) or _NAMED_EMOJI.fullmatch(text.strip()))
