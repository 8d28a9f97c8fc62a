"""Running async work from plain code, also inside a notebook, whose kernel already runs an event loop."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`; in a notebook it runs on a thread with a loop of its own.

    Where tasks of a group failed, the first failure goes to the caller by itself.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(work)
    outcome: list[T] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(_run(work))
        except BaseException as e:  # noqa: BLE001 - handed to the caller below, whatever it is
            failure.append(e)

    thread = threading.Thread(target=target, name="anthrolab-async")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except BaseExceptionGroup as group:
        failure: BaseException = group
        while isinstance(failure, BaseExceptionGroup):
            failure = failure.exceptions[0]
        raise failure from None
