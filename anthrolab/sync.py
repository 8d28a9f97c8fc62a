"""Running async work from plain code, also inside a notebook, whose kernel already runs an event loop."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`; in a notebook it runs on a thread with a loop of its own.

    Where tasks of a group failed, the first failure goes to the caller by itself. Interrupting the caller (the
    stop button of a notebook) cancels the work and waits until it has let go of its files and servers.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(work)
    outcome: Future[T] = Future()
    running: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def begin() -> T:
        task = asyncio.current_task()
        assert task is not None
        running.set_result((asyncio.get_running_loop(), task))
        return await work

    def target() -> None:
        try:
            outcome.set_result(_run(begin()))
        except BaseException as e:  # noqa: BLE001 - handed to the caller below, whatever it is
            outcome.set_exception(e)

    threading.Thread(target=target, name="anthrolab-async").start()
    try:
        wait([outcome])  # not Thread.join: an interrupted join takes the thread for finished (Python 3.11)
    except BaseException:
        loop, task = running.result()
        if not outcome.done():
            loop.call_soon_threadsafe(task.cancel)
        wait([outcome])
        raise
    return outcome.result()


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except BaseExceptionGroup as group:
        raise first_failure(group) from None


def first_failure(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong first in a group of tasks, out of all the groups around it."""
    failure: BaseException = group
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure
