"""What a judge answered for one dialogue: one JSON line in `verdicts.jsonl`.

Every checkbox is there and has one of three answers: passed, failed, or unassessed with a typed reason.
Scores are made from these records in `judging.scores`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Protocol

from pydantic import Field, model_validator

from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.judging.rubric import Scope
from anthrolab.runtime.dialogue import Dialogue, Record, Speaker

RULES = "rules"
"""The name of the rules judge."""

JUDGED_L0 = ("L0-06", "L0-07", "L0-08", "L0-09", "L0-10")
"""The L0 constraints that a model judge is asked about: those that rules decide not at all (07, 09, 10) or only
in part (06, 08)."""


class BoxVerdict(Record):
    """One checkbox. Exactly one of `passed` and `unassessed` is set.

    `reason` is the judge's reason for its answer. `unassessed` says why there is none: `no_rule`, `undecided`
    (rules judge), `no_persona`, `no_scenario` (a card is missing), `no_turns` (the evaluated role said nothing),
    `parse_error`, `truncated`, `missing_id`, `duplicate_id`, `not_boolean`, `bad_message` (the model judge's
    answer could not be used), or `model_error:<fault>` (there was no answer).
    """

    id: str
    passed: bool | None = None
    reason: str | None = None
    unassessed: str | None = None

    @model_validator(mode="after")
    def _tri_state(self) -> "BoxVerdict":
        if (self.passed is None) == (self.unassessed is None):
            raise ValueError(f"checkbox {self.id}: either 'passed' or the reason 'unassessed' is set, not both or none")
        return self


class L0Answer(Record):
    """The model judge's answer about one L0 constraint, with the three states of a checkbox.

    `message_index` (from 0, into the dialogue's messages) is set exactly where `violated` is true and names a
    message of the evaluated role.
    """

    id: str
    violated: bool | None = None
    message_index: int | None = Field(default=None, ge=0)
    reason: str | None = None
    unassessed: str | None = None

    @model_validator(mode="after")
    def _tri_state(self) -> "L0Answer":
        if (self.violated is None) == (self.unassessed is None):
            raise ValueError(f"{self.id}: either 'violated' or the reason 'unassessed' is set, not both or none")
        if (self.violated is True) != (self.message_index is not None):
            raise ValueError(f"{self.id}: 'message_index' is set exactly where 'violated' is true")
        return self


class TurnVerdict(Record):
    """The local card of one evaluated turn. `turn_index` counts evaluated turns from 1, `message_index` messages from 0."""

    turn_index: int = Field(ge=1)
    message_index: int = Field(ge=0)
    boxes: list[BoxVerdict]


class JudgeFault(Record):
    """Something that went wrong with one call to the judge: nothing is scored from it, and it is counted.

    `fault` is a reason as in BoxVerdict, or `unknown_id` (an answer to a checkbox nobody asked about).
    """

    scope: Scope
    turn_index: int | None = None
    fault: str
    message: str


class Verdict(Record):
    """All cards of one dialogue by one judge.

    judge: its name; judge_identity: a content hash of all that its answers depend on; rubric: the rubric's hash.
    dialogue_hash: content hash of the dialogue's record as it was judged; a changed dialogue is judged again.
    complete: false where a call got no answer from the model (fault `model_error:...`), so that judging the
        dialogue again may answer more; everything else that is unassessed stays so.
    rungs: answers had at each rung of the structured-output ladder, first askings and those again alike; a call without
        an answer is in none (empty for the rules judge).
    from_reasoning: answers that stood in the reasoning field, with nothing said (see `answers.answer_text`).
    """

    dialogue_id: str
    judge: str
    judge_identity: str
    rubric: str
    dialogue_hash: str | None = None
    complete: bool = True
    turns: list[TurnVerdict]
    dialogue: list[BoxVerdict]
    l0: list[L0Answer] = Field(default_factory=list)
    errors: list[JudgeFault] = Field(default_factory=list)
    rungs: dict[str, int] = Field(default_factory=dict)
    from_reasoning: int = Field(default=0, ge=0)

    def boxes(self) -> Iterator[BoxVerdict]:
        """All checkboxes: the turns' in order, then the dialogue's."""
        for turn in self.turns:
            yield from turn.boxes
        yield from self.dialogue

    def unassessed(self) -> Counter[str]:
        """How many checkboxes are unassessed, by reason."""
        return Counter(box.unassessed for box in self.boxes() if box.unassessed is not None)

    def model_faults(self) -> list[str]:
        """The faults of calls that got no answer from the model, such as `timeout`."""
        return [e.fault.removeprefix("model_error:") for e in self.errors if e.fault.startswith("model_error:")]

    def judge_violations(self) -> list[L0Answer]:
        """The L0 constraints that the judge found violated by the evaluated role."""
        return [answer for answer in self.l0 if answer.violated]

    def l0_executed(self) -> list[str]:
        """Ids of the L0 constraints that the judge really answered."""
        return [answer.id for answer in self.l0 if answer.violated is not None]

    def to_line(self) -> str:
        """The record as one JSON line, fields in declared order."""
        return self.model_dump_json()


class Judge(Protocol):
    """Anything that fills in the cards of a dialogue."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    @property
    def identity(self) -> str:
        """Content hash of all that its answers depend on besides the dialogue and the cards."""
        ...

    async def judge(
        self, dialogue: Dialogue, personas: Mapping[Speaker, Persona], scenario: Scenario | None
    ) -> Verdict:
        """The verdict on the evaluated role; cards may be missing for dialogues from elsewhere."""
        ...
