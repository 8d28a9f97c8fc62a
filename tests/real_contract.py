"""What must hold between a policy and a real server, whichever: asks that are put to both, and checks of the calls."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema

from anthrolab.cards.skill import SKILLS
from anthrolab.models.client import ModelClient, Reply, Request
from anthrolab.models.systems import System
from anthrolab.runtime.policies import Player
from anthrolab.runtime.policy import Answer
from anthrolab.runtime.schedule import Asked, Sent
from anthrolab.runtime.seat import seats
from tests.cards_for_tests import make_persona, make_scenario


@dataclass
class Observed:
    """A client that lets requests through and keeps them with their replies."""

    client: ModelClient
    seen: list[tuple[Request, Reply]] = field(default_factory=list)

    @property
    def identity(self) -> str:
        return self.client.identity

    async def ask(self, request: Request) -> Reply:
        reply = await self.client.ask(request)
        self.seen.append((request, reply))
        return reply


SAID = ("周末有空没", "有啊 咋了", "打球不", "在哪打")


def asks() -> list[Asked]:
    """Speaker a's asks in a chat that grows by one message, from the first message on."""
    messages = tuple(Sent("b" if i % 2 == 0 else "a", text, 25 * i) for i, text in enumerate(SAID))
    return [Asked("a", m.at_s, messages[: i + 1], None) for i, m in enumerate(messages)]


async def answer_in_turn(
    system: System, client: ModelClient, name: str = "林晓雯"
) -> tuple[list[Answer], list[tuple[Request, Reply]]]:
    """What one speaker of that name, played by a system, makes of those asks in turn; and every call behind it."""
    observed = Observed(client)
    seat = seats(make_persona(name=name), make_persona("p91", "周子航"), make_scenario())["a"]
    policy = Player(system, 600, 12).sit(seat, observed, "0/b90-a/0")
    return [await policy.decide(ask) for ask in asks()], observed.seen


def check_contract(answers: list[Answer], seen: list[tuple[Request, Reply]]) -> None:
    """The server kept to the schema that it was sent, and every reply that is whole is a decision at once.

    Not whole: cut off at the length cap, or with a date that the schema allows and the calendar does not.
    """
    assert len(answers) <= len(seen) <= 2 * len(answers), "one re-ask at most"
    whole = 0
    for request, reply in seen:
        form = request.params["response_format"]
        assert form["type"] == "json_schema", "the ladder stepped down"
        if not reply.truncated:
            decision = json.loads(reply.text)
            jsonschema.validate(decision, form["json_schema"]["schema"])
            whole += is_date(decision["response"]["timestamp"])
    assert 0 < sum(answer.plan is not None for answer in answers) == whole, answers


def is_date(stamp: str) -> bool:
    """True if there is such a day."""
    try:
        datetime.fromisoformat(stamp)
    except ValueError:
        return False
    return True


def check_reuse(seen: list[tuple[Request, Reply]], tokens: int) -> None:
    """The system text stayed the same, and its `tokens` were new to the server at the first call and at no other."""
    assert len({system_text(request) for request, _ in seen}) == 1
    cached = [reply.cached_tokens or 0 for _, reply in seen]
    assert cached[0] < tokens, "the server knew it from somewhere else, so this shows nothing"
    assert min(cached[1:]) >= tokens, cached


def system_text(request: Request) -> str:
    """z: the system message of a chat request."""
    assert request.messages is not None
    (text,) = [m["content"] for m in request.messages if m["role"] == "system"]
    return text


def write_systems(path: Path, *entries: dict[str, Any]) -> Path:
    """A systems file; JSON is YAML."""
    path.write_text(json.dumps({"systems": list(entries)}), encoding="utf-8")
    return path


def logged_calls(run: Path) -> list[dict[str, Any]]:
    """Every call in the logs of a run."""
    return [json.loads(line) for p in sorted((run / "calls").glob("*.jsonl")) for line in p.read_text("utf-8").splitlines()]


def small_skills(folder: Path) -> Path:
    """Skills of one line each: a whole run on two cores should not spend its minutes on reading ours."""
    for name in SKILLS:
        (folder / name).mkdir(parents=True)
        (folder / name / "v1.md").write_text("# 短一点\n", encoding="utf-8")
    return folder
