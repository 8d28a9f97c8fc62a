"""Blocks: rows that may be read together because judge, partner, rubric and cases are the same.

Nothing is ranked across blocks. One block is what the paper prints, every other one a run as one judge saw it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from anthrolab.bench.coverage import coverage
from anthrolab.bench.passes import rate_interval
from anthrolab.bench.printing import as_percent, ratio
from anthrolab.bench.published import published_counts, published_numbers, published_table
from anthrolab.bench.scores import case_scores
from anthrolab.bench.stats import bootstrap_mean
from anthrolab.bench.tables import tables
from anthrolab.intervals import Interval, wilson
from anthrolab.show.measured import Measured

SCORE_TABLES = (7, 8, 9, 10, 11)
PUBLISHED_JUDGE = "Qwen3.5-397B"


@dataclass(frozen=True)
class Block:
    """A block of rows in Tables 7-11.

    key: a name for files; heading: judge, partner, rubric, counts and coverage in one line.
    tables: by number, printed strings as in the CSV files.
    intervals: 95% intervals as printed, by system and column of Table 7.
    partly: the judge left checkboxes unassessed; fully_assessed: ACC over the fully assessed cases as printed,
    by system (empty unless partly).
    cases: valid cases by category.
    """

    key: str
    published: bool
    heading: str
    tables: Mapping[int, pl.DataFrame]
    intervals: Mapping[str, Mapping[str, str]]
    partly: bool = False
    fully_assessed: Mapping[str, str] | None = None
    cases: Mapping[str, int] | None = None


def published_block() -> Block:
    """The sixteen systems as the paper prints them. Per-case scores are not published, so Score has no interval."""
    counts = published_counts()
    valid = dict(counts.select("Model", "Valid cases").iter_rows())
    intervals: dict[str, dict[str, str]] = {name: {} for name in valid}
    for row in published_numbers(7).iter_rows(named=True):
        of = valid[row["Model"]]
        for column in ("ACC", "Holistic ACC"):
            intervals[row["Model"]][column] = _percent(wilson(round(row[column] * of / 100), of))
    fewest, most, planned = min(valid.values()), max(valid.values()), max(counts["Cases"].to_list())
    return Block(
        key="published",
        published=True,
        heading=f"Published in the AnthroDial paper: {counts.height} systems · judge {PUBLISHED_JUDGE} · one fixed "
        f"reference partner · the authors' 44 checkboxes, all assessed · {fewest} to {most} of {planned} cases valid",
        tables={n: published_table(n) for n in SCORE_TABLES},
        intervals=intervals,
    )


def measured_block(measured: Measured, *, seed: int = 0) -> Block:
    """One run as one judge saw it; the seed is that of the bootstrap over bindings."""
    ledger, rubric = measured.ledger, measured.rubric
    scores = case_scores(ledger, measured.weights)
    counted = coverage(ledger)
    planned, valid, boxes, assessed = (int(counted[c].sum()) for c in ("planned", "valid", "boxes", "assessed"))
    answered = (
        ledger.checkboxes.filter(pl.col("passed").is_not_null()).select("dimension", "checkbox").n_unique()
        if ledger.checkboxes.height
        else 0
    )
    partly = assessed < boxes
    return Block(
        key=f"{measured.run}-{measured.judge}",
        published=False,
        heading=f"Measured here: run {measured.run} · judge: {measured.judge_label} · partner: {measured.partner} · "
        f"rubric: {rubric.name} · {valid} valid of {planned} planned cases · "
        f"{answered} of {len(rubric.boxes())} boxes",
        tables={int(name.removeprefix("table")): t for name, t in tables(ledger, measured.weights).items()},
        intervals={system: _intervals(scores.filter(pl.col("system") == system), seed) for system in ledger.systems},
        partly=partly,
        fully_assessed={row["system"]: _full(row["full_passed"], row["full"]) for row in counted.iter_rows(named=True)}
        if partly
        else None,
        cases=dict(scores.filter("valid").group_by("category", maintain_order=True).len().iter_rows()),
    )


def _intervals(scores: pl.DataFrame, seed: int) -> dict[str, str]:
    """Intervals of the two rates and of the mean score.

    Rates: Wilson over cases, which is sound for few cases. Several samples of a case, or both cases of a binding,
    are not independent: then rates are bootstrapped by binding, like the score.
    """
    def known(column: str) -> tuple[pl.Series, pl.Series]:
        rows = scores.drop_nulls(column)
        return rows[column], rows.select(pl.coalesce("binding", "case_id")).to_series()

    def rate(column: str) -> Interval | None:
        return rate_interval(*known(column), seed=seed)

    values, clusters = known("score")
    score = bootstrap_mean(values.cast(pl.Float64), clusters, seed=seed) if len(values) else None
    return {
        "ACC": _percent(rate("passed")),
        "Holistic ACC": _percent(rate("dialogue_passed")),
        "Score": f"{score.low:.1f} to {score.high:.1f}" if score else "",
    }


def _percent(interval: Interval | None) -> str:
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}%" if interval else ""


def _full(passed: int, of: int) -> str:
    return f"{as_percent(ratio(passed, of), 2)} of {of}" if of else "no such case"
