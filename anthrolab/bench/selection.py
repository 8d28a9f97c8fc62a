"""A selection of failing cases in a file: what is to be repaired, or run again as a regression set.

JSONL, one row per case of a run as one judge saw it:

    {"run": "r7", "system": "qwen3-8b", "case_id": "b01-a", "sample": 0, "dialogue_id": "r7-b01-a-0", "judge": "rules",
     "ids": ["D1.3", "E3.1"], "note": "sounds like a service desk"}
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from anthrolab.errors import AnthrolabError
from anthrolab.files import read_text, write_atomic
from anthrolab.yaml_files import explain


class SelectionError(AnthrolabError):
    """A selection file that cannot be used; the message names the line and the fix."""


class Selected(BaseModel):
    """A failing case. run, judge and dialogue_id are null for a ledger without a run; ids: what failed there, each once."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    run: str | None = None
    system: str = Field(min_length=1)
    case_id: str = Field(min_length=1)
    sample: int = Field(default=0, ge=0)
    dialogue_id: str | None = None
    judge: str | None = None
    ids: tuple[str, ...] = ()
    note: str = ""

    @property
    def key(self) -> tuple[str | None, str, str, int, str | None]:
        """What makes it the same row: run, system, case, sample, judge."""
        return (self.run, self.system, self.case_id, self.sample, self.judge)


def read_selection(path: Path) -> list[Selected]:
    """The rows in the order of the file; SelectionError names the line that is damaged or stands twice."""
    rows: dict[tuple[Any, ...], tuple[int, Selected]] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = Selected.model_validate_json(line)
        except ValidationError as e:
            raise SelectionError(f"{path}: line {number}: {'; '.join(explain(e, Selected))}; mend or remove the line") from e
        if row.key in rows:
            raise SelectionError(f"{path}: line {number}: the same case as line {rows[row.key][0]}; remove one of the two")
        rows[row.key] = (number, row)
    return [row for _, row in rows.values()]


def add_to_selection(path: Path, rows: Iterable[Selected]) -> tuple[int, int]:
    """Add rows to a file, which is made if need be; returns how many cases are new and how many it has now.

    A case that is there already keeps its line and gets the ids that it lacks, and the note if one is given. The file
    is replaced as a whole or not at all; where nothing changes it is not touched. SelectionError if it is damaged.
    """
    before = read_selection(path) if path.exists() else []
    after: dict[tuple[Any, ...], Selected] = {row.key: row for row in before}
    for row in rows:
        there = after.get(row.key, row)
        changes = {"ids": tuple(dict.fromkeys([*there.ids, *row.ids])), "note": row.note or there.note}
        after[row.key] = there.model_copy(update=changes)
    if list(after.values()) != before:
        write_atomic(path, "".join(_line(row) for row in after.values()))
    return len(after) - len(before), len(after)


def selected_cases(path: Path) -> list[str]:
    """The case ids of a selection, each once, in the order of the file; SelectionError if there are none."""
    if not (rows := read_selection(path)):
        raise SelectionError(f"{path}: names no case; save failing cases to it first (notebook 05), or give another file")
    return list(dict.fromkeys(row.case_id for row in rows))


def _line(row: Selected) -> str:
    return json.dumps(row.model_dump(mode="json"), ensure_ascii=False) + "\n"
