"""Checkpoints that are whole, and the log up to them: what a killed training goes on from."""

import json
import shutil
from pathlib import Path
from typing import Any

from anthrolab.files import whole_lines, write_atomic

NEEDED = ("trainer_state.json", "optimizer.pt", "scheduler.pt", "rng_state.pth")
"""Files without which a training cannot go on as if nothing had happened; the first is written last."""


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rsplit("-", 1)[1])


def is_last(checkpoint: Path) -> bool:
    """Whether the training's last planned step lies in a whole checkpoint."""
    planned: int = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))["max_steps"]
    return step_of(checkpoint) >= planned


def last_checkpoint(folder: Path, also: tuple[str, ...] = ()) -> Path | None:
    """The newest whole checkpoint; broken ones, which a kill left, are removed. `also`: further files that a whole one has."""
    whole: list[Path] = []
    for checkpoint in sorted(folder.glob("checkpoint-*"), key=step_of):
        if _is_whole(checkpoint, also):
            whole.append(checkpoint)
        else:
            shutil.rmtree(checkpoint)
    return whole[-1] if whole else None


def _is_whole(checkpoint: Path, also: tuple[str, ...]) -> bool:
    try:
        state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return state.get("global_step") == step_of(checkpoint) and all((checkpoint / name).exists() for name in (*NEEDED, *also))


def read_log(path: Path) -> list[dict[str, Any]]:
    """The rows of a training's log; a last line that a kill left half-written is passed over."""
    return [json.loads(line) for line in whole_lines(path)] if path.exists() else []


def cut_log(path: Path, step: int) -> None:
    """Leave only the rows up to a step: those after the checkpoint will be written again."""
    rows = read_log(path)
    kept = [row for row in rows if row["step"] <= step]
    if path.exists():
        write_atomic(path, "".join(json.dumps(row) + "\n" for row in kept))
