"""Work on the event loop of a notebook's kernel, asked for on any thread, with nothing that goes wrong swallowed."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class OnLoop:
    """The loop that runs where this is made. `failed` is told, on the loop, of every error of what is done."""

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()

    def soon(self, act: Callable[[], None]) -> None:
        """Do it on the loop, after what was asked for before."""

        async def acting() -> None:
            act()

        self.loop.call_soon_threadsafe(lambda: self.spawn(acting()))

    def later(self, seconds: float, act: Callable[[], None]) -> asyncio.TimerHandle:
        """Do it in so many seconds, unless the handle is cancelled; to be called on the loop."""
        return self.loop.call_later(seconds, lambda: self.soon(act))

    def spawn(self, work: Coroutine[Any, Any, None], done: Callable[[], None] = lambda: None) -> "asyncio.Task[None]":
        """A task for this work; `done` is called after its end, however it came. To be called on the loop."""
        task: asyncio.Task[None] = self.loop.create_task(work)
        self._tasks.add(task)  # the loop itself holds tasks only weakly

        def settled(task: "asyncio.Task[None]") -> None:
            self._tasks.discard(task)
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self._failed(error)
            done()

        task.add_done_callback(settled)
        return task
