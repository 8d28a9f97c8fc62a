"""The log of a training, a row a step, and a line of progress with the time that is left."""

import json
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from anthrolab.files import append_line
from anthrolab.training.checkpoints import read_log
from anthrolab.training.settings import TrainingError

Say = Callable[[str], None]


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(75), duration(4000)
    ('1 min 15 s', '1 h 6 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def give_back_memory() -> None:
    """Return freed memory to the system, where the C library can. Batches are of unequal sizes, and without this a training
    on a processor grows by some 300 MB a step."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc; macOS has none
    if trim is not None:
        trim(0)


def refuse_not_finite(folder: Path, step: int, logs: Mapping[str, Any]) -> None:
    """TrainingError at a loss or gradient that is no finite number."""
    for name in ("loss", "grad_norm"):
        if not math.isfinite(float(logs.get(name, 0.0))):
            raise TrainingError(
                f"{folder}: step {step}: {name} is {float(logs[name])}, so nothing is learnt any more; "
                "lower learning_rate, or set dtype to float32, and give another folder with --out"
            )


def log_callback(path: Path, say: Say) -> Any:
    """A callback of transformers that appends {step, epoch, loss, grad_norm, learning_rate, tokens, seconds} to `path`.

    `tokens` counts what went through the model since the first step, `seconds` is what the step took.
    TrainingError at a loss or gradient that is no finite number, before a checkpoint of that step is kept.
    """
    from transformers import TrainerCallback

    class Log(TrainerCallback):
        def __init__(self) -> None:
            self.began = self.first = time.monotonic()
            self.first_step = 0
            self.tokens_before = 0

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.began = self.first = time.monotonic()
            self.first_step = state.global_step
            rows = read_log(path)
            self.tokens_before = rows[-1]["tokens"] if rows else 0

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
            if not logs or "loss" not in logs:
                return
            refuse_not_finite(path.parent, state.global_step, logs)
            now = time.monotonic()
            row = {
                "step": state.global_step,
                "epoch": round(float(state.epoch or 0), 4),
                "loss": float(logs["loss"]),
                "grad_norm": float(logs.get("grad_norm", 0.0)),
                "learning_rate": float(logs["learning_rate"]),
                "tokens": self.tokens_before + int(logs.get("num_tokens", 0)),
                "seconds": round(now - self.began, 3),
            }
            self.began = now
            append_line(path, json.dumps(row))
            give_back_memory()
            done = state.global_step - self.first_step
            left = (now - self.first) / max(1, done) * (state.max_steps - state.global_step)
            say(f"step {state.global_step} of {state.max_steps}: loss {row['loss']:.4f}, {row['seconds']:.1f} s, about {duration(left)} left")

    return Log()
