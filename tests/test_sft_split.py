"""The split: by pair, deterministic, close to its share, and nothing lost."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.loop.sft.samples import Sample, SftError, pair_of
from anthrolab.loop.sft.split import Split, pairs_of_bindings, split_by_pairs, split_by_share
from tests.test_sft_samples import make_sample

PEOPLE = st.integers(0, 7).map(lambda i: f"p{i}")
SPOKEN = st.lists(st.tuples(PEOPLE, PEOPLE).filter(lambda both: both[0] != both[1]), max_size=60)


def samples_by(speakers: list[tuple[str, str]]) -> list[Sample]:
    return [make_sample(i, pair=pair_of(*who), directed=f"{who[0]}>{who[1]}") for i, who in enumerate(speakers)]


def is_whole(split: Split, samples: list[Sample]) -> None:
    """No pair in both halves, in either direction; every sample in one of them, in its order."""
    train, held_out = ({frozenset(s.directed.split(">")) for s in half} for half in (split.train, split.held_out))
    assert not train & held_out
    assert sorted([*split.train, *split.held_out], key=samples.index) == samples
    assert [samples.index(s) for s in split.train] == sorted(samples.index(s) for s in split.train)


@settings(deadline=None)
@given(SPOKEN, st.floats(0, 1), st.integers(0, 5))
def test_no_pair_leaks_nothing_is_lost_and_the_share_is_close(speakers: list[tuple[str, str]], share: float, seed: int) -> None:
    samples = samples_by(speakers)
    split = split_by_share(samples, share, seed)
    is_whole(split, samples)
    assert split == split_by_share(samples, share, seed)
    sizes = Counter(s.pair for s in samples)
    largest = max(sizes.values(), default=0)
    assert abs(len(split.held_out) - share * len(samples)) <= largest + 1e-9
    if len(sizes) > 1:
        assert bool(split.held_out) == (share > 0) and bool(split.train) == (share < 1)


def test_the_share_is_as_near_as_whole_pairs_allow() -> None:
    samples = samples_by([(f"p{i}", "p99") for i in range(20) for _ in range(5)])
    for seed in range(5):
        assert len(split_by_share(samples, 0.1, seed).held_out) == 10
        assert len(split_by_share(samples, 0.13, seed).held_out) == 15
    assert len({tuple(split_by_share(samples, 0.1, seed).held_pairs) for seed in range(9)}) > 3, "the seed draws nothing"


@settings(deadline=None)
@given(SPOKEN, st.sets(st.tuples(PEOPLE, PEOPLE).map(lambda both: pair_of(*both)), max_size=5))
def test_given_pairs_are_held_out_whole(speakers: list[tuple[str, str]], pairs: set[str]) -> None:
    samples = samples_by(speakers)
    split = split_by_pairs(samples, pairs)
    is_whole(split, samples)
    assert {s.pair for s in split.held_out} == pairs & {s.pair for s in samples}
    assert split.held_pairs == sorted(pairs)


def test_a_growing_pool_keeps_its_held_out_pairs_but_at_the_edge() -> None:
    first = samples_by([(f"p{i}", "p99") for i in range(40)])
    more = [*first, *samples_by([(f"q{i}", "q99") for i in range(4)])]
    before, after = (set(split_by_share(s, 0.25, 0).held_pairs) for s in (first, more))
    assert len(before) == 10 and len(before - after) <= 3


def test_people_who_stand_in_both_halves_are_named() -> None:
    samples = samples_by([("p1", "p2"), ("p1", "p3"), ("p4", "p5")])
    assert split_by_pairs(samples, ["p1+p3"]).people_in_both == ["p1"]
    assert split_by_pairs(samples, ["p4+p5"]).people_in_both == []


def test_bindings_stand_for_their_pairs_wherever_else_these_meet() -> None:
    library = load_library(default_cards_dir())
    binding = library.bindings["b01"]
    again = binding.model_copy(update={"id": "b51", "persona_a": binding.persona_b, "persona_b": binding.persona_a})
    wider = Library(library.personas, library.scenarios, {**library.bindings, "b51": again})
    pair = pair_of(binding.persona_a, binding.persona_b)
    assert pairs_of_bindings([wider], ["b51"]) == pairs_of_bindings([library, wider], ["b01", "b51"]) == {pair}
    samples = samples_by([(binding.persona_a, binding.persona_b), (binding.persona_b, binding.persona_a), ("p98", "p99")])
    assert split_by_pairs(samples, pairs_of_bindings([wider], ["b51"])).train == samples[2:]
    with pytest.raises(SftError, match="no binding 'b1'"):
        pairs_of_bindings([library], ["b1"])


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_outside_0_to_1_is_an_error(share: float) -> None:
    with pytest.raises(SftError, match="at least 0 and at most 1"):
        split_by_share([], share, 0)
