"""From a reply to a card: what the model wrote, with what code knows put in its place, or why it is no card."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.loop.drafting.plan import PersonaSlot, ScenarioSlot
from anthrolab.models.client import Reply
from anthrolab.models.json_text import read_object
from anthrolab.yaml_files import explain

Kind = Literal["reply", "fields", "quota", "copies", "secrets", "agreement", "testable", "pair"]
"""What sort of fault: no JSON object; a field that is no card's; not what the slot asked for; what the linter found of each
sort; hard facts that the gate cannot test; not for these people."""


@dataclass(frozen=True)
class Reason:
    """One reason why a draft was rejected, in words that its writer can act on."""

    kind: Kind
    said: str


def read_persona(reply: Reply, slot: PersonaSlot) -> Persona | list[Reason]:
    """The persona in a reply, its id, name, age, gender and status those of the slot; or what is wrong with it."""
    facts = {"age": slot.age, "gender": slot.gender, "relationship_status": slot.status}
    known = {"id": slot.id, "name": slot.name, "gender": slot.gender, "age": slot.age, "hard_facts": facts}
    content = _content(reply, known)
    if isinstance(content, list):
        return content
    try:
        return Persona.model_validate(content)
    except ValidationError as e:
        return [Reason("fields", line) for line in explain(e, Persona)]


def read_scenario(reply: Reply, slot: ScenarioSlot) -> Scenario | list[Reason]:
    """The scenario in a reply, its id, category, times, `remote` and opener's side those of the slot; or what is wrong with it."""
    known = {
        "id": slot.id, "category": slot.category, "remote": slot.remote, "start": slot.start,
        "horizon_minutes": slot.horizon_minutes, "opener": {"speaker": slot.opener},
    }  # fmt: skip
    content = _content(reply, known)
    if isinstance(content, list):
        return content
    try:
        return Scenario.model_validate(content)
    except ValidationError as e:
        return [Reason("fields", line) for line in explain(e, Scenario)]


def _content(reply: Reply, known: Mapping[str, Any]) -> dict[str, Any] | list[Reason]:
    """The one object of a reply under what is known, which wins; a group is completed and not replaced."""
    found = read_object(reply)
    if found.value is None:
        return [Reason("reply", found.error or "the reply holds no JSON object")]
    content = {key: value for key, value in found.value.items() if key != "extensions"}
    for key, value in known.items():
        if isinstance(value, dict):
            written = content.get(key, {})
            content[key] = {**written, **value} if isinstance(written, dict) else written
        else:
            content[key] = value
    return content
