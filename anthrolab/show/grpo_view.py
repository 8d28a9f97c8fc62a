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
from anthrolab.training.checkpoints import read_log
from anthrolab.training.grpo.compare import held_out_by_step, manifest_of
from anthrolab.training.grpo.files import Folder
from anthrolab.training.grpo.timeline import Span, read_timeline
from anthrolab.training.grpo.watch import Alarm, WatchSettings, alarms
from anthrolab.training.reward.log import read_rewards
from anthrolab.training.settings import TrainingError


@dataclass(frozen=True)
class TrainingView:
    """A training as it is shown. rows: its log, a row a step; held_out: the held-out cases by step; watch: the settings that
    `alarms` were raised with."""

    path: Path
    manifest: dict[str, Any]
    rows: Sequence[dict[str, Any]]
    held_out: dict[int, pl.DataFrame]
    watch: WatchSettings
    alarms: Sequence[Alarm]

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def state(self) -> str:
        """How far it came, in words."""
        if self.manifest.get("finished") is not True:
            return "not finished"
        wanted = int(self.manifest.get("steps_wanted") or len(self.rows))
        return "finished" if len(self.rows) >= wanted else f"stopped by the watch before its {wanted} steps"

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
        """`step`, or the last one for 0; TrainingError if it is not done."""
        if not self.rows:
            raise TrainingError(f"{self.path}: no step is done yet; let the training go on")
        if step and step not in self.steps:
            raise TrainingError(f"{self.path}: has no step {step}; done are {self.steps[0]} to {self.steps[-1]}")
        return step or self.steps[-1]


@dataclass(frozen=True)
class RolloutView:
    """A dialogue of a step: its row of rewards/ and its row in rollouts/ (gate and verdict as JSON values). dialogue: None
    where it could not be had."""

    dialogue: Dialogue | None
    judged: dict[str, Any]
    reward: dict[str, Any]


def read_training(path: Path, watch: WatchSettings | None = None) -> TrainingView:
    """What there is of a training, with the alarms that `watch` raises over its log (None: as it is by itself); TrainingError
    for a folder that holds none."""
    manifest, folder, settings = manifest_of(path), Folder(path), watch or WatchSettings()
    try:
        rows = read_log(folder.log)
    except ValueError as e:
        raise TrainingError(f"{folder.log}: a line cannot be read ({e}); restore the file, or train again in another folder") from e
    return TrainingView(path, manifest, rows, held_out_by_step(path), settings, alarms(rows, settings))


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
        raise TrainingError(f"{path}: a line cannot be read ({type(e).__name__}); remove the file and train on, which writes it again") from e
    nothing: tuple[None, dict[str, Any]] = (None, {})
    given = rewards.filter(pl.col("step") == step).iter_rows(named=True)
    joined = [(*chats.get(row["dialogue_id"], nothing), row) for row in given]
    return [RolloutView(chat, judged, row) for chat, judged, row in joined]


def read_spans(view: TrainingView, step: int) -> list[Span]:
    """Who worked when in a step; none where it was not written down."""
    path = Folder(view.path).timeline(step)
    return read_timeline(path) if path.exists() else []
