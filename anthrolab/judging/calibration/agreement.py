"""Agreement among raters, and of a judge with them: Krippendorff's alpha, Cohen's kappa, majorities. Pure."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anthrolab.intervals import CONFIDENCE, Interval, Rate

RESAMPLES = 2000

Values = Sequence[Hashable]
"""What raters said of one unit; a rater who said nothing is left out."""


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's alpha. value: None where it is not defined (nothing rated twice, or all ratings equal).

    units, ratings: those that count, rated at least twice. interval: by bootstrap over dialogues, None if fewer than two.
    """

    value: float | None
    units: int
    ratings: int
    interval: Interval | None


@dataclass(frozen=True)
class Kappa:
    """Cohen's kappa of two raters; None where it is not defined (nothing rated by both, or both say the same one thing only).

    agree: equal ratings, of those by both. failed_a, failed_b: how often each says failed. Where almost nothing (or
    almost all) fails, kappa is low whatever the agreement (Feinstein and Cicchetti 1990): the four are read together.
    A rater who gives only one kind of answer makes it 0 (or not defined) whatever the other says: see `one_kind`.
    interval: by bootstrap over clusters, None where it was not asked for or cannot be had.
    """

    value: float | None
    agree: Rate
    failed_a: Rate
    failed_b: Rate
    interval: Interval | None = None

    @property
    def one_kind(self) -> tuple[bool | None, bool | None]:
        """For each rater the one answer (passed) that it always gives; None if it gives both kinds, or none."""
        a, b = (None if 0 < f.part < f.of or not f.of else f.part == 0 for f in (self.failed_a, self.failed_b))
        return a, b

    @property
    def both_passed(self) -> Rate:
        """Things that both say passed, of those rated by both."""
        one_passed = (self.agree.of - self.failed_a.part) + (self.agree.of - self.failed_b.part)
        return Rate((one_passed + self.agree.part - self.agree.of) // 2, self.agree.of)


def alpha(units: Iterable[Values]) -> float | None:
    """Krippendorff's alpha for nominal data with missing values (Krippendorff 2011); None where it is not defined.

    >>> alpha([("a", "a"), ("b", "b"), ("a", "b")])
    0.4444444444444444
    """
    disagreement, counts = _sums(units)
    return _alpha(disagreement, list(counts.values()))


def alpha_by_dialogue(dialogues: Sequence[Sequence[Values]], *, seed: int, resamples: int = RESAMPLES) -> Alpha:
    """Alpha over the units of all dialogues, with a 95% bootstrap interval that resamples whole dialogues.

    The units of one dialogue hang together, so they are drawn together; see `bootstrap_interval` on resamples in which
    alpha is not defined.
    """
    sums = [_sums(units) for units in dialogues]
    sums = [s for s in sums if s[1]]
    categories = sorted({c for _, counts in sums for c in counts}, key=repr)
    disagreements = np.array([d for d, _ in sums], dtype=np.float64)
    counts = np.array([[c[name] for name in categories] for _, c in sums], dtype=np.float64).reshape(len(sums), len(categories))
    paired = [v for units in dialogues for v in units if len(v) > 1]
    value = _alpha(float(disagreements.sum()), counts.sum(axis=0).tolist())
    interval = None
    if len(sums) > 1 and value is not None:
        draws = np.random.default_rng(seed).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), resamples)
        drawn = [_alpha(float(d), c) for d, c in zip(draws @ disagreements, (draws @ counts).tolist(), strict=True)]
        interval = bootstrap_interval(drawn)
    return Alpha(value, len(paired), sum(map(len, paired)), interval)


def kappa(passed: Iterable[tuple[bool, bool]]) -> Kappa:
    """Cohen's kappa of pairs (passed by a, passed by b)."""
    n, agree, failed_a, failed_b = _tally(passed)
    return Kappa(_kappa(n, agree, failed_a, failed_b), Rate(agree, n), Rate(failed_a, n), Rate(failed_b, n))


def kappa_by_cluster(
    clusters: Sequence[Sequence[tuple[bool, bool]]], *, seed: int, resamples: int = RESAMPLES
) -> Kappa:
    """Kappa over the pairs of all clusters (bindings), with a 95% bootstrap interval that resamples whole clusters.

    What stands in one cluster hangs together, so it is drawn together. A resample in which a rater gives only one kind of
    answer says nothing about kappa (see `bootstrap_interval`). No interval either where that is so of all pairs, or where
    fewer than two clusters have one.
    """
    whole = kappa(pair for pairs in clusters for pair in pairs)
    tallies = np.array([t for pairs in clusters if (t := _tally(pairs))[0]], dtype=np.int64).reshape(-1, 4)
    if whole.one_kind != (None, None) or len(tallies) < 2:
        return whole
    draws = np.random.default_rng(seed).multinomial(len(tallies), np.full(len(tallies), 1 / len(tallies)), resamples)
    drawn = [
        _kappa(n, agree, failed_a, failed_b) if 0 < failed_a < n and 0 < failed_b < n else None
        for n, agree, failed_a, failed_b in (draws @ tallies).tolist()
    ]
    return replace(whole, interval=bootstrap_interval(drawn))


def bootstrap_interval(drawn: Sequence[float | None]) -> Interval | None:
    """The 95% percentile interval of the values of resamples; None of them says nothing.

    Those are left out where they are at most one in twenty. Where they are more, there is no interval: what varies (a rare
    failure) stands in so few clusters that its spread is not known, and the rest of the resamples would look more alike
    than they are.
    """
    known = [value for value in drawn if value is not None]
    if len(known) < CONFIDENCE * len(drawn):
        return None
    low, high = np.quantile(known, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(low), float(high))


def majority(values: Iterable[bool]) -> bool | None:
    """What more than half say; None for a tie or nothing.

    >>> majority([True, False, True]), majority([True, False])
    (True, None)
    """
    counts = Counter(values)
    return None if counts[True] == counts[False] else counts[True] > counts[False]


def _tally(passed: Iterable[tuple[bool, bool]]) -> tuple[int, int, int, int]:
    """Pairs, equal pairs, failed by a, failed by b."""
    pairs = list(passed)
    return len(pairs), sum(a == b for a, b in pairs), sum(not a for a, _ in pairs), sum(not b for _, b in pairs)


def _kappa(n: int, agree: int, failed_a: int, failed_b: int) -> float | None:
    chance = failed_a * failed_b + (n - failed_a) * (n - failed_b)  # times n squared, so that all is exact
    return (n * agree - chance) / (n * n - chance) if n * n != chance else None


def _sums(units: Iterable[Values]) -> tuple[float, Counter[Hashable]]:
    """What alpha needs, both parts additive: pairs of unequal ratings of a unit over its other raters, and the ratings
    by value. A unit with fewer than two ratings counts for nothing."""
    disagreement, counts = 0.0, Counter[Hashable]()
    for values in units:
        if len(values) > 1:
            own = Counter(values)
            disagreement += (len(values) ** 2 - sum(n * n for n in own.values())) / (len(values) - 1)
            counts += own
    return disagreement, counts


def _alpha(disagreement: float, counts: Sequence[float]) -> float | None:
    n = sum(counts)
    expected = n * n - sum(c * c for c in counts)
    return 1 - (n - 1) * disagreement / expected if expected else None
