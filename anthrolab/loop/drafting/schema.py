"""What a model may write of a card, as a JSON Schema that every server's grammar takes: no patterns, no references, no lengths."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario

MOST_ENTRIES = 8
"""Entries of a list; a small model would go on for ever."""

PERSONA_SET = ("id", "name", "gender", "age", "hard_facts.age", "hard_facts.gender", "hard_facts.relationship_status", "extensions")
"""Fields of a persona that code sets."""
SCENARIO_SET = ("id", "category", "remote", "start", "horizon_minutes", "opener.speaker", "extensions")
"""Fields of a scenario that code sets."""


@cache
def persona_schema() -> Mapping[str, Any]:
    """The fields of a persona that the model writes."""
    return writable(Persona, PERSONA_SET)


@cache
def scenario_schema() -> Mapping[str, Any]:
    """The fields of a scenario that the model writes."""
    return writable(Scenario, SCENARIO_SET)


def writable(model: type[BaseModel], without: Collection[str]) -> dict[str, Any]:
    """The JSON Schema of a card without the fields named (dotted); every other field is required."""
    full = model.model_json_schema()
    return _plain(full, full.get("$defs", {}), "", without)


def _plain(node: Mapping[str, Any], defs: Mapping[str, Any], path: str, without: Collection[str]) -> dict[str, Any]:
    if "$ref" in node:
        return _plain(defs[node["$ref"].rsplit("/", 1)[1]], defs, path, without)
    if "properties" in node:
        inside = {name: f"{path}.{name}" if path else name for name in node["properties"]}
        kept = {name: _plain(node["properties"][name], defs, where, without) for name, where in inside.items() if where not in without}
        return {"type": "object", "properties": kept, "required": list(kept), "additionalProperties": False}
    if node.get("type") == "array":
        least = {"minItems": node["minItems"]} if "minItems" in node else {}
        return {"type": "array", "items": _plain(node["items"], defs, path, without), **least, "maxItems": MOST_ENTRIES}
    return {key: node[key] for key in ("type", "enum") if key in node}
