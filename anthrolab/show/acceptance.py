"""The acceptance filter in print: how many dialogues of each run would become training data, and why the others not."""

import re
from collections import Counter
from collections.abc import Sequence

import polars as pl

from anthrolab.judging.l0 import L0Result
from anthrolab.loop.filter import PAPER, FilterResult, Thresholds, filter_dialogue
from anthrolab.show.measured import Measured
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table

REASONS = 3
"""Reasons that are printed of a run; the table's CSV has no more either."""


def acceptance_table(measured: Sequence[Measured], thresholds: Thresholds = PAPER) -> PrintedTable:
    """A row for each run and judge: planned dialogues, what became of them, and the most frequent reasons."""
    rows = []
    for m in measured:
        results = [
            filter_dialogue(dialogue, L0Result.of_row(m.gate[key]), m.verdicts.get(key), m.rubric, thresholds)
            for key, dialogue in m.dialogues.items()
        ]
        counts = Counter(r.status for r in results)
        planned = int(m.manifest["counts"]["planned"])
        rows.append({
            "Run": m.run, "Judge": m.judge_label, "Planned": planned, "Accepted": counts["accepted"], "Rejected": counts["rejected"],
            "Invalid": counts["invalid"], "Undecided": counts["undecided"], "Not done": planned - len(results), "Why not": _why(results),
        })  # fmt: skip
    return plain_table(
        "acceptance", "Accepted as training data",
        f"Accepted: valid, S_dialogue at least {thresholds.dialogue:g}, S_turn above {thresholds.turn:g} (AnthroDial, section 4.5), every checkbox answered.",
        pl.DataFrame(rows),
    )  # fmt: skip


def _why(results: Sequence[FilterResult]) -> str:
    """The most frequent reasons with how often each stands, numbers left out where they differ from case to case."""
    said = Counter(f"{r.status}: {_kind(r)}" for r in results if r.status != "accepted")
    return "; ".join(f"{why} ({n})" for why, n in said.most_common(REASONS)) or NO_VALUE


def _kind(result: FilterResult) -> str:
    if result.status == "undecided" and result.boxes:
        return "not every checkbox has an answer"
    if result.status == "rejected":
        return "; ".join(re.sub(r"^(S_\w+) \d\.\d+", r"\1", part) for part in result.why.split("; "))
    return result.why
