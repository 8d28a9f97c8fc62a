"""The transcript policy: a base (pretrained) model continues a plain chat transcript.

The next time stamp that it writes is the delay; a line begun for the partner means silence. Base models chat
more like people than instruct models of their size ("persona mixture" paper, section 4).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from anthrolab.models.client import ModelClient, Request
from anthrolab.runtime.chat import ask_salt, seed_of
from anthrolab.runtime.line_grammar import LineRule
from anthrolab.runtime.policy import Answer
from anthrolab.runtime.prompt import transcript_prompt
from anthrolab.runtime.schedule import SILENCE, Asked, Plan
from anthrolab.runtime.seat import Seat

Constraint = Literal["gbnf", "regex", "none"]
"""How the server holds a line to its form: llama.cpp's grammar, vLLM's regular expression, or not at all."""


@dataclass(frozen=True)
class TranscriptPolicy:
    """One speaker, played by a base model. A line that cannot be read is asked for once more."""

    seat: Seat
    client: ModelClient
    model: str
    params: Mapping[str, Any]
    salt: str
    constraint: Constraint
    max_delay_s: int = 600
    window: int = 12
    seeded: bool = False

    async def decide(self, ask: Asked) -> Answer:
        """The decision, or the error of the second unreadable line."""
        rule = LineRule(self.seat.name, self.seat.partner_name, self.seat.clock(ask.now_s), self.max_delay_s)
        prompt = transcript_prompt(self.seat, ask, self.window)
        error, call = "", None
        for attempt in range(2):
            salt = ask_salt(self.salt, ask, attempt)
            params = {**self.params, "stop": ["\n"], **_constraint_params(self.constraint, rule)}
            if self.seeded:
                params["seed"] = seed_of(salt)
            reply = await self.client.ask(Request(self.model, prompt=prompt, params=params, salt=salt))
            call = reply.call
            if reply.truncated:
                error = "the line was cut off at the length cap"
                continue
            try:
                delay, content = rule.parse(reply.text)
            except ValueError as e:
                error = str(e)
                continue
            plan = SILENCE if not content else Plan(content, delay)
            return Answer(plan, None, "asked twice" if attempt else None, call)
        return Answer(None, error, None, call)


def _constraint_params(constraint: Constraint, rule: LineRule) -> dict[str, Any]:
    if constraint == "gbnf":
        return {"grammar": rule.gbnf()}
    if constraint == "regex":
        return {"structured_outputs": {"regex": rule.regex()}}
    return {}
