"""The seat: everything about a dialogue that one speaker's policy may know, and no more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import lru_cache

from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Opener, Scenario, Side
from anthrolab.cards.skill import Skill
from anthrolab.models.fence import inert
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
class Scene:
    """What both speakers know of a scenario: the card without its two sides."""

    id: str
    relationship: str
    remote: bool
    start: datetime
    horizon_minutes: int
    goal: str
    tone: str
    opener: Opener

    @classmethod
    def of(cls, scenario: Scenario) -> "Scene":
        """The public part of a card."""
        return cls(**{f.name: getattr(scenario, f.name) for f in fields(cls)})


@dataclass(frozen=True)
class Seat:
    """Speaker i's place at the table, the arguments of z_i = R(p_i, p_j, s, m_ij, k) (paper section 4.2).

    Own card, the partner as far as known, the scene, own side of it, own memory of the partner, the skills. The
    partner's card, side and memory are not here on purpose: what is not here reaches no prompt.
    """

    speaker: Speaker
    persona: Persona
    partner: Partner
    scene: Scene
    side: Side
    memory: Memory | None = None
    skills: tuple[Skill, ...] = ()

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
        return self.scene.start + timedelta(seconds=at_s)

    def line(self, message: Sent) -> str:
        """A message as a transcript line, `[20:31:05] 名字: …`, inert and cut if it is very long."""
        return f"[{self.clock(message.at_s):%H:%M:%S}] {self.name_of(message.speaker)}: {shown(message.content)}"


@lru_cache(maxsize=8192)  # a message is shown at every ask until it leaves the window
def shown(content: str) -> str:
    """A message or a draft as a prompt shows it: inert, on one line, at most `SHOWN_CHARS` of it."""
    if len(content) <= SHOWN_CHARS:
        return inert(content)
    return f"{inert(content[:SHOWN_CHARS])}…（一共{len(content)}个字）"


def seats(
    persona_a: Persona,
    persona_b: Persona,
    scenario: Scenario,
    *,
    memories: Mapping[tuple[str, str], Memory] | None = None,
    skills: Sequence[Skill] = (),
) -> dict[Speaker, Seat]:
    """Both seats of a binding; `memories` by (owner, partner), of which each gets its own.

    ValueError for a memory from after the start of the scenario (cards are checked for that when they are loaded).
    """
    people: dict[Speaker, Persona] = {"a": persona_a, "b": persona_b}
    table: dict[Speaker, Seat] = {}
    for speaker, persona in people.items():
        partner = people[other(speaker)]
        side = scenario.speakers.a if speaker == "a" else scenario.speakers.b
        known = tuple(_written(partner, field) for field in side.sees)
        memory = (memories or {}).get((persona.id, partner.id))
        if memory is not None and memory.as_of > scenario.start.date():
            raise ValueError(f"the memory of {persona.id} about {partner.id} is as of {memory.as_of}, after {scenario.id} begins")
        table[speaker] = Seat(speaker, persona, Partner(partner.name, known), Scene.of(scenario), side, memory, tuple(skills))
    return table


def _written(persona: Persona, field: str) -> str:
    value = getattr(persona, field)
    return f"{value}岁" if field == "age" else str(value)
