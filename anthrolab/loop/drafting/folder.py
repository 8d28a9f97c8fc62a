"""A folder of drafted cards on disk: an ordinary folder of cards, and what drafting needs in `.drafting/`, which card tools pass over.

    OUT/personas/, scenarios/, bindings.yaml   the accepted cards
    OUT/.drafting/plan.json                    settings and slots, fixed by the first command
                  rounds.jsonl                 one line a round: what became of each draft in it
                  calls/writer.jsonl           every model call
                  charges.jsonl                attempts that may have been charged without a reply (with --max-cost only)
                  report.json                  planned, accepted, rejected by reason, still open

A round is one line, written at once, so that a kill leaves a round whole or not at all. The card files follow from the lines; one
that was edited since stays as it is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from anthrolab.bench.store import Run
from anthrolab.cards.binding import Binding, BindingFile
from anthrolab.cards.exchange.files import card_yaml, yaml_text
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.errors import AnthrolabError
from anthrolab.files import append_line, cut_torn_line, only_one, read_text, whole_lines, write_atomic
from anthrolab.loop.drafting.plan import PersonaSlot, Plan, ScenarioSlot
from anthrolab.loop.drafting.reading import Reason
from anthrolab.yaml_files import explain, read_model

C = TypeVar("C", Persona, Scenario)
HIDDEN = ".drafting"


class DraftingError(AnthrolabError):
    """A folder of drafted cards that cannot be used as asked."""


@dataclass(frozen=True)
class Outcome:
    """What became of one draft. `call`: its key in the call log; `card`: what was accepted, None for a rejection."""

    slot: str
    attempt: int
    system: str
    call: str
    reasons: tuple[Reason, ...]
    card: Mapping[str, Any] | None


class DraftFolder:
    """The folder of one plan. `outcomes`: all drafts of each slot so far, in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = Run(path / HIDDEN)
        """Where the call log lies, as the engine takes it."""
        self.outcomes: dict[str, list[Outcome]] = {}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one command at a time works in the folder; DraftingError if another is at it, or if the folder holds other things."""
        if self.path.is_dir() and not self._plan_file.exists():
            foreign = sorted(p.name for p in self.path.iterdir() if p.name not in (HIDDEN, ".DS_Store"))
            if foreign:
                raise DraftingError(f"{self.path}: holds other files ({foreign[0]}); give the drafts a folder of their own")
        busy = DraftingError(f"{self.path}: another anthrolab command works here; wait for it or use another --out")
        with only_one(self.run.path, busy):
            cut_torn_line(self._rounds_file)
            cut_torn_line(self.run.path / "charges.jsonl")
            yield

    def begin(self, settings: Mapping[str, Any], plan: Plan) -> Plan:
        """The plan of the folder, which is `plan` if it has none yet; DraftingError if it was begun with other settings."""
        if not self._plan_file.exists():
            content = {"settings": settings, "personas": [asdict(s) for s in plan.personas], "scenarios": [asdict(s) for s in plan.scenarios]}
            write_atomic(self._plan_file, json.dumps(content, ensure_ascii=False, indent=1, default=datetime.isoformat) + "\n")
        try:
            content = json.loads(read_text(self._plan_file))
            for key, now in settings.items():
                if (before := content["settings"][key]) != json.loads(json.dumps(now)):
                    shown = f"{key} {before}, now {now}" if not isinstance(now, Mapping) else f"other {key}"
                    raise DraftingError(f"{self.path}: was begun with {shown}; give the same again, or another --out")
            return Plan(tuple(PersonaSlot(**row) for row in content["personas"]), tuple(_scenario_slot(row) for row in content["scenarios"]))
        except (ValueError, KeyError, TypeError) as e:
            raise DraftingError(f"{self._plan_file}: no plan ({e!r}); restore it, or use another --out") from e

    def read_rounds(self) -> None:
        """Read what earlier commands had; DraftingError for a damaged line."""
        for number, line in enumerate(whole_lines(self._rounds_file) if self._rounds_file.exists() else (), 1):
            try:
                rows = json.loads(line)
                if not isinstance(rows, list):
                    raise ValueError("it is no list of drafts")
                self._keep([Outcome(**{**row, "reasons": tuple(Reason(**r) for r in row["reasons"])}) for row in rows])
            except (ValueError, KeyError, TypeError) as e:
                raise DraftingError(f"{self._rounds_file}: line {number}: no round ({e!r}); remove that line and run again") from e

    def record(self, outcomes: Sequence[Outcome]) -> None:
        """Keep a round."""
        append_line(self._rounds_file, json.dumps([asdict(o) for o in outcomes], ensure_ascii=False))
        self._keep(outcomes)

    def accepted(self, slot: str) -> bool:
        """Whether the slot has its card."""
        return slot in self.outcomes and self.outcomes[slot][-1].card is not None

    def persona(self, slot: str) -> Persona:
        """The card of an accepted slot as it is on disk, where it is put if it is not there yet."""
        return self._card(slot, Persona, "personas")

    def scenario(self, slot: str) -> Scenario:
        """The card of an accepted slot as it is on disk, where it is put if it is not there yet."""
        return self._card(slot, Scenario, "scenarios")

    def write_bindings(self, bindings: Sequence[Binding]) -> None:
        """Replace bindings.yaml; without bindings there is none."""
        if bindings:
            text = yaml_text(BindingFile(bindings=list(bindings)).model_dump(exclude_defaults=True))
            path = self.path / "bindings.yaml"
            if not path.exists() or read_text(path) != text:
                write_atomic(path, text)

    def write_report(self, report: Mapping[str, Any]) -> None:
        """Replace report.json."""
        write_atomic(self.run.path / "report.json", json.dumps(report, ensure_ascii=False, indent=1) + "\n")

    @property
    def _plan_file(self) -> Path:
        return self.run.path / "plan.json"

    @property
    def _rounds_file(self) -> Path:
        return self.run.path / "rounds.jsonl"

    def _keep(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            self.outcomes.setdefault(outcome.slot, []).append(outcome)

    def _card(self, slot: str, model: type[C], folder: str) -> C:
        # lists and times of the row are JSON's, so it is read as JSON; the models are strict
        try:
            card = model.model_validate_json(json.dumps(self.outcomes[slot][-1].card))
        except ValidationError as e:
            raise DraftingError(f"{self._rounds_file}: {slot}: {explain(e, model)[0]}; restore the file, or use another --out") from e
        path, text = self.path / folder / f"{slot}.yaml", card_yaml(card)
        if not path.exists():
            write_atomic(path, text)
            return card
        if read_text(path) == text:
            return card
        edited = read_model(path, model)
        if edited.id != slot:
            raise DraftingError(f"{path}: id: is {edited.id!r}, but this is the card {slot}; make them equal")
        return edited


def bindings_of(plan: Plan) -> dict[str, list[Binding]]:
    """The bindings of each scenario, numbered through the plan."""
    width, number = max(2, len(str(plan.bindings))), 0
    found: dict[str, list[Binding]] = {}
    for slot in plan.scenarios:
        found[slot.id] = []
        for a, b in slot.pairs:
            number += 1
            found[slot.id].append(Binding(id=f"b{number:0{width}}", persona_a=a, persona_b=b, scenario=slot.id))
    return found


def _scenario_slot(row: Mapping[str, Any]) -> ScenarioSlot:
    pairs = tuple((a, b) for a, b in row["pairs"])
    return ScenarioSlot(**{**row, "start": datetime.fromisoformat(row["start"]), "pairs": pairs})
