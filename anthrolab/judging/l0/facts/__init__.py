"""L0-06: what the speaker says of their own age, gender, city, occupation or relationship status against the card.

`speaker` tells whose fact a clause without 我 states, `answers` reads short answers; a file each for the facts themselves.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import get_args

from anthrolab.cards.persona import HardFacts, Persona, RelationshipStatus
from anthrolab.judging.l0.facts import age, answers, city, gender, occupation, partners, relationship
from anthrolab.judging.l0.facts.answers import Fact, may_answer
from anthrolab.judging.l0.facts.speaker import NOTHING_HEARD, Heard, as_me, clause_starts, voiced
from anthrolab.judging.l0.framing import plain

__all__ = ["Fact", "Heard", "find", "may_answer", "states"]

_FAR = ("拉萨", "三亚")
_RARE = ("裁缝", "飞行员")
"""Values of the cards that `states` holds a message against: two each, so that one differs from whatever is stated."""

def find(
    text: str, persona: Persona, about: Sequence[Fact], year: int | None = None, heard: Heard = NOTHING_HEARD
) -> list[str]:
    """Each contradiction of the facts in `about`, as `span (card: value)`, at most one for each fact.

    `year` is the calendar year of the chat, for 我是95后; without it such statements are not compared.
    `heard` are the messages before: a bare 我都32了 among scores and levels is no age, 今年刚满14 after talk of a child is
    the child's, and a short answer to a question is a statement of whatever fact it asks for.
    """
    flat = as_me(plain(text))
    begins = clause_starts(flat) if about else []
    outright = "我" in flat or "本人" in flat or "I" in flat or "i" in flat
    spans: dict[Fact, tuple[int, int]] = {}
    for fact in about:
        span = _compare(fact, flat, persona, year, heard.recent) if outright else None
        span = span or _without_me(fact, flat, begins, persona, year, heard)
        if span:
            spans[fact] = span
    if heard.answered:
        for fact, statement, end in _answers(flat, plain(heard.partner)):
            if fact not in spans and _compare(fact, statement, persona, year, ()):
                spans[fact] = (0, end)
    return [f"{text[start:end]} (card: {_value(fact, persona)})" for fact, (start, end) in spans.items()]


def states(
    text: str, fact: Fact, value: int | str, year: int | None = None, heard: Heard = NOTHING_HEARD
) -> bool:
    """Whether a message states this value of its speaker: one of whom it is true may say it, one of another value not.

    So it is read by the very rules of `find`, against cards made up of `value` and of other values; what these rules
    do not read as a first-person statement states nothing. `value`: an age in years, 女 or 男, a place, a name of an
    occupation, a status of `HardFacts`. An age must be exact to two years (我快三十了 states none).
    """

    def against(other: int | str) -> bool:
        # 我没男朋友 says something of a woman only, so a status is excluded if it is for either.
        return any(find(text, _card(fact, other, gender), (fact,), year, heard) for gender in ("女", "男")[: 1 + (fact == "relationship")])

    if fact == "relationship":
        fits = not all(find(text, _card(fact, value, gender), (fact,), year, heard) for gender in ("女", "男"))
        return fits and any(against(other) for other in get_args(RelationshipStatus) if other != value)
    if against(value):
        return False
    if fact == "age":
        return all(against(int(value) + years) for years in (-3, 3))
    others = {"gender": ("女", "男"), "city": _FAR, "occupation": _RARE}[fact]
    return any(against(other) for other in others if other != value)


@lru_cache(maxsize=1024)
def _card(fact: Fact, value: int | str, gender: str) -> Persona:
    """A card of which only what `_compare` reads of this fact, and the gender, is filled in."""
    text = str(value)
    hard = HardFacts.model_construct(
        age=value if fact == "age" else 30,
        gender=text if fact == "gender" else gender,
        city=[text], occupation=[text], relationship_status=text,
    )  # fmt: skip
    return Persona.model_construct(city=text, occupation=text, hard_facts=hard)


def _answers(text: str, asked: str) -> Iterator[tuple[Fact, str, int]]:
    yield from answers.answered(text, asked)
    if yes := answers.affirmed(text, asked):
        for fact in ("age", "gender", "city", "occupation", "relationship"):
            yield fact, *yes


def _without_me(
    fact: Fact, text: str, begins: Sequence[int], persona: Persona, year: int | None, heard: Heard
) -> tuple[int, int] | None:
    """The span of a clause without 我 that contradicts the fact, where nobody but the speaker can be meant."""
    for frames, tie in _frames(fact):
        own = voiced(text, begins, frames, heard, tie=tie)
        if own is None or (fact == "gender" and gender.is_advice(text)):
            continue
        if span := _compare(fact, own.text, persona, year, heard.recent):
            return own.typed(span)
    return None


def _frames(fact: Fact) -> tuple[tuple[re.Pattern[str], bool], ...]:
    if fact == "age":
        return ((age.FRAMES, False),)
    if fact == "gender":
        return ((gender.FRAMES, False),)
    if fact == "city":
        return ((city.frames(), False),)
    if fact == "occupation":
        return ((occupation.FRAMES, False),)
    return ((relationship.FRAMES, True), (partners.FRAMES, True))


def _compare(
    fact: Fact, text: str, persona: Persona, year: int | None, recent: Sequence[str]
) -> tuple[int, int] | None:
    """The span that contradicts one fact."""
    facts = persona.hard_facts
    if fact == "age":
        return age.contradiction(text, facts.age, year, recent)
    if fact == "gender":
        return gender.contradiction(text, facts.gender)
    if fact == "city":
        return city.contradiction(text, [*facts.city, persona.city])
    if fact == "occupation":
        return occupation.contradiction(text, [*facts.occupation, persona.occupation])
    return relationship.contradiction(text, facts.relationship_status, facts.gender)


def _value(fact: Fact, persona: Persona) -> str:
    """The card's value of a fact."""
    facts = persona.hard_facts
    values = {
        "age": f"age {facts.age}", "gender": f"gender {facts.gender}", "city": f"city {'/'.join(facts.city)}",
        "occupation": f"occupation {'/'.join(facts.occupation)}", "relationship": f"status {facts.relationship_status}",
    }  # fmt: skip
    return values[fact]
