"""The capability filter and the reward once more, slowly: plain loops that follow the paper's equations (section 4.6) word by
word, without numpy. The product's fast version is tested against it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from anthrolab.training.reward.settings import RewardSettings

Values = dict[str, float | None]


@dataclass(frozen=True)
class Row:
    """One dialogue; a dimension that was not assessed has None in both."""

    valid: bool
    judged: bool
    scores: Values
    passed: Values


@dataclass(frozen=True)
class LiteralReward:
    """None: there is none."""

    reward: float | None
    legacy: float | None
    adaptive: float | None
    alpha: Values


def reward_of(row: Row, theta: Values, rho: dict[str, float], local: Sequence[str], s: RewardSettings) -> LiteralReward:
    nothing: Values = dict.fromkeys(rho)
    if not row.judged:
        return LiteralReward(None, None, None, nothing)
    if not row.valid:
        return LiteralReward(0.0, 0.0, 0.0, nothing)
    alpha: Values = dict(nothing)
    legacy = adaptive = 0.0
    for group, share in (
        ([k for k in rho if k in local], s.local),
        ([k for k in rho if k not in local], s.holistic),
    ):
        assessed = [k for k in group if row.scores[k] is not None]
        if not assessed:
            return LiteralReward(None, None, None, nothing)
        raw = {}
        for k in assessed:
            score, at = row.scores[k], theta[k]
            assert score is not None
            at = 0.5 if at is None else at
            d = s.epsilon + (1 - at) ** s.p
            omega = math.exp(-((score - at) ** 2) / (2 * s.sigma**2))
            if s.ablation in ("legacy", "zpd_only"):
                d = 1.0
            if s.ablation in ("legacy", "deficit_only"):
                omega = 1.0
            raw[k] = rho[k] * d * omega
        total, rubric = sum(raw.values()), sum(rho[k] for k in assessed)
        by_alpha = by_rho = 0.0
        strict = 1.0
        for k in assessed:
            score, flag = row.scores[k], row.passed[k]
            assert score is not None and flag is not None
            alpha[k] = raw[k] / total
            by_alpha += raw[k] / total * score
            by_rho += rho[k] / rubric * score
            strict *= flag
        legacy += share * (s.continuous * by_rho + s.strict * strict)
        adaptive += share * (s.continuous * by_alpha + s.strict * strict)
    reward = legacy if s.ablation == "legacy" else s.mix_legacy * legacy + s.mix_adaptive * adaptive
    return LiteralReward(reward, legacy, adaptive, alpha)


@dataclass(frozen=True)
class LiteralState:
    theta: Values
    P: dict[str, float]


def observed(state: LiteralState, rows: Sequence[Row], s: RewardSettings) -> LiteralState:
    """The state after a batch."""
    if s.ablation == "static":
        return state
    theta, variance = dict(state.theta), dict(state.P)
    for k, before in state.theta.items():
        tracked = before is not None or any(r.judged and r.valid and r.scores[k] is not None for r in rows)
        seen: list[float] = []
        for r in rows:
            score = r.scores[k] if r.valid else 0.0
            if r.judged and tracked and score is not None:
                seen.append(score)
        if not seen:
            continue
        mean = sum(seen) / len(seen)
        if before is None:
            theta[k] = mean
            continue
        spread = sum((x - mean) ** 2 for x in seen) / (len(seen) - 1) if len(seen) > 1 else 0.0
        noise = max(s.R_floor, spread / len(seen))
        prior = state.P[k] + s.Q
        gain = prior / (prior + noise)
        theta[k] = min(1.0, max(0.0, before + gain * (mean - before)))
        variance[k] = (1 - gain) * prior
    return LiteralState(theta, variance)
