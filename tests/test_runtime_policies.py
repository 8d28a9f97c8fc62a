"""Chat and transcript policies on scripted models: re-asks, errors, the ladder, what goes over the wire."""

import asyncio
import json
from typing import Any

import pytest

from anthrolab.models.client import ModelError, Reply, Request
from anthrolab.models.scripted import ScriptedModel
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import System
from anthrolab.runtime.policies import Player
from anthrolab.runtime.policy import Answer
from anthrolab.runtime.schedule import Asked, Plan, Sent
from tests.cards_for_tests import make_seats

SEAT = make_seats()["a"]
ASK = Asked("a", 12, (Sent("b", "周末有空没", 0), Sent("a", "有啊", 12)), None)
GOOD = json.dumps({"role": "林晓雯", "response": {"content": "咋了", "timestamp": "2026-03-06T20:31:20", "end": False}})


def system(**changes: Any) -> System:
    base = {"name": "toy", "endpoint": "http://h/v1", "model": "m", "server": "openai", "policy": "chat"}
    return System.model_validate({**base, **changes})


def decide(answers: Any, **changes: Any) -> tuple[Answer, list[Request]]:
    model = ScriptedModel(answers)
    policy = Player(system(**changes), 600, 12).sit(SEAT, model, "0/b01-a/0")
    return asyncio.run(policy.decide(ASK)), model.requests


def test_a_good_reply_is_one_call() -> None:
    answer, requests = decide([GOOD])
    assert answer.plan == Plan("咋了", 8, False)
    assert answer.recovered is None
    assert len(requests) == 1
    messages = requests[0].messages
    assert messages is not None
    assert [m["role"] for m in messages] == ["system", "user"]
    assert requests[0].params["response_format"]["json_schema"]["schema"]["properties"]["role"]["enum"] == ["林晓雯"]
    assert "seed" not in requests[0].params


def test_a_broken_reply_is_asked_for_once_more_and_labelled() -> None:
    answer, requests = decide(["好的", GOOD])
    assert answer.plan == Plan("咋了", 8, False)
    assert answer.recovered == "asked twice"
    assert requests[0].key("x") != requests[1].key("x"), "the cache would give the broken reply again"


def test_two_broken_replies_are_an_error_and_no_third_call() -> None:
    answer, requests = decide(["好的", "{}", GOOD])
    assert answer.plan is None
    assert answer.error == "role is missing"
    assert len(requests) == 2


def test_a_reply_cut_at_the_cap_is_asked_for_again() -> None:
    answer, _ = decide([Reply(GOOD, finish_reason="length"), Reply(GOOD, finish_reason="stop")])
    assert answer.recovered == "asked twice"


def test_a_dead_model_is_nobodys_decision() -> None:
    with pytest.raises(ModelError):
        decide([ModelError("unreachable", "gone")])


def test_a_transcript_line_is_read_and_constrained_per_server() -> None:
    for server, field in (("llama.cpp", "grammar"), ("vllm", "structured_outputs")):
        answer, requests = decide(["31:40] 林晓雯: 咋了"], server=server, policy="transcript")
        assert answer.plan == Plan("咋了", 28)
        assert field in requests[0].params
        assert ("seed" in requests[0].params) == (server == "llama.cpp")
        assert requests[0].prompt is not None
        assert requests[0].prompt.endswith("[20:31:12] 林晓雯: 有啊\n[20:")


def test_a_line_for_the_partner_is_silence_and_noise_is_an_error() -> None:
    silent, _ = decide(["32:00] 周子航:"], server="vllm", policy="transcript")
    assert silent.plan is not None
    assert silent.plan.silent
    broken, requests = decide(["你好呀", "还是不行"], server="openai", policy="transcript")
    assert broken.error is not None
    assert "does not begin with a time" in broken.error
    assert len(requests) == 2


def test_both_speakers_of_an_event_draw_with_the_same_seed() -> None:
    seeds = []
    for speaker in ("a", "b"):
        model = ScriptedModel(["31:40] 林晓雯: 咋了" if speaker == "a" else "31:40] 周子航: 咋了"])
        seat = make_seats()[speaker]  # type: ignore[index]
        ask = Asked(speaker, 12, ASK.messages, None)  # type: ignore[arg-type]
        policy = Player(system(server="llama.cpp", policy="transcript"), 600, 12).sit(seat, model, "0/b01-a/0")
        asyncio.run(policy.decide(ask))
        seeds.append(model.requests[0].params["seed"])
    assert seeds[0] == seeds[1]


class Picky:
    """A server that takes only some kinds of response_format."""

    identity = "picky"

    def __init__(self, *taken: str) -> None:
        self.taken = taken
        self.seen: list[str] = []

    async def ask(self, request: Request) -> Reply:
        kind = request.params.get("response_format", {"type": "prompt"})["type"]
        self.seen.append(kind)
        if kind not in self.taken:
            raise ModelError("rejected", f"response_format {kind} is not supported")
        return Reply("{}")


@pytest.mark.parametrize(
    ("taken", "rung", "first_call"),
    [
        (("json_schema", "json_object", "prompt"), "json_schema", ["json_schema"]),
        (("json_object", "prompt"), "json_object", ["json_schema", "json_object"]),
        (("prompt",), "prompt", ["json_schema", "json_object", "prompt"]),
    ],
)
def test_the_ladder_remembers_where_it_stands(taken: tuple[str, ...], rung: str, first_call: list[str]) -> None:
    async def twice() -> list[str]:
        client, ladder = Picky(*taken), Ladder()
        request = Request("m", messages=[{"role": "user", "content": "x"}])
        assert (await ladder.ask(client, request, {}))[1] == rung
        assert client.seen == first_call
        assert (await ladder.ask(client, request, {}))[1] == rung
        return client.seen

    assert asyncio.run(twice()) == [*first_call, rung]


def test_a_refusal_for_another_reason_leaves_the_ladder_where_it_was() -> None:
    async def refused() -> Ladder:
        ladder = Ladder()
        with pytest.raises(ModelError, match="not supported"):
            await ladder.ask(Picky(), Request("m", prompt="x"), {})
        return ladder

    assert asyncio.run(refused()).rung == "json_schema"
