"""What there is of a GRPO training, read for those who show it: it may be finished or still going on."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ValidationError

from anthrolab.files import whole_lines
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.training.checkpoints import read_log, step_of
from anthrolab.training.grpo.compare import held_out_by_step, manifest_of
from anthrolab.training.grpo.files import Folder
from anthrolab.training.grpo.timeline import Span, read_timeline
from anthrolab.training.grpo.watch import Alarm, WatchSettings, alarms
from anthrolab.training.reward.log import read_rewards
from anthrolab.training.settings import TrainingError

NUMBERS = ("step", "reward", "rollouts", "no_reward", "invalid", "groups", "flat_groups", "decisions", "tokens", "loss", "seconds")
"""What every row of a log has; the reward may be null."""


@dataclass(frozen=True)
class TrainingView:
    """A training as it is shown. rows: its log, a row a step; held_out: the held-out cases by step; watch: the settings that
    `alarms` were raised with; as_raised: the alarms are those that the training raised (False: its log was looked at anew)."""

    path: Path
    manifest: dict[str, Any]
    rows: Sequence[dict[str, Any]]
    held_out: dict[int, pl.DataFrame]
    watch: WatchSettings
    alarms: Sequence[Alarm]
    as_raised: bool = True

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def state(self) -> str:
        """How far it came, in words."""
        if self.manifest.get("finished") is not True:
            return "not finished"
        wanted = int(self.manifest.get("steps_wanted") or len(self.rows))
        ended = int(self.manifest.get("steps") or wanted)
        if self._learnt > ended:
            return f"not finished: it goes on after its {ended} steps"
        return "finished" if ended >= wanted else f"stopped by the watch before its {wanted} steps"

    @property
    def _learnt(self) -> int:
        """The last step that the log or a checkpoint knows of."""
        checkpoints = [step_of(p) for p in Folder(self.path).checkpoints.glob("checkpoint-[0-9]*")]
        return max([0, *self.steps, *checkpoints])

    @property
    def settings(self) -> dict[str, Any]:
        """What it was asked for, as in its manifest."""
        values: dict[str, Any] = self.manifest["settings"]
        return values

    @property
    def steps(self) -> list[int]:
        """The steps that are done."""
        return [int(row["step"]) for row in self.rows]

    def step_or_last(self, step: int) -> int:
        """`step`, or the last one for 0; the last before it whose rollouts are there.
        TrainingError if it is not done, or nothing was kept."""
        if not self.rows:
            raise TrainingError(f"{self.path}: no step is done yet; let the training go on")
        if step and step not in self.steps:
            raise TrainingError(f"{self.path}: has no step {step}; done are {self.steps[0]} to {self.steps[-1]}")
        wanted = step or self.steps[-1]
        kept = [s for s in self.steps if s <= wanted and Folder(self.path).rollouts(s).exists()]
        if not kept:
            raise TrainingError(f"{self.path / 'rollouts'}: holds no rollouts of step {wanted} or before; restore the folder")
        return kept[-1]


@dataclass(frozen=True)
class RolloutView:
    """A dialogue of a step: its row of rewards/ and its row in rollouts/ (gate and verdict as JSON values). dialogue: None
    where it could not be had."""

    dialogue: Dialogue | None
    judged: dict[str, Any]
    reward: dict[str, Any]


def read_training(path: Path) -> TrainingView:
    """What there is of a training, with its watch and the alarms that it raised; TrainingError for a folder that holds none.

    Where the manifest names no watch, or one with other settings than those of now, the log is looked at anew with the usual ones.
    """
    manifest, folder = manifest_of(path), Folder(path)
    rows = _log(folder.log)
    try:
        watch = WatchSettings.model_validate(manifest.get("watch"))
    except ValidationError:
        watch = WatchSettings()
        return TrainingView(path, manifest, rows, held_out_by_step(path), watch, alarms(rows, watch), as_raised=False)
    return TrainingView(path, manifest, rows, held_out_by_step(path), watch, _raised(folder.alarms))


def _raised(path: Path) -> list[Alarm]:
    try:
        return [Alarm(**row) for row in _lines(path)]
    except TypeError:
        raise TrainingError(f"{path}: a line is no alarm (step, quantity, said); restore the file") from None


def _log(path: Path) -> list[dict[str, Any]]:
    """The rows of log.jsonl; TrainingError names the row whose numbers are none."""
    rows = _lines(path)
    for number, row in enumerate(rows, 1):
        for name in NUMBERS:
            value = row.get(name, "missing")
            if isinstance(value, bool) or not (isinstance(value, int | float) or (value is None and name == "reward")):
                raise TrainingError(f"{path}: line {number}: {name} is {value!r:.40} and no number; restore the file, or train again in another folder")
    return rows


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        return read_log(path)
    except ValueError as e:
        raise TrainingError(f"{path}: a line cannot be read ({e}); restore the file, or train again in another folder") from e


def read_rollouts(view: TrainingView, step: int) -> list[RolloutView]:
    """All dialogues of a step with what they were given, in their order; TrainingError if a file is not there or cannot be read."""
    rewards = read_rewards(Folder(view.path).rewards)
    path = Folder(view.path).rollouts(step)
    if not path.exists() or rewards.is_empty():
        raise TrainingError(f"{path}: holds no rollouts of step {step}; give a step that is done")
    chats: dict[str, tuple[Dialogue, dict[str, Any]]] = {}
    try:
        for row in map(json.loads, whole_lines(path)):
            if row["dialogue"] is not None:
                chat = Dialogue.model_validate_json(json.dumps(row["dialogue"]))
                chats[chat.dialogue_id] = (chat, row.get("judged") or {})
    except (ValueError, KeyError, TypeError, ValidationError) as e:
        raise TrainingError(f"{path}: a line cannot be read ({type(e).__name__}); restore the file") from e
    nothing: tuple[None, dict[str, Any]] = (None, {})
    given = rewards.filter(pl.col("step") == step).iter_rows(named=True)
    joined = [(*chats.get(row["dialogue_id"], nothing), row) for row in given]
    return [RolloutView(chat, judged, row) for chat, judged, row in joined]


def read_spans(view: TrainingView, step: int) -> list[Span]:
    """Who worked when in a step; none where it was not written down."""
    path = Folder(view.path).timeline(step)
    return read_timeline(path) if path.exists() else []
