"""The scripted policy: answers from a list or a function. For tests, replays and gold dialogues."""

from collections.abc import Callable, Iterable

from anthrolab.runtime.policy import Answer
from anthrolab.runtime.schedule import SILENCE, Asked, Plan


class ScriptedPolicy:
    """Plans in order (silence once they run out), or a function of the ask."""

    def __init__(self, script: Iterable[Plan] | Callable[[Asked], Plan]) -> None:
        if callable(script):
            self._next = script
        else:
            plans = iter(script)
            self._next = lambda _ask: next(plans, SILENCE)

    async def decide(self, ask: Asked) -> Answer:
        """The next plan of the script."""
        return Answer(self._next(ask))
