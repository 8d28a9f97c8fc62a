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

DEFAULT_RUN = "runs/grpo"
"""Where notebook 10 looks for a training unless told otherwise."""


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
    try:
        rows = read_log(files.capability)
        ids = tuple(rows[0]["theta"])
        values = {key: np.array([_row(row[key], ids) for row in rows]) for key in ("theta", "P", "mean", "noise", "gain", "count")}
        steps = tuple(int(row["step"]) for row in rows)
    except (IndexError, KeyError, TypeError, ValueError, AttributeError) as e:
        raise TrainingError(f"{files.capability}: not the file of a capability filter ({type(e).__name__}: {e}); train anew in another folder") from e
    alpha = _alpha(read_rewards(files.rewards), ids, steps)
    try:
        settings = RewardSettings.of(**reward)
    except TrainingError as e:
        raise TrainingError("\n".join(f"{files.manifest}: reward.{line}" for line in str(e).splitlines())) from None
    return Trajectory(name or folder.name, ids, steps, **values, alpha=alpha, settings=settings)


def read_trajectories(folders: Sequence[Path]) -> list[Trajectory]:
    """Several trainings to lay over each other; one whose name is there already is named by its path. TrainingError if their
    dimensions differ."""
    names = [f.name for f in folders]
    found = [read_trajectory(f, f.name if names.count(f.name) == 1 else str(f)) for f in folders]
    for other in found[1:]:
        if other.ids != found[0].ids:
            raise TrainingError(f"{other.name}: has the dimensions {', '.join(other.ids)}, and {found[0].name} {', '.join(found[0].ids)}; show them apart")
    return found


def named_trajectories(run_dir: str, run_dirs: str = "") -> list[Trajectory]:
    """The trajectories of the training `run_dir` and of those in `run_dirs`, which have commas between them.

    None for an empty `run_dir`, and for DEFAULT_RUN where no training was begun yet (executed notebooks may lie there already).
    Every other folder has to be one of a GRPO training: TrainingError names one that is not.
    """
    first = Path(run_dir)
    nothing = not run_dir.strip() or (first == Path(DEFAULT_RUN) and not _begun(first))
    others = [Path(text.strip()) for text in run_dirs.split(",") if text.strip()]
    return read_trajectories([*([] if nothing else [first]), *others])


def _begun(folder: Path) -> bool:
    return folder.exists() and (not folder.is_dir() or any(path.name != "notebooks" for path in folder.iterdir()))


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
