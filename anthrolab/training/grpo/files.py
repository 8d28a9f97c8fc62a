"""What a training keeps of each step: rollouts with their tokens, so that nothing is played or judged twice."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from anthrolab.bench.cases import Case
from anthrolab.files import append_line, whole_lines, write_atomic
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.training.grpo.rollout import Decision, Rollout
from anthrolab.training.reward.batch import Dimensions, Floats
from anthrolab.training.reward.capability import Capability, Seen
from anthrolab.training.reward.service import Judged
from anthrolab.training.settings import TrainingError

Had = list[tuple[Rollout, Judged | None]]
"""The rollouts of a step, each with what the judge said; None where the dialogue could not be had."""


KIND = "grpo"
"""What the manifest of such a training says that it is."""

BEFORE = (".lock", "manifest.json", "calls", "checkpoints", "charges.jsonl", "notebooks", ".ipynb_checkpoints", ".DS_Store")
"""What may lie in a folder before its manifest does."""


@dataclass(frozen=True)
class Folder:
    """The folder of a GRPO training."""

    path: Path

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def log(self) -> Path:
        return self.path / "log.jsonl"

    @property
    def capability(self) -> Path:
        return self.path / "capability.jsonl"

    @property
    def alarms(self) -> Path:
        return self.path / "alarms.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def calls(self) -> Path:
        return self.path / "calls"

    @property
    def rewards(self) -> Path:
        return self.path / "rewards"

    def rollouts(self, step: int) -> Path:
        """The rollouts of a step (from 1)."""
        return self.path / "rollouts" / f"{step:04d}.jsonl"

    def timeline(self, step: int) -> Path:
        return self.path / "timeline" / f"{step:04d}.jsonl"

    def held_out(self, step: int) -> Path:
        """The held-out cases as judged after so many steps."""
        return self.path / "held_out" / f"{step:04d}.parquet"

    def held_out_rollouts(self, step: int) -> Path:
        return self.path / "held_out" / f"{step:04d}.jsonl"

    def check_own(self, manifest: Mapping[str, Any]) -> None:
        """TrainingError if what lies in the folder is no GRPO training: nothing in it may be touched then."""
        if manifest and manifest.get("kind") != KIND:
            raise TrainingError(f"{self.path}: holds something else than a GRPO training (see its manifest.json); give another folder with --out")
        foreign = [] if manifest or not self.path.is_dir() else sorted(p.name for p in self.path.iterdir() if p.name not in BEFORE)
        if foreign:
            raise TrainingError(f"{self.path}: holds other files ({foreign[0]}); give the training a folder of its own with --out")

    def forget_steps(self) -> None:
        """Remove what was played and judged; replies that were paid for stay in `calls`."""
        for name in ("rollouts", "rewards", "timeline", "held_out"):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for path in (self.log, self.capability, self.alarms):
            path.unlink(missing_ok=True)


def write_rollouts(path: Path, had: Had, dimensions: Dimensions) -> None:
    """One rollout a line: the record, the tokens of every decision, and the judgement. Whole or not at all."""
    lines = []
    for rollout, judged in had:
        row = {
            "number": rollout.number, "group": rollout.group, "case": asdict(rollout.case), "fault": rollout.fault,
            "dialogue": rollout.dialogue.model_dump(mode="json") if rollout.dialogue else None,
            "decisions": [[d.prompt, d.completion, d.logprobs] for d in rollout.decisions],
            "judged": judged.as_row(dimensions) if judged else None,
        }  # fmt: skip
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    write_atomic(path, "".join(lines))


def read_rollouts(path: Path, dimensions: Dimensions) -> Had:
    """What `write_rollouts` wrote; TrainingError names the line that is damaged."""
    had: Had = []
    for number, line in enumerate(whole_lines(path), 1):
        try:
            row = json.loads(line)
            dialogue = Dialogue.model_validate_json(json.dumps(row["dialogue"])) if row["dialogue"] else None
            decisions = [Decision(tuple(p), tuple(c), None if lp is None else tuple(lp)) for p, c, lp in row["decisions"]]
            rollout = Rollout(row["number"], row["group"], Case(**row["case"]), dialogue, row["fault"], decisions)
            had.append((rollout, Judged.of_row(row["judged"], dimensions) if row["judged"] else None))
        except (ValueError, KeyError, TypeError, ValidationError) as e:
            said = str(e).splitlines()[0]
            raise TrainingError(f"{path}: line {number}: no rollout ({said}); put the file back (of a step that was not learnt from yet, remove it: the step is played anew)") from e
    return had


def write_capability(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Replace capability.jsonl."""
    write_atomic(path, "".join(json.dumps(row) + "\n" for row in rows))


def add_capability(path: Path, row: Mapping[str, Any]) -> None:
    """Append a step's row."""
    append_line(path, json.dumps(row))


def capability_row(step: int, capability: Capability, seen: Seen | None) -> dict[str, Any]:
    """A row of capability.jsonl: the estimate after the step's batch, and what the batch showed (null for step 0)."""

    def named(values: Floats | None) -> dict[str, float | None] | None:
        return None if values is None else {i: None if v != v else float(v) for i, v in zip(capability.ids, values, strict=True)}

    return {
        "step": step, "theta": named(capability.theta), "P": named(capability.P), "mean": named(seen.mean if seen else None),
        "noise": named(seen.noise if seen else None), "gain": named(seen.gain if seen else None), "count": named(seen.count if seen else None),
    }  # fmt: skip
