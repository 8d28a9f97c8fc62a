"""Episodes: a set of dialogues that the policy plays in lockstep waves, each judged as soon as it is over."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anthrolab.bench.cases import Case
from anthrolab.bench.settings import Limits, State
from anthrolab.cards.library import Library
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.client import FINAL_FAULTS, ModelClient, ModelError, Reply, Request
from anthrolab.models.engine import Engine
from anthrolab.models.opening import Models
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import System, find_system
from anthrolab.runtime.dialogue import Dialogue, Speaker, other
from anthrolab.runtime.history import History
from anthrolab.runtime.policies import Player
from anthrolab.runtime.policy import Policy
from anthrolab.runtime.seat import seats
from anthrolab.runtime.session import play
from anthrolab.training.grpo.rollout import Rollout, Sampler
from anthrolab.training.grpo.settings import INITIAL, GRPOSettings
from anthrolab.training.grpo.timeline import Timeline
from anthrolab.training.grpo.voice import InWavesClient, Voice, policy_system
from anthrolab.training.grpo.waves import InWaves, Waves
from anthrolab.training.reward.service import Judged, RewardService


@dataclass(frozen=True)
class Episodes:
    """What all dialogues of a training have in common: cards, limits, partner, judge and the policy's sampler.

    `partner`: the system on the other side; None: the policy as it was at the beginning. `calls`: the folder of call logs.
    """

    settings: GRPOSettings
    library: Library
    limits: Limits
    state: State
    voice: Voice
    sampler: Sampler
    service: RewardService
    models: Models
    engine: Engine
    calls: Path
    partner: System | None
    _clients: dict[str, ModelClient] = field(default_factory=dict)
    _partner_ladder: Ladder = field(default_factory=Ladder)
    _summary_ladder: Ladder = field(default_factory=Ladder)

    async def have(self, name: str, cases: Sequence[Case], timeline: Timeline, group: int = 1) -> list[tuple[Rollout, Judged | None]]:
        """One dialogue a case, in their order, played and judged; each `group` of them that follow one another are a group.

        name: of the step, such as "step-0007": draws, dialogue ids and the call log depend on it. A dialogue whose partner
        failed has no record and no judgement. ModelError if partner or judge cannot be asked any more.
        """
        waves = Waves(self.sampler, f"{self.settings.seed}/{name}", timeline)
        log = CallLog(self.calls / f"{name}.jsonl", self.engine)
        rollouts = [Rollout(i, f"{name}/{i // group}/{case.id}", case) for i, case in enumerate(cases)]
        for rollout in rollouts:
            waves.begin(rollout.number)

        async def one(rollout: Rollout) -> Judged | None:
            try:
                rollout.dialogue = await self._play(rollout, name, waves, log, timeline)
            except ModelError as e:
                if e.fault in FINAL_FAULTS:
                    raise
                rollout.fault = e.fault
            finally:
                waves.end(rollout.number)
            if rollout.dialogue is None:
                return None
            with timeline.span("judge", rollout.dialogue.dialogue_id):
                return await self.service.judge(rollout.dialogue)

        async with asyncio.TaskGroup() as tasks_of_step:
            tasks = [tasks_of_step.create_task(one(rollout)) for rollout in rollouts]
        return [(rollout, task.result()) for rollout, task in zip(rollouts, tasks, strict=True)]

    async def _play(self, rollout: Rollout, name: str, waves: Waves, log: CallLog, timeline: Timeline) -> Dialogue:
        case, number = rollout.case, rollout.number
        binding = self.library.bindings[case.binding]
        table = seats(
            self.library.personas[binding.persona_a], self.library.personas[binding.persona_b], self.library.scenarios[binding.scenario],
            memories=self.library.memories, skills=self.state.skills,
        )  # fmt: skip
        salt = f"{self.settings.seed}/{name}/{case.id}/{number}"
        dialogue_id = f"{name}-{case.id}-{number}"
        summariser = await self.state.summariser(self.models, log, salt, self._summary_ladder)
        history = History(table["a"], self.limits.window, summariser)
        mine, theirs = case.role, other(case.role)
        tested = policy_system(self.settings)
        client = InWavesClient(self.voice, waves, number, rollout.group)
        rollout.decisions = client.decisions
        own = Player(tested, self.limits.max_delay_s, self.limits.window, Ladder("prompt"))
        policies: dict[Speaker, Policy] = {mine: InWaves(own.sit(table[mine], client, salt, history), waves, number)}
        if self.partner is None:
            frozen = InWavesClient(self.voice, waves, number, rollout.group, "initial")
            policies[theirs] = InWaves(own.sit(table[theirs], frozen, salt, history), waves, number)
        else:
            seat = Player(self.partner, self.limits.max_delay_s, self.limits.window, self._partner_ladder)
            asked = _Timed(Recorded(await self._client(self.partner), log, self.engine.meter.toll(self.partner, "partner")), timeline, dialogue_id)
            policies[theirs] = seat.sit(table[theirs], asked, salt, history)
        rules = self.limits.rules(table["a"].scene.horizon_minutes)
        return await play(dialogue_id, table, policies, rules, evaluated_role=mine, binding=binding.id, sample=number, history=history)

    async def _client(self, system: System) -> ModelClient:
        if system.name not in self._clients:
            self._clients[system.name] = await self.models.client(system)
        return self._clients[system.name]


@dataclass(frozen=True)
class _Timed:
    """A client whose requests stand in the timeline."""

    client: ModelClient
    timeline: Timeline
    of: str

    @property
    def identity(self) -> str:
        return self.client.identity

    async def ask(self, request: Request) -> Reply:
        with self.timeline.span("partner", self.of):
            return await self.client.ask(request)


def partner_of(settings: GRPOSettings, systems: dict[str, System]) -> System | None:
    """The partner's system; None for the initial policy. SystemsError if there is no such system."""
    return None if settings.partner == INITIAL else find_system(systems, settings.partner)
