"""Dialogues from elsewhere: a file with one JSON object a line."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from anthrolab.files import read_text
from anthrolab.judging.calibration.judged import CheckError
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.yaml_files import explain


def read_dialogues(path: Path) -> dict[str, Dialogue]:
    """The dialogues of a JSONL file by id; CheckError names the line of one that is none, or that stands twice."""
    found: dict[str, Dialogue] = {}
    for number, dialogue in dialogue_lines(path):
        if dialogue.dialogue_id in found:
            raise CheckError(f"{path}: line {number}: the dialogue {dialogue.dialogue_id} stands twice; rename one")
        found[dialogue.dialogue_id] = dialogue
    return found


def dialogue_lines(path: Path) -> Iterator[tuple[int, Dialogue]]:
    """The dialogues of a JSONL file, each with its line from 1; CheckError names the line of one that is none."""
    for number, line in enumerate(read_text(path).removeprefix("\ufeff").split("\n"), 1):
        if line.strip():
            try:
                yield number, Dialogue.model_validate_json(line)
            except ValidationError as e:
                raise CheckError(f"{path}: line {number}: {explain(e, Dialogue)[0]}; mend that line or take it out") from e
