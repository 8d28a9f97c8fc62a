"""A folder of saved chats: a run folder whose cases are chats with a person, so that gate, judges and notebook 05 take it."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anthrolab.bench.manifest import check_same, code_hash, library_versions, with_new
from anthrolab.bench.plan import chat_job
from anthrolab.bench.settings import Limits, State
from anthrolab.bench.store import Run
from anthrolab.cards.library import Library
from anthrolab.live.events import SessionLog
from anthrolab.live.scene import ChatError, Setting
from anthrolab.models.opening import model_identity
from anthrolab.models.systems import System
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.runtime.prompt import prompts_hash

PERSON = "a person"
"""Stands where a run names its partner."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]{0,39}")


@dataclass(frozen=True)
class Saved:
    """One chat in its folder."""

    run: Run
    chat: str
    dialogue_id: str

    @property
    def log(self) -> SessionLog:
        """Its events."""
        return SessionLog(self.run.path / "chats" / f"{self.chat}.jsonl")

    @property
    def calls(self) -> Path:
        """The log of its model calls."""
        return self.run.calls / f"{self.chat}.jsonl"

    def keep(self, dialogue: Dialogue) -> None:
        """Have the dialogue as it stands now in dialogues.jsonl, in the place of its older form if it is there."""
        lines = {d.dialogue_id: d.to_line() for d in self.run.dialogues().values()}
        lines[dialogue.dialogue_id] = dialogue.to_line()
        chats = self.run.manifest()["settings"]["chats"]
        order = [chat_job(self.run.manifest()["run"], **chat).dialogue_id for chat in chats]
        self.run.settle("dialogues.jsonl", [lines[key] for key in order if key in lines])
        _count(self.run)


def next_name(folder: Path) -> str:
    """The name of the next new chat in a folder: chat01, chat02, ..."""
    there = [p.stem for p in (folder / "chats").glob("chat*.jsonl")]
    numbers = [int(name[4:]) for name in there if name[4:].isascii() and name[4:].isdigit()]
    return f"chat{max(numbers, default=0) + 1:02d}"


@contextmanager
def saved_chat(
    folder: Path, chat: str, setting: Setting, tested: System, library: Library, limits: Limits, state: State, seed: int
) -> Iterator[Saved]:
    """A chat in a folder that is locked meanwhile. RunError if other things stand there, or chats under other settings.

    A folder holds chats with one system under the same limits; personas and scenarios may differ.
    """
    if not _NAME.fullmatch(chat):
        raise ChatError(f"--chat {chat}: letters, digits and _ only, at most 40, such as chat01")
    run = Run(folder)
    with run.locked():
        run.mend()
        entry = {"chat": chat, "role": setting.seat.speaker, "category": setting.category}
        manifest = _manifest(run, tested, library, limits, state, seed)
        if (run.path / "manifest.json").exists():
            old = run.manifest()
            if "chats" not in old["settings"]:
                raise ChatError(f"{folder}: holds a run of two models; give chats a folder of their own")
            check_same(old, manifest, str(run.path / "manifest.json"))
            for key in ("run", "counts", "judges"):
                manifest[key] = old[key]
            manifest["code"], manifest["versions"] = with_new(old["code"], code_hash()), with_new(old["versions"], library_versions())
            manifest["settings"]["chats"] = old["settings"]["chats"]
        else:
            manifest["settings"]["chats"] = []
            run.check_own()
        if entry not in manifest["settings"]["chats"]:
            if any(other["chat"] == chat for other in manifest["settings"]["chats"]):
                raise ChatError(f"{folder}: {chat} is a chat with another persona or another side; give another --chat")
            manifest["settings"]["chats"].append(entry)
        run.write_manifest(manifest)
        _count(run)
        yield Saved(run, chat, chat_job(manifest["run"], **entry).dialogue_id)  # type: ignore[arg-type]


def _manifest(run: Run, tested: System, library: Library, limits: Limits, state: State, seed: int) -> dict[str, Any]:
    return {
        "run": run.name,
        "settings": {
            "system": tested.model_dump(mode="json"), "partner": {"name": PERSON}, "limits": limits.as_settings(),
            "summary": state.summary_setting(), "seed": seed, "samples": 1,
        },
        "hashes": {
            "cards": library.content_hash(), "prompts": prompts_hash(), "skills": [skill.label for skill in state.skills],
            "system": model_identity(tested), "partner": PERSON, "summary": state.summary_identity(),
        },
        "code": [code_hash()], "versions": [library_versions()], "counts": {}, "judges": {},
    }  # fmt: skip


def _count(run: Run) -> None:
    manifest = run.manifest()
    planned, done = len(manifest["settings"]["chats"]), len(run.dialogues())
    counts: Mapping[str, int] = {"planned": planned, "done": done, "failed": 0, "missing": planned - done}
    if manifest["counts"] != counts:
        run.write_manifest({**manifest, "counts": counts})
