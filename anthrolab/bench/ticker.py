"""The line of progress: how much is done, how fast, for how many tokens and how much money, and how long it still takes."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from anthrolab.models.spend import Meter


@dataclass
class Ticker:
    """Counts the items of one command.

    todo: items to have; meter: what the command's calls use; clock: seconds.
    The time left is estimated from calls: items of the same kind need about as many as those that are finished.
    """

    todo: int
    meter: Meter
    clock: Callable[[], float] = time.monotonic
    finished: int = 0
    _calls_of_finished: int = 0
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def finish(self, calls: int) -> None:
        """One more item is there, which took so many calls, those answered from disk included."""
        self.finished += 1
        self._calls_of_finished += calls

    def line(self) -> str:
        """For instance `37/100, 12.1 calls/s, 1.2M tokens, 0.42 USD, about 95 s left`."""
        usage, seconds = self.meter.usage, max(self.clock() - self._begun, 1e-9)
        answered = usage.calls + sum(toll.reused for toll in self.meter.tolls.values())
        parts = [f"{self.finished}/{self.todo}"]
        if answered:
            parts.append(f"{answered / seconds:.1f} calls/s")
        if reused := sum(toll.reused for toll in self.meter.tolls.values()):
            parts.append(f"{reused} replies from the cache")
        if usage.calls:
            parts.append(f"{short(usage.prompt_tokens + usage.completion_tokens)} tokens")
        if self.meter.priced:
            parts.append(f"{self.meter.spent:.2f} USD" + (f" of {self.meter.limit:g}" if self.meter.limit is not None else ""))
        if self.finished and self.finished < self.todo:
            needed = self._calls_of_finished / self.finished * self.todo - answered
            left = needed / answered * seconds if answered else seconds / self.finished * (self.todo - self.finished)
            parts.append(f"about {max(left, 0):.0f} s left")
        return ", ".join(parts)


def short(number: int) -> str:
    """A count in few characters.

    >>> [short(n) for n in (950, 12_345, 1_234_567)]
    ['950', '12.3k', '1.2M']
    """
    if number < 1000:
        return str(number)
    return f"{number / 1e3:.1f}k" if number < 1e6 else f"{number / 1e6:.1f}M"
