"""What all model calls of one command share: the reply cache, the meter, and the calls under way."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anthrolab.models.cache import ReplyCache
from anthrolab.models.spend import Meter

GRACE_S = 15.0
"""How long a command that is stopped waits for replies that are under way: they are paid for."""


MANY_FILES = 10240
"""Open files that are enough for thousands of requests (the most that macOS gives)."""


@dataclass
class Engine:
    """To be had from `open_engine`. `cache` is None where no cache is wanted."""

    cache: ReplyCache | None = None
    meter: Meter = field(default_factory=Meter)
    under_way: set[asyncio.Task[Any]] = field(default_factory=set)

    def watch(self, call: asyncio.Task[Any]) -> None:
        """Have a call waited for at the end, whoever asked for it."""
        self.under_way.add(call)
        call.add_done_callback(self.under_way.discard)

    async def drain(self, seconds: float = GRACE_S) -> None:
        """Let nothing more begin, and wait for the calls under way, at most so long."""
        self.meter.close()
        end = time.monotonic() + seconds
        while self.under_way and self.meter.out and time.monotonic() < end:
            await asyncio.wait(set(self.under_way), timeout=0.05)
        if self.under_way:
            await asyncio.wait(set(self.under_way), timeout=0.2)  # the last replies reach their logs; the rest was never sent


def _allow_many_files() -> None:
    """Raise the limit on open files as far as the system lets us: every request under way is a connection."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, MANY_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # refused: then fewer connections must do
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@asynccontextmanager
async def open_engine(
    cache: Path | None = None, max_cost: float | None = None, spent: float = 0.0, charges: Path | None = None
) -> AsyncIterator[Engine]:
    """The engine of one command. `max_cost`: USD, of which `spent` are gone already; `charges`: see `Meter`.

    However the command ends, replies that are on their way are waited for (a while), so that they reach their call logs.
    """
    _allow_many_files()
    engine = Engine(ReplyCache(cache) if cache else None, Meter(max_cost, spent, charges=charges))
    try:
        try:
            yield engine
        finally:
            await engine.drain()
    finally:
        if engine.cache is not None:
            engine.cache.close()
