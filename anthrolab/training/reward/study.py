"""Worlds of synthetic learners, and the reward's variants compared in them over many seeds, with intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anthrolab.bench.ticker import Ticker
from anthrolab.judging.rubric import Rubric
from anthrolab.models.spend import Meter
from anthrolab.training.reward.batch import Dimensions, Floats
from anthrolab.training.reward.settings import PAPER, RewardSettings
from anthrolab.training.reward.simulation import Simulated, World, checkboxes_of, simulate
from anthrolab.training.settings import TrainingError

BASELINE = "legacy"
PROFILE = (0.85, 0.75, 0.55, 0.90, 0.65, 0.80, 0.60, 0.45, 0.30, 0.70)
"""True abilities at the beginning, D1 to D5 and E1 to E5: uneven, as after a fine-tuning."""
Z = 1.96
SETTLED = 10
"""Steps after which the filter has forgotten its P0."""
ALONE = {"mix_legacy": 0.0, "mix_adaptive": 1.0}
LEAST_EPSILON = 0.01
"""What epsilon is lifted to in a variant that cannot be had with 0 (a dimension with theta 1 would have no weight)."""
WIDTHS_IN = ("uneven", "far below")
"""The scenes in which widths of the match are compared."""


@dataclass(frozen=True)
class Scene:
    """A world with a name, a sentence for readers, and the dimensions that are watched as weak."""

    name: str
    about: str
    world: World
    weak: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """A quantity of a variant over all seeds: mean with its 95% interval, and the paired difference to the baseline."""

    variant: str
    quantity: str
    mean: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float


def scenes(rubric: Rubric) -> tuple[Scene, ...]:
    """The worlds of the simulator and of docs/kalman.md, for the rubric's dimensions (the docs have the paper's ten)."""
    ids = tuple(d.id for d in rubric.dimensions)
    uneven = {i: PROFILE[k % len(PROFILE)] for k, i in enumerate(ids)}
    weak = tuple(i for i in ids if uneven[i] < 0.6) or ids[-1:]
    stuck = tuple(dict.fromkeys((weak[0], weak[-1])))
    scopes = dict.fromkeys(d.scope for d in rubric.dimensions)
    heavy = tuple(max((d for d in rubric.dimensions if d.scope == scope), key=lambda d: d.weight).id for scope in scopes)
    boxes, all_free = checkboxes_of(rubric), (1.0,) * len(ids)

    def row(chosen: Sequence[str], value: float, other: float) -> tuple[float, ...]:
        return tuple(value if i in chosen else other for i in ids)

    start = tuple(uneven.values())
    even = World(row((), 0.0, 0.75), boxes, all_free)
    base = World(start, boxes, all_free)
    return (
        Scene("uneven", f"Abilities from {min(start):.2f} to {max(start):.2f}; everything can be learnt", base, weak),
        Scene("far below", f"{' and '.join(heavy)} at 0.08, the others at 0.75", replace(even, start=row(heavy, 0.08, 0.75)), heavy),
        Scene("cannot be learnt", f"As uneven, but {' and '.join(stuck)} cannot be learnt: nothing moves them", replace(base, teachable=row(stuck, 0.0, 1.0)), stuck),
        Scene("sudden drop", f"All at 0.75; {' and '.join(heavy)} lose 2 log-odds at step 15", replace(even, jump_at=15, jump=row(heavy, -2.0, 0.0)), heavy),
        Scene("forgetting", "As uneven, but every skill loses 0.02 log-odds a step", replace(base, drift=-0.02), weak),
        Scene("noisy judge", "As uneven, with a judge that errs by 1 log-odds a dialogue and 0.5 a step", replace(base, judge_noise=1.0, step_noise=0.5), weak),
    )  # fmt: skip


def changed(settings: RewardSettings, ablation: str, **more: float) -> RewardSettings:
    """The settings with another ablation and other constants. An epsilon of 0, which the legacy reward and zpd_only do not use, becomes
    LEAST_EPSILON where the ablation needs one."""
    values = settings.model_dump() | {"ablation": ablation} | more
    if values["epsilon"] == 0 and values["p"] > 0 and ablation in ("full", "deficit_only", "static"):
        values["epsilon"] = LEAST_EPSILON
    return RewardSettings.of(**values)


def variants(settings: RewardSettings = PAPER) -> dict[str, RewardSettings]:
    """The five ablations, and three of them with nothing but the adaptive part in the mix; see `changed` for an epsilon of 0."""
    five = {name: changed(settings, name) for name in ("legacy", "full", "deficit_only", "zpd_only", "static")}
    return five | {f"{name}, alone": changed(settings, name, **ALONE) for name in ("full", "deficit_only", "zpd_only")}


def widths(settings: RewardSettings, sigmas: str) -> dict[str, RewardSettings]:
    """The whole reward with several widths of the match, beside the legacy reward and the deficit alone; nothing for no sigmas.

    sigmas: numbers with commas between them; TrainingError for one that is none, or that no settings may have.

    >>> list(widths(PAPER, "0.25, 1"))
    ['legacy', 'deficit_only', 'full, sigma 0.25', 'full, sigma 1']
    """
    try:
        values = [float(text) for text in sigmas.split(",") if text.strip()]
    except ValueError as e:
        raise TrainingError(f"sigmas: {e}; give numbers with commas between them, such as 0.25,0.65") from e
    if not values:
        return {}
    beside = {name: changed(settings, name) for name in (BASELINE, "deficit_only")}
    return beside | {f"full, sigma {value:g}": changed(settings, "full", sigma=value) for value in values}


def quantities(run: Simulated, scene: Scene, dimensions: Dimensions, settings: RewardSettings = PAPER) -> dict[str, float]:
    """What is compared, of one training: at its end the ability (mean as the legacy reward weighs it; the least one), what the
    weak and the other dimensions gained; mean(A e) of a weak dimension a step, in the first SETTLED steps (after the jump, if there
    is one), while the variants' learners are still alike; how far theta and the batch mean are from the true ability (root mean square from step SETTLED on), how often the band
    of theta holds it; and the share of dialogues and dimensions in which more score earns less."""
    weak = np.isin(run.ids, scene.weak)
    weights = dimensions.shares * np.where(dimensions.local, settings.local, settings.holistic)
    before, end = run.ability[1], run.ability[-1]
    from_here = max(scene.world.jump_at - 1, 0)
    early = run.pressure[from_here : from_here + SETTLED].mean(axis=0)
    truth, theta, variance = run.ability[1 + SETTLED :], run.theta[1 + SETTLED :], run.P[1 + SETTLED :]
    return {
        "mean ability": float(weights @ end),
        "least ability": float(end.min()),
        "gain of weak": float((end - before)[weak].mean()),
        "gain of others": float((end - before)[~weak].mean()),
        "pull on weak, early": float(early[weak].mean()),
        "error of theta": float(np.sqrt(((theta - truth) ** 2).mean())),
        "error of batch mean": float(np.sqrt(((run.mean[SETTLED:] - truth) ** 2).mean())),
        "band holds": float((np.abs(theta - truth) <= Z * np.sqrt(variance)).mean()),
        "more score, less adaptive": float(run.falling.mean()),
        "more score, less reward": float(run.falling_reward.mean()),
    }


def compare_all(
    chosen_scenes: Sequence[Scene], dimensions: Dimensions, chosen: Mapping[str, RewardSettings], seeds: Sequence[int], say: Callable[[str], None],
) -> dict[Scene, list[Measured]]:  # fmt: skip
    """`compare` in several scenes, nothing where `chosen` is empty; `say` gets a line a variant with how long it still takes."""
    if not chosen:
        return {}
    ticker = Ticker(len(chosen_scenes) * len(chosen), Meter())

    def finished(scene: str, variant: str) -> None:
        ticker.finish(0)
        say(f"{ticker.line()}: {scene}, {variant}")

    return {scene: compare(scene, dimensions, chosen, seeds, finished) for scene in chosen_scenes}


def compare(
    scene: Scene, dimensions: Dimensions, chosen: Mapping[str, RewardSettings], seeds: Sequence[int], finished: Callable[[str, str], None] = lambda scene, variant: None,
) -> list[Measured]:  # fmt: skip
    """Every quantity of every variant, each paired by seed with BASELINE (which must be one of them): the same seed draws the same
    cases, tries and errors. Intervals: Student's t over the seeds (at least 2), one at a time. `finished` is told of every variant."""
    if len(seeds) < 2 or BASELINE not in chosen:
        raise TrainingError(f"study: needs at least 2 seeds and the variant {BASELINE}; it has {len(seeds)} seeds and {', '.join(chosen)}")
    found: dict[str, dict[str, Floats]] = {}
    for name, settings in chosen.items():
        rows = [quantities(simulate(scene.world, dimensions, settings, seed), scene, dimensions, settings) for seed in seeds]
        found[name] = {q: np.array([row[q] for row in rows]) for q in rows[0]}
        finished(scene.name, name)
    made = []
    for name, of in found.items():
        for quantity, values in of.items():
            made.append(Measured(name, quantity, *_interval(values), *_interval(values - found[BASELINE][quantity])))
    return made


def _interval(values: Floats) -> tuple[float, float, float]:
    from scipy.stats import t

    half = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)
    return float(values.mean()), float(values.mean()) - half, float(values.mean()) + half
