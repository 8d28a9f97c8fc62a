"""The seat: everything about a dialogue that one speaker's policy may know, and no more."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario, Side
from anthrolab.runtime.dialogue import Speaker, other
from anthrolab.runtime.schedule import Sent


@dataclass(frozen=True)
class Seat:
    """Speaker i's place at the table: own card, own side of the scenario, and the partner's name.

    The partner's card is not here on purpose: what i knows of j is `scenario.speakers.<i>.knows`.
    """

    speaker: Speaker
    persona: Persona
    partner_name: str
    scenario: Scenario

    @property
    def side(self) -> Side:
        """This speaker's own place, trigger, emotion and knowledge of the partner."""
        return self.scenario.speakers.a if self.speaker == "a" else self.scenario.speakers.b

    @property
    def name(self) -> str:
        """The speaker's name in the chat."""
        return self.persona.name

    def name_of(self, speaker: Speaker) -> str:
        """The name shown before a message."""
        return self.name if speaker == self.speaker else self.partner_name

    def clock(self, at_s: int) -> datetime:
        """Virtual time at `at_s` seconds after the start."""
        return self.scenario.start + timedelta(seconds=at_s)

    def line(self, message: Sent) -> str:
        """A message as a transcript line, `[20:31:05] 名字: …` (line breaks inside it become spaces)."""
        content = " ".join(message.content.split("\n"))
        return f"[{self.clock(message.at_s):%H:%M:%S}] {self.name_of(message.speaker)}: {content}"


def seats(persona_a: Persona, persona_b: Persona, scenario: Scenario) -> dict[Speaker, Seat]:
    """Both seats of a binding."""
    people: dict[Speaker, Persona] = {"a": persona_a, "b": persona_b}
    return {s: Seat(s, people[s], people[other(s)].name, scenario) for s in people}
