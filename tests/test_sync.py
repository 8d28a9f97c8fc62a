"""Async work from plain code, with and without a running event loop, failing and interrupted."""

import asyncio
import subprocess
import sys
import textwrap

import pytest

from anthrolab.sync import run_async


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def broken() -> None:
    async def fail() -> None:
        raise ValueError("the first failure")

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())
        group.create_task(asyncio.sleep(60))


def in_a_notebook(call):  # type: ignore[no-untyped-def]
    """Call it as a notebook cell is called: from inside a running event loop."""

    async def cell():  # type: ignore[no-untyped-def]
        return call()

    return asyncio.run(cell())


def test_the_result_comes_back_with_and_without_a_running_loop() -> None:
    assert run_async(double(21)) == 42
    assert in_a_notebook(lambda: run_async(double(21))) == 42


def test_the_failure_of_a_group_comes_bare() -> None:
    with pytest.raises(ValueError, match="the first failure"):
        run_async(broken())
    with pytest.raises(ValueError, match="the first failure"):
        in_a_notebook(lambda: run_async(broken()))


def test_interrupting_the_caller_cancels_the_work() -> None:
    """The stop button of a notebook: SIGINT while a cell waits. The work must not go on behind its back."""
    program = textwrap.dedent(
        """
        import asyncio, os, signal, threading, time
        from anthrolab.sync import run_async

        async def work():
            try:
                await asyncio.sleep(60)
            finally:
                print("let go", flush=True)

        async def cell():
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            run_async(work())

        loop = asyncio.new_event_loop()  # as in a kernel: SIGINT raises KeyboardInterrupt
        try:
            loop.run_until_complete(cell())
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert done.stdout.split("\n")[:2] == ["let go", "interrupted"], done.stderr
