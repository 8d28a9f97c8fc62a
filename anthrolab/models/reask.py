"""Asking for a reply that keeps a contract: a broken one is asked for once more, and both asks share one budget."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from anthrolab.models.client import Reply, Request, Spent

T = TypeVar("T")
ASKS = 2


@dataclass(frozen=True)
class Read(Generic[T]):
    """What was read out of a reply: the value, or the error; `recovered` names what was bent back."""

    value: T | None
    error: str | None = None
    recovered: str | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.error is None):
            raise ValueError("a reading has either a value or an error")


async def ask_for(
    ask: Callable[[Request], Awaitable[Reply]],
    make: Callable[[int, str | None], Request],
    read: Callable[[Reply], Read[T]],
) -> tuple[Read[T], Reply]:
    """What was read, and the reply it was read from; after two broken replies the second one's error.

    `make(number, error)` gives the request of an ask: 0 and None, then 1 and why the first reply was refused (the
    model should be told, and the request must differ, or the call log answers with the same reply). ModelError
    goes to the caller: a server that fails is not a model that breaks a contract.
    """
    spent, error = Spent(), None
    for number in range(ASKS):
        reply = await ask(replace(make(number, error), spent=spent))
        outcome = read(reply)
        if outcome.error is None:
            if number:
                labels = f"{outcome.recovered}; asked twice" if outcome.recovered else "asked twice"
                outcome = replace(outcome, recovered=labels)
            break
        error = outcome.error
    return outcome, reply
