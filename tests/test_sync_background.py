"""The background loop of plain code: results, first failures, and an interruption that stops its own work alone."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from anthrolab.sync import Background


def test_what_is_open_in_one_run_is_usable_in_the_next() -> None:
    with Background() as background:
        event = background.run(_event())
        assert background.run(_set(event)) is True


async def _event() -> asyncio.Event:
    return asyncio.Event()


async def _set(event: asyncio.Event) -> bool:
    event.set()
    await asyncio.wait_for(event.wait(), 5)
    return event.is_set()


def test_the_first_failure_comes_by_itself() -> None:
    async def fails() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_raise())

    with Background() as background, pytest.raises(KeyError):
        background.run(fails())


async def _raise() -> None:
    raise KeyError("x")


def test_it_works_where_a_loop_runs_already() -> None:
    async def inside() -> int:
        with Background() as background:
            return background.run(_three())

    assert asyncio.run(inside()) == 3


async def _three() -> int:
    return 3


def test_an_interruption_stops_the_work_and_not_what_it_left_under_way() -> None:
    """In a process of its own: after other tests (notebooks run in it) an interruption may come late to a waiting thread."""
    script = "from tests.test_sync_background import interrupted; interrupted()"
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr


def interrupted() -> None:
    """A call that is shielded (its reply is paid for) still comes to its end."""
    came: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def paid() -> None:
        await asyncio.sleep(0.3)
        came.append("reply")

    async def work() -> None:
        tasks.append(asyncio.create_task(paid()))
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            await asyncio.shield(tasks[0])
            await asyncio.sleep(60)
        finally:
            came.append("let go")

    async def drain() -> None:
        await asyncio.wait(tasks)

    began = time.monotonic()
    with Background() as background:
        with pytest.raises(KeyboardInterrupt):
            background.run(work())
        assert came == ["let go"] and time.monotonic() - began < 30
        background.run(drain())
    assert came == ["let go", "reply"]
