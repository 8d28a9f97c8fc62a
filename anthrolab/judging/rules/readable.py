"""Readable text (D5.2): no garbled characters, leaked markup, runaway repetition or fragments of other scripts."""

import re
import unicodedata

from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import letters, shown
from anthrolab.runtime.dialogue import Dialogue

_LEAK = re.compile(
    r"<\|?/?[a-z_]{1,20}\|?>|<\|[^|>]{1,30}\|>|</?[a-z]{1,10}\s[^>]*>|<[a-z]{1,10}\s*/>|[a-z-]{2,12}=[\"'][^\"']*[\"']>|\[/?INST\]|\[/?(?:UNK|PAD|EOS|BOS|SEP|CLS|MASK)\]|"
    r"\{\s*\"\w+\"\s*:|\"(?:role|response|reply|content|text|message|emotion|timestamp)\"\s*:|\\n|\\t(?![a-z])|\\u[0-9a-f]{4}|"
    r"&(?:amp|nbsp|quot|lt|gt|apos|#\d+|#x[0-9a-f]+);|\{\{.*?\}\}|\$\{.*?\}|(?<!\w)\{[a-z_]{2,12}\}|\[object Object\]|(?<![A-Za-z])(?:undefined|NaN|NULL)(?![A-Za-z])|(?:%[0-9A-F]{2}){3}|"
    r"#{2,}\s*(?:Human|User|Assistant|Instruction|Response)|base64,|\b(?:var|const|let|return|def|print)\s*\(?\s*[a-z\"'].*[=;\"']|[A-Za-z0-9+/]{28,}={0,2}|"
    r"^\s*\[?\d{1,2}:\d{2}(?::\d{2})?\]\s*\S{1,8}[:：]|^\s*(?:user|assistant|system|model)\s*[:：]",
    re.IGNORECASE,
)
_MOJIBAKE = re.compile(r"�|锟斤拷|烫烫烫|屯屯屯|Ã[\x80-\xbf©¤¨]|â€|ï¼|ä[\xb8-\xbf]|å[\x80-\xbf]|[äåæçèé][^\x00-\x7f一-鿿]{2}|[□▯]{2,}|□.*□")
_HOLES = re.compile(r"[一-鿿][?？]{1,3}(?=[一-鿿])")
_OPEN_END = re.compile(r"(?:[：:，,、；;]|说：?“[^”]*)\s*$|“[^”]{25,}$")
_LAUGHTER = set("哈嘿呵嘻啊呜嗷呀哇噢哦嗯额h6lwz2~～.。…!！?？-—=_ +＋")
_RUN = re.compile(r"(.)\1{11,}")
_LOOP = re.compile(r"(.{2,12}?)\1{4,}", re.DOTALL)
_STUTTER = re.compile(r"([一-鿿])(?:\s?\1)+")
_WORDS_OF_ENGLISH = frozenset("a an the is are was be to of in it that this not we you i they and or but because with so if my your do can will what for".split())


def readable_text(scene: Scene, index: int) -> Finding:
    """Fails on garbled characters, leaked markup, runaway repetition, another script, or a sentence that breaks off
    and is not taken up in the next message; passes otherwise.

    It says nothing about sense: word salad in clean Chinese is readable to this rule.
    """
    text = scene.dialogue.messages[index].content
    if hit := _MOJIBAKE.search(text):
        return failed(f"garbled characters: {shown(hit.group())}")
    if wrong := _decoded_wrongly(text):
        return failed(f"garbled characters: {shown(wrong)}")
    if hit := _LEAK.search(text):
        return failed(f"leaked markup: {shown(hit.group())}")
    if any(unicodedata.category(c) in ("Cc", "Cn", "Co", "Cs") for c in text if c not in "\n\t\r"):
        return failed(f"control or unassigned characters in {shown(text)}")
    if len(_HOLES.findall(text)) >= 4 or (len(_HOLES.findall(text)) >= 2 and len(re.findall(r"[一-鿿]\?{2,}", text)) >= 3):
        return failed(f"holes in the text: {shown(text)}")
    if repeated := _repetition(text):
        return failed(repeated)
    if _OPEN_END.search(text) and not _continued(scene.dialogue, index):
        return failed(f"stops in mid-sentence: {shown(text[-30:])}")
    return _script(text)


def _decoded_wrongly(text: str) -> str | None:
    """A part of the text that is UTF-8 read as GBK (浣犲ソ for 你好), if there is one: it must decode back to Chinese.

    >>> _decoded_wrongly("我明天鍘荤湅鐪嬪惂"), _decoded_wrongly("我明天去看看吧")
    ('鍘荤湅鐪', None)
    """
    for start in range(len(text) - 3):
        part = text[start : start + 4]
        if any(c.isascii() or unicodedata.category(c)[0] in "ZC" for c in part):
            continue
        try:
            back = part.encode("gb18030")[:6].decode("utf-8")
        except UnicodeError:
            continue
        if len(back) == 2 and all("一" <= c <= "鿿" or c in "，。！？：；、（）" for c in back):
            return part
    return None


def _repetition(text: str) -> str | None:
    hit = _RUN.search(text)
    if hit and (hit.group(1) not in _LAUGHTER or len(hit.group()) > 40):
        return f"one character {len(hit.group())} times: {shown(hit.group())}"
    hit = _LOOP.search(text)
    if hit and not set(hit.group().casefold()) <= _LAUGHTER and letters(hit.group()) >= 15:
        return f"runaway repetition: {shown(hit.group())}"
    stutters = [m.group() for m in _STUTTER.finditer(text) if m.group(1) not in _LAUGHTER]
    share = sum(map(letters, stutters)) / max(letters(text), 1)
    if len({s[0] for s in stutters}) >= 3 and sum(letters(s) >= 3 for s in stutters) >= 2 and share > 0.6:
        return f"stuttering: {shown(text)}"
    return None


def _continued(dialogue: Dialogue, index: int) -> bool:
    """True if the speaker's next message follows at once, or the dialogue ends here."""
    after = dialogue.messages[index + 1 : index + 2]
    return not after or after[0].speaker == dialogue.messages[index].speaker


def _script(text: str) -> Finding:
    chinese = sum("一" <= c <= "鿿" or "㐀" <= c <= "䶿" for c in text)
    latin = sum(c.isascii() and c.isalpha() for c in text)
    foreign = sum(c.isalpha() and not c.isascii() and unicodedata.category(c) in ("Lo", "Ll", "Lu", "Lm") for c in text) - chinese
    words = re.findall(r"[A-Za-z]{2,}", text)
    runs = _foreign_words(text)
    if (foreign >= 6 and foreign > 0.3 * (chinese + latin + foreign)) or (foreign >= 6 and len(runs) >= 2 and max(map(len, runs)) >= 3):
        return failed(f"another script: {shown(text)}")
    symbols = sum(not c.isalnum() and not c.isspace() and ord(c) < 0x2600 for c in text)
    if symbols >= 12 and symbols > 1.5 * (chinese + latin) and len({c for c in text if not c.isalnum() and not c.isspace()}) >= 5:
        return failed(f"a string of symbols: {shown(text)}")
    little = sum(w.casefold() in _WORDS_OF_ENGLISH for w in re.findall(r"[A-Za-z]+", text))
    if (len(words) >= 6 and chinese < len(words)) or (chinese and len(words) >= 4 and little >= 2 and not re.search(r"[《“\"]", text)):
        return failed(f"foreign text: {shown(text)}")
    if chinese and runs and max(map(len, runs)) >= 3:
        return UNDECIDED
    return UNDECIDED if latin >= 12 and not chinese and not re.search(r"https?://|[A-Za-z]+\.[a-z]{2,}", text) else PASSED


def _foreign_words(text: str) -> list[str]:
    """Runs of letters that are neither Chinese nor ASCII."""
    return re.findall(r"[^\W\d_\x00-\x7f一-鿿㐀-䶿]+", text)
