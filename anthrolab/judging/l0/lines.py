"""The gate over a file of dialogues, one JSON object a line, ours or from elsewhere."""

import codecs
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.files import FileError
from anthrolab.judging.l0.gate import check
from anthrolab.runtime.dialogue import Dialogue


def gate_file(
    path: Path, personas: Mapping[str, Persona], scenarios: Mapping[str, Scenario]
) -> Iterator[dict[str, object]]:
    """One row for each dialogue of a file, in order, to be printed as JSON lines.

    A row is `L0Result.as_row`, or has an `error` (and the `dialogue_id` where it is known) for a line that is no
    dialogue; then the exit code is 1. `personas` and `scenarios` are the library's cards by id. Blank lines and a
    byte order mark at the start are passed over. FileError if the file cannot be read.
    """
    try:
        with open(path, "rb") as f:
            for number, line in enumerate(f, 1):
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                if line.strip():
                    yield gate_line(line, number, personas, scenarios)
    except OSError as e:
        raise FileError(f"{path}: cannot be read ({e.strerror}); check the path and its permissions") from e


def gate_line(
    line: bytes, number: int, personas: Mapping[str, Persona], scenarios: Mapping[str, Scenario]
) -> dict[str, object]:
    """The row of one line; `number` counts from 1 and is named in the error."""
    try:
        dialogue = Dialogue.model_validate_json(line)
    except ValidationError as e:
        known = _salvage_id(line)
        row: dict[str, object] = {} if known is None else {"dialogue_id": known}
        return row | {"error": f"line {number}: {_first_problem(e)}"}
    scenario = scenarios.get(dialogue.scenario) if dialogue.scenario else None
    return check(dialogue, dialogue.cards_of(personas), scenario).as_row(dialogue.dialogue_id)


def _first_problem(error: ValidationError) -> str:
    """The first problem by field, and how many more there are."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    where = ".".join(str(part) for part in problems[0]["loc"])
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{where + ': ' if where else ''}{problems[0]['msg']}{more}"


def _salvage_id(line: bytes) -> str | None:
    """The dialogue_id of a line that is JSON but no dialogue."""
    try:
        value = json.loads(line)
        known = value.get("dialogue_id") if isinstance(value, dict) else None
        if isinstance(known, str):
            known.encode("utf-8")
            return known
    except (ValueError, RecursionError):
        pass
    return None
