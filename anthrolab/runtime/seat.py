"""The seat: everything about a dialogue that one speaker's policy may know, and no more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario, Side
from anthrolab.cards.skill import Skill
from anthrolab.runtime.dialogue import Speaker, other
from anthrolab.runtime.schedule import Sent

SHOWN_CHARS = 400
"""Characters of one message that a prompt shows; a longer one is cut there, and the prompt says how long it is."""


@dataclass(frozen=True)
class Partner:
    """What a speaker may know of the partner's card: the name, and the fields that the scenario says they know."""

    name: str
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seat:
    """Speaker i's place at the table, the arguments of z_i = R(p_i, p_j, s, m_ij, k) (paper section 4.2).

    Own card, the partner as far as known, own side of the scenario, own memory of the partner, the skills. The
    partner's card is not here on purpose: `Partner` holds all of it that may reach a prompt.
    """

    speaker: Speaker
    persona: Persona
    partner: Partner
    scenario: Scenario
    memory: Memory | None = None
    skills: tuple[Skill, ...] = ()

    @property
    def side(self) -> Side:
        """This speaker's own place, trigger, emotion and knowledge of the partner."""
        return self.scenario.speakers.a if self.speaker == "a" else self.scenario.speakers.b

    @property
    def name(self) -> str:
        """The speaker's name in the chat."""
        return self.persona.name

    @property
    def partner_name(self) -> str:
        """The partner's name in the chat."""
        return self.partner.name

    def name_of(self, speaker: Speaker) -> str:
        """The name shown before a message."""
        return self.name if speaker == self.speaker else self.partner_name

    def clock(self, at_s: int) -> datetime:
        """Virtual time at `at_s` seconds after the start."""
        return self.scenario.start + timedelta(seconds=at_s)

    def line(self, message: Sent) -> str:
        """A message as a transcript line, `[20:31:05] 名字: …` (line breaks inside it become spaces)."""
        content = " ".join(message.content.split("\n"))
        return f"[{self.clock(message.at_s):%H:%M:%S}] {self.name_of(message.speaker)}: {shown(content)}"


def shown(content: str) -> str:
    """A message as far as a prompt shows it."""
    return content if len(content) <= SHOWN_CHARS else f"{content[:SHOWN_CHARS]}…（一共{len(content)}个字）"


def seats(
    persona_a: Persona,
    persona_b: Persona,
    scenario: Scenario,
    *,
    memories: Mapping[tuple[str, str], Memory] | None = None,
    skills: Sequence[Skill] = (),
) -> dict[Speaker, Seat]:
    """Both seats of a binding; `memories` by (owner, partner), of which each gets its own."""
    people: dict[Speaker, Persona] = {"a": persona_a, "b": persona_b}
    table: dict[Speaker, Seat] = {}
    for speaker, persona in people.items():
        partner = people[other(speaker)]
        side = scenario.speakers.a if speaker == "a" else scenario.speakers.b
        known = tuple(_written(partner, field) for field in side.sees)
        memory = (memories or {}).get((persona.id, partner.id))
        table[speaker] = Seat(speaker, persona, Partner(partner.name, known), scenario, memory, tuple(skills))
    return table


def _written(persona: Persona, field: str) -> str:
    value = getattr(persona, field)
    return f"{value}岁" if field == "age" else str(value)
