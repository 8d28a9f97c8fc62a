"""Lockstep waves: the policy's asks of all live dialogues are answered together, one batch of generation a wave.

The dialogues themselves are played by the product's own session (`runtime/session.py`), each in a task of its own. A policy
that asks is held here until every live dialogue waits too; then one call of the sampler answers all, in a thread, so that
partners and judges are served meanwhile.
"""

import asyncio
from dataclasses import dataclass, field

from anthrolab.files import content_hash
from anthrolab.runtime.policy import Answer, Policy
from anthrolab.runtime.schedule import Asked
from anthrolab.training.grpo.rollout import Prompt, Sampled, Sampler
from anthrolab.training.grpo.timeline import Timeline


@dataclass
class Waves:
    """One step's waves. `seed` names the step: the draws of wave n depend on it and on n alone.

    A dialogue is live from `begin` to `end`. It waits when all of its asks under way stand here.
    """

    sampler: Sampler
    seed: str
    timeline: Timeline = field(default_factory=Timeline)
    waves: int = 0
    _deciding: dict[int, int] = field(default_factory=dict)
    _waiting: list[tuple[int, int, Prompt, asyncio.Future[Sampled]]] = field(default_factory=list)
    _sampling: asyncio.Task[None] | None = None
    _arrivals: int = 0

    def begin(self, number: int) -> None:
        """A dialogue is live from now on."""
        self._deciding[number] = 0

    def end(self, number: int) -> None:
        """A dialogue is over (or failed): nobody waits for it any more."""
        self._deciding.pop(number, None)
        self._waiting = [row for row in self._waiting if row[0] != number]
        self._look_soon()

    def deciding(self, number: int, by: int) -> None:
        """One more (or less) of the dialogue's asks is under way."""
        if number in self._deciding:
            self._deciding[number] += by
        self._look_soon()

    async def sample(self, number: int, prompt: Prompt) -> Sampled:
        """The reply to one ask of a dialogue, once the wave that it is in was drawn."""
        place: asyncio.Future[Sampled] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        self._waiting.append((number, self._arrivals, prompt, place))
        self._look_soon()
        return await place

    def _look_soon(self) -> None:
        """After the tasks that are ready now had their turn: the other ask of an event may be among them."""
        asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        if not self._waiting or self._sampling is not None:
            return
        stand = dict.fromkeys(self._deciding, 0)
        for number, *_ in self._waiting:
            stand[number] += 1
        if all(asks > 0 and stand[number] == asks for number, asks in self._deciding.items()):
            wave, self._waiting = sorted(self._waiting, key=lambda row: row[:2]), []
            self._sampling = asyncio.get_running_loop().create_task(self._draw(wave))

    async def _draw(self, wave: list[tuple[int, int, Prompt, asyncio.Future[Sampled]]]) -> None:
        self.waves += 1
        seed = int(content_hash(f"{self.seed}/{self.waves}")[:8], 16) & 0x7FFFFFFF
        try:
            with self.timeline.span("generate", f"wave {self.waves}"):
                drawn = await asyncio.to_thread(self.sampler.sample, [prompt for _, _, prompt, _ in wave], seed)
            replies = list(zip(wave, drawn, strict=True))
        except BaseException as e:
            for *_, place in wave:
                if not place.done():
                    place.set_exception(e if isinstance(e, Exception) else RuntimeError(f"sampling was stopped ({type(e).__name__})"))
            if not isinstance(e, Exception):
                raise
        else:
            for (*_, place), reply in replies:
                if not place.done():
                    place.set_result(reply)
        finally:
            self._sampling = None
            self._look_soon()


@dataclass(frozen=True)
class InWaves:
    """A policy whose model is asked through waves: they must know how many of a dialogue's asks are under way."""

    policy: Policy
    waves: Waves
    number: int

    async def decide(self, ask: Asked) -> Answer:
        """The policy's own answer."""
        self.waves.deciding(self.number, 1)
        try:
            return await self.policy.decide(ask)
        finally:
            self.waves.deciding(self.number, -1)
