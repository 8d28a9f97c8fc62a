"""A folder of saved chats: a run folder whose cases are chats with a person, so that gate, judges and notebook 05 take it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anthrolab.bench.manifest import check_same, code_hash, library_versions, with_new
from anthrolab.bench.plan import chat_job, chat_jobs, count
from anthrolab.bench.settings import Limits, State
from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import Library
from anthrolab.live.events import Begun
from anthrolab.live.scene import ChatError, Setting
from anthrolab.live.session_log import SessionLog
from anthrolab.live.table import Table
from anthrolab.models.opening import model_identity
from anthrolab.models.systems import System
from anthrolab.runtime.prompt import prompts_hash

PERSON = "a person"
"""Stands where a run names its partner."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]{0,39}")


@dataclass(frozen=True)
class Saved:
    """One chat in its folder. `entry` is what the manifest says of it once it is kept."""

    run: Run
    entry: Mapping[str, Any]
    dialogue_id: str

    @property
    def log(self) -> SessionLog:
        """Its events."""
        return _log(self.run.path, self.entry["chat"])

    @property
    def calls(self) -> Path:
        """The log of its model calls."""
        return self.run.calls / f"{self.entry['chat']}.jsonl"

    def keep(self, chat: Table) -> None:
        """Have the chat as it stands now in the folder's plan and among its dialogues, or, where the model could not be had,
        among its failures. A chat to which the person has said nothing, or that nobody has answered, is no case."""
        state = chat.state
        spoken = any(m.speaker == state.person for m in state.messages[chat.setting.opener is not None :])
        if not spoken or not (state.answers or state.failed):
            return
        manifest = self.run.manifest()
        chats: list[dict[str, Any]] = manifest["settings"]["chats"]
        if self.entry not in chats:
            chats.append(dict(self.entry))
            self.run.write_manifest(manifest)
        jobs = chat_jobs(self.run, manifest)
        planned = [job.dialogue_id for job in jobs]
        dialogues = self.run.dialogues()
        failures = {row["dialogue_id"]: row for row in self.run.rows("failures.jsonl")}
        failures.pop(self.dialogue_id, None)
        if state.failed is None:
            dialogues[self.dialogue_id] = chat.dialogue()
        else:
            dialogues.pop(self.dialogue_id, None)
            system = manifest["settings"]["system"]["name"]
            failed = {"fault": state.failed.fault, "error": state.failed.message, "side": "tested", "system": system}
            failures[self.dialogue_id] = {"dialogue_id": self.dialogue_id, **failed}
        if strange := sorted(set(dialogues) - set(planned)):
            raise RunError(f"{self.run.path / 'dialogues.jsonl'}: {strange[0]} is not among the chats of manifest.json; restore that file, or move the line elsewhere")
        self.run.settle("dialogues.jsonl", [dialogues[key].to_line() for key in planned if key in dialogues])
        self.run.settle("failures.jsonl", [json.dumps(failures[key], ensure_ascii=False) for key in planned if key in failures])
        self.run.write_manifest({**manifest, "counts": count(jobs, dialogues, list(failures.values()))})


def next_name(folder: Path) -> str:
    """The name of the next new chat in a folder: chat01, chat02, ..."""
    there = [p.stem for p in (folder / "chats").glob("chat*.jsonl")]
    numbers = [int(name[4:]) for name in there if name[4:].isascii() and name[4:].isdigit()]
    return f"chat{max(numbers, default=0) + 1:02d}"


def begun_chat(folder: Path, chat: str) -> Begun | None:
    """What a chat of a folder was opened with; None if it has not begun. ChatError for a name that cannot be one."""
    if not _NAME.fullmatch(chat):
        raise ChatError(f"--chat {chat}: letters, digits and _ only, at most 40, such as chat01")
    return _log(folder, chat).begun()


@contextmanager
def saved_chat(
    folder: Path, chat: str, setting: Setting, tested: System, library: Library, limits: Limits, state: State, seed: int, analyser: str
) -> Iterator[Saved]:
    """A chat in a folder that is locked meanwhile. ChatError or RunError if other things stand there, or chats under other
    settings: a folder holds chats with one system under the same limits, while personas and scenarios may differ.
    """
    run = Run(folder)
    begun_chat(folder, chat)
    with run.locked():
        manifest = _manifest(run, tested, library, limits, state, seed)
        entry = {"chat": chat, "role": setting.seat.speaker, "category": setting.category, "analyser": analyser}
        there = sorted((folder / "chats").glob("*.jsonl"))
        if (run.path / "manifest.json").exists():
            run.mend()
            manifest = _goes_on(run, manifest, entry, there)
        elif there or (run.path / "dialogues.jsonl").exists():
            raise RunError(f"{folder}: holds chats but no manifest.json; restore it, or use another folder")
        run.check_own()
        run.write_manifest(manifest)
        yield Saved(run, entry, chat_job(manifest["run"], chat, setting.seat.speaker, setting.category).dialogue_id)


def _goes_on(run: Run, manifest: dict[str, Any], entry: Mapping[str, Any], there: Sequence[Path]) -> dict[str, Any]:
    """The manifest of a folder in which chats were had before; one in which nobody has said anything begins anew."""
    path, old = run.path / "manifest.json", run.manifest()
    if "chats" not in old["settings"]:
        raise ChatError(f"{run.path}: holds a run of two models; give chats a folder of their own")
    chats = old["settings"]["chats"]
    chat_jobs(run, old)
    run.dialogues()  # a damaged line is said now, and not when the chat is closed
    if any(known["chat"] == entry["chat"] for known in chats) and run.path / "chats" / f"{entry['chat']}.jsonl" not in there:
        raise ChatError(f"{run.path}: the events of {entry['chat']} (chats/{entry['chat']}.jsonl) are gone; restore the file, or begin another chat")
    if chats or any(b'"event":"message"' in path.read_bytes() for path in there):
        check_same(old, manifest, str(path), another="folder")
        manifest["code"], manifest["versions"] = with_new(old["code"], code_hash()), with_new(old["versions"], library_versions())
        manifest |= {key: old[key] for key in ("run", "counts", "judges")}
    manifest["settings"]["chats"] = chats
    return manifest


def _log(folder: Path, chat: str) -> SessionLog:
    return SessionLog(folder / "chats" / f"{chat}.jsonl")


def _manifest(run: Run, tested: System, library: Library, limits: Limits, state: State, seed: int) -> dict[str, Any]:
    return {
        "run": run.name,
        "settings": {
            "system": tested.model_dump(mode="json"), "partner": {"name": PERSON}, "limits": limits.as_settings(),
            "summary": state.summary_setting(), "seed": seed, "samples": 1, "chats": [],
        },
        "hashes": {
            "cards": library.content_hash(), "prompts": prompts_hash(), "skills": [skill.label for skill in state.skills],
            "system": model_identity(tested), "partner": PERSON, "summary": state.summary_identity(),
        },
        "code": [code_hash()], "versions": [library_versions()], "counts": {}, "judges": {},
    }  # fmt: skip
