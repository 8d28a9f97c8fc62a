"""The capability filter: what a policy can do in each dimension, tracked over training (paper section 4.6). Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anthrolab.training.reward.batch import Batch, Dimensions, Floats
from anthrolab.training.reward.settings import PAPER, RewardSettings
from anthrolab.training.settings import TrainingError


@dataclass(frozen=True)
class Seen:
    """What a batch showed, (K,) each: the mean s_bar of the scores, the observation noise R, the gain K, and how many
    dialogues have a score; nan (0 dialogues) where nothing was assessed."""

    mean: Floats
    noise: Floats
    gain: Floats
    count: Floats


@dataclass(frozen=True)
class Capability:
    """theta (K,), 0..1, and its variance P (K,). A dimension that was never assessed has theta nan and is not tracked."""

    ids: tuple[str, ...]
    theta: Floats
    P: Floats

    @classmethod
    def initial(cls, dimensions: Dimensions, scores: Mapping[str, float | None] | None = None, settings: RewardSettings = PAPER) -> "Capability":
        """theta_0 = the policy's score per dimension on the benchmark (0..1; None or missing: not tracked until it is
        assessed), P_0 for all (paper section 4.6)."""
        if other := [i for i in scores or {} if i not in dimensions.ids]:
            raise TrainingError(f"initial capabilities: {other[0]} is no dimension of the rubric, which has {', '.join(dimensions.ids)}; take a run judged under it")
        theta = dimensions.row(scores or {})
        if np.any((theta < 0) | (theta > 1)):
            raise TrainingError("initial capabilities: a score per dimension lies between 0 and 1")
        return cls(dimensions.ids, theta, np.full(len(theta), settings.P0))

    def observe(self, batch: Batch, settings: RewardSettings = PAPER) -> tuple["Capability", Seen]:
        """The estimate after a batch, and what was seen in it. Rewards of the batch are made with the estimate before.

        s_bar = mean of s_k over the batch; R = max(R_floor, unbiased variance of s_k / n), the variance of one dialogue being
        0; K = (P + Q) / (P + Q + R); theta' = theta + K (s_bar - theta), clipped to [0, 1]; P' = (1 - K)(P + Q), the standard
        scalar filter (the paper prints none). An invalid dialogue counts with 0 in every dimension that is tracked or that
        a valid dialogue of the batch has; one whose judge failed does not count. A dimension that nothing was assessed in keeps theta and P;
        one that is assessed for the first time begins at s_bar. With ablation "static" nothing moves.
        """
        use = batch.judged
        scores = np.where(batch.valid[use, None], batch.scores[use], 0.0)
        tracked = ~np.isnan(self.theta) | ~np.isnan(scores[batch.valid[use]]).all(axis=0)
        scores = np.where(tracked, scores, np.nan)
        there = ~np.isnan(scores)
        count = there.sum(axis=0).astype(float)
        some = count > 0
        n = np.where(some, count, 1.0)
        mean = np.where(some, np.where(there, scores, 0.0).sum(axis=0) / n, np.nan)
        spread = np.where(there, (scores - mean) ** 2, 0.0).sum(axis=0)
        variance = np.where(count > 1, spread / np.maximum(count - 1, 1), 0.0)
        noise = np.where(some, np.maximum(settings.R_floor, variance / n), np.nan)
        prior = self.P + settings.Q
        gain = np.where(some, prior / (prior + noise), np.nan)
        seen = Seen(mean, noise, gain, count)
        if settings.ablation == "static":
            return self, seen
        first = np.isnan(self.theta) & some
        before = np.where(first, mean, self.theta)
        theta = np.where(some, np.clip(before + gain * (mean - before), 0.0, 1.0), self.theta)
        variance_after = np.where(some & ~first, (1 - gain) * prior, self.P)
        return Capability(self.ids, theta, variance_after), seen

    def by_dimension(self) -> dict[str, float | None]:
        """theta by dimension; None where it is not tracked."""
        return {i: None if np.isnan(t) else float(t) for i, t in zip(self.ids, self.theta, strict=True)}

    def to_json(self) -> str:
        """The state, exact to the last bit."""
        return json.dumps({"theta": self.by_dimension(), "P": dict(zip(self.ids, map(float, self.P), strict=True))})

    @classmethod
    def from_json(cls, text: str) -> "Capability":
        """The state again; TrainingError if the text holds none."""
        try:
            state: dict[str, Any] = json.loads(text)
            theta, variance = state["theta"], state["P"]
            if list(theta) != list(variance):
                raise ValueError("theta and P are for other dimensions")
            known, widths = [t for t in theta.values() if t is not None], list(variance.values())
            if not all(0 <= t <= 1 for t in known) or not all(0 <= v < float("inf") for v in widths):
                raise ValueError("theta lies between 0 and 1, and P is at least 0")
            return cls(tuple(theta), np.array([np.nan if t is None else float(t) for t in theta.values()]), np.array([float(v) for v in widths]))
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise TrainingError(f"capability state: cannot be read ({e})") from e
