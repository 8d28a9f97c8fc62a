"""The labelled set: gold dialogues, untouched or edited, each with what must fail in it and what must not.

One JSON object a line. An item holds no dialogue but the edits that make it from a gold one, so that each can be read
and checked by eye. A positive is a violated constraint or a failed checkbox.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from anthrolab.errors import AnthrolabError
from anthrolab.files import read_text, write_atomic
from anthrolab.runtime.dialogue import Ask, Decision, Dialogue, Message, Record, Speaker, other

UNTOUCHED = "none"
"""The edit of an item that is a gold dialogue as it is."""


class LabelledError(AnthrolabError):
    """A labelled set that cannot be read or does not fit its gold dialogues."""


class Op(Record):
    """One edit; positions count from 0 in the dialogue as it is when its turn comes. The opener (0) is never touched."""


class Insert(Op):
    """A message of `speaker` after message `after`, `wait_s` seconds later; what follows keeps its distances."""

    op: Literal["insert"] = "insert"
    after: int = Field(ge=0)
    speaker: Speaker
    content: str
    wait_s: int = Field(ge=0)


class Replace(Op):
    """Another text for message `at`."""

    op: Literal["replace"] = "replace"
    at: int = Field(ge=1)
    content: str


class Drop(Op):
    """No message `at`; the one after it moves up by its distance."""

    op: Literal["drop"] = "drop"
    at: int = Field(ge=1)


class Retime(Op):
    """Message `at` comes `gap_s` seconds after the one before it (negative: before it)."""

    op: Literal["retime"] = "retime"
    at: int = Field(ge=1)
    gap_s: int


class Broken(Op):
    """The reply of `speaker`, asked after message `after`, broke the contract (`error`), or was read all the same
    (`recovered`). Messages stay as they are."""

    op: Literal["broken"] = "broken"
    after: int = Field(ge=0)
    speaker: Speaker
    error: str | None = None
    recovered: str | None = None


AnyOp = Annotated[Insert | Replace | Drop | Retime | Broken, Field(discriminator="op")]


class Fails(Record):
    """A positive: `id` ("L0-03", "D1.3", "E4.1") fails. `turn` (evaluated turn from 1) is set for turn checkboxes,
    `message` (from 0 in the edited dialogue) for constraints that show in one message."""

    id: str
    turn: int | None = Field(default=None, ge=1)
    message: int | None = Field(default=None, ge=0)


class Labelled(Record):
    """One item. `edit` and `seed` say what made it; `holds` lists the ids that fail nowhere in this dialogue."""

    id: str
    gold: str
    role: Speaker
    edit: str
    seed: int
    ops: list[AnyOp] = Field(default=[])
    fails: list[Fails] = Field(default=[])
    holds: list[str] = Field(default=[])

    @model_validator(mode="after")
    def _not_both(self) -> "Labelled":
        if both := {f.id for f in self.fails} & set(self.holds):
            raise ValueError(f"{self.id}: {', '.join(sorted(both))} cannot both fail and hold")
        return self


@dataclass(frozen=True)
class _Said:
    speaker: Speaker
    content: str
    gap_s: int


def applied(item: Labelled, gold: Mapping[str, Dialogue]) -> Dialogue:
    """The dialogue of an item: the gold one with its edits, asks that fit its messages, and the item's id and role.

    An untouched one keeps its own asks, drafts included. LabelledError if it does not fit the gold dialogues.
    """
    if item.gold not in gold:
        raise LabelledError(f"{item.id}: no gold dialogue of binding {item.gold}; the set was made from others")
    source = gold[item.gold]
    base = {"dialogue_id": item.id, "evaluated_role": item.role}
    if not item.ops:
        return source.model_copy(update=base)
    assert source.start is not None
    said = [
        _Said(m.speaker, m.content, int((m.at - before.at).total_seconds()))
        for before, m in pairwise([source.messages[0], *source.messages])
    ]
    broken: list[Broken] = []
    for op in item.ops:
        if isinstance(op, Broken):
            broken.append(op)
        else:
            _change(said, op, item.id)
    at, messages = source.start, []
    for number, s in enumerate(said):
        at += timedelta(seconds=s.gap_s)
        messages.append(Message(speaker=s.speaker, content=s.content, at=at, opener=number == 0))
    return source.model_copy(update={**base, "messages": messages, "asks": _asks(messages, broken), "stop": "closed"})


def _change(said: list[_Said], op: Insert | Replace | Drop | Retime, item_id: str) -> None:
    position = op.after if isinstance(op, Insert) else op.at
    if position >= len(said):
        raise LabelledError(f"{item_id}: {op.op} at {position}, but the dialogue has {len(said)} messages")
    if isinstance(op, Insert):
        said.insert(op.after + 1, _Said(op.speaker, op.content, op.wait_s))
    elif isinstance(op, Replace):
        said[op.at] = replace(said[op.at], content=op.content)
    elif isinstance(op, Retime):
        said[op.at] = replace(said[op.at], gap_s=op.gap_s)
    else:
        del said[op.at]


def _asks(messages: Sequence[Message], broken: Iterable[Broken]) -> list[Ask]:
    """Both asks after every message: who wrote the next one decided on it, the other was silent."""
    table = {(b.after, b.speaker): b for b in broken}
    asks = []
    for number, message in enumerate(messages):
        after = messages[number + 1] if number + 1 < len(messages) else None
        for speaker in (message.speaker, other(message.speaker)):
            hit = table.get((number, speaker))
            if hit is not None and hit.error is not None:
                asks.append(Ask(speaker=speaker, now=message.at, error=hit.error))
                continue
            writes = after is not None and after.speaker == speaker
            decision = Decision(content=after.content, at=after.at, end=False) if after is not None and writes else None
            asks.append(
                Ask(
                    speaker=speaker,
                    now=message.at,
                    decision=decision or Decision(content="", at=message.at, end=True),
                    recovered=hit.recovered if hit else None,
                )
            )
    return asks


def untouched(gold: Mapping[str, Dialogue], ids: Sequence[str]) -> list[Labelled]:
    """Both roles of every gold dialogue, in which all of `ids` hold."""
    return [
        Labelled(id=f"gold-{key}-{role}", gold=key, role=role, edit=UNTOUCHED, seed=0, holds=list(ids))
        for key in gold
        for role in ("a", "b")
    ]


def load_labelled(path: Path) -> list[Labelled]:
    """The items of a file; LabelledError names the line."""
    items: list[Labelled] = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            items.append(Labelled.model_validate_json(line))
        except ValidationError as e:
            problem = e.errors(include_url=False)[0]
            where = ".".join(map(str, problem["loc"]))
            raise LabelledError(f"{path}: line {number}: {where}: {problem['msg']}; mend the line or make the set again") from e
    if len({item.id for item in items}) < len(items):
        raise LabelledError(f"{path}: an id stands twice; make the set again")
    return items


def load_all_labelled(folder: Path) -> list[Labelled]:
    """The items of a folder's `*.jsonl`, in order; LabelledError names both files of an id that stands in two."""
    items: list[Labelled] = []
    where: dict[str, Path] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for item in load_labelled(path):
            if item.id in where:
                raise LabelledError(f"{path}: the id {item.id} stands in {where[item.id]} too; take one of the two out")
            where[item.id] = path
            items.append(item)
    return items


def save_labelled(items: Iterable[Labelled], path: Path) -> None:
    """One JSON object a line, in order."""
    lines = [json.dumps(item.model_dump(mode="json", exclude_defaults=False), ensure_ascii=False) for item in items]
    write_atomic(path, "\n".join(lines) + "\n")
