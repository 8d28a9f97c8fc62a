"""Held-out cases: what the policy does, now and then, on cases that teach it nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from anthrolab.files import write_parquet
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.scores import case_pass, case_score, dialogue_score, turn_score
from anthrolab.training.grpo.files import Had
from anthrolab.training.reward.batch import Dimensions

TYPES: dict[str, Any] = {
    "step": pl.Int32, "case_id": pl.String, "binding": pl.String, "role": pl.String, "category": pl.String, "sample": pl.Int32,
    "dialogue_id": pl.String, "valid": pl.Boolean, "score": pl.Float64, "turn_score": pl.Float64, "dialogue_score": pl.Float64, "passed": pl.Boolean,
}  # fmt: skip


def is_due(step: int, steps: int, every: int) -> bool:
    """Whether the held-out cases are looked at after so many steps: before the first, every n-th, after the last."""
    return step == 0 or step == steps or step % every == 0


def write_held_out(path: Path, step: int, had: Had, rubric: Rubric, dimensions: Dimensions) -> None:
    """One row a case: as judged, with a score per dimension. valid is null where the dialogue could not be had or the judge
    failed; scores are null where it is not True."""
    rows = []
    for rollout, judged in had:
        valid = None if judged is None or judged.status == "judge_failed" else judged.status == "scored"
        verdict = judged.verdict if judged and valid else None
        row: dict[str, Any] = {
            "step": step, "case_id": rollout.case.id, "binding": rollout.case.binding, "role": rollout.case.role,
            "category": rollout.case.category, "sample": 0, "dialogue_id": rollout.dialogue.dialogue_id if rollout.dialogue else None,
            "valid": valid, "score": case_score(verdict, rubric) if verdict else None,
            "turn_score": turn_score(verdict, rubric) if verdict else None, "dialogue_score": dialogue_score(verdict, rubric) if verdict else None,
            "passed": case_pass(verdict) if verdict else None,
        }  # fmt: skip
        scores = judged.scores if judged and valid else dimensions.row({})
        row |= {f"s_{i}": None if s != s else float(s) for i, s in zip(dimensions.ids, scores, strict=True)}
        rows.append(row)
    write_parquet(path, pl.DataFrame(rows, schema={**TYPES, **{f"s_{i}": pl.Float64 for i in dimensions.ids}}))


def read_held_out(folder: Path, steps: Sequence[int] | None = None) -> pl.DataFrame:
    """The held-out rows of a training (its folder `held_out`), of all steps or of those named; empty if there are none."""
    paths = [p for p in sorted(folder.glob("[0-9]*.parquet")) if steps is None or int(p.stem) in steps]
    return pl.concat([pl.read_parquet(p.read_bytes()) for p in paths]) if paths else pl.DataFrame(schema=TYPES)
