"""The log of a GRPO training: a row a step, alarms, the step's timeline, and a line of progress with time and cost left."""

import json
import time
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import numpy as np

from anthrolab.files import append_line
from anthrolab.judging.verdict import RULES
from anthrolab.training.checkpoints import read_log
from anthrolab.training.grpo.files import Folder, Had
from anthrolab.training.grpo.timeline import Span, Timeline
from anthrolab.training.grpo.watch import WatchSettings, alarms, watched
from anthrolab.training.reward.batch import Floats
from anthrolab.training.training_log import Say, duration, give_back_memory, refuse_not_finite


@dataclass
class StepFacts:
    """What is known of the step under way besides what TRL says."""

    row: dict[str, Any] = field(default_factory=dict)
    timeline: Timeline = field(default_factory=Timeline)
    learning_since: float = 0.0

    def of_step(self, step: int, had: Had, reward: Floats, flat: tuple[int, int], timeline: Timeline, cost: float | None, judge: str, held_out_seconds: float) -> None:
        """The step's rollouts and rewards, as they stand in the log. cost: USD, all that this command has cost so far."""
        known = reward[~np.isnan(reward)]
        judged = [j for _, j in had if j is not None]
        dialogues = [r.dialogue for r, _ in had if r.dialogue is not None]
        violations = [len(j.gate.violations) for r, j in had if j is not None and r.dialogue is not None]
        by_rules = [j.rules_score for j in judged if j.rules_score is not None and judge != RULES]  # of the judge itself it says nothing new
        self.row = {
            "step": step, "reward": float(known.mean()) if len(known) else None, "reward_std": float(known.std(ddof=1)) if len(known) > 1 else None,
            "rollouts": len(had), "no_reward": len(had) - len(known), "invalid": sum(j.status == "invalid" for j in judged),
            "groups": flat[1], "flat_groups": flat[0], "decisions": sum(len(r.decisions) for r, _ in had), "tokens": sum(r.tokens for r, _ in had),
            **watched(dialogues, violations), "rules_score": float(np.mean(by_rules)) if by_rules else None, "cost": cost,
            "held_out_seconds": held_out_seconds,
        }  # fmt: skip
        self.timeline, self.learning_since = timeline, time.monotonic()

    def learnt(self) -> None:
        """The optimiser's step is done."""
        began = self.timeline.began
        self.timeline.spans.append(Span("train", f"step {self.row['step']}", round(self.learning_since - began, 4), round(time.monotonic() - began, 4)))


def log_callback(folder: Folder, facts: StepFacts, watch: WatchSettings, say: Say) -> Any:
    """A callback of transformers that writes log.jsonl, alarms.jsonl and the timelines, and stops at an alarm if that is wanted.

    TrainingError at a loss or gradient that is no finite number, before a checkpoint of that step is kept.
    """
    from transformers import TrainerCallback

    class Log(TrainerCallback):
        def __init__(self) -> None:
            self.took: list[float] = []

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            facts.learnt()

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
            if not logs or "loss" not in logs:
                return
            refuse_not_finite(folder.path, state.global_step, logs)
            told = {name: float(logs[name]) if name in logs else None for name in ("loss", "kl", "entropy", "grad_norm", "learning_rate")}
            row = {**facts.row, "step": state.global_step, **told, "seconds": round(facts.timeline.seconds, 3)}
            append_line(folder.log, json.dumps(row))
            facts.timeline.write(folder.timeline(state.global_step))
            give_back_memory()
            self.took.append(row["seconds"])
            self._say(row, state)
            self._watch(state, control)

        def _say(self, row: dict[str, Any], state: Any) -> None:
            left = state.max_steps - state.global_step
            reward = "no reward" if row["reward"] is None else f"reward {row['reward']:.4f}"
            cost = "" if not row["cost"] else f", {row['cost']:.4f} USD in this command, about {row['cost'] / len(self.took) * left:.4f} to come"
            said = f"{row['invalid']} of {row['rollouts']} invalid, {row['messages'] or 0:.1f} messages a dialogue, {row['flat_groups']} of {row['groups']} groups flat"
            say(f"step {state.global_step} of {state.max_steps}: {reward}, {said}; {row['seconds']:.1f} s, about {duration(median(self.took) * left)} left{cost}")

        def _watch(self, state: Any, control: Any) -> None:
            known = {(a["step"], a["quantity"]) for a in read_log(folder.alarms)}
            fresh = [a for a in alarms(read_log(folder.log), watch) if (a.step, a.quantity) not in known]
            for alarm in fresh:
                append_line(folder.alarms, json.dumps(asdict(alarm), ensure_ascii=False))
                say(f"ALARM at step {alarm.step}: {alarm.said}")
            if fresh and watch.stop:
                control.should_training_stop = True
                control.should_save = True

    return Log()
