"""Run the product's filter and reward on a file of vectors: python -m tests.spec.reward FILE."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from anthrolab.training.reward.batch import Batch, Dimensions
from anthrolab.training.reward.capability import Capability
from anthrolab.training.reward.reward import rewards
from anthrolab.training.reward.settings import RewardSettings

NEAR = 1e-9


def run_step(step: dict[str, Any], settings: RewardSettings) -> dict[str, Any]:
    """What the product makes of one step, in the vectors' own form."""
    rho = settings.rho or {}
    ids = tuple(rho)
    columns = Dimensions(ids, np.array([i.startswith("D") for i in ids]), np.array([float(rho[i]) for i in ids]))
    rows = [
        (columns.row(d["score"]), columns.row(d["passed"]), bool(d["valid"]), True) for d in step["batch"]
    ]
    batch = Batch.of(rows, len(ids))
    before = Capability(ids, columns.row(step["theta_before"]), columns.row(step["P_before"]))
    found = rewards(batch, before.theta, columns, settings)
    after, seen = before.observe(batch, settings)
    return _null_for_nan({
        "rewards": [
            {
                "legacy": found.legacy[i],
                "cdt_zpd": found.adaptive[i],
                "reward": found.reward[i],
                "alpha": dict(zip(ids, found.alpha[i], strict=True)),
            }
            for i in range(len(batch))
        ],
        "after": {
            k: {"theta": after.theta[i], "P": after.P[i], "gain": seen.gain[i], "noise": seen.noise[i]}
            for i, k in enumerate(ids)
        },
    })


def _null_for_nan(value: Any) -> Any:
    """The vectors write null where there is no number."""
    if isinstance(value, dict):
        return {k: _null_for_nan(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_null_for_nan(v) for v in value]
    return None if value != value else value


def same(expected: Any, found: Any) -> bool:
    """Equal in form, and every number within NEAR."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and expected.keys() == found.keys() and all(same(expected[k], found[k]) for k in expected)
    if isinstance(expected, list):
        return isinstance(found, list) and len(expected) == len(found) and all(map(same, expected, found))
    if expected is None or found is None:
        return expected is found
    return bool(abs(expected - found) <= NEAR)


def main(path: str) -> int:
    """Print N/N matched; 0 only if every step matches."""
    vectors = json.loads(Path(path).read_text(encoding="utf-8"))
    config = {k: v if isinstance(v, dict) else float(v) for k, v in vectors["config"].items()}
    config["rho"] = {k: float(v) for k, v in config["rho"].items()}
    settings = RewardSettings.of(**config)
    matched = 0
    for number, step in enumerate(vectors["steps"]):
        expected = {"rewards": step["rewards"], "after": step["after"]}
        found = run_step(step, settings)
        if same(expected, found):
            matched += 1
        else:
            print(f"step {number} differs")
    print(f"{matched}/{len(vectors['steps'])} matched")
    return 0 if vectors["steps"] and matched == len(vectors["steps"]) else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.spec.reward FILE")
    sys.exit(main(sys.argv[1]))
