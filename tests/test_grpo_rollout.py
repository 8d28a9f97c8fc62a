"""Advantages, and which cases a step plays."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.bench.cases import select_cases
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.loop.sft.samples import pair_of
from anthrolab.training.grpo.plan import cases_of_step, most_held_out, split_cases
from anthrolab.training.reward.advantages import flat_groups, group_advantages
from anthrolab.training.settings import TrainingError

LIBRARY = load_library(default_cards_dir())
REWARDS = st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.floats(0, 1))), min_size=1, max_size=20)


def literal(rows: list[tuple[str, float | None]], scale: bool) -> list[float]:
    """A_i = (R_i - mean) / (std + 1e-4), a rollout at a time."""
    found = []
    for group, reward in rows:
        own = [r for g, r in rows if g == group and r is not None]
        if reward is None or len(own) < 2:
            found.append(0.0)
            continue
        apart = reward - sum(own) / len(own)
        found.append(apart / (statistics.stdev(own) + 1e-4) if scale else apart)
    return found


@given(REWARDS, st.booleans())
def test_advantages_are_those_of_the_formula(rows: list[tuple[str, float | None]], scale: bool) -> None:
    values = [math.nan if r is None else r for _, r in rows]
    assert group_advantages(values, [g for g, _ in rows], scale=scale) == pytest.approx(literal(rows, scale), abs=1e-9)


def test_a_failed_judge_gives_no_advantage_and_is_in_no_baseline() -> None:
    found = group_advantages([1.0, math.nan, 0.0], ["g", "g", "g"], scale=False)
    assert list(found) == [0.5, 0.0, -0.5]


def test_groups_without_differences_are_counted() -> None:
    assert flat_groups([0.5, 0.5, 0.1, 0.9, math.nan, 0.3], ["a", "a", "b", "b", "c", "c"]) == (2, 3)


def test_every_case_comes_once_before_any_comes_twice() -> None:
    cases = select_cases(LIBRARY, 10)
    played = [c.id for step in range(1, 11) for c in cases_of_step(cases, step, 3, seed=4)]
    for turn in range(3):
        assert sorted(played[10 * turn : 10 * turn + 10]) == sorted(c.id for c in cases)
    assert played[:10] != played[10:20], "each round has an order of its own"
    assert [c.id for c in cases_of_step(cases, 7, 3, seed=4)] == played[18:21]
    assert [c.id for c in cases_of_step(cases, 1, 10, seed=5)] != played[:10]


def test_no_pair_of_people_is_in_both_parts() -> None:
    train, held = split_cases(LIBRARY, None, 12)
    pairs = [{pair_of(LIBRARY.bindings[c.binding].persona_a, LIBRARY.bindings[c.binding].persona_b) for c in part} for part in (train, held)]
    assert len(held) == 12 and train and not pairs[0] & pairs[1]
    assert len(split_cases(LIBRARY, 5, 12)[0]) == 5


@pytest.mark.parametrize(("wanted", "held", "said"), [(["b01-a"], ["b01-b"], "b01-a"), (500, 12, "500"), (None, 100, r"at most \d+ of")])
def test_what_cannot_be_split_is_refused(wanted: list[str] | int | None, held: list[str] | int, said: str) -> None:
    with pytest.raises(TrainingError, match=said):
        split_cases(LIBRARY, wanted, held)


def test_advantages_of_a_scaled_group_have_mean_zero() -> None:
    found = group_advantages(np.random.default_rng(0).random(8), ["g"] * 8)
    assert abs(found.mean()) < 1e-12 and found.std(ddof=1) == pytest.approx(1, abs=1e-2)


def test_the_largest_number_to_hold_out_is_the_largest() -> None:
    most = most_held_out(LIBRARY)
    assert split_cases(LIBRARY, None, most)[0]
    with pytest.raises(TrainingError, match=f"at most {most} of"):
        split_cases(LIBRARY, None, most + 1)
