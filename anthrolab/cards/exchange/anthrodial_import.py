"""Reading the folders that AnthroDial's public benchmark code reads (github.com/ChubbyAI/AnthroDial, docs/INPUTS.md).

    bindings.yaml                   a list of persona_a, persona_b, scenario_id, optional tested_role
    personas/<id>/card.yaml         persona_id, nickname and labelled fields, all of which it prints into prompts
    personas/<id>/memory.md         optional: a section per partner
    personas/<id>/anthrolab.yaml    ours: the whole card and memories, in a file of its own so that no prompt prints it
    scenarios/<id>.yaml             theirs, and under the key `anthrolab`, which it does not print, the whole card
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import JsonValue, ValidationError

from anthrolab.cards.binding import Binding
from anthrolab.cards.exchange import anthrodial_cards as text
from anthrolab.cards.exchange.anthrodial_cards import FORMAT, OURS
from anthrolab.cards.exchange.files import New, imported_files, write_all, yaml_text
from anthrolab.cards.exchange.foreign import (
    Json,
    as_json,
    beyond,
    check_keepable,
    object_in,
    overlay,
    read_bounded,
    read_bounded_yaml,
    read_mapping,
    safe_id,
)
from anthrolab.cards.exchange.labels import FIELD_OF
from anthrolab.cards.exchange.outcome import CardWarning, ExchangeError, Imported, Notes, outcome, whole
from anthrolab.cards.library import Library
from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Card, Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.yaml_files import MAX_CHARS, explain

M = TypeVar("M", bound=Card)


@dataclass(frozen=True)
class ImportedLibrary:
    """What a folder held, card by card; `warnings` are about the folder, the others stand with their cards."""

    folder: Path
    personas: tuple[Imported[Persona], ...]
    scenarios: tuple[Imported[Scenario], ...]
    bindings: tuple[Imported[Binding], ...]
    memories: tuple[Imported[Memory], ...]
    warnings: tuple[CardWarning, ...] = ()

    @property
    def cards(self) -> tuple[Imported[Any], ...]:
        """All of them."""
        return (*self.personas, *self.scenarios, *self.bindings, *self.memories)

    def library(self) -> Library:
        """The whole cards, and those bindings and memories whose cards are all among them."""
        personas = {i.card.id: i.card for i in self.personas if i.card}
        scenarios = {i.card.id: i.card for i in self.scenarios if i.card}
        bindings = [i.card for i in self.bindings if i.card]
        memories = [i.card for i in self.memories if i.card]
        return Library(
            personas,
            scenarios,
            {b.id: b for b in bindings if {b.persona_a, b.persona_b} <= personas.keys() and b.scenario in scenarios},
            {(m.owner, m.partner): m for m in memories if {m.owner, m.partner} <= personas.keys()},
        )


def write_library(imported: ImportedLibrary, folder: Path) -> list[Path]:
    """Write an imported folder as a folder of cards; drafts, and what refers to one, into its `drafts/`.

    ExchangeError if a file is there already: nothing is overwritten, and then nothing is written.
    """
    whole_ones = imported.library()
    people_and_scenes: tuple[Imported[Any], ...] = (*imported.personas, *imported.scenarios)
    files: list[New] = [file for card in people_and_scenes for file in imported_files(card, folder)]
    rows = [_dumped(b) for b in whole_ones.bindings.values()]
    if rows:
        files.append((folder / "bindings.yaml", yaml_text({"bindings": rows})))
    for binding in imported.bindings:
        if binding.card is None or binding.id not in whole_ones.bindings:
            files += imported_files(_unresolved(binding), folder)
    for memory in imported.memories:
        resolved = memory.card is not None and whole_ones.memories.get((memory.card.owner, memory.card.partner)) == memory.card
        files += imported_files(memory if resolved else _unresolved(memory), folder)
    return write_all(files)


def _dumped(card: Card) -> dict[str, Any]:
    return card.model_dump(exclude_defaults=True)


def _unresolved(imported: Imported[M]) -> Imported[M]:
    """A whole card whose personas or scenario are drafts or not there, as a draft."""
    return replace(imported, card=None, problems=imported.problems or ("the cards that it names; some are drafts or not there",))


def import_anthrodial(folder: Path) -> ImportedLibrary:
    """Read such a folder: what anthrolab exported comes back as it was, of others' cards what their fields say.

    ExchangeError or YamlError names a file that cannot be read and the fix. No id or name becomes a path unchecked.
    """
    if not (folder / "personas").is_dir():
        raise ExchangeError(f"{folder}: has no folder personas/; give the folder that holds personas/, scenarios/ and bindings.yaml")
    notes = Notes()
    personas, ids, memories = _personas(folder, notes)
    rows = _rows(folder, notes)
    scenarios, scenario_ids = _scenarios(folder, ids, rows)
    known = {i.id for i in personas}, {i.id for i in scenarios}
    bindings: list[Imported[Binding]] = []
    for row in rows:
        bindings.append(_binding(folder / "bindings.yaml", row, ids, scenario_ids, known, [i.id for i in bindings]))
    return ImportedLibrary(folder, tuple(personas), tuple(scenarios), tuple(bindings), tuple(memories), notes.all)


def _inside(path: Path, folder: Path) -> Path:
    """The path, unless a link leads it out of the folder."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ExchangeError(f"{path}: is a link that leads out of {folder}; put the file itself there")
    return path


def _personas(folder: Path, notes: Notes) -> tuple[list[Imported[Persona]], dict[str, str], list[Imported[Memory]]]:
    found: list[Imported[Persona]] = []
    ids: dict[str, str] = {}
    texts: list[tuple[Imported[Persona], Path, list[JsonValue]]] = []
    for home in sorted((folder / "personas").iterdir()):
        path = home / "card.yaml"
        if home.name.startswith("."):
            continue
        if not path.is_file():
            notes.add("no_card_file", str(home.relative_to(folder)), "holds no card.yaml; passed over")
            continue
        mine = Notes()
        raw = read_mapping(_inside(path, folder), mine)
        theirs = _id_in(raw, "persona_id", home.name, mine)
        beside = home / f"{OURS}.yaml"
        held = read_mapping(_inside(beside, folder), mine) if beside.is_file() else {}
        imported = _persona(path, raw, theirs, held.get("persona"), [i.id for i in found], mine)
        if theirs in ids:
            notes.add("id_taken", theirs, f"two cards have this persona_id; bindings get the first, {path} is {imported.id}")
        ids.setdefault(theirs, imported.id)
        found.append(imported)
        listed = held.get("memories")
        texts.append((imported, home / "memory.md", listed if isinstance(listed, list) else []))
    memories = [m for who, path, held in texts for m in _memories(folder, path, who, held, ids)]
    return found, ids, memories


def _id_in(raw: Json, key: str, otherwise: str, notes: Notes) -> str:
    """The id under a key; `otherwise`, the name of its file or folder, if there is none. An empty one is taken out."""
    if _blank(raw.get(key)):
        raw.pop(key, None)
        notes.add("missing_field", key, f"is taken from the name of the file or folder: {otherwise[:60]}")
    return str(raw.get(key, otherwise))


def _blank(value: JsonValue) -> bool:
    """True for what `key:` without a value holds, and for a text of blanks."""
    return value is None or (isinstance(value, str) and not value.strip())


def _persona(path: Path, raw: Json, theirs: str, held: JsonValue, taken: list[str], notes: Notes) -> Imported[Persona]:
    card_id = safe_id(theirs, taken, notes, "c")
    ours = _ours(Persona, held, f"{OURS}.yaml", notes)
    if ours is None:
        check_keepable(raw, str(path))
        fields = {"id": card_id, **text.persona_fields(raw, notes), "extensions": {FORMAT: raw}}
        return outcome("persona", card_id, path, Persona, fields, notes)
    ours = ours.model_copy(update={"id": card_id})
    return whole("persona", card_id, path, _with_rest(ours, raw, text.persona_card(ours), path, notes), notes)


def _ours(model: type[M], held: JsonValue, where: str, notes: Notes) -> M | None:
    """Our own card as it travelled; None if there is none or none that holds."""
    if held is None:
        return None
    try:
        return model.model_validate_json(json.dumps(held))
    except ValidationError as e:
        notes.add("anthrolab_card_unreadable", where, f"does not hold ({'; '.join(explain(e, model))[:300]}); their fields were read instead")
        return None


def _with_rest(card: M, raw: Json, expected: Mapping[str, JsonValue], path: Path, notes: Notes) -> M:
    """Our card, with what its file says besides or otherwise kept in its extensions."""
    rest = beyond(raw, expected)
    if not rest:
        return card
    check_keepable(rest, str(path))
    for key in (k for k in rest if k in expected or k.strip().casefold() in FIELD_OF):
        notes.add("edited_elsewhere", key, f"was changed or added since; the card is as anthrolab wrote it, that value stays in extensions.{FORMAT}")
    extensions: Json = getattr(card, "extensions")  # noqa: B009
    return card.model_copy(update={"extensions": {**extensions, FORMAT: overlay(object_in(extensions, FORMAT), rest)}})


def _memories(folder: Path, path: Path, who: Imported[Persona], held: list[JsonValue], ids: Mapping[str, str]) -> list[Imported[Memory]]:
    written = path.is_file()
    source = path if written else path.with_name(f"{OURS}.yaml")
    try:
        raw = read_bounded(_inside(path, folder), 4 * MAX_CHARS).decode("utf-8") if written else ""
    except UnicodeDecodeError as e:
        raise ExchangeError(f"{path}: not UTF-8 (byte {e.start}); save the file as UTF-8") from e
    sections = text.memory_sections(raw)
    found: list[Imported[Memory]] = []
    for value in held:
        notes = Notes()
        memory = _ours(Memory, value, f"{OURS}.yaml", notes)
        if memory is None or ids.get(memory.partner, memory.partner) == who.id:  # of itself: no memory holds that
            fields = dict(value) if isinstance(value, dict) else {}
            fields |= {} if memory is None else {"owner": who.id, "partner": who.id}
            found.append(outcome("memory", f"{who.id}-{len(found) + 1}", source, Memory, fields, notes))
            continue
        memory = memory.model_copy(update={"owner": who.id, "partner": ids.get(memory.partner, memory.partner)})
        expected = text.memory_sections(text.memory_text(who.id, "", [memory])).get(memory.partner, [])
        lines = sections.pop(memory.partner, expected)
        changed: Json = {"lines": list(lines)}
        if lines != expected and object_in(memory.extensions, FORMAT) != changed:
            notes.add("edited_elsewhere", "memory.md", f"was changed since; the memory is as anthrolab wrote it, the lines stay in extensions.{FORMAT}")
            memory = memory.model_copy(update={"extensions": {**memory.extensions, FORMAT: changed}})
        found.append(whole("memory", f"{memory.owner}-{memory.partner}", source, memory, notes))
    for partner, lines in sections.items():
        notes = Notes()
        about = ids.get(partner) or safe_id(partner, ids.values(), notes, "c")
        read = text.memory_fields(who.id, about, lines, notes)
        if partner not in ids:
            notes.add("unresolved", "partner", f"no persona '{partner[:60]}' in this folder")
            read["extensions"] = {FORMAT: {"partner": partner}}
        found.append(outcome("memory", f"{who.id}-{about}", source, Memory, read, notes))
    return found


def _scenarios(folder: Path, ids: Mapping[str, str], rows: list[Json]) -> tuple[list[Imported[Scenario]], dict[str, str]]:
    found: list[Imported[Scenario]] = []
    scenario_ids: dict[str, str] = {}
    played = {str(r.get("scenario_id")): (str(r.get("persona_a")), str(r.get("persona_b"))) for r in reversed(rows) if not _blank(r.get("scenario_id"))}
    for path in sorted((folder / "scenarios").rglob("*.yaml"), key=lambda p: p.stem):
        notes = Notes()
        raw = read_mapping(_inside(path, folder), notes)
        held = raw.pop(OURS, None)
        theirs = _id_in(raw, "scenario_id", path.stem, notes)
        a, b = (ids.get(who, who) for who in played[theirs]) if theirs in played else (None, None)
        for key in text.DUAL:
            if isinstance(value := raw.get(key), dict):
                raw[key] = {ids.get(who, who): said for who, said in value.items()}
        ours = _ours(Scenario, held, OURS, notes)
        taken = [i.id for i in found]
        if ours is None:
            check_keepable(raw, str(path))
            card_id = safe_id(theirs, taken, notes, "c")
            fields = {"id": card_id, **text.scenario_fields(raw, a, b, notes), "extensions": {FORMAT: raw}}
            imported = outcome("scenario", card_id, path, Scenario, fields, notes)
        else:
            card = _with_rest(ours, raw, text.scenario_card(ours, theirs, a or "a", b or "b"), path, notes)
            twin = next((i for i in found if i.card == card), None)  # written once a binding
            card_id = safe_id(theirs if card.id in taken else card.id, taken, notes, "c") if twin is None else card.id
            imported = twin or whole("scenario", card_id, path, card.model_copy(update={"id": card_id}), notes)
        scenario_ids.setdefault(theirs, card_id)
        if imported not in found:
            found.append(imported)
    return found, scenario_ids


def _rows(folder: Path, notes: Notes) -> list[Json]:
    path = folder / "bindings.yaml"
    if not path.is_file():
        notes.add("no_card_file", "bindings.yaml", "is not there; no bindings")
        return []
    listed = read_bounded_yaml(_inside(path, folder))
    if isinstance(listed, dict):
        listed = listed.get("bindings")
    if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
        raise ExchangeError(f"{path}: is no list of bindings; write '- persona_a: ...', persona_b and scenario_id under it")
    return [as_json(row, str(path), notes) for row in listed]


def _binding(
    path: Path, row: Json, ids: Mapping[str, str], scenario_ids: Mapping[str, str], known: tuple[set[str], set[str]], taken: list[str]
) -> Imported[Binding]:
    notes = Notes()
    kept = dict(row)
    others = object_in(object_in(kept, OURS), "extensions")
    kept.pop(OURS, None)
    if "id" in kept and _blank(kept["id"]):
        del kept["id"]
        notes.add("missing_field", "id", "is empty; the binding gets the next free one")
    fields: dict[str, Any] = {"id": safe_id(str(kept["id"]), taken, notes, "b") if "id" in kept else safe_id("", taken, Notes(), "b")}
    for theirs, ours, map_, there in (
        ("persona_a", "persona_a", ids, known[0]), ("persona_b", "persona_b", ids, known[0]), ("scenario_id", "scenario", scenario_ids, known[1]),
    ):  # fmt: skip
        value = kept.pop(theirs, None)
        if not _blank(value):
            fields[ours] = map_.get(str(value), str(value))
            if fields[ours] not in there:
                notes.add("unresolved", theirs, f"no card '{str(value)[:60]}' in this folder")
    if str(kept.get("id")) == fields["id"] and isinstance(kept["id"], str):
        del kept["id"]
    fields["extensions"] = {**others, **({FORMAT: kept} if kept else {})}
    return outcome("binding", fields["id"], path, Binding, fields, notes)
