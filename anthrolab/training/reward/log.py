"""The log of rewards: every rollout of a step with all that its reward is made of, in a parquet file a step."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from anthrolab.files import write_parquet
from anthrolab.metrics.asks import asks_of, share
from anthrolab.runtime.dialogue import Dialogue, Speaker
from anthrolab.training.reward.batch import Batch, Dimensions, Floats
from anthrolab.training.reward.reward import Rewards
from anthrolab.training.reward.service import Judged
from anthrolab.training.settings import TrainingError

NO_DIALOGUE = "no_dialogue"
"""Status of a rollout whose dialogue could not be had."""


@dataclass(frozen=True)
class RewardRow:
    """A rollout: its place in the step, its group (the rollouts of one case), and what came of it.

    dialogue and judged are None where the dialogue could not be had; `fault` then says why.
    """

    rollout: int
    group: int
    case_id: str
    binding: str
    role: Speaker
    dialogue: Dialogue | None = None
    judged: Judged | None = None
    fault: str | None = None


def rewards_path(folder: Path, step: int) -> Path:
    """The file of a step in the folder `rewards` of a training."""
    return folder / f"{step:04d}.parquet"


def write_rewards(
    path: Path, step: int, rows: Sequence[RewardRow], dimensions: Dimensions, batch: Batch, found: Rewards, theta: Floats, advantages: Floats
) -> None:
    """Write a step's rewards, whole or not at all. batch, found and advantages have a row a rollout, in the order of `rows`;
    theta (K,) is the estimate that the rewards were made with, from before the batch.

    Columns: step, rollout, group, case_id, binding, role, dialogue_id; status (scored, invalid, judge_failed, no_dialogue) and
    fault; reward, legacy, adaptive (0..1) and advantage; for every dimension s_ (score), a_ (strict flag, 0 or 1), alpha_
    (adaptive weight) and theta_; assessed (share of the checkboxes); messages (own, without an opener), chars (their mean length
    in characters), decisions (own, to send or not), silent (share of them to send nothing), violations (of the evaluated role,
    by the gate's rules), rules_score (0..100). What there is not is null.
    """
    n, k = len(rows), len(dimensions.ids)
    if (len(batch), len(found.reward), len(advantages)) != (n, n, n) or theta.shape != (k,):
        raise ValueError("batch, rewards and advantages have a row a rollout, theta a value a dimension")
    columns: dict[str, Any] = {"step": [step] * n}
    for name in ("rollout", "group", "case_id", "binding", "role"):
        columns[name] = [getattr(row, name) for row in rows]
    columns["dialogue_id"] = [row.dialogue.dialogue_id if row.dialogue else None for row in rows]
    columns["status"] = [row.judged.status if row.judged else NO_DIALOGUE for row in rows]
    columns["fault"] = [row.judged.fault if row.judged else row.fault for row in rows]
    columns |= {"reward": found.reward, "legacy": found.legacy, "adaptive": found.adaptive, "advantage": advantages}
    for prefix, values in (("s", batch.scores), ("a", batch.passed), ("alpha", found.alpha)):
        columns |= {f"{prefix}_{i}": values[:, at] for at, i in enumerate(dimensions.ids)}
    columns |= {f"theta_{i}": [float(theta[at])] * n for at, i in enumerate(dimensions.ids)}
    columns["assessed"] = [row.judged.assessed if row.judged else None for row in rows]
    watched = [_watched(row.dialogue) for row in rows]
    columns |= {name: [w[name] for w in watched] for name in _WATCHED}
    columns["violations"] = [len(row.judged.gate.violations) if row.judged else None for row in rows]
    columns["rules_score"] = [row.judged.rules_score if row.judged else None for row in rows]
    frame = pl.DataFrame({name: pl.Series(name, values, dtype=_type(name)) for name, values in columns.items()})
    write_parquet(path, frame.with_columns(pl.col(pl.Float64).fill_nan(None)))


def read_rewards(folder: Path) -> pl.DataFrame:
    """All steps' rewards of a training's folder `rewards`, in the order of steps and rollouts; TrainingError names a file that
    cannot be read, or has other columns than the first one. A folder without files gives a frame without rows and columns."""
    frames: list[pl.DataFrame] = []
    for path in sorted(folder.glob("[0-9]*.parquet")):
        try:
            frame = pl.read_parquet(path.read_bytes())
        except (pl.exceptions.PolarsError, OSError) as e:
            raise TrainingError(f"{path}: cannot be read ({str(e).splitlines()[0]}); put the file back") from e
        if frames and frame.schema != frames[0].schema:
            raise TrainingError(f"{path}: has other columns than the first step's file; keep one training in a folder")
        frames.append(frame)
    return pl.concat(frames).sort("step", "rollout") if frames else pl.DataFrame()


_WATCHED = ("messages", "chars", "decisions", "silent")
_WHOLE = {"step", "rollout", "group", "messages", "decisions", "violations"}
_TEXT = {"case_id", "binding", "role", "dialogue_id", "status", "fault"}


def _type(name: str) -> pl.DataType:
    return pl.Int32() if name in _WHOLE else pl.String() if name in _TEXT else pl.Float64()


def _watched(dialogue: Dialogue | None) -> dict[str, float | None]:
    """What the evaluated role did, as far as the dialogue tells."""
    if dialogue is None:
        return dict.fromkeys(_WATCHED)
    lengths = [len(dialogue.messages[i].content) for i in dialogue.turns()]
    asks = asks_of(dialogue, dialogue.evaluated_role)
    return {
        "messages": len(lengths), "chars": share(sum(lengths), len(lengths)),
        "decisions": asks.decided if asks else None, "silent": asks.silence_rate if asks else None,
    }  # fmt: skip
