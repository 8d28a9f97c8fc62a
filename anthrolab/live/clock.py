"""The clock of a live chat: virtual time, which is real time times a speed, and which can be stopped.

It stands still while the model decides (a slow server is no slow person) and while the person has paused. The chat sets
it to the planned time of every event, so that small delays of the machine never add up and stand in no log.
"""

import asyncio
import math
import time
from collections.abc import Callable

INSTANT = math.inf
"""The speed at which nothing is waited for: time jumps to the next thing that is to happen."""


class Clock:
    """Virtual seconds since the start of the dialogue. `speed`: how many of them pass in a real second, above 0.

    It stands still at first, until `go`. `real` is the real clock, in seconds.
    """

    def __init__(self, speed: float = 1.0, real: Callable[[], float] = time.monotonic) -> None:
        self._real = real
        self._at = 0.0
        self._since: float | None = None
        self._check(speed)
        self._speed = speed

    @property
    def speed(self) -> float:
        """Virtual seconds in a real second; may be changed at any time."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self._check(speed)
        self.set(self.now())
        self._speed = speed

    @property
    def stopped(self) -> bool:
        """True while time stands still."""
        return self._since is None

    def now(self) -> float:
        """The virtual time."""
        if self._since is None or self._speed == INSTANT:
            return self._at
        return self._at + (self._real() - self._since) * self._speed

    def set(self, at_s: float) -> None:
        """It is this late now."""
        self._at = at_s
        if self._since is not None:
            self._since = self._real()

    def stop(self) -> None:
        """Let time stand still."""
        self.set(self.now())
        self._since = None

    def go(self) -> None:
        """Let time go on."""
        if self._since is None:
            self._since = self._real()

    async def until(self, at_s: float | None, woken: asyncio.Event) -> bool:
        """Wait until it is that late, or until something else calls (False). None, or a clock that stands: for the latter only."""
        if woken.is_set():
            return False
        if at_s is not None and not self.stopped:
            if self._speed == INSTANT:
                self._at = max(self._at, at_s)
            left = (at_s - self.now()) / self._speed
            if left <= 0:
                return True
            try:
                async with asyncio.timeout(left):
                    await woken.wait()
            except TimeoutError:  # both may be true at once; what the person does comes first
                return not woken.is_set() and self.now() >= at_s
            return False
        await woken.wait()
        return False

    @staticmethod
    def _check(speed: float) -> None:
        if not speed > 0:
            raise ValueError(f"speed is {speed}; virtual seconds in a real second, above 0")
