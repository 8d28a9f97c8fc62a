"""Long-term memory: what one person remembers of another from earlier chats (paper section 4.4).

One section per partner; background knowledge, never current history. As a card in `memories/<owner>-<partner>.yaml`
it is what a benchmark session begins with; after a session `runtime/memory.py` makes the next version of it.
"""

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, StringConstraints, model_validator

from anthrolab.cards.persona import Card, CardId, Extensions

Section = Literal["facts", "preferences", "relationship", "concerns"]
SECTIONS: tuple[Section, ...] = ("facts", "preferences", "relationship", "concerns")

MAX_LINES = 6
"""Lines that a section may have."""
LINE_CHARS = 60
"""Characters that a line may have."""


def _one_line(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise ValueError("is more than one line; make it two entries")
    return text


def _whole_day(value: object) -> object:
    if isinstance(value, datetime):
        raise ValueError("is a time; write a date, e.g. 2026-03-06")
    return date.fromisoformat(value) if isinstance(value, str) else value


MemoryLine = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LINE_CHARS), AfterValidator(_one_line)
]
"""One remembered thing, in the owner's words."""

Day = Annotated[date, BeforeValidator(_whole_day), PlainSerializer(lambda d: d.isoformat(), return_type=str)]
"""A day of virtual time, YYYY-MM-DD."""


class Memory(Card):
    """What `owner` remembers of `partner` (persona ids). Durable things only; `as_of` is the day of their last chat.

    `version` counts the sessions that have made it (0: it came as a card).
    """

    owner: CardId
    partner: CardId
    version: int = Field(default=0, ge=0)
    as_of: Day = Field(description="the day of their last chat, e.g. 2026-02-20")
    facts: list[MemoryLine] = Field(default=[], max_length=MAX_LINES, description="who they are, what happened, with dates")
    preferences: list[MemoryLine] = Field(default=[], max_length=MAX_LINES, description="likes, dislikes, habits")
    relationship: list[MemoryLine] = Field(default=[], max_length=MAX_LINES, description="how the two stand")
    concerns: list[MemoryLine] = Field(default=[], max_length=MAX_LINES, description="what keeps coming back to them")
    extensions: Extensions = Field(default={})

    @model_validator(mode="after")
    def _of_someone_else(self) -> "Memory":
        if self.owner == self.partner:
            raise ValueError("owner and partner are the same persona; a memory is of someone else")
        return self

    def lines(self) -> list[str]:
        """All lines in the order of the sections."""
        return [line for section in SECTIONS for line in self.of(section)]

    def of(self, section: Section) -> list[str]:
        """The lines of one section."""
        found: list[str] = getattr(self, section)
        return found
