"""The one JSON object in a model's reply (a decision, a memory update, a summary), and what was bent back to read it.

Only damage of form is undone. What is cut off or can be read in two ways is an error, since a guessed word would
become a chat message. Hence no library: json-repair closes cut-off strings and invents values, json5 knows no
full-width marks. A reply is read once, from left to right: text outside brackets is set aside, a bracketed value is
rewritten token by token as strict JSON, and `json` says whether that is grammatical.
"""

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anthrolab.models.client import Reply

MAX_DEPTH = 100

_CUT_OFF = "the reply's JSON is cut off"
_INVISIBLE = "invisible characters dropped"
_FULL_WIDTH = "full-width marks read as JSON"
_PYTHON = "Python spelling read as JSON"

# Unicode blanks that are no JSON blanks (NBSP, full-width space, ...), zero-width characters, byte order mark.
_UNSEEN = r"(?:[^\S\x20\t\r\n]|[\u200b-\u200f\u2060\ufeff])"
# A brace anywhere begins an object; a square bracket begins a list only before a quote or another bracket.
_START = re.compile(r"""[{｛]|[\[［](?=\s*["'“”＂\[\]［］{｛])""")
# A string ends at the next quote of its kind. Curly quotes come in any order, so one inside leaves text outside
# the string, which is an error.
_STRING = "|".join(rf"[{q}][^{q}\\]*(?:\\.[^{q}\\]*)*[{q}]" for q in ('"', "'", "“”", "＂"))
_TOKEN = re.compile(
    rf"(?P<blank>[\x20\t\r\n]+)|(?P<unseen>{_UNSEEN}+)|(?P<string>{_STRING})|(?P<mark>[][{{}}:,［］｛｝：，])"
    r"|(?P<comment>(?://|#)[^\r\n]*|/\*.*?\*/)|(?P<word>[-+.A-Za-z0-9_]+)",
    re.DOTALL,
)
_INSIDE = re.compile(r'\\.|["\n\r\t]', re.DOTALL)
_HALF_WIDTH = str.maketrans("［］｛｝：，", "[]{}:,")
_WORDS = {"True": "true", "False": "false", "None": "null"}
_AROUND = {
    "JSON taken out of a code fence": re.compile(r"(?:```|~~~)[A-Za-z0-9+-]*"),
    _INVISIBLE: re.compile(_UNSEEN),
    "think tags dropped": re.compile(r"(?i)</?(?:think|thinking|thought|reasoning)>|◁/?think▷|\[/?think\]"),
    "template tokens dropped": re.compile(r"<[|｜][^<>]{1,40}[|｜]>|</?s>|<(?:eos|(?:start|end)_of_turn)>|\[/?INST\]"),
}


@dataclass(frozen=True)
class Found:
    """The object, or why there is none; `recovered` names what was bent back ("; " between), None for plain JSON."""

    value: dict[str, Any] | None
    error: str | None = None
    recovered: str | None = None


class _UnreadableError(Exception):
    """Why there is not exactly one object; the message becomes `Found.error`."""


def read_object(reply: Reply) -> Found:
    """The one object in a reply; never raises.

    Undone under a label: fences, words and tokens around the object; blanks that JSON does not know; trailing commas,
    comments, full-width marks, Python's quotes and constants; raw line breaks in strings; an object given twice
    or packed into a JSON string; half characters (no file could hold them). A blank text beside reasoning that holds
    exactly one object is read from there (servers that apply the schema to the thought).

    >>> read_object(Reply("好的：{'end': False,}"))
    Found(value={'end': False}, error=None, recovered='Python spelling read as JSON; trailing comma dropped; words around the JSON dropped')
    >>> read_object(Reply('{"content": "在')).error
    "the reply's JSON is cut off"
    """
    if reply.truncated:
        return Found(None, "the reply was cut off at the length cap")
    if re.sub(_UNSEEN, "", reply.text).strip():
        return _read(reply.text, [])
    found = _read(reply.reasoning or "", ["JSON taken out of the reasoning field"])
    return found if found.value is not None else Found(None, "the reply is empty")


def _read(text: str, labels: list[str]) -> Found:
    try:
        value = _one_object(text, labels)
    except _UnreadableError as e:
        return Found(None, str(e))
    return Found(value, None, "; ".join(dict.fromkeys(labels)) or None)


def _one_object(text: str, labels: list[str]) -> dict[str, Any]:
    if text.lstrip().startswith('"'):
        try:
            inner = json.loads(text)
        except ValueError:
            pass  # no JSON string, only a text that begins with a quote
        else:
            labels.append("JSON unpacked from a JSON string")
            return _one_object(inner, labels)
    if text.lstrip().startswith("{") and text.count("{") + text.count("[") <= MAX_DEPTH:
        own: list[str] = []
        with contextlib.suppress(_UnreadableError):  # what is not plain JSON is read from left to right, below
            value = _load(text, own)
            labels.extend(own)
            return _whole(value, labels)
    objects: list[dict[str, Any]] = []
    outside: list[str] = []
    at = 0
    while start := _START.search(text, at):
        outside.append(text[at : start.start()])
        strict, at = _bracketed(text, start.start(), labels)
        value = _load(strict, labels)
        if not isinstance(value, dict):
            raise _UnreadableError("the reply is a JSON list, not an object")
        objects.append(value)
    if not objects:
        raise _UnreadableError("the reply holds no JSON object")
    if len({_canonical(o) for o in objects}) > 1:
        raise _UnreadableError("the reply holds two different objects")
    if len(objects) > 1:
        labels.append("repeated object taken once")
    labels.extend(_around("\n".join([*outside, text[at:]])))
    return _whole(objects[0], labels)


def _around(text: str) -> Iterator[str]:
    """The labels of what stands outside the brackets."""
    for label, pattern in _AROUND.items():
        text, times = pattern.subn("", text)
        if times:
            yield label
    if text.strip():
        yield "words around the JSON dropped"


def _bracketed(text: str, at: int, labels: list[str]) -> tuple[str, int]:
    """The bracketed value that begins at `at`, as strict JSON, and where it ends."""
    out: list[str] = []
    depth = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise _UnreadableError(_no_token(text, at))
        kind, piece, at = token.lastgroup, token[0], token.end()
        if kind == "unseen":
            labels.append(_INVISIBLE)
        elif kind == "comment":
            labels.append("comment dropped")
        elif kind == "string":
            out.append(_strict_string(piece, labels))
        elif kind == "word":
            out.append(_WORDS.get(piece, piece))
            if piece in _WORDS:
                labels.append(_PYTHON)
        elif kind == "mark":
            mark = piece.translate(_HALF_WIDTH)
            if mark != piece:
                labels.append(_FULL_WIDTH)
            if mark in "]}" and out[-1] == ",":
                out.pop()
                labels.append("trailing comma dropped")
            out.append(mark)
            depth += (mark in "[{") - (mark in "]}")
            if depth > MAX_DEPTH:
                raise _UnreadableError(f"the reply's JSON is nested more than {MAX_DEPTH} deep")
            if depth == 0:
                return " ".join(out), at  # a blank between, so that "1 2" does not become 12
    raise _UnreadableError(_CUT_OFF)


def _no_token(text: str, at: int) -> str:
    """What is wrong where no token begins: a string or comment without an end, or a character that is no JSON."""
    char = text[at]
    alone = char in "“”" and not re.search("[“”]", text[at + 1 :])
    if alone or char in "\"'＂" or text.startswith("/*", at):
        return _CUT_OFF
    return f"the reply is no JSON ({char!r} at character {at})"


def _strict_string(piece: str, labels: list[str]) -> str:
    """A string in any quotes as a JSON string; what stands in it is kept to the character."""
    plain = piece[0] == '"'
    if not plain:
        labels.append(_PYTHON if piece[0] == "'" else _FULL_WIDTH)

    def fix(match: re.Match[str]) -> str:
        found = match[0]
        if found in "\n\r\t":
            labels.append("raw line break or tab in a string kept")
            return json.dumps(found)[1:-1]
        if found == '"':
            return '\\"'
        return found[1] if not plain and found[1] in "'“”＂" else found

    return f'"{_INSIDE.sub(fix, piece[1:-1])}"'


def _load(strict: str, labels: list[str]) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for key, given in pairs:
            if key in value:
                if _canonical(value[key]) != _canonical(given):
                    raise _UnreadableError(f"the reply's JSON gives {key!r:.40} twice with different values")
                labels.append("repeated key taken once")
            value[key] = given
        return value

    def refuse(word: str) -> None:
        raise _UnreadableError(f"the reply is no JSON ({word})")

    try:
        return json.loads(strict, object_pairs_hook=once, parse_constant=refuse)
    except json.JSONDecodeError as e:
        raise _UnreadableError(f"the reply is no JSON ({e.msg})") from None
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise _UnreadableError("the reply's JSON holds a number of thousands of digits") from None


def _canonical(value: object) -> str:
    """Equal for equal JSON only (in Python True == 1)."""
    return json.dumps(value, sort_keys=True)


def _whole(value: dict[str, Any], labels: list[str]) -> dict[str, Any]:
    """The object with every lone surrogate (half an emoji, from a JSON escape) replaced."""
    text = json.dumps(value, ensure_ascii=False)
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if whole == text:
        return value
    labels.append("half characters replaced")
    replaced: dict[str, Any] = _load(whole, labels)
    return replaced
