"""The chat policy: an instruct model decides in JSON (paper section 4.2, the two-message call)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anthrolab.files import content_hash
from anthrolab.models.client import ModelClient, Request
from anthrolab.models.structured import Ladder
from anthrolab.runtime.decision import Parsed, decision_schema, parse_decision
from anthrolab.runtime.policy import Answer
from anthrolab.runtime.prompt import chat_snapshot, chat_system
from anthrolab.runtime.schedule import Asked
from anthrolab.runtime.seat import Seat


@dataclass(frozen=True)
class ChatPolicy:
    """One speaker, played by a chat model. A reply that breaks the contract is asked for once more."""

    seat: Seat
    client: ModelClient
    model: str
    params: Mapping[str, Any]
    salt: str
    max_delay_s: int = 600
    window: int = 12
    system_suffix: str = ""
    seeded: bool = False
    ladder: Ladder = field(default_factory=Ladder)

    async def decide(self, ask: Asked) -> Answer:
        """The decision, or the error of the second broken reply."""
        messages = [
            {"role": "system", "content": chat_system(self.seat)},
            {"role": "user", "content": chat_snapshot(self.seat, ask, self.window) + self.system_suffix},
        ]
        schema = decision_schema(self.seat.name)
        parsed, reply = Parsed(None, "never asked"), None
        for attempt in range(2):
            salt = ask_salt(self.salt, ask, attempt)
            params = {**self.params, "seed": seed_of(salt)} if self.seeded else self.params
            request = Request(self.model, messages=messages, params=params, salt=salt)
            reply, _rung = await self.ladder.ask(self.client, request, schema)
            parsed = parse_decision(
                reply.text, self.seat.name, self.seat.clock(ask.now_s), self.max_delay_s, reply.truncated
            )
            if parsed.plan is not None:
                recovered = parsed.recovered
                if attempt:
                    recovered = f"{recovered}; asked twice" if recovered else "asked twice"
                return Answer(parsed.plan, None, recovered, reply.call)
        return Answer(None, parsed.error, None, reply.call if reply else None)


def ask_salt(salt: str, ask: Asked, attempt: int) -> str:
    """Tells the calls of a dialogue apart: case and sample, speaker, event number, re-ask number."""
    return f"{salt}/{ask.speaker}{len(ask.messages)}/{attempt}"


def seed_of(salt: str) -> int:
    """A sampling seed that depends on the salt only (31 bits, positive)."""
    return int(content_hash(salt)[:8], 16) & 0x7FFFFFFF
