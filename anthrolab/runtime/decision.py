"""Reading a decision: the JSON contract of a chat policy, strictly (L0-04 of the paper's Table 3)."""

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from anthrolab.runtime.dialogue import STAMP, parse_stamp
from anthrolab.runtime.schedule import Plan

FENCE = re.compile(r"^```(?:json)?\s*\n(.*?)\n?\s*```$", re.DOTALL)


@dataclass(frozen=True)
class Parsed:
    """A plan, or why there is none; `recovered` names what was bent back."""

    plan: Plan | None
    error: str | None = None
    recovered: str | None = None


def decision_schema(role: str) -> dict[str, Any]:
    """The JSON schema of a decision by `role`, for servers with structured output."""
    return {
        "type": "object",
        "properties": {
            "role": {"type": "string", "enum": [role]},
            "response": {
                "type": "object",
                "properties": {
                    "content": {"type": "string"},
                    "timestamp": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}$"},
                    "end": {"type": "boolean"},
                },
                "required": ["content", "timestamp", "end"],
                "additionalProperties": False,
            },
        },
        "required": ["role", "response"],
        "additionalProperties": False,
    }


def parse_decision(text: str, role: str, now: datetime, max_delay_s: int, truncated: bool = False) -> Parsed:
    """A reply as a plan. Wrong types are errors (a text "false" is no boolean); a code fence is recovered.

    A time before `now` or later than `max_delay_s` after it is legal and clipped by the scheduler; it is labelled.

    >>> now = datetime(2026, 3, 6, 20, 31)
    >>> parse_decision('{"role": "甲", "response": {"content": "好", "timestamp": "2026-03-06T20:31:12", "end": false}}',
    ...                "甲", now, 600).plan
    Plan(content='好', delay_s=12, end=False)
    """
    if truncated:
        return Parsed(None, "the reply was cut off at the length cap")
    body, recovered = text.strip(), None
    if not body:
        return Parsed(None, "the reply is empty")
    fenced = FENCE.match(body)
    if fenced:
        body, recovered = fenced[1], "JSON taken out of a code fence"
    try:
        value = json.loads(body)
    except json.JSONDecodeError as e:
        return Parsed(None, f"the reply is no JSON ({e.msg} at character {e.pos})")
    except (ValueError, RecursionError) as e:  # a number of thousands of digits, brackets thousands deep
        return Parsed(None, f"the reply is no JSON that can be read ({type(e).__name__})")
    problem = _contract_problem(value, role)
    if problem:
        return Parsed(None, problem)
    response = value["response"]
    try:
        at = parse_stamp(response["timestamp"])
    except ValueError:
        return Parsed(None, f"timestamp {response['timestamp']!r:.40} is not YYYY-MM-DDTHH:MM:SS")
    delay = int((at - now).total_seconds())
    content = whole_characters(response["content"])
    plan = Plan(content, delay, response["end"])
    labels = [recovered] if recovered else []
    if content != response["content"]:
        labels.append("half characters replaced")
    if not plan.silent and not 0 <= delay <= max_delay_s:
        labels.append(f"timestamp {at.strftime(STAMP)} clipped")
    return Parsed(plan, None, "; ".join(labels) or None)


def whole_characters(text: str) -> str:
    """The text with every lone surrogate (half an emoji, from a JSON escape) replaced: no file could hold it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _contract_problem(value: object, role: str) -> str | None:
    if not isinstance(value, dict):
        return f"the reply is a JSON {type(value).__name__}, not an object"
    if "role" not in value:
        return "role is missing"
    if value["role"] != role:
        return f"role is {value['role']!r:.40}, not {role!r}"
    response = value.get("response")
    if not isinstance(response, dict):
        return "response is missing or no object"
    for field, kind, name in (("content", str, "text"), ("timestamp", str, "text"), ("end", bool, "true or false")):
        if field not in response:
            return f"response.{field} is missing"
        if not isinstance(response[field], kind):
            return f"response.{field} is {response[field]!r:.40}, not a {name}"
    return None
