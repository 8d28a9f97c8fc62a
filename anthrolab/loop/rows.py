"""Reading the JSON lines of a loop's files."""

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from anthrolab.errors import AnthrolabError
from anthrolab.files import whole_lines
from anthrolab.runtime.dialogue import Record
from anthrolab.yaml_files import explain

R = TypeVar("R", bound=Record)


def read_rows(path: Path, kind: type[R], error: type[AnthrolabError], fix: str) -> list[R]:
    """The records of a file; `error` names the line that is none, and the `fix`. A last line that is half written is passed over."""
    found = []
    for number, line in enumerate(whole_lines(path), 1):
        try:
            found.append(kind.model_validate_json(line))
        except ValidationError as e:
            raise error(f"{path}: line {number}: {'; '.join(explain(e, kind))}; {fix}") from e
    return found
