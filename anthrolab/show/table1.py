"""Table 1 of a pool of training samples, beside the paper's, for print."""

from collections.abc import Mapping, Sequence

import polars as pl

from anthrolab.loop.sft.samples import Sample
from anthrolab.loop.sft.table1 import PAPER_COVERAGE, beside_paper, coverage
from anthrolab.show.tables import NO_VALUE, PrintedTable

_SAID = {"samples": "samples", "scenarios": "scenario cards", "personas": "persona cards", "directed_pairs": "directed role pairs"}


def table1_printed(samples: Sequence[Sample], left_out: Mapping[str, int] | None = None) -> PrintedTable:
    """Table 1 of a pool with the paper's numbers on its right; `left_out`: asks that gave no sample, by reason."""
    frame = beside_paper(samples).with_columns(pl.all().replace("", NO_VALUE))
    own = coverage(samples)
    mended = sum(s.recovered is not None for s in samples)
    notes = [
        "This pool: " + ", ".join(f"{own[key]:,} {said}" for key, said in _SAID.items()) + ". The paper's: "
        + ", ".join(f"{PAPER_COVERAGE[key]:,} {said}" for key, said in _SAID.items()) + ".",
        f"Records with an abnormality in parsing: {mended:,} of this pool come from a reply that was mended or asked for twice; a broken reply gives no sample. The paper reports none.",
    ]  # fmt: skip
    if left_out:
        notes.append("Asks that gave no sample: " + ", ".join(f"{reason} {count:,}" for reason, count in left_out.items()) + ".")
    return PrintedTable(
        name="table1",
        title="Table 1. SFT data distribution",
        caption="Scenario cards are counted once; a sample is one decision, silence included. Shares are of the column's total.",
        frame=frame,
        headings=[],
        published=[],
        notes=notes,
        labels={},
        marked={},
    )
