"""The folder of a loop: its settings, its skills, its rounds, and where everything lies.

    loops/<loop>/loop.json              its name, settings and conditions, fixed by the first command
                 skills/<skill>/vN.md   the loop's own skills; a version is never changed
                 runs/<loop>-rN/        the run of round N (`bench/store.py`)
                 rounds/N/              filtered.jsonl, failures.jsonl, repairs.jsonl, evolution.json, round.json, calls/
                 sft/                   training data of all rounds so far
                 ab/N/                  the A/B of round N: its two runs, result.json
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from anthrolab.bench.store import Run
from anthrolab.errors import AnthrolabError
from anthrolab.files import only_one, read_text, write_atomic
from anthrolab.judging.verdict import RULES
from anthrolab.loop.filter import PAPER, Thresholds
from anthrolab.yaml_files import explain

SETTINGS = "loop.json"
FILTERED, FAILURES, REPAIRS = "filtered.jsonl", "failures.jsonl", "repairs.jsonl"
"""Of a round's folder."""


class LoopError(AnthrolabError):
    """A loop that cannot be run as asked."""


class LoopSettings(BaseModel):
    """What a loop is made with. The names of systems are those of the systems file.

    system, partner: who is tested, and against whom (null: its own partner). judge: "rules" or a chat system. writer:
    the chat system that repairs dialogues and rewrites skills; null: neither is done. cases: as in `bench.run.generate`; samples: dialogues
    of a case in a round. held_back: bindings that teach nothing: their samples are held out, they are not repaired, and their
    failures reach no skill; the A/B of skills is made on them. repair_attempts: rewrites of one dialogue. most_changes: messages
    that may be rewritten for a fault of the whole dialogue. buffer_rounds: latest rounds whose failures the skills are rewritten by.
    sides: whose decisions become training data; only the evaluated side was judged. near: share of common short runs
    of characters from which two samples are near duplicates.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    system: str
    partner: str | None = None
    judge: str = RULES
    writer: str | None = None
    cases: int | list[str] | None = None
    samples: int = Field(default=1, ge=1)
    held_back: list[str] = Field(default=[])
    thresholds: Thresholds = PAPER
    seed: int = 0
    max_messages: int = Field(default=50, ge=2)
    window: int = Field(default=12, ge=1)
    summary: str = "rules"
    repair_attempts: int = Field(default=2, ge=0)
    most_changes: int = Field(default=3, ge=1)
    buffer_rounds: int = Field(default=1, ge=1)
    sides: Literal["evaluated", "both"] = "evaluated"
    near: float = Field(default=0.8, gt=0, le=1)


class LoopFile(BaseModel):
    """What stands in loop.json. name: the folder's name when the loop began, with which its runs and dialogues begin;
    conditions: content hashes and settings of what its rounds have in common (see `Workshop.conditions`)."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: str
    settings: LoopSettings
    conditions: dict[str, JsonValue]


@dataclass(frozen=True)
class Loop:
    """A loop by its folder. A copied or renamed folder keeps its loop's name."""

    path: Path

    @property
    def name(self) -> str:
        """The loop's name."""
        return self._file().name if (self.path / SETTINGS).exists() else Run(self.path).name

    @property
    def skills_dir(self) -> Path:
        """The loop's own skills, all versions."""
        return self.path / "skills"

    @property
    def sft_dir(self) -> Path:
        """The training data of all rounds so far."""
        return self.path / "sft"

    def run(self, number: int) -> Run:
        """The run of a round (from 1)."""
        return Run(self.path / "runs" / f"{self.name}-r{number}")

    def round_dir(self, number: int) -> Path:
        """The folder of a round (from 1)."""
        return self.path / "rounds" / str(number)

    def ab_dir(self, number: int) -> Path:
        """The A/B of the skills before a round and after it."""
        return self.path / "ab" / str(number)

    def rounds(self) -> list[int]:
        """The rounds that are begun, oldest first."""
        folder = self.path / "rounds"
        found = (p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else ()
        return sorted(int(name) for name in found if name.isascii() and name.isdigit())

    def settings(self) -> LoopSettings:
        """The settings; LoopError if the folder is no loop."""
        return self._file().settings

    @property
    def has_dialogues(self) -> bool:
        """True once a round has a finished dialogue."""
        return any(Run(p).has_dialogues for p in sorted((self.path / "runs").glob("*")))

    def begin(self, settings: LoopSettings, conditions: Mapping[str, Any] | None = None) -> None:
        """Fix settings and conditions; LoopError if the loop has dialogues that were made with others.

        As long as it has none it may begin again otherwise: a wrong name needs no new folder.
        """
        path = self.path / SETTINGS
        if path.exists() and self.has_dialogues:
            old = self.settings()
            for field, value in settings:
                if getattr(old, field) != value:
                    raise LoopError(
                        f"{path}: {field}: is {getattr(old, field)!r:.80}, and now {value!r:.80} is asked for; "
                        "go on with the same settings, or begin another loop"
                    )
            self.check(conditions or {})
            return
        now = LoopFile(name=self.name, settings=settings, conditions=dict(conditions or {}))
        write_atomic(path, json.dumps(now.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n")

    def check(self, conditions: Mapping[str, Any]) -> None:
        """LoopError if cards, rubric, prompts, skills or a system are not those that the loop was begun with."""
        old = self._file().conditions
        for key, value in conditions.items():
            if old.get(key) != value:
                raise LoopError(
                    f"{self.path}: its {key} are not those that it was begun with ({old.get(key)!r:.60} then, {value!r:.60} now); "
                    "put them back or name them with the options of the first command, or begin another loop"
                )

    def _file(self) -> LoopFile:
        path = self.path / SETTINGS
        if not path.exists():
            raise LoopError(f"{self.path}: no {SETTINGS} here, so this is no loop; begin one with `anthrolab loop run`")
        try:
            return LoopFile.model_validate_json(read_text(path))
        except ValidationError as e:
            raise LoopError(f"{path}: {'; '.join(explain(e, LoopFile))}; restore the file, or begin another loop") from e

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one command at a time works in a loop; LoopError if another is at it."""
        if not self.name:
            raise LoopError(f"'{self.path}': is no folder for a loop; give one of its own, such as loops/first")
        if self.path.is_dir() and not (self.path / SETTINGS).exists():  # before a lock is left in somebody else's folder
            foreign = sorted(p.name for p in self.path.iterdir() if p.name != ".lock" and not p.name.endswith(".tmp"))
            if foreign:
                raise LoopError(f"{self.path}: holds other files ({foreign[0]}); give the loop a folder of its own")
        busy = LoopError(f"{self.path}: another anthrolab command works here; wait for it or use another folder")
        with only_one(self.path, busy):
            for place in ("", "rounds", "sft", "skills"):  # the runs have locks of their own, and other commands at work
                for left in (self.path / place).rglob(".*.tmp") if place else self.path.glob(".*.tmp"):
                    left.unlink(missing_ok=True)  # of a writer that was killed
            yield
