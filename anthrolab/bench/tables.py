"""Tables 7 to 11 of AnthroDial from a ledger, exact to the last printed digit.

Polars counts checkboxes in integers; Python finishes the few groups that remain in whole numbers and
fractions, and prints half to even. A cell without a value (no valid case, or nothing assessed) is an empty
string; a system without a valid case keeps its row.
"""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any

import polars as pl

from anthrolab.bench.coverage import coverage_table
from anthrolab.bench.ledger import DIMENSIONS, Ledger, read_ledger, read_weights
from anthrolab.bench.printing import as_csv, as_decimal, as_percent
from anthrolab.bench.scores import PAPER_WEIGHTS, Counts, Weights, count_boxes, exact_weights
from anthrolab.cards.scenario import CATEGORIES
from anthrolab.files import write_atomic

Key = tuple[str, ...]
Means = dict[Key, Fraction]


def tables(ledger: Ledger, weights: Weights = PAPER_WEIGHTS, counts: Counts | None = None) -> dict[str, pl.DataFrame]:
    """Tables 7-11 as frames of printed strings, by name ("table7" .. "table11"), with the paper's headers.

    One row per system in the order of first appearance in the cases. Table 7's Per-turn and Turn ACC are
    means over cases; the D columns of Tables 8 and 9 pool all turns, their E columns pool cases; all other
    columns are means or rates over the valid cases, of Tables 10 and 11 those of a category (AnthroDial
    sections 5.4 and 6). `counts`: count_boxes(ledger), if at hand.
    """
    exact = exact_weights(weights)
    counts = counts or count_boxes(ledger)
    cases = _judged_cases(ledger, counts)
    accepted = _acceptance(counts, cases)
    scores = _mean_scores(counts, cases, exact)
    turn_acc = _turn_acceptance(counts, cases)
    dimension_scores, dimension_acc = _dimensions(counts, cases)
    rows: dict[str, list[list[str]]] = {f"table{n}": [] for n in range(7, 12)}
    for system in ledger.systems:
        acc = as_percent(accepted.get(("case", system)), 2)
        score = as_decimal(scores.get(("score", system)), 1)
        rows["table7"].append(
            [system, acc]
            + [
                as_percent(turn_acc.get((system,)), 2),
                as_percent(accepted.get(("dialogue", system)), 2),
                score,
            ]
            + [as_decimal(scores.get((scope, system)), 4) for scope in ("turn", "dialogue")]
        )
        rows["table8"].append([system, *(as_decimal(dimension_scores.get((system, d)), 4) for d in DIMENSIONS)])
        rows["table9"].append([system, *(as_percent(dimension_acc.get((system, d)), 2) for d in DIMENSIONS)])
        rows["table10"].append([system, *(as_decimal(scores.get(("score", system, c)), 1) for c in CATEGORIES)])
        rows["table11"].append([system, acc, *(as_percent(accepted.get(("case", system, c)), 1) for c in CATEGORIES)])
    headers = {
        "table7": ("ACC", "Turn ACC", "Holistic ACC", "Score", "Per-turn", "Holistic"),
        "table8": DIMENSIONS,
        "table9": DIMENSIONS,
        "table10": CATEGORIES,
        "table11": ("ACC", *CATEGORIES),
    }
    return {
        name: pl.DataFrame(rows[name], schema=dict.fromkeys(("Model", *headers[name]), pl.String), orient="row")
        for name in rows
    }


def write_tables(ledger_dir: Path | str, out_dir: Path | str, weights: Weights | None = None) -> list[Path]:
    """Write table7.csv .. table11.csv and coverage.csv, each whole or not at all; returns their paths.

    Weights not given are those that stand beside the ledger, else the paper's.
    """
    ledger = read_ledger(ledger_dir)
    weights = weights or read_weights(ledger_dir) or PAPER_WEIGHTS
    counts = count_boxes(ledger)
    made = tables(ledger, weights, counts) | {"coverage": coverage_table(ledger, counts)}
    paths = []
    for name, table in made.items():
        paths.append(Path(out_dir) / f"{name}.csv")
        write_atomic(paths[-1], as_csv(table))
    return paths


def _judged_cases(ledger: Ledger, counts: Counts) -> pl.DataFrame:
    """One row per case with an assessed card: has it one of a turn, one of the dialogue, are all ok."""
    local = pl.col("local")
    judged = counts.cards.group_by("case").agg(turn=local.any(), dialogue=~local.all(), ok=pl.col("ok").all())
    # an Enum groups faster than a String
    places = ledger.cases.select("case", pl.col("system").cast(pl.Enum(ledger.systems)), "category")
    return judged.join(places, on="case")


def _grouped(frame: pl.DataFrame, columns: tuple[str, ...], **sums: pl.Expr) -> Iterable[tuple[Any, ...]]:
    """The rows of a group-by, groups first; the sums are integers."""
    return frame.group_by(columns).agg(**sums).iter_rows()


def _means(rows: Iterable[tuple[Key, int | Fraction, int]]) -> Means:
    """From rows of key, sum and number of values: the mean of each key that has a value."""
    total: dict[Key, int | Fraction] = {}
    number = Counter[Key]()
    for key, value, n in rows:
        total[key] = total.get(key, 0) + value
        number[key] += n
    return {key: Fraction(value) / number[key] for key, value in total.items()}


def _acceptance(counts: Counts, cases: pl.DataFrame) -> Means:
    """Strict rates: ("case", system), ("case", system, category) and ("dialogue", system)."""
    passed = {"ok": pl.col("ok").sum(), "n": pl.len()}
    rows: list[tuple[Key, int, int]] = []
    for system, category, ok, n in _grouped(cases, ("system", "category"), **passed):
        rows += [(("case", system), ok, n), (("case", system, category), ok, n)]
    dialogues = counts.cards.filter(~pl.col("local")).join(cases.select("case", "system"), on="case")
    rows += [(("dialogue", system), ok, n) for system, ok, n in _grouped(dialogues, ("system",), **passed)]
    return _means(rows)


def _turn_acceptance(counts: Counts, cases: pl.DataFrame) -> Means:
    """(system,): the mean over cases of the share of the case's turns that pass."""
    turns = counts.cards.filter("local").join(cases.select("case", "system"), on="case")
    groups = _grouped(turns, ("system", "turns"), ok=pl.col("ok").sum(), cards=pl.len())
    return _means(((system,), Fraction(ok, turns), cards // turns) for system, turns, ok, cards in groups)


def _dimensions(counts: Counts, cases: pl.DataFrame) -> tuple[Means, Means]:
    """(system, dimension): the mean of q and the strict rate over all cards with the dimension assessed."""
    groups = list(
        _grouped(
            counts.shares.join(cases.select("case", "system"), on="case"),
            ("system", "dimension", "assessed"),
            passed=pl.col("passed").sum(),
            ok=(pl.col("passed") == pl.col("assessed")).sum(),
            cards=pl.len(),
        )
    )
    q = _means(((s, DIMENSIONS[d]), Fraction(passed, of), cards) for s, d, of, passed, _, cards in groups)
    return q, _means(((s, DIMENSIONS[d]), ok, cards) for s, d, _, _, ok, cards in groups)


def _mean_scores(counts: Counts, cases: pl.DataFrame, weights: dict[str, Fraction]) -> Means:
    """("turn", system), ("dialogue", system): means of S_turn and S_dialogue over the cases that have one;
    ("score", system), ("score", system, category): means of S over the cases that have both.

    A dimension's passed boxes add w / (W * assessed * turns) each to the sum over cases of S_turn, W being
    the summed weight of the card's assessed dimensions (the bits of its mask). Passed boxes are summed over
    all dimensions of cards that share these numbers; the sums are finished over one common denominator.
    """
    whole = lcm(*(w.denominator for w in weights.values()))
    w = [int(weights[d] * whole) for d in DIMENSIONS]
    total_weight = {0: 0}
    for i, weight in enumerate(w):
        total_weight |= {mask | 1 << i: total + weight for mask, total in total_weight.items()}

    both = pl.col("turn") & pl.col("dialogue")
    shares = counts.shares.join(cases.select("case", "system", "category", both=both), on="case")
    columns = ("system", "category", "both", "local", "turns", "mask", "dimension", "assessed")
    groups = list(_grouped(shares, columns, passed=pl.col("passed").sum()))
    kinds = {group[4:8] for group in groups}
    unit = lcm(*(turns * total_weight[mask] * assessed for turns, mask, _, assessed in kinds))
    value = {
        (turns, mask, d, assessed): w[d] * (unit // (turns * total_weight[mask] * assessed))
        for turns, mask, d, assessed in kinds
    }
    sums = Counter[tuple[str, str, bool, bool]]()  # in units of 1/unit
    for group in groups:
        sums[group[:4]] += group[8] * value[group[4:8]]

    # sums come with 0 cases and numbers of cases with a sum of 0: _means adds up both
    rows: list[tuple[Key, int, int]] = []
    for (system, category, scored, local), s in sums.items():
        rows.append((("turn" if local else "dialogue", system), s, 0))
        rows += [(("score", system), 50 * s, 0), (("score", system, category), 50 * s, 0)] * scored
    flags = ("system", "category", "turn", "dialogue")
    for system, category, turn, dialogue, n in _grouped(cases, flags, n=pl.len()):
        rows += [(("turn", system), 0, n)] * turn + [(("dialogue", system), 0, n)] * dialogue
        rows += [(("score", system), 0, n), (("score", system, category), 0, n)] * (turn and dialogue)
    return {key: mean / unit for key, mean in _means(rows).items()}
