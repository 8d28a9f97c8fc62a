"""Human labels: one answer of one rater to one checkbox a line, as CSV (with a header) or as JSONL.

    dialogue,turn,box,rater,value          {"dialogue": "h01", "turn": 3, "box": "D1.3", "rater": "wang", "value": false}
    h01,3,D1.3,wang,false                  a null or absent value is no answer
    h01,,E4.1,wang,true                    (the same)

value: true means the checkbox passed, blank that the rater left it out. turn counts the evaluated turns from 1 and is blank
for a checkbox of the dialogue. The header may be in Chinese.
"""

import codecs
import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from anthrolab.errors import AnthrolabError
from anthrolab.files import FileError
from anthrolab.judging.rubric import Rubric
from anthrolab.yaml_files import suggest

COLUMNS = {"dialogue": "对话", "turn": "轮次", "box": "检查项", "rater": "评审", "value": "结论", "note": "备注"}
"""The columns, in both languages; a note is for the raters and is not read."""
MOST = 20
"""Problems that one error lists."""

_YES, _NO = ("true", "1", "yes", "是"), ("false", "0", "no", "否")


class LabelsError(AnthrolabError):
    """A file of human labels with problems; a line for each, with file, line and fix."""


@dataclass(frozen=True)
class HumanLabel:
    """What one rater says of one checkbox; turn from 1, None for the dialogue's; passed: None for no answer."""

    dialogue: str
    turn: int | None
    box: str
    rater: str
    passed: bool | None


def read_labels(path: Path, rubric: Rubric, turns: Mapping[str, int], *, others: bool = False) -> list[HumanLabel]:
    """The labels of a file (.csv or .jsonl), in its order; of a folder, those of every such file in it, by name.

    turns: number of evaluated turns of every dialogue that may be labelled; others: whether further dialogues may be, of
    which nothing is known. LabelsError with a line per problem: an unknown dialogue, checkbox or column, a turn that there
    is not, a value that is neither yes nor no, a label given twice (also in two files). FileError if a file cannot be read
    or is not UTF-8.
    """
    labels: list[HumanLabel] = []
    problems: list[str] = []
    seen: dict[tuple[str, int | None, str, str], tuple[Path, int]] = {}
    for file in label_files(path):
        for number, row in rows_of(file):
            try:
                label = label_in(row, rubric, turns, others=others)
                key = (label.dialogue, label.turn, label.box, label.rater)
                if key in seen:
                    there, line = seen[key]
                    where = f"line {line}" if there == file else f"line {line} of {there}"
                    raise ValueError(f"rater {label.rater} answered this already in {where}; keep one of the two")
            except ValueError as e:
                problems.append(f"{file}: line {number}: {e}")
                continue
            seen[key] = file, number
            labels.append(label)
    if len(problems) > MOST:
        problems[MOST:] = [f"{path}: and {len(problems) - MOST} more"]
    if problems:
        raise LabelsError("\n".join(problems))
    if not labels:
        raise LabelsError(f"{path}: holds no label; write one answer a line ({', '.join(list(COLUMNS)[:5])})")
    return labels


def label_files(path: Path) -> list[Path]:
    """The files of labels at a path: itself, or every .csv and .jsonl of a folder by name (hidden ones are not read)."""
    if not path.is_dir():
        return [path]
    files = sorted(f for f in path.iterdir() if f.suffix.lower() in _ROWS and not f.name.startswith(".") and f.is_file())
    if not files:
        raise LabelsError(f"{path}: holds no .csv or .jsonl; name a file of labels, or the folder that they are in")
    return files


def rows_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a file of labels by the English names of `COLUMNS`, not checked yet, each with its line from 1.

    LabelsError, FileError as `read_labels`.
    """
    if path.suffix.lower() not in _ROWS:
        raise LabelsError(f"{path}: is neither .csv nor .jsonl; save the labels as one of them")
    return _ROWS[path.suffix.lower()](path, _text(path))


def _text(path: Path) -> str:
    """The file as text, without the byte order mark that Excel writes."""
    try:
        data = path.read_bytes()
    except OSError as e:
        raise FileError(f"{path}: cannot be read ({e.strerror}); check the path and its permissions") from e
    again = "in Excel: save as 'CSV UTF-8'"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FileError(f"{path}: is UTF-16; save it as UTF-8 ({again})")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        try:
            data.decode("gb18030")
        except UnicodeDecodeError:
            raise FileError(f"{path}: not UTF-8 (byte {e.start}); save it as UTF-8 ({again})") from None
        raise FileError(f"{path}: not UTF-8 but, it seems, GBK (byte {e.start}); save it as UTF-8 ({again})") from None


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        header = [_column(cell) for cell in next(reader, [])]
        _check_header(path, header)
        for cells in reader:
            if any(cell.strip() for cell in cells):
                # a short row's missing cells are blank; one with too many has a comma where none belongs
                if any(cell.strip() for cell in cells[len(header) :]):
                    raise LabelsError(f"{path}: line {reader.line_num}: has more cells than the header; quote a text with commas in it")
                yield reader.line_num, dict(zip(header, map(str.strip, cells), strict=False))
    except csv.Error as e:
        raise LabelsError(f"{path}: line {reader.line_num}: not valid CSV ({e}); mend the line") from e


def _column(cell: str) -> str:
    name = cell.strip().lower()
    return next((english for english, chinese in COLUMNS.items() if name == chinese), name)


def _check_header(path: Path, header: list[str]) -> None:
    wanted = list(COLUMNS)[:5]
    if len(header) == 1 and (other := re.search(r"[;\t]", header[0])):
        separator = "tabs" if other[0] == "\t" else "semicolons"
        raise LabelsError(f"{path}: line 1: its cells are parted by {separator}; save it with commas")
    lacking = [c for c in wanted if c not in header]
    if lacking:
        raise LabelsError(
            f"{path}: line 1: the header lacks {', '.join(f'{c} ({COLUMNS[c]})' for c in lacking)}; "
            f"write {','.join(wanted)} as the first line"
        )
    for name in header:
        if name and name not in COLUMNS:
            raise LabelsError(f"{path}: line 1: unknown column '{name}'{suggest(name, COLUMNS)}; remove it or call it note")
        if name and header.count(name) > 1:
            raise LabelsError(f"{path}: line 1: the column {name} stands twice; keep one")


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as e:
            raise LabelsError(f"{path}: line {number}: not valid JSON ({e}); mend the line") from e
        if not isinstance(row, dict):
            raise LabelsError(f"{path}: line {number}: holds no object; write {{{', '.join(list(COLUMNS)[:5])}}}")
        names = [_column(name) for name in row]
        for name in names:
            if names.count(name) > 1:
                raise LabelsError(f"{path}: line {number}: the field {name} stands twice (as {COLUMNS.get(name, name)}, too); keep one")
            if name not in COLUMNS:
                raise LabelsError(f"{path}: line {number}: unknown field '{name}'{suggest(name, COLUMNS)}; remove it or call it note")
        yield number, dict(zip(names, row.values(), strict=True))


_ROWS = {".csv": _csv_rows, ".jsonl": _json_rows}


def label_in(row: Mapping[str, Any], rubric: Rubric, turns: Mapping[str, int], *, others: bool = False) -> HumanLabel:
    """The label of a row (`turns`, `others` as of `read_labels`); ValueError says what is wrong with it."""
    texts = {}
    for name in ("dialogue", "box", "rater"):
        value = row.get(name)
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{name}: is {'missing' if value in (None, '') else 'no text'}; write it")
        texts[name] = value.strip()
    dialogue, box = texts["dialogue"], texts["box"]
    if dialogue not in turns and not others:
        raise ValueError(f"dialogue: none of the judged dialogues is called '{dialogue}'{suggest(dialogue, turns)}; give its file with --dialogues")
    if box not in rubric.dimension_of:
        raise ValueError(f"box: '{box}' is no checkbox of the rubric {rubric.name}{suggest(box, rubric.dimension_of)}; write one of its ids")
    turn = turn_in(row.get("turn"))
    if rubric.dimension_of[box].scope == "dialogue" and turn is not None:
        raise ValueError(f"turn: {box} is asked of the whole dialogue; leave the turn blank")
    if rubric.dimension_of[box].scope == "turn" and (turn is None or not 1 <= turn <= turns.get(dialogue, turn)):
        given = "is missing" if turn is None else f"is {turn}"
        upto = f"1 to {turns[dialogue]}" if dialogue in turns else "its number, from 1"
        raise ValueError(f"turn: {given}, but {box} is asked of each turn; write {upto}")
    return HumanLabel(dialogue, turn, box, texts["rater"], value_in(row.get("value")))


def turn_in(value: object) -> int | None:
    """The turn of a cell, None where it is blank; ValueError says what is wrong with it."""
    if value is None or value == "":
        return None
    if type(value) is int:
        return value
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value, re.ASCII):
        return int(value)
    raise ValueError(f"turn: {value!r} is no whole number; write the number of the evaluated turn, from 1")


def value_in(value: object) -> bool | None:
    """The answer of a cell, None where it is blank; ValueError says what is wrong with it."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return value
    said = value.strip().lower() if isinstance(value, str) else ""
    if said in _YES:
        return True
    if said in _NO:
        return False
    raise ValueError(f"value: {value!r} is neither true nor false; write true (passed), false (failed) or leave it blank")
