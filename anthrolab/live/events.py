"""What happens in a live chat, event by event. `state.State` is what follows from them, in memory as on disk."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from anthrolab.live.care import Concern
from anthrolab.live.context import Context, Refused
from anthrolab.models.client import Fault
from anthrolab.runtime.dialogue import LATER, Guard, Record, Speaker, Summary
from anthrolab.runtime.policy import Answer

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


class ContextSet(Record):
    """What is taken to be known of the person and the scene, from the next ask on. `by`: the analyser, or the person by hand."""

    event: Literal["context"] = "context"
    by: Literal["analyser", "hand"]
    context: Context
    refused: list[Refused] = Field(default=[])
    error: str | None = LATER
    call: str | None = LATER


class Answered(Record):
    """The persona's answer to the ask after the last message. `content` None: the reply broke the contract (`error`).
    `analysis`: what the analyser, which was asked at the same time, made of the messages; in one line with the answer, so
    that a kill leaves both or neither."""

    event: Literal["answer"] = "answer"
    content: str | None
    delay_s: int = 0
    end: bool = False
    error: str | None = LATER
    recovered: str | None = LATER
    call: str | None = LATER
    analysis: ContextSet | None = LATER


class Summarised(Record):
    """Older messages were folded into a summary."""

    event: Literal["summary"] = "summary"
    summary: Summary


class Notice(Record):
    """The chat stepped out of character: the concern, the words, and the position (from 0) of the message they stand in."""

    event: Literal["notice"] = "notice"
    concern: Concern
    words: str
    speaker: Speaker
    message: int


class WentOn(Record):
    """The person read the notice and went on, or had the model asked again after it had failed."""

    event: Literal["went_on"] = "went_on"


class Failed(Record):
    """A model could not be had; nothing is decided, and the ask stays open."""

    event: Literal["failed"] = "failed"
    fault: Fault
    message: str


class DraftDropped(Record):
    """A guard dropped the persona's draft when its time came."""

    event: Literal["dropped"] = "dropped"
    content: str
    guard: Guard
    at_s: int


class Rewound(Record):
    """Everything after a message (its position from 0) is taken back."""

    event: Literal["rewound"] = "rewound"
    to: int = Field(ge=0)


class Over(Record):
    """The chat ended."""

    event: Literal["over"] = "over"
    stop: Ended


Event = Begun | Typed | MessageSent | Answered | Summarised | ContextSet | Notice | WentOn | Failed | DraftDropped | Rewound | Over
EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])
"""Reads one event of any kind."""


def answered(answer: Answer, analysis: ContextSet | None) -> Answered:
    """An answer as an event."""
    plan = answer.plan
    said: dict[str, Any] = {"error": answer.error, "recovered": answer.recovered, "call": answer.call, "analysis": analysis}
    if plan is None:
        return Answered(content=None, **said)
    return Answered(content=plan.content, delay_s=plan.delay_s, end=plan.end, **said)
