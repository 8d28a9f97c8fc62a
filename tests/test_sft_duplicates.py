"""Duplicates: found as a slow comparison of all with all finds them, the first kept, and no copy of a held-out sample in train."""

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.loop.sft.duplicates import LONG_ENOUGH, NEAR, without_copies_of, without_duplicates
from anthrolab.loop.sft.samples import Sample
from tests.test_sft_samples import make_sample

LONG = "明天下午三点老地方见，我把上次借的那本书带给你"
OTHER = "明天下午三点老地方见，我把上次借的那本书带给你哈"


def pairs(text: str) -> set[str]:
    plain = "^" + "".join(unicodedata.normalize("NFKC", text).casefold().split()) + "$"
    return {plain[i : i + 2] for i in range(len(plain) - 1)}


def share(left: set[str], right: set[str]) -> float:
    return len(left & right) / len(left | right)


def slow_near(x: Sample, y: Sample, near: float, others: bool) -> bool:
    """What near means, word for word."""
    def seen(s: Sample) -> set[str]:
        drafted = {"d" + run for run in pairs(s.draft)} if s.draft is not None else set()
        return {"m" + run for text in s.recent for run in pairs(text)} | drafted

    def said(s: Sample) -> set[str]:
        return pairs("" if s.silent else s.response["content"])

    def long(s: Sample) -> bool:
        return sum(map(len, s.recent)) + len(s.response["content"]) >= LONG_ENOUGH

    same = x.directed.split(">")[0] == y.directed.split(">")[0]
    return (
        x.dialogue_id != y.dialogue_id and (x.draft is None) == (y.draft is None) and (same or (others and long(x) and long(y)))
        and share(seen(x), seen(y)) >= near - 1e-9 and share(said(x), said(y)) >= near - 1e-9
    )  # fmt: skip


TEXTS = st.one_of(st.sampled_from(["在吗", "在呢", "好", "好的", "", LONG, OTHER, LONG + "啊", "ＯＫ", "ok "]), st.text("明天三点见", max_size=12))


@st.composite
def pools(draw: st.DrawFn, most: int = 14) -> list[Sample]:
    return [
        make_sample(
            0, id=f"{i}", user=draw(st.sampled_from(["x", "y", f"x{i}"])), dialogue_id=draw(st.sampled_from("abcd")), content=draw(TEXTS),
            silent=draw(st.integers(0, 3)) == 0, unsent=draw(st.sampled_from(["", "", LONG])), recent=tuple(draw(st.lists(TEXTS, min_size=1, max_size=3))),
            directed=draw(st.sampled_from(["p01>p02", "p02>p01", "p01>p03"])), draft=draw(st.none() | TEXTS),
        )
        for i in range(draw(st.integers(0, most)))
    ]  # fmt: skip


def exact(s: Sample) -> tuple[str, str, str]:
    return s.system, s.user, s.completion


@settings(max_examples=150, deadline=None)
@given(pools(), st.sampled_from([0.3, 0.5, 0.8, 0.9, 1.0]))
def test_the_search_finds_what_comparing_all_with_all_finds(pool: list[Sample], near: float) -> None:
    fresh: list[Sample] = []
    for s in pool:
        if all(exact(s) != exact(t) for t in fresh):
            fresh.append(s)
    kept: list[Sample] = []
    for s in fresh:
        if not any(slow_near(s, t, near, others=False) for t in kept):
            kept.append(s)
    found = without_duplicates(pool, near)
    assert [s.id for s in found.samples] == [s.id for s in kept]
    assert (found.exact, found.near) == (len(pool) - len(fresh), len(fresh) - len(kept))
    assert found.silent == sum(s.silent for s in pool) - sum(s.silent for s in kept)


@settings(max_examples=150, deadline=None)
@given(pools(8), pools(8), st.sampled_from([0.5, 0.8, 1.0]))
def test_no_copy_of_a_held_out_sample_stays_in_train(held_out: list[Sample], train: list[Sample], near: float) -> None:
    found = without_copies_of(held_out, train, near)
    copies = [s for s in train if any(exact(s) == exact(h) or slow_near(s, h, near, others=True) for h in held_out)]
    assert [s.id for s in found.samples] == [s.id for s in train if s not in copies]
    assert found.exact + found.near == len(copies)


def test_the_same_prompt_and_completion_is_kept_once_the_first() -> None:
    one = make_sample(1)
    again, redrawn = replace(one, id="again", dialogue_id="d9"), replace(one, id="z2", system="z2", recent=("别的",))
    found = without_duplicates([one, again, redrawn])
    assert found.samples == [one, redrawn] and (found.exact, found.near) == (1, 0)


@pytest.mark.parametrize(
    ("change", "is_near"),
    [
        ({}, True),
        ({"recent": (OTHER,)}, True),
        ({"content": "行，那我先把手上的活做完再过来找你哈"}, True),
        ({"content": "不行，明天我得带我妈去医院"}, False),
        ({"recent": ("你昨晚几点收的工",)}, False),
        ({"dialogue_id": "first"}, False),
        ({"directed": "p02>p01"}, False),
        ({"draft": "等一下"}, False),
    ],
)
def test_near_means_last_messages_and_reply_alike_by_one_speaker_in_two_dialogues(change: dict[str, object], is_near: bool) -> None:
    first = make_sample(1, dialogue_id="first", recent=(LONG,), content="行，那我先把手上的活做完再过来找你")
    second = make_sample(2, **{"dialogue_id": "second", "recent": (LONG,), "content": "行，那我先把手上的活做完再过来找你", **change})
    assert without_duplicates([first, second]).near == is_near


def test_silences_are_duplicates_only_by_what_came_before_them() -> None:
    silences = [make_sample(i, silent=True, recent=(f"第{i}件事要花{i * 7919}块", f"{i * 104729}")) for i in range(50)]
    assert without_duplicates(silences).samples == silences
    alike = [make_sample(i, silent=True, unsent="拜拜" * i, recent=(LONG, "好")) for i in range(5)]
    found = without_duplicates(alike)
    assert found.samples == alike[:1] and found.silent == 4


def test_another_person_who_says_the_same_at_length_is_a_copy_of_a_held_out_sample_but_a_hello_is_not() -> None:
    held = [make_sample(1, recent=(LONG,), content="行，到时候见"), make_sample(2, recent=("在吗",), content="在呢")]
    train = [
        make_sample(3, directed="p07>p08", recent=(LONG,), content="行，到时候见"),
        make_sample(4, directed="p07>p08", recent=("在吗",), content="在呢"),
        make_sample(5, directed="p01>p08", recent=("在吗",), content="在呢"),
    ]
    assert [s.id for s in without_copies_of(held, train).samples] == ["d4/0"]


def test_a_chain_of_likenesses_keeps_what_is_unlike_the_kept() -> None:
    """b is like a, c is like b and not like a: c stays, since b is gone."""
    a, b, c = (f"{start}三点老地方见，我把书带给你{end}" for start, end in (("那明天", "啊"), ("那明天", ""), ("明天", "")))
    chain = [make_sample(i, recent=(LONG,), content=text) for i, text in enumerate((a, b, c))]
    assert share(pairs(a), pairs(b)) >= NEAR <= share(pairs(b), pairs(c)) and share(pairs(a), pairs(c)) < NEAR
    assert [s.id for s in without_duplicates(chain).samples] == ["d0/0", "d2/0"]
