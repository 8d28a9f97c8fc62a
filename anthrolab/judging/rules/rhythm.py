"""Rules about the form of a message as it arrives: how many in a row, readable or not, typed in the time there was."""

import re
import unicodedata

from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import letters, shown
from anthrolab.runtime.dialogue import Dialogue

BURST_GAP_S = 120
"""Messages of one speaker further apart than this, in seconds, belong to different bursts."""

EASY_CPS, IMPOSSIBLE_CPS = 5.0, 9.0
"""Characters a second that a fast typist (or a phone's voice input) does, and that nobody does."""

_LEAK = re.compile(
    r"<\|?/?[a-z_]{2,20}\|?>|<\|[^|>]{1,30}\|>|\[/?INST\]|\{\s*\"(?:role|response|content|timestamp)\"|\\n\\n|\\u[0-9a-f]{4}|"
    r"^\s*\[?\d{1,2}:\d{2}(?::\d{2})?\]\s*\S{1,8}[:：]|^\s*(?:user|assistant|system|model)\s*[:：]",
    re.IGNORECASE,
)
_MOJIBAKE = re.compile(r"�|锟斤拷|烫烫烫|屯屯屯|Ã[\x80-\xbf©¤¨]|â€|ï¼|ä[\xb8-\xbf]|å[\x80-\xbf]")
_OPEN_END = re.compile(r"(?:[：:，,、；;]|说：?“[^”]*)\s*$|“[^”]{25,}$")
_LAUGHTER = set("哈嘿呵嘻啊呜嗷呀哇噢哦嗯额h6lwz2~～.。…!！?？-—=_ +＋")
_RUN = re.compile(r"(.)\1{11,}")
_LOOP = re.compile(r"(.{2,12}?)\1{4,}", re.DOTALL)
_SENTENCE_END = re.compile(r"[。！!？?]+(?=\S)")


def segment_count(scene: Scene, index: int) -> Finding:
    """Fails on the sixth or later message of a burst, and on five sentences or three lines packed into one message;
    passes up to the fourth."""
    messages = scene.dialogue.messages
    text = messages[index].content
    if letters(text) > 60 and (len(_SENTENCE_END.findall(text)) >= 4 or text.strip().count("\n") >= 2):
        return failed(f"{letters(text)} characters of several sentences in one message: {shown(text)}")
    burst = 1
    for later, earlier in zip(reversed(messages[1 : index + 1]), reversed(messages[:index]), strict=True):
        if earlier.speaker != later.speaker or (later.at - earlier.at).total_seconds() > BURST_GAP_S:
            break
        burst += 1
    if burst >= 6:
        return failed(f"message {burst} in a row without an answer")
    return PASSED if burst <= 4 else UNDECIDED


def readable_text(scene: Scene, index: int) -> Finding:
    """Fails on garbled characters, leaked markup, runaway repetition, another script, or a sentence that breaks off
    and is not taken up in the next message; passes otherwise.

    It says nothing about sense: word salad in clean Chinese is readable to this rule.
    """
    text = scene.dialogue.messages[index].content
    if hit := _MOJIBAKE.search(text):
        return failed(f"garbled characters: {shown(hit.group())}")
    if hit := _LEAK.search(text):
        return failed(f"leaked markup: {shown(hit.group())}")
    if any(unicodedata.category(c) in ("Cc", "Cn", "Co", "Cs") for c in text if c not in "\n\t\r"):
        return failed(f"control or unassigned characters in {shown(text)}")
    hit = _RUN.search(text)
    if hit and (hit.group(1) not in _LAUGHTER or len(hit.group()) > 40):
        return failed(f"one character {len(hit.group())} times: {shown(hit.group())}")
    hit = _LOOP.search(text)
    if hit and not set(hit.group().casefold()) <= _LAUGHTER and letters(hit.group()) >= 15:
        return failed(f"runaway repetition: {shown(hit.group())}")
    if _OPEN_END.search(text) and not _continued(scene.dialogue, index):
        return failed(f"stops in mid-sentence: {shown(text[-30:])}")
    return _script(text)


def _continued(dialogue: Dialogue, index: int) -> bool:
    """True if the speaker's next message follows at once, or the dialogue ends here."""
    after = dialogue.messages[index + 1 : index + 2]
    return not after or after[0].speaker == dialogue.messages[index].speaker


def _script(text: str) -> Finding:
    chinese = sum("一" <= c <= "鿿" or "㐀" <= c <= "䶿" for c in text)
    latin = sum(c.isascii() and c.isalpha() for c in text)
    foreign = sum(c.isalpha() and not c.isascii() and unicodedata.category(c) == "Lo" for c in text) - chinese
    foreign += sum(c.isalpha() and not c.isascii() and unicodedata.category(c) in ("Ll", "Lu") for c in text)
    if foreign >= 6 and foreign > 0.3 * (chinese + latin + foreign):
        return failed(f"mostly another script: {shown(text)}")
    symbols = sum(not c.isalnum() and not c.isspace() and ord(c) < 0x2600 for c in text)
    if symbols >= 12 and symbols > 2 * (chinese + latin) and len({c for c in text if not c.isalnum()}) >= 5:
        return failed(f"a string of symbols: {shown(text)}")
    words = re.findall(r"[A-Za-z]{2,}", text)
    if len(words) >= 6 and chinese < len(words):
        return failed(f"foreign text: {shown(text)}")
    return UNDECIDED if latin >= 12 and not chinese and not re.search(r"https?://|[A-Za-z]+\.[a-z]{2,}", text) else PASSED


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
