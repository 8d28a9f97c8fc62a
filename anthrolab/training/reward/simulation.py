"""Synthetic learners with a known true ability, trained on the real filter and reward: what follows what, and who is helped.

A learner has a skill u_k (a log-odds) in each dimension. In a dialogue it tries e_k ~ N(0, 1): a checkbox passes with
probability sigmoid(u_k + explore e_k + case + judge), where `case` is common to a group (the same case) and `judge` is a
dialogue's own error plus one of the whole step. Scores are shares of passed checkboxes, as the rubric counts them. The
learner makes GRPO's step (REINFORCE with a normal policy and advantages by group): u_k += learning_rate * mean(A e_k).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from anthrolab.judging.rubric import Rubric
from anthrolab.training.reward.advantages import group_advantages
from anthrolab.training.reward.batch import Batch, Dimensions, Floats
from anthrolab.training.reward.capability import Capability
from anthrolab.training.reward.closed_forms import reward_slopes
from anthrolab.training.reward.reward import rewards
from anthrolab.training.reward.settings import PAPER, RewardSettings

TURNS = 11
"""Evaluated turns of a dialogue, each with the checkboxes of a local dimension (the paper's cases have 11 to 17)."""


@dataclass(frozen=True)
class World:
    """A learner and its judge. Tuples have one entry a dimension; `start`: true ability at step 0, 0..1 without its ends
    (the mean score over endless dialogues); `checkboxes` of a dialogue; `teachable`: 0 for what cannot be learnt, 1 as fast as the others; spreads
    and noises in log-odds; `drift`: log-odds that everything moves by itself after each step (negative: forgetting), apart from what
    is not teachable; `jump`: log-odds that are added at step `jump_at` (0: never)."""

    start: tuple[float, ...]
    checkboxes: tuple[int, ...]
    teachable: tuple[float, ...]
    steps: int = 60
    cases: int = 16
    group: int = 4
    explore: float = 0.5
    case_spread: float = 0.5
    judge_noise: float = 0.3
    step_noise: float = 0.1
    learning_rate: float = 0.15
    drift: float = 0.0
    jump_at: int = 0
    jump: tuple[float, ...] = ()

    @property
    def spread(self) -> float:
        """Standard deviation of all that moves a dialogue's log-odds."""
        return float(np.sqrt(self.explore**2 + self.case_spread**2 + self.judge_noise**2 + self.step_noise**2))


@dataclass(frozen=True)
class Simulated:
    """A training of T steps. ability (T + 1, K): the true one at the start, then of the learner that made each batch; theta, P
    (T + 1, K): at the start, then after each batch. mean, noise, gain: what the filter saw; alpha: the mean adaptive weights;
    pressure: mean(A e_k), what pulls the skill up; falling: the share of dialogues in which more score in k would lower the
    adaptive part, falling_reward: the final reward; all (T, K)."""

    ids: tuple[str, ...]
    ability: Floats
    theta: Floats
    P: Floats
    mean: Floats
    noise: Floats
    gain: Floats
    alpha: Floats
    pressure: Floats
    falling: Floats
    falling_reward: Floats


def checkboxes_of(rubric: Rubric) -> tuple[int, ...]:
    """Checkboxes of a dialogue in each dimension: those of all its turns, or those of the whole dialogue."""
    return tuple(len(d.checkboxes) * (TURNS if d.scope == "turn" else 1) for d in rubric.dimensions)


def abilities(skill: Floats, spread: float) -> Floats:
    """The mean of sigmoid(skill + spread N(0, 1)), elementwise: the true ability, 0..1."""
    nodes, weights = _normal()
    found: Floats = sigmoid(np.asarray(skill)[..., None] + spread * nodes) @ weights
    return found


@cache
def _normal() -> tuple[Floats, Floats]:
    """Points and weights that stand for N(0, 1) in a mean."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    return nodes, weights / weights.sum()


def skills(ability: Floats, spread: float) -> Floats:
    """The other way round: the log-odds that have this ability."""
    grid = np.linspace(-12, 12, 4801)
    return np.interp(ability, abilities(grid, spread), grid)


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x))."""
    half: Floats = 0.5 * (1 + np.tanh(x / 2))
    return half


def draw(world: World, skill: Floats, rng: np.random.Generator) -> tuple[Batch, Floats]:
    """A batch of cases * group dialogues of a learner, and what it tried in each, (n, K)."""
    n, k = world.cases * world.group, len(skill)
    tried = rng.standard_normal((n, k))
    case = np.repeat(rng.standard_normal((world.cases, k)), world.group, axis=0)
    judge = world.judge_noise * rng.standard_normal((n, k)) + world.step_noise * rng.standard_normal(k)
    chance = sigmoid(skill + world.explore * tried + world.case_spread * case + judge)
    boxes = np.array(world.checkboxes)
    right = rng.binomial(boxes, chance)
    known = np.ones(n, dtype=bool)
    return Batch(right / boxes, (right == boxes).astype(float), known, known), tried


def simulate(world: World, dimensions: Dimensions, settings: RewardSettings = PAPER, seed: int = 0) -> Simulated:
    """One training; the filter begins at the true abilities, as it does after a benchmark run. Same arguments, same result."""
    skill = skills(np.array(world.start), world.spread)
    free = np.array(world.teachable)
    groups = np.repeat(np.arange(world.cases), world.group)
    state = Capability.initial(dimensions, dict(zip(dimensions.ids, world.start, strict=True)), settings)
    names = ("skill", "theta", "P", "mean", "noise", "gain", "alpha", "pressure", "falling", "falling_reward")
    kept: dict[str, list[Floats]] = {name: [] for name in names}

    def keep(**rows: Floats) -> None:
        for name, row in rows.items():
            kept[name].append(row)

    keep(skill=skill, theta=state.theta, P=state.P)
    for step in range(1, world.steps + 1):
        if step == world.jump_at:
            skill = skill + np.array(world.jump)
        batch, tried = draw(world, skill, np.random.default_rng([seed, step]))
        made = rewards(batch, state.theta, dimensions, settings)
        adaptive, final = reward_slopes(batch.scores, state.theta, dimensions, settings)
        pressure = (group_advantages(made.reward, groups)[:, None] * tried).mean(axis=0)
        state, seen = state.observe(batch, settings)
        keep(theta=state.theta, P=state.P, mean=seen.mean, noise=seen.noise, gain=seen.gain, alpha=made.alpha.mean(axis=0), pressure=pressure,
             falling=(adaptive < 0).mean(axis=0), falling_reward=(final < 0).mean(axis=0), skill=skill)  # fmt: skip
        skill = skill + free * (world.learning_rate * pressure + world.drift)
    ability = abilities(np.array(kept.pop("skill")), world.spread)
    return Simulated(dimensions.ids, ability, **{name: np.array(rows) for name, rows in kept.items()})
