"""How sure a rate, a mean score or a difference is. Input is `scores.case_scores` or plain arrays.

The two cases of a binding are correlated, and so are the samples of a case. The bootstrap therefore resamples
whole bindings, with all cases and samples in them. The Wilson interval and McNemar's test treat cases as
independent and are a little too sure of themselves where that fails: their place is beside the bootstrap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anthrolab.errors import AnthrolabError
from anthrolab.intervals import CONFIDENCE, Interval, wilson

RESAMPLES = 10_000


@dataclass(frozen=True)
class McNemar:
    """McNemar's exact test of paired yes/no outcomes: discordant pairs and two-sided p-value (0..1)."""

    only_a: int
    only_b: int
    p: float


@dataclass(frozen=True)
class PairedComparison:
    """Two systems on the same cases; differences are `a` minus `b` and None where nothing is comparable.

    compared, not_comparable: cases planned for both systems that are valid in both, and that are not.
    both_pass, neither_passes, test: strict acceptance over the compared cases, one pair per case.
    acc_difference (in 0..1) and score_difference (in score points, -100..100), with intervals by binding.
    """

    a: str
    b: str
    compared: int
    not_comparable: int
    both_pass: int
    neither_passes: int
    test: McNemar
    acc_difference: float | None
    acc_interval: Interval | None
    score_difference: float | None
    score_interval: Interval | None


def bootstrap_mean(
    values: npt.ArrayLike,
    clusters: Sequence[Any] | pl.Series,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """Percentile interval of the mean of `values`, resampling whole clusters (bindings) with replacement.

    values: n floats, scores or 0/1 outcomes (then it is the interval of a rate); clusters: n labels, one per
    value. A resample draws as many clusters as there are; its mean is over all values in the clusters drawn.
    None where there are fewer than two clusters: one cluster says nothing about how clusters vary.
    """
    numbers = np.asarray(values, dtype=np.float64)
    _, place = np.unique(np.asarray(clusters), return_inverse=True)
    sizes = np.bincount(place)
    if len(sizes) < 2:
        return None
    # about the mean, so that equal values give an interval of exactly no width
    mean = numbers[0] if np.all(numbers == numbers[:1]) else numbers.mean()
    sums = np.bincount(place, weights=numbers - mean)
    draws = np.random.default_rng(seed).multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), resamples)
    means = mean + (draws @ sums) / (draws @ sizes)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def mcnemar(only_a: int, only_b: int) -> McNemar:
    """The exact (binomial) test on the pairs that only one system passes; p = 1 where there are none."""
    from scipy.stats import binomtest

    n = only_a + only_b
    return McNemar(only_a, only_b, float(binomtest(only_a, n).pvalue) if n else 1.0)


def system_intervals(
    scores: pl.DataFrame, *, seed: int, resamples: int = RESAMPLES, confidence: float = CONFIDENCE
) -> pl.DataFrame:
    """Strict ACC (0..1) and score (0..100) of each system with intervals, from `case_scores` rows.

    Columns: system; n_acc, acc, acc_low, acc_high (Wilson over cases), acc_binding_low, acc_binding_high
    (bootstrap by binding); n_score, score, score_low, score_high (bootstrap by binding). Null where there is
    no value, and the bootstrap's ends where there is only one binding. Every sample of a case counts as a
    case in the rates and means, and stays with its binding in the bootstrap; the Wilson interval, which takes
    them as independent, is then too narrow.
    """
    rows = []
    options: dict[str, Any] = {"seed": seed, "resamples": resamples, "confidence": confidence}
    for (system,), cases in _clustered(scores).group_by("system", maintain_order=True):
        judged, scored = cases.drop_nulls("passed"), cases.drop_nulls("score")
        passed = int(judged["passed"].sum())
        acc = wilson(passed, judged.height, confidence)
        acc_binding = bootstrap_mean(judged["passed"], judged["cluster"], **options)
        score = bootstrap_mean(scored["score"], scored["cluster"], **options)
        rows.append(
            {
                "system": system,
                "n_acc": judged.height,
                "acc": passed / judged.height if judged.height else None,
            }
            | _ends("acc", acc)
            | _ends("acc_binding", acc_binding)
            | {"n_score": scored.height, "score": scored["score"].mean()}
            | _ends("score", score)
        )
    # the types are named because a column may be all null
    floats = pl.exclude("system", "n_acc", "n_score").cast(pl.Float64)
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(floats)


def compare(
    scores: pl.DataFrame,
    a: str,
    b: str,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> PairedComparison:
    """Compare two systems of `case_scores` rows on the cases planned for both (same case_id).

    A case is compared where it is valid in both. Of several samples, McNemar's test takes one pair per case
    (the lowest sample number that both systems planned), since pairs must be independent; the differences
    pair the mean of a case's samples in `a` with that in `b`, over the samples that have a value.
    The difference of the scores is over the compared cases that have a score in both systems.
    """
    for system in (a, b):
        if system not in scores["system"]:
            known = ", ".join(scores["system"].unique(maintain_order=True))
            raise AnthrolabError(f"no system {system!r} in this ledger; it has: {known}")
    cases = _clustered(scores)
    one, two = (cases.filter(pl.col("system") == system) for system in (a, b))
    pairs = one.join(two.drop("system", "cluster"), on=["case_id", "sample"], suffix="_b", maintain_order="left")
    first = pairs.sort("sample", maintain_order=True).unique("case_id", keep="first", maintain_order=True)
    both_valid = (pl.col("valid") & pl.col("valid_b")).fill_null(False)
    outcomes = first.filter(both_valid).drop_nulls(["passed", "passed_b"])
    passed_a, passed_b = outcomes["passed"], outcomes["passed_b"]
    options: dict[str, Any] = {"seed": seed, "resamples": resamples, "confidence": confidence}
    acc_difference, acc_interval = _difference(one, two, "passed", options)
    score_difference, score_interval = _difference(one, two, "score", options)
    return PairedComparison(
        a=a,
        b=b,
        compared=outcomes.height,
        not_comparable=first.height - outcomes.height,
        both_pass=int((passed_a & passed_b).sum()),
        neither_passes=int((~passed_a & ~passed_b).sum()),
        test=mcnemar(int((passed_a & ~passed_b).sum()), int((~passed_a & passed_b).sum())),
        acc_difference=acc_difference,
        acc_interval=acc_interval,
        score_difference=score_difference,
        score_interval=score_interval,
    )


def mcnemar_range(passed_a: int, passed_b: int, of: int) -> pl.DataFrame:
    """McNemar's test for every overlap that two pass counts over the same `of` cases allow.

    One row per number of cases that both pass: both_pass, only_a, only_b, p. It says what a paired test could
    find where only the two counts are known.
    """
    overlaps = range(max(0, passed_a + passed_b - of), min(passed_a, passed_b) + 1)
    tests = [(both, mcnemar(passed_a - both, passed_b - both)) for both in overlaps]
    rows = [{"both_pass": both, "only_a": t.only_a, "only_b": t.only_b, "p": t.p} for both, t in tests]
    return pl.DataFrame(rows)


def _difference(
    one: pl.DataFrame, two: pl.DataFrame, column: str, options: dict[str, Any]
) -> tuple[float | None, Interval | None]:
    """Mean over cases of the difference of the per-case means, and its interval by binding."""

    def means(cases: pl.DataFrame) -> pl.DataFrame:
        valued = cases.drop_nulls(column)
        return valued.group_by("case_id", maintain_order=True).agg(
            pl.col("cluster").first(), pl.col(column).cast(pl.Float64).mean()
        )

    pairs = means(one).join(means(two), on="case_id", suffix="_b", maintain_order="left")
    if pairs.is_empty():
        return None, None
    differences = (pairs[column] - pairs[f"{column}_b"]).to_numpy()
    return float(differences.mean()), bootstrap_mean(differences, pairs["cluster"], **options)


def _clustered(scores: pl.DataFrame) -> pl.DataFrame:
    """With the cluster of each row: its binding, or the case itself where no binding is known."""
    return scores.with_columns(cluster=pl.coalesce("binding", "case_id"))


def _ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    low, high = (interval.low, interval.high) if interval else (None, None)
    return {f"{name}_low": low, f"{name}_high": high}
