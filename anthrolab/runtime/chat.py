"""The chat policy: an instruct model decides in JSON (paper section 4.2, the two-message call)."""

from dataclasses import dataclass, field

from anthrolab.files import content_hash
from anthrolab.models.client import ModelClient
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import System
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
    system: System
    salt: str
    max_delay_s: int = 600
    window: int = 12
    ladder: Ladder = field(default_factory=Ladder)

    async def decide(self, ask: Asked) -> Answer:
        """The decision, or the error of the second broken reply."""
        messages = [
            {"role": "system", "content": chat_system(self.seat)},
            {"role": "user", "content": chat_snapshot(self.seat, ask, self.window)},
        ]
        schema = decision_schema(self.seat.name)
        parsed, reply = Parsed(None, "never asked"), None
        for attempt in range(2):
            salt = ask_salt(self.salt, ask, attempt)
            request = self.system.request(messages=messages, params=seed_params(self.system, self.salt, ask, attempt), salt=salt)
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


def seed_params(system: System, salt: str, ask: Asked, attempt: int) -> dict[str, int]:
    """A sampling seed (31 bits) for llama.cpp, the same for both asks of an event.

    Common random numbers leave each speaker's distribution as it is, but two transcripts that are asked who
    writes next then mostly agree; with independent draws both fall silent at every fourth event.
    Other servers get no seed: hosted services ignore it and vLLM's CPU build dies of it.
    """
    if system.server != "llama.cpp":
        return {}
    return {"seed": int(content_hash(f"{salt}/{len(ask.messages)}/{attempt}")[:8], 16) & 0x7FFFFFFF}
