"""Who sits down with whom: a persona that a model plays, and the person it talks with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from anthrolab.bench.cases import Case, select_cases
from anthrolab.cards.library import Library
from anthrolab.cards.persona import Name, Persona
from anthrolab.cards.scenario import Category, Opener, Scenario, Side, Sides
from anthrolab.cards.skill import Skill
from anthrolab.errors import AnthrolabError
from anthrolab.runtime.dialogue import Speaker, other
from anthrolab.runtime.schedule import Rules
from anthrolab.runtime.seat import Partner, Scene, Seat, seats
from anthrolab.yaml_files import suggest

OPEN = "open"
"""Stands for the scenario of a chat that has no card."""

NO_END_S = 10 * 365 * 24 * 3600
"""The horizon of a chat without one, in seconds: ten years."""

_OPEN_SIDE = Side(
    place="忙自己的事，手机在手边",
    trigger="对方发来了消息",
    emotion="跟平常一样",
    knows=["刚加上微信，还没怎么聊过"],
)
_PERSON: TypeAdapter[str] = TypeAdapter(Name)


class ChatError(AnthrolabError):
    """A chat that cannot be had as asked."""


@dataclass(frozen=True)
class Setting:
    """The two sides of a live chat. `seat` is the persona's place; `person` is the person's name in the chat and `side` the
    person's side. `card`: the card whose part the person takes (None: the person is just themselves). `minutes`: virtual
    minutes after which the chat ends, 0 for no end."""

    seat: Seat
    person: str
    side: Speaker
    category: Category
    opener: Opener | None = None
    binding: str | None = None
    card: Persona | None = None
    part: Side | None = None
    minutes: int = 0

    def rules(self, max_messages: int, typing_speed: int) -> Rules:
        """The scheduler's rules, those of the benchmark but for what a person changes."""
        horizon = 60 * self.minutes if self.minutes else NO_END_S
        return Rules(horizon, max_messages=max_messages, typing_chars_per_minute=typing_speed, person=self.side)


def case_setting(library: Library, case_id: str, *, skills: Sequence[Skill] = (), minutes: int = 0) -> Setting:
    """A case of the benchmark, such as b01-a: the model plays its role, the person takes the other card's part.

    The card's opener is given. ChatError if the cards have no such case.
    """
    cases: dict[str, Case] = {case.id: case for case in select_cases(library, None)}
    if case_id not in cases:
        raise ChatError(f"case {case_id}: the cards have none of this id{suggest(case_id, cases)}; a case is a binding and a role, such as b01-a")
    case = cases[case_id]
    binding = library.bindings[case.binding]
    scenario = library.scenarios[binding.scenario]
    a, b = library.personas[binding.persona_a], library.personas[binding.persona_b]
    side = other(case.role)
    card = a if side == "a" else b
    seat = seats(a, b, scenario, memories=library.memories, skills=skills)[case.role]
    part = scenario.speakers.a if side == "a" else scenario.speakers.b
    return Setting(seat, card.name, side, scenario.category, scenario.opener, binding.id, card, part, minutes)


def open_setting(
    library: Library, persona_id: str, person: str, start: datetime, *, skills: Sequence[Skill] = (), minutes: int = 0
) -> Setting:
    """A persona and a person who have just got to know each other; the person writes first. `start`: local time, whole seconds.

    ChatError if the cards have no such persona, if the name cannot stand in a chat, or if it is the persona's own.
    """
    if persona_id not in library.personas:
        raise ChatError(f"persona {persona_id}: the cards have none of this id{suggest(persona_id, library.personas)}; `anthrolab chat` without --persona names some")
    persona = library.personas[persona_id]
    try:
        person = _PERSON.validate_python(person)
    except ValidationError as e:
        raise ChatError(f"name {person!r}: {e.errors()[0]['msg'].removeprefix('Value error, ')}; give another") from e
    if person == persona.name:
        raise ChatError(f"name {person}: is the persona's own; give another, so that the two can be told apart")
    scenario = Scenario(
        id=OPEN, title="随便聊聊", category="Daily", relationship="刚加上微信，没见过面，还不熟", remote=True, start=start,
        horizon_minutes=25, goal="没有要办的事，对方说什么就聊什么", tone="自然，随意",
        opener=Opener(speaker="b", content="在吗"), speakers=Sides(a=_OPEN_SIDE, b=_OPEN_SIDE),
    )  # fmt: skip
    seat = Seat("a", persona, Partner(person), Scene.of(scenario), _OPEN_SIDE, None, tuple(skills))
    return Setting(seat, person, "b", scenario.category, minutes=minutes)


def now_rounded() -> datetime:
    """The local time in whole seconds: when an open chat begins, unless it is said."""
    return datetime.now().replace(microsecond=0)
