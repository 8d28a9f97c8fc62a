"""The transcript policy: a base (pretrained) model continues a plain chat transcript.

The next time stamp that it writes is the delay; a line begun for the partner means silence. Base models chat
more like people than instruct models of their size ("persona mixture" paper, section 4).
"""

from dataclasses import dataclass
from typing import Any

from anthrolab.models.client import ModelClient, Reply, Request
from anthrolab.models.reask import Read, ask_for
from anthrolab.models.systems import System
from anthrolab.runtime.chat import ask_salt, seed_params
from anthrolab.runtime.history import History
from anthrolab.runtime.line_grammar import LineRule
from anthrolab.runtime.policy import Answer
from anthrolab.runtime.prompt import transcript_prompt
from anthrolab.runtime.schedule import SILENCE, Asked, Plan
from anthrolab.runtime.seat import Seat


@dataclass(frozen=True)
class TranscriptPolicy:
    """One speaker, played by a base model. A line that cannot be read is asked for once more."""

    seat: Seat
    client: ModelClient
    system: System
    salt: str
    history: History
    max_delay_s: int = 600

    async def decide(self, ask: Asked) -> Answer:
        """The decision, or the error of the second unreadable line."""
        recall = await self.history.recall(ask.messages)
        rule = LineRule(self.seat.name, self.seat.partner_name, self.seat.clock(ask.now_s), self.max_delay_s)
        prompt = transcript_prompt(self.seat, ask, recall, rule.clock())

        def make(number: int, error: str | None) -> Request:
            # A transcript has no place to say what was wrong with the last try; another seed or draw must do.
            seed = seed_params(self.system, self.salt, ask, number)
            params = {"stop": ["\n"], **_constraint(self.system, rule), **seed}
            return self.system.request(prompt=prompt, params=params, salt=ask_salt(self.salt, ask, number))

        outcome, reply = await ask_for(self.client.ask, make, lambda reply: read_line(reply, rule))
        return Answer(outcome.value, outcome.error, outcome.recovered, reply.call)


def read_line(reply: Reply, rule: LineRule) -> Read[Plan]:
    """The plan in what a model wrote after `rule.clock()`."""
    if reply.truncated:
        return Read(None, "the line was cut off at the length cap")
    try:
        delay, content = rule.parse(rule.clock() + reply.text)
    except ValueError as e:
        return Read(None, str(e))
    plan = SILENCE if not content else Plan(content, delay)
    clipped = not plan.silent and not 0 <= delay <= rule.max_delay_s
    return Read(plan, None, f"time {delay} s from now clipped" if clipped else None)


def _constraint(system: System, rule: LineRule) -> dict[str, Any]:
    """How the server holds a line to its form: llama.cpp's grammar, vLLM's regular expression, or not at all."""
    if system.server == "llama.cpp":
        return {"grammar": rule.gbnf()}
    if system.server == "vllm":
        return {"structured_outputs": {"regex": rule.regex()}}
    return {}
