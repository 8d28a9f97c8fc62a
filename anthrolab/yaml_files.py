"""YAML files as validated models, with errors that name file, field and fix."""

import difflib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

from anthrolab.errors import AnthrolabError
from anthrolab.files import read_text

M = TypeVar("M", bound=BaseModel)
MAX_CHARS = 1_000_000
MAX_NODES = 200_000
_HASH = re.compile(r"^[^#]*\S\s+(#[^\s#].*)$")


class YamlError(AnthrolabError):
    """One or more problems in a YAML file; `problems` has a line for each."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


def read_yaml(path: Path) -> object:
    """The content of a YAML 1.2 file (duplicate keys refused); YamlError names the line.

    A file over `MAX_CHARS`, or one whose aliases stand for more than `MAX_NODES` values, is refused unread.
    """
    text = read_text(path)
    if len(text) > MAX_CHARS:
        raise YamlError([f"{path}: has {len(text):,} characters; a card or settings file is at most {MAX_CHARS:,}"])
    try:
        content = YAML(typ="safe", pure=True).load(text)
        if _nodes(content, {}) > MAX_NODES:
            raise YamlError([f"{path}: its aliases stand for more than {MAX_NODES:,} values; write out what is meant"])
        if lost := _lost_to_comments(text, content):
            raise YamlError([f"{path}: {line}" for line in lost])
        return content
    except ReaderError as e:
        number = text.count("\n", 0, e.position) + 1
        raise YamlError([f"{path}: line {number}: holds the character U+{e.character:04X}, which YAML does not allow; remove it"]) from e
    except RecursionError as e:
        raise YamlError([f"{path}: is nested too deep; a card or settings file is a few levels"]) from e
    except MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        line = f"line {mark.line + 1}" if mark else "the file"
        raise YamlError([f"{path}: {line}: not valid YAML ({e.problem}); mend the syntax there"]) from e
    except ValueError as e:
        raise YamlError([f"{path}: not valid YAML ({e}); mend the value"]) from e


def _lost_to_comments(text: str, content: object) -> list[str]:
    """Lines whose end YAML took for a comment though it hardly is one: 救命 #无语. Comments are written with a blank after
    the #, and what stands in quotes is in the content."""
    hits = [(n, m) for n, line in enumerate(text.split("\n"), 1) if (m := _HASH.search(line))]
    if not hits:
        return []
    kept = "\n".join(_texts(content))
    return [
        f"line {n}: {m[1][:20]!r} is a comment to YAML and would be lost; put the text into double quotes"
        for n, m in hits
        if m[1].rstrip("\"' ") not in kept
    ]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield str(key)
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _nodes(value: object, known: dict[int, int]) -> int:
    """Values in a tree, those behind aliases counted at every place, without walking them more than once."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = MAX_NODES  # an alias of what holds it is endless
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_nodes(part, known) for part in parts)
    return known[id(value)]


def read_model(path: Path, model: type[M]) -> M:
    """A YAML file as a validated model; YamlError with a line per bad field."""
    content = read_yaml(path)
    if content is None:
        raise YamlError([f"{path}: is empty; write one 'field: value' a line"])
    if not isinstance(content, dict):
        raise YamlError([f"{path}: holds a {type(content).__name__}, not fields; write one 'field: value' a line"])
    try:
        return model.model_validate(content)
    except ValidationError as e:
        raise YamlError([f"{path}: {line}" for line in explain(e, model)]) from e


def _words(name: str) -> str:
    """A class's name as people write it, with its article.

    >>> _words("RewardSettings"), _words("GRPOSettings"), _words("Persona")
    ('the reward settings', 'the grpo settings', 'a persona')
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name).lower()
    return f"the {words}" if words.endswith("settings") else f"a {words}"


def explain(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """A validation error as lines `field: what is wrong; the fix`, with the likely spelling of unknown fields."""
    lines = []
    missing = {".".join(map(str, d["loc"])) for d in error.errors() if d["type"] == "missing"}
    for detail in error.errors():
        field = ".".join(map(str, detail["loc"])) or "card"
        last = str(detail["loc"][-1]) if detail["loc"] else ""
        if detail["type"] == "missing":
            lines.append(f"{field}: is missing; add it")
        elif detail["type"] == "extra_forbidden":
            names = [m.rsplit(".", 1)[-1] for m in missing] + list(model.model_fields)
            lines.append(f"{field}: is no field of {_words(model.__name__)}{suggest(last, names)}; rename or remove it")
        else:
            shown = repr(detail["input"])
            shown = shown if len(shown) <= 60 else shown[:57] + "..."
            lines.append(f"{field}: {detail['msg'].removeprefix('Value error, ')} (found {shown})" if detail["loc"]
                         else detail["msg"].removeprefix("Value error, "))  # fmt: skip
    return lines


def suggest(word: str, known: Iterable[str]) -> str:
    """` (did you mean '...'?)` with the likeliest of the known spellings, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""
