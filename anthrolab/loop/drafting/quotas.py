"""Quotas: how many cards of each kind a plan has, from weights, by largest remainder."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from anthrolab.cards.statistics import OTHER, PERSONA_PARTS, SCENARIO_PARTS
from anthrolab.errors import AnthrolabError
from anthrolab.yaml_files import read_model, suggest

PERSONA_QUOTAS = ("age band", "gender", "relationship status", "occupation group", "region", "setting")
"""The parts of `cards.statistics.PERSONA_PARTS` that personas are planned by, in the order in which they are given out."""
SCENARIO_QUOTAS = ("category", "horizon", "opener", "remote")
"""The parts of `cards.statistics.SCENARIO_PARTS` that scenarios are planned by."""

Weights = Mapping[str, float]


class QuotaError(AnthrolabError):
    """A quota file with problems (a line for each), or quotas that no people could meet."""


class QuotaFile(BaseModel):
    """The content of a quota file: part -> value -> weight."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    personas: dict[str, dict[str, float]] = {}
    scenarios: dict[str, dict[str, float]] = {}


@dataclass(frozen=True)
class Quotas:
    """Weights by part and value: every part of PERSONA_QUOTAS and SCENARIO_QUOTAS, values in the order of the statistics."""

    personas: Mapping[str, Weights]
    scenarios: Mapping[str, Weights]


def load_quotas(path: Path | None = None) -> Quotas:
    """The default quotas (for scenarios the paper's Table 1), with the parts of a file put in their place.

    YamlError or QuotaError with a line for each thing to mend.
    """
    default = read_model(Path(str(files("anthrolab.loop.drafting") / "quotas.yaml")), QuotaFile)
    given = read_model(path, QuotaFile) if path else QuotaFile()
    problems: list[str] = []
    kinds = (
        ("personas", default.personas, given.personas, PERSONA_QUOTAS, PERSONA_PARTS),
        ("scenarios", default.scenarios, given.scenarios, SCENARIO_QUOTAS, SCENARIO_PARTS),
    )
    found: dict[str, dict[str, Weights]] = {}
    for kind, ours, theirs, parts, known in kinds:
        problems += [f"{path}: {kind}.{p}: is no part{suggest(p, parts)}; write one of {', '.join(parts)}" for p in theirs if p not in parts]
        merged = {part: theirs.get(part, ours[part]) for part in parts}
        problems += [f"{path}: {kind}.{line}" for part in parts for line in _faults(part, merged[part], known[part])]
        found[kind] = {part: {v: merged[part][v] for v in known[part] if merged[part].get(v)} for part in parts}
    if problems:
        raise QuotaError("\n".join(problems))
    return Quotas(found["personas"], found["scenarios"])


def _faults(part: str, weights: Weights, values: Sequence[str]) -> list[str]:
    usable = [v for v in values if v != OTHER]
    lines = [f"{part}.{v}: is no value{suggest(v, usable)}; write one of: {'; '.join(usable)}" for v in weights if v not in usable]
    lines += [f"{part}.{v}: is {w}; give a number of at least 0" for v, w in weights.items() if not (w >= 0 and math.isfinite(w))]
    if not lines and not sum(weights.values()):
        lines.append(f"{part}: has no weight over 0; give one at least")
    return lines


def largest_remainder(
    weights: Weights, total: int, bounds: Mapping[str, tuple[int, int]] | None = None
) -> dict[str, int]:
    """`total` seats in the shares of the weights: whole shares first, the rest by the largest remainder, ties in order.

    bounds: least and most seats of a value (inclusive), where something else limits it. The counts add up exactly;
    ValueError where weights or bounds leave no way.

    >>> largest_remainder({"a": 1, "b": 1, "c": 1}, 4)
    {'a': 2, 'b': 1, 'c': 1}
    """
    limits = {v: (bounds or {}).get(v, (0, total)) for v in weights}
    whole = sum(Fraction(w) for w in weights.values())
    if total < 0 or (not whole and total) or not sum(lo for lo, _ in limits.values()) <= total <= sum(hi for _, hi in limits.values()):
        raise ValueError("no such shares")
    exact = {v: Fraction(w) * total / whole if whole else Fraction(0) for v, w in weights.items()}
    seats = {v: min(max(int(share), limits[v][0]), limits[v][1]) for v, share in exact.items()}
    order = list(weights)
    while (missing := total - sum(seats.values())) != 0:
        step = 1 if missing > 0 else -1
        free = [v for v in order if (seats[v] < limits[v][1] if step > 0 else seats[v] > limits[v][0])]
        chosen = max(free, key=lambda v: (step * (exact[v] - seats[v]), -order.index(v)))
        seats[chosen] += step
    return seats
