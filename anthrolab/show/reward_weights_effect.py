"""What a setting of the reward does to judged dialogues: weights, places, advantages. Pure: arrays in, arrays out."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from anthrolab.show.reward_weights_dialogues import JudgedDialogues, Rows
from anthrolab.training.reward.advantages import group_advantages
from anthrolab.training.reward.batch import Dimensions, Floats
from anthrolab.training.reward.reward import Rewards, adaptive_weights, rewards
from anthrolab.training.reward.settings import PAPER, RewardSettings

ADAPTIVE_ONLY = ("p", "epsilon", "sigma")
"""The settings that move nothing but the adaptive part of the reward."""
_DIGITS = 12


@dataclass(frozen=True)
class Scored:
    """Dialogues under one setting. rho, share (n, K): the rubric's weights within their group, and how much of the reward
    each score is, the strict part left out (both nan where nothing is known); place (n,): from 1, equal rewards share one."""

    settings: RewardSettings
    rewards: Rewards
    rho: Floats
    share: Floats
    place: Floats


@dataclass(frozen=True)
class Effect:
    """A setting beside the paper's. moved_by_rewarded, moved_by_adaptive: by how much a reward moves on average (absolute)
    when first the rubric weights and mixes, then p, epsilon and sigma go from the paper's setting to this one."""

    judged: JudgedDialogues
    paper: Scored
    now: Scored
    moved_by_rewarded: float
    moved_by_adaptive: float

    @cached_property
    def change(self) -> Floats:
        """Reward now minus the paper's, (n,)."""
        return np.round(self.now.rewards.reward - self.paper.rewards.reward, _DIGITS)

    @cached_property
    def climbed(self) -> Floats:
        """How many places a dialogue climbed, (n,); negative: fell."""
        return self.paper.place - self.now.place

    @property
    def same_order(self) -> float:
        """Rank correlation (Spearman) of the two orders: 1 = the same; nan where there is no order."""
        return rank_correlation(self.paper.rewards.reward, self.now.rewards.reward)

    @property
    def in_words(self) -> str:
        """A line for print."""
        known = self.now.rewards.reward[~np.isnan(self.now.rewards.reward)]
        mean = f"mean reward {known.mean():.3f} of {len(known)} dialogues" if len(known) else "no dialogue has a reward"
        return f"{mean}, rank correlation with the paper's order {self.same_order:.4f}"


def score(judged: JudgedDialogues, settings: RewardSettings = PAPER) -> Scored:
    """The dialogues under a setting."""
    dimensions = judged.dimensions
    if settings.rho is not None:
        dimensions = replace(dimensions, rho=dimensions.row(settings.rho))
    made = rewards(judged.batch, judged.theta, dimensions, settings)
    known = np.where(np.isnan(made.alpha), np.nan, judged.batch.scores)
    rho = adaptive_weights(known, judged.theta, dimensions, settings.model_copy(update={"ablation": "legacy"}))
    legacy = 1.0 if settings.ablation == "legacy" else settings.mix_legacy
    of_group = np.where(dimensions.local, settings.local, settings.holistic) * settings.continuous
    share = of_group * (legacy * rho + (1 - legacy) * made.alpha)
    return Scored(settings, made, rho, share, places(made.reward))


def effect(judged: JudgedDialogues, settings: RewardSettings, paper: Scored | None = None) -> Effect:
    """A setting beside the paper's; `paper`: the dialogues scored under it, where they are at hand already."""
    paper = paper or score(judged)
    now = score(judged, settings)
    halfway = {name: getattr(PAPER, name) for name in ADAPTIVE_ONLY}
    halfway["ablation"] = "legacy" if settings.ablation == "legacy" else "full"
    rewarded = rewards(judged.batch, judged.theta, _weighted(judged.dimensions, settings), settings.model_copy(update=halfway)).reward
    return Effect(judged, paper, now, _mean_move(paper.rewards.reward, rewarded), _mean_move(rewarded, now.rewards.reward))


def places(values: Floats) -> Floats:
    """Place of each value from 1, the highest first; equal ones share the best of their places; nan has none.

    >>> places(np.array([0.2, 0.9, np.nan, 0.2, 0.1]))
    array([ 2.,  1., nan,  2.,  4.])
    """
    rounded = np.round(values, _DIGITS)
    known = np.sort(rounded[~np.isnan(rounded)])
    not_better = np.searchsorted(known, rounded, side="right")
    return np.where(np.isnan(values), np.nan, (len(known) + 1 - not_better).astype(np.float64))


def rank_correlation(one: Floats, other: Floats) -> float:
    """Spearman's rank correlation over the pairs that are both known; equal values share their mean rank."""
    both = ~np.isnan(one) & ~np.isnan(other)

    def ranks(values: Floats) -> Floats:
        rounded = np.round(values[both], _DIGITS)
        known = np.sort(rounded)
        middle: Floats = 0.5 * np.searchsorted(known, rounded, side="left") + 0.5 * np.searchsorted(known, rounded, side="right")
        return middle - float(middle.mean())

    if not both.any():
        return float("nan")
    a, b = ranks(one), ranks(other)
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / size if size > 0 else float("nan")


def advantages(reward: Floats, number: Rows) -> Floats:
    """A = (R - mean of the group) / (standard deviation of the group + STD_EPSILON), as GRPO in TRL; nan without a reward.

    The deviation is the unbiased one; a group of one, or of equal rewards, has advantage 0.

    >>> advantages(np.array([1.0, 0.0, 0.5, np.nan]), np.array([0, 0, 1, 1])).round(2)
    array([ 0.71, -0.71,  0.  ,   nan])
    """
    return np.where(np.isnan(reward), np.nan, group_advantages(np.round(reward, _DIGITS), number))


def best_changed(before: Floats, now: Floats, number: Rows) -> tuple[int, int]:
    """In how many groups the best dialogue of before is no longer the best, and of how many groups with at least two rewards."""
    known = ~np.isnan(now)
    several = np.bincount(number, known) >= 2
    falling_now, falling_before = (-np.round(np.where(known, values, -1), _DIGITS) for values in (now, before))
    order = np.lexsort((falling_now, falling_before, number))
    first = order[np.unique(number[order], return_index=True)[1]]
    best = np.full(len(several), -np.inf)
    np.maximum.at(best, number[known], now[known])
    other = now[first] < best[number[first]] - 10.0**-_DIGITS
    return int((other & several[number[first]]).sum()), int(several.sum())


def flat_groups(advantage: Floats, number: Rows) -> int:
    """Groups of at least two rewards that are all equal: GRPO learns nothing from them."""
    there = np.bincount(number, ~np.isnan(advantage)) >= 2
    moving = np.bincount(number, np.abs(np.nan_to_num(advantage)) > 0) > 0
    return int((there & ~moving).sum())


def _weighted(dimensions: Dimensions, settings: RewardSettings) -> Dimensions:
    return dimensions if settings.rho is None else replace(dimensions, rho=dimensions.row(settings.rho))


def _mean_move(one: Floats, other: Floats) -> float:
    moves = np.abs(other - one)
    moves = moves[~np.isnan(moves)]
    return float(np.round(moves.mean(), _DIGITS)) if len(moves) else 0.0
