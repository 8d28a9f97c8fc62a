"""Writing a library as the folder that AnthroDial's public benchmark code reads; what stands where: `anthrodial_import.py`."""

from pathlib import Path

from anthrolab.cards.binding import Binding
from anthrolab.cards.exchange import anthrodial_cards as text
from anthrolab.cards.exchange.anthrodial_cards import FORMAT, OURS
from anthrolab.cards.exchange.files import New, write_all, yaml_text
from anthrolab.cards.exchange.foreign import Json, object_in, safe_id
from anthrolab.cards.exchange.outcome import ExchangeError, Exported, Notes
from anthrolab.cards.library import Library
from anthrolab.cards.persona import Card
from anthrolab.cards.scenario import Scenario


def export_anthrodial(library: Library, folder: Path) -> Exported:
    """Write a library as such a folder, which must be empty or not there; series have no place in it.

    A scenario of several bindings is written once for each, since its texts stand by persona id.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ExchangeError(f"{folder}: is not empty; name a new folder")
    notes = Notes()
    files: list[New] = []
    for persona in library.personas.values():
        home = folder / "personas" / persona.id
        memories = [m for (owner, _), m in library.memories.items() if owner == persona.id]
        files.append((home / "card.yaml", yaml_text(text.persona_card(persona))))
        ours = {"persona": _dump(persona), **({"memories": [_dump(m) for m in memories]} if memories else {})}
        files.append((home / f"{OURS}.yaml", yaml_text(ours)))
        if memories:
            files.append((home / "memory.md", text.memory_text(persona.id, persona.name, memories)))
        if "_" in persona.id:
            notes.add("underscore_id", persona.id, "AnthroDial's code splits case ids at _; rename the persona before running it there")
    rows: list[Json] = []
    used: dict[str, str] = {}  # file name -> scenario
    for binding in library.bindings.values():
        scenario = library.scenarios[binding.scenario]
        name = scenario.id
        if name in used:
            name = safe_id(f"{scenario.id}-{binding.id}", {*used, *library.scenarios}, Notes(), "s")
            notes.add("scenario_copied", scenario.id, f"stands in several bindings; {binding.id} has it as {name}")
        used[name] = scenario.id
        files.append(_scenario_file(folder, scenario, name, binding.persona_a, binding.persona_b))
        rows.append(_row(binding, name))
    for scenario in library.scenarios.values():
        if scenario.id not in used.values():
            files.append(_scenario_file(folder, scenario, scenario.id, "a", "b"))
    files.append((folder / "bindings.yaml", yaml_text(rows)))
    if of_b := [s.id for s in library.scenarios.values() if s.opener.speaker == "b"]:
        notes.add("opener_of_b", ", ".join(of_b), "AnthroDial has openers of persona_a only; it gets who begins (first_speaker), not the words")
    if library.series:
        notes.add("left_out", "series", f"{', '.join(library.series)}: the format has no series")
    return Exported(tuple(write_all(files)), notes.all)


def _dump(card: Card) -> Json:
    return card.model_dump(mode="json", exclude_defaults=True)


def _scenario_file(folder: Path, scenario: Scenario, name: str, a: str, b: str) -> New:
    card = {**text.scenario_card(scenario, name, a, b), OURS: _dump(scenario)}
    return folder / "scenarios" / f"{name}.yaml", yaml_text(card)


def _row(binding: Binding, scenario: str) -> Json:
    kept = object_in(binding.extensions, FORMAT)
    row: Json = {"persona_a": binding.persona_a, "persona_b": binding.persona_b, "scenario_id": scenario}
    row["id"] = kept["id"] if str(kept.get("id")) == binding.id else binding.id
    others = {k: v for k, v in binding.extensions.items() if k != FORMAT}
    return {**row, **{k: v for k, v in kept.items() if k not in row}, **({OURS: {"extensions": others}} if others else {})}
