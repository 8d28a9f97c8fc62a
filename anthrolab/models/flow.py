"""How many requests an endpoint gets at once: more while its latency holds, fewer once it is overloaded."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

BEGIN = 16
"""Requests at once before anything is known of the server."""

HOLD = 3.0
"""Mean seconds of a window up to this many times the quickest window's count as "latency holds". A server that queues
what exceeds its slots answers a third as fast when it is given three times its slots, so its queue is never empty."""

CUT = 0.7
"""The share of the limit that is left after a cut."""

OVERLOADED = 0.1
"""The limit is cut where more than this share of the latest attempts met an overload: one 503 now and then is no overload."""

LATEST = 0.02
"""The weight of the newest attempt in that share; the latest fifty or so count."""

STEP = 0.1
"""How much of itself the limit gains in a window once the first overload or the first slow window was seen."""

LEAST_WINDOW = 8
"""Answers that make a window, or as many as the limit if that is more."""

RESERVE = 1.5
"""Requests under way and waiting, as a multiple of the limit, that a server should have to choose from."""

Outcome = Literal["answered", "overloaded", "other"]
"""`overloaded`: 429, 503 or a timeout; `other`: an attempt that says nothing about load."""


@dataclass(frozen=True)
class Turn:
    """A request's leave to be under way; goes back with `Flow.leave`."""

    begun: float
    cuts: int


class Flow:
    """The limit of requests under way to one endpoint, never above `ceiling`, and the queue before it.

    Additive increase, multiplicative decrease: the limit doubles with each window of answers at first, later grows by
    a tenth, as long as the limit is what holds requests back and the latency holds; overloads leave 0.7 of it (once for
    all requests that were under way together). `clock` gives seconds. `pausing` counts requests that wait before a further attempt.

    >>> flow = Flow(64, lambda: 0.0)
    >>> flow.limit
    16
    """

    def __init__(self, ceiling: int, clock: Callable[[], float]) -> None:
        if ceiling < 1:
            raise ValueError(f"ceiling {ceiling}: at least one request at once")
        self.ceiling = ceiling
        self.under_way = self.pausing = 0
        self._clock = clock
        self._limit = float(min(ceiling, BEGIN))
        self._quick_start = True
        self._cuts = 0
        self._overloads = 0.0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._closed_until = 0.0
        self._opening: asyncio.TimerHandle | None = None
        self._window = [0, 0.0]
        self._full = False
        self._best = float("inf")
        self._since = float("-inf")

    @property
    def limit(self) -> int:
        """Requests that may be under way now, 1 to the ceiling."""
        return int(self._limit)

    @property
    def wanted(self) -> int:
        """How many more requests would keep the server busy with a reserve of half the limit; less than 1 for none."""
        return int(RESERVE * self._limit) - self.under_way - len(self._queue) - self.pausing

    async def enter(self, *, first: bool = False) -> Turn:
        """Wait for a turn. `first`: before all that wait already (a further attempt of a request that had its turn)."""
        if self.under_way >= self.limit or self._clock() < self._closed_until or (self._queue and not first):
            self._full = self._full or self.under_way >= self.limit
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            (self._queue.appendleft if first else self._queue.append)(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self.under_way -= 1  # the turn came and nobody takes it
                else:
                    with contextlib.suppress(ValueError):
                        self._queue.remove(place)
                self._admit()
                raise
        else:
            self.under_way += 1
        return Turn(self._clock(), self._cuts)

    def leave(self, turn: Turn, outcome: Outcome) -> None:
        """Give a turn back and say how the attempt ended."""
        self.under_way -= 1
        if outcome != "other":
            self._overloads += LATEST * ((outcome == "overloaded") - self._overloads)
        if outcome == "answered":
            self._count(turn)
        elif outcome == "overloaded" and turn.cuts == self._cuts and self._overloads > OVERLOADED:
            self._cuts += 1
            self._overloads = 0.0
            self._quick_start = False
            self._limit = max(1.0, self._limit * CUT)
            self._window = [0, 0.0]
        self._admit()

    def close_for(self, seconds: float) -> None:
        """Let nothing in for so many seconds (the server's Retry-After)."""
        until = self._clock() + seconds
        if until > self._closed_until:
            self._closed_until = until
            if self._opening is not None:
                self._opening.cancel()
            self._opening = asyncio.get_running_loop().call_later(seconds, self._open)

    def _open(self) -> None:
        self._opening = None
        self._closed_until = 0.0
        self._admit()

    def _admit(self) -> None:
        if self._closed_until and self._clock() < self._closed_until:
            return
        while self._queue and self.under_way < self.limit:
            place = self._queue.popleft()
            if not place.done():
                self.under_way += 1
                place.set_result(None)

    def _count(self, turn: Turn) -> None:
        if turn.begun < self._since:
            return  # it was under way under another limit
        self._window[0] += 1
        self._window[1] += self._clock() - turn.begun
        if self._window[0] < max(LEAST_WINDOW, self.limit):
            return
        mean = self._window[1] / self._window[0]
        self._best = min(self._best, mean)
        if mean > HOLD * self._best:
            self._quick_start = False
        elif self._full:
            grown = self._limit * 2 if self._quick_start else self._limit + max(1.0, STEP * self._limit)
            self._limit = min(float(self.ceiling), grown)
            self._since = self._clock()
        self._full = bool(self._queue)
        self._window = [0, 0.0]
