"""Money: a limit that no request is sent beyond, and what every attempt is charged."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from anthrolab.models.budget import Budget
from anthrolab.models.client import ModelError, Reply, Request
from anthrolab.models.endpoint import Endpoint
from anthrolab.models.scripted import Answer, Call, reply_body, serve
from anthrolab.models.spend import Meter, SpendError
from anthrolab.models.systems import Prices, System

PRICED = {
    "name": "dear", "endpoint": "http://localhost:1/v1", "model": "m", "server": "openai", "policy": "chat",
    "prices": {"input": 1000.0, "output": 2000.0},
}  # fmt: skip


def system(**more: Any) -> System:
    return System.model_validate({**PRICED, **more})


def answer(call: Call) -> Answer:
    body = reply_body(call, "好")
    body["usage"] = {"prompt_tokens": 10, "completion_tokens": 5}
    return Answer(body)


def asked(meter: Meter, count: int, handler: Callable[[Call], str | Answer] = answer, at_once: bool = False) -> tuple[list[Any], int]:
    """What so many requests gave, and how many the server got."""

    async def work(url: str) -> list[Any]:
        toll = meter.toll(system(), "tested")
        budget = Budget(attempts=2, seconds=5, attempt_seconds=0.3, first_wait=0.01)
        async with Endpoint(url, budget=budget) as client:
            asks = [
                client.ask(Request("m", messages=[{"role": "user", "content": str(i)}], params={"max_tokens": 5}, toll=toll))
                for i in range(count)
            ]
            if at_once:
                return await asyncio.gather(*asks, return_exceptions=True)
            return [await one for one in asks]

    with serve(handler) as served:
        return asyncio.run(work(served.url)), len(served.calls)


def test_what_is_spent_is_what_the_server_counted() -> None:
    meter = Meter()
    asked(meter, 3)
    toll = meter.tolls["dear", "tested"]
    assert meter.spent == pytest.approx(3 * (10 * 1000 + 5 * 2000) / 1e6) == toll.cost
    assert (toll.usage.calls, toll.usage.prompt_tokens, meter.reserved) == (3, 30, 0.0)


def test_no_request_is_sent_beyond_the_limit_also_when_many_are_under_way() -> None:
    # A body has some 80 bytes: a request costs 0.02 USD and may cost up to about 0.09.
    meter = Meter(limit=0.25)
    got, calls = asked(meter, 30, at_once=True)
    refused = [g for g in got if isinstance(g, ModelError)]
    assert {g.fault for g in refused} == {"over_budget"}
    assert calls == 30 - len(refused) and 7 <= calls <= 12, "what is under way is waited for and not counted at its highest price"
    assert meter.spent == pytest.approx(0.02 * calls) and meter.spent <= 0.25
    assert "0.25" in str(refused[0])


def test_what_was_spent_before_counts() -> None:
    with pytest.raises(ModelError) as caught:
        asked(Meter(limit=0.25, spent=0.24), 1)
    assert caught.value.fault == "over_budget"


def test_an_attempt_that_may_have_been_charged_counts_at_its_highest_price() -> None:
    meter = Meter(limit=10.0)
    got, _ = asked(meter, 1, lambda call: Answer(hang=True) if call.number == 1 else answer(call))
    assert got[0].failed == ("timeout",)
    assert meter.spent > 0.02 + 0.05 and meter.tolls["dear", "tested"].unsure > 0.05


def test_a_refused_attempt_costs_nothing() -> None:
    meter = Meter(limit=10.0)
    asked(meter, 1, lambda call: Answer({"error": "busy"}, status=429) if call.number == 1 else answer(call))
    assert meter.spent == pytest.approx(0.02)


def test_a_limit_needs_prices_and_a_length_cap() -> None:
    with pytest.raises(SpendError, match="dear has no prices"):
        Meter(limit=1.0).toll(system(prices=None), "tested")
    toll = Meter(limit=1.0).toll(system(), "tested")
    with pytest.raises(SpendError, match="max_tokens"):
        asyncio.run(toll.reserve({"model": "m", "messages": []}))


def test_a_closed_meter_buys_nothing_more() -> None:
    meter = Meter()
    meter.close()
    with pytest.raises(ModelError) as caught:
        asked(meter, 1)
    assert caught.value.fault == "no_reply"


def test_costs_are_by_side_and_system() -> None:
    meter = Meter()
    one, two = meter.toll(system(), "tested"), meter.toll(system(), "partner")
    assert one is not two and one is meter.toll(system(), "tested")
    assert Prices(input=1.0, output=2.0).cost(one.usage) == 0.0


def test_a_reply_that_was_cut_is_drawn_once_more_and_both_are_paid() -> None:
    meter = Meter()

    def cut_first(call: Call) -> Answer:
        body = reply_body(call, "我觉", finish_reason="length" if call.number == 1 else "stop")
        body["usage"] = {"prompt_tokens": 10, "completion_tokens": 5}
        return Answer(body)

    (reply,), calls = asked(meter, 1, cut_first)
    assert isinstance(reply, Reply) and not reply.truncated
    assert (calls, reply.failed, reply.redrawn) == (2, ("length",), (10, 5))
    assert meter.spent == pytest.approx(0.04)
