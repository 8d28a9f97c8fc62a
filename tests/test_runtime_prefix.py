"""Prefix reuse, as the embedded server itself reports it: z is computed once in a session, not at every ask."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from anthrolab.models.bundled import GEMMA
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.client import Reply, Request
from anthrolab.models.endpoint import Endpoint
from anthrolab.models.local import EmbeddedServer
from anthrolab.models.systems import System
from anthrolab.runtime.chat import ChatPolicy
from anthrolab.runtime.policies import Player
from anthrolab.runtime.schedule import Asked, Sent
from tests.cards_for_tests import make_seats

EVENTS = 3
MARGIN = 4
"""Tokens at the seam between z and what follows that may be cut differently."""


class Watched:
    """A client that keeps what went through it."""

    def __init__(self, client: Endpoint) -> None:
        self.client, self.identity = client, client.identity
        self.seen: list[tuple[Request, Reply]] = []

    async def ask(self, request: Request) -> Reply:
        reply = await self.client.ask(request)
        self.seen.append((request, reply))
        return reply


async def asks(policy: str, log: Path, disturb: bool) -> tuple[list[Reply], int]:
    """The first replies of the events of one speaker, and the tokens of z; `disturb` changes z at every ask."""
    system = System.model_validate(
        {"name": "g", "endpoint": "embedded", "model": GEMMA, "server": "llama.cpp", "policy": policy, "max_tokens": 32}
    )
    async with EmbeddedServer(GEMMA, slots=1) as server, server.client() as client:
        watched = Watched(client)
        player = Player(system, 600, 12).sit(make_seats()["a"], Recorded(watched, CallLog(log)), "0")
        history: tuple[Sent, ...] = (Sent("b", "周末有空没", 0),)
        replies = []
        for i in range(EVENTS):
            if disturb and isinstance(player, ChatPolicy):
                player.z = f"现在是第{i}次。" + player.z
            before = len(watched.seen)
            await player.decide(Asked("a", 20 * i, history, None))
            replies.append(watched.seen[before][1])
            history += (Sent("b" if i % 2 else "a", f"第{i}句说的是打球", 20 * i + 5),)
        first = watched.seen[0][0]
        if first.prompt is not None:
            z = replace(first, prompt=first.prompt.split("[20:31:00]")[0])
        else:
            z = replace(first, messages=[(first.messages or ())[0], {"role": "user", "content": ""}])
        bare = {k: v for k, v in first.params.items() if k not in ("grammar", "response_format")}
        counted = await client.ask(replace(z, params={**bare, "max_tokens": 1}))
        return replies, counted.prompt_tokens or 0


@pytest.mark.parametrize("policy", ["transcript", "chat"])
def test_every_ask_but_the_first_finds_z_in_the_cache(tmp_path: Path, policy: str) -> None:
    replies, z = asyncio.run(asks(policy, tmp_path / "calls.jsonl", disturb=False))
    assert z > 300
    assert replies[0].cached_tokens is not None and replies[0].cached_tokens < z
    for reply in replies[1:]:
        assert reply.cached_tokens is not None and reply.prompt_tokens is not None
        assert z - MARGIN - 12 <= reply.cached_tokens < reply.prompt_tokens


def test_a_changing_z_would_be_seen(tmp_path: Path) -> None:
    replies, z = asyncio.run(asks("chat", tmp_path / "calls.jsonl", disturb=True))
    assert all((reply.cached_tokens or 0) < z // 2 for reply in replies[1:])


def test_the_server_itself_holds_a_decision_to_its_form(tmp_path: Path) -> None:
    """A base model that was never taught JSON: what it writes has the form of a decision because the schema says so,
    down to the time stamp (llama.cpp takes no backslash classes in a pattern and would let anything pass)."""
    system = System.model_validate(
        {"name": "g", "endpoint": "embedded", "model": GEMMA, "server": "llama.cpp", "policy": "chat", "max_tokens": 120}
    )

    async def written() -> list[Reply]:
        async with EmbeddedServer(GEMMA, slots=1) as server, server.client() as client:
            watched = Watched(client)
            player = Player(system, 600, 12).sit(make_seats()["a"], watched, "0")
            for i in range(2):
                await player.decide(Asked("a", 20 * i, (Sent("b", "周末有空没", 0),), None))
            return [reply for _, reply in watched.seen]

    whole = [json.loads(reply.text) for reply in asyncio.run(written()) if not reply.truncated]
    assert whole
    for value in whole:
        assert value["role"] == "林晓雯" and set(value["response"]) == {"content", "timestamp", "end"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", value["response"]["timestamp"])
