"""A training's manifest: what it was begun with, so that nobody goes on with something else."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anthrolab.files import read_text, write_atomic
from anthrolab.training.settings import TrainingError


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest, empty if there is none; TrainingError if it is damaged."""
    if not path.exists():
        return {}
    try:
        found = json.loads(read_text(path))
        if not isinstance(found, dict):
            raise ValueError("it holds no fields")
    except ValueError as e:
        raise TrainingError(f"{path}: not valid JSON ({e}); put it back, or give another folder with --out") from e
    return found


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    write_atomic(path, json.dumps(manifest, ensure_ascii=False, indent=2) + "\n")


def same(there: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether all parts of `now` stand in a manifest as they are."""
    return all(there.get(part) == json.loads(json.dumps(value)) for part, value in now.items())


def check_same(out: Path, there: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """TrainingError naming the first part in which the training in `out` was begun with something else than `now`."""
    for part, value in now.items():
        today, then = json.loads(json.dumps(value)), there.get(part)
        if then == today:
            continue
        where = part
        if isinstance(then, dict) and isinstance(today, dict):
            name = next(n for n in {**today, **then} if (n in then, then.get(n)) != (n in today, today.get(n)))
            where, then, today = f"{part}.{name}", then.get(name), today.get(name)
        raise TrainingError(f"{out}: was begun with {where} = {then!r} and not {today!r}; give another folder with --out, or go on with the same")
