"""The ideal schedule that the engine's busy share is measured against, by hand and against all schedules there are."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.ideal import busy_share, least_makespan, listed_makespan, when_fewer_are_left, work

Chats = list[list[list[int]]]

SMALL = st.lists(
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=2), min_size=1, max_size=3), min_size=1, max_size=3
).filter(lambda chats: sum(len(event) for chat in chats for event in chat) <= 6)
"""Chats of six calls at most in all, so that every schedule can be tried."""


def best_makespan(chats: Chats, slots: int) -> int:
    """The best of all schedules: every order of calls that the chains allow, each call as early as it can then begin."""

    @cache
    def best(left: tuple[tuple[int, ...], ...], event: tuple[int, ...], ready: tuple[int, ...], ends: tuple[int, ...],
             free: tuple[int, ...]) -> int:  # fmt: skip
        """`left`: calls not begun of each chat's event; `ready`: since when they may; `ends`: when its last begun one ends."""
        found = []
        for c, calls in enumerate(left):
            for call in set(calls):
                begin = max(ready[c], free[0])
                end = begin + call
                slots_then = tuple(sorted((*free[1:], end)))
                rest = list(calls)
                rest.remove(call)
                last = max(ends[c], end)
                where, since = event[c], ready[c]
                if not rest and where + 1 < len(chats[c]):
                    where, since = where + 1, last
                    rest = list(chats[c][where])
                found.append(
                    best(put(left, c, tuple(sorted(rest))), put(event, c, where), put(ready, c, since), put(ends, c, last),
                         slots_then)
                )  # fmt: skip
        return min(found, default=max(ends))

    n = len(chats)
    first = tuple(tuple(sorted(chat[0])) for chat in chats)
    return best(first, (0,) * n, (0,) * n, (0,) * n, (0,) * slots)


def put(values: tuple, at: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (*values[:at], value, *values[at + 1 :])


@pytest.mark.parametrize(
    ("chats", "slots", "least", "best", "listed"),
    [
        ([[[3, 1], [2, 2]]], 2, 5, 5, 5),  # one chat: its chain of slower calls
        ([[[3, 1], [2, 2]]], 1, 8, 8, 8),  # one slot: all the work
        ([[[1, 1]], [[4, 1]]], 2, 4, 4, 4),  # the long call first; in the order given it would take 5
        ([[[2]], [[2]], [[2]]], 2, 3, 4, 4),  # three calls do not fit evenly on two slots: the bound is not reached
        ([[[1], [1], [1]], [[3]], [[3]]], 2, 4.5, 5, 5),
        ([[[3]], [[3]], [[2]], [[2]], [[2]]], 2, 6, 6, 7),  # longest first is not always best
    ],
)
def test_small_cases_are_as_computed_by_hand(chats: Chats, slots: int, least: float, best: int, listed: int) -> None:
    assert least_makespan(chats, slots) == least
    assert best_makespan(chats, slots) == best
    assert listed_makespan(chats, slots) == listed


@given(SMALL, st.integers(1, 3))
def test_the_bound_is_below_every_schedule_and_the_listed_one_is_a_good_schedule(chats: Chats, slots: int) -> None:
    best = best_makespan(chats, slots)
    assert least_makespan(chats, slots) <= best <= listed_makespan(chats, slots)
    assert listed_makespan(chats, slots) <= (2 - 1 / slots) * best
    if slots == 1:
        assert listed_makespan(chats, slots) == work(chats) == best


@given(SMALL)
def test_with_slots_for_everybody_the_longest_chat_decides(chats: Chats) -> None:
    slots = sum(len(event) for chat in chats for event in chat)
    longest = max(sum(max(event) for event in chat) for chat in chats)
    assert listed_makespan(chats, slots) == longest == best_makespan(chats, slots)


@given(SMALL, st.integers(1, 3))
def test_an_event_waits_for_both_answers_of_the_one_before(chats: Chats, slots: int) -> None:
    """A further event takes at least its slower call longer than the chat without it."""
    longer = [[*chat, [4, 1]] for chat in chats]
    assert best_makespan(chats, slots) + 4 <= listed_makespan(longer, slots)


def test_busy_share_counts_what_lies_in_the_window() -> None:
    spans = [(0.0, 2.0), (1.0, 5.0), (4.5, 6.0)]
    assert busy_share(spans, 2, 0, 6) == (2 + 4 + 1.5) / 12
    assert busy_share(spans, 2, 1, 4) == (1 + 3 + 0) / 6
    assert busy_share([(0.0, 10.0)] * 2, 2, 3, 4) == 1


def test_fewer_are_left_from_the_end_of_the_chat_that_makes_them_too_few() -> None:
    ends = [5.0, 9.0, 7.0, 8.0]
    assert when_fewer_are_left(ends, 1) == 9
    assert when_fewer_are_left(ends, 3) == 7
    assert when_fewer_are_left(ends, 4) == 5
