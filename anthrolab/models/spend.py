"""Tokens and money: what the calls of a command use, and a limit that no request is sent beyond."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anthrolab.errors import AnthrolabError
from anthrolab.files import append_line
from anthrolab.models.client import ModelError, Usage

if TYPE_CHECKING:
    from anthrolab.models.systems import Prices, System


class SpendError(AnthrolabError):
    """A limit on money that cannot be held."""


@dataclass
class Toll:
    """The account of one system on one side (tested, partner, judge, ...) with the meter.

    usage: what its replies of this command used; reused: replies that the shared cache had; unsure: USD of attempts that
    may have been charged without our knowing (a timeout, a broken reply), each at its upper bound.
    """

    system: str
    side: str
    prices: "Prices | None"
    meter: "Meter"
    usage: Usage = field(default_factory=Usage)
    reused: int = 0
    unsure: float = 0.0

    @property
    def cost(self) -> float | None:
        """USD of the replies of this command; None if the system has no prices."""
        return None if self.prices is None else self.prices.cost(self.usage)

    async def reserve(self, body: Mapping[str, Any]) -> float:
        """Set money aside for an attempt, in USD; ModelError `over_budget` if the limit forbids it, `no_reply` if the
        meter is closed; SpendError if the reply has no length cap.

        Without a limit nothing is set aside. A token is at least one byte of the prompt, so its bytes bound its tokens.
        """
        if self.meter.closed.is_set():
            raise ModelError("no_reply", f"{self.system}: the command was stopped before this request went out")
        if self.meter.limit is None or self.prices is None:
            self.meter.out += 1
            return 0.0
        longest = int(body.get("max_tokens") or body.get("max_completion_tokens") or 0)
        if not longest:
            raise SpendError(f"--max-cost: {self.system} has max_tokens: null, so a reply has no highest price; give it a length cap")
        most = self.prices.cost(Usage(1, 0, len(json.dumps(body, ensure_ascii=False).encode()), 0, longest))
        await self.meter.set_aside(most)
        self.meter.out += 1
        return most

    async def wait(self, seconds: float) -> None:
        """Wait before a further attempt; not to the end if the meter is closed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.meter.closed.wait()

    def settle(self, reserved: float, usage: Usage | None) -> None:
        """An attempt that `reserve` was asked for is over. `usage`: None if the server did not say and may charge for it; then all of `reserved` counts."""
        self.meter.out -= 1
        if usage is None or usage.uncounted:
            self.unsure += reserved
            self.meter.settle(reserved, reserved)
            if reserved and self.meter.charges is not None:
                row = {"side": self.side, "system": self.system, "usd": reserved}
                append_line(self.meter.charges, json.dumps(row, ensure_ascii=False))
        else:
            self.meter.settle(reserved, self.prices.cost(usage) if self.prices else 0.0)
        if usage is not None:
            self.usage += usage


@dataclass
class Meter:
    """What a command has spent so far, and may spend.

    limit: USD, None for no limit; spent: USD, what the run had cost before included; reserved: USD set aside for requests
    under way. A request is sent only if spent + reserved + the most that it can cost stays within the limit.
    out: attempts that are on their way. charges: a file that gets a line for each attempt that may have been charged without a reply: later commands count it.
    closed: set when the command ends; from then on nothing is bought any more.
    """

    limit: float | None = None
    spent: float = 0.0
    reserved: float = 0.0
    out: int = 0
    charges: Path | None = None
    tolls: dict[tuple[str, str], Toll] = field(default_factory=dict)
    closed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list, repr=False)

    def toll(self, system: "System", side: str) -> Toll:
        """The system's account on a side; SpendError if there is a limit and the system has no prices."""
        if self.limit is not None and system.prices is None:
            raise SpendError(f"--max-cost: {system.name} has no prices; write its prices (0 and 0 if it costs nothing) in the systems file")
        key = (system.name, side)
        if key not in self.tolls:
            self.tolls[key] = Toll(system.name, side, system.prices, self)
        return self.tolls[key]

    async def set_aside(self, most: float) -> None:
        """Reserve `most` USD, after requests under way have come in if need be; ModelError `over_budget` if it is too much."""
        assert self.limit is not None
        while not self.closed.is_set():
            if self.spent + most > self.limit:
                raise ModelError(
                    "over_budget",
                    f"--max-cost {self.limit:g}: {self.spent:.4f} USD are spent and the next request may cost {most:.4f}; "
                    "nothing is lost: the same command with a higher limit goes on",
                )
            if self.spent + self.reserved + most <= self.limit:
                self.reserved += most
                return
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            await place
        raise ModelError("no_reply", "the command was stopped before this request went out")

    def settle(self, reserved: float, cost: float) -> None:
        """Replace a reservation by what the attempt cost."""
        self.reserved = max(0.0, self.reserved - reserved) if self.out else 0.0  # no rest of rounding stays behind
        self.spent += cost
        waiting, self._waiting = self._waiting, []
        for place in waiting:
            if not place.done():
                place.set_result(None)

    def close(self) -> None:
        """Nothing more is bought."""
        self.closed.set()
        self.settle(0.0, 0.0)

    @property
    def usage(self) -> Usage:
        """Tokens of all replies of this command."""
        return sum((toll.usage for toll in self.tolls.values()), Usage())

    @property
    def priced(self) -> bool:
        """True if any system here has prices."""
        return any(toll.prices is not None for toll in self.tolls.values())
