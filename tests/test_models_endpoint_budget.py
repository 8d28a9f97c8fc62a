"""What an endpoint does over several requests: its flow, one budget for redraws and waits, stops, proxies."""

import asyncio
import time
from typing import Any

import pytest

from anthrolab.models.budget import Budget
from anthrolab.models.client import ModelError, Reply, Request, Spent
from anthrolab.models.endpoint import Endpoint
from anthrolab.models.flow import BEGIN
from anthrolab.models.proxies import proxy_for
from anthrolab.models.scripted import Answer, Call, reply_body, serve
from anthrolab.models.spend import Meter
from tests.test_models_spend import system

QUICK = Budget(attempts=4, seconds=20, attempt_seconds=5, first_wait=0.01)


def chat(text: str = "在吗", **params: Any) -> Request:
    return Request("m", messages=[{"role": "user", "content": text}], params=params)


def cut(call: Call) -> Answer:
    return Answer(reply_body(call, "我觉", finish_reason="length"))


def ask(url: str, *requests: Request, budget: Budget = QUICK, at_once: bool = False) -> tuple[list[Any], Endpoint]:
    async def work() -> tuple[list[Any], Endpoint]:
        async with Endpoint(url, budget=budget, concurrency=64) as client:
            if at_once:
                return await asyncio.gather(*map(client.ask, requests), return_exceptions=True), client
            return [await client.ask(request) for request in requests], client

    return asyncio.run(work())


@pytest.mark.parametrize("bad", [Answer({"error": "busy"}, status=503), Answer({"error": "busy"}, status=429)])
def test_a_server_that_is_busy_gets_fewer_requests_at_once(bad: Answer) -> None:
    with serve(lambda call: bad if call.number <= 30 else "好") as server:
        _, client = ask(server.url, *(chat(str(i)) for i in range(30)), at_once=True)
    assert client.flow.limit < BEGIN
    assert (client.flow.under_way, client.flow.pausing) == (0, 0)


def test_other_failures_change_nothing() -> None:
    with serve(lambda call: Answer({"error": "bug"}, status=500) if call.number <= 30 else "好") as server:
        _, client = ask(server.url, *(chat(str(i)) for i in range(30)), at_once=True)
    assert client.flow.limit >= BEGIN


def test_retry_after_holds_for_all_requests_to_the_server() -> None:
    came: list[float] = []

    def handler(call: Call) -> str | Answer:
        came.append(time.monotonic())
        return Answer({"error": "slow down"}, status=429, headers={"Retry-After": "0.5"}) if call.number == 1 else "好"

    async def work(url: str) -> None:
        async with Endpoint(url, budget=QUICK) as client:
            first = asyncio.create_task(client.ask(chat("一")))
            while not came:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            await asyncio.gather(first, client.ask(chat("二")), client.ask(chat("三")))

    with serve(handler) as server:
        asyncio.run(work(server.url))
    assert len(came) == 4 and min(came[1:]) - came[0] >= 0.45


def test_a_request_with_a_seed_is_not_drawn_again() -> None:
    with serve(cut) as server:
        ((reply,), _) = ask(server.url, chat(seed=7))
    assert len(server.calls) == 1 and reply.truncated and reply.failed == ()


def test_a_model_that_is_always_cut_is_drawn_again_only_once_for_all() -> None:
    with serve(cut) as server:
        (replies, _) = ask(server.url, chat("一"), chat("二"), chat("三"))
    assert len(server.calls) == 4, "two for the first, one for each later one"
    assert all(isinstance(r, Reply) and r.truncated for r in replies)


def test_drawing_again_shares_the_one_budget() -> None:
    with serve(lambda call: Answer({"error": "bug"}, status=500) if call.number == 1 else cut(call)) as server:
        ((reply,), _) = ask(server.url, chat(), budget=Budget(attempts=2, seconds=20, attempt_seconds=5, first_wait=0.01))
    assert len(server.calls) == 2 and reply.truncated and reply.failed == ("server_error",)


def test_a_second_draw_that_fails_leaves_the_first_reply() -> None:
    with serve(lambda call: cut(call) if call.number == 1 else Answer({"error": "bug"}, status=500)) as server:
        ((reply,), _) = ask(server.url, chat())
    assert reply.text == "我觉" and reply.failed[0] == "length" and len(server.calls) == 4


def test_waits_between_attempts_are_part_of_the_budget() -> None:
    budget = Budget(attempts=100, seconds=0.6, attempt_seconds=5, first_wait=0.2, longest_wait=0.2)
    with serve(lambda call: Answer({"error": "bug"}, status=500)) as server, pytest.raises(ModelError):
        ask(server.url, chat(), budget=budget)
    assert len(server.calls) <= 4


def test_a_reply_without_usage_is_paid_at_its_highest_price() -> None:
    meter = Meter(limit=10.0)

    def silent(call: Call) -> Answer:
        body = reply_body(call, "好")
        del body["usage"]
        return Answer(body)

    with serve(silent) as server:
        request = Request("m", messages=[{"role": "user", "content": "一"}], params={"max_tokens": 5}, toll=meter.toll(system(), "tested"))
        ask(server.url, request)
    assert meter.spent > 0.05 and meter.reserved == 0.0 and meter.out == 0


def test_a_stop_ends_the_wait_before_a_further_attempt() -> None:
    meter = Meter()
    request = Request("m", messages=[{"role": "user", "content": "一"}], toll=meter.toll(system(), "tested"))

    async def work(url: str) -> float:
        budget = Budget(attempts=4, seconds=60, attempt_seconds=5, first_wait=20, longest_wait=20)
        async with Endpoint(url, budget=budget) as client:
            task = asyncio.create_task(client.ask(request))
            await asyncio.sleep(0.3)
            begun = time.monotonic()
            meter.close()
            with pytest.raises(ModelError):
                await asyncio.wait_for(task, 10)
            return time.monotonic() - begun

    with serve(lambda call: Answer({"error": "bug"}, status=500)) as server:
        assert asyncio.run(work(server.url)) < 5
    assert len(server.calls) == 1


def test_time_in_the_queue_is_no_part_of_the_budget() -> None:
    async def work(url: str) -> list[Reply]:
        async with Endpoint(url, budget=Budget(attempts=1, seconds=0.8, attempt_seconds=0.8), concurrency=1) as client:
            spents = [Spent() for _ in range(4)]
            asks = [client.ask(Request("m", messages=[{"role": "user", "content": str(i)}], spent=s)) for i, s in enumerate(spents)]
            replies = await asyncio.gather(*asks)
            assert all(0.2 < s.seconds < 0.8 for s in spents)
            return replies

    with serve(lambda call: Answer(reply_body(call, "好"), delay=0.3)) as server:
        assert len(asyncio.run(work(server.url))) == 4


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({"https_proxy": "http://proxy:3128"}, "https://api.example/v1", "http://proxy:3128"),
        ({"https_proxy": "http://proxy:3128"}, "http://api.example/v1", None),
        ({"all_proxy": "http://proxy:3128"}, "http://api.example/v1", "http://proxy:3128"),
        ({"all_proxy": "socks5://proxy:1080"}, "http://api.example/v1", None),
        ({"https_proxy": "http://proxy:3128", "no_proxy": "api.example"}, "https://api.example/v1", None),
        ({}, "https://api.example/v1", None),
    ],
)
def test_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, proxy: str | None
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == proxy
