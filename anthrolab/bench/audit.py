"""A reading of the paper's own numbers: what its printed tables say when they are laid beside each other.

Every figure is computed here from the published tables, or, where that is said, from the reconstructed
ledger, in which it is invented which cases pass.
"""

from dataclasses import dataclass
from typing import Any

import polars as pl

from anthrolab.bench.ledger import LOCAL_DIMENSIONS
from anthrolab.bench.published import published_counts, published_numbers, reconstructed_ledger
from anthrolab.bench.scores import PAPER_WEIGHTS, case_scores
from anthrolab.bench.stats import compare, mcnemar_range
from anthrolab.intervals import wilson

BEST, BEST_UNTRAINED = "Qwen3.6-27B-SFT+RL (think)", "Gemini-3.5-Flash"
SFT = "Qwen3.6-27B-SFT (think)"
LOCAL_SHARE_OF_SCORE, LOCAL_SHARE_OF_REWARD = 0.5, 0.7
_PRINTED_TO = 0.00005  # half of the last printed place of Tables 7 and 8


@dataclass(frozen=True)
class AuditItem:
    """One finding: a title, a paragraph with the computed figures, and a small frame to print below it."""

    title: str
    finding: str
    frame: pl.DataFrame


def audit(*, seed: int = 0) -> list[AuditItem]:
    """All findings about the published tables; the seed is that of the bootstrap."""
    return [
        turns_or_cases(),
        valid_rates(),
        is_the_lead_real(seed=seed),
        what_rl_changed(),
        score_and_reward(),
    ]


def turns_or_cases() -> AuditItem:
    """Table 8's weighted D columns (pooled turns) against Table 7's Per-turn (mean over cases)."""
    total = sum(PAPER_WEIGHTS[d] for d in LOCAL_DIMENSIONS)
    pooled = pl.sum_horizontal(PAPER_WEIGHTS[d] * pl.col(d) for d in LOCAL_DIMENSIONS) / total
    frame = (
        published_numbers(8)
        .select("Model", pooled.alias("Table 8, weighted"))
        .join(published_numbers(7).select("Model", "Per-turn"), on="Model", maintain_order="left")
        .with_columns(Difference=pl.col("Table 8, weighted") - pl.col("Per-turn"))
    )
    difference = frame["Difference"]
    differ = int((difference.abs() > 2 * _PRINTED_TO).sum())
    higher = int((difference > 2 * _PRINTED_TO).sum())
    first = frame.row(0, named=True)
    return AuditItem(
        "Table 8 and Table 7 average the same turns in two ways",
        f"The weighted mean of {first['Model']}'s D columns in Table 8 is {first['Table 8, weighted']:.4f}, "
        f"but its Per-turn in Table 7 is {first['Per-turn']:.4f}. Table 8 pools all turns (micro), Table 7 "
        "takes the mean of each case first (macro), so that a short dialogue counts as much as a long one. "
        f"The two differ by more than rounding for {differ} of {frame.height} systems; for {higher} the "
        "pooled value is the higher one, that is, their shorter dialogues are, on average, the worse ones.",
        frame.with_columns(pl.exclude("Model").round(4)),
    )


def valid_rates() -> AuditItem:
    """The text's "low valid rates" against the valid counts that the printed digits allow."""
    frame = published_counts().with_columns((100 * pl.col("Valid cases") / pl.col("Cases")).alias("Valid rate, %"))
    rates: list[float] = frame["Valid rate, %"].to_list()
    lowest = frame.filter(pl.col("Valid rate, %") == min(rates))["Model"].to_list()
    return AuditItem(
        "No system has a low valid rate",
        "Section 7 speaks of several models that score high but are often invalid. "
        "The paper prints no valid counts, but its rates fix them: 18.37%, for example, is 18 of 98. The "
        f"lowest valid rate is {min(rates):.0f}% ({' and '.join(lowest)}), and {rates.count(100)} of "
        f"{frame.height} systems have no invalid case at all.",
        frame,
    )


def is_the_lead_real(*, seed: int = 0) -> AuditItem:
    """The headline difference in strict ACC, with Wilson intervals and the paired test."""
    passed = {name: _passed(7, "ACC", name) for name in (BEST, BEST_UNTRAINED)}
    rows = []
    for name, (k, n) in passed.items():
        interval = wilson(k, n)
        assert interval is not None
        ends = {"95% low": round(100 * interval.low, 1), "95% high": round(100 * interval.high, 1)}
        rows.append({"Model": name, "Passed": k, "Of": n, "ACC, %": round(100 * k / n, 2)} | ends)
    (a, n), (b, _) = passed.values()
    possible = mcnemar_range(a, b, n)
    ps: list[float] = possible["p"].to_list()
    below: list[int] = possible.filter(pl.col("p") < 0.05)["both_pass"].to_list()
    paired = compare(case_scores(reconstructed_ledger()), BEST, BEST_UNTRAINED, seed=seed)
    needed = (
        f"It is below 0.05 only if at least {min(below)} of the {b} cases that "
        f"{BEST_UNTRAINED} passes are passed by both"
        if below
        else "It is never below 0.05"
    )
    interval = paired.acc_interval
    assert paired.acc_difference is not None
    assert interval is not None
    return AuditItem(
        f"{a}% against {b}%: the lead in strict ACC is not shown",
        f"On {n} cases each, the 95% Wilson intervals are {rows[0]['95% low']}% to {rows[0]['95% high']}% "
        f"for {BEST} and {rows[1]['95% low']}% to {rows[1]['95% high']}% for {BEST_UNTRAINED}; they "
        "overlap. Both systems ran on the same cases, so the paired test is the right one, but the paper "
        "does not say which cases passed. Over all overlaps that the two counts allow, McNemar's exact p "
        f"goes from {min(ps):.3f} to {max(ps):.3f}. {needed}. In the reconstructed "
        f"ledger, where it is invented which cases pass, {paired.test.only_a} cases are passed by the first "
        f"alone and {paired.test.only_b} by the second alone (p = {paired.test.p:.2f}; difference "
        f"{100 * paired.acc_difference:.1f} points, 95% interval by binding {100 * interval.low:.1f} to "
        f"{100 * interval.high:.1f}): an example of the test, and no evidence.",
        pl.DataFrame(rows),
    )


def what_rl_changed() -> AuditItem:
    """The 27B system before and after RL: what rose, and what fell."""
    columns = {"ACC": 7, "Holistic ACC": 7, "E4": 9}
    turns = [published_numbers(7).filter(pl.col("Model") == name)["Turn ACC"].item() for name in (SFT, BEST)]
    rows: list[dict[str, Any]] = []
    for column, table in columns.items():
        (before, n), (after, _) = (_passed(table, column, name) for name in (SFT, BEST))
        p: list[float] = mcnemar_range(before, after, n)["p"].to_list()
        name = "E4 ACC" if column == "E4" else column
        change = {
            "SFT, %": 100 * before / n,
            "SFT+RL, %": 100 * after / n,
            "Change": 100 * (after - before) / n,
        }
        rows.append({"Rate": name} | change | {"Lowest p": min(p), "Highest p": max(p)})
    frame = pl.DataFrame(rows)
    acc, holistic, e4 = rows
    verdict = "below 0.05 for every overlap" if e4["Highest p"] < 0.05 else "not below 0.05 for every overlap"
    return AuditItem(
        "RL doubled strict ACC while proactivity fell",
        f"From SFT to SFT+RL the strict ACC of the 27B system goes from {acc['SFT, %']:.0f}% to "
        f"{acc['SFT+RL, %']:.0f}% and its Turn ACC from {turns[0]:.2f}% to {turns[1]:.2f}%, while its "
        f"Holistic ACC goes from {holistic['SFT, %']:.0f}% to {holistic['SFT+RL, %']:.0f}% and its E4 "
        f"(proactivity) ACC from {e4['SFT, %']:.0f}% to {e4['SFT+RL, %']:.0f}%, which the paper does not "
        "discuss. McNemar's exact p depends on how many cases both pass. For E4 it lies between "
        f"{e4['Lowest p']:.3f} and {e4['Highest p']:.3f}, that is, {verdict} (but E4 is one of ten "
        "dimensions, and picked here because it fell). For Holistic ACC it lies between "
        f"{holistic['Lowest p']:.2f} and {holistic['Highest p']:.2f}. The gain is in the turns, where the "
        f"reward has {LOCAL_SHARE_OF_REWARD} of its weight.",
        frame.with_columns(pl.col("Lowest p", "Highest p").round(4)),
    )


def score_and_reward() -> AuditItem:
    """The ranking by Score (half local, half global) against the RL reward's mixture."""

    def mixed(local: float) -> pl.Expr:
        return 100 * (local * pl.col("Per-turn") + (1 - local) * pl.col("Holistic"))

    def rank(column: str) -> pl.Expr:
        return pl.col(column).rank("min", descending=True).cast(pl.Int64)

    frame = (
        published_numbers(7)
        .select("Model", score=mixed(LOCAL_SHARE_OF_SCORE), reward=mixed(LOCAL_SHARE_OF_REWARD))
        .with_columns(score_rank=rank("score"), reward_rank=rank("reward"))
    )
    moved = frame.filter(pl.col("score_rank") != pl.col("reward_rank")).sort("score_rank")
    far = frame.sort((pl.col("score_rank") - pl.col("reward_rank")).abs(), descending=True).row(0, named=True)
    top = frame.filter(pl.col("score_rank") == 1).row(0, named=True)
    return AuditItem(
        "Trained on one mixture, ranked by another",
        "Score mixes the local and the global score half and half; the RL reward mixes them "
        f"{LOCAL_SHARE_OF_REWARD} to {1 - LOCAL_SHARE_OF_REWARD:.1f}. With the reward's mixture on the "
        f"published Per-turn and Holistic, {moved.height} of {frame.height} systems change their rank; "
        f"{far['Model']} moves farthest, from {far['score_rank']} to {far['reward_rank']}. {top['Model']} "
        "is first by Score and "
        f"{'stays first' if top['reward_rank'] == 1 else 'is number ' + str(top['reward_rank'])} by the "
        "reward's mixture.",
        frame.select(
            "Model",
            pl.col("score").round(2).alias("Score 0.5/0.5"),
            pl.col("score_rank").alias("Rank"),
            pl.col("reward").round(2).alias("Reward mixture 0.7/0.3"),
            pl.col("reward_rank").alias("Its rank"),
        ),
    )


def _passed(table: int, column: str, system: str) -> tuple[int, int]:
    """The count behind a printed rate, and the valid cases it is of."""
    of = published_counts().filter(pl.col("Model") == system)["Valid cases"].item()
    rate = published_numbers(table).filter(pl.col("Model") == system)[column].item()
    return round(rate * of / 100), of
