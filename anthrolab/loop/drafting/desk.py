"""The work on one plan: which slots are next, what is asked for them, and what becomes of their drafts. Pure but for the folder."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.loop.drafting.corpus import Corpus
from anthrolab.loop.drafting.folder import DraftFolder, Outcome, bindings_of
from anthrolab.loop.drafting.plan import PersonaSlot, Plan, ScenarioSlot
from anthrolab.loop.drafting.reading import Reason, read_persona, read_scenario
from anthrolab.loop.drafting.requests import draft_request, persona_question, scenario_question
from anthrolab.models.calls import CallLog
from anthrolab.models.client import ModelError, Reply, Request
from anthrolab.models.systems import System

ROUND = 32
"""Drafts of one round. More at once would be faster and know less of each other."""

Slot = PersonaSlot | ScenarioSlot


@dataclass
class Desk:
    """attempts: drafts of one card, over all commands. unanswered: slots without an answer in this command."""

    folder: DraftFolder
    plan: Plan
    writer: System
    corpus: Corpus
    attempts: int
    unanswered: dict[str, ModelError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bindings = bindings_of(self.plan)
        for slot in self.plan.slots:
            if self.folder.accepted(slot.id):
                self._take_in(slot)
        self._write_bindings()

    def open_slots(self) -> list[Slot]:
        """Slots that this command may still fill, personas first."""
        people: list[Slot] = [p for p in self.plan.personas if self._may_try(p)]
        coming = {p.id for p in people}
        return people + [s for s in self.plan.scenarios if self._may_try(s) and coming.issuperset(self.waits_for(s))]

    def next_round(self) -> list[Slot]:
        """The slots of the next round, all of one kind; none when nothing is left that can be done."""
        people: list[Slot] = [p for p in self.plan.personas if self._may_try(p)]
        scenes: list[Slot] = [s for s in self.plan.scenarios if self._may_try(s) and not self.waits_for(s)]
        return (people or scenes)[:ROUND]

    def waits_for(self, slot: ScenarioSlot) -> list[str]:
        """Personas of a scenario that are not there yet."""
        return list(dict.fromkeys(key for pair in slot.pairs for key in pair if key not in self.corpus.personas))

    def attempt(self, slot: Slot) -> int:
        """The number of the slot's next draft, from 1."""
        return len(self.folder.outcomes.get(slot.id, ())) + 1

    def request(self, slot: Slot, log: CallLog) -> Request:
        """The request for the slot's next draft, as things stand at the beginning of the round."""
        if isinstance(slot, PersonaSlot):
            kind, others = "persona", self.corpus.occupations(slot.quota["occupation group"])
            question = persona_question(slot, others, self.corpus.used_up())
        else:
            kind, question = "scenario", scenario_question(slot, self.corpus.personas, self.corpus.titles(slot.category))
        last: tuple[str, Sequence[Reason]] | None = None
        if earlier := self.folder.outcomes.get(slot.id):
            reply = log.get(earlier[-1].call)
            last = reply.text if reply else "", earlier[-1].reasons
        return draft_request(self.writer, kind, slot.id, question, self.attempt(slot), last)

    def settle(self, drafts: Sequence[tuple[Slot, Reply]]) -> list[Outcome]:
        """Accept or reject the drafts of a round in the order given, keep the round, and put the accepted cards on disk."""
        outcomes = [self._judge(slot, reply) for slot, reply in drafts]
        if outcomes:
            self.folder.record(outcomes)
        for slot, _ in drafts:
            if self.folder.accepted(slot.id):
                self._put(slot)
        self._write_bindings()
        return outcomes

    def _judge(self, slot: Slot, reply: Reply) -> Outcome:
        card: Persona | Scenario | list[Reason]
        if isinstance(slot, PersonaSlot):
            card = read_persona(reply, slot)
            reasons = self.corpus.against_persona(card, slot) if isinstance(card, Persona) else card
        else:
            card = read_scenario(reply, slot)
            reasons = self.corpus.against_scenario(card, slot) if isinstance(card, Scenario) else card
        content = None
        if not reasons and not isinstance(card, list):
            content = card.model_dump(mode="json", exclude_defaults=True)
            self._add(card)
        assert reply.call is not None
        return Outcome(slot.id, self.attempt(slot), self.writer.name, reply.call, tuple(reasons), content)

    def _add(self, card: Persona | Scenario) -> None:
        if isinstance(card, Persona):
            self.corpus.add_persona(card)
        else:
            self.corpus.add_scenario(card, self.bindings[card.id])

    def _put(self, slot: Slot) -> Persona | Scenario:
        return self.folder.persona(slot.id) if isinstance(slot, PersonaSlot) else self.folder.scenario(slot.id)

    def _take_in(self, slot: Slot) -> None:
        self._add(self._put(slot))

    def _write_bindings(self) -> None:
        self.folder.write_bindings([b for s in self.plan.scenarios if s.id in self.corpus.scenarios for b in self.bindings[s.id]])

    def _may_try(self, slot: Slot) -> bool:
        return not self.folder.accepted(slot.id) and slot.id not in self.unanswered and self.attempt(slot) <= self.attempts
