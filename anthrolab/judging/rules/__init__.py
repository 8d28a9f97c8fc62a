"""The rules judge: deterministic, offline, and silent on what rules cannot decide.

It answers the checkboxes whose `rule` in the rubric names one of the rules below. A rule passes a checkbox only
where it can oversee the matter, fails it only on evidence that it quotes, and otherwise leaves it undecided. Two
rules are one-sided (`ONE_SIDED`): they can show a fault but not its absence, so they answer false or nothing, and
the share of passes among their answers means nothing by itself.
"""

from collections.abc import Mapping
from functools import cached_property
from importlib.resources import files

from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.files import content_hash
from anthrolab.judging.rubric import Checkbox, Rubric, RubricError
from anthrolab.judging.rules import (
    asking,
    authority,
    card_habits,
    claims,
    clock,
    coherence,
    conduct,
    form,
    habits,
    persons,
    readable,
    rhythm,
    service,
    taking_part,
    wording,
)
from anthrolab.judging.rules.scene import DialogueRule, Finding, Scene, TurnRule
from anthrolab.judging.verdict import BoxVerdict, TurnVerdict, Verdict
from anthrolab.runtime.dialogue import Dialogue, Speaker

TURN_RULES: dict[str, TurnRule] = {
    "no_essay_connectors": wording.no_essay_connectors,
    "no_service_tone": service.no_service_tone,
    "chat_form": form.chat_form,
    "message_length": habits.message_length,
    "no_over_explaining": wording.no_over_explaining,
    "not_a_near_copy": habits.not_a_near_copy,
    "no_filler_burst": habits.no_filler_burst,
    "typing_habits": card_habits.typing_habits,
    "no_back_office_claims": claims.no_back_office_claims,
    "no_borrowed_authority": authority.no_borrowed_authority,
    "segment_count": rhythm.segment_count,
    "readable_text": readable.readable_text,
    "typing_time": rhythm.typing_time,
}

DIALOGUE_RULES: dict[str, DialogueRule] = {
    "no_repeated_question": asking.no_repeated_question,
    "who_is_who": persons.who_is_who,
    "takes_up_the_event": coherence.takes_up_the_event,
    "greeting_fits_clock": clock.greeting_fits_clock,
    "no_cold_shutdown": conduct.no_cold_shutdown,
    "asks_a_question": asking.asks_a_question,
    "tells_of_self": taking_part.tells_of_self,
    "not_passive": taking_part.not_passive,
    "both_take_part": taking_part.both_take_part,
    "partner_follows": coherence.partner_follows,
    "keeps_moving": coherence.keeps_moving,
}

ONE_SIDED = frozenset({"not_a_near_copy", "partner_follows"})
"""Rules that never pass a checkbox."""


def rule_boxes(rubric: Rubric) -> tuple[str, ...]:
    """Ids of the checkboxes that the rules judge may answer: its coverage is at most these."""
    return tuple(box.id for box in rubric.boxes() if box.rule)


class RulesJudge:
    """A judge (see `verdict.Judge`) that asks no model. RubricError if the rubric names a rule that there is not."""

    name = "rules"

    def __init__(self, rubric: Rubric) -> None:
        self.rubric = rubric
        for box in rubric.boxes("turn"):
            _check(box, TURN_RULES, "turn")
        for box in rubric.boxes("dialogue"):
            _check(box, DIALOGUE_RULES, "dialogue")

    @cached_property
    def identity(self) -> str:
        """Changes with the rubric, with which rule answers what, with the rules' source and with how texts are compared."""
        package = files("anthrolab.judging.rules")
        rooms = sorted((room for room in package.iterdir() if room.name.endswith(".py")), key=lambda room: room.name)
        sources = [room.read_text(encoding="utf-8") for room in (*rooms, files("anthrolab.runtime") / "text.py")]
        return content_hash([self.rubric.hash, {box.id: box.rule for box in self.rubric.boxes()}, sources])

    async def judge(
        self, dialogue: Dialogue, personas: Mapping[Speaker, Persona], scenario: Scenario | None
    ) -> Verdict:
        """As `verdict`."""
        return self.verdict(dialogue, personas, scenario)

    def verdict(
        self, dialogue: Dialogue, personas: Mapping[Speaker, Persona], scenario: Scenario | None = None
    ) -> Verdict:
        """The verdict on the evaluated role; every checkbox that no rule decides is unassessed."""
        scene = Scene(dialogue, personas.get(dialogue.evaluated_role), scenario)
        turns = [
            TurnVerdict(
                turn_index=number,
                message_index=index,
                boxes=[
                    _answer(box, TURN_RULES[box.rule](scene, index) if box.rule else None)
                    for box in self.rubric.boxes("turn")
                ],
            )
            for number, index in enumerate(dialogue.turns(), 1)
        ]
        whole = [
            _answer(box, DIALOGUE_RULES[box.rule](scene) if box.rule else None) if turns else no_turns(box)
            for box in self.rubric.boxes("dialogue")
        ]
        return Verdict(
            dialogue_id=dialogue.dialogue_id,
            judge=self.name,
            judge_identity=self.identity,
            rubric=self.rubric.hash,
            turns=turns,
            dialogue=whole,
        )


def no_turns(box: Checkbox) -> BoxVerdict:
    """The answer on a dialogue in which the evaluated role said nothing."""
    return BoxVerdict(id=box.id, unassessed="no_turns")


def _answer(box: Checkbox, finding: Finding | None) -> BoxVerdict:
    if finding is None:
        return BoxVerdict(id=box.id, unassessed="no_rule")
    if finding.passed is None:
        return BoxVerdict(id=box.id, unassessed="undecided")
    return BoxVerdict(id=box.id, passed=finding.passed, reason=finding.reason)


def _check(box: Checkbox, rules: Mapping[str, object], scope: str) -> None:
    if box.rule and box.rule not in rules:
        raise RubricError(
            f"rubric: {box.id}: rule: there is no rule '{box.rule}' for a {scope}; "
            f"remove the field or name one of {', '.join(sorted(rules))}"
        )
