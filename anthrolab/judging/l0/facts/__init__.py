"""L0-06: what the speaker says of their own age, gender, city, occupation or relationship status against the card."""

from collections.abc import Sequence
from typing import Literal

from anthrolab.cards.persona import Persona
from anthrolab.judging.l0.facts import age, city, gender, occupation, relationship
from anthrolab.judging.l0.framing import plain

Fact = Literal["age", "gender", "city", "occupation", "relationship"]

FIRST_PERSON = ("我", "俺", "咱", "本人")
"""A message without one of these says nothing of its speaker."""


def find(
    text: str, persona: Persona, about: Sequence[Fact], year: int | None = None, recent: Sequence[str] = ()
) -> list[str]:
    """Each contradiction of the facts in `about`, as `span (card: value)`, at most one for each fact.

    `year` is the calendar year of the chat, for 我是95后; without it such statements are not compared.
    `recent` are the messages before: a bare 我都32了 among scores and levels is no age.
    """
    if not any(word in text for word in FIRST_PERSON):
        return []
    flat = plain(text)
    contradictions = []
    for fact in about:
        span, card = _compare(fact, flat, persona, year, recent)
        if span:
            contradictions.append(f"{text[span[0] : span[1]]} (card: {card})")
    return contradictions


def _compare(
    fact: Fact, text: str, persona: Persona, year: int | None, recent: Sequence[str]
) -> tuple[tuple[int, int] | None, str]:
    """The span that contradicts one fact, and the card's value of it."""
    facts = persona.hard_facts
    if fact == "age":
        return age.contradiction(text, facts.age, year, recent), f"age {facts.age}"
    if fact == "gender":
        return gender.contradiction(text, facts.gender), f"gender {facts.gender}"
    if fact == "city":
        return city.contradiction(text, [*facts.city, persona.city]), f"city {'/'.join(facts.city)}"
    if fact == "occupation":
        own = [*facts.occupation, persona.occupation]
        return occupation.contradiction(text, own), f"occupation {'/'.join(facts.occupation)}"
    return relationship.contradiction(
        text, facts.relationship_status, facts.gender
    ), f"status {facts.relationship_status}"
