"""Character Cards: V2 (`chara_card_v2`, malfoyslastname/character-card-spec-v2) and V3 (`chara_card_v3`,
kwaroran/character-card-spec-v3), as JSON or in a PNG image; V1 (six bare fields) is read as well.

Our whole card travels in `data.extensions.anthrolab`; name, description and personality say the same in readable
form. What such a card holds besides stays in the persona's `extensions.character_card` and is written back.
"""

import base64
import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from pydantic import JsonValue, ValidationError

from anthrolab.cards.exchange import labels
from anthrolab.cards.exchange.embedded import BACKFILL_NOTE, KEYWORDS, read_card
from anthrolab.cards.exchange.foreign import (
    MAX_JSON_BYTES,
    Json,
    beyond,
    check_keepable,
    object_in,
    overlay,
    read_bounded,
    safe_id,
    safe_name,
)
from anthrolab.cards.exchange.outcome import CardWarning, ExchangeError, Exported, Imported, Notes, outcome, whole
from anthrolab.cards.exchange.png import MAX_FILE_BYTES, placeholder, with_texts
from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.files import write_atomic
from anthrolab.yaml_files import explain

Version = Literal[2, 3]
FORMAT = "character_card"
"""The key in a persona's `extensions`."""
OURS = "anthrolab"
"""The key in `data.extensions`."""

TEXTS = (
    "name", "description", "personality", "scenario", "first_mes", "mes_example",
    "creator_notes", "system_prompt", "post_history_instructions", "creator", "character_version",
)  # fmt: skip
LISTS: dict[Version, tuple[str, ...]] = {2: ("alternate_greetings", "tags"), 3: ("alternate_greetings", "tags", "group_only_greetings")}
"""With `extensions`, all fields that `data` must have; absent ones count as empty."""


def import_character_card(path: Path, taken: Collection[str] = ()) -> Imported[Persona]:
    """Read a .json or .png Character Card; `taken` are ids that the persona may not get.

    A card that anthrolab exported comes back as it was; from another one the labelled lines of its texts are read
    (`年龄：27岁`), and what a persona needs and the card does not say makes the outcome a draft. ExchangeError if the
    file cannot be read. Whatever an image holds, of each keyword two chunks are unpacked and parsed, and all of them
    count at most `MAX_CARD_BYTES`: one or two seconds and about 100 MB of memory at the very worst.
    """
    notes = Notes()
    card = _with_data(read_card(path, notes), str(path), notes)
    travelled = _take_ours(card, notes)
    data = object_in(card, "data")
    if travelled is not None:
        return _come_back(path, card, *travelled, taken, notes)
    check_keepable(card, str(path))
    name = data.get("name")
    found: dict[str, JsonValue] = {"name": name} if isinstance(name, str) and name.strip() else {}
    for where in ("description", "personality"):
        text = data.get(where)
        if isinstance(text, str):
            labels.read_text(text, where, found, notes)
    personality = data.get("personality")
    if "personality" not in found and isinstance(personality, str) and personality.strip():
        found["personality"] = personality
    fields = labels.person_fields(found, notes)
    fields["id"] = safe_id(str(fields.get("name", "")), taken, notes, "c")
    fields["extensions"] = {FORMAT: card}
    notes.add("kept_outside", "card", f"everything that the card holds stays in extensions.{FORMAT}")
    return outcome("persona", fields["id"], path, Persona, fields, notes)


def export_character_card(
    persona: Persona, path: Path, version: Version = 3, image: Path | None = None, memories: Sequence[Memory] = ()
) -> Exported:
    """Write a persona (and what it remembers, if given) as .json, or as .png into `image` or a plain grey one.

    A file at `path` is replaced. The other chunks of `image` stay as they are, byte by byte. A V3 image holds the V2 card as well, as the V3
    specification allows for older tools. ExchangeError names path and fix.
    """
    write_atomic(path, character_card_file(persona, path, version, image, memories))
    return Exported((path,), stale(persona))


def character_card_file(
    persona: Persona, path: Path, version: Version = 3, image: Path | None = None, memories: Sequence[Memory] = ()
) -> bytes:
    """What `export_character_card` writes."""
    if version not in get_args(Version):
        raise ExchangeError(f"{path}: there is no Character Card version {version}; give 2 or 3")
    if path.suffix.lower() not in (".json", ".png"):
        raise ExchangeError(f"{path}: ends in neither .json nor .png; name the file by what it should be")
    if image is not None and path.suffix.lower() != ".png":
        raise ExchangeError(f"{path}: a .json card has no image; name a .png file, or leave {image} out")
    card = character_card(persona, version, memories)
    if path.suffix.lower() == ".json":
        text = json.dumps(card, ensure_ascii=False, indent=2) + "\n"
        return (text if len(text.encode()) <= MAX_JSON_BYTES else _bounded(card, path)).encode()
    texts = {"chara": card}
    if version == 3:
        texts = {"ccv3": card, "chara": _as_fallback(character_card(persona, 2, memories))}
    base = placeholder() if image is None else read_bounded(image, MAX_FILE_BYTES)
    packed = {keyword: base64.b64encode(_bounded(c, path).encode()) for keyword, c in texts.items()}
    return with_texts(base, packed, KEYWORDS, str(image or path))


def character_card(persona: Persona, version: Version, memories: Sequence[Memory] = ()) -> Json:
    """The card object of a persona: the readable fields, what it kept from such a card, and the whole of itself."""
    data: Json = dict.fromkeys(TEXTS, "")
    data |= {name: [] for name in LISTS[version]} | {"extensions": {}}
    data |= {"name": persona.name, "description": describe(persona), "personality": "\n".join(persona.personality)}
    kept = object_in(persona.extensions, FORMAT)
    spec: Json = {"spec": f"chara_card_v{version}", "spec_version": f"{version}.0"}
    if kept.get("spec") != spec["spec"]:
        kept = {k: v for k, v in kept.items() if k not in spec}
    data = overlay(data, object_in(kept, "data"))
    if not isinstance(data["name"], str) or safe_name(data["name"], Notes()) != persona.name:
        data["name"] = persona.name  # named otherwise here
    ours: Json = {"persona": persona.model_dump(mode="json", exclude_defaults=True)}
    if memories:
        ours["memories"] = [m.model_dump(mode="json", exclude_defaults=True) for m in memories]
    outside = data.get("extensions", {})
    data["extensions"] = {**(outside if isinstance(outside, dict) else {"other": outside}), OURS: ours}
    return {**overlay(spec, kept), "data": data}


def _as_fallback(card: Json) -> Json:
    """A V2 card that stands beside a V3 one and says so, where its notes are empty."""
    data = object_in(card, "data")
    return {**card, "data": {**data, "creator_notes": data["creator_notes"] or BACKFILL_NOTE}}


def describe(persona: Persona) -> str:
    """The persona as labelled lines, which an import can read again."""
    habits = persona.expression_habits
    values: dict[str, str | int | list[str]] = {
        "gender": persona.gender, "age": f"{persona.age}岁", "occupation": persona.occupation, "education": persona.education,
        "city": persona.city, "relationship_status": persona.relationship_status, "interests": persona.interests,
        "weak_topics": persona.weak_topics, "knowledge_boundaries": persona.knowledge_boundaries,
        "catchphrases": habits.catchphrases, "punctuation": habits.punctuation, "emoji": habits.emoji,
        "typical_length": habits.typical_length,
    }  # fmt: skip
    lines = []
    for field, value in values.items():
        text = "；".join(value) if isinstance(value, list) else str(value)
        if text:
            lines.append(f"{labels.LABELS[field][0]}：{text}")
    return "\n".join(lines)


def _bounded(card: Json, path: Path) -> str:
    text = json.dumps(card, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode()) > MAX_JSON_BYTES:
        raise ExchangeError(f"{path}: the card would have more than {MAX_JSON_BYTES:,} bytes and could not be read again; shorten extensions.{FORMAT}")
    return text


def _with_data(card: Json, where: str, notes: Notes) -> Json:
    """The card with its fields under `data`, of the right kinds: V1 cards and half-filled ones mended."""
    spec, data = card.get("spec"), card.get("data")
    if not isinstance(data, dict):
        if "spec" in card or not any(isinstance(card.get(k), str) for k in TEXTS[:6]):
            raise ExchangeError(f"{where}: is no Character Card (it has neither data nor a name); give a V1, V2 or V3 card")
        notes.add("v1_card", "spec", "a card without spec and data (V1); its fields count as data")
        return {"data": dict(card)}
    if spec not in ("chara_card_v2", "chara_card_v3"):
        notes.add("unknown_spec", "spec", f"is {str(spec)[:40]!r}; read as chara_card_v3")
    try:
        newer = float(str(card.get("spec_version", ""))) > 3
    except ValueError:
        newer = False
    if newer:
        notes.add("newer_version", "spec_version", f"is {str(card['spec_version'])[:20]}; what is new in it is kept but not understood")
    lists = LISTS[2 if spec == "chara_card_v2" else 3]
    kinds = dict.fromkeys(TEXTS, str) | dict.fromkeys(lists, list) | {"extensions": dict}
    absent = [name for name in kinds if name not in data]
    if absent:
        notes.add("missing_field", "data", f"must have {', '.join(absent)} and has not; they count as empty")
    for name, kind in kinds.items():
        if name in data and not isinstance(data[name], kind):
            notes.add("wrong_type", f"data.{name}", f"is a {type(data[name]).__name__}; kept, but not read")
    noted = data.get("creator_notes") == BACKFILL_NOTE
    return {**card, "data": {**data, "creator_notes": ""} if noted else dict(data)}


def _take_ours(card: Json, notes: Notes) -> tuple[Persona, tuple[Memory, ...]] | None:
    """Take our own card out of `data.extensions`; None if there is none or none that holds."""
    data = object_in(card, "data")
    extensions = object_in(data, "extensions")
    if OURS not in extensions:
        return None
    ours = extensions.pop(OURS)
    card["data"] = {**data, "extensions": extensions}
    try:
        held = ours if isinstance(ours, dict) else {}
        persona = Persona.model_validate_json(json.dumps(held.get("persona")))
        memories = held.get("memories", [])
        listed = memories if isinstance(memories, list) else [memories]
        return persona, tuple(Memory.model_validate_json(json.dumps(m)) for m in listed)
    except ValidationError as e:
        lines = "; ".join(explain(e, Persona))[:300]
        notes.add("anthrolab_card_unreadable", f"data.extensions.{OURS}", f"does not hold ({lines}); kept as {OURS}_unread, the texts were read instead")
        card["data"] = {**data, "extensions": {**extensions, f"{OURS}_unread": ours}}
        return None


def _come_back(
    path: Path, card: Json, persona: Persona, memories: tuple[Memory, ...], taken: Collection[str], notes: Notes
) -> Imported[Persona]:
    """Our own card, with what another tool changed or added in the readable fields since."""
    version: Version = 2 if card.get("spec") == "chara_card_v2" else 3
    expected = character_card(persona, version)
    _take_ours(expected, Notes())
    rest = beyond(card, expected)
    if not rest.keys() - {"spec", "spec_version"}:
        rest = {}
    before, now = object_in(expected, "data"), object_in(rest, "data")
    for name in (n for n in TEXTS[:6] if n in now):
        said = f"was changed in another tool{_changes(str(before[name]), str(now[name]))}"
        notes.add("edited_elsewhere", f"data.{name}", f"{said}; the card is as anthrolab wrote it, the changed text stays in extensions.{FORMAT}")
    if rest:
        check_keepable(rest, str(path))
        extensions = {**persona.extensions, FORMAT: overlay(object_in(persona.extensions, FORMAT), rest)}
        persona = persona.model_copy(update={"extensions": extensions})
    own = tuple(m for m in memories if m.owner == persona.id)
    strange = tuple(m for m in memories if m.owner != persona.id)
    for memory in strange:
        notes.add("memory_of_another", f"data.extensions.{OURS}.memories", f"is what {memory.owner[:60]} remembers, not {persona.id[:60]}; it becomes a draft")
    if any(persona.id.casefold() == t.casefold() for t in taken):
        others = [m.partner for m in own]  # nobody remembers himself
        persona = persona.model_copy(update={"id": safe_id(persona.id, [*taken, *others], notes, "c")})
        own = tuple(m.model_copy(update={"owner": persona.id}) for m in own)
    return replace(whole("persona", persona.id, path, persona, notes, own), strange=strange)


def _changes(before: str, now: str) -> str:
    """The labelled lines that differ, for a warning."""
    old = {field: line for field, _, line in labels.labelled_lines(before)}
    new = {field: line for field, _, line in labels.labelled_lines(now)}
    differ = [f"'{old.get(f, '')[:40]}' is now '{new.get(f, '')[:40]}'" for f in {**old, **new} if old.get(f) != new.get(f)]
    return f" ({'; '.join(differ)})" if differ else ""


def stale(persona: Persona) -> tuple[CardWarning, ...]:
    """A warning for each text kept from elsewhere whose labelled lines say something else than the card says today."""
    data = object_in(object_in(persona.extensions, FORMAT), "data")
    notes = Notes()
    for name, today in (("description", describe(persona)), ("personality", "\n".join(persona.personality))):
        kept = data.get(name)
        if isinstance(kept, str) and kept != today and (differ := _stale_lines(kept, today)):
            notes.add("stale_text", f"data.{name}", f"is written as it came, and says otherwise than the card: {differ}; mend it in extensions.{FORMAT}")
    return notes.all


def _stale_lines(kept: str, today: str) -> str:
    quiet = Notes()
    now = labels.person_fields({f: v for f, v, _ in labels.labelled_lines(today)}, quiet)
    then = labels.person_fields({f: v for f, v, _ in labels.labelled_lines(kept)}, quiet)
    return ", ".join(f for f in ("age", "gender", "city", "occupation", "education", "relationship_status") if f in then and f in now and then[f] != now[f])
