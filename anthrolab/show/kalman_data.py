"""The capability filter's course over a training, read for those who show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anthrolab.training.checkpoints import read_log
from anthrolab.training.grpo.files import Folder
from anthrolab.training.manifest import read_manifest
from anthrolab.training.reward.batch import Floats
from anthrolab.training.reward.log import read_rewards
from anthrolab.training.reward.settings import RewardSettings
from anthrolab.training.settings import TrainingError


@dataclass(frozen=True)
class Trajectory:
    """One training, T steps and the beginning. theta, P, mean, noise, gain, count, alpha (T + 1, K): nan where there is none (the
    first row has only theta and P; alpha, the mean adaptive weights of a step's dialogues, is all nan where no rewards are
    kept)."""

    name: str
    ids: tuple[str, ...]
    steps: tuple[int, ...]
    theta: Floats
    P: Floats
    mean: Floats
    noise: Floats
    gain: Floats
    count: Floats
    alpha: Floats
    settings: RewardSettings


def read_trajectory(folder: Path, name: str = "") -> Trajectory:
    """The trajectory of a GRPO training's folder, named after it; TrainingError names what is missing or damaged."""
    files = Folder(folder)
    if not files.capability.exists():
        raise TrainingError(f"{files.capability}: no such file; name the folder of a GRPO training (anthrolab grpo train)")
    reward = read_manifest(files.manifest).get("reward")
    if not isinstance(reward, dict):
        raise TrainingError(f"{files.manifest}: holds no reward settings; name the folder of a GRPO training (anthrolab grpo train)")
    rows = read_log(files.capability)
    try:
        ids = tuple(rows[0]["theta"])
        values = {key: np.array([_row(row[key], ids) for row in rows]) for key in ("theta", "P", "mean", "noise", "gain", "count")}
        steps = tuple(int(row["step"]) for row in rows)
    except (IndexError, KeyError, TypeError, ValueError, AttributeError) as e:
        raise TrainingError(f"{files.capability}: not the file of a capability filter ({type(e).__name__}: {e}); train anew in another folder") from e
    alpha = _alpha(read_rewards(files.rewards), ids, steps)
    return Trajectory(name or folder.name, ids, steps, **values, alpha=alpha, settings=RewardSettings.of(**reward))


def read_trajectories(folders: Sequence[Path]) -> list[Trajectory]:
    """Several trainings to lay over each other; one whose name is there already is named by its path. TrainingError if their
    dimensions differ."""
    names = [f.name for f in folders]
    found = [read_trajectory(f, f.name if names.count(f.name) == 1 else str(f)) for f in folders]
    for other in found[1:]:
        if other.ids != found[0].ids:
            raise TrainingError(f"{other.name}: has the dimensions {', '.join(other.ids)}, and {found[0].name} {', '.join(found[0].ids)}; show them apart")
    return found


def has_trajectory(folder: Path) -> bool:
    """Whether the folder is one of a GRPO training."""
    return Folder(folder).capability.exists()


def _row(values: dict[str, float | None] | None, ids: tuple[str, ...]) -> list[float]:
    if values is None:
        return [np.nan] * len(ids)
    if tuple(values) != ids:
        raise ValueError(f"dimensions {', '.join(values)}, and {', '.join(ids)} before")
    return [np.nan if v is None else float(v) for v in values.values()]


def _alpha(rewards: pl.DataFrame, ids: tuple[str, ...], steps: tuple[int, ...]) -> Floats:
    if rewards.is_empty():
        return np.full((len(steps), len(ids)), np.nan)
    means: dict[Any, list[Any]] = {
        row[0]: list(row[1:]) for row in rewards.group_by("step").agg(pl.col([f"alpha_{i}" for i in ids]).mean()).iter_rows()
    }
    return np.array([means.get(step, [None] * len(ids)) for step in steps], dtype=float)
