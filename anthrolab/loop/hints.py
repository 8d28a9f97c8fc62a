"""Repair hints: for every checkbox and constraint, how a chat line that fails it is mended without changing facts."""

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from anthrolab.errors import AnthrolabError
from anthrolab.files import data_dir
from anthrolab.judging.l0.result import ConstraintId
from anthrolab.judging.rubric import Rubric, Text, load_rubric
from anthrolab.yaml_files import YamlError, explain, read_yaml, suggest

NO_TURNS = "no_turns"
"""Stands in the place of a constraint where the evaluated role said nothing."""
NO_TURNS_HINT = "一句没回就没法补，只能重聊：对方开了口，头一句总要接。"


class HintsError(AnthrolabError):
    """A file of repair hints that cannot be used; a line per problem."""


class HintFile(BaseModel):
    """What stands in the file. rubric: the name of the rubric whose checkboxes the hints are for."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    rubric: Text
    checkboxes: dict[str, Text]
    constraints: dict[str, Text]


@dataclass(frozen=True)
class Hints:
    """The hints by id: `checkboxes` of the rubric that is in use, `constraints` of the gate."""

    checkboxes: dict[str, str]
    constraints: dict[str, str]

    def of(self, box: str, rubric: Rubric) -> str:
        """The suggestion for a checkbox or constraint; a checkbox without a hint has its own question, with its note."""
        if box == NO_TURNS:
            return NO_TURNS_HINT
        if box in self.constraints:
            return self.constraints[box]
        if box in self.checkboxes:
            return self.checkboxes[box]
        checkbox = next((b for b in rubric.boxes() if b.id == box), None)
        return "" if checkbox is None else checkbox.question + (f"（{checkbox.note}）" if checkbox.note else "")


def default_hints_path() -> Path:
    """The hints that come with anthrolab."""
    return data_dir() / "repair_hints.yaml"


def load_hints(rubric: Rubric | None = None, path: Path | None = None) -> Hints:
    """The hints for a rubric (by default the one that comes with anthrolab).

    Hints are for the rubric that the file names; another rubric's checkboxes may mean something else by the same id, so
    there they are left aside. HintsError for a file that cannot be read, names an id that its rubric or the gate has not, or
    lacks a constraint.
    """
    rubric, path = rubric or load_rubric(), path or default_hints_path()
    try:
        file = HintFile.model_validate(read_yaml(path))
    except YamlError as e:
        raise HintsError(str(e)) from e
    except ValidationError as e:
        raise HintsError("\n".join(f"{path}: {line}" for line in explain(e, HintFile))) from e
    gate = get_args(ConstraintId)
    problems = [f"{path}: constraints: {i}: the gate has no such constraint{suggest(i, gate)}" for i in file.constraints if i not in gate]
    problems += [f"{path}: constraints: {i}: is missing; add it" for i in gate if i not in file.constraints]
    if file.rubric == rubric.name:
        known = rubric.dimension_of
        problems += [
            f"{path}: checkboxes: {i}: the rubric {rubric.name} has no such checkbox{suggest(i, known)}"
            for i in file.checkboxes if i not in known
        ]  # fmt: skip
    if problems:
        raise HintsError("\n".join(problems))
    return Hints(file.checkboxes if file.rubric == rubric.name else {}, file.constraints)
