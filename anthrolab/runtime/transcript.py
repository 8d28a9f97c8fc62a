"""The transcript policy: a base (pretrained) model continues a plain chat transcript.

The next time stamp that it writes is the delay; a line begun for the partner means silence. Base models chat
more like people than instruct models of their size ("persona mixture" paper, section 4).
"""

from dataclasses import dataclass
from typing import Any

from anthrolab.models.client import ModelClient
from anthrolab.models.systems import System
from anthrolab.runtime.chat import ask_salt, seed_params
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
    max_delay_s: int = 600
    window: int = 12

    async def decide(self, ask: Asked) -> Answer:
        """The decision, or the error of the second unreadable line."""
        rule = LineRule(self.seat.name, self.seat.partner_name, self.seat.clock(ask.now_s), self.max_delay_s)
        clock = rule.clock()
        prompt = transcript_prompt(self.seat, ask, self.window, clock)
        error, call = "", None
        for attempt in range(2):
            salt = ask_salt(self.salt, ask, attempt)
            params = {"stop": ["\n"], **_constraint(self.system, rule), **seed_params(self.system, self.salt, ask, attempt)}
            reply = await self.client.ask(self.system.request(prompt=prompt, params=params, salt=salt))
            call = reply.call
            if reply.truncated:
                error = "the line was cut off at the length cap"
                continue
            try:
                delay, content = rule.parse(clock + reply.text)
            except ValueError as e:
                error = str(e)
                continue
            plan = SILENCE if not content else Plan(content, delay)
            labels = ["asked twice"] if attempt else []
            if not plan.silent and not 0 <= delay <= self.max_delay_s:
                labels.append(f"time {delay} s from now clipped")
            return Answer(plan, None, "; ".join(labels) or None, call)
        return Answer(None, error, None, call)


def _constraint(system: System, rule: LineRule) -> dict[str, Any]:
    """How the server holds a line to its form: llama.cpp's grammar, vLLM's regular expression, or not at all."""
    if system.server == "llama.cpp":
        return {"grammar": rule.gbnf()}
    if system.server == "vllm":
        return {"structured_outputs": {"regex": rule.regex()}}
    return {}
