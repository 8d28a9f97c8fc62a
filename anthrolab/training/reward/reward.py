"""From scores to rewards (paper section 4.6): adaptive weights, group rewards, the mix. Pure, a batch at a time."""

from dataclasses import dataclass

import numpy as np

from anthrolab.training.reward.batch import Batch, Dimensions, Flags, Floats
from anthrolab.training.reward.settings import PAPER, RewardSettings

UNKNOWN = 0.5
"""theta of a dimension that was never assessed, where it is assessed for the first time."""


@dataclass(frozen=True)
class Rewards:
    """One row a dialogue. reward, legacy, adaptive (n,): 0..1, 0 for an invalid dialogue, nan where there is none: the judge
    failed, or nothing of a group was assessed. alpha (n, K): the adaptive weights, which add up to 1 in each group; nan where
    a dimension was not assessed or the dialogue has no reward by scores (invalid ones too)."""

    reward: Floats
    legacy: Floats
    adaptive: Floats
    alpha: Floats


def deficits(theta: Floats, settings: RewardSettings = PAPER) -> Floats:
    """d_k = epsilon + (1 - theta_k)^p, (K,): larger for what the policy cannot do yet."""
    d: Floats = settings.epsilon + (1 - theta) ** settings.p
    return d


def zpd_match(scores: Floats, theta: Floats, settings: RewardSettings = PAPER) -> Floats:
    """omega_k(D) = exp(-(s_k(D) - theta_k)^2 / (2 sigma^2)), of the shape of `scores`: 1 where a dialogue's score is the estimate."""
    omega: Floats = np.exp(-((scores - theta) ** 2) / (2 * settings.sigma**2))
    return omega


def adaptive_weights(scores: Floats, theta: Floats, dimensions: Dimensions, settings: RewardSettings = PAPER) -> Floats:
    """alpha_k(D) = rho_k d_k omega_k(D) / its sum over the group of k, (n, K); nan where s_k is nan.

    With the ablations "deficit_only" omega is 1, with "zpd_only" d is 1, with "legacy" both are. theta nan counts as UNKNOWN.
    """
    known = np.where(np.isnan(theta), UNKNOWN, theta)
    weight = np.log(dimensions.rho)
    if settings.ablation in ("full", "static", "deficit_only"):
        weight = weight + np.log(deficits(known, settings))
    logs = np.broadcast_to(weight, scores.shape)
    if settings.ablation in ("full", "static", "zpd_only"):
        logs = logs - (scores - known) ** 2 / (2 * settings.sigma**2)
    logs = np.where(np.isnan(scores), -np.inf, logs)
    alpha = np.full(scores.shape, np.nan)
    for group in dimensions.groups:
        alpha[:, group] = _normalised(logs[:, group])
    return np.where(np.isnan(scores), np.nan, alpha)


def rewards(batch: Batch, theta: Floats, dimensions: Dimensions, settings: RewardSettings = PAPER) -> Rewards:
    """The rewards of a batch, made with the estimate theta (K,) from before it.

    R_G(D; w) = continuous * sum_k w_k s_k + strict * prod_k a_k over the assessed dimensions of a group;
    R_legacy = local R_T(rho) + holistic R_H(rho), rho normalised within its group (the paper prints it raw);
    R_CDT-ZPD the same with alpha(D); R = mix_legacy R_legacy + mix_adaptive R_CDT-ZPD.

    >>> two = Dimensions(("D1", "E1"), np.array([True, False]), np.array([1.0, 1.0]))
    >>> one = Batch(np.array([[0.5, 1.0]]), np.array([[0.0, 1.0]]), np.array([True]), np.array([True]))
    >>> rewards(one, np.array([0.5, 0.5]), two).reward.round(3)  # 0.7 * 0.45 + 0.3 * 1
    array([0.615])
    """
    scored = batch.valid & batch.judged
    scores = np.where(scored[:, None], batch.scores, np.nan)
    assessed = ~np.isnan(scores)
    rho = np.full(scores.shape, np.nan)
    for group in dimensions.groups:
        rho[:, group] = _normalised(np.where(assessed[:, group], np.log(dimensions.rho[group]), -np.inf))
    alpha = adaptive_weights(scores, theta, dimensions, settings)
    legacy = _of_groups(rho, scores, batch.passed, assessed, dimensions, settings)
    adaptive = _of_groups(alpha, scores, batch.passed, assessed, dimensions, settings)
    mixed = np.minimum(settings.mix_legacy * legacy + settings.mix_adaptive * adaptive, 1.0)
    reward = legacy if settings.ablation == "legacy" else mixed
    invalid = batch.judged & ~batch.valid
    reward, legacy, adaptive = (np.where(invalid, 0.0, part) for part in (reward, legacy, adaptive))
    return Rewards(reward, legacy, adaptive, np.where(np.isnan(reward)[:, None], np.nan, alpha))


def _of_groups(weights: Floats, scores: Floats, passed: Floats, assessed: Flags, dimensions: Dimensions, settings: RewardSettings) -> Floats:
    """local R_T + holistic R_H, (n,); nan where a group has nothing assessed."""
    total = np.zeros(len(scores))
    for group, share in zip(dimensions.groups, (settings.local, settings.holistic), strict=True):
        there = assessed[:, group]
        mean = np.where(there, weights[:, group] * scores[:, group], 0.0).sum(axis=1)
        all_passed = np.where(there, passed[:, group], 1.0).prod(axis=1)
        part = settings.continuous * mean + settings.strict * all_passed
        total = total + share * np.where(there.any(axis=1), part, np.nan)
    return np.minimum(total, 1.0)  # weights of 1/3 add up to a little more than 1; nan stays nan


def _normalised(logs: Floats) -> Floats:
    """exp(logs) divided by the row's sum, without underflow; a row of -inf alone gives nan."""
    top = logs.max(axis=1, keepdims=True)
    parts = np.exp(logs - np.where(np.isinf(top), 0.0, top))
    total = parts.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(parts, total, out=np.full(parts.shape, np.nan), where=total > 0)
    return shares
