"""Every failure of every system in one frame, and the filters of the failure explorer on it.

A failure is a checkbox that a judge failed, or a constraint of the gate that the tested side broke, fatal or major.
What could not be had or was not judged is no failure and has no row.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from anthrolab.bench.ledger import DIMENSIONS
from anthrolab.cards.scenario import CATEGORIES
from anthrolab.judging.scores import failed_boxes
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.show.failure_sources import FailuresError, Source
from anthrolab.show.measured import Measured

GATE_UNKNOWN = "L0"
"""Stands for the constraint that made a case invalid where a bare ledger does not say which."""
NO_TURNS = "no turns"
"""Stands in the place of a constraint where the tested side said nothing."""
KINDS = ("checkbox", "gate", "judge_gate")
STATES = ("valid", "invalid", "not judged", "not done")
"""What became of a planned case. not judged: its dialogue is there and valid by the gate, and the judge was not asked
yet; a bare ledger cannot tell that from not done, and such a case is not done here."""
FACETS = ("source", "system", "category", "role", "dimension", "checkbox", "gate")
"""What can be picked, besides words to search for."""

_TEXT, _NUMBER = pl.String(), pl.Int32()
_CASE_TYPES: dict[str, pl.DataType] = {
    "case": pl.UInt32(), "number": pl.UInt32(), "ledger_case": pl.UInt32(), "source": _TEXT, "run": _TEXT, "judge": _TEXT,
    "system": _TEXT, "case_id": _TEXT, "sample": _NUMBER, "binding": _TEXT, "role": _TEXT, "category": pl.Enum(CATEGORIES),
    "valid": pl.Boolean(), "state": pl.Enum(STATES), "dialogue_id": _TEXT, "names": _TEXT,
}  # fmt: skip
_ROW_TYPES: dict[str, pl.DataType] = {
    "case": pl.UInt32(), "kind": pl.Enum(KINDS), "dimension": pl.Enum(DIMENSIONS), "id": _TEXT, "turn_index": _NUMBER,
    "message_index": _NUMBER, "text": _TEXT, "reason": _TEXT,
}  # fmt: skip
_Row = tuple[int, str, str | None, str, int | None, int | None, str | None, str | None]


@dataclass(frozen=True)
class Failures:
    """What `collect` made of its sources.

    cases: one row per planned case of every source, failed or not: case (from 0), number (of its source, from 0),
        ledger_case (its row there), source, run, judge, system, case_id, sample, binding, role, category, valid,
        state (of STATES), dialogue_id, names (of the speakers; run, judge, dialogue_id and names are null where there is no run), failures.
    rows: one row per failure: kind, dimension (null: gate), id (of checkbox or constraint), turn_index (from 1),
        message_index (from 0), text of that message, reason (null where there is none), and the columns of its case.
    """

    sources: tuple[Source, ...]
    cases: pl.DataFrame
    rows: pl.DataFrame


def collect(sources: Sequence[Source]) -> Failures:
    """The failures of all sources, in the order of the sources, their cases, and the turns of a case.

    Of a case that is invalid or not judged no checkbox is a failure, as in the ledger; every constraint that the tested side
    broke is one in any case, major ones too. FailuresError if two sources share a name.
    """
    names = [s.name for s in sources]
    if len(set(names)) < len(names):
        raise FailuresError(f"two sources have the same name ({', '.join(names)}); rename one, sources are told by name")
    cases, rows = pl.DataFrame(schema=_CASE_TYPES), [pl.DataFrame(schema=_ROW_TYPES)]
    for number, source in enumerate(sources):
        rows.append(_ledger_rows(source, cases.height) if source.measured is None else _measured_rows(source, cases.height))
        cases = pl.concat([cases, _cases(source, number, cases.height)])
    failures = pl.concat(rows).sort("case", maintain_order=True)
    counted = failures.group_by("case").agg(failures=pl.len())
    of_case = cases.select("case", *(c for c in _CASE_TYPES if c not in ("case", "number", "ledger_case")))
    parts = [pl.col(c).fill_null("") for c in ("text", "reason", "names", "system", "case_id")]
    return Failures(
        tuple(sources),
        cases.join(counted, on="case", how="left", maintain_order="left").with_columns(pl.col("failures").fill_null(0)),
        failures.join(of_case, on="case", how="left", maintain_order="left").with_columns(
            _found_in=pl.concat_str(parts, separator="\n").str.to_lowercase()
        ),
    )


def chosen(
    rows: pl.DataFrame,
    *,
    source: str | None = None,
    system: str | None = None,
    category: str | None = None,
    role: str | None = None,
    dimension: str | None = None,
    checkbox: str | None = None,
    gate: str | None = None,
    search: str = "",
) -> pl.DataFrame:
    """The failures (of `Failures.rows`) that fit everything that is asked for; None or "" asks for nothing.

    checkbox: its id, e.g. "D1.3"; gate: a constraint's, e.g. "L0-05". search: words, each of which must stand in the
    failing message, the reason, or the names of speakers, system or case; upper and lower case are the same.
    """
    asked = {"source": source, "system": system, "category": category, "role": role, "dimension": dimension}
    tests = [pl.col(name) == value for name, value in asked.items() if value]
    tests += [(pl.col("kind") == "checkbox") & (pl.col("id") == checkbox)] if checkbox else []
    tests += [(pl.col("kind") != "checkbox") & (pl.col("id") == gate)] if gate else []
    words = pl.Series(search.split(), dtype=pl.String).str.to_lowercase()
    tests += [pl.col("_found_in").str.contains(word, literal=True) for word in words]
    return rows.filter(*tests) if tests else rows


def facet_counts(rows: pl.DataFrame, *, search: str = "", **asked: str | None) -> dict[str, dict[str, int]]:
    """For every facet its values with the number of failures, under everything else that is asked for (as in `chosen`).

    Systems and sources stand in their order, the rest in that of the rubric and the paper. What is asked of checkbox
    and gate does not narrow the other, since no failure has both; the checkbox does not narrow its dimension.
    """
    found = chosen(rows, search=search)
    blind = {"dimension": {"checkbox", "gate"}, "checkbox": {"gate"}, "gate": {"checkbox", "dimension"}}
    counts = {}
    for facet in FACETS:
        others = {k: v for k, v in asked.items() if k != facet and k not in blind.get(facet, ())}
        left = chosen(found, **others)  # type: ignore[arg-type]
        if facet in ("checkbox", "gate"):
            left = left.filter((pl.col("kind") == "checkbox") == (facet == "checkbox"))
        values = left.select(value=pl.col("id" if facet in ("checkbox", "gate") else facet).cast(pl.String)).drop_nulls()
        counted = dict(values.group_by("value", maintain_order=True).len().iter_rows())
        counts[facet] = counted if facet in ("source", "system") else dict(sorted(counted.items(), key=_in_order))
    return counts


def failing_cases(rows: pl.DataFrame) -> pl.DataFrame:
    """The cases of some failures in their order: the columns of the case, failures (of these rows), ids (list, each once, sorted)."""
    of_case = [c for c in _CASE_TYPES if c in rows.columns and c != "case"]
    grouped = rows.group_by("case", maintain_order=True)
    return grouped.agg(*(pl.col(c).first() for c in of_case), failures=pl.len(), ids=pl.col("id").unique().sort())


def failures_by_system(failures: Failures) -> pl.DataFrame:
    """One row per source and system: planned, not done, not judged, invalid and failing cases, failures, and the id that fails most."""
    by = ["source", "system"]
    cases = failures.cases.group_by(by, maintain_order=True).agg(
        pl.len().alias("planned"), *((pl.col("state") == state).sum().alias(state) for state in ("not done", "not judged", "invalid")),
        (pl.col("failures") > 0).sum().alias("failing"), pl.col("failures").sum(),
    )  # fmt: skip
    most = failures.rows.group_by(*by, "id", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    named = most.group_by(by, maintain_order=True).agg(pl.format("{} ({})", pl.col("id").first(), pl.col("len").first()).alias("most often"))
    return cases.join(named, on=by, how="left", maintain_order="left").with_columns(pl.col("most often").fill_null(""))


def counted_cases(cases: pl.DataFrame) -> str:
    """Such as `12 planned cases (1 invalid, 0 not judged, 1 not done)`."""
    states = Counter(cases["state"])
    return f"{cases.height} planned cases ({', '.join(f'{states[s]} {s}' for s in STATES[1:])})"


def _in_order(item: tuple[str, int]) -> tuple[int, str, int]:
    """Categories as in the paper; ids by letters, then by number: D1.2 before D1.10."""
    value = item[0]
    if value in CATEGORIES:
        return (CATEGORIES.index(value), "", 0)
    head, _, number = value.rpartition(".")
    return (0, head or value, int(number) if head and number.isdigit() else 0)


def _cases(source: Source, number: int, first: int) -> pl.DataFrame:
    m = source.measured
    there = [source.dialogues.get(key) for key in source.ledger.cases.select("case_id", "sample").iter_rows()]
    states = ["not judged" if d else "not done" for d in there]
    return source.ledger.cases.with_columns(
        number=pl.lit(number), ledger_case="case", case=pl.col("case") + first, source=pl.lit(source.name),
        run=pl.lit(m.run if m else None), judge=pl.lit(m.judge if m else None),
        state=pl.when("valid").then(pl.lit("valid")).when(~pl.col("valid")).then(pl.lit("invalid")).otherwise(pl.Series(states, dtype=pl.String)),
        dialogue_id=pl.Series([d.dialogue_id if d else None for d in there], dtype=pl.String),
        names=pl.Series([f"{d.speakers['a'].name} {d.speakers['b'].name}" if d else None for d in there], dtype=pl.String),
    ).select(pl.col(name).cast(kind) for name, kind in _CASE_TYPES.items())  # fmt: skip


def _ledger_rows(source: Source, first: int) -> pl.DataFrame:
    boxes = source.ledger.checkboxes.filter(pl.col("passed") == False)  # noqa: E712 - null is neither
    named = boxes.select(
        case=pl.col("case") + first, kind=pl.lit("checkbox"), dimension=pl.col("dimension"),
        id=pl.format("{}.{}", pl.col("dimension").cast(pl.String), "checkbox"), turn_index="turn_index",
    )  # fmt: skip
    invalid = source.ledger.cases.filter(pl.col("valid") == False)  # noqa: E712
    gate = invalid.select(case=pl.col("case") + first, kind=pl.lit("gate"), id=pl.lit(GATE_UNKNOWN))
    parts = [part.with_columns(pl.col(c).cast(t) for c, t in _ROW_TYPES.items() if c in part.columns) for part in (gate, named)]
    return pl.concat([pl.DataFrame(schema=_ROW_TYPES), *parts], how="diagonal")


def _measured_rows(source: Source, first: int) -> pl.DataFrame:
    assert source.measured is not None
    rows = [row for d in source.measured.dialogues.values() for row in _of_dialogue(source.measured, d, first)]
    return pl.DataFrame(rows, schema=_ROW_TYPES, orient="row")


def _of_dialogue(m: Measured, dialogue: Dialogue, first: int) -> Iterator[_Row]:
    row, gate, verdict = m.case(dialogue), m.gate[dialogue.dialogue_id], m.verdicts.get(dialogue.dialogue_id)
    case, turns = first + row["case"], {position: number for number, position in enumerate(dialogue.turns(), 1)}

    def at(index: int | None) -> tuple[int | None, int | None, str | None]:
        if index is None or not 0 <= index < len(dialogue.messages):
            return (None, None, None)
        return (turns.get(index), index, dialogue.messages[index].content)

    if gate["reason"] == "no_turns":
        yield (case, "gate", None, NO_TURNS, None, None, None, "the tested side said nothing")
    for v in gate["violations"]:
        yield (case, "gate", None, v["id"], *at(v["message_index"]), str(v["evidence"]))
    for answer in verdict.judge_violations() if verdict else []:
        yield (case, "judge_gate", None, answer.id, *at(answer.message_index), answer.reason)
    for box in failed_boxes(verdict) if verdict and row["valid"] else []:
        yield (case, "checkbox", m.rubric.dimension_of[box.id].id, box.id, *at(box.message_index), box.reason)
