"""What must hold for the corpus that comes with anthrolab, beyond what the linter checks in any corpus."""

from collections import Counter
from pathlib import Path

import pytest

from anthrolab.bench.cases import select_cases
from anthrolab.cards.library import Library, load_library
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import CATEGORIES

DATA = Path(__file__).parent.parent / "data"
FIRST = [f"b{i:02d}" for i in range(1, 13)]
"""The first twelve bindings: one per category, each with two people of its own."""
QUOTAS = {
    "Sport": 4, "Relation": 4, "Interest": 5, "Pet/Fam.": 4, "Parenting": 4, "Work": 5,
    "Emotion": 5, "News": 4, "Daily": 5, "Game": 3, "Tech": 3, "Finance": 4,
}  # fmt: skip


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library(DATA)


@pytest.fixture(scope="module")
def people(library: Library) -> list[Persona]:
    return list(library.personas.values())


def test_the_counts_of_table_6(library: Library) -> None:
    assert (len(library.personas), len(library.scenarios), len(library.bindings)) == (55, 50, 50)
    assert len(select_cases(library, None)) == 100
    assert list(library.bindings) == [f"b{i:02d}" for i in range(1, 51)]


def test_the_quota_of_every_category(library: Library) -> None:
    assert Counter(library.scenarios[b.scenario].category for b in library.bindings.values()) == QUOTAS


def test_every_card_is_used_and_no_pair_twice(library: Library) -> None:
    used = list(library.bindings.values())
    assert {p for b in used for p in (b.persona_a, b.persona_b)} == set(library.personas)
    assert Counter(b.scenario for b in used) == Counter(dict.fromkeys(library.scenarios, 1))
    assert len({frozenset((b.persona_a, b.persona_b)) for b in used}) == 50
    assert max(Counter(p for b in used for p in (b.persona_a, b.persona_b)).values()) <= 3


def test_first_twelve_cover_the_categories_with_24_people(library: Library) -> None:
    first = [library.bindings[key] for key in FIRST]
    assert tuple(library.scenarios[b.scenario].category for b in first) == CATEGORIES
    assert len({p for b in first for p in (b.persona_a, b.persona_b)}) == 24


def test_horizons_and_openers(library: Library) -> None:
    horizons = Counter(s.horizon_minutes for s in library.scenarios.values())
    assert set(horizons) == {8, 10, 15, 20, 25}
    openers = Counter(s.opener.speaker for s in library.scenarios.values())
    assert min(openers.values()) >= 12
    assert max(len(s.opener.content) for s in library.all_scenarios().values()) <= 30


def test_the_year_and_the_day_are_used(library: Library) -> None:
    starts = [s.start for s in library.scenarios.values()]
    assert {t.month for t in starts} >= {1, 3, 5, 7, 9, 11}
    for hours in (range(0, 12), range(12, 18), range(18, 24)):
        assert sum(t.hour in hours for t in starts) >= 5


def test_people_differ_in_age_gender_status_schooling_and_place(people: list[Persona]) -> None:
    ages = [p.age for p in people]
    assert min(ages) <= 15 and max(ages) >= 75
    for decade in range(10, 80, 10):
        assert sum(decade <= age < decade + 10 for age in ages) >= 3, decade
    assert 24 <= sum(p.gender == "女" for p in people) <= 31
    assert len({p.occupation for p in people}) == len(people)
    assert min(Counter(p.hard_facts.relationship_status for p in people).values()) >= 4
    assert sum("村" in p.city or "乡" in p.city for p in people) >= 3
    assert len({p.hard_facts.city[-1] for p in people}) >= 18
    assert any("小学" in p.education for p in people) and any("博士" in p.education for p in people)


def test_memories_of_twenty_directed_pairs(library: Library) -> None:
    bound = {pair for b in library.bindings.values() for pair in ((b.persona_a, b.persona_b), (b.persona_b, b.persona_a))}
    assert len(bound & set(library.memories)) >= 20
    assert all(len(memory.lines()) >= 4 for memory in library.memories.values())
