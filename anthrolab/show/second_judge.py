"""A second opinion in print: how far two judges agree on a run, and how often one judge changes its mind."""

import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import polars as pl

from anthrolab.bench.second_judge import ALL, OUTCOME, Agreement, Retest, agreements, retest_of, retested
from anthrolab.bench.store import Run
from anthrolab.files import content_hash
from anthrolab.intervals import Rate
from anthrolab.judging.calibration.agreement import Kappa
from anthrolab.show.measured import Measured
from anthrolab.show.tables import NO_VALUE, PrintedTable, as_text, plain_table


def agreement_tables(run_dir: Path, measured: Sequence[Measured], *, seed: int = 0) -> list[PrintedTable]:
    """What there is of second opinions on one run, as its judges saw it: a table for every two judges, and one for every
    judge that judged some of it again. Empty where there is neither."""
    tables = [pair_table(a, b, seed=seed) for a, b in combinations(measured, 2)]
    for m in measured:
        if second := retested(Run(run_dir), m.verdicts):
            tables.append(retest_table(retest_of(m.judge, m.verdicts, second, m.rubric), m.run))
    return tables


def pair_table(a: Measured, b: Measured, *, seed: int = 0) -> PrintedTable:
    """Two judges of one run, by checkbox."""
    bindings = {key: dialogue.binding or key for key, dialogue in a.dialogues.items()}
    rows = agreements(a.verdicts, b.verdicts, bindings, a.rubric, seed=seed)
    both = sum(key in b.verdicts for key in a.verdicts)
    names = a.judge_label, b.judge_label
    return plain_table(
        _name("agreement", a.run, a.judge, b.judge), f"Run {a.run}: {names[0]} and {names[1]} on {both} dialogues",
        "Counted is what both answer: a checkbox once a turn or once a dialogue, strict acceptance once a dialogue (every answer of "
        "that judge passed and nothing fatal found by it; a judge that answers less accepts more). Cohen's kappa with a 95% interval "
        "by bootstrap over bindings; where almost nothing fails it is low whatever the agreement, so read it beside the shares.",
        pl.DataFrame([_row(row, *names) for row in rows]),
        _notes(rows, *names),
    )  # fmt: skip


def retest_table(retest: Retest, run: str) -> PrintedTable:
    """One judge twice over the same dialogues, by checkbox."""
    rows = [(OUTCOME, retest.outcome_flips), (ALL, retest.flips_all), *retest.flips.items()]
    incomplete = f" In {retest.incomplete} of them a call got no answer the second time." if retest.incomplete else ""
    return plain_table(
        _name("retest", run, retest.judge), f"Run {run}: judge {retest.judge} asked twice about {retest.dialogues} of {retest.judged} dialogues",
        f"Judged again by the same judge, every request drawn anew.{incomplete} A "
        "flip is an answer that was given both times and came out otherwise. 95% intervals: Wilson's; answers of one dialogue hang "
        "together, and over all checkboxes it is too narrow.",
        pl.DataFrame([{"Of": of, "Answered twice": str(rate.of), "Flips": str(rate.part), "Flip rate": _rate(rate)} for of, rate in rows]),
    )  # fmt: skip


def as_lines(tables: Sequence[PrintedTable]) -> str:
    """The tables for a terminal."""
    return "\n\n".join(as_text(table) for table in tables)


def _name(*parts: str) -> str:
    """The parts as an id that HTML, style sheets and file systems take; names that differ stay different."""
    text = "-".join(parts)
    plain = re.sub(r"[^A-Za-z0-9-]", "-", text)
    return plain if plain == text else f"{plain}-{content_hash(text)[:6]}"


def _row(row: Agreement, a: str, b: str) -> dict[str, str]:
    k = row.kappa
    return {
        "Of": row.of,
        "Both answer": str(k.agree.of),
        "One only": str(row.one_only),
        "Agree": _share(k.agree),
        "Both passed": _share(k.both_passed),
        f"{a}: passed": _passed(k.failed_a),
        f"{b}: passed": _passed(k.failed_b),
        "Kappa": f"{NO_VALUE} ({why})" if (why := row.no_kappa(a, b)) else _kappa(k),
    }


def _notes(rows: Sequence[Agreement], a: str, b: str) -> list[str]:
    notes = []
    if any(row.no_kappa(a, b) for row in rows):
        notes.append(f"{NO_VALUE} for kappa: a judge that gives only one kind of answer makes it 0 or undefined whatever the other says.")
    if any(row.kappa.interval is None and row.no_kappa(a, b) is None for row in rows):
        notes.append(
            "Kappa without an interval: both answer in fewer than two bindings, or what one of them fails (or passes) stands in so "
            "few that more than one resample in twenty has none of it."
        )
    return notes


def _kappa(k: Kappa) -> str:
    ends = f" [{k.interval.low:.2f}, {k.interval.high:.2f}]" if k.interval else ""
    return f"{k.value:.2f}{ends}"


def _rate(rate: Rate) -> str:
    return f"{rate.value:.4f} [{rate.interval.low:.4f}, {rate.interval.high:.4f}]" if rate.interval else NO_VALUE


def _share(rate: Rate) -> str:
    return NO_VALUE if rate.value is None else f"{rate.value:.4f}"


def _passed(failed: Rate) -> str:
    return _share(Rate(failed.of - failed.part, failed.of))
