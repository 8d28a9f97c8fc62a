"""Writing cards: open one, change fields, see what is wrong with it, save it. Only the lines of what was changed change."""

import difflib
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError

from anthrolab.cards.binding import BindingFile
from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.cards.schema import SCHEMAS
from anthrolab.cards.series import Series
from anthrolab.cards.yaml_edit import EditError, Value, Where, at, dotted, load, scalar, set_value
from anthrolab.errors import AnthrolabError
from anthrolab.files import FileError, write_atomic
from anthrolab.yaml_files import YamlError, explain, read_yaml

FOLDERS: dict[str, type[BaseModel]] = {"personas": Persona, "scenarios": Scenario, "memories": Memory, "series": Series}
"""What kind of card a folder holds; `bindings.yaml` beside them holds all bindings."""

Kind = Literal["text", "number", "yes_no", "time", "day", "choice", "lines", "choices"]
_KINDS: dict[Any, Kind] = {str: "text", int: "number", bool: "yes_no", datetime: "time", date: "day"}


class AuthoringError(AnthrolabError):
    """A card that cannot be opened or saved as asked."""


@dataclass(frozen=True)
class CardField:
    """One value of a card that a person can type. order: the fields of its group, as a card lists them."""

    where: Where
    kind: Kind
    help: str
    required: bool
    choices: tuple[str, ...]
    order: tuple[str, ...]

    def read(self, typed: str) -> Value:
        """What was typed as a value: lists one line each. What is no number, time or day stays text, which validation names."""
        typed = typed.strip()
        try:
            if self.kind == "number":
                return int(typed)
            if self.kind == "time":
                return datetime.fromisoformat(typed)
            if self.kind == "day":
                return date.fromisoformat(typed)
        except ValueError:
            return typed
        if self.kind == "yes_no":
            return {"true": True, "false": False}.get(typed, typed)
        if self.kind in ("lines", "choices"):
            return [line.strip() for line in typed.splitlines() if line.strip()]
        return " ".join(typed.splitlines())

    def written(self, value: object) -> str:
        """A value as it is typed."""
        if value is None:
            return ""
        if isinstance(value, list):
            return "\n".join(map(str, value))
        return value if isinstance(value, str) else scalar(value) if isinstance(value, int | date) else str(value)


@dataclass(frozen=True)
class Problem:
    """What is wrong with a field and the fix; `where` is empty if it concerns the card as a whole."""

    where: Where
    message: str

    def __str__(self) -> str:
        return f"{dotted(self.where) or 'card'}: {self.message}"

    def concerns(self, where: Where) -> bool:
        """Whether it should be shown beside this field: it is about it, or about the whole card and names it."""
        if self.where:
            return self.where[: len(where)] == where
        return dotted(where) in self.message.replace(",", " ").replace(";", " ").split()


@dataclass(frozen=True)
class Draft:
    """A card file being written. before: its bytes when it was opened, None for a new one; text: as it would be saved."""

    path: Path
    model: type[BaseModel]
    before: bytes | None
    text: str

    def value(self, where: Where) -> Any:
        """The value there, None if there is none."""
        return at(load(self.text), where)

    def changed(self, where: Where, value: Value) -> "Draft":
        """With another value there. An optional field that is missing stays so while its value is the default."""
        field = next((f for f in card_fields(self.model) if f.where == where), None)
        if field and not field.required and value in ([], "") and self.value(where) is None:
            return self
        try:
            return replace(self, text=set_value(self.text, where, value, field.order if field else ()))
        except EditError as e:
            raise AuthoringError(f"{self.path}: {e}") from e

    def problems(self) -> list[Problem]:
        """All that is wrong, in the order of the fields; empty if the card can be saved."""
        content = load(self.text)
        try:
            card = self.model.model_validate(content)
        except ValidationError as e:
            lines = zip(e.errors(), explain(e, self.model), strict=True)
            return [Problem(tuple(d["loc"]), _in_words(d, line)) for d, line in lines]
        if self.model is BindingFile:
            return []
        name = f"{card.owner}-{card.partner}" if isinstance(card, Memory) else str(card.id)  # type: ignore[attr-defined]
        if name == self.path.stem:
            return []
        where = ("owner",) if isinstance(card, Memory) else ("id",)
        return [Problem(where, f"makes it the card {name}, but the file is named {self.path.name}; make them equal")]

    def diff(self) -> str:
        """What saving would change, as a unified diff; empty if nothing."""
        old = (self.before or b"").decode("utf-8")
        lines = difflib.unified_diff(_lines(old), _lines(self.text), "on disk" if self.before is not None else "no file yet", "to be saved", lineterm="", n=1)
        return "\n".join(lines)

    def save(self) -> "Draft":
        """Write the file whole or not at all; returns the draft as just opened.

        AuthoringError if the card is not valid, or if the file is not what it was when it was opened.
        """
        problems = self.problems()
        if problems:
            raise AuthoringError("\n".join(f"{self.path}: {p}" for p in problems))
        if _bytes(self.path) != self.before:
            what = "exists already" if self.before is None else "was changed or removed on disk since it was opened"
            raise AuthoringError(f"{self.path}: {what}; nothing was saved; open it again and repeat the change")
        data = self.text.encode("utf-8")
        if data != self.before:
            write_atomic(self.path.resolve(), data)
        return replace(self, before=data)


def open_card(path: Path) -> Draft:
    """A card file, valid or not, as it is on disk. YamlError where its syntax is broken or it holds no fields."""
    model = _model(path)
    data = _bytes(path)
    if data is None:
        raise AuthoringError(f"{path}: no such card; use new_card for a new one")
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise YamlError([f"{path}: holds no fields; write one 'field: value' a line"])
    return Draft(path, model, data, data.decode("utf-8"))


def new_card(path: Path) -> Draft:
    """A new card with every required field blank but its id (a memory: owner and partner), which the file's name gives."""
    model = _model(path)
    if path.exists():
        raise AuthoringError(f"{path}: exists already; open it, or choose another id")
    schema = next(name for name, m in SCHEMAS.items() if m is model)
    text = f"# yaml-language-server: $schema=../schemas/{schema}.schema.json\n"
    draft = Draft(path, model, None, text + f"{next(iter(model.model_fields))}: \"\"\n")
    for field in card_fields(model):
        if field.required:
            draft = draft.changed(field.where, [] if field.kind in ("lines", "choices") else "")
    names = path.stem.partition("-")[::2] if model is Memory else (path.stem,)
    for key, name in zip(("owner", "partner") if model is Memory else ("id",), names, strict=True):
        draft = draft.changed((key,), name)
    return draft


def card_fields(model: type[BaseModel], prefix: Where = ()) -> list[CardField]:
    """The fields of a kind of card in their order, those of its groups one by one.

    What no form could show is left out: lists of groups, and data of any shape (extensions).
    """
    fields: list[CardField] = []
    for name, info in model.model_fields.items():
        where, kind = (*prefix, name), info.annotation
        many = get_origin(kind) is list
        if many:
            kind = get_args(kind)[0]
            kind = get_args(kind)[0] if not isinstance(kind, type) and get_origin(kind) is not Literal else kind
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            fields += [] if many else card_fields(kind, where)
            continue
        if kind not in _KINDS and get_origin(kind) is not Literal:
            continue
        choices = tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()
        numbers = bool(choices) and all(isinstance(c, int) for c in get_args(kind))
        one: Kind = "number" if numbers else "choice" if choices else _KINDS[kind]
        what: Kind = ("choices" if choices else "lines") if many else one
        fields.append(CardField(where, what, info.description or "", info.is_required(), choices, tuple(model.model_fields)))
    return fields


def _model(path: Path) -> type[BaseModel]:
    if path.name == "bindings.yaml":
        return BindingFile
    if path.parent.name not in FOLDERS or path.suffix != ".yaml":
        raise AuthoringError(f"{path}: is no card; a card is a .yaml file in {', '.join(FOLDERS)}, or bindings.yaml")
    return FOLDERS[path.parent.name]


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as e:
        raise FileError(f"{path}: cannot be read ({e.strerror}); check the path and its permissions") from e


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")[: -1 if text.endswith("\n") else None]


def _in_words(detail: Any, line: str) -> str:
    """A validation error for a person who fills in a form; `line` is how it reads in a file's errors."""
    limits = detail.get("ctx", {})
    words = {
        "int_type": "write a whole number",
        "bool_type": "choose true or false",
        "datetime_type": "write a date and a time, e.g. 2026-03-06T20:31:00",
        "string_too_short": "write something",
        "string_type": "write a text",
        "list_type": "write one entry a line",
        "literal_error": "choose {expected}",
        "greater_than_equal": "write {ge} or more",
        "less_than_equal": "write {le} or less",
        "too_short": "write at least {min_length} line" + ("s" if limits.get("min_length", 1) > 1 else ""),
        "too_long": "write at most {max_length} lines",
        "string_too_long": "write at most {max_length} characters",
        "string_pattern_mismatch": "use letters, digits, _ and - only, a letter or digit first",
    }.get(detail["type"])
    if "isoformat" in detail["msg"]:
        words = "write a date, e.g. 2026-03-06"
    last = detail["loc"][-1] if detail["loc"] else ""
    entry = f"entry {last + 1}: " if isinstance(last, int) else ""
    if words is None:
        return entry + line.partition(": ")[2] if detail["loc"] else line
    shown = repr(detail["input"]) if isinstance(detail["input"], str | int) else ""
    return entry + words.format(**limits).replace("'", "") + (f" (found {shown[:60]})" if len(shown) > 2 else "")
