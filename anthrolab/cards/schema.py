"""The cards' JSON Schemas, which editors use for completion and checking."""

import json
from pathlib import Path

from pydantic import BaseModel

from anthrolab.cards.binding import BindingFile
from anthrolab.cards.gold import Written
from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.cards.series import Series
from anthrolab.files import write_atomic

SCHEMAS: dict[str, type[BaseModel]] = {
    "persona": Persona, "scenario": Scenario, "bindings": BindingFile, "memory": Memory, "series": Series,
    "gold": Written,
}  # fmt: skip


def write_schemas(folder: Path) -> list[Path]:
    """Write `<kind>.schema.json` for each kind of card; returns the paths."""
    paths = []
    for kind, model in SCHEMAS.items():
        path = folder / f"{kind}.schema.json"
        write_atomic(path, json.dumps(model.model_json_schema(), ensure_ascii=False, indent=2) + "\n")
        paths.append(path)
    return paths
