"""What a judge said of a batch of dialogues, as arrays: one row a dialogue, one column a dimension."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anthrolab.judging.rubric import Rubric
from anthrolab.training.settings import TrainingError

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Dimensions:
    """The K columns: ids in the rubric's order; `local` (K,) True for those scored turn by turn (the paper's K_T), False for
    those of the whole dialogue (K_H); `rho` (K,) their weights, positive."""

    ids: tuple[str, ...]
    local: Flags
    rho: Floats

    @classmethod
    def of(cls, rubric: Rubric, rho: Mapping[str, float] | None = None) -> "Dimensions":
        """The dimensions of a rubric, with its weights or those given; TrainingError if these are for other dimensions."""
        ids = tuple(d.id for d in rubric.dimensions)
        weights = {d.id: d.weight for d in rubric.dimensions} if rho is None else dict(rho)
        if set(weights) != set(ids):
            raise TrainingError(f"rho: holds weights for {', '.join(weights)}; the rubric has {', '.join(ids)}")
        if wrong := [i for i, weight in weights.items() if not 0 < weight < float("inf")]:
            raise TrainingError(f"rho.{wrong[0]} is {weights[wrong[0]]}; give it a positive number")
        local = np.array([d.scope == "turn" for d in rubric.dimensions])
        return cls(ids, local, np.array([float(weights[i]) for i in ids]))

    @property
    def groups(self) -> tuple[Flags, Flags]:
        """The columns of the local and of the holistic group."""
        return self.local, ~self.local

    @property
    def shares(self) -> Floats:
        """rho divided by its sum within the group (K,): the rubric's weights where everything was assessed."""
        found = np.zeros(len(self.ids))
        for group in self.groups:
            weights = self.rho[group] / self.rho[group].max(initial=0)  # the sum of great weights would be infinite
            found[group] = weights / weights.sum()
        return found

    def row(self, values: Mapping[str, float | None], empty: float = np.nan) -> Floats:
        """Values by dimension as a row (K,); one that is None or missing is `empty`."""
        found = (values.get(i) for i in self.ids)
        return np.array([empty if v is None else float(v) for v in found])


@dataclass(frozen=True)
class Batch:
    """n dialogues. `scores` (n, K): s_k in 0..1, nan where nothing was assessed; `passed` (n, K): a_k, 1.0 or 0.0, nan where
    nothing was assessed; `valid` (n,): False where the gate found a fatal fault (then scores and passed do not count, and are
    taken as 0); `judged` (n,): False where the judge failed, so that nothing is known."""

    scores: Floats
    passed: Floats
    valid: Flags
    judged: Flags

    def __post_init__(self) -> None:
        n, k = self.scores.shape
        if self.passed.shape != (n, k) or self.valid.shape != (n,) or self.judged.shape != (n,):
            raise ValueError("scores and passed are (n, K), valid and judged (n,)")
        if np.any((self.scores < 0) | (self.scores > 1)):
            raise ValueError("scores lie between 0 and 1")
        counted = self.valid & self.judged
        assessed, flags = ~np.isnan(self.scores[counted]), self.passed[counted]
        if np.any(np.isnan(flags) == assessed) or np.any((flags != 0) & (flags != 1) & assessed):
            raise ValueError("a dimension with a score is passed (1.0) or not (0.0), and one without has nan in both")

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def of(cls, rows: Sequence[tuple[Floats, Floats, bool, bool]], width: int) -> "Batch":
        """From one (scores, passed, valid, judged) a dialogue; `width`: the number of dimensions."""
        empty = np.empty((0, width))
        return cls(
            np.array([r[0] for r in rows]) if rows else empty, np.array([r[1] for r in rows]) if rows else empty,
            np.array([r[2] for r in rows], dtype=bool), np.array([r[3] for r in rows], dtype=bool),
        )  # fmt: skip

    def take(self, rows: Flags | npt.NDArray[np.intp]) -> "Batch":
        """Some of the dialogues."""
        return Batch(self.scores[rows], self.passed[rows], self.valid[rows], self.judged[rows])
