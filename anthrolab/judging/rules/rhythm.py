"""Rules about a message as it arrives: how much at once, how many in a row, typed in the time there was."""

import re

from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import letters, shown
from anthrolab.runtime.dialogue import Dialogue

BURST_GAP_S = 120
"""Messages of one speaker further apart than this, in seconds, belong to different bursts."""

EASY_CPS, IMPOSSIBLE_CPS = 5.0, 9.0
"""Characters a second that a fast typist (or a phone's voice input) does, and that nobody does."""

_SENTENCE = re.compile(r"[^。！？!?\n]*[\w][^。！？!?\n]*[。！？!?\n]+")
_QUOTED = re.compile(r"[“「][^”」]*[”」]")


def segment_count(scene: Scene, index: int) -> Finding:
    """Fails on the sixth or later message of a burst, and on many sentences packed into one message (six in 18
    characters or more, five in 45, three lines in more than 60). Undecided at the fifth message of a burst, at five
    sentences in more than 25 characters and above 60 characters; passes otherwise."""
    messages = scene.dialogue.messages
    text = messages[index].content
    length, sentences = letters(text), sentence_count(text)
    if (sentences >= 6 and length >= 18) or (sentences == 5 and length >= 45) or (length > 60 and text.strip().count("\n") >= 2):
        return failed(f"{sentences} sentences, {length} characters in one message: {shown(text)}")
    burst = 1
    for later, earlier in zip(reversed(messages[1 : index + 1]), reversed(messages[:index]), strict=True):
        if earlier.speaker != later.speaker or (later.at - earlier.at).total_seconds() > BURST_GAP_S:
            break
        burst += 1
    if burst >= 6:
        return failed(f"message {burst} in a row without an answer")
    doubtful = burst == 5 or (sentences == 5 and length > 25) or length > 60
    return UNDECIDED if doubtful else PASSED


def sentence_count(text: str) -> int:
    """Sentences by their closing marks and line breaks; a quotation is one with its frame, dots (……) part nothing.

    >>> [sentence_count(t) for t in ("行！几点？在南门", "他说“行。知道了。”就挂了", "3！2！1！", "我……那个……算了")]
    [3, 1, 3, 1]
    """
    return sum(1 for _ in _SENTENCE.finditer(_QUOTED.sub("话", text.strip()) + "\n"))


def typing_time(scene: Scene, index: int) -> Finding:
    """Fails if the message comes before the one above it, or if nobody could have typed it in the time there was.

    The time is that since the ask that decided it (an unsent draft that was kept counts from its first ask) where
    the dialogue records its asks, else since the person's own previous message. Undecided if all times of the
    dialogue are full minutes.
    """
    messages = scene.dialogue.messages
    message = messages[index]
    if index == 0:
        return UNDECIDED
    if message.at < messages[index - 1].at:
        return failed(f"sent at {message.at:%H:%M:%S}, before the message above it ({messages[index - 1].at:%H:%M:%S})")
    if len(messages) > 2 and all(m.at.second == 0 for m in messages):
        return UNDECIDED
    length = letters(message.content)
    asked = _seconds_since_ask(scene.dialogue, index)
    after_last = (message.at - messages[index - 1].at).total_seconds()
    own = [m for m in messages[:index] if m.speaker == message.speaker] or messages[:1]
    had = asked if asked is not None else (message.at - own[-1].at).total_seconds()
    if length >= 12 and length > IMPOSSIBLE_CPS * max(had, 1.0):
        return failed(f"{length} characters typed in {had:.0f} s: {shown(message.content)}")
    surely_had = had if asked is not None else after_last
    return PASSED if length <= 8 or length <= EASY_CPS * surely_had else UNDECIDED


def _seconds_since_ask(dialogue: Dialogue, index: int) -> float | None:
    """Seconds from the ask that first decided on the message to its sending; None without a record of it."""
    message, since = dialogue.messages[index], None
    for ask in reversed(dialogue.asks or []):
        if ask.speaker != message.speaker or ask.now > message.at:
            continue
        decision = ask.decision
        if decision is None or decision.end or decision.content != message.content:
            if since is not None:
                break
            continue
        since = ask.now
        if ask.previous_draft is None or ask.previous_draft.content != message.content:
            break
    return None if since is None else (message.at - since).total_seconds()
