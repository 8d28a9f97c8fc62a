"""What a ledger covers: how many cases were done and valid, and how many checkboxes the judge answered."""

from fractions import Fraction

import polars as pl

from anthrolab.bench.ledger import DIMENSIONS, Ledger
from anthrolab.bench.printing import as_percent, ratio
from anthrolab.bench.scores import Counts, count_boxes

COVERAGE_HEADERS = (
    "Model", "Planned", "Done", "Missing", "Valid", "Invalid", "Valid of planned", "Evaluated turns", "Boxes",
    "Assessed boxes", "Coverage", "Fully assessed cases", "ACC of fully assessed cases",
    *(f"{d} assessed" for d in DIMENSIONS),
)  # fmt: skip


def coverage(ledger: Ledger, counts: Counts | None = None) -> pl.DataFrame:
    """Counts by system, in the order of the tables.

    Columns: system; planned, done, missing, valid, invalid (cases); turns (evaluated turns of the valid
    cases, assessed or not); boxes, assessed (checkboxes of the valid cases); full (valid cases that have a
    turn, a dialogue card, and every checkbox of both assessed); full_passed (those of them that pass).
    `counts`: count_boxes(ledger), if at hand.
    """
    counts = counts or count_boxes(ledger)
    cases = ledger.cases.select("case", "system", "valid")
    planned = cases.group_by("system", maintain_order=True).agg(
        planned=pl.len(),
        done=pl.col("valid").count(),
        missing=pl.col("valid").is_null().sum(),
        valid=pl.col("valid").sum(),
        invalid=(~pl.col("valid")).sum(),
    )
    local = pl.col("local")
    complete = local.any() & ~local.all() & (pl.col("assessed").sum() == pl.col("boxes").sum())
    by_case = counts.dimensions.group_by("case").agg(
        pl.col("boxes", "assessed").sum(),
        turns=pl.col("card").filter(local).n_unique(),
        full=complete,
        full_passed=complete & (pl.col("passed").sum() == pl.col("boxes").sum()),
    )
    sums = ["turns", "boxes", "assessed", "full", "full_passed"]
    by_system = by_case.join(cases, on="case").group_by("system").agg(pl.col(sums).sum())
    return (
        planned.join(by_system, on="system", how="left", maintain_order="left")
        .select("system", pl.exclude("system").fill_null(0).cast(pl.Int64))
        .select(*planned.columns, *sums)
    )


def dimension_coverage(ledger: Ledger, counts: Counts | None = None) -> pl.DataFrame:
    """Checkboxes of the valid cases by system and dimension: system, dimension, boxes, assessed; no order."""
    counts = counts or count_boxes(ledger)
    by_case = counts.dimensions.join(ledger.cases.select("case", "system"), on="case")
    sums = by_case.group_by("system", "dimension").agg(pl.col("boxes", "assessed").sum())
    names = pl.col("dimension").replace_strict(dict(enumerate(DIMENSIONS)), return_dtype=pl.String)
    return sums.with_columns(names)


def coverage_table(ledger: Ledger, counts: Counts | None = None) -> pl.DataFrame:
    """The counts and shares of coverage.csv as printed strings; a share of nothing is "".

    A share below 1 never prints as 100.00%, nor one above 0 as 0.00%: it stops at 99.99% and 0.01%.
    """
    counts = counts or count_boxes(ledger)
    by_dimension = {
        (system, d): _share(assessed, boxes)
        for system, d, boxes, assessed in dimension_coverage(ledger, counts).iter_rows()
    }
    rows = [
        {
            "Model": c["system"],
            "Planned": str(c["planned"]),
            "Done": str(c["done"]),
            "Missing": str(c["missing"]),
            "Valid": str(c["valid"]),
            "Invalid": str(c["invalid"]),
            "Valid of planned": _share(c["valid"], c["planned"]),
            "Evaluated turns": str(c["turns"]),
            "Boxes": str(c["boxes"]),
            "Assessed boxes": str(c["assessed"]),
            "Coverage": _share(c["assessed"], c["boxes"]),
            "Fully assessed cases": str(c["full"]),
            "ACC of fully assessed cases": as_percent(ratio(c["full_passed"], c["full"]), 2),
        }
        | {f"{d} assessed": by_dimension.get((c["system"], d), "") for d in DIMENSIONS}
        for c in coverage(ledger, counts).iter_rows(named=True)
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(COVERAGE_HEADERS, pl.String))


def _share(part: int, whole: int) -> str:
    share = ratio(part, whole)
    if share is not None and 0 < share < 1:
        share = min(max(share, Fraction(1, 10000)), Fraction(9999, 10000))
    return as_percent(share, 2)
