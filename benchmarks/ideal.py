"""How long a set of chats must take on a server with so many slots: a bound that no schedule beats, and a good schedule.

A chat is a chain of events, an event some calls (two, one a speaker) that may run side by side; the next event begins
when all calls of the one before are answered. A call holds one slot for its seconds of work. All times in seconds.
"""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import accumulate

Chat = Sequence[Sequence[float]]
"""Seconds of work of each call, by event; an event has at least one call."""


def work(chats: Iterable[Chat]) -> float:
    """Slot-seconds in all."""
    return sum(sum(event) for chat in chats for event in chat)


def least_makespan(chats: Sequence[Chat], slots: int) -> float:
    """No schedule is done earlier: all slots busy all the time, or the longest chat with slots of its own.

    >>> least_makespan([[[2, 1], [3, 3]], [[1, 1]]], slots=4)
    5
    """
    longest = max((sum(max(event) for event in chat) for chat in chats), default=0.0)
    return max(work(chats) / slots, longest)


def listed_makespan(chats: Sequence[Chat], slots: int) -> float:
    """When a schedule is done that leaves no slot free while a call waits, and takes first a call of the chat with
    the longest way to go. It knows how long calls will take, which an engine does not.

    Whatever is chosen first, such a schedule takes less than twice as long as the best one (Graham 1966).

    >>> listed_makespan([[[1, 1]], [[4, 1]]], slots=2)
    4.0
    """
    to_go = [list(accumulate(max(event) for event in reversed(chat)))[::-1] for chat in chats]
    waiting: list[tuple[float, int, int, float]] = []
    running: list[tuple[float, int, int]] = []
    unanswered = [[len(event) for event in chat] for chat in chats]

    def ask(number: int, event: int) -> None:
        for seconds in chats[number][event]:
            heappush(waiting, (-to_go[number][event], number, event, seconds))

    for number, chat in enumerate(chats):
        if chat:
            ask(number, 0)
    now = 0.0
    while waiting or running:
        while waiting and len(running) < slots:
            _, number, event, seconds = heappop(waiting)
            heappush(running, (now + seconds, number, event))
        now, number, event = heappop(running)
        unanswered[number][event] -= 1
        if not unanswered[number][event] and event + 1 < len(chats[number]):
            ask(number, event + 1)
    return now


def busy_share(spans: Iterable[tuple[float, float]], slots: int, begin: float, end: float) -> float:
    """The share of slot-seconds between `begin` and `end` that fall into spans (begun, ended) of work.

    >>> busy_share([(0, 2), (1, 5)], slots=2, begin=0, end=4)
    0.625
    """
    busy = sum(max(0.0, min(ended, end) - max(begun, begin)) for begun, ended in spans)
    return busy / (slots * (end - begin))


def when_fewer_are_left(ends: Iterable[float], enough: int) -> float:
    """The moment from which fewer than `enough` chats go on, by the times at which they end; at least `enough` chats.

    >>> when_fewer_are_left([5, 9, 7, 8], enough=2)
    8
    """
    return sorted(ends, reverse=True)[enough - 1]
