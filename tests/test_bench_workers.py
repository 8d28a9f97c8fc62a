"""Working through many items: enough at once, none for too long, and what a dead server ends."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from anthrolab.bench.ticker import Ticker
from anthrolab.bench.workers import work_through
from anthrolab.models.budget import Budget
from anthrolab.models.client import ModelError, Request, Usage
from anthrolab.models.endpoint import Endpoint
from anthrolab.models.flow import Flow
from anthrolab.models.spend import Meter

Failed = list[tuple[int, ModelError]]


def through(count: int, do: Callable[[int], Awaitable[None]], **options: object) -> Failed:
    failed: Failed = []

    async def work() -> None:
        await work_through(range(count), do, lambda i, e: failed.append((i, e)), **options)  # type: ignore[arg-type]

    asyncio.run(work())
    return failed


def test_every_item_is_done_once_and_no_more_at_once_than_may_be() -> None:
    done: list[int] = []
    inside = most = 0

    async def do(item: int) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.001)
        inside -= 1
        done.append(item)

    assert through(40, do, most=7) == []
    assert sorted(done) == list(range(40)) and most == 7


def test_items_are_begun_as_the_busiest_server_wants_requests() -> None:
    inside = most = 0

    async def work() -> None:
        loop = asyncio.get_running_loop()
        slow, idle = Flow(4, loop.time), Flow(64, loop.time)

        async def do(_item: int) -> None:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            for _ in range(3):
                turns = await asyncio.gather(slow.enter(), slow.enter())
                await asyncio.sleep(0.005)
                for turn in turns:
                    slow.leave(turn, "answered")
            inside -= 1

        await work_through(range(30), do, lambda *_: None, most=1000, flows=[slow, idle])

    asyncio.run(work())
    assert 2 <= most <= 6, "four requests at once and two in reserve are three chats of two asks each"


def test_an_item_that_takes_too_long_is_a_failure_and_the_others_go_on() -> None:
    done: list[int] = []

    async def do(item: int) -> None:
        await asyncio.sleep(10 if item == 1 else 0)
        done.append(item)

    ((item, error),) = through(4, do, most=4, deadline_s=0.1)
    assert (item, error.fault) == (1, "deadline") and "--deadline" in str(error)
    assert sorted(done) == [0, 2, 3]


@pytest.mark.parametrize("fault", ["unreachable", "over_budget"])
def test_after_such_a_fault_nothing_more_is_begun(fault: str) -> None:
    begun: list[int] = []

    async def do(item: int) -> None:
        begun.append(item)
        raise ModelError(fault, "gone")  # type: ignore[arg-type]

    failed = through(10, do, most=2)
    assert [i for i, _ in failed] == begun == [0, 1]


def test_another_fault_ends_only_its_item() -> None:
    async def do(item: int) -> None:
        if item % 2:
            raise ModelError("timeout", "late")

    assert [i for i, _ in through(6, do, most=2)] == [1, 3, 5]


def test_any_other_error_ends_all() -> None:
    async def do(item: int) -> None:
        if item == 1:
            raise RuntimeError("a bug")
        await asyncio.sleep(10)

    with pytest.raises(ExceptionGroup) as caught:
        through(3, do, most=3)
    assert caught.value.exceptions[0].args == ("a bug",)


@pytest.mark.parametrize("error", [RuntimeError("a bug"), asyncio.CancelledError()])
def test_an_end_that_comes_with_the_end_of_an_item_is_not_missed(error: BaseException) -> None:
    """300 items, two at once; a stop or a bug in the very pass in which an item ends must end the rest."""
    done: list[int] = []

    async def work() -> None:
        me = asyncio.current_task()
        assert me is not None

        async def do(item: int) -> None:
            await asyncio.sleep(0)
            done.append(item)
            if item == 5:
                if isinstance(error, RuntimeError):
                    raise error
                me.cancel()

        await work_through(range(300), do, lambda *_: None, most=2)

    with pytest.raises((ExceptionGroup, asyncio.CancelledError)):
        asyncio.run(work())
    assert len(done) < 12


def test_a_dead_server_is_asked_for_a_few_items_only() -> None:
    """Requests that wait before a further attempt count: no item is begun for every tick of the clock."""
    begun: list[int] = []

    async def work() -> list[int]:
        failed: list[int] = []
        budget = Budget(attempts=4, seconds=20, attempt_seconds=5, first_wait=0.05)
        async with Endpoint("http://127.0.0.1:9/v1", budget=budget, concurrency=256) as client:

            async def do(item: int) -> None:
                begun.append(item)
                await client.ask(Request("m", prompt=str(item)))

            await work_through(range(500), do, lambda i, _e: failed.append(i), most=4096, flows=[client.flow])
        return failed

    assert sorted(asyncio.run(work())) == sorted(begun)
    assert len(begun) <= 24


def test_a_timeout_of_the_items_own_is_no_deadline() -> None:
    async def do(_item: int) -> None:
        raise TimeoutError

    with pytest.raises(ExceptionGroup):
        through(1, do, most=1, deadline_s=10)


def test_the_line_of_progress() -> None:
    now = [0.0]
    meter = Meter(limit=2.0)
    ticker = Ticker(4, meter, lambda: now[0])
    assert ticker.line() == "0/4"
    from tests.test_models_spend import system

    toll = meter.toll(system(), "tested")
    toll.usage, meter.spent, now[0] = Usage(20, 0, 9_000, 0, 1_000), 0.5, 10.0
    toll.reused = 4
    ticker.finish(12)
    # 24 calls in 10 s; four items of 12 calls need 48, 24 are left
    assert ticker.line() == "1/4, 2.4 calls/s, 4 replies from the cache, 10.0k tokens, 0.50 USD of 2, about 10 s left"
