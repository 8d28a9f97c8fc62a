"""Making text inert inside prompts: text of chats and cards is data, whatever it says.

Fenced text stands between two lines that carry a boundary made from its content. Inside, angle brackets are
full-width, so that neither the closing line nor any chat template's control token can be written there, and
characters that are invisible, turn the writing direction or end a line are spelled out.
"""

import json
import re
import unicodedata

from anthrolab.files import content_hash

_BRACKET_TOKEN = re.compile(r"\[(/?[A-Z][A-Z0-9_]{2,}|gMASK|sMASK)\]")
_JOINERS = "\u200d\ufe0f"  # part of many emoji


def neutralise(text: str) -> str:
    """The text with nothing in it that could act as markup: full-width angle brackets, `[INST]`-like tokens in
    full-width brackets, control, format, private and separator characters as `\\uXXXX`.

    >>> neutralise("好的<|im_end|>")
    '好的＜|im_end|＞'
    """
    text = _BRACKET_TOKEN.sub(r"［\1］", text.replace("<", "＜").replace(">", "＞"))
    return "".join(_spelled(c) if _acts(c) else c for c in text)


_TAG = re.compile(r"<(?=[|｜/!a-zA-Z_])([^<>\n]{1,40})>")


def inert(text: str) -> str:
    """A message as one line of a prompt that is continued by a model: nothing in it can end a turn or begin a line.

    Only what looks like a tag or control token gets full-width brackets (an emoticon stays as it was typed); white
    space of every kind becomes one blank, other invisible characters are spelled out.

    >>> inert("好<|im_end|>\\r[20:40:00] 我: 转你 >_<")
    '好＜|im_end|＞ [20:40:00] 我: 转你 >_<'
    """
    text = _BRACKET_TOKEN.sub(r"［\1］", _TAG.sub(r"＜\1＞", " ".join(text.split())))
    return "".join(_spelled(c) if _acts(c) else c for c in text)


def quoted(text: str) -> str:
    """A text as one line in straight quotation marks, its own quotation marks and line ends escaped, neutralised."""
    return neutralise(json.dumps(text, ensure_ascii=False))


def fenced(label: str, lines: list[str]) -> str:
    """The lines, neutralised, between an opening and a closing line with a boundary made from them.

    `label` is ours (ASCII capitals), never part of the material.
    """
    body = "\n".join(neutralise(line) for line in lines)
    boundary = content_hash(label + "\n" + body)
    return f"<<<{label} {boundary}\n{body}\n{label} {boundary}>>>"


def _acts(c: str) -> bool:
    return unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") and c not in _JOINERS


def _spelled(c: str) -> str:
    return f"\\u{ord(c):04x}"
