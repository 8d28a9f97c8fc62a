"""The skills of a loop: every version stays, and stands beside why it was made.

    skills/<skill>/vN.md        the text of a version; never changed, never removed
    rounds/N/evolution.json     what round N did to the skills (`Evolution`), the whole new text included
    rollbacks.jsonl             versions that took back the text of an older one (`Rollback`), one a line

The record is written first and the text after it, so that a command that was killed between the two ends with the same
files when it is given again.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from anthrolab.cards.skill import SKILLS, Skill, SkillError, SkillName, load_skill, load_skills, skill_versions
from anthrolab.files import append_line, content_hash, cut_torn_line, read_text, whole_lines, write_atomic
from anthrolab.loop.folder import Loop, LoopError
from anthrolab.runtime.dialogue import Record

EVOLUTION, ROLLBACKS, PINS = "evolution.json", "rollbacks.jsonl", "skills.json"

R = TypeVar("R", bound=Record)


class Evidence(Record):
    """Failures of one checkbox or constraint behind a rewrite: how many, in how many dialogues, and the ids of the records
    that the writer was shown as examples."""

    box: str
    dimension: str | None
    count: int
    dialogues: int
    examples: list[str] = Field(default=[])


class Evolution(Record):
    """What one round did to the skills.

    outcome: rewritten (version `after` of `skill` has `text`), refused (both replies of the writer broke the contract;
    `error` says how; all skills stay as they are), no_target (no recent failure belongs to a skill), superseded (`skill` has
    another text by now than the round was played with, after a rollback say, so its failures say nothing of it). skills: the
    versions of all three before it. counts, unattributed, buffer: as in `Attribution`, and the records in the buffer. changes: what the
    writer says it changed. writer, writer_identity, call: whose reply it is, and its key in calls/.
    """

    round: int = Field(ge=1)
    outcome: Literal["rewritten", "refused", "no_target", "superseded"]
    skills: dict[SkillName, str]
    counts: dict[SkillName, int]
    unattributed: int
    buffer: int
    skill: SkillName | None = None
    before: str | None = None
    after: str | None = None
    before_hash: str | None = None
    after_hash: str | None = None
    text: str | None = None
    changes: list[str] = Field(default=[])
    evidence: list[Evidence] = Field(default=[])
    error: str | None = None
    recovered: str | None = None
    writer: str | None = None
    writer_identity: str | None = None
    call: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> "Evolution":
        new = (self.skill, self.before, self.after, self.text, self.after_hash)
        if self.outcome == "rewritten" and (None in new or self.after_hash != content_hash(self.text)):
            raise ValueError("a rewritten skill needs skill, before, after, text and the hash of that text")
        return self

    def pins(self) -> tuple[dict[str, str], dict[str, str]]:
        """The versions of all three skills before this round's rewrite and after it."""
        before: dict[str, str] = dict(self.skills.items())
        after = dict(before)
        if self.skill and self.after:
            after[self.skill] = self.after
        return before, after


class Rollback(Record):
    """Version `version` of `skill` took back the text of version `restored`, because of `reason`; `replaced` was the newest."""

    skill: SkillName
    version: str
    restored: str
    replaced: str
    text: str
    hash: str
    reason: str


@dataclass(frozen=True)
class Version:
    """One version in the history of a skill. origin: given (it was there when the loop began), evolved, rolled back, or
    added (by hand: there is no record of it). made_from: the version that it was rewritten from, or that it restores.
    round: that of the rewrite."""

    skill: Skill
    origin: Literal["given", "evolved", "rolled back", "added"]
    round: int | None = None
    made_from: str | None = None
    reason: str = ""

    @property
    def hash(self) -> str:
        """The content hash of its text."""
        return content_hash(self.skill.text)


def begin_skills(folder: Path, given: Sequence[Skill]) -> None:
    """Copy the given skills, each in its version, to where none of that name is yet."""
    for skill in given:
        if not skill_versions(folder, skill.name):
            _write_version(folder, skill.name, skill.version, skill.text)


def read_evolution(loop: Loop, number: int) -> Evolution | None:
    """What a round did to the skills; None if it has not come to that."""
    path = loop.round_dir(number) / EVOLUTION
    return _parsed(Evolution, read_text(path), str(path)) if path.exists() else None


def keep_evolution(loop: Loop, evolution: Evolution) -> None:
    """Record what a round did to the skills, then write the new version, if there is one."""
    content = json.dumps(evolution.model_dump(mode="json"), ensure_ascii=False, indent=1)
    write_atomic(loop.round_dir(evolution.round) / EVOLUTION, content + "\n")
    mend_skills(loop)


def mend_skills(loop: Loop) -> None:
    """Write every version that is recorded and not there. SkillError if one has another text than was recorded."""
    for (name, version), (text, _, _) in _recorded(loop).items():
        _write_version(loop.skills_dir, name, version, text)


def next_version(folder: Path, name: SkillName) -> str:
    """The version after the newest."""
    return f"v{int(skill_versions(folder, name)[-1][1:]) + 1}"


def roll_back(loop: Loop, name: SkillName, *, to: str | None = None, reason: str = "") -> Version | None:
    """Make the text of an older version the newest one of a skill, as a new version: nothing is taken away.

    `to`: that version; by default the one that the newest was made from. None, and nothing is done, if the newest has that
    text already, so that the same command again changes nothing. LoopError if there is nothing to go back to.
    """
    loop.settings()  # before the lock, which would make the folder of a loop that there is not
    with loop.locked():
        cut_torn_line(loop.path / ROLLBACKS)
        mend_skills(loop)
        newest = [v for v in history(loop) if v.skill.name == name][-1]
        if (to := to or newest.made_from) is None:
            raise LoopError(f"{loop.skills_dir / name}: {newest.skill.version} was not made from another version; name one with --to")
        old = load_skill(loop.skills_dir, name, to)
        if old.text == newest.skill.text:
            return None
        row = Rollback(
            skill=name, version=next_version(loop.skills_dir, name), restored=to, replaced=newest.skill.version, text=old.text,
            hash=content_hash(old.text), reason=reason,
        )  # fmt: skip
        append_line(loop.path / ROLLBACKS, row.model_dump_json())
        mend_skills(loop)
        return [v for v in history(loop) if v.skill.name == name][-1]


def history(loop: Loop) -> list[Version]:
    """Every version of every skill on disk, in the order of SKILLS, oldest first, with where it comes from."""
    recorded, versions = _recorded(loop), []
    for name in SKILLS:
        for place, version in enumerate(skill_versions(loop.skills_dir, name)):
            skill = load_skill(loop.skills_dir, name, version)
            _, record, reason = recorded.get((name, version), (None, None, ""))
            if isinstance(record, Evolution):
                versions.append(Version(skill, "evolved", record.round, record.before, reason))
            elif isinstance(record, Rollback):
                versions.append(Version(skill, "rolled back", None, record.restored, reason))
            else:
                versions.append(Version(skill, "added" if place else "given"))
    return versions


def rollbacks(loop: Loop) -> list[Rollback]:
    """All rollbacks of a loop, oldest first."""
    path = loop.path / ROLLBACKS
    lines = enumerate(whole_lines(path), 1) if path.exists() else ()
    return [_parsed(Rollback, line, f"{path}: line {number}") for number, line in lines]


def newest_pins(loop: Loop) -> dict[str, str]:
    """The newest version of each skill, for instance to fix what a round is made with before it begins."""
    return {skill.name: skill.version for skill in load_skills(loop.skills_dir)}


def round_pins(loop: Loop, number: int) -> dict[str, str]:
    """The versions of the skills that a round is made with: the newest when it began, which this call may be."""
    path = loop.round_dir(number) / PINS
    if not path.exists():
        write_atomic(path, json.dumps(newest_pins(loop)) + "\n")
    try:
        pins = json.loads(read_text(path))
        if not isinstance(pins, dict) or set(pins) != set(SKILLS):
            raise ValueError("it does not name the three skills")
    except ValueError as e:
        raise LoopError(f"{path}: {e}; write the versions that the round's run was made with (its manifest.json names them)") from e
    return {str(name): str(version) for name, version in pins.items()}


def _recorded(loop: Loop) -> Mapping[tuple[SkillName, str], tuple[str, Evolution | Rollback, str]]:
    """Text, record and reason of every version that a round or a rollback made."""
    found: dict[tuple[SkillName, str], tuple[str, Evolution | Rollback, str]] = {}
    for evolution in _evolutions(loop):
        if evolution.outcome == "rewritten":
            assert evolution.skill and evolution.after and evolution.text
            boxes = ", ".join(f"{e.box} {e.count} times" for e in evolution.evidence[:3])
            reason = f"{evolution.counts[evolution.skill]} of {evolution.buffer} recent failures belong to it; most often {boxes}"
            found[evolution.skill, evolution.after] = (evolution.text, evolution, reason)
    for row in rollbacks(loop):
        found[row.skill, row.version] = (row.text, row, row.reason)
    return found


def _evolutions(loop: Loop) -> Iterator[Evolution]:
    for number in loop.rounds():
        if evolution := read_evolution(loop, number):
            yield evolution


def _write_version(folder: Path, name: SkillName, version: str, text: str) -> None:
    """Write a version that is not there; SkillError if it is there with another text."""
    path = folder / name / f"{version}.md"
    if not path.exists():
        write_atomic(path, text + "\n")
    elif read_text(path).strip() != text.strip():
        raise SkillError(f"{path}: is not the text that was recorded for {version}; put that text back, and make changes as a new version")


def _parsed(kind: type[R], text: str, where: str) -> R:
    try:
        return kind.model_validate_json(text)
    except ValidationError as e:
        first: Any = e.errors(include_url=False)[0]
        at = ".".join(map(str, first["loc"]))
        raise LoopError(f"{where}: {at}: {first['msg']}; restore it, or remove it and give the command again") from e
