"""From a declared system to a policy at a seat."""

from dataclasses import dataclass, field

from anthrolab.models.client import ModelClient
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import System
from anthrolab.runtime.chat import ChatPolicy
from anthrolab.runtime.policy import Policy
from anthrolab.runtime.seat import Seat
from anthrolab.runtime.transcript import Constraint, TranscriptPolicy

CONSTRAINTS: dict[str, Constraint] = {"llama.cpp": "gbnf", "vllm": "regex", "openai": "none"}
"""How each kind of server holds a transcript line to its form."""


@dataclass
class Player:
    """A system ready to play: what is common to all dialogues it takes part in."""

    system: System
    window: int
    ladder: Ladder = field(default_factory=Ladder)

    def sit(self, seat: Seat, client: ModelClient, salt: str, max_delay_s: int) -> Policy:
        """The system's policy for one speaker of one dialogue; `salt` names case, sample and seed."""
        system = self.system
        seeded = system.server == "llama.cpp"  # vLLM's CPU build dies of a per-request seed
        if system.policy == "transcript":
            return TranscriptPolicy(
                seat=seat, client=client, model=system.model, params=system.body(), salt=salt, seeded=seeded,
                constraint=CONSTRAINTS[system.server], max_delay_s=max_delay_s, window=self.window,
            )  # fmt: skip
        return ChatPolicy(
            seat=seat, client=client, model=system.model, params=system.body(), salt=salt, seeded=seeded,
            max_delay_s=max_delay_s, window=self.window, system_suffix=system.prompt_suffix(), ladder=self.ladder,
        )  # fmt: skip


