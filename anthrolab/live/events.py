"""What happens in a live chat, event by event: its state is what follows from them, in memory as on disk."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from anthrolab.files import append_line, cut_torn_line, whole_lines
from anthrolab.live.care import Concern
from anthrolab.live.context import EMPTY, Context, Refused, rewound
from anthrolab.live.scene import ChatError
from anthrolab.models.client import Fault
from anthrolab.runtime.dialogue import LATER, Record, Speaker, Summary
from anthrolab.runtime.policy import Answer
from anthrolab.runtime.schedule import Plan, Sent

Ended = Literal["closed", "left", "horizon", "max_messages"]
"""closed: the person ended it and the persona had nothing more to say; left: it still had; the others as the scheduler says."""


class Begun(Record):
    """The first event: what the chat was opened with. What differs then on going on is an error."""

    event: Literal["begun"] = "begun"
    setting: dict[str, Any]


class Typed(Record):
    """The person sent this, to go out at `at_s` (at the earliest): while the model decides, it waits."""

    event: Literal["typed"] = "typed"
    content: str
    at_s: int


class MessageSent(Record):
    """A message went out, `at_s` seconds after the start."""

    event: Literal["message"] = "message"
    speaker: Speaker
    content: str
    at_s: int


class Answered(Record):
    """The persona's answer to the ask after the last message. `content` None: the reply broke the contract (`error`)."""

    event: Literal["answer"] = "answer"
    content: str | None
    delay_s: int = 0
    end: bool = False
    error: str | None = LATER
    recovered: str | None = LATER
    call: str | None = LATER


class Summarised(Record):
    """Older messages were folded into a summary."""

    event: Literal["summary"] = "summary"
    summary: Summary


class ContextSet(Record):
    """What is taken to be known of the person and the scene, from the next ask on. `by`: the analyser, or the person by hand."""

    event: Literal["context"] = "context"
    by: Literal["analyser", "hand"]
    context: Context
    refused: list[Refused] = Field(default=[])
    error: str | None = LATER
    call: str | None = LATER


class Notice(Record):
    """The chat stepped out of character: the concern, the words, and the position (from 0) of the message they stand in."""

    event: Literal["notice"] = "notice"
    concern: Concern
    words: str
    speaker: Speaker
    message: int


class WentOn(Record):
    """The person read the notice and went on."""

    event: Literal["went_on"] = "went_on"


class Failed(Record):
    """A model could not be had; nothing is decided, and the ask stays open."""

    event: Literal["failed"] = "failed"
    fault: Fault
    message: str


class Rewound(Record):
    """Everything after a message (its position from 0) is taken back."""

    event: Literal["rewound"] = "rewound"
    to: int = Field(ge=0)


class Over(Record):
    """The chat ended."""

    event: Literal["over"] = "over"
    stop: Ended


Event = Begun | Typed | MessageSent | Answered | Summarised | ContextSet | Notice | WentOn | Failed | Rewound | Over
_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


@dataclass
class State:
    """What follows from the events so far. `answers` has one entry a message, but for the last if it still waits for one.
    `analyses`: what the analyser made of it, refusals with it.
    `typed`: what the person sent and is not out yet, in the order of its time. `person`: the person's side."""

    person: Speaker
    typed: list[Typed] = field(default_factory=list)
    messages: list[Sent] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    context: Context = field(default_factory=Context)
    contexts: list[tuple[int, Context]] = field(default_factory=list)
    analyses: list[ContextSet] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    held: bool = False
    rewinds: int = 0
    stop: Ended | None = None
    trouble: str | None = None

    def apply(self, event: Event) -> None:
        """One more event."""
        match event:
            case Typed():
                self.typed = sorted([*self.typed, event], key=lambda one: one.at_s)
            case MessageSent():
                if event.speaker == self.person:
                    self.typed = self.typed[1:]
                self.messages.append(Sent(event.speaker, event.content, event.at_s))
            case Answered():
                plan = None if event.content is None else Plan(event.content, event.delay_s, event.end)
                self.answers.append(Answer(plan, event.error, event.recovered, event.call))
                self.trouble = None
            case Summarised():
                self.summaries.append(event.summary)
            case ContextSet():
                self.context = event.context
                self.contexts.append((len(self.messages), event.context))
                if event.by == "analyser":
                    self.analyses.append(event)
            case Notice():
                self.notices.append(event)
                self.held = True
            case WentOn():
                self.held = False
            case Failed():
                self.trouble = event.message
            case Rewound():
                self._rewind(event.to)
            case Over():
                self.stop = event.stop
            case Begun():
                pass

    def _rewind(self, to: int) -> None:
        self.messages, self.answers = self.messages[: to + 1], self.answers[:to]
        self.summaries = [s for s in self.summaries if s.upto <= to + 1]
        self.context = rewound(self.context, to + 1)
        self.contexts = [(after, c) for after, c in self.contexts if after <= to + 1]
        if (self.contexts[-1][1] if self.contexts else EMPTY) != self.context:
            self.contexts.append((to + 1, self.context))
        self.analyses = [a for a in self.analyses if a.context.upto <= to + 1]
        self.notices = [n for n in self.notices if n.message <= to]
        self.rewinds += 1
        self.typed, self.held, self.stop, self.trouble = [], False, None, None


def answered(answer: Answer) -> Answered:
    """An answer as an event."""
    plan = answer.plan
    said: dict[str, Any] = {"error": answer.error, "recovered": answer.recovered, "call": answer.call}
    if plan is None:
        return Answered(content=None, **said)
    return Answered(content=plan.content, delay_s=plan.delay_s, end=plan.end, **said)


@dataclass
class SessionLog:
    """The events of one chat on disk, one JSON object a line; nothing is ever taken out again."""

    path: Path

    def begun(self) -> Begun | None:
        """What the chat was opened with; None if it has not begun. ChatError if the file begins with something else."""
        first = next(self._read(), None)
        if first is not None and not isinstance(first, Begun):
            raise ChatError(f"{self.path}: line 1: is not the beginning of a chat; restore it, or begin another chat")
        return first

    def events(self) -> list[Event]:
        """The events so far; a last line that a killed writer left half-written is cut off. ChatError names a bad line."""
        cut_torn_line(self.path)
        return list(self._read())

    def _read(self) -> Iterator[Event]:
        for number, line in enumerate(whole_lines(self.path) if self.path.exists() else (), 1):
            try:
                yield _EVENT.validate_json(line)
            except ValidationError as e:
                first = e.errors(include_url=False)[0]
                where = ".".join(map(str, first["loc"]))
                raise ChatError(f"{self.path}: line {number}: {where}: {first['msg']}; restore the line, or begin another chat") from e

    def add(self, event: Event) -> None:
        """One more event, on disk before anything follows from it."""
        append_line(self.path, event.model_dump_json())


def check_same_chat(begun: Begun, setting: Mapping[str, Any], path: Path) -> None:
    """ChatError if a chat on disk was opened with something else than it is gone on with."""
    old, new = begun.setting, json.loads(json.dumps(setting))
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            raise ChatError(
                f"{path}: {key} was {old.get(key)!r:.80} when the chat began and is {new.get(key)!r:.80} now; "
                "go on with the same, or begin another chat"
            )
