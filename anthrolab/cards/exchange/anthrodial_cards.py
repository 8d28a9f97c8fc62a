"""Our cards in the words of AnthroDial's public benchmark code (github.com/ChubbyAI/AnthroDial, libs/chat/), and theirs
in ours, one card at a time. Folders and references: `anthrodial_export.py`, `anthrodial_import.py`.

Its persona cards are fields that it prints into the prompt, those that it does not know as well; its scenario cards
hold place, trigger_event and emotion_tone as texts by persona id.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from anthrolab.cards.exchange import labels
from anthrolab.cards.exchange.foreign import Json, object_in
from anthrolab.cards.exchange.labels import as_line
from anthrolab.cards.exchange.outcome import Notes
from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import CATEGORIES, Scenario

FORMAT = "anthrodial"
"""The key in a card's `extensions`."""
OURS = "anthrolab"
"""Where our whole card stands in their files."""

KEYS = {
    "name": "nickname", "gender": "gender", "age": "age", "city": "city", "education": "education", "occupation": "occupation",
    "relationship_status": "relationship_status", "personality": "personality_keywords", "interests": "hobbies",
    "catchphrases": "catchphrases", "weak_topics": "weak_topics", "typical_length": "reply_habit",
    "punctuation": "punctuation_style", "emoji": "表情习惯", "knowledge_boundaries": "知识边界",
}  # fmt: skip
"""Their keys of our fields; the last two, which they have not, are labels, as their prompts print those."""

DUAL = {"place": "place", "trigger_event": "trigger", "emotion_tone": "emotion"}
"""Their per-persona fields and ours."""

MINUTES = re.compile(r"(\d{1,3})\s*(?:分钟?|m(?:in(?:utes?)?)?)?", re.IGNORECASE)
DATED = re.compile(r"\[(\d{4}-\d\d-\d\d)\]")


def persona_card(persona: Persona) -> Json:
    """The fields of a card.yaml. A field that came under another label keeps it, and its wording if that says the same."""
    habits = persona.expression_habits
    ours: dict[str, Any] = {field: getattr(habits if field in labels.HABITS else persona, field) for field in KEYS}
    kept = {k: v for k, v in object_in(persona.extensions, FORMAT).items() if k != "persona_id"}
    label_of: dict[str, str] = {}
    for key in kept:
        label_of.setdefault(labels.FIELD_OF.get(key.strip().casefold(), ""), key)
    card: Json = {"persona_id": persona.id}
    for field, value in ours.items():
        key = label_of.get(field, KEYS[field])
        if key in kept and labels.understood(field, kept[key], Notes()) == value:
            card[key] = kept[key]
        elif value:
            card[key] = "\n".join(value) if key == KEYS["knowledge_boundaries"] else value
    return card | {k: v for k, v in kept.items() if k not in card and not _outdated(k, v, ours)}


def _outdated(key: str, value: JsonValue, ours: dict[str, Any]) -> bool:
    """True for a kept value that we understand and that the card does not say (any more): it was deleted or changed."""
    field = labels.FIELD_OF.get(key.strip().casefold())
    if field is None or value in (None, "", []):
        return False
    said = labels.understood(field, value, Notes())
    return said not in (None, "", []) and said != ours[field]


def persona_fields(raw: Json, notes: Notes) -> dict[str, Any]:
    """The fields of our card that theirs says."""
    return labels.person_fields(labels.read_fields(raw), notes)


def scenario_card(scenario: Scenario, scenario_id: str, a: str, b: str) -> Json:
    """The fields of a scenario file, for the personas `a` and `b`; what was kept stays in its wording if it says the same."""
    sides = (scenario.speakers.a, scenario.speakers.b)
    card: Json = {
        "scenario_id": scenario_id, "name": scenario.title, "category": scenario.category, "relationship": scenario.relationship,
        "start_time": scenario.start.isoformat(sep=" "), "duration": f"{scenario.horizon_minutes}分钟",
    }  # fmt: skip
    card |= {theirs: {a: getattr(sides[0], ours), b: getattr(sides[1], ours)} for theirs, ours in DUAL.items()}
    # Their opener is always persona_a's.
    card |= {"opener": scenario.opener.content} if scenario.opener.speaker == "a" else {"first_speaker": b}
    kept = {k: v for k, v in object_in(scenario.extensions, FORMAT).items() if k != "scenario_id"}
    card |= {k: getattr(scenario, k) for k in ("goal", "tone", "remote") if k in kept}  # theirs too, where it came so
    if scenario.opener.speaker == "b":
        kept.pop("opener", None)  # a's, and not what this scenario begins with any more
    same = {k for k in kept if k in card and _meant(k, kept[k], a, b) == _meant(k, card[k], a, b)}
    return {**card, **{k: v for k, v in kept.items() if k in same or k not in card}}


def _meant(key: str, value: JsonValue, a: str, b: str) -> object:
    if key in DUAL:
        return (as_line(value[a]), as_line(value[b])) if isinstance(value, dict) and value.keys() == {a, b} else (as_line(value),) * 2
    if key == "start_time":
        return _start(value)
    return _minutes(value) if key == "duration" else as_line(value)


def scenario_fields(raw: Json, a: str | None, b: str | None, notes: Notes) -> dict[str, Any]:
    """The fields of our card that theirs says, for the personas of its first binding (None: no binding has it)."""
    fields: dict[str, Any] = {}
    for theirs, ours in (("name", "title"), ("relationship", "relationship"), ("goal", "goal"), ("tone", "tone")):
        if text := as_line(raw.get(theirs) or ""):
            fields[ours] = text
    category = {c.casefold(): c for c in CATEGORIES}.get(str(raw.get("category", "")).strip().casefold())
    values = {"category": category, "start": _start(raw.get("start_time")), "horizon_minutes": _minutes(raw.get("duration"))}
    for field, theirs in (("category", "category"), ("start", "start_time"), ("horizon_minutes", "duration")):
        if values[field] is not None:
            fields[field] = values[field]
        elif raw.get(theirs):
            notes.add("not_understood", field, f"'{str(raw[theirs])[:60]}' of {theirs} could not be read; write it into the card")
    if isinstance(raw.get("remote"), bool):
        fields["remote"] = raw["remote"]
    if opener := as_line(raw.get("opener") or ""):
        fields["opener"] = {"speaker": "a", "content": opener}
    speakers = _sides(raw, a, b, notes)
    return {**fields, "speakers": speakers} if any(speakers.values()) else fields


def _sides(raw: Json, a: str | None, b: str | None, notes: Notes) -> dict[str, dict[str, str]]:
    sides: dict[str, dict[str, str]] = {"a": {}, "b": {}}
    for theirs, ours in DUAL.items():
        value = raw.get(theirs)
        if not value:
            continue
        if not isinstance(value, dict):
            sides["a"][ours] = sides["b"][ours] = as_line(value)
            notes.add("shared_field", theirs, "is one text for both; both sides have it")
            continue
        if a is None or b is None:
            a, b = (*value, None, None)[:2]
            notes.add("shared_field", theirs, f"no binding says who is who; {a} is taken as a, {b} as b")
        for side, who in (("a", a), ("b", b)):
            if text := as_line(value.get(who or "") or ""):
                sides[side][ours] = text
    return sides


def _start(value: JsonValue) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value).strip().replace("/", "-"))
    except ValueError:
        return None


def _minutes(value: JsonValue) -> int | None:
    match = MINUTES.fullmatch(str(value).strip())
    return int(match[1]) if match else None


def memory_text(owner: str, name: str, memories: Sequence[Memory]) -> str:
    """A memory.md: a section per partner, a dated line per remembered thing."""
    lines = [f"# {owner} {name} 的记忆"]
    for memory in memories:
        dated = [line if DATED.match(line) else f"[{memory.as_of.isoformat()}] {line}" for line in memory.lines()]
        lines += ["", f"## 关于 {memory.partner}", *(f"- {line}" for line in dated)]
    return "\n".join(lines) + "\n"


def memory_sections(text: str) -> dict[str, list[str]]:
    """The lines of a memory.md by partner, as their code splits it."""
    sections: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        heading = re.match(r"##\s*关于\s*(\S+)", line)
        if heading:
            current = sections.setdefault(heading[1], [])
        elif line.startswith("# "):
            current = None
        elif current is not None and (said := line.strip().lstrip("- ").strip()):
            current.append(said)
    return sections


def memory_fields(owner: str, partner: str, lines: Sequence[str], notes: Notes) -> dict[str, Any]:
    """The lines as the facts of a memory, its day the latest that a line names."""
    days = [day for line in lines for day in DATED.findall(line)]
    notes.add("shared_field", "facts", f"{len(lines)} lines without sections; all stand under facts")
    return {"owner": owner, "partner": partner, "facts": list(lines), **({"as_of": max(days)} if days else {})}
