"""Failure records to browse: of what the explorer finds, and of a loop's rounds; as a file, and as tables."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl
from markupsafe import Markup

from anthrolab.judging.verdict import RULES
from anthrolab.loop.folder import FAILURES, Loop
from anthrolab.loop.hints import NO_TURNS as NO_TURNS_ID
from anthrolab.loop.hints import Hints, load_hints
from anthrolab.loop.records import (
    FailureRecord,
    RecordsError,
    once_each,
    read_records,
    record_at,
    write_records,
)
from anthrolab.show.failure_sources import Source
from anthrolab.show.failures import NO_TURNS, Failures
from anthrolab.show.tables import PrintedTable, plain_table

FOUND = "failure_records.jsonl"
"""The file that the explorer writes records to."""
SHOWN = 30
"""Records that a table lists."""
_CELL = 60
"""Characters of a cell."""


def hints_by_source(sources: Iterable[Source]) -> dict[str, Hints]:
    """The repair hints of every source with chats, by its name; those of its own rubric."""
    by_rubric: dict[str, Hints] = {}
    found = {}
    for source in sources:
        if source.measured is not None:
            rubric = source.measured.rubric
            if rubric.hash not in by_rubric:
                by_rubric[rubric.hash] = load_hints(rubric)
            found[source.name] = by_rubric[rubric.hash]
    return found


def found_records(failures: Failures, rows: pl.DataFrame, hints: Mapping[str, Hints]) -> list[FailureRecord]:
    """The records of some failures (rows of `Failures.rows`), in their order. A ledger alone has no chats, and none.

    `hints`: by the source's name (see `hints_by_source`).
    """
    sources = {s.name: s for s in failures.sources if s.measured is not None}
    made: dict[str, list[FailureRecord]] = {}
    for row in rows.iter_rows(named=True):
        source = sources.get(row["source"])
        dialogue = source.dialogues.get((row["case_id"], row["sample"])) if source else None
        if source is None or source.measured is None or dialogue is None:
            continue
        box = NO_TURNS_ID if row["id"] == NO_TURNS else row["id"]
        unplaced = row["kind"] != "checkbox" and box != NO_TURNS_ID and row["message_index"] is None
        record = record_at(
            dialogue, row["kind"], box, -1 if unplaced else row["message_index"], row["reason"], source.measured.rubric,
            hints[source.name], source.scenarios or {}, judge=RULES if row["kind"] == "gate" else source.measured.judge,
        )  # fmt: skip
        made.setdefault(source.name, []).append(record.model_copy(update={"category": row["category"]}))
    return [record for own in made.values() for record in once_each(own)]


def add_records(path: Path, records: Iterable[FailureRecord]) -> tuple[int, int]:
    """Add records to a file, which is made if need be; returns how many are new and how many it has now.

    A record that is there already (id and judge) is replaced. RecordsError if the file is damaged: then it is left as it is.
    """
    before = read_records(path) if path.exists() else []
    after = {(r.id, r.judge): r for r in before}
    after |= {(r.id, r.judge): r for r in records}
    if list(after.values()) != before:
        write_records(path, after.values())
    return len(after) - len(before), len(after)


def loop_records(loop: str) -> list[FailureRecord]:
    """The failure buffer of a loop's folder, oldest round first; nothing if `loop` is empty. RecordsError if it has no rounds."""
    if not loop:
        return []
    folder = Loop(Path(loop))
    files = [path for n in folder.rounds() if (path := folder.round_dir(n) / FAILURES).exists()]
    if not files:
        raise RecordsError(f"{loop}: holds no rounds with {FAILURES}; name the folder of a loop, or leave it empty")
    return [record for path in files for record in read_records(path)]


def loop_runs(loop: str) -> str:
    """The run folders of a loop's judged rounds, with commas between them; nothing if `loop` is empty."""
    folder = Loop(Path(loop))
    there = [folder.run(n) for n in folder.rounds()] if loop else []
    return ",".join(str(run.path) for run in there if run.judges())


def suggestions_html(records: Sequence[FailureRecord]) -> str:
    """What to do about some failures of one case, as an HTML fragment: a row for each checkbox or constraint, with its places."""
    if not records:
        return ""
    places: dict[str, list[str]] = {}
    for record in records:
        places.setdefault(record.box, []).append(f"turn {record.turn_index}" if record.turn_index else "the dialogue")
    words = {record.box: record.suggestion for record in records}
    cells = Markup('<tr><th scope="row">{}</th><td>{}</td><td lang="zh">{}</td></tr>')
    rows = Markup("").join(cells.format(box, ", ".join(dict.fromkeys(at)), words[box]) for box, at in places.items())
    summary = f"{len(places)} suggested repair{'s' if len(places) != 1 else ''}"
    return str(Markup('<details class="al-pairs al-suggested" open><summary>{}</summary><table><tbody>{}</tbody></table></details>').format(summary, rows))


def records_by_box(records: Sequence[FailureRecord]) -> PrintedTable:
    """What fails how often: a row for each checkbox or constraint, the most frequent first."""
    counts = Counter(r.box for r in records)
    last = {r.box: r for r in records}
    rows = [
        {
            "What": box, "Failures": count, "Dialogues": len({r.dialogue_id for r in records if r.box == box}),
            "Rounds": ", ".join(map(str, sorted({r.round for r in records if r.box == box and r.round is not None}))),
            "Suggested repair": last[box].suggestion,
        }
        for box, count in counts.most_common()
    ]  # fmt: skip
    schema = {"What": pl.String, "Failures": pl.Int64, "Dialogues": pl.Int64, "Rounds": pl.String, "Suggested repair": pl.String}
    return plain_table("failure-records", "What fails", f"{len(records)} failure records.", pl.DataFrame(rows, schema=schema))


def records_table(records: Sequence[FailureRecord], most: int = SHOWN) -> PrintedTable:
    """The records, each in a row: where, what, the failed text, the reason and the suggested repair. Long texts are cut."""
    rows = [
        {
            "Where": r.dialogue_id + (f", turn {r.turn_index}" if r.turn_index else ""), "What": r.box, "Text": _cut(r.text),
            "Reason": _cut(r.reason), "Suggested repair": r.suggestion,
        }
        for r in records[:most]
    ]  # fmt: skip
    schema = dict.fromkeys(("Where", "What", "Text", "Reason", "Suggested repair"), pl.String)
    left = [f"{len(records) - most} more are not shown."] if len(records) > most else []
    return plain_table("failure-record-list", "Failure records", "", pl.DataFrame(rows, schema=schema), left)


def _cut(text: str | None) -> str:
    text = " ".join((text or "").split())
    return text if len(text) <= _CELL else text[:_CELL] + "…"
