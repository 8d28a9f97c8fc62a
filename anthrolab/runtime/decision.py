"""Reading a decision: the JSON contract of a chat policy, strictly (L0-04 of the paper's Table 3)."""

from datetime import datetime
from typing import Any

from anthrolab.models.client import Reply
from anthrolab.models.json_text import read_object
from anthrolab.models.reask import Read
from anthrolab.runtime.dialogue import parse_stamp
from anthrolab.runtime.schedule import Plan


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
                    "timestamp": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$"},
                    "end": {"type": "boolean"},
                },
                "required": ["content", "timestamp", "end"],
                "additionalProperties": False,
            },
        },
        "required": ["role", "response"],
        "additionalProperties": False,
    }


def parse_decision(reply: Reply, role: str, now: datetime, max_delay_s: int) -> Read[Plan]:
    """A reply as a plan. Form is mended under a label (`models/json_text.py`), the contract itself is strict.

    `role` is the own name to the character, and types are exact (a text "false" is no boolean). Keys that nobody
    asked for change nothing and are ignored. Content has no length limit: a message of 20,000 characters is the
    judges' business. A time before `now` or later than `max_delay_s` (seconds) after it is legal and clipped by the
    scheduler; it is labelled.

    >>> now = datetime(2026, 3, 6, 20, 31)
    >>> text = '{"role": "甲", "response": {"content": "好", "timestamp": "2026-03-06T20:31:12", "end": false}}'
    >>> parse_decision(Reply(text), "甲", now, 600).value
    Plan(content='好', delay_s=12, end=False)
    """
    found = read_object(reply)
    if found.value is None:
        return Read(None, found.error)
    problem = _contract_problem(found.value, role)
    if problem:
        return Read(None, problem)
    response = found.value["response"]
    try:
        at = parse_stamp(response["timestamp"])
    except ValueError:
        return Read(None, f"response.timestamp is {response['timestamp']!r:.40}, not YYYY-MM-DDTHH:MM:SS")
    plan = Plan(response["content"], int((at - now).total_seconds()), response["end"])
    labels = [found.recovered] if found.recovered else []
    if plan.end and plan.content.strip():
        labels.append("end is true, so its text is not sent")
    if not plan.silent and not 0 <= plan.delay_s <= max_delay_s:
        labels.append(f"timestamp {response['timestamp']} clipped")
    return Read(plan, None, "; ".join(labels) or None)


def _contract_problem(value: dict[str, Any], role: str) -> str | None:
    if "role" not in value:
        return "role is missing"
    if value["role"] != role:
        return f"role is {value['role']!r:.40}, not {role!r}"
    response = value.get("response")
    if not isinstance(response, dict):
        return "response is missing or no object"
    for field, kind, name in (("content", str, "a text"), ("timestamp", str, "a text"), ("end", bool, "true or false")):
        if field not in response:
            return f"response.{field} is missing"
        if not isinstance(response[field], kind):
            return f"response.{field} is {response[field]!r:.40}, not {name}"
    return None
