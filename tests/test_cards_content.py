"""What must hold for the cards that come with anthrolab, beyond being valid."""

import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from anthrolab.cards.library import Library, load_library
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import CATEGORIES, Scenario, Side
from anthrolab.runtime.text import normalise

DATA = Path(__file__).parent.parent / "data"
FIRST = [f"b{i:02d}" for i in range(1, 13)]
"""The first twelve bindings: one per category, each with two people of its own."""


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library(DATA)


@pytest.fixture(scope="module")
def first(library: Library) -> list[tuple[Persona, Persona, Scenario]]:
    bindings = [library.bindings[key] for key in FIRST]
    return [
        (library.personas[b.persona_a], library.personas[b.persona_b], library.scenarios[b.scenario]) for b in bindings
    ]


def people(first: list[tuple[Persona, Persona, Scenario]]) -> list[Persona]:
    return [person for a, b, _ in first for person in (a, b)]


def sides(scenario: Scenario) -> tuple[Side, Side]:
    return scenario.speakers.a, scenario.speakers.b


def persona_text(p: Persona) -> str:
    habits = p.expression_habits
    return "\n".join(
        [p.occupation, p.city, p.relationship_status, *p.personality, *p.interests, *p.weak_topics,
         *habits.catchphrases, habits.punctuation, habits.emoji, habits.typical_length, *p.knowledge_boundaries]
    )


def scenario_text(s: Scenario) -> str:
    lines = [s.title, s.relationship, s.goal, s.tone, s.opener.content]
    for side in sides(s):
        lines += [side.place, side.trigger, side.emotion, *side.knows]
    return "\n".join(lines)


def ngrams(text: str, n: int) -> set[str]:
    plain = normalise(text)
    return {plain[i : i + n] for i in range(len(plain) - n + 1)}


def jaccard(left: set[str], right: set[str]) -> float:
    return len(left & right) / len(left | right)


def test_names_are_distinct(library: Library) -> None:
    names = Counter(p.name for p in library.personas.values())
    assert [name for name, count in names.items() if count > 1] == []


def test_occupations_are_distinct(first: list[tuple[Persona, Persona, Scenario]]) -> None:
    jobs = Counter(p.occupation for p in people(first))
    assert [job for job, count in jobs.items() if count > 1] == []


def test_first_twelve_cover_the_categories_in_order(first: list[tuple[Persona, Persona, Scenario]]) -> None:
    assert tuple(s.category for _, _, s in first) == CATEGORIES


def test_first_twelve_use_24_people_once(first: list[tuple[Persona, Persona, Scenario]]) -> None:
    assert len({p.id for p in people(first)}) == 24


def test_every_card_is_used(library: Library) -> None:
    used = library.bindings.values()
    assert {p for b in used for p in (b.persona_a, b.persona_b)} == set(library.personas)
    assert {b.scenario for b in used} == set(library.scenarios)


def test_all_horizons_and_both_opener_speakers(first: list[tuple[Persona, Persona, Scenario]]) -> None:
    assert {s.horizon_minutes for _, _, s in first} == {8, 10, 15, 20, 25}
    openers = Counter(s.opener.speaker for _, _, s in first)
    assert min(openers["a"], openers["b"]) >= 5


def test_at_most_one_first_scenario_is_in_the_same_place(first: list[tuple[Persona, Persona, Scenario]]) -> None:
    assert sum(not s.remote for _, _, s in first) <= 1


def test_people_span_ages_genders_status_and_schooling(first: list[tuple[Persona, Persona, Scenario]]) -> None:
    cast = people(first)
    ages = [p.age for p in cast]
    assert min(ages) <= 16 and max(ages) >= 70
    assert 10 <= sum(p.gender == "女" for p in cast) <= 14
    assert {p.hard_facts.relationship_status for p in cast} == {"单身", "恋爱", "已婚", "离异", "丧偶"}
    assert any("初中" in p.education for p in cast) and any("博士" in p.education for p in cast)


def test_hard_facts_agree_with_the_prose(library: Library) -> None:
    for p in library.personas.values():
        assert any(place in p.city for place in p.hard_facts.city), p.id
        assert any(job in p.occupation for job in p.hard_facts.occupation), p.id


def test_no_two_cards_are_near_duplicates(library: Library) -> None:
    for texts in (
        {key: ngrams(persona_text(p), 3) for key, p in library.personas.items()},
        {key: ngrams(scenario_text(s), 3) for key, s in library.all_scenarios().items()},
    ):
        close = [(x, y) for x, y in combinations(sorted(texts), 2) if jaccard(texts[x], texts[y]) >= 0.5]
        assert close == []


def test_no_catchphrase_is_common_property(library: Library) -> None:
    phrases = Counter(c for p in library.personas.values() for c in p.expression_habits.catchphrases)
    assert [phrase for phrase, count in phrases.items() if count > 2] == []


def test_no_speaker_knows_the_partners_private_side(library: Library) -> None:
    """Neither whole texts nor a run of eight characters of the partner's trigger, emotion or place."""
    for s in library.all_scenarios().values():
        a, b = sides(s)
        for knower, partner in ((a, b), (b, a)):
            known = ngrams("\n".join(knower.knows), 8)
            private = set().union(*(ngrams(t, 8) for t in (partner.trigger, partner.emotion, partner.place)))
            assert known & private == set(), s.id


def test_what_both_speakers_read_gives_no_trigger_away(library: Library) -> None:
    for s in library.all_scenarios().values():
        shared = ngrams(f"{s.title}\n{s.relationship}\n{s.goal}\n{s.tone}", 8)
        private = set().union(*(ngrams(side.trigger, 8) for side in sides(s)))
        # The public news of a News card and a date both know may stand on both sides and in the goal.
        told_to_both = set.intersection(*(ngrams(side.trigger, 8) for side in sides(s)))
        if s.category != "News":
            assert shared & (private - told_to_both) == set(), s.id


def test_sides_differ(library: Library) -> None:
    for s in library.all_scenarios().values():
        a, b = sides(s)
        assert jaccard(ngrams(a.trigger, 3), ngrams(b.trigger, 3)) < 0.2, s.id
        assert a.place != b.place, s.id


def test_no_weak_topic_of_the_partner_is_known(library: Library) -> None:
    played = [(b.persona_a, b.persona_b, library.scenarios[b.scenario]) for b in library.bindings.values()]
    played += [(r.persona_a, r.persona_b, s) for r in library.series.values() for s in r.sessions]
    for persona_a, persona_b, scenario in played:
        side_a, side_b = sides(scenario)
        for side, partner in ((side_a, persona_b), (side_b, persona_a)):
            known = "\n".join(side.knows)
            assert [t for t in library.personas[partner].weak_topics if t in known] == [], scenario.id


def test_openers_are_short(library: Library) -> None:
    assert [s.id for s in library.all_scenarios().values() if len(s.opener.content) > 30] == []


def test_sides_are_called_by_their_roles_and_not_by_letters(library: Library) -> None:
    """A bare letter would reach the prompts as it stands; `$a` and `$b` become names there."""
    letter = re.compile(r"(?<![$A-Za-z])[ab](?![A-Za-z])")
    shown = {s.id: f"{s.relationship}\n{s.goal}\n{s.tone}" for s in library.all_scenarios().values()}
    assert [key for key, text in shown.items() if letter.search(text)] == []
