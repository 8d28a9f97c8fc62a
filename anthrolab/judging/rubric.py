"""The rubric: dimensions, weights and checkboxes (paper section 5.3, Table 4), read from a YAML file."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from anthrolab.errors import AnthrolabError
from anthrolab.files import content_hash, data_dir
from anthrolab.yaml_files import YamlError, explain, read_yaml

Scope = Literal["turn", "dialogue"]
Need = Literal["persona", "scenario"]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class RubricError(AnthrolabError):
    """A rubric file that cannot be used; a line per problem, with file, field and fix."""


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Checkbox(_Part):
    """One observable thing, put as a question that is answered yes (passed) or no.

    `needs` names the cards without which it cannot be judged; `rule` names the rule of the rules judge that
    can answer it, if there is one.
    """

    id: Text = Field(description="the dimension's id, a dot, and a number from 1, e.g. D1.3")
    question: Text
    note: Text | None = Field(default=None, description="what counts in Chinese private chat")
    needs: list[Need] = Field(default_factory=list)
    rule: Text | None = None


class Dimension(_Part):
    """A group of checkboxes with one weight; weights are normalised within their scope."""

    id: Text = Field(pattern=r"^[A-Za-z][A-Za-z0-9]*$")
    name: Text
    scope: Scope
    weight: float = Field(gt=0, allow_inf_nan=False)
    checkboxes: list[Checkbox] = Field(min_length=1)

    @model_validator(mode="after")
    def _numbered(self) -> "Dimension":
        for number, box in enumerate(self.checkboxes, 1):
            if box.id != f"{self.id}.{number}":
                raise ValueError(f"checkbox {number} has the id '{box.id}'; write '{self.id}.{number}'")
        return self


class Rubric(_Part):
    """All dimensions, in the order of the file. At least one of each scope."""

    name: Text
    dimensions: list[Dimension] = Field(min_length=2)

    @model_validator(mode="after")
    def _whole(self) -> "Rubric":
        ids = [d.id for d in self.dimensions]
        for dimension_id in ids:
            if ids.count(dimension_id) > 1:
                raise ValueError(f"the dimension '{dimension_id}' stands twice; give every dimension its own id")
        for scope in ("turn", "dialogue"):
            if not any(d.scope == scope for d in self.dimensions):
                raise ValueError(f"no dimension has the scope '{scope}'; a case score needs both scopes")
        return self

    def of_scope(self, scope: Scope) -> list[Dimension]:
        """The dimensions scored once per evaluated turn, or once per dialogue."""
        return [d for d in self.dimensions if d.scope == scope]

    def boxes(self, scope: Scope | None = None) -> list[Checkbox]:
        """The checkboxes of a scope (of both if None), in the order of the file."""
        return [box for d in self.dimensions if scope in (None, d.scope) for box in d.checkboxes]

    @cached_property
    def dimension_of(self) -> dict[str, Dimension]:
        """Box id -> its dimension."""
        return {box.id: d for d in self.dimensions for box in d.checkboxes}

    @cached_property
    def hash(self) -> str:
        """Changes with anything that a judge is asked or a score depends on; which rule answers a checkbox is a
        matter of the rules judge and stands in its identity."""
        value = self.model_dump(mode="json")
        for dimension in value["dimensions"]:
            for box in dimension["checkboxes"]:
                del box["rule"]
        return content_hash(value)


def box_number(box_id: str) -> int:
    """The number of a checkbox within its dimension, from 1.

    >>> box_number("D1.3")
    3
    """
    return int(box_id.rsplit(".", 1)[1])


def default_rubric_path() -> Path:
    """The rubric that comes with anthrolab."""
    return data_dir() / "rubric.yaml"


def load_rubric(path: Path | None = None) -> Rubric:
    """The rubric in a YAML file (by default the one that comes with anthrolab).

    Raises RubricError with a line per problem (file, field, fix), FileError if the file cannot be read.
    """
    path = path or default_rubric_path()
    try:
        content = read_yaml(path)
    except YamlError as e:
        raise RubricError(str(e)) from e
    if not isinstance(content, dict):
        raise RubricError(f"{path}: holds {type(content).__name__}, not fields; write name: and dimensions:")
    try:
        return Rubric.model_validate(content)
    except ValidationError as e:
        raise RubricError("\n".join(f"{path}: {line}" for line in explain(e, Rubric))) from e
