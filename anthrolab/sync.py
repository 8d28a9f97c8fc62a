"""Running async work from plain code, also inside a notebook, whose kernel already runs an event loop."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")
U = TypeVar("U")


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


async def both(first: Coroutine[Any, Any, T], second: Coroutine[Any, Any, U]) -> tuple[T, U]:
    """Both results, had at the same time; if one fails the other is cancelled and the failure goes on bare."""
    try:
        async with asyncio.TaskGroup() as group:
            one, two = group.create_task(first), group.create_task(second)
    except BaseExceptionGroup as failures:
        raise first_failure(failures) from None
    return one.result(), two.result()


class Background:
    """An event loop on a thread of its own, for plain code that has async work done now and then: `with Background() as b: b.run(...)`.

    What is open in one `run` (clients, servers) stays usable in the next. Interrupting the caller cancels the work under way.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="anthrolab-background", daemon=True)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`; where tasks of a group failed, the first failure."""
        begun: Future[asyncio.Task[Any]] = Future()

        async def begin() -> T:
            task = asyncio.current_task()
            assert task is not None
            begun.set_result(task)
            return await work

        running: Future[T] = asyncio.run_coroutine_threadsafe(begin(), self._loop)
        try:
            wait([running])
        except BaseException:  # only this work is stopped: replies that are paid for still reach their logs
            self._loop.call_soon_threadsafe(begun.result().cancel)
            wait([running])
            raise
        try:
            return running.result()
        except BaseExceptionGroup as group:
            raise first_failure(group) from None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for ending in (self._loop.shutdown_asyncgens(), self._loop.shutdown_default_executor()):
            asyncio.run_coroutine_threadsafe(ending, self._loop).result()  # on its own thread: the caller's may run a loop (Jupyter)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


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
