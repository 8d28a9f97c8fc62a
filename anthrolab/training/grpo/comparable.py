"""What trainings must share to be compared, and in what else they differ, by their manifests. Pure."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anthrolab.training.grpo.settings import INITIAL
from anthrolab.training.settings import TrainingError

SAME = ("judge", "partner", "rubric", "cards", "prompts", "skills")
"""Fields of a manifest that must be equal: a difference in the score could come from any of them."""

SAME_SETTINGS = ("kind", "max_messages", "max_new_tokens", "window", "temperature")
"""Settings that must be equal too: they decide how the held-out chats are made."""

POLICY = ("base", "adapter")
"""Fields of a manifest that name the policy at the beginning, by its content."""


def require_same(folders: Sequence[Path], manifests: Sequence[dict[str, Any]]) -> None:
    """TrainingError where a manifest differs from the first one's in what the held-out chats and their scores depend on."""
    first = manifests[0]
    for folder, manifest in zip(folders[1:], manifests[1:], strict=True):
        for key in SAME:
            if manifest.get(key) != first.get(key):
                raise TrainingError(f"{folder}: its {key} differs from that of {folders[0]} (see {key} in both manifests); compare trainings that share it")
        for key in SAME_SETTINGS:
            if manifest["settings"].get(key) != first["settings"].get(key):
                raise TrainingError(f"{folder}: its setting {key} is not that of {folders[0]}; compare trainings that share it")
        if first["settings"].get("partner") == INITIAL and policy_of(manifest) != policy_of(first):
            raise TrainingError(f"{folder}: its partner is its own first policy, which is not that of {folders[0]}; compare trainings that share it")


def policy_of(manifest: Mapping[str, Any]) -> list[Any]:
    """What names the policy at the beginning."""
    return [manifest.get(key) for key in POLICY]


def differences(first: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Every field of settings, reward, initial capability and cases in which a manifest differs from the first one's, with
    both values, the first one's first."""
    found = []
    for part in ("settings", "reward", "capability"):
        one, two = first.get(part) or {}, other.get(part) or {}
        found += [f"{part}.{key} ({_told(one.get(key))}, here {_told(two.get(key))})" for key in dict.fromkeys([*one, *two]) if one.get(key) != two.get(key)]
    if first.get("cases") != other.get("cases"):
        found.append(f"cases ({_told(first.get('cases'))}, here {_told(other.get('cases'))})")
    return found


def _told(value: Any) -> str:
    """A value of a manifest in a few words; of a long list how many there are."""
    if isinstance(value, list) and len(value) > 3:
        return f"{len(value)}: {value[0]} to {value[-1]}"
    return f"{value:.4g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
