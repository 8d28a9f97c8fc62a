"""Loading and checking a folder of cards."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from anthrolab.cards.binding import Binding, BindingFile
from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.cards.series import Series
from anthrolab.errors import AnthrolabError
from anthrolab.files import content_hash, data_dir
from anthrolab.yaml_files import YamlError, read_model, suggest

M = TypeVar("M", bound=BaseModel)


FOLDERS = ("personas", "scenarios", "memories", "series", "skills", "gold", "labelled", "drafts", "schemas")
"""What a folder of cards may hold beside `bindings.yaml`; all but the last two are read."""


class CardError(AnthrolabError):
    """One or more problems in a folder of cards; `problems` has a line for each."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


@dataclass(frozen=True)
class Library:
    """All cards of a folder by id; every reference in a binding resolves."""

    personas: dict[str, Persona]
    scenarios: dict[str, Scenario]
    bindings: dict[str, Binding]
    memories: dict[tuple[str, str], Memory] = field(default_factory=dict)
    """Keyed by (owner, partner)."""
    series: dict[str, Series] = field(default_factory=dict)

    def content_hash(self) -> str:
        """Changes when a card changes that a run of cases can use (a series has a hash of its own)."""
        return content_hash(
            {
                kind: {str(key): card.model_dump(mode="json", exclude_defaults=True) for key, card in sorted(cards.items())}
                for kind, cards in vars(self).items()
                if cards and kind != "series"
            }
        )

    def all_scenarios(self) -> dict[str, Scenario]:
        """The scenarios of the bindings and those of the series' sessions."""
        return self.scenarios | {s.id: s for series in self.series.values() for s in series.sessions}

    def find_series(self, series_id: str) -> Series:
        """The series of that id; CardError with the likely spelling and the list."""
        if series_id not in self.series:
            there = ", ".join(self.series) or "none"
            raise CardError([f"no series '{series_id}'{suggest(series_id, self.series)}; there are: {there}"])
        return self.series[series_id]


def default_cards_dir() -> Path:
    """The cards that come with anthrolab."""
    return data_dir()


def load_library(folder: Path) -> Library:
    """Read `personas/*.yaml`, `scenarios/*.yaml`, `bindings.yaml` and, where there are any, memories and series.

    CardError lists every problem found.
    """
    problems: list[str] = []
    if not folder.is_dir():
        raise CardError([f"{folder}: no such folder; give the folder that holds personas/, scenarios/ and bindings.yaml"])
    personas = _load_cards(folder / "personas", Persona, problems)
    scenarios = _load_cards(folder / "scenarios", Scenario, problems)
    bindings: dict[str, Binding] = {}
    path = folder / "bindings.yaml"
    parsed = _read_model(path, BindingFile, problems)
    for i, binding in enumerate(parsed.bindings if parsed else []):
        where = f"{path}: bindings[{i}] ({binding.id})"
        if binding.id in bindings:
            problems.append(f"{where}: id: stands twice; give every binding its own id")
        bindings[binding.id] = binding
        for name, known, kind in (
            ("persona_a", personas, "persona"), ("persona_b", personas, "persona"), ("scenario", scenarios, "scenario"),
        ):  # fmt: skip
            ref = getattr(binding, name)
            if ref not in known and not (folder / f"{kind}s" / f"{ref}.yaml").exists():
                problems.append(f"{where}: {name}: no {kind} '{ref}'{suggest(ref, known)}; add {kind}s/{ref}.yaml or name another")
    memories = _load_memories(folder / "memories", personas, problems)
    series = _load_series(folder / "series", personas, scenarios, problems)
    for where, a, b in [
        *((f"{path}: {key}", x.persona_a, x.persona_b) for key, x in bindings.items()),
        *((f"{folder / 'series' / key}.yaml", r.persona_a, r.persona_b) for key, r in series.items()),
    ]:
        if a in personas and b in personas and personas[a].name == personas[b].name:
            problems.append(f"{where}: {a} and {b} are both called {personas[a].name}; nobody could tell them apart; rename one")
    played = [(b.persona_a, b.persona_b, scenarios[b.scenario]) for b in bindings.values() if b.scenario in scenarios]
    played += [(r.persona_a, r.persona_b, r.sessions[0]) for r in series.values()]
    for a, b, scenario in played:
        for owner, about in ((a, b), (b, a)):
            memory = memories.get((owner, about))
            if memory is not None and memory.as_of > scenario.start.date():
                card = folder / "memories" / f"{owner}-{about}.yaml"
                problems.append(
                    f"{card}: as_of: is {memory.as_of}, but {scenario.id} begins on {scenario.start.date()}; give an earlier day"
                )
    if problems:
        raise CardError(problems)
    return Library(personas, scenarios, bindings, memories, series)


def _load_cards(folder: Path, model: type[M], problems: list[str]) -> dict[str, M]:
    cards: dict[str, M] = {}
    problems += _other_endings(folder)
    paths = sorted(folder.glob("*.yaml"))
    if not paths:
        problems.append(f"{folder}: no *.yaml file here; a card is one YAML file named after its id")
    for path in paths:
        card = _read_model(path, model, problems)
        if card is None:
            continue
        card_id: str = card.id  # type: ignore[attr-defined]
        if card_id != path.stem:
            problems.append(f"{path}: id: is '{card_id}' but the file is named '{path.stem}'; make them equal")
        cards[card_id] = card
    return cards


def _other_endings(folder: Path) -> list[str]:
    return [f"{p}: is not read; rename it to {p.stem}.yaml" for p in sorted(folder.glob("*.yml"))]


def _load_series(
    folder: Path, personas: dict[str, Persona], scenarios: dict[str, Scenario], problems: list[str]
) -> dict[str, Series]:
    found = _load_cards(folder, Series, problems) if folder.is_dir() else {}
    seen = dict.fromkeys(scenarios, "scenarios")
    for series in found.values():
        where = f"{folder / series.id}.yaml"
        for name in ("persona_a", "persona_b"):
            ref = getattr(series, name)
            if ref not in personas:
                problems.append(f"{where}: {name}: no persona '{ref}'{suggest(ref, personas)}; name one of this folder")
        for i, session in enumerate(series.sessions):
            if session.id in seen:
                problems.append(f"{where}: sessions[{i}].id: '{session.id}' stands in {seen[session.id]} already; give it another")
            seen[session.id] = where
    return found


def _load_memories(folder: Path, personas: dict[str, Persona], problems: list[str]) -> dict[tuple[str, str], Memory]:
    memories: dict[tuple[str, str], Memory] = {}
    problems += _other_endings(folder)
    for path in sorted(folder.glob("*.yaml")):
        memory = _read_model(path, Memory, problems)
        if memory is None:
            continue
        if path.stem != f"{memory.owner}-{memory.partner}":
            problems.append(f"{path}: is the memory of {memory.owner} about {memory.partner}; name it {memory.owner}-{memory.partner}.yaml")
        for name in ("owner", "partner"):
            ref = getattr(memory, name)
            if ref not in personas:
                problems.append(f"{path}: {name}: no persona '{ref}'{suggest(ref, personas)}; name one of this folder")
        memories[memory.owner, memory.partner] = memory
    return memories


def _read_model(path: Path, model: type[M], problems: list[str]) -> M | None:
    try:
        return read_model(path, model)
    except YamlError as e:
        problems.extend(e.problems)
    except AnthrolabError as e:
        problems.append(str(e))
    return None
