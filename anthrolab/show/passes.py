"""The definitions of a pass side by side: a row for each system, a column for each definition, in blocks."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from anthrolab.bench.passes import PASSES, STRICT
from anthrolab.bench.printing import as_percent, ratio
from anthrolab.bench.published import published_counts
from anthrolab.show.blocks import Block
from anthrolab.show.tables import NO_VALUE, PrintedTable

PUBLISHED_NOTE = (
    "The paper prints strict ACC alone, and no result of a single case, so no other definition can be known of its systems. "
    "The reconstructed ledger, from which its tables come out, could only invent them: it has the published counts, but which "
    "cases and roles pass in it is made up, and its case scores fit printed digits and nothing else."
)


def passes_table(blocks: Sequence[Block], counted: Sequence[pl.DataFrame]) -> PrintedTable:
    """All definitions with numerator, denominator, rate and interval; what each one means stands below.

    counted: `bench.passes.passes` of the ledger behind each measured one of the blocks, in their order.
    """
    ours = iter(counted)
    rows: list[list[str]] = []
    headings: list[str] = []
    published: list[bool] = []
    partly = False
    for block in blocks:
        if block.published:
            found = _published_rows(block)
        else:
            rates = next(ours)
            partly = partly or bool(rates["partly"].any())
            found = [
                [of_one["system"][0], *map(_cell, of_one.iter_rows(named=True))]
                for of_one in rates.partition_by("system", maintain_order=True)
            ]
        rows += found
        headings += [block.heading] * len(found)
        published += [block.published] * len(found)
    notes = [f"{d.name}: {d.meaning}. Unassessed checkboxes: {d.unassessed}." for d in PASSES]
    if partly:
        notes.append("* Over the assessed checkboxes only, which gives higher values than a judge that answers them all.")
    if any(published):
        notes.append(PUBLISHED_NOTE)
    notes.append(
        "In brackets the 95% interval: Wilson for independent units, a bootstrap by binding where cases share one. "
        f"{NO_VALUE}: no value. Nothing is ranked: the columns are different questions, and the blocks different judges."
    )
    return PrintedTable(
        name="pass-definitions",
        title="Definitions of a pass, side by side",
        caption="How many passed of how many that could be decided. Units that failed, were not tried, not judged or are not valid are in no denominator.",
        frame=pl.DataFrame(rows, schema=dict.fromkeys(("Model", *(d.name for d in PASSES)), pl.String), orient="row"),
        headings=headings,
        published=published,
        notes=notes,
        labels={},
        marked={},
    )


def _cell(row: dict[str, Any]) -> str:
    """Such as `3 of 12: 25.00%* (8.9 to 53.2%) 2 undecided`."""
    undecided = f"{row['undecided']} undecided" if row["undecided"] else ""
    if not row["of"]:
        return _lines(undecided) or NO_VALUE
    star = "*" if row["partly"] else ""
    rate = f"{row['passed']} of {row['of']}: {as_percent(ratio(row['passed'], row['of']), 2)}{star}"
    ends = f"({100 * row['low']:.1f} to {100 * row['high']:.1f}%)" if row["low"] is not None else ""
    return _lines(rate, ends, undecided)


def _lines(*parts: str) -> str:
    """The parts with blanks between; in a narrow column lines break there alone."""
    return " ".join(part.replace(" ", "\u00a0") for part in parts if part)


def _published_rows(block: Block) -> list[list[str]]:
    """Strict ACC as printed, with the counts that its digits allow, and nothing else."""
    valid = dict(published_counts().select("Model", "Valid cases").iter_rows())
    rows = []
    for system, acc in block.tables[7].select("Model", "ACC").iter_rows():
        passed = round(float(acc.rstrip("%")) * valid[system] / 100)
        strict = _lines(f"{passed} of {valid[system]}: {acc}", f"({block.intervals[system]['ACC']})")
        rows.append([system, *(strict if d is STRICT else NO_VALUE for d in PASSES)])
    return rows
