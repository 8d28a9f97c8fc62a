"""The chat policy: an instruct model decides in JSON (paper section 4.2, the two-message call)."""

from dataclasses import dataclass, field

from anthrolab.files import content_hash
from anthrolab.models.client import ModelClient, Reply, Request
from anthrolab.models.reask import Read, ask_for
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import System
from anthrolab.runtime.decision import decision_schema, parse_decision
from anthrolab.runtime.history import History
from anthrolab.runtime.policy import Answer
from anthrolab.runtime.prompt import chat_snapshot, chat_system
from anthrolab.runtime.schedule import Asked, Plan
from anthrolab.runtime.seat import Seat


@dataclass
class ChatPolicy:
    """One speaker, played by a chat model. A reply that breaks the contract is asked for once more."""

    seat: Seat
    client: ModelClient
    system: System
    salt: str
    history: History
    max_delay_s: int = 600
    ladder: Ladder = field(default_factory=Ladder)

    def __post_init__(self) -> None:
        self.z = chat_system(self.seat, self.max_delay_s)
        self.schema = decision_schema(self.seat.name)

    async def decide(self, ask: Asked) -> Answer:
        """The decision, or the error of the second broken reply."""
        recall = await self.history.recall(ask.messages)

        def make(number: int, error: str | None) -> Request:
            snapshot = chat_snapshot(self.seat, ask, recall, again=error)
            return self.system.request(
                messages=[{"role": "system", "content": self.z}, {"role": "user", "content": snapshot}],
                params=seed_params(self.system, self.salt, ask, number),
                salt=ask_salt(self.salt, ask, number),
            )

        async def send(request: Request) -> Reply:
            return (await self.ladder.ask(self.client, request, self.schema))[0]

        def read(reply: Reply) -> Read[Plan]:
            return parse_decision(reply, self.seat.name, self.seat.clock(ask.now_s), self.max_delay_s)

        outcome, reply = await ask_for(send, make, read)
        return Answer(outcome.value, outcome.error, outcome.recovered, reply.call)


def ask_salt(salt: str, ask: Asked, number: int) -> str:
    """Tells the calls of a dialogue apart: case and sample, speaker, event number, re-ask number."""
    return f"{salt}/{ask.speaker}{len(ask.messages)}/{number}"


def seed_params(system: System, salt: str, ask: Asked, number: int) -> dict[str, int]:
    """A sampling seed (31 bits) for llama.cpp, the same for both asks of an event.

    Common random numbers leave each speaker's distribution as it is, but two transcripts that are asked who
    writes next then mostly agree; with independent draws both fall silent at every fourth event.
    Other servers get no seed: hosted services ignore it and vLLM's CPU build dies of it.
    """
    if system.server != "llama.cpp":
        return {}
    return {"seed": int(content_hash(f"{salt}/{len(ask.messages)}/{number}")[:8], 16) & 0x7FFFFFFF}
