"""What can be said of the filter and the reward without running them: the steady filter, and where more score earns less."""

import math
from dataclasses import dataclass

import numpy as np

from anthrolab.training.reward.batch import Dimensions, Floats
from anthrolab.training.reward.reward import UNKNOWN, adaptive_weights
from anthrolab.training.reward.settings import PAPER, RewardSettings


@dataclass(frozen=True)
class Steady:
    """The filter after many batches. gain K and variance P (after a batch) no longer change; `time_constant`: steps until
    1 - 1/e of a sudden change is followed; `lag`: steps that theta after a batch is behind a steady rise (the rewards of a
    batch use the theta before it, which is one step further behind); `noise_kept`: the share of a batch mean's random error
    (as a standard deviation) that is left in theta."""

    gain: float
    P: float
    time_constant: float
    lag: float
    noise_kept: float


def steady(settings: RewardSettings = PAPER, noise: float | None = None) -> Steady:
    """Where P+ = (1 - K)(P + Q), K = (P + Q) / (P + Q + R) comes to rest, R = `noise`, or R_floor.

    With M = P + Q: M^2 - Q M - Q R = 0, K = M / (M + R), P = K R. With Q = 0 the filter stops moving.

    >>> s = steady()
    >>> round(s.gain, 4), round(s.P, 5), round(s.time_constant, 2), round(s.lag, 2), round(s.noise_kept, 3)
    (0.181, 0.00905, 5.01, 4.52, 0.315)
    """
    q, r = settings.Q, settings.R_floor if noise is None else noise
    before = (q + math.sqrt(q * q + 4 * q * r)) / 2
    gain = before / (before + r)
    if gain == 0:
        return Steady(0.0, 0.0, math.inf, math.inf, 0.0)
    return Steady(gain, gain * r, -1 / math.log1p(-gain), (1 - gain) / gain, math.sqrt(gain / (2 - gain)))


def reward_slopes(
    scores: Floats, theta: Floats, dimensions: Dimensions, settings: RewardSettings = PAPER
) -> tuple[Floats, Floats]:
    """How R_CDT-ZPD and the final R change with each score s_k alone, (n, K) each; pass indicators do not change.

    With alpha the adaptive weights of a group and M = sum_k alpha_k s_k:
    dM / ds_k = alpha_k (1 - (s_k - theta_k)(s_k - M) / sigma^2), because omega moves weight as the score moves. So more
    score in k earns LESS adaptive reward where (s_k - theta_k)(s_k - M) > sigma^2: far above (or far below) both the
    estimate and the group's mean. nan where a dimension was not assessed.
    """
    alpha = adaptive_weights(scores, theta, dimensions, settings)
    known = np.where(np.isnan(theta), UNKNOWN, theta)
    matched = settings.ablation in ("full", "static", "zpd_only")
    adaptive, legacy = np.empty(scores.shape), np.empty(scores.shape)
    weights = np.where(np.isnan(scores), np.nan, dimensions.shares)
    for group, share in zip(dimensions.groups, (settings.local, settings.holistic), strict=True):
        s, a = scores[:, group], alpha[:, group]
        mean = np.nansum(a * s, axis=1, keepdims=True)
        turn = (s - known[group]) * (s - mean) / settings.sigma**2 if matched else 0.0
        rho = weights[:, group]
        adaptive[:, group] = share * settings.continuous * a * (1 - turn)
        legacy[:, group] = share * settings.continuous * rho / np.nansum(rho, axis=1, keepdims=True)
    final = legacy if settings.ablation == "legacy" else settings.mix_legacy * legacy + settings.mix_adaptive * adaptive
    return adaptive, final


def least_sigma(dimensions: Dimensions, settings: RewardSettings = PAPER, gap: float = 1.0) -> float:
    """The sigma from which on the final reward never falls when a score rises, as long as the scores of a dialogue differ from the
    estimates, and from each other within a group, by at most `gap` (1: whatever scores and estimates are).

    With m the weighted mean of the group's other scores, s_k - M = (1 - alpha_k)(s_k - m), so the slope of R is at least
    mix_legacy rho_k - mix_adaptive alpha_k ((1 - alpha_k) gap^2 / sigma^2 - 1), rho normalised in the group. The worst alpha
    is (1 - y) / 2, y = sigma^2 / gap^2, which gives (1 - y)^2 <= 4 c y, c = rho_k mix_legacy / mix_adaptive, for the dimension
    with the smallest rho. Always enough; also needed where that alpha can come about (so with the paper's constants).

    >>> from anthrolab.judging.rubric import load_rubric
    >>> round(least_sigma(Dimensions.of(load_rubric())), 3)
    0.652
    """
    if settings.mix_adaptive == 0 or settings.ablation in ("legacy", "deficit_only"):
        return 0.0
    c = float(dimensions.shares.min()) * settings.mix_legacy / settings.mix_adaptive
    return gap * math.sqrt(1 + 2 * c - math.sqrt((1 + 2 * c) ** 2 - 1))
