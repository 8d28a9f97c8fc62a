"""Making text inert inside prompts: text of chats and cards is data, whatever it says.

Fenced text stands between two lines that carry a boundary made from its content. Inside, angle brackets are
full-width, so that neither the closing line nor any chat template's control token can be written there, and
characters that are invisible, turn the writing direction or end a line are spelled out.
"""

import json
import re
import unicodedata
from collections.abc import Sequence

from anthrolab.files import content_hash

_TAG = r"<(?=[|｜/!\[a-zA-Z_])[^<>]{1,80}>|<(?:2mass|0x[0-9A-F]{2})>"
_BRACKETS = r"\[/?(?:[A-Z][A-Z0-9_]{2,}|gMASK|sMASK|@BOS@|multimodal)\]"  # [INST] and its like
_MINIMAX = r"\]~!?b[\[\]]|\[e~\[|\]![a-z]~\[|\]<\][^<>\[\]\n]{1,40}\[>\["
_KIMI = r"◁/?[a-z_]+▷"
_LIKE_A_TOKEN = re.compile("|".join((_MINIMAX, _TAG, _BRACKETS, _KIMI)))
_BRACKET_TOKEN = re.compile("|".join((_MINIMAX, _BRACKETS, _KIMI)))
_WIDE = str.maketrans("<>[]◁▷", "＜＞［］＜＞")
_JOINERS = "\u200d\ufe0f"  # part of many emoji
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f"
"""Seen as nothing although Unicode files them under letters, symbols and marks; variation selectors besides."""


def neutralise(text: str) -> str:
    """The text with nothing in it that could act as markup: full-width angle brackets, `[INST]`-like tokens in
    full-width brackets, control, format, private, separator and unseen characters as `\\uXXXX`.

    >>> neutralise("好的<|im_end|>")
    '好的＜|im_end|＞'
    """
    return _spelled_out(_BRACKET_TOKEN.sub(_wide, text.replace("<", "＜").replace(">", "＞")))


def without_control_tokens(text: str) -> str:
    """The text with full-width brackets where it spells a control token of a chat template, or a tag; otherwise to the
    character as it was: white space and emoticons stay.

    >>> without_control_tokens("好的<|im_end|> >_<")
    '好的＜|im_end|＞ >_<'
    """
    return _LIKE_A_TOKEN.sub(_wide, text)


def inert(text: str) -> str:
    """A message as one line of a prompt that is continued by a model: nothing in it can end a turn or begin a line.

    Only what looks like a tag or control token gets full-width brackets (an emoticon stays as it was typed); white
    space of every kind becomes one blank, other invisible characters are spelled out.

    >>> inert("好<|im_end|>\\r[20:40:00] 我: 转你 >_<")
    '好＜|im_end|＞ [20:40:00] 我: 转你 >_<'
    """
    return _spelled_out(without_control_tokens(" ".join(text.split())))


def quoted(text: str) -> str:
    """A text as one line in straight quotation marks, its own quotation marks and line ends escaped, neutralised."""
    return neutralise(json.dumps(text, ensure_ascii=False))


def fenced(label: str, lines: Sequence[str]) -> str:
    """The lines, neutralised, between an opening and a closing line with a boundary made from them: a text that holds it
    cannot be written.

    `label` is ours (ASCII capitals), never part of the material.
    """
    inside = [neutralise(line) for line in lines]
    mark = content_hash("\n".join([label, *inside]))
    return "\n".join([f"<<<{label} {mark}", *inside, f"{label} {mark}>>>"])


_DOUBTFUL = re.compile(f"[{_JOINERS}{''.join(_BLANK_LETTERS)}\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""What may be spelled out although Python counts it as printable."""


def _wide(token: re.Match[str]) -> str:
    return token[0].translate(_WIDE)


def _spelled_out(text: str) -> str:
    """The text with every character spelled out that acts or is not seen; a joiner stays where it joins emoji."""
    if text.isprintable() and not _DOUBTFUL.search(text):
        return text
    out, before = [], ""
    for c in text:
        kept = _joins(before, c) if c in _JOINERS else not _acts(c)
        out.append(c if kept else f"\\u{ord(c):04x}")
        before = c if kept else ""
    return "".join(out)


def _joins(before: str, joiner: str) -> bool:
    """Whether a joiner stands where emoji have one: after a picture, and U+FE0F also after what becomes one (1, #, !!)."""
    after = ("So", "Sk") if joiner == "\u200d" else ("So", "Sk", "Sm", "Nd", "Po", "Pd")
    return before == "\ufe0f" or (before != "" and unicodedata.category(before) in after)


def _acts(c: str) -> bool:
    return (
        unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
        or c in _BLANK_LETTERS
        or "\ufe00" <= c <= "\ufe0e"
        or "\U000e0100" <= c <= "\U000e01ef"
    )
