"""Which skill is rewritten: the paper's formula beside a slow literal version, the buffer, the gate's own map."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.bench.ledger import DIMENSIONS
from anthrolab.cards.skill import SKILLS
from anthrolab.judging.l0.result import SEVERITY
from anthrolab.judging.rubric import load_rubric
from anthrolab.loop.attribution import (
    SKILL_OF_CONSTRAINT,
    SKILL_OF_DIMENSION,
    attribute,
    by_box,
    examples,
    failures_of,
    recent_failures,
    skill_of,
)
from anthrolab.loop.hints import NO_TURNS
from anthrolab.loop.records import FailureRecord
from tests.loop_for_tests import record

BOXES = [*(b.id for b in load_rubric().boxes()), *SEVERITY, NO_TURNS]

records = st.builds(
    lambda box, number, round, binding: record(box, number, round, binding=binding),
    st.sampled_from(BOXES), st.integers(0, 5), st.one_of(st.none(), st.integers(1, 4)), st.sampled_from(["b01", "b02", "b03"]),
)  # fmt: skip


def literal(buffer: list[FailureRecord]) -> tuple[str | None, list[int]]:
    """k* = argmax_k sum_{(d, .) in F_r} 1[mu(d) = k], word by word after section 4.5, with our map for the gate."""
    said = {
        "message_style": ["D1", "D2", "D5"],
        "topic_progression": ["E4", "E5", "L0-05"],
        "human_like_reply": ["D3", "D4", "E1", "E2", "E3", "L0-01", "L0-02", "L0-03", "L0-06", "L0-07", "L0-08", "L0-10"],
    }
    sums = []
    for k in ("message_style", "topic_progression", "human_like_reply"):
        total = 0
        for f in buffer:
            d = f.dimension if f.dimension is not None else f.box
            total += 1 if d in said[k] else 0
        sums.append(total)
    best = None
    for k, total in zip(said, sums, strict=True):
        if total > 0 and (best is None or total > sums[list(said).index(best)]):
            best = k
    return best, sums


@given(st.lists(records, max_size=40))
def test_the_target_is_the_literal_argmax(buffer: list[FailureRecord]) -> None:
    found = attribute(buffer)
    target, sums = literal(buffer)
    assert found.target == target
    assert [found.counts[s] for s in SKILLS] == sums
    assert sum(sums) + found.unattributed == len(buffer)
    assert [len(failures_of(s, buffer)) for s in SKILLS] == sums


@given(st.lists(records, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_the_failures_does_not_matter(buffer: list[FailureRecord], random: Random) -> None:
    shuffled = list(buffer)
    random.shuffle(shuffled)
    assert attribute(shuffled) == attribute(buffer)


def test_an_empty_buffer_gives_no_target_and_neither_do_failures_that_no_skill_can_mend() -> None:
    assert attribute([]).target is None
    found = attribute([record("L0-04"), record("L0-09"), record(NO_TURNS, dimension=None)])
    assert (found.target, found.unattributed, set(found.counts.values())) == (None, 3, {0})


def test_of_equal_counts_the_first_in_the_order_of_the_skills_wins() -> None:
    assert attribute([record("E1.1"), record("E4.1"), record("D1.1")]).target == "message_style"
    assert attribute([record("E1.1"), record("E4.1")]).target == "topic_progression"
    assert attribute([record("E4.1"), record("E1.1"), record("E1.1")]).target == "human_like_reply"


def test_every_dimension_of_the_paper_belongs_to_a_skill_and_every_skill_has_some() -> None:
    assert set(SKILL_OF_DIMENSION) == set(DIMENSIONS)
    assert set(SKILL_OF_DIMENSION.values()) == set(SKILLS)
    assert set(SEVERITY) - set(SKILL_OF_CONSTRAINT) == {"L0-04", "L0-09"}
    assert skill_of(record("X1.1")) is None, "a dimension of another rubric"


@pytest.mark.parametrize(("rounds", "kept"), [(1, [3]), (2, [2, 3]), (9, [1, 2, 3])])
def test_the_buffer_holds_the_last_rounds_only_and_nothing_newer(rounds: int, kept: list[int]) -> None:
    rows = [record("D1.1", round=r) for r in (3, 1, 2, 4)] + [record("D1.1", round=None)]  # type: ignore[arg-type]
    assert [r.round for r in recent_failures(rows, 3, rounds=rounds)] == kept


def test_of_a_long_buffer_the_newest_stay() -> None:
    rows = [record("D1.1", i, round=r) for r in (2, 1) for i in range(3)]
    assert [(r.round, r.sample) for r in recent_failures(rows, 2, rounds=2, limit=4)] == [(1, 2), (2, 0), (2, 1), (2, 2)]
    assert recent_failures(rows, 2, rounds=2, limit=0) == []


def test_held_back_bindings_teach_nothing() -> None:
    rows = [record("D1.1", binding="b01"), record("E4.1", binding="b07"), record("E4.1", 1, binding="b07")]
    assert [r.binding for r in recent_failures(rows, 1, held_back=["b07"])] == ["b01"]
    assert attribute(recent_failures(rows, 1, held_back=["b07"])).target == "message_style"


@given(st.lists(records, max_size=30, unique_by=lambda r: r.id), st.integers(0, 8))
def test_examples_are_of_different_dialogues_first_and_groups_of_falling_size(buffer: list[FailureRecord], most: int) -> None:
    shown = examples(buffer, most)
    assert len(shown) == min(most, len(buffer)) and len({r.id for r in shown}) == len(shown)
    dialogues = {r.dialogue_id for r in buffer}
    assert len({r.dialogue_id for r in shown}) == min(most, len(dialogues))
    groups = by_box(buffer)
    assert sorted(r.id for _, own in groups for r in own) == sorted(r.id for r in buffer)
    assert [len(own) for _, own in groups] == sorted((len(own) for _, own in groups), reverse=True)
