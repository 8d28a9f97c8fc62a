"""The run folder: what is on disk of a run, and how it gets there without ever looking more complete than it is.

    runs/<run>/manifest.json     what was run with what, and how much of it is done
               dialogues.jsonl   finished dialogues, one a line
               verdicts.jsonl    finished verdicts, one a line
               retests.jsonl     second verdicts of the same judge on a sample (`anthrolab agreement --retest`)
               gate.jsonl        what the validity gate said of each dialogue
               failures.jsonl    what could not be done in the last command, and why
               charges.jsonl     attempts that may have been charged without a reply (with --max-cost only)
               memories.jsonl    every version of every memory (a series of sessions only)
               chats/            the events of every chat with a person (`anthrolab chat` only)
               calls/            every model call, one file a dialogue and one a judge
               ledgers/<judge>/  cases.parquet, checkboxes.parquet
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from anthrolab.errors import AnthrolabError
from anthrolab.files import append_line, cut_torn_line, only_one, read_text, whole_lines, write_atomic
from anthrolab.judging.verdict import Verdict
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.runtime.memory import MemoryUpdate

R = TypeVar("R", Dialogue, Verdict, MemoryUpdate)

OWN = frozenset(
    {
        "manifest.json", "dialogues.jsonl", "verdicts.jsonl", "retests.jsonl", "gate.jsonl", "failures.jsonl", "memories.jsonl", "charges.jsonl",
        "chats", "calls", "ledgers", "notebooks", ".lock", ".DS_Store", ".ipynb_checkpoints",
    }
)  # fmt: skip
"""What may stand in a run folder."""


class RunError(AnthrolabError):
    """A run folder that cannot be used as asked."""


@dataclass(frozen=True)
class Run:
    """A run folder by its path; its name is the run's name."""

    path: Path

    @property
    def name(self) -> str:
        """The folder's own name; bytes that are no UTF-8 are replaced."""
        return os.fsencode(self.path.resolve().name).decode("utf-8", "replace")

    def check_own(self) -> None:
        """RunError if the folder holds files that are not a run's."""
        foreign = sorted(p.name for p in self.path.iterdir() if p.name not in OWN and not p.name.endswith(".tmp"))
        if foreign:
            raise RunError(f"{self.path}: holds other files ({foreign[0]}); give the run a folder of its own")

    @property
    def calls(self) -> Path:
        """The folder of call logs."""
        return self.path / "calls"

    def ledger(self, judge: str) -> Path:
        """The ledger folder of a judge."""
        return self.path / "ledgers" / judge

    def manifest(self) -> dict[str, Any]:
        """The manifest; RunError if the folder is no run."""
        path = self.path / "manifest.json"
        if not path.exists():
            raise RunError(f"{self.path}: no manifest.json here, so this is no run; make one with `anthrolab run`")
        try:
            manifest = json.loads(read_text(path))
            if not isinstance(manifest, dict):
                raise ValueError("it holds no fields")
        except ValueError as e:
            raise RunError(f"{path}: not valid JSON ({e}); restore it, or use another folder") from e
        lacking = [key for key in ("run", "settings", "hashes", "counts", "judges") if key not in manifest]
        if lacking:
            raise RunError(f"{path}: {lacking[0]} is missing; restore the file, or remove the folder and run again")
        return manifest

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest."""
        write_atomic(self.path / "manifest.json", json.dumps(manifest, ensure_ascii=False, indent=1) + "\n")

    @property
    def has_dialogues(self) -> bool:
        """True if a finished dialogue is on disk."""
        path = self.path / "dialogues.jsonl"
        return path.exists() and path.stat().st_size > 0

    def dialogues(self) -> dict[str, Dialogue]:
        """Finished dialogues by id, in file order."""
        return {d.dialogue_id: d for d in self._records("dialogues.jsonl", Dialogue)}

    def verdicts(self, judge: str) -> dict[str, Verdict]:
        """Finished verdicts of one judge by dialogue id, the latest ones last."""
        return {v.dialogue_id: v for v in self.all_verdicts() if v.judge == judge}

    def all_verdicts(self) -> list[Verdict]:
        """Finished verdicts of all judges, in file order; of verdicts given twice only the later one."""
        latest: dict[tuple[str, str], Verdict] = {}
        for verdict in self._records("verdicts.jsonl", Verdict):
            latest.pop((verdict.judge, verdict.dialogue_id), None)
            latest[verdict.judge, verdict.dialogue_id] = verdict
        return list(latest.values())

    def memory_updates(self) -> list[MemoryUpdate]:
        """Every update of a memory, in file order."""
        return list(self._records("memories.jsonl", MemoryUpdate))

    def add_memory_update(self, update: MemoryUpdate) -> None:
        """Append one update."""
        append_line(self.path / "memories.jsonl", update.model_dump_json())

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of gate.jsonl, failures.jsonl or charges.jsonl; none if there is no such file."""
        path = self.path / name
        if not path.exists():
            return []
        try:
            return [json.loads(line) for line in whole_lines(path)]
        except ValueError as e:
            raise RunError(f"{path}: a line is not valid JSON ({e}); remove the file and run the command again") from e

    def judges(self) -> list[str]:
        """Names of the judges whose ledgers stand here."""
        folder = self.path / "ledgers"
        return sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []

    def add_dialogue(self, dialogue: Dialogue) -> None:
        """Append one finished dialogue."""
        append_line(self.path / "dialogues.jsonl", dialogue.to_line())

    def add_verdict(self, verdict: Verdict) -> None:
        """Append one finished verdict."""
        append_line(self.path / "verdicts.jsonl", verdict.model_dump_json())

    def settle(self, name: str, lines: Iterable[str]) -> None:
        """Replace a JSONL file by its final form, lines in the order of the plan."""
        content = "".join(line + "\n" for line in lines)
        path = self.path / name
        if not path.exists() or read_text(path) != content:
            write_atomic(path, content)

    def mend(self) -> None:
        """Cut off last lines that a killed writer left half-written. What is no run's is left alone."""
        if not (self.path / "manifest.json").exists():
            return
        for name in ("dialogues.jsonl", "verdicts.jsonl", "retests.jsonl", "memories.jsonl", "charges.jsonl"):
            cut_torn_line(self.path / name)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one command at a time works in a run folder; RunError if another is at it."""
        if not self.name:
            raise RunError(f"--run '{self.path}': is no run folder; give a folder of its own, such as runs/first")
        if self.path.is_dir() and not (self.path / "manifest.json").exists():
            self.check_own()  # before a lock is left in somebody else's folder
        busy = RunError(f"{self.path}: another anthrolab command works here; wait for it or use another folder")
        with only_one(self.path, busy):
            yield

    def _records(self, name: str, model: type[R]) -> Iterator[R]:
        path = self.path / name
        if not path.exists():
            return
        for number, line in enumerate(whole_lines(path), 1):
            try:
                yield model.model_validate_json(line)
            except ValidationError as e:
                first = e.errors()[0]
                where = ".".join(map(str, first["loc"]))
                raise RunError(f"{path}: line {number}: {where}: {first['msg']}; remove that line and run again") from e
