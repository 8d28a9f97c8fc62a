"""One re-ask at most, within one budget: what two asks may cost together, on the wire."""

import asyncio
import json
import time

import pytest

from anthrolab.models.budget import Budget
from anthrolab.models.client import ModelError, Reply, Request, Spent
from anthrolab.models.endpoint import Endpoint
from anthrolab.models.reask import Read, ask_for
from anthrolab.models.scripted import Answer, Call, Served, serve
from anthrolab.models.systems import System
from anthrolab.runtime.policies import Player
from anthrolab.runtime.policy import Answer as PolicyAnswer
from anthrolab.runtime.schedule import Asked, Sent
from tests.cards_for_tests import make_seats

SEAT = make_seats()["a"]
ASK = Asked("a", 12, (Sent("b", "周末有空没", 0), Sent("a", "有啊", 12)), None)
GOOD = json.dumps({"role": "林晓雯", "response": {"content": "咋了", "timestamp": "2026-03-06T20:31:20", "end": False}})


def decide(served: Served, budget: Budget) -> PolicyAnswer:
    system = System.model_validate({"name": "toy", "endpoint": served.url, "model": "scripted", "server": "openai", "policy": "chat"})

    async def once() -> PolicyAnswer:
        async with Endpoint(served.url, budget=budget) as client:
            return await Player(system, 600, 12).sit(SEAT, client, "0").decide(ASK)

    return asyncio.run(once())


QUICK = Budget(attempts=4, seconds=30, attempt_seconds=5, first_wait=0.01, longest_wait=0.01)


@pytest.mark.parametrize(
    ("plan", "asked", "recovered"),
    [
        ([GOOD], 1, None),
        (["好", GOOD], 2, "asked twice"),
        ([500, "好", 500, GOOD], 4, "asked twice"),
        ([500, 500, 500, GOOD], 4, None),
    ],
)
def test_the_two_asks_share_the_attempts(plan: list[int | str], asked: int, recovered: str | None) -> None:
    with serve(lambda call: Answer(status=s) if isinstance(s := plan[call.number - 1], int) else s) as served:
        answer = decide(served, QUICK)
        assert len(served.calls) == asked
    assert answer.plan is not None and answer.recovered == recovered


def test_a_used_up_budget_still_gives_the_re_ask_its_one_attempt() -> None:
    plan: list[int | str] = [500, 500, 500, "好", 500, GOOD]
    with serve(lambda call: Answer(status=s) if isinstance(s := plan[call.number - 1], int) else s) as served:
        with pytest.raises(ModelError, match="500") as failed:
            decide(served, QUICK)
        assert len(served.calls) == 5, "four attempts of the ask, one of the re-ask, and no more"
    assert failed.value.fault == "server_error"


def test_the_second_ask_has_only_the_seconds_that_are_left() -> None:
    def slow(call: Call) -> Answer | str:
        return "好" if call.number == 1 else Answer(hang=True)

    with serve(slow) as served:
        begun = time.monotonic()
        with pytest.raises(ModelError, match="gave no answer within") as failed:
            decide(served, Budget(attempts=1, seconds=1.0, attempt_seconds=60))
        assert time.monotonic() - begun < 30, "the second ask would hang for 60 s on a budget of its own"
        assert len(served.calls) == 2
    assert failed.value.fault == "timeout"


def test_no_time_left_is_a_typed_failure_and_no_call() -> None:
    async def ask(url: str) -> None:
        async with Endpoint(url, budget=Budget(seconds=5)) as client:
            await client.ask(Request("scripted", prompt="x", spent=Spent(attempts=1, seconds=5.0)))

    with serve(lambda _call: "好") as served:
        with pytest.raises(ModelError, match="used up by the ask before it"):
            asyncio.run(ask(served.url))
        assert served.calls == []


def test_what_was_spent_is_no_part_of_a_requests_content() -> None:
    assert Request("m", prompt="x", spent=Spent(3, 9.0)).key("i") == Request("m", prompt="x").key("i")
    assert Request("m", prompt="x", spent=Spent(3, 9.0)) == Request("m", prompt="x")


def test_the_model_is_told_what_was_wrong() -> None:
    plan = ["{}", GOOD]
    with serve(lambda call: plan[call.number - 1]) as served:
        decide(served, QUICK)
        first, second = (call.body["messages"] for call in served.calls)
    assert first[0] == second[0], "z stays as it is"
    assert second[1]["content"].startswith(first[1]["content"])
    assert "你刚才交的用不了，原因是：role is missing。" in second[1]["content"]


def test_a_reading_has_a_value_or_an_error() -> None:
    with pytest.raises(ValueError, match="either a value or an error"):
        Read(None)
    with pytest.raises(ValueError, match="either a value or an error"):
        Read(1, "x")


def test_labels_add_up() -> None:
    async def run() -> Read[str]:
        replies = iter([Reply("a"), Reply("b")])

        async def ask(_request: Request) -> Reply:
            return next(replies)

        def read(reply: Reply) -> Read[str]:
            return Read(None, "bad") if reply.text == "a" else Read("b", None, "bent")

        outcome, _ = await ask_for(ask, lambda n, e: Request("m", prompt=f"{n}{e}"), read)
        return outcome

    assert asyncio.run(run()).recovered == "bent; asked twice"
