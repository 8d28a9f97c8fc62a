"""Advantages of GRPO: each reward beside the others of its group, the dialogues of one case. Pure."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from anthrolab.training.reward.batch import Floats

STD_EPSILON = 1e-4
"""Added to a group's standard deviation, as in TRL."""

SAME = 1e-12
"""Rewards that are nearer to one another count as equal: sums of the same numbers in another order are."""


def group_advantages(rewards: npt.ArrayLike, groups: Sequence[str] | npt.NDArray[np.generic], *, scale: bool = True) -> Floats:
    """A = (R - mean of its group) / (unbiased standard deviation of its group + STD_EPSILON), (n,); without `scale` not divided.

    rewards: (n,), nan where there is none: such a rollout is in no baseline and has advantage 0. So has a group with fewer
    than two rewards, or with equal ones. groups: a label a rollout; a case that stands twice in a batch needs two.

    >>> group_advantages([1.0, 0.0, float("nan"), 0.5], ["a", "a", "a", "b"]).round(3)
    array([ 0.707, -0.707,  0.   ,  0.   ])
    """
    values = np.asarray(rewards, dtype=np.float64)
    _, place = np.unique(np.asarray(groups), return_inverse=True)
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    count = np.bincount(place, known)
    away = np.where(known, filled - (np.bincount(place, filled) / count.clip(1))[place], 0.0)
    away = np.where(np.abs(away) < SAME, 0.0, away)
    if not scale:
        return away
    spread = np.sqrt(np.bincount(place, away**2) / (count - 1).clip(1))
    found: Floats = away / (spread + STD_EPSILON)[place]
    return found


def flat_groups(rewards: npt.ArrayLike, groups: Sequence[str] | npt.NDArray[np.generic]) -> tuple[int, int]:
    """How many groups teach nothing because their rewards do not differ (or fewer than two are there), of how many."""
    names = np.asarray(groups)
    moving = np.abs(group_advantages(rewards, groups, scale=False)) > 0
    every = len(np.unique(names))
    return every - len(np.unique(names[moving])), every
