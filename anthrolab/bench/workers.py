"""Working through many items at the same time: enough of them to keep the servers busy, none for longer than it may take."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from anthrolab.models.client import FINAL_FAULTS, ModelError
from anthrolab.models.flow import Flow

T = TypeVar("T")

TICK_S = 0.02
"""How often it is looked whether the servers could take more."""

BEAT_S = 30.0
"""Seconds between two signs of life."""


async def work_through(
    todo: Sequence[T],
    do: Callable[[T], Awaitable[None]],
    failed: Callable[[T, ModelError], None],
    *,
    most: int,
    flows: Iterable[Flow] = (),
    calls_each: int = 2,
    deadline_s: float | None = None,
    beat: Callable[[], None] = lambda: None,
) -> None:
    """Do every item, in order of their beginning, at most `most` at the same time.

    An item is begun while the busiest of the `flows` wants more requests, of which an item has about `calls_each` at
    once. An item that raises ModelError, or takes longer than `deadline_s` seconds (fault `deadline`), goes to `failed`;
    any other error ends all. `beat` is called now and then.
    """
    waiting, active, dead = deque(todo), 0, False
    wake = asyncio.Event()
    flows = list(flows)

    async def one(item: T) -> None:
        nonlocal active, dead
        try:
            async with asyncio.timeout(deadline_s) as limit:
                await do(item)
        except TimeoutError:
            if not limit.expired():
                raise
            failed(item, ModelError("deadline", f"took longer than {deadline_s:g} s; what was answered is kept: raise --deadline and go on"))
        except ModelError as e:
            dead = dead or e.fault in FINAL_FAULTS
            failed(item, e)
        finally:
            active -= 1
            wake.set()

    async def beats() -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            beat()

    heart = asyncio.create_task(beats())
    try:
        async with asyncio.TaskGroup() as group:
            while waiting and not dead:
                wanted = min((flow.wanted for flow in flows), default=calls_each * most)
                for _ in range(min(most - active, -(-wanted // calls_each), len(waiting))):
                    active += 1
                    group.create_task(one(waiting.popleft()))
                wake.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(TICK_S):  # wait_for of Python 3.11 swallows a Ctrl-C that comes with a wake
                        await wake.wait()
    finally:
        heart.cancel()
