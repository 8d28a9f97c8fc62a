"""From a declared system to a policy at a seat."""

from dataclasses import dataclass, field

from anthrolab.models.client import ModelClient
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import System
from anthrolab.runtime.chat import ChatPolicy
from anthrolab.runtime.history import History
from anthrolab.runtime.policy import Policy
from anthrolab.runtime.seat import Seat
from anthrolab.runtime.transcript import TranscriptPolicy


@dataclass
class Player:
    """A system ready to play: what is common to all dialogues that it takes part in."""

    system: System
    max_delay_s: int
    window: int
    ladder: Ladder = field(default_factory=Ladder)

    def sit(self, seat: Seat, client: ModelClient, salt: str, history: History | None = None) -> Policy:
        """The system's policy for one speaker of one dialogue; `salt` names seed, case and sample.

        `history`: the dialogue's past, shared with the partner; without it the last `window` messages are shown.
        """
        past = history or History(seat, self.window)
        if self.system.policy == "transcript":
            return TranscriptPolicy(seat, client, self.system, salt, past, self.max_delay_s)
        return ChatPolicy(seat, client, self.system, salt, past, self.max_delay_s, self.ladder)
