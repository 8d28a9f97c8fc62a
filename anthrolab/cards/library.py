"""Loading and checking a folder of cards."""

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from anthrolab.cards.binding import Binding, BindingFile
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.errors import AnthrolabError
from anthrolab.files import content_hash, read_text

M = TypeVar("M", bound=BaseModel)


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

    def content_hash(self) -> str:
        """Changes when any card changes."""
        return content_hash(
            {
                kind: {key: card.model_dump(mode="json") for key, card in sorted(cards.items())}
                for kind, cards in vars(self).items()
            }
        )


def default_cards_dir() -> Path:
    """The cards that come with anthrolab: `data/` of the checkout, or the copy inside an installed package."""
    packaged = Path(__file__).parent.parent / "data"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent.parent / "data"


def load_library(folder: Path) -> Library:
    """Read `personas/*.yaml`, `scenarios/*.yaml` and `bindings.yaml`; CardError lists every problem found."""
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
        for field, known, kind in (
            ("persona_a", personas, "persona"), ("persona_b", personas, "persona"), ("scenario", scenarios, "scenario"),
        ):  # fmt: skip
            ref = getattr(binding, field)
            if ref not in known and not (folder / f"{kind}s" / f"{ref}.yaml").exists():
                problems.append(f"{where}: {field}: no {kind} '{ref}'{_suggest(ref, known)}; add {kind}s/{ref}.yaml or name another")
    if problems:
        raise CardError(problems)
    return Library(personas, scenarios, bindings)


def _load_cards(folder: Path, model: type[M], problems: list[str]) -> dict[str, M]:
    cards: dict[str, M] = {}
    problems += [f"{p}: is not read; rename it to {p.stem}.yaml" for p in sorted(folder.glob("*.yml"))]
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


def _read_model(path: Path, model: type[M], problems: list[str]) -> M | None:
    try:
        return read_yaml_model(path, model)
    except CardError as e:
        problems.extend(e.problems)
    except AnthrolabError as e:
        problems.append(str(e))
    return None


def read_yaml(path: Path) -> object:
    """The content of a YAML 1.2 file (duplicate keys refused); CardError names the line."""
    text = read_text(path)
    try:
        return YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        line = f"line {mark.line + 1}" if mark else "the file"
        raise CardError([f"{path}: {line}: not valid YAML ({e.problem}); mend the syntax there"]) from e
    except ValueError as e:
        raise CardError([f"{path}: not valid YAML ({e}); mend the value"]) from e


def read_yaml_model(path: Path, model: type[M]) -> M:
    """A YAML file as a validated model; CardError with a line per bad field."""
    content = read_yaml(path)
    if content is None:
        raise CardError([f"{path}: is empty; write one 'field: value' a line"])
    if not isinstance(content, dict):
        raise CardError([f"{path}: holds a {type(content).__name__}, not fields; write one 'field: value' a line"])
    try:
        return model.model_validate(content)
    except ValidationError as e:
        raise CardError([f"{path}: {line}" for line in explain(e, model)]) from e


def explain(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """A validation error as lines `field: what is wrong; the fix`, with the likely spelling of unknown fields."""
    lines = []
    missing = {".".join(map(str, d["loc"])) for d in error.errors() if d["type"] == "missing"}
    for detail in error.errors():
        field = ".".join(map(str, detail["loc"])) or "card"
        last = str(detail["loc"][-1]) if detail["loc"] else ""
        if detail["type"] == "missing":
            lines.append(f"{field}: is missing; add it")
        elif detail["type"] == "extra_forbidden":
            names = [m.rsplit(".", 1)[-1] for m in missing] + list(model.model_fields)
            lines.append(f"{field}: is no field of a {model.__name__.lower()}{_suggest(last, names)}; rename or remove it")
        else:
            shown = repr(detail["input"])
            shown = shown if len(shown) <= 60 else shown[:57] + "..."
            lines.append(f"{field}: {detail['msg'].removeprefix('Value error, ')} (found {shown})" if detail["loc"]
                         else detail["msg"].removeprefix("Value error, "))  # fmt: skip
    return lines


def _suggest(word: str, known: object) -> str:
    close = difflib.get_close_matches(word, [str(k) for k in known], n=1)  # type: ignore[attr-defined]
    return f" (did you mean '{close[0]}'?)" if close else ""
