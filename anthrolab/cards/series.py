"""A series: several sessions of one pair, days apart in virtual time (paper section 4.4). One file in `series/`."""

from itertools import pairwise

from pydantic import Field, model_validator

from anthrolab.cards.persona import Card, CardId, Line
from anthrolab.cards.scenario import Scenario


class Series(Card):
    """The pair and its sessions, each a whole scenario card. What earlier sessions taught belongs into the
    speakers' memories, not into the `knows` of later ones."""

    id: CardId
    title: Line
    persona_a: CardId
    persona_b: CardId
    sessions: list[Scenario] = Field(min_length=2)

    @model_validator(mode="after")
    def _one_after_the_other(self) -> "Series":
        if self.persona_a == self.persona_b:
            raise ValueError("persona_a and persona_b are the same card; a chat needs two people")
        if len({s.id for s in self.sessions}) < len(self.sessions):
            raise ValueError("two sessions have the same id; give every session its own")
        for before, after in pairwise(self.sessions):
            if after.start.date() <= before.start.date():
                raise ValueError(f"session {after.id} starts on the day of {before.id} or before it; give it a later start")
        return self
