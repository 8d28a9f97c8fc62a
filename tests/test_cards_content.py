"""What must hold for the cards that come with anthrolab, beyond being valid."""

import re
from collections import Counter
from collections.abc import Iterable
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


def test_title_and_relationship_give_no_trigger_away(library: Library) -> None:
    for s in library.all_scenarios().values():
        private = set().union(*(ngrams(side.trigger, 8) for side in sides(s)))
        assert ngrams(f"{s.title}\n{s.relationship}", 8) & private == set(), s.id


FILLERS = set("的了着又也就都还有点一个这那怎么说想要看")
"""Characters that make a run of two or three a turn of phrase and not somebody's secret."""


def runs(texts: Iterable[str], n: int) -> set[str]:
    """Runs of n characters within one text, none of them a filler."""
    return {run for text in texts for run in ngrams(text, n) if not FILLERS & set(run)}


def given_away(s: Scenario) -> set[str]:
    """What goal or tone, which both speakers read, says of one side's trigger (three characters) or emotion (two, as
    moods are short words) that the other side neither has in its own card nor reads in the relationship or the opener."""
    a, b = sides(s)
    found: set[str] = set()
    for side, other in ((a, b), (b, a)):
        known = [s.relationship, s.opener.content, other.place, other.trigger, other.emotion, *other.knows]
        for private, n in ((side.trigger, 3), (side.emotion, 2)):
            found |= runs([private], n) & runs([s.goal, s.tone], n) - runs(known, n)
    return found


def stage_directions(s: Scenario) -> list[str]:
    """Words by which goal or tone tell how the chat will turn out, or cast the two in different moods."""
    order = r"(\w着)\1|说到|最后|慢慢|渐渐"
    return [m[0] for text, words in ((s.goal, order), (s.tone, order + "|先|再|才|一个.+一个")) for m in re.finditer(words, text)]


def test_goal_and_tone_hold_what_both_know_at_the_start(library: Library) -> None:
    scenarios = library.all_scenarios().values()
    assert {s.id: told for s in scenarios if (told := given_away(s))} == {}
    assert {s.id: words for s in scenarios if (words := stage_directions(s))} == {}


@pytest.mark.parametrize(
    ("key", "field", "text", "given", "directions"),
    [
        ("s10", "tone", "嘻嘻哈哈里有点舍不得", {"舍不", "不得"}, []),  # a's emotion
        ("s12", "goal", "三年定期这两天到期，商量怎么放", {"三年定", "年定期"}, []),  # a's trigger
        ("s10", "goal", "今晚不睡", set(), []),  # 今晚 stands in b's trigger, and is no secret
        ("s11", "goal", "从手机说到照片", set(), ["说到"]),
        ("s03", "tone", "谈着谈着带出心里话", set(), ["谈着谈着"]),
        ("s09", "tone", "一个冲一个累，慢慢软下来", set(), ["一个冲一个", "慢慢"]),
        ("r01s3", "tone", "先僵，说开了再软下来", set(), ["先", "再"]),
    ],
)
def test_what_gives_a_side_away_is_found(
    library: Library, key: str, field: str, text: str, given: set[str], directions: list[str]
) -> None:
    neutral = library.all_scenarios()[key].model_copy(update={"goal": "闲聊", "tone": "平常"})
    changed = neutral.model_copy(update={field: text})
    assert given_away(changed) == given
    assert stage_directions(changed) == directions


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
