"""Quotas and the plan of `cards draft`: shares by hand, properties of any plan, and the paper's scale."""

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from anthrolab.bench.published import published_table
from anthrolab.cards.persona import Name
from anthrolab.cards.places import REGIONS
from anthrolab.cards.scenario import CATEGORIES
from anthrolab.cards.statistics import age_band
from anthrolab.loop.drafting.pairs import fits
from anthrolab.loop.drafting.plan import Plan, make_plan
from anthrolab.loop.drafting.quotas import PERSONA_QUOTAS, QuotaError, largest_remainder, load_quotas
from anthrolab.yaml_files import YamlError

weights = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 60), min_size=1)

OURS = {
    "Interests": "Interest", "Daily chat": "Daily", "Emotional support": "Emotion", "Technology": "Tech",
    "Family and parenting": "Parenting", "Relationship development": "Relation", "Finance": "Finance",
    "Pets and family life": "Pet/Fam.", "News": "News", "Sports": "Sport", "Gaming": "Game", "Work communication": "Work",
}  # fmt: skip


@pytest.fixture(scope="module")
def paper() -> Plan:
    return make_plan(load_quotas(), 261, 334, 400)


@pytest.mark.parametrize(
    ("shares", "total", "seats"),
    [
        ({"a": 470, "b": 160, "c": 158, "d": 120, "e": 61, "f": 31}, 10, {"a": 5, "b": 2, "c": 1, "d": 1, "e": 1, "f": 0}),
        ({"a": 1, "b": 1, "c": 1}, 2, {"a": 1, "b": 1, "c": 0}),
        ({"a": 0.1, "b": 0.2}, 3, {"a": 1, "b": 2}),
        ({"a": 5}, 0, {"a": 0}),
    ],
)
def test_seats_by_hand(shares: dict[str, float], total: int, seats: dict[str, int]) -> None:
    assert largest_remainder(shares, total) == seats


@given(weights, st.integers(0, 500))
def test_seats_add_up_and_keep_within_one_of_their_share(shares: dict[str, int], total: int) -> None:
    seats = largest_remainder(shares, total)
    exact = {v: Fraction(w * total, sum(shares.values())) for v, w in shares.items()}
    assert sum(seats.values()) == total
    assert all(math.floor(exact[v]) <= n <= math.ceil(exact[v]) for v, n in seats.items())
    rest = {v: exact[v] - math.floor(exact[v]) for v in shares}
    up = [rest[v] for v, n in seats.items() if n > exact[v]]
    down = [rest[v] for v, n in seats.items() if n < exact[v]]
    assert not up or not down or min(up) >= max(down), "a smaller remainder got a seat before a larger one"


@given(weights, st.integers(0, 200), st.data())
def test_bounds_hold_and_the_sum_stays(shares: dict[str, int], total: int, data: st.DataObject) -> None:
    most = {v: data.draw(st.integers(0, 60)) for v in shares}
    least = {v: data.draw(st.integers(0, most[v])) for v in shares}
    bounds = {v: (least[v], most[v]) for v in shares}
    if not sum(least.values()) <= total <= sum(most.values()):
        with pytest.raises(ValueError, match="no such shares"):
            largest_remainder(shares, total, bounds)
        return
    seats = largest_remainder(shares, total, bounds)
    assert sum(seats.values()) == total and all(least[v] <= n <= most[v] for v, n in seats.items())


def test_the_default_is_table_1(paper: Plan) -> None:
    table = published_table(1).filter(pl.col("Category") != "Total")
    wanted = {OURS[row["Category"]]: int(row["Scenario cards"]) for row in table.iter_rows(named=True)}
    assert Counter(s.category for s in paper.scenarios) == wanted and set(wanted) == set(CATEGORIES)


def test_the_papers_scale(paper: Plan) -> None:
    assert (len(paper.personas), len(paper.scenarios), paper.bindings) == (261, 334, 400)
    quotas = load_quotas()
    for part in PERSONA_QUOTAS:
        counts = largest_remainder(quotas.personas[part], 261)
        assert Counter(p.quota[part] for p in paper.personas) == {v: n for v, n in counts.items() if n}, part
    pairs = [pair for s in paper.scenarios for pair in s.pairs]
    assert len(set(pairs)) == 400 == len({frozenset(p) for p in pairs}), "nobody meets the same person twice at this scale"
    used = Counter(key for pair in pairs for key in pair)
    assert len(used) == 261 and max(used.values()) <= 5
    people = {p.id: p for p in paper.personas}
    for slot in paper.scenarios:
        for a, b in slot.pairs:
            assert fits(slot.category, people[a], people[b])
    shared = Counter(s.category for s in paper.scenarios if len(s.pairs) == 2)
    assert sum(shared.values()) == 66
    assert shared == largest_remainder(Counter(s.category for s in paper.scenarios), 66)


def test_pairs_that_share_a_scenario_are_alike(paper: Plan) -> None:
    people = {p.id: p for p in paper.personas}
    for slot in paper.scenarios:
        for side in (0, 1):
            those = [people[pair[side]] for pair in slot.pairs]
            assert len({p.gender for p in those}) == 1 and len({p.age < 18 for p in those}) == 1


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 40), st.integers(1, 40), st.integers(0, 40), st.integers(0, 3))
def test_any_plan_keeps_its_numbers(personas: int, scenarios: int, more: int, seed: int) -> None:
    quotas = load_quotas()
    bindings = scenarios + more
    if bindings > personas * (personas - 1):
        with pytest.raises(QuotaError, match="directed pairs"):
            make_plan(quotas, personas, scenarios, bindings, seed)
        return
    plan = make_plan(quotas, personas, scenarios, bindings, seed)
    assert plan == make_plan(quotas, personas, scenarios, bindings, seed)
    assert (len(plan.personas), len(plan.scenarios), plan.bindings) == (personas, scenarios, bindings)
    pairs = [pair for s in plan.scenarios for pair in s.pairs]
    assert len(set(pairs)) == bindings and all(a != b and s.pairs for s in plan.scenarios for a, b in s.pairs)
    counts = largest_remainder(quotas.scenarios["category"], scenarios)
    assert Counter(s.category for s in plan.scenarios) == {c: n for c, n in counts.items() if n}
    for part in ("age band", "gender", "region"):
        counts = largest_remainder(quotas.personas[part], personas)
        assert Counter(p.quota[part] for p in plan.personas) == {v: n for v, n in counts.items() if n}
    assert len({p.name for p in plan.personas}) == personas
    for p in plan.personas:
        assert age_band(p.age) == p.band and p.province in REGIONS[p.quota["region"]].split()
        assert p.age >= 18 or (p.status == "单身" and p.quota["occupation group"] == "pupil or student")
        assert p.quota["occupation group"] != "retired" or p.age >= 55


def test_another_seed_is_another_plan_with_the_same_counts() -> None:
    one, two = (make_plan(load_quotas(), 30, 30, 36, seed) for seed in (0, 1))
    assert one != two
    assert Counter(s.category for s in one.scenarios) == Counter(s.category for s in two.scenarios)


def test_names_that_are_taken_are_not_given(paper: Plan) -> None:
    taken = {p.name for p in paper.personas}
    assert not taken & {p.name for p in make_plan(load_quotas(), 261, 334, 400, 0, taken).personas}
    assert [TypeAdapter(Name).validate_python(name) for name in taken] == list(taken)


def test_a_quota_file_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "quotas.yaml"
    path.write_text("personas:\n  gender: {女: 3, 男: 1}\nscenarios:\n  category: {Game: 2, Work: 1}\n  remote: {remote: 1, same place: 1}\n", "utf-8")
    quotas = load_quotas(path)
    plan = make_plan(quotas, 40, 30, 30)
    assert Counter(p.gender for p in plan.personas) == {"女": 30, "男": 10}
    assert Counter(s.category for s in plan.scenarios) == {"Game": 20, "Work": 10}
    assert Counter(s.remote for s in plan.scenarios) == {True: 15, False: 15}
    assert quotas.personas["age band"] == load_quotas().personas["age band"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("personas:\n  sex: {女: 1}\n", r"quotas.yaml: personas.sex: is no part; write one of age band, gender"),
        ("personas:\n  ages: {女: 1}\n", r"personas.ages: is no part"),
        ("personas:\n  age band: {18-25: 1}\n", r"personas.age band.18-25: is no value \(did you mean '18-24'\?\); write one of: under 18; 18-24"),
        ("personas:\n  region: {other: 1}\n", r"region.other: is no value"),
        ("scenarios:\n  category: {Sports: 1}\n", r"scenarios.category.Sports: is no value \(did you mean 'Sport'\?\)"),
        ("scenarios:\n  category: {Sport: -1}\n", r"category.Sport: is -1.0; give a number of at least 0"),
        ("scenarios:\n  category: {Sport: .nan}\n", r"category.Sport: is nan; give a number"),
        ("scenarios:\n  category: {Sport: 0}\n", r"scenarios.category: has no weight over 0"),
    ],
)
def test_a_bad_quota_file_is_named_with_field_and_fix(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "quotas.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(QuotaError, match=said):
        load_quotas(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("persona:\n  gender: {女: 1}\n", r"persona: is no field of a quota file \(did you mean 'personas'\?\)"),
        ("personas:\n  gender: {女: viele}\n", r"personas.gender.女: .*valid number"),
    ],
)
def test_a_quota_file_of_another_shape_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "quotas.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(YamlError, match=said):
        load_quotas(path)


def test_quotas_that_no_age_allows_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "quotas.yaml"
    path.write_text("personas:\n  age band: {under 18: 1}\n  relationship status: {单身: 1}\n  occupation group: {retired: 1}\n", "utf-8")
    with pytest.raises(QuotaError, match=r"personas.occupation group: .*retired: 20 wanted, 0 of an age for it"):
        make_plan(load_quotas(path), 20, 5, 5)


@pytest.mark.parametrize(("numbers", "said"), [((1, 1, 1), "at least 2 personas"), ((4, 0, 0), "1 scenario"), ((4, 5, 4), "give at least 5")])
def test_numbers_that_do_not_go_together_are_refused(numbers: tuple[int, int, int], said: str) -> None:
    with pytest.raises(QuotaError, match=said):
        make_plan(load_quotas(), *numbers)
