"""L0-08: what each speaker set out to do, and whether the end of it can be true yet."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from anthrolab.judging.l0.activities import ACTIVITIES
from anthrolab.judging.l0.framing import plain
from anthrolab.judging.l0.time_logic import ended, named, starts
from anthrolab.judging.l0.time_words import DECLARED, DURATION, GOING, NOT_DONE, NUMBERS, SOME_END, UNITS
from anthrolab.runtime.dialogue import Message

LONGEST_S = 1800.0
"""No activity is held to take longer, in seconds, so no message before that is looked at again."""
_SHARE = 5
"""An activity takes at least this part of the duration that its speaker named."""
_DECLARED_S = 600
"""The least named duration, in seconds, for which it does not matter what was announced."""
_SAME_VERB = re.compile(r"(?:我|都|已经|终于|总算)*([\u4e00-\u9fff])(?:完|好)(?:[\u4e00-\u9fff])?(?:了|啦)")


def _duration_s(text: str) -> float:
    """The longest duration that the message names, in seconds; 0 for none."""
    longest = 0.0
    for number, half, unit in DURATION.findall(text):
        if number.isdigit():
            value = float(number)
        elif "十" in number:
            tens, _, ones = number.partition("十")
            value = 10 * NUMBERS.get(tens, 1) + NUMBERS.get(ones, 0)
        else:
            value = NUMBERS.get(number, 1)
        longest = max(longest, (value + 0.5 * (half == "个半")) * UNITS[unit])
    return longest


def _declares(text: str) -> bool:
    """去考个试 两小时: something is announced with how long it will take."""
    return bool(GOING.match(text)) and _duration_s(plain(text)) >= _DECLARED_S


def _verb_over(flat: str) -> str | None:
    """The verb whose end a message tells first: 考 of 考完了."""
    m = _SAME_VERB.match(flat)
    return m[1] if m and not NOT_DONE.search(m[0]) and flat[-1] not in "吗没" and not re.search("[？?]", flat) else None


class _Note:
    """A message, and what it announces so far as that was asked for."""

    __slots__ = ("_begins", "_named", "at", "index", "text")

    def __init__(self, index: int, text: str, at: datetime) -> None:
        self.index, self.text, self.at = index, text, at
        self._begins: dict[int, bool] = {}
        self._named: int | None = None

    def begins(self, activity: int) -> bool:
        """The message announces this activity, or DECLARED, and it is not over yet."""
        if activity not in self._begins:
            self._begins[activity] = _declares(self.text) if activity == DECLARED else self._starts(activity)
        return self._begins[activity]

    def end(self, activities: Iterable[int]) -> None:
        """These are over: they cannot end again."""
        self._begins.update(dict.fromkeys(activities, False))

    def _starts(self, activity: int) -> bool:
        if self._named is None:
            self._named = named(self.text)
        return bool(self._named >> activity & 1) and starts(plain(self.text), activity)


class Clock:
    """What each speaker set out to do in one dialogue.

    Ends are rare and most announcements have none, so messages are only read when the same speaker ends something.
    """

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._read: dict[int, _Note] = {}

    def finished(self, index: int) -> str | None:
        """What message `index` tells to be over though it cannot be yet, or None. To be asked in the order of the messages."""
        message = self._messages[index]
        if not SOME_END.search(message.content):
            return None
        flat = plain(message.content)
        over = ended(flat)
        # Most messages with such a word end nothing, and the earlier ones need no look.
        if not over and not _verb_over(flat):
            return None
        noted = [
            self._read.get(i) or self._read.setdefault(i, _Note(i, m.content, m.at))
            for i, m in enumerate(self._messages[:index])
            if m.speaker == message.speaker and not m.opener and (message.at - m.at).total_seconds() < LONGEST_S
        ]
        return _finish(noted, over, message.content, message.at) if noted else None


def _finish(noted: Sequence[_Note], over: list[int], text: str, at: datetime) -> str | None:
    """What of the noted is over with this message, which ends `over`, if it cannot be yet."""
    for note in reversed(noted):
        if done := [activity for activity in over if note.begins(activity)]:
            break
    else:
        verb, over = _verb_over(plain(text)), [DECLARED]
        declared = next((earlier for earlier in reversed(noted) if earlier.begins(DECLARED)), None)
        if not declared or not verb or verb not in declared.text:
            return None
        note = declared
        done = over
    named_s = min(_duration_s(plain(note.text)) / _SHARE, LONGEST_S)
    least_s = min(0 if activity == DECLARED else ACTIVITIES[activity].least_s for activity in done)
    for earlier in noted:
        earlier.end(over)
    took_s = (at - note.at).total_seconds()
    if not 0 <= took_s < max(least_s, named_s):
        return None
    return f"{note.text} (message {note.index}) → {text} after {took_s:.0f} s"
