"""The dialogue record: one chat as it happened, with every ask behind it.

One JSON object a line in `dialogues.jsonl`; also the format in which dialogues from elsewhere come in
(those may lack `asks` and `guards`, and have no binding, scenario or persona).
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from anthrolab.cards.memory import Memory
from anthrolab.runtime.drafts import Action, Interruption

C = TypeVar("C")
Speaker = Literal["a", "b"]
_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d", re.ASCII)
STAMP = "%Y-%m-%dT%H:%M:%S"


def other(speaker: Speaker) -> Speaker:
    """The partner of a speaker."""
    return "b" if speaker == "a" else "a"


def parse_stamp(value: object) -> datetime:
    """A virtual time, `YYYY-MM-DDTHH:MM:SS`, without zone or fraction; ValueError for anything else."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise ValueError("a time is a text YYYY-MM-DDTHH:MM:SS")
    if not _WRITTEN.fullmatch(value):
        raise ValueError("a time is written YYYY-MM-DDTHH:MM:SS, without zone or fraction")
    return datetime.fromisoformat(value)


Stamp = Annotated[datetime, BeforeValidator(parse_stamp), PlainSerializer(lambda t: t.strftime(STAMP), return_type=str)]
"""A virtual time, whole seconds, no zone."""


class Record(BaseModel):
    """Common to all records: strict types; unknown fields are kept and written back."""

    model_config = ConfigDict(strict=True, extra="allow")


LATER: Any = Field(default=None, exclude_if=lambda value: value is None)
"""A field that records of earlier versions lack: left out where it is None, so that their lines, and the hashes of
these lines that verdicts hold, stay what they were."""


class Message(Record):
    """A message that was sent. `opener` marks the given first message: context, never scored."""

    speaker: Speaker
    content: str
    at: Stamp
    opener: bool


class Draft(Record):
    """An unsent message and the time at which it would go out."""

    content: str
    at: Stamp


class Decision(Record):
    """What a policy decided at one ask. `end` (or blank content) is silence; `at` is then the time of the ask
    or what the policy wrote."""

    content: str
    at: Stamp
    end: bool


class Ask(Record):
    """One question to a policy: who, when, which unsent draft it saw, and what it decided.

    `action` says what the decision made of that draft; `interrupted` how the partner's message found it (only
    where the run models typing). `error` says why the reply broke the contract (then there is no decision); `recovered` says how a bent
    reply was read all the same; `call` is the id of the model call in `calls/`.
    """

    speaker: Speaker
    now: Stamp
    previous_draft: Draft | None = None
    interrupted: Interruption | None = LATER
    decision: Decision | None = None
    action: Action | None = LATER
    error: str | None = None
    recovered: str | None = None
    call: str | None = None


Guard = Literal["self_repetition", "too_many_in_a_row", "goodbye_loop"]


class Guarded(Record):
    """A draft that a runtime guard dropped when it came up."""

    speaker: Speaker
    content: str
    guard: Guard
    at: Stamp


SummaryKind = Literal["facts", "emotions", "commitments", "open_topics"]


class Summary(Record):
    """The chat's compressed history up to its `upto`-th message (paper section 4.4); lines of plain text.

    `dropped` counts by kind the lines that the bounds have pushed out so far; `call` is the id of the model call, if
    one made it; `error` says why its reply was of no use: then these messages are in no summary.
    """

    upto: int = Field(ge=1)
    facts: list[str] = []
    emotions: list[str] = []
    commitments: list[str] = []
    open_topics: list[str] = []
    dropped: dict[SummaryKind, int] = Field(default={})
    call: str | None = None
    error: str | None = None


class Participant(Record):
    """Who sits at one side: the name in the chat and the persona card's id, if known."""

    name: str
    persona: str | None = None


Stop = Literal["closed", "horizon", "max_messages"]


class Dialogue(Record):
    """A whole chat. `messages` are in the order sent; `evaluated_role` is the side of the tested system.

    `memories`: what each side remembered of the other when it began (a side without memory is left out);
    `summaries`: the compressed history as it was shown, in order. Both are absent in dialogues from elsewhere.
    """

    dialogue_id: str
    binding: str | None = None
    scenario: str | None = None
    evaluated_role: Speaker
    sample: int = Field(default=0, ge=0)
    speakers: dict[Speaker, Participant]
    start: Stamp | None = None
    horizon_minutes: int | None = Field(default=None, gt=0)
    stop: str | None = None
    messages: list[Message]
    asks: list[Ask] | None = None
    guards: list[Guarded] | None = None
    memories: dict[Speaker, Memory] | None = LATER
    summaries: list[Summary] | None = LATER

    @model_validator(mode="after")
    def _both_sides(self) -> "Dialogue":
        if set(self.speakers) != {"a", "b"}:
            raise ValueError("speakers must have the keys 'a' and 'b'")
        return self

    def turns(self) -> list[int]:
        """Positions (from 0) in `messages` of the evaluated turns: messages of the tested side, without the opener."""
        return [i for i, m in enumerate(self.messages) if m.speaker == self.evaluated_role and not m.opener]

    def cards_of(self, personas: Mapping[str, C]) -> dict[Speaker, C]:
        """The speakers' persona cards, out of all cards by id; a side whose card is not known is left out."""
        return {s: personas[p.persona] for s, p in self.speakers.items() if p.persona and p.persona in personas}

    def to_line(self) -> str:
        """The record as one JSON line, fields in declared order."""
        return self.model_dump_json()
