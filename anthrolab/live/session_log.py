"""The events of a live chat on disk."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from anthrolab.files import append_line, cut_torn_line, whole_lines
from anthrolab.live.events import EVENT, Begun, Event
from anthrolab.live.scene import ChatError


@dataclass
class SessionLog:
    """The events of one chat on disk, one JSON object a line; nothing is ever taken out again."""

    path: Path

    def begun(self) -> Begun | None:
        """What the chat was opened with; None if it has not begun. ChatError if the file begins with something else."""
        first = next(self._read(), None)
        if first is not None and not isinstance(first, Begun):
            raise _no_beginning(self.path)
        return first

    def events(self) -> list[Event]:
        """The events so far; a last line that a killed writer left half-written is cut off. ChatError names a bad line."""
        cut_torn_line(self.path)
        return list(self._read())

    def _read(self) -> Iterator[Event]:
        for number, line in enumerate(whole_lines(self.path) if self.path.exists() else (), 1):
            try:
                yield EVENT.validate_json(line)
            except ValidationError as e:
                first = e.errors(include_url=False)[0]
                where = "".join(f"{part}: " for part in first["loc"])
                raise ChatError(f"{self.path}: line {number}: {where}{first['msg']}; restore the line from a copy, or begin another chat") from e

    def add(self, event: Event) -> None:
        """One more event, on disk before anything follows from it."""
        append_line(self.path, event.model_dump_json())


def check_same_chat(begun: Event, setting: Mapping[str, Any], path: Path) -> None:
    """ChatError if a chat on disk does not begin with its beginning, or was opened with something else than it is gone on with."""
    if not isinstance(begun, Begun):
        raise _no_beginning(path)
    old, new = begun.setting, json.loads(json.dumps(setting))
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            raise ChatError(
                f"{path}: {key} was {old.get(key)!r:.80} when the chat began and is {new.get(key)!r:.80} now; "
                "go on with the same, or begin another chat"
            )


def _no_beginning(path: Path) -> ChatError:
    return ChatError(f"{path}: line 1: is not the beginning of a chat; restore it, or begin another chat")
