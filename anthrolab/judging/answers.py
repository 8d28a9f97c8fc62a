"""The model judge's answer: the JSON asked for, and its strict reading.

An answer is an object with one entry per id, `{"reason": text, "passed": true}` for a checkbox and
`{"reason": text, "violated": false, "message": null}` for an L0 constraint. Nothing is guessed: whatever is not a
plain boolean under a known id, given once, is no answer.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anthrolab.judging.verdict import JUDGED_L0, BoxVerdict, L0Answer
from anthrolab.models.client import Reply


@dataclass
class Answers:
    """What could be read: answers by id, and for every other id asked the reason why there is none.

    `unknown` lists ids that were answered although nobody asked.
    """

    boxes: dict[str, BoxVerdict] = field(default_factory=dict)
    l0: dict[str, L0Answer] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)


def answer_schema(ids: Sequence[str]) -> dict[str, Any]:
    """JSON schema of an answer about these ids: every one required, reason before verdict, nothing else allowed."""
    text = {"type": "string"}
    box = _object({"reason": text, "passed": {"type": "boolean"}})
    l0 = _object({"reason": text, "violated": {"type": "boolean"}, "message": {"type": ["integer", "null"]}})
    return _object({i: l0 if i in JUDGED_L0 else box for i in ids})


def answer_text(reply: Reply) -> tuple[str, bool]:
    """Where a reply's answer stands: its text, or (then True) its reasoning.

    The reasoning is taken only if nothing is said, nothing was cut, and the whole of it is one JSON object: servers
    that apply the schema to the thought answer like this. An object with words before or after it, or in a code
    fence, was thought and not answered: it may be a draft or an example, and is never looked for. Where something
    is said, the reasoning counts for nothing, whatever it holds.

    >>> answer_text(Reply(" ", reasoning='{"D1.1": {"passed": true}}'))
    ('{"D1.1": {"passed": true}}', True)
    >>> answer_text(Reply("", reasoning='So: {"D1.1": {"passed": true}}'))
    ('', False)
    """
    thought = (reply.reasoning or "").strip()
    whole = thought.startswith("{") and thought.endswith("}") and _outermost_object(thought) is not None
    return (thought, True) if whole and not reply.text.strip() and not reply.truncated else (reply.text, False)


def read_answers(text: str, ids: Sequence[str], messages: Collection[int], truncated: bool = False) -> Answers:
    """The answers to `ids` in a model's reply.

    `messages` are the positions that an L0 violation may name. A reply that holds no readable object leaves
    every id missing, as `truncated` if the server cut it and as `parse_error` else.
    """
    answers = Answers()
    pairs = _outermost_object(text)
    if pairs is None:
        answers.missing = dict.fromkeys(ids, "truncated" if truncated else "parse_error")
        return answers
    given = [key for key, _ in pairs]
    entries = dict(pairs)
    answers.unknown = sorted(set(given) - set(ids))
    for i in ids:
        if i not in entries:
            answers.missing[i] = "missing_id"
        elif given.count(i) > 1:
            answers.missing[i] = "duplicate_id"
        elif i in JUDGED_L0:
            _read_l0(answers, i, entries[i], messages)
        else:
            _read_box(answers, i, entries[i])
    return answers


def _read_box(answers: Answers, i: str, entry: object) -> None:
    fields = _fields(entry)
    passed = fields.get("passed")
    if isinstance(passed, bool):
        answers.boxes[i] = BoxVerdict(id=i, passed=passed, reason=_reason(fields))
    else:
        answers.missing[i] = "not_boolean"


def _read_l0(answers: Answers, i: str, entry: object, messages: Collection[int]) -> None:
    fields = _fields(entry)
    violated, number = fields.get("violated"), fields.get("message")
    if not isinstance(violated, bool):
        answers.missing[i] = "not_boolean"
    elif not violated:
        answers.l0[i] = L0Answer(id=i, violated=False, reason=_reason(fields))
    elif type(number) is int and number in messages:
        answers.l0[i] = L0Answer(id=i, violated=True, message_index=number, reason=_reason(fields))
    else:
        answers.missing[i] = "bad_message"


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its keys in order and duplicates kept."""


def _outermost_object(text: str) -> _Pairs | None:
    """The one JSON object in a reply, with or without a code fence or words around it; None if there is not just one."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        value = json.loads(text[start : end + 1], object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, _Pairs) else None


def _fields(entry: object) -> Mapping[str, Any]:
    """An entry's fields; none if it is no object or has a field twice."""
    if not isinstance(entry, _Pairs) or len({key for key, _ in entry}) != len(entry):
        return {}
    return dict(entry)


def _reason(fields: Mapping[str, Any]) -> str | None:
    """The reason as text that can be written as UTF-8 (a model may spell half a surrogate pair)."""
    reason = fields.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        return None
    return reason.encode("utf-8", "replace").decode("utf-8")


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
