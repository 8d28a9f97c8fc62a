"""What a rule sees and what it answers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.runtime.dialogue import Dialogue, Message


@dataclass(frozen=True)
class Finding:
    """A rule's answer: passed, failed (then `reason` holds the evidence), or undecided (None)."""

    passed: bool | None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.passed is False and not self.reason:
            raise ValueError("a failed checkbox needs its evidence")


PASSED = Finding(True)
UNDECIDED = Finding(None)


def failed(evidence: str) -> Finding:
    """A failed checkbox with its evidence."""
    return Finding(False, evidence)


@dataclass(frozen=True)
class Scene:
    """A dialogue with the card of the evaluated role and the scenario, where they are known."""

    dialogue: Dialogue
    persona: Persona | None = None
    scenario: Scenario | None = None

    @cached_property
    def own(self) -> list[Message]:
        """The evaluated turns: messages of the evaluated role without the opener."""
        return [self.dialogue.messages[i] for i in self.dialogue.turns()]

    @cached_property
    def partner(self) -> list[Message]:
        """The partner's messages, opener included."""
        return [m for m in self.dialogue.messages if m.speaker != self.dialogue.evaluated_role]

    def own_before(self, index: int) -> list[Message]:
        """The evaluated role's messages before position `index`, opener included (it counts for repetition)."""
        role = self.dialogue.evaluated_role
        return [m for m in self.dialogue.messages[:index] if m.speaker == role]


TurnRule = Callable[[Scene, int], Finding]
"""Answers a checkbox for the message at a position (from 0) of the dialogue."""

DialogueRule = Callable[[Scene], Finding]
"""Answers a checkbox for the whole dialogue."""
