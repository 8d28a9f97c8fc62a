"""The persona card: one person (paper section 4.2)."""

import unicodedata
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""A non-empty text."""

def _can_stand_in_a_line(name: str) -> str:
    if any((unicodedata.category(c)[0] == "C" and c not in "\u200d") or unicodedata.category(c) in ("Zl", "Zp") for c in name):
        raise ValueError("holds a line break or a character that cannot be seen; write a name on one line")
    if "<" in name or ">" in name or ":" in name:
        raise ValueError("holds <, > or :, which stand for other things in a transcript; leave it out")
    return name


Name = Annotated[Line, AfterValidator(_can_stand_in_a_line)]
"""A name as it stands before every message."""

CardId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
"""A file-safe id such as p01."""

_JSON = TypeAdapter(dict[str, JsonValue])


def _untouched(value: object) -> dict[str, JsonValue]:
    """JSON as it is: the cards' own settings would strip the blanks of every text in it."""
    try:
        return _JSON.validate_python(value, strict=True)
    except ValidationError as e:
        raise ValueError("holds something that JSON has not (a date, say), or is nested too deep; write it as a text") from e


Extensions = Annotated[
    dict[str, JsonValue],
    PlainValidator(_untouched, json_schema_input_type=dict[str, JsonValue]),
    Field(exclude_if=lambda kept: not kept, description="what outside formats hold and this card has no place for; in no prompt"),
]
"""By the name of the format (`anthrolab/cards/exchange/`). Left out of every dump, and so of hashes, while it is empty."""

Gender = Literal["女", "男"]
RelationshipStatus = Literal["单身", "恋爱", "已婚", "离异", "丧偶"]


class Card(BaseModel):
    """Common to all cards: strict types, no unknown fields, no blanks around texts."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, str_strip_whitespace=True)


class ExpressionHabits(Card):
    """How this person types."""

    catchphrases: list[Line] = Field(description="口头禅 and pet words, as typed; may be empty for the curt")
    punctuation: Line = Field(description="what they do with punctuation, e.g. 几乎不用句号，爱用空格断句")
    emoji: Line = Field(description="which emoji or stickers-as-text they use, or that they use none")
    typical_length: Line = Field(description="how long a message is and how they split, e.g. 一条五六个字，爱连发")


class HardFacts(Card):
    """Facts that the gate compares first-person statements with (L0-06). Every listed word is a true answer."""

    age: int = Field(ge=6, le=110)
    gender: Gender
    city: list[Line] = Field(min_length=1, description="places the person may truly say to live in or be from")
    occupation: list[Line] = Field(min_length=1, description="words the person may truly use for their work")
    relationship_status: RelationshipStatus


class Persona(Card):
    """One person, as a card in `personas/<id>.yaml`."""

    id: CardId
    name: Name
    gender: Gender
    age: int = Field(ge=6, le=110, description="years")
    occupation: Line
    education: Line
    city: Line
    relationship_status: Line = Field(description="in the person's own terms; the gate uses hard_facts")
    personality: list[Line] = Field(min_length=2)
    interests: list[Line] = Field(min_length=2)
    weak_topics: list[Line] = Field(min_length=1, description="topics they know little of and would be unsure about")
    expression_habits: ExpressionHabits
    knowledge_boundaries: list[Line] = Field(min_length=1, description="what they know from life and where it ends")
    hard_facts: HardFacts
    extensions: Extensions = Field(default={})

    @model_validator(mode="after")
    def _facts_agree(self) -> "Persona":
        if self.hard_facts.age != self.age:
            raise ValueError(f"hard_facts.age is {self.hard_facts.age} but age is {self.age}; make them equal")
        if self.hard_facts.gender != self.gender:
            raise ValueError("hard_facts.gender and gender differ; make them equal")
        if not any(place in self.city for place in self.hard_facts.city):
            raise ValueError("no entry of hard_facts.city is part of city; list the city by its usual short name")
        return self
