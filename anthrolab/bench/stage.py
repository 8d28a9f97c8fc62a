"""The stage: where two systems play one dialogue after another under the same limits and in the same state."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from anthrolab.bench.settings import Limits, State
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.client import ModelClient
from anthrolab.models.engine import Engine
from anthrolab.models.opening import Models
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import System
from anthrolab.runtime.dialogue import Dialogue, Speaker, other
from anthrolab.runtime.history import History
from anthrolab.runtime.policies import Player
from anthrolab.runtime.seat import Seat
from anthrolab.runtime.session import play


@dataclass(frozen=True)
class Stage:
    """The tested system and its reference partner, opened; to be had from `Stage.open`."""

    tested: System
    reference: System
    limits: Limits
    state: State
    engine: Engine
    _models: Models
    _players: Mapping[str, Player]
    _clients: Mapping[str, ModelClient]
    _summary_ladder: Ladder = field(default_factory=Ladder)

    @classmethod
    async def open(
        cls, models: Models, engine: Engine, tested: System, reference: System, limits: Limits, state: State
    ) -> "Stage":
        """Opens both systems' clients; `models` closes them. `engine`: what all calls of the command share."""
        both = (tested, reference)
        players = {s.name: Player(s, limits.max_delay_s, limits.window) for s in both}
        clients = {s.name: await models.client(s) for s in both}
        return cls(tested, reference, limits, state, engine, models, players, clients)

    async def play(
        self, dialogue_id: str, table: Mapping[Speaker, Seat], log: CallLog, salt: str, *, tested_role: Speaker,
        binding: str | None = None, sample: int = 0,
    ) -> Dialogue:  # fmt: skip
        """One dialogue, all its calls in `log`; the tested system sits at `tested_role`. ModelError if a model failed."""
        who: dict[Speaker, System] = {tested_role: self.tested, other(tested_role): self.reference}
        meter = self.engine.meter
        tolls = {s: meter.toll(system, "tested" if s == tested_role else "partner") for s, system in who.items()}
        summariser = await self.state.summariser(self._models, log, salt, self._summary_ladder)
        history = History(table["a"], self.limits.window, summariser)
        policies = {
            s: self._players[who[s].name].sit(seat, Recorded(self._clients[who[s].name], log, tolls[s]), salt, history)
            for s, seat in table.items()
        }
        rules = self.limits.rules(table["a"].scene.horizon_minutes)
        return await play(
            dialogue_id, table, policies, rules, evaluated_role=tested_role, binding=binding, sample=sample, history=history
        )
