"""Repair (paper section 4.5), all dialogues of a round: done many at once, kept one a line, gone on with after a kill; and what share came of it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from anthrolab.bench.workers import work_through
from anthrolab.errors import AnthrolabError
from anthrolab.files import append_line, cut_torn_line, read_text, write_atomic
from anthrolab.intervals import wilson
from anthrolab.loop.filter import Filtered
from anthrolab.loop.records import FailureRecord
from anthrolab.loop.rewrite import Repair, Repairer, repair_one
from anthrolab.loop.rows import read_rows
from anthrolab.models.client import FINAL_FAULTS, ModelError
from anthrolab.models.flow import Flow

MOST = 256
"""Dialogues repaired at once, whatever the servers want."""

CALLS_EACH = 12
"""About how many requests a repair has under way at once: the judge's about every turn."""

GATE, ALL = "gate", "all"
"""Rows of `repaired_by_dimension` besides the dimensions."""


class RepairsError(AnthrolabError):
    """A file of repairs that cannot be used."""


async def repair_all(
    filtered: Sequence[Filtered], by: Repairer, path: Path, *, flows: Iterable[Flow] = (), deadline_s: float | None = None
) -> list[Repair]:
    """A row for every rejected or invalid dialogue, in the order given; `path` holds them, one a line.

    Each is on disk as soon as it is done. Rows of the same dialogue, records, judge and writer (`Repair.basis`) are not done
    again, unless a model gave no reply. A model that cannot be asked any more (FINAL_FAULTS) ends it with its ModelError;
    what was done before stays.
    """
    wanted = [f for f in filtered if f.filter_result.status in ("rejected", "invalid")]
    cut_torn_line(path)
    basis = {f.dialogue_id: by.basis(f) for f in wanted}
    there = {r.dialogue_id: r for r in read_repairs(path) if basis.get(r.dialogue_id) == r.basis} if path.exists() else {}
    todo = [f for f in wanted if f.dialogue_id not in there or there[f.dialogue_id].outcome == "model_error"]
    ends: list[ModelError] = []

    def keep(row: Repair) -> None:
        append_line(path, row.to_line())
        there[row.dialogue_id] = row

    async def one(dialogue: Filtered) -> None:
        keep(await repair_one(dialogue, by))

    def failed(dialogue: Filtered, e: ModelError) -> None:
        if e.fault in FINAL_FAULTS:
            ends.append(e)
        keep(by.row(dialogue, "model_error", str(e), fault=e.fault))

    await work_through(todo, one, failed, most=MOST, flows=flows, calls_each=CALLS_EACH, deadline_s=deadline_s)
    rows = [there[f.dialogue_id] for f in wanted if f.dialogue_id in there]
    content = "".join(row.to_line() + "\n" for row in rows)
    if not path.exists() or read_text(path) != content:
        write_atomic(path, content)
    if ends:
        raise ends[0]
    return rows


def read_repairs(path: Path) -> list[Repair]:
    """The rows of a file; RepairsError names the line that is none."""
    return read_rows(path, Repair, RepairsError, "remove that line and run again")


def repaired_by_dimension(records: Iterable[FailureRecord], outcomes: Mapping[str, str]) -> pl.DataFrame:
    """What share of the dialogues that failed in a dimension was repaired, a row each, then `gate` (a broken constraint) and
    `all`: dimension, failed (dialogues), tried (of these, with a result), repaired, share (of those tried) and its 95% interval.

    outcomes: `Repair.outcome` by dialogue id. A dialogue that failed in several dimensions counts in each. One whose repair is
    refused or impossible was tried; one for which a model gave no reply was not. Share and interval are 0 to 1, null where none was tried.
    """
    failing: dict[str, set[str]] = {}
    for record in records:
        failing.setdefault(record.dimension or GATE, set()).add(record.dialogue_id)
    names = [*sorted(d for d in failing if d != GATE), GATE, ALL]
    groups = {**failing, ALL: set().union(*failing.values())}
    rows = []
    for name in names:
        dialogues = groups.get(name, set())
        tried = [outcomes[d] for d in dialogues if outcomes.get(d, "model_error") != "model_error"]
        repaired = tried.count("repaired")
        interval = wilson(repaired, len(tried))
        rows.append({
            "dimension": name, "failed": len(dialogues), "tried": len(tried), "repaired": repaired,
            "share": repaired / len(tried) if tried else None,
            "low": interval.low if interval else None, "high": interval.high if interval else None,
        })  # fmt: skip
    whole, part = pl.Int64(), pl.Float64()
    schema = {"dimension": pl.String(), "failed": whole, "tried": whole, "repaired": whole, "share": part, "low": part, "high": part}
    return pl.DataFrame(rows, schema=schema)
