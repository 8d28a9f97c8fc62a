"""What can be moved: presets, sliders and their ranges, and how a slider's value goes into the settings."""

from collections.abc import Mapping
from dataclasses import dataclass

from anthrolab.training.reward.batch import Dimensions
from anthrolab.training.reward.settings import PAPER, Ablation, RewardSettings
from anthrolab.training.settings import TrainingError

EXPLAINED = {
    "adaptive": ("The adaptive part: p, ε, σ", "p: how much more weak dimensions weigh. ε: what a strong one keeps. σ: how far from θ a score may lie and still count."),
    "mixes": ("What is rewarded: mixes", "adaptive: share of the adaptive part. local: of the turns (D). strict: of passing every box. They move the whole reward."),
    "weights": ("What is rewarded: rubric weights ρ", "Within D, and within E, only proportions count."),
}
"""Headings and help of the sliders, on notebook and page."""
ABLATIONS: dict[Ablation, str] = {
    "full": "all of it", "deficit_only": "deficit only (no σ)", "zpd_only": "ZPD only (no p, ε)", "legacy": "nothing: legacy reward only", "static": "all of it, θ never updated",
}  # fmt: skip
"""What of the adaptive part is on, in words."""
PRESETS: dict[str, RewardSettings] = {
    "Paper": PAPER,
    "Legacy only": RewardSettings(ablation="legacy"),
    "Deficit only": RewardSettings(ablation="deficit_only"),
    "ZPD only": RewardSettings(ablation="zpd_only"),
}
OTHER_SHARE = {"mix_adaptive": "mix_legacy", "local": "holistic", "strict": "continuous"}
"""Settings that are a share, with the one that has the rest."""


@dataclass(frozen=True)
class Knob:
    """A slider for one setting. name: of the setting, or the dimension for a rubric weight; says: how it is explained;
    adaptive: moves the adaptive part only; stops: values for which a page without a kernel has a frame."""

    name: str
    label: str
    says: str
    low: float
    high: float
    step: float
    adaptive: bool = False
    weight: bool = False
    stops: tuple[float, ...] = ()


def knobs(dimensions: Dimensions, names: Mapping[str, str]) -> list[Knob]:
    """All sliders in the order in which they are shown; those of the rubric's weights fit its scale."""
    shares = (0.0, 0.15, 0.3, 0.5, 0.75, 1.0)
    most = 3 * float(dimensions.rho.max())
    step = 10.0 ** (len(str(int(most))) - 3)
    weights = [
        Knob(k, k, f"{names.get(k, k)}: rubric weight; only its proportion within its group counts", 0, most, step, weight=True, stops=tuple(round(float(rho) * f, 9) for f in (0.25, 0.5, 1, 2, 4) if rho * f <= 1.4 * most))
        for k, rho in zip(dimensions.ids, dimensions.rho, strict=True)
    ]  # fmt: skip
    return [
        *weights,
        Knob("mix_adaptive", "adaptive", "share of the adaptive reward; the rest is the legacy reward", 0, 1, 0.01, stops=shares),
        Knob("local", "local", "share of the turns (D); the rest is the whole dialogue (E)", 0, 1, 0.01, stops=(0.0, 0.25, 0.5, 0.7, 0.85, 1.0)),
        Knob("strict", "strict", "share of passing every box of a group; the rest are the weighted scores", 0, 1, 0.01, stops=(0.0, 0.1, 0.2, 0.4, 0.7, 1.0)),
        Knob("p", "p", "how sharply weak dimensions are weighted", 0, 4, 0.01, adaptive=True, stops=(0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)),
        Knob("epsilon", "ε", "weight that even a perfect dimension keeps", 0, 2, 0.01, adaptive=True, stops=(0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)),
        Knob("sigma", "σ", "how far from θ a score may lie and still count", 0.02, 1, 0.01, adaptive=True, stops=(0.02, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0)),
    ]  # fmt: skip


def values_of(settings: RewardSettings, dimensions: Dimensions) -> dict[str, float]:
    """Where every slider stands for some settings; TrainingError if these have weights for other dimensions."""
    rho = _own(dimensions) if settings.rho is None else dict(settings.rho)
    if set(rho) != set(dimensions.ids):
        raise TrainingError(f"rho: holds weights for {', '.join(rho)}; these dialogues have {', '.join(dimensions.ids)}")
    return rho | {name: getattr(settings, name) for name in ("mix_adaptive", "local", "strict", "p", "epsilon", "sigma")}


def with_values(base: RewardSettings, values: Mapping[str, float], ablation: Ablation, dimensions: Dimensions) -> RewardSettings:
    """The settings of sliders and switch, other constants as in `base`; TrainingError if they do not fit together.

    The rubric's own weights are written as null: a training then takes them from its rubric.
    """
    rounded = {name: round(float(v), 9) for name, v in values.items()}
    rho = {k: rounded.pop(k) for k in dimensions.ids}
    rest = {other: round(1 - rounded[name], 9) for name, other in OTHER_SHARE.items()}
    return RewardSettings.of(**base.model_dump() | rounded | rest | {"rho": None if rho == _own(dimensions) else rho, "ablation": ablation})


def _own(dimensions: Dimensions) -> dict[str, float]:
    return {k: round(float(w), 9) for k, w in zip(dimensions.ids, dimensions.rho, strict=True)}


def idle(ablation: Ablation, mix_adaptive: float) -> set[str]:
    """Sliders that do nothing at the moment, because what they move is switched off."""
    if ablation == "legacy":
        return {"p", "epsilon", "sigma", "mix_adaptive"}
    if mix_adaptive == 0:
        return {"p", "epsilon", "sigma"}
    return {"zpd_only": {"p", "epsilon"}, "deficit_only": {"sigma"}}.get(ablation, set())
