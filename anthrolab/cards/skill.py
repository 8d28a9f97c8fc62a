"""Skills: short instructions that stand in every prompt and that the loop rewrites (paper sections 4.1 and 4.5).

Three of them, each a folder with one file a version: `skills/message_style/v1.md`, `v2.md`, ...
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import StringConstraints, ValidationError

from anthrolab.cards.persona import Card
from anthrolab.errors import AnthrolabError
from anthrolab.files import content_hash, data_dir, read_text
from anthrolab.yaml_files import suggest

SkillName = Literal["message_style", "topic_progression", "human_like_reply"]
SKILLS: tuple[SkillName, ...] = get_args(SkillName)
"""In the order in which they stand in a prompt."""

SKILL_CHARS = 1500
"""Characters that a skill may have: it is paid for in every call."""

VERSION = re.compile(r"v([1-9]\d*)", re.ASCII)


class SkillError(AnthrolabError):
    """A skill that is missing, too long or named wrongly."""


class Skill(Card):
    """One version of one skill."""

    name: SkillName
    version: Annotated[str, StringConstraints(pattern=r"^v[1-9]\d*$")]
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=SKILL_CHARS)]

    @property
    def label(self) -> str:
        """Name, version and content hash, as in the manifest."""
        return f"{self.name} {self.version} {content_hash(self.text)}"


def default_skills_dir() -> Path:
    """The skills that come with anthrolab."""
    return data_dir() / "skills"


def load_skills(folder: Path, pins: Mapping[str, str] | None = None) -> tuple[Skill, ...]:
    """All three skills, each in the version that `pins` names, else in its newest; SkillError names file and fix."""
    pins = pins or {}
    for name in pins:
        if name not in SKILLS:
            raise SkillError(f"no skill '{name}'{suggest(name, SKILLS)}; there are: {', '.join(SKILLS)}")
    return tuple(load_skill(folder, name, pins.get(name)) for name in SKILLS)


def load_skill(folder: Path, name: SkillName, version: str | None = None) -> Skill:
    """One skill, in its newest version if none is named."""
    there = skill_versions(folder, name)
    if not there:
        raise SkillError(f"{folder / name}: no version of this skill here; put the first one into {folder / name / 'v1.md'}")
    version = version or there[-1]
    if version not in there:
        raise SkillError(f"{folder / name}: no version '{version}'; there are: {', '.join(there)}")
    path = folder / name / f"{version}.md"
    try:
        return Skill(name=name, version=version, text=read_text(path).removeprefix("\ufeff"))
    except ValidationError as e:
        raise SkillError(f"{path}: {e.errors()[0]['msg']}; a skill is 1 to {SKILL_CHARS} characters of text") from e


def skill_versions(folder: Path, name: SkillName) -> list[str]:
    """The versions on disk, oldest first; SkillError for a file that is none."""
    found = []
    for path in sorted((folder / name).glob("[!.]*")):
        match = VERSION.fullmatch(path.stem)
        if match is None or path.suffix != ".md":
            raise SkillError(f"{path}: is not read; a version of a skill is named v1.md, v2.md, ...")
        found.append(int(match[1]))
    return [f"v{number}" for number in sorted(found)]
