"""Two arms on the same cases: differences with intervals and exact tests, resampled and flipped by binding. Pure.

The pairs are the cases; the two cases of a binding go together. One question is asked, that of the score; what else is
compared is corrected for being many.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import numpy.typing as npt

from anthrolab.bench.stats import bootstrap_mean
from anthrolab.loop.filter import Filtered, Status
from anthrolab.runtime.dialogue import Record

LEVEL = 0.05
LEAST_BINDINGS = 6
"""With fewer bindings no outcome at all gives a p value below LEVEL: the least is 2 / 2^bindings."""

EXACT, DRAWS = 14, 20_000
"""Up to so many bindings that differ every choice of signs is tried; of more, so many are drawn."""

_BINARY = ("accepted", "valid")

Verdict = Literal["better", "worse", "mixed", "not told apart", "too few bindings", "nothing to compare"]


class Quantity(Record):
    """One thing compared, after minus before. score: points, 0 to 100, of cases valid in both; accepted (as the loop's
    filter says; undecided ones are left out) and valid: shares, 0 to 1; a dimension: the share of its assessed checkboxes
    that pass, of cases valid in both.

    before, after: means over the compared `cases`, which are of so many `bindings`. low, high: 95% bootstrap interval of the
    difference by binding; null with one binding. p: by `sign_flip_p`. holm: p corrected for all quantities but the score.
    only_before, only_after: cases, of all samples or in part, higher in one arm (accepted and valid only).
    """

    name: str
    cases: int
    bindings: int
    before: float | None = None
    after: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    holm: float | None = None
    only_before: int | None = None
    only_after: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What a dialogue is compared by: values by the name of the quantity; None where there is none."""

    case_id: str
    binding: str
    values: Mapping[str, float | None]


def outcome_of(filtered: Filtered) -> Outcome:
    """What one dialogue is compared by."""
    result = filtered.filter_result
    valid = result.status != "invalid"
    turn, whole = result.turn_score, result.dialogue_score
    decided: dict[Status, float] = {"accepted": 1.0, "rejected": 0.0, "invalid": 0.0}
    values: dict[str, float | None] = {
        "score": 50 * (turn + whole) if valid and turn is not None and whole is not None else None,
        "accepted": decided.get(result.status),
        "valid": float(valid),
    }
    values |= {d: q if valid else None for d, q in result.dimensions.items()}
    binding = filtered.binding or filtered.dialogue_id
    return Outcome(f"{binding}-{filtered.evaluated_role}", binding, values)


def compare(before: Sequence[Outcome], after: Sequence[Outcome], dimensions: Sequence[str], *, seed: int) -> list[Quantity]:
    """All quantities, the score first. A case is compared by the means over its samples that have a value, where it has one
    in both arms."""
    found = [_quantity(name, before, after, seed) for name in ("score", *_BINARY, *dimensions)]
    corrected = holm([q.p for q in found[1:]])
    return [found[0], *(q.model_copy(update={"holm": p}) for q, p in zip(found[1:], corrected, strict=True))]


def sign_flip_p(differences: npt.ArrayLike, clusters: Sequence[str], *, seed: int = 0) -> float:
    """Two-sided p (0 to 1) of paired differences whose mean is 0: the share of all choices of a sign for each cluster
    (binding) whose sum is as far from 0 as the one seen. Exact up to EXACT clusters that differ, else by DRAWS draws."""
    _, place = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.bincount(place, weights=np.asarray(differences, dtype=np.float64))
    sums = sums[np.abs(sums) > 1e-12]  # one that does not differ has no sign
    if not len(sums):
        return 1.0
    seen = abs(sums.sum()) * (1 - 1e-9)  # sums of the same numbers in another order count as equal
    if len(sums) <= EXACT:
        signs = np.array(list(product((-1.0, 1.0), repeat=len(sums))))
        return float((np.abs(signs @ sums) >= seen).mean())
    drawn = np.random.default_rng(seed).choice((-1.0, 1.0), (DRAWS, len(sums)))
    return float((1 + (np.abs(drawn @ sums) >= seen).sum()) / (1 + DRAWS))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction of some p values for being many; None stays None and does not count."""
    order = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, i) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - rank)))
        corrected[i] = highest
    return corrected


def verdict_of(score: Quantity, valid: Quantity | None = None) -> Verdict:
    """What the score says: better or worse only where it can be told from no difference.

    A score is over the cases that are valid in both arms, so a higher one is no better where fewer are valid: mixed.
    """
    if score.difference is None or score.p is None:
        return "nothing to compare"
    if score.bindings < LEAST_BINDINGS:
        return "too few bindings"
    if score.p >= LEVEL:
        return "not told apart"
    if score.difference < 0:
        return "worse"
    return "mixed" if valid is not None and (valid.difference or 0) < 0 else "better"


def sentences(quantities: Sequence[Quantity], verdict: Verdict, counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What can be said of a comparison, and what cannot."""
    score, others = quantities[0], quantities[1:]
    said = []
    if score.difference is not None and score.p is not None:
        ends = f", 95% interval {score.low:+.1f} to {score.high:+.1f}" if score.low is not None and score.high is not None else ""
        said.append(
            f"Score after minus before: {score.difference:+.1f} points{ends}, p = {score.p:.3f}; {score.cases} cases of "
            f"{score.bindings} held-back bindings."
        )
    said.append(
        {
            "better": "The new skills gave a higher score, beyond what chance explains at the 5% level.",
            "worse": "The new skills gave a lower score, beyond what chance explains at the 5% level. Consider `anthrolab loop rollback`.",
            "mixed": "The new skills gave a higher score where both arms are valid, and fewer valid chats: that is no improvement that can be claimed.",
            "not told apart": "The two cannot be told apart. That does not say that they are equal: any difference in the interval may be true.",
            "too few bindings": f"With fewer than {LEAST_BINDINGS} bindings no outcome can be told from chance at the 5% level; hold more back.",
            "nothing to compare": "No held-back case has a score in both arms, so nothing can be said.",
        }[verdict]
    )
    tested = [q for q in others if q.p is not None]
    told = [q for q in tested if q.holm is not None and q.holm < LEVEL]
    each = ", ".join(f"{q.name} {q.difference:+.2f}" for q in told)
    said.append(f"Of {len(tested)} other quantities, corrected for being many, {f'these differ: {each}' if told else 'none differs'}.")
    for arm, count in counts.items():
        done = sum(n for status, n in count.items() if status != "planned")
        if done < count["planned"]:
            said.append(f"{arm}: {count['planned'] - done} of {count['planned']} dialogues are not there; they are in no number.")
        if count.get("invalid"):
            said.append(f"{arm}: {count['invalid']} of {done} dialogues are invalid and in no score.")
        if count.get("undecided"):
            said.append(f"{arm}: {count['undecided']} of {done} dialogues have checkboxes without an answer: scores are over the others, and whether they are accepted is not known.")
    return said


def _quantity(name: str, before: Sequence[Outcome], after: Sequence[Outcome], seed: int) -> Quantity:
    one, two = _means(name, before), _means(name, after)
    both = [case for case in one if case in two]
    if not both:
        return Quantity(name=name, cases=0, bindings=0)
    values = np.array([[one[case][1], two[case][1]] for case in both])
    differences, clusters = values[:, 1] - values[:, 0], [one[case][0] for case in both]
    interval = bootstrap_mean(differences, clusters, seed=seed)
    binary = name in _BINARY
    return Quantity(
        name=name, cases=len(both), bindings=len(set(clusters)), before=float(values[:, 0].mean()), after=float(values[:, 1].mean()),
        difference=float(differences.mean()), low=interval.low if interval else None, high=interval.high if interval else None,
        p=sign_flip_p(differences, clusters, seed=seed), only_before=int((differences < 0).sum()) if binary else None,
        only_after=int((differences > 0).sum()) if binary else None,
    )  # fmt: skip


def _means(name: str, outcomes: Iterable[Outcome]) -> dict[str, tuple[str, float]]:
    """Binding and mean over the samples that have a value, of each case that has one."""
    values: dict[str, list[float]] = {}
    bindings = {}
    for outcome in outcomes:
        if (value := outcome.values.get(name)) is not None:
            values.setdefault(outcome.case_id, []).append(value)
            bindings[outcome.case_id] = outcome.binding
    return {case: (bindings[case], sum(found) / len(found)) for case, found in values.items()}
