"""The scenario card: one situation, seen from both sides (paper sections 4.2 and 6.1)."""

from datetime import datetime
from typing import Literal, get_args

from pydantic import Field, field_validator, model_validator

from anthrolab.cards.persona import Card, CardId, Extensions, Line

Category = Literal[
    "Sport", "Relation", "Interest", "Pet/Fam.", "Parenting", "Work",
    "Emotion", "News", "Daily", "Game", "Tech", "Finance",
]  # fmt: skip

CATEGORIES: tuple[Category, ...] = get_args(Category)
"""The twelve scenario families in the order of the paper's Tables 10 and 11."""


class Opener(Card):
    """The given first message: sent at `start`, context for both, never scored."""

    speaker: Literal["a", "b"]
    content: Line


PublicField = Literal["gender", "age", "occupation", "education", "city", "relationship_status"]
"""Fields of a persona card that a partner may know; all others are the person's own."""


class Side(Card):
    """What only one speaker has: where they are, what set them off, how they feel, what they know of the other.

    Of the partner's card a speaker sees the name and the fields that `sees` lists, of the partner's side nothing.
    """

    place: Line
    trigger: Line = Field(description="a concrete event, not a mood")
    emotion: Line
    knows: list[Line] = Field(min_length=1, description="what this speaker knows about the partner, in their own words")
    sees: list[PublicField] = Field(default=[], description="fields of the partner's card that this speaker knows as well")


class Sides(Card):
    """Both speakers' sides."""

    a: Side
    b: Side


class Scenario(Card):
    """One situation, as a card in `scenarios/<id>.yaml`."""

    id: CardId
    title: Line
    category: Category
    relationship: Line = Field(description="what the two are to each other, with a and b named by their roles")
    remote: bool = Field(description="true: they are not in the same place and only the chat connects them")
    start: datetime = Field(description="virtual start, local time without zone, e.g. 2026-03-06T20:31:00")
    horizon_minutes: Literal[8, 10, 15, 20, 25]
    goal: Line
    tone: Line
    opener: Opener
    speakers: Sides
    extensions: Extensions = Field(default={})

    @field_validator("start")
    @classmethod
    def _local_time(cls, value: datetime) -> datetime:
        if value.tzinfo is not None or value.microsecond:
            raise ValueError("write a local time in whole seconds without zone, e.g. 2026-03-06T20:31:00")
        return value

    @model_validator(mode="after")
    def _opener_is_short(self) -> "Scenario":
        if len(self.opener.content) > 60:
            raise ValueError(f"opener.content has {len(self.opener.content)} characters; a private message has at most 60")
        return self
