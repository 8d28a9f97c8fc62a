"""A policy answers asks: it decides what a speaker does next (paper section 4.1, the message decision)."""

from dataclasses import dataclass
from typing import Protocol

from anthrolab.runtime.schedule import Asked, Plan


@dataclass(frozen=True)
class Answer:
    """What a policy made of one ask: a plan, or the reason why its reply broke the contract.

    `recovered` says how a bent reply was read all the same; `call` is the id of the model call.
    """

    plan: Plan | None
    error: str | None = None
    recovered: str | None = None
    call: str | None = None

    def __post_init__(self) -> None:
        if (self.plan is None) == (self.error is None):
            raise ValueError("an answer has either a plan or an error")


class Policy(Protocol):
    """One speaker's policy in one dialogue."""

    async def decide(self, ask: Asked) -> Answer:
        """The answer to one ask. ModelError if no reply could be had: then the dialogue fails, nobody is scored."""
        ...
