"""How many requests an endpoint gets at once: known courses, and a simulated server that is kept busy."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.models.flow import BEGIN, CUT, Flow, Outcome, Turn


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def rounds(flow: Flow, clock: Clock, count: int, seconds: Callable[[int], float], outcome: Outcome = "answered") -> None:
    """So many rounds in which as many requests as may be are under way together and as many wait."""
    for _ in range(count):
        turns = [await flow.enter() for _ in range(flow.limit)]
        waiting = asyncio.create_task(flow.enter())
        await asyncio.sleep(0)
        clock.now += seconds(len(turns))
        for turn in turns:
            flow.leave(turn, outcome)
        flow.leave(await waiting, "other")


def run(work: Awaitable[None]) -> None:
    async def all_of_it() -> None:
        await work

    asyncio.run(all_of_it())


def test_it_doubles_while_the_latency_holds_up_to_the_ceiling() -> None:
    async def work() -> None:
        clock = Clock()
        flow, seen = Flow(100, clock), []
        for _ in range(4):
            seen.append(flow.limit)
            await rounds(flow, clock, 1, lambda _n: 1.0)
        assert [*seen, flow.limit] == [16, 32, 64, 100, 100]

    run(work())


async def overloads(flow: Flow, count: int) -> None:
    for turn in [await flow.enter() for _ in range(min(count, flow.limit))]:
        flow.leave(turn, "overloaded")


def test_overloads_leave_0_7_of_it_once_for_all_that_were_under_way() -> None:
    async def work() -> None:
        clock = Clock()
        flow = Flow(100, clock)
        await overloads(flow, 16)
        assert flow.limit == int(BEGIN * CUT) == 11
        await overloads(flow, 11)
        assert flow.limit == int(BEGIN * CUT * CUT) == 7
        await rounds(flow, clock, 3, lambda _n: 1.0)
        assert 8 <= flow.limit <= 10, "after an overload it grows by steps"

    run(work())


def test_one_503_in_thirty_is_no_overload() -> None:
    async def work() -> None:
        clock = Clock()
        flow = Flow(32, clock)
        await rounds(flow, clock, 4, lambda _n: 1.0)
        for i in range(3000):
            flow.leave(await flow.enter(), "overloaded" if i % 30 == 7 else "answered")
        assert flow.limit == 32

    run(work())


def test_it_never_falls_below_one_request() -> None:
    async def work() -> None:
        flow = Flow(4, Clock())
        for _ in range(200):
            flow.leave(await flow.enter(), "overloaded")
        assert flow.limit == 1

    run(work())


def test_a_turn_that_comes_back_lets_one_in_and_not_more_than_the_limit() -> None:
    async def work() -> None:
        flow = Flow(100, Clock())
        turns = [await flow.enter() for _ in range(flow.limit)]
        waiting = [asyncio.create_task(flow.enter()) for _ in range(5)]
        await asyncio.sleep(0)
        flow.leave(turns[0], "other")
        await asyncio.sleep(0)
        assert (flow.under_way, sum(t.done() for t in waiting)) == (BEGIN, 1)
        for task in waiting:
            task.cancel()

    run(work())


def test_while_the_door_is_shut_a_turn_that_comes_back_lets_nobody_in() -> None:
    async def work() -> None:
        flow = Flow(1, asyncio.get_running_loop().time)
        turn = await flow.enter()
        waiting = asyncio.create_task(flow.enter())
        await asyncio.sleep(0)
        flow.close_for(0.2)
        flow.leave(turn, "other")
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await asyncio.wait_for(waiting, 2)

    run(work())


def test_what_waits_before_a_further_attempt_counts_as_asked_for() -> None:
    flow = Flow(16, Clock())
    assert flow.wanted == 24
    flow.pausing = 20
    assert flow.wanted == 4


def test_it_stops_growing_where_a_server_with_slots_only_queues() -> None:
    """32 slots, one second each: beyond three times 32 requests the mean wait is three times as long."""

    async def work() -> None:
        clock = Clock()
        flow = Flow(4096, clock)
        await rounds(flow, clock, 60, lambda n: max(1.0, n / 32))
        assert 64 <= flow.limit <= 140

    run(work())


def test_answers_from_before_it_grew_do_not_make_it_grow_on() -> None:
    """32 slots of one second, first come first served, request by request: right after each growth the answers are still
    as quick as before it."""

    async def work() -> None:
        clock = Clock()
        flow, free_at = Flow(4096, clock), [0.0] * 32
        on_their_way: list[tuple[float, int, Turn]] = []
        for number in range(6000):
            while flow.under_way < flow.limit:
                turn = await flow.enter()
                start = max(clock.now, heapq.heappop(free_at))
                heapq.heappush(free_at, start + 1)
                heapq.heappush(on_their_way, (start + 1, number * 5000 + flow.under_way, turn))
            waiting = asyncio.create_task(flow.enter())  # somebody always waits
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            clock.now, _, turn = heapq.heappop(on_their_way)
            flow.leave(turn, "answered")
        assert 64 <= flow.limit <= 140

    run(work())


def test_a_limit_that_nobody_needs_does_not_grow() -> None:
    async def work() -> None:
        clock = Clock()
        flow = Flow(256, clock)
        for _ in range(100):
            turn = await flow.enter()
            clock.now += 1
            flow.leave(turn, "answered")
        assert flow.limit == BEGIN

    run(work())


def test_retry_after_shuts_the_door_and_opens_it_again() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        flow = Flow(8, loop.time)
        flow.close_for(0.2)
        begun = loop.time()
        turns = await asyncio.gather(*(flow.enter() for _ in range(3)))
        assert loop.time() - begun >= 0.19
        for turn in turns:
            flow.leave(turn, "answered")
        assert flow.under_way == 0

    run(work())


def test_those_who_wait_come_in_order_and_a_further_attempt_comes_first() -> None:
    async def work() -> None:
        flow, came = Flow(1, Clock()), []

        async def come(name: str, first: bool) -> None:
            turn = await flow.enter(first=first)
            came.append(name)
            flow.leave(turn, "answered")

        held = await flow.enter()
        tasks = [asyncio.create_task(come(n, n == "again")) for n in ("one", "two", "again")]
        await asyncio.sleep(0)
        flow.leave(held, "answered")
        await asyncio.gather(*tasks)
        assert came == ["again", "one", "two"]

    run(work())


def test_no_turn_is_lost_by_those_who_give_up() -> None:
    async def work() -> None:
        flow = Flow(1, Clock())
        held = await flow.enter()
        gone = [asyncio.create_task(flow.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        gone[0].cancel()
        await asyncio.sleep(0)
        flow.leave(held, "answered")  # gone[1] has its turn now, and is cancelled before it can take it
        gone[1].cancel()
        await asyncio.gather(*gone[:2], return_exceptions=True)
        flow.leave(await asyncio.wait_for(gone[2], 1), "answered")
        assert (flow.under_way, flow.wanted) == (0, 1)

    run(work())


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.lists(st.sampled_from(["answered", "overloaded", "other", "cancel"]), max_size=120))
def test_the_limit_holds_whatever_happens(ceiling: int, ends: list[str]) -> None:
    async def work() -> None:
        clock = Clock()
        flow, inside, most = Flow(ceiling, clock), 0, 0

        async def one(end: str) -> None:
            nonlocal inside, most
            turn = await flow.enter()
            inside += 1
            most = max(most, inside)
            try:
                await asyncio.sleep(0)
                clock.now += 0.1
            finally:
                inside -= 1
                flow.leave(turn, "other" if end == "cancel" else end)  # type: ignore[arg-type]

        tasks = [asyncio.create_task(one(end)) for end in ends]
        for task, end in zip(tasks, ends, strict=True):
            if end == "cancel":
                await asyncio.sleep(0)
                task.cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
        assert flow.under_way == 0, "a turn was lost"
        assert most <= ceiling
        assert 1 <= flow.limit <= ceiling

    run(work())


def test_a_ceiling_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Flow(0, Clock())
