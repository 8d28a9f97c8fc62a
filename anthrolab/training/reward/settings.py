"""The constants of the CDT-ZPD reward (paper section 4.6), each with the paper's value as its default."""

import json
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from anthrolab.files import read_text, write_atomic
from anthrolab.training.settings import Settings, TrainingError

Ablation = Literal["full", "legacy", "deficit_only", "zpd_only", "static"]
"""What of the reward is on. full: all of it; legacy: the rubric's weights alone; deficit_only: adaptive weights without the
ZPD match (omega = 1); zpd_only: without the deficit (d = 1); static: theta stays where it began."""


class RewardSettings(Settings):
    """The reward's constants, named as in the paper. Use `RewardSettings.of(...)` for one-line errors.

    The paper does not print sigma; 0.25 is ours. Nor does it print how P is updated or that theta is clipped: ours is the
    standard scalar Kalman filter, clipped to [0, 1].
    """

    epsilon: float = Field(default=0.20, ge=0, le=10, allow_inf_nan=False, description="floor of the deficit: d = epsilon + (1 - theta)^p")
    p: float = Field(default=1.0, ge=0, le=10, allow_inf_nan=False, description="how sharply weak dimensions are weighted: d = epsilon + (1 - theta)^p")
    sigma: float = Field(default=0.25, ge=0.001, le=100, allow_inf_nan=False, description="width of the ZPD match: omega = exp(-(s - theta)^2 / (2 sigma^2)); not in the paper")
    mix_legacy: float = Field(default=0.7, ge=0, le=1, description="R = mix_legacy R_legacy + mix_adaptive R_CDT-ZPD")
    mix_adaptive: float = Field(default=0.3, ge=0, le=1, description="see mix_legacy; both add up to 1")
    local: float = Field(default=0.7, ge=0, le=1, description="R_legacy = local R_T + holistic R_H, and so for R_CDT-ZPD")
    holistic: float = Field(default=0.3, ge=0, le=1, description="see local; both add up to 1")
    continuous: float = Field(default=0.9, ge=0, le=1, description="R_G = continuous sum(alpha s) + strict prod(a)")
    strict: float = Field(default=0.1, ge=0, le=1, description="see continuous; both add up to 1")
    P0: float = Field(default=0.02, ge=0, le=1, description="variance of theta at the beginning")
    Q: float = Field(default=0.002, ge=0, le=1, description="process noise: K = (P + Q) / (P + Q + R)")
    R_floor: float = Field(default=0.05, gt=0, le=10, description="least observation noise: R = max(R_floor, variance of the batch / its size)")
    rho: dict[str, float] | None = Field(default=None, description="weights of the dimensions; null: the rubric's")
    ablation: Ablation = Field(default="full", description="full, legacy, deficit_only, zpd_only or static")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for one, other in (("mix_legacy", "mix_adaptive"), ("local", "holistic"), ("continuous", "strict")):
            total = getattr(self, one) + getattr(self, other)
            if abs(total - 1) > 1e-9:
                raise ValueError(f"{one} + {other} is {total:g}; make it 1, so that rewards stay between 0 and 1")
        if self.epsilon == 0 and self.p > 0 and self.ablation in ("full", "deficit_only", "static"):
            raise ValueError("epsilon is 0: a dimension with theta 1 would have no weight at all; give it a little, such as 0.01")
        for dimension, weight in (self.rho or {}).items():
            if not 0 < weight < float("inf"):
                raise ValueError(f"rho.{dimension} is {weight}; give it a positive number")
        return self


PAPER = RewardSettings()
"""The paper's constants (sigma ours)."""


def read_reward_settings(path: Path) -> RewardSettings:
    """The settings in a JSON file, as notebook 08 writes it; TrainingError names the file and the field."""
    try:
        values = json.loads(read_text(path))
        if not isinstance(values, dict):
            raise ValueError("it holds no fields")
    except ValueError as e:
        raise TrainingError(f"{path}: not valid JSON ({e}); write it again with notebook 08") from e
    try:
        return RewardSettings.of(**values)
    except TrainingError as e:
        raise TrainingError("\n".join(f"{path}: {line}" for line in str(e).splitlines())) from None


def write_reward_settings(path: Path, settings: RewardSettings) -> None:
    """Write the settings as JSON, whole or not at all."""
    write_atomic(path, settings.model_dump_json(indent=1) + "\n")
