"""Changing one value in a YAML text and nothing else.

ruamel.yaml's parser says where every value stands; only those characters are replaced, so comments, quoting, order, line
ends and blank lines of everything else stay as they are, whatever they are. (A dump writes the whole file anew: it
keeps our own layout, but not every layout.) Every result is read again and compared with what was meant.
"""

import difflib
import json
import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from anthrolab.errors import AnthrolabError

Where = tuple[str | int, ...]
"""The way to a value: ("speakers", "a", "knows"), ("bindings", 3, "scenario")."""
Value = str | int | date | list[str]
"""What a field may hold; date includes datetime, int includes bool."""

_NOT_PRINTED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


class EditError(AnthrolabError):
    """A change that cannot be made in this file's layout."""


def dotted(where: Where) -> str:
    """A way as errors name it: speakers.a.knows."""
    return ".".join(map(str, where))


def load(text: str) -> Any:
    """The content of a YAML text."""
    return YAML(typ="safe", pure=True).load(text)


def set_value(text: str, where: Where, value: Value, order: Sequence[str] = ()) -> str:
    """The text with that value at that place; a missing field is put behind its last predecessor in `order`.

    Example: set_value("age: 41  # years\\n", ("age",), 42) is "age: 42  # years\\n".
    EditError where the layout does not allow it: an alias, a value that is itself made of groups.
    """
    content = load(text)
    if _same(at(content, where), value):
        return text
    root = YAML(typ="safe", pure=True).compose(text)
    try:
        new = _edited(text, root, where, value, order)
        good = _same(load(new), _with(content, where, value))
    except (YAMLError, ValueError):
        good = False
    if not good:
        raise EditError(f"{dotted(where)}: cannot be changed alone here (an alias, or a layout out of the common); change it in an editor")
    return new


def scalar(value: str | int | date, style: str | None = None, *, flow: bool = False) -> str:
    """One value in YAML, in the quoting style asked for ("'", '"' or None for plain) if it can be had, else double-quoted."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int):
        return str(value)
    quoted = {None: value, "'": "'" + value.replace("'", "''") + "'"}.get(style)
    if quoted is not None and "\n" not in value and _reads_as(f"[{quoted}]" if flow else f"- {quoted}", [value]):
        return quoted
    return _NOT_PRINTED.sub(lambda m: f"\\u{ord(m[0]):04x}", json.dumps(value, ensure_ascii=False))


def _edited(text: str, root: Node | None, where: Where, value: Value, order: Sequence[str]) -> str:
    node, key, flow = root, None, False
    for i, part in enumerate(where):
        parent, flow = node, flow or bool(getattr(node, "flow_style", False))
        found = _child(parent, part)
        if found is None:
            for name in reversed(where[i + 1 :]):
                value = {name: value}  # type: ignore[assignment]
            return _inserted(text, parent, part, value, order if i + 1 == len(where) else ())
        key, node = found
    assert node is not None
    if isinstance(value, list) and isinstance(node, SequenceNode) and node.value and value and not node.flow_style:
        return _with_items(text, node, at(load(text), where), value)
    if key is None or flow or (isinstance(node, SequenceNode) and node.flow_style and node.value and value):
        return text[: node.start_mark.index] + _inline(value, node, flow=flow) + text[_end(text, node) :]
    return _under_key(text, key, node, value)


def _child(parent: Node | None, part: str | int) -> tuple[Node | None, Node] | None:
    """Key (None in a list) and value there; None if the group has no such field."""
    if isinstance(parent, SequenceNode) and isinstance(part, int) and part < len(parent.value):
        return None, parent.value[part]
    if not isinstance(parent, MappingNode):
        raise EditError(f"{part}: stands in something that is no group of fields; mend it in an editor")
    return next(((k, v) for k, v in parent.value if k.value == part), None)


def _under_key(text: str, key: Node, node: Node, value: Value) -> str:
    """A value that changes its shape, or a single one: what stands on the key's own line, and the lines below it."""
    colon = text.index(":", key.end_mark.index) + 1
    start, end = node.start_mark.index, _end(text, node)
    below = "\n" in text[colon:start] or start == end
    if isinstance(value, list) and value:
        if not below:
            text = text[:colon] + text[end:]
        elif start != end:
            text = text[: _line_start(text, start)] + text[_line_end(text, end) :]
        at = _line_end(text, colon)
        return _put_lines(text, at, _lines("", value, " " * key.start_mark.column, _newline(text))[1:])
    if not below:
        return text[:start] + _inline(value, node) + text[end:]
    if start != end:
        text = text[: _line_start(text, start)] + text[_line_end(text, end) :]
    return f"{text[:colon]} {_inline(value, node)}{text[colon:]}"


def _with_items(text: str, node: SequenceNode, old: list[object], value: list[str]) -> str:
    """A block list with other items; the lines of those that stay are not touched, nor are comments between them."""
    items: list[Node] = node.value
    if not all(isinstance(item, ScalarNode) and item.start_mark.index < item.end_mark.index for item in items):
        raise EditError("holds groups or empty entries; change it in an editor")
    spans = [(_line_start(text, n.start_mark.index), _line_end(text, _end(text, n))) for n in items]
    dash = text[spans[0][0] : items[0].start_mark.index]
    newline = _newline(text)
    out, at = [text[: spans[0][0]]], spans[0][0]
    for what, a, b, c, d in difflib.SequenceMatcher(None, [repr(v) for v in old], [repr(v) for v in value], autojunk=False).get_opcodes():
        for i in range(a, b):
            start, end = spans[i]
            out.append(text[at:start])
            inside, outside = items[i].start_mark.index, _end(text, items[i])
            if what == "equal":
                out.append(text[start:end])
            elif c + i - a < d:
                out.append(text[start:inside] + _inline(value[c + i - a], items[i]) + text[outside:end])
            at = end
        for j in range(c + b - a if what != "equal" else d, d):
            if out[-1] and not out[-1].endswith("\n"):
                out.append(newline)
            out.append(f"{dash}{scalar(value[j])}{newline}")
    return "".join([*out, text[at:]])


def _inserted(text: str, parent: Node | None, name: str | int, value: Any, order: Sequence[str]) -> str:
    if not isinstance(parent, MappingNode) or parent.flow_style or not parent.value:
        raise EditError(f"{name}: cannot be added to a list or a group in braces; add it in an editor")
    names = [k.value for k, _ in parent.value]
    before = [n for n in (order[: list(order).index(str(name))] if name in order else ()) if n in names]
    first = parent.value[0][0].start_mark
    lines = _lines(str(name), value, " " * first.column, _newline(text))
    if not before and name in order and text[_line_start(text, first.index) : first.index].strip() == "":
        return _put_lines(text, _line_start(text, first.index), lines)
    key, node = parent.value[names.index(before[-1])] if before else parent.value[-1]
    return _put_lines(text, _line_end(text, max(_end(text, node), key.end_mark.index) if _spans(node) else key.end_mark.index), lines)


def _lines(name: str, value: Any, indent: str, newline: str) -> list[str]:
    """A field in block style, line by line."""
    if isinstance(value, dict):
        below = [line for k, v in value.items() for line in _lines(k, v, indent + "  ", newline)]
        return [f"{indent}{name}:{newline}", *below]
    if isinstance(value, list) and value:
        return [f"{indent}{name}:{newline}", *(f"{indent}  - {scalar(v)}{newline}" for v in value)]
    return [f"{indent}{name}: {_inline(value, None)}{newline}"]


def _put_lines(text: str, at: int, lines: Sequence[str]) -> str:
    joint = "" if at == 0 or text[at - 1] == "\n" else _newline(text)
    return text[:at] + joint + "".join(lines) + text[at:]


def _inline(value: Value, old: Node | None, *, flow: bool = False) -> str:
    """A value to stand where another stood, in its style; an empty one has none."""
    if isinstance(value, list):
        return "[" + ", ".join(scalar(v, flow=True) for v in value) + "]"
    style = getattr(old, "style", None) if getattr(old, "value", None) else None
    return scalar(value, style if style in ("'", '"') else None, flow=flow)


def _spans(node: Node) -> bool:
    return bool(node.start_mark.index < node.end_mark.index)


def _end(text: str, node: Node) -> int:
    """Where a value's own characters end: a block's end mark stands behind the comments and blank lines that follow it."""
    if isinstance(node, MappingNode | SequenceNode) and not node.flow_style and node.value:
        last = node.value[-1]
        if not isinstance(last, tuple):
            return _end(text, last)
        return _end(text, last[1]) if _spans(last[1]) else int(last[0].end_mark.index)
    start, end = node.start_mark.index, node.end_mark.index
    return start + len(text[start:end].rstrip("\r\n ")) if getattr(node, "style", None) in ("|", ">") else int(end)


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    return text.find("\n", at) + 1 or len(text)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _reads_as(text: str, meant: object) -> bool:
    try:
        return _same(load(text), meant)
    except (YAMLError, ValueError):
        return False


def _same(a: object, b: object) -> bool:
    """Equal in value and type: 1 is not true, and a date is not its text."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and a == b


def at(content: Any, where: Where) -> Any:
    """The value there, None if there is none."""
    for part in where:
        try:
            content = content[part]
        except (KeyError, IndexError, TypeError):
            return None
    return content


def _with(content: Any, where: Where, value: Value) -> Any:
    if not where:
        return value
    head, *tail = where
    if isinstance(content, list):
        return [_with(x, tuple(tail), value) if i == head else x for i, x in enumerate(content)]
    content = content if isinstance(content, dict) else {}
    return content | {head: _with(content.get(head), tuple(tail), value)}
