"""A small GRPO training as a process of its own, so that it can be killed: python -m tests.grpo_command POLICY OUT SYSTEMS STEPS."""

import sys
from pathlib import Path
from typing import Any

from anthrolab.training.grpo.settings import GRPOSettings
from anthrolab.training.grpo.train import Files, train
from tests.policy_for_tests import CASE


def settings_of(policy: str | Path, out: Path, **changes: Any) -> GRPOSettings:
    """A transcript policy against the scripted partner "toy", two cases, four dialogues each, held-out cases now and then."""
    given = {
        "policy": str(policy), "out": out, "kind": "transcript", "partner": "toy", "steps": 4, "group": 4, "cases": [CASE], "max_messages": 5, "max_new_tokens": 8,
        "least_contract": 0.0, "learning_rate": 3e-3, "held_out_cases": ["b02-a"], "held_out_every": 2, "dtype": "float32", "max_length": 30_000,
        "token_budget": 60_000, "skills": "none", "lora_rank": 4, "threads": 1, "window": 4,
    }  # fmt: skip
    return GRPOSettings.of(**{**given, **changes})


def main(policy: str, out: str, systems: str, steps: str) -> None:
    train(settings_of(policy, Path(out), steps=int(steps)), files=Files(systems=Path(systems)))


if __name__ == "__main__":
    main(*sys.argv[1:])
