"""What a speaker is shown of the chat so far: a summary of the older part, and the latest messages verbatim.

Paper section 4.4: C_{n+1} = F(C_n, h_{1:n-N}) while the latest N messages stay as they are. Messages are folded in
steps of `FOLD`, so between N and N + FOLD - 1 stand verbatim, and a prompt only grows between two foldings (which
is what prefix caches reward). Both speakers have seen the same messages, so a dialogue has one summary for both.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, get_args

from anthrolab.models.client import ModelError
from anthrolab.models.fence import inert
from anthrolab.runtime.dialogue import Summary, SummaryKind
from anthrolab.runtime.schedule import Sent
from anthrolab.runtime.seat import Seat
from anthrolab.runtime.text import line_key

FOLD = 8
"""Messages that are folded at once."""

LINE_CHARS = 60
"""Characters of one summary line; a longer one is cut."""

SUMMARY_CHARS = 2000
"""Characters of a summary, each line counted with `LABEL_CHARS`. Beyond it the oldest lines go, commitments last."""

LABEL_CHARS = 8
"""What a line's label and line end take at most where it is shown."""

KINDS: tuple[SummaryKind, ...] = get_args(SummaryKind)
GO_FIRST: tuple[SummaryKind, ...] = ("emotions", "facts", "open_topics", "commitments")


@dataclass(frozen=True)
class Recall:
    """The past as one ask is shown it: C (None while nothing is folded) and the tail, both up to now."""

    summary: Summary | None
    tail: tuple[Sent, ...]


@dataclass(frozen=True)
class Said:
    """A message with its virtual time and its speaker's name."""

    at: datetime
    name: str
    content: str


@dataclass(frozen=True)
class Notes:
    """What a summariser adds: new lines of the four kinds, and known lines that are settled and may go.

    `settled` names lines by kind and position in the known summary. `call` is the id of the model call, if any;
    `error` says that its reply was of no use (then there are no notes).
    """

    facts: tuple[str, ...] = ()
    emotions: tuple[str, ...] = ()
    commitments: tuple[str, ...] = ()
    open_topics: tuple[str, ...] = ()
    settled: frozenset[tuple[SummaryKind, int]] = frozenset()
    call: str | None = None
    error: str | None = None


class Summariser(Protocol):
    """F: what is worth keeping of messages that leave the window."""

    async def note(self, known: Summary | None, said: Sequence[Said]) -> Notes:
        """The notes on these messages. ModelError if none could be had: then the dialogue fails, nobody is scored."""
        ...


class History:
    """The past of one dialogue, shared by both speakers.

    `window` is N, the messages that always stand verbatim. Without a summariser older ones are simply not shown.
    `summaries` holds what was folded so far; a session that goes on from its log begins with those of the log.
    """

    def __init__(
        self, seat: Seat, window: int, summariser: Summariser | None = None, summaries: Sequence[Summary] = ()
    ) -> None:
        self._seat = seat
        self._window = window
        self._summariser = summariser
        self._turn = asyncio.Lock()
        self._failure: ModelError | None = None
        self.summaries = list(summaries)

    async def recall(self, messages: Sequence[Sent]) -> Recall:
        """What is shown when `messages` have been sent. ModelError as from the summariser, which is not asked again."""
        if self._summariser is None:
            return Recall(None, tuple(messages[-self._window :]))
        folds = max(0, len(messages) - self._window) // FOLD
        async with self._turn:
            while len(self.summaries) < folds:
                if self._failure is not None:  # the partner's ask of the same event has seen it
                    raise self._failure
                begin = FOLD * len(self.summaries)
                said = [self._said(m) for m in messages[begin : begin + FOLD]]
                known = self.summaries[-1] if self.summaries else None
                try:
                    notes = await self._summariser.note(known, said)
                except ModelError as e:
                    self._failure = e
                    raise
                self.summaries.append(merge(known, notes, begin + FOLD))
        return Recall(self.summaries[folds - 1] if folds else None, tuple(messages[FOLD * folds :]))

    def _said(self, message: Sent) -> Said:
        return Said(self._seat.clock(message.at_s), self._seat.name_of(message.speaker), message.content)


def merge(known: Summary | None, notes: Notes, upto: int) -> Summary:
    """The next summary: known lines that are not settled, then the new ones, within the bounds.

    Code and not a model carries the known lines over, so that no line is lost by not being repeated.
    """
    lines: dict[SummaryKind, list[str]] = {}
    for kind in KINDS:
        old: list[str] = getattr(known, kind) if known else []
        kept = [line for i, line in enumerate(old) if (kind, i) not in notes.settled]
        new: tuple[str, ...] = getattr(notes, kind)
        lines[kind] = _distinct(kept + [cut for line in new if (cut := _cut(line))])
    dropped = dict(known.dropped) if known else {}
    while sum(len(line) + LABEL_CHARS for of_kind in lines.values() for line in of_kind) > SUMMARY_CHARS:
        kind = next(kind for kind in GO_FIRST if lines[kind])
        lines[kind].pop(0)
        dropped[kind] = dropped.get(kind, 0) + 1
    return Summary(upto=upto, dropped=dropped, call=notes.call, error=notes.error, **lines)


def _cut(line: str) -> str:
    line = inert(line)
    return line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1] + "…"


def _distinct(lines: list[str]) -> list[str]:
    return list({line_key(line): line for line in lines}.values())
