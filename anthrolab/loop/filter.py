"""The acceptance filter (paper section 4.5): A = {D : g(D) = 0, S_dialogue(D) = 1.0, S_turn(D) > 0.9}. Pure.

A checkbox that nobody assessed never counts as passed: a dialogue whose cards are not full is undecided, so that the
rules judge alone accepts nothing.
"""

from collections import Counter
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from anthrolab.judging.l0 import SEVERITY, L0Result
from anthrolab.judging.rubric import Rubric, Scope
from anthrolab.judging.scores import (
    VerdictError,
    box_rows,
    case_score,
    coverage,
    dialogue_score,
    dimension_score,
    failed_boxes,
    turn_score,
)
from anthrolab.judging.verdict import RULES, Verdict
from anthrolab.runtime.dialogue import LATER, Dialogue, Record

Status = Literal["accepted", "rejected", "invalid", "undecided"]
Grade = Literal["Invalid", "A", "B", "C", "D"]
GRADES: tuple[tuple[float, Grade], ...] = ((95, "A"), (85, "B"), (70, "C"), (0, "D"))
"""The least final score of each grade. Ours: the paper names only Invalid."""


class Thresholds(BaseModel):
    """When a valid dialogue is accepted: S_dialogue at least `dialogue`, S_turn more than `turn`; both 0 to 1."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    dialogue: float = Field(default=1.0, ge=0, le=1, allow_inf_nan=False)
    turn: float = Field(default=0.9, ge=0, lt=1, allow_inf_nan=False)


PAPER = Thresholds()
"""The paper's."""


class Broken(Record):
    """A constraint of the gate that the evaluated role broke; `by` is "rules" or the judge that says so.

    `message_index` counts from 0; -1 where no message is to blame."""

    id: str
    severity: str
    message_index: int
    evidence: str
    by: str


class Failed(Record):
    """A failed checkbox and its place: `turn_index` from 1, `message_index` from 0, both null for the whole dialogue."""

    id: str
    scope: Scope
    turn_index: int | None
    message_index: int | None
    reason: str | None


class FilterResult(Record):
    """What the filter made of one dialogue, and why.

    violations: fatal and major ones of the evaluated role. final_score: 0 to 100, 0 if it is invalid, null without full
    cards. turn_score, dialogue_score, dimensions (each turn's boxes pooled): 0 to 1 over the assessed boxes, null without
    one. assessed, boxes: checkboxes with an answer, and all. unexecuted: constraints of the gate that neither rules nor
    the judge answered; one that no judge was asked about decides nothing here.
    """

    status: Status
    why: str
    violations: list[Broken] = Field(default=[])
    final_score: float | None
    grade: Grade | None
    turn_score: float | None = None
    dialogue_score: float | None = None
    dimensions: dict[str, float | None] = Field(default={})
    failed: list[Failed] = Field(default=[])
    assessed: int = 0
    boxes: int = 0
    unexecuted: list[str] = Field(default=[])
    judge: str | None = None
    judge_identity: str | None = None
    thresholds: Thresholds = PAPER


class Lineage(Record):
    """Where a repaired dialogue comes from: its parent and the hash of the parent's record, the messages (from 0) that
    were rewritten, the failure records behind it, by whom and at which attempt (from 1)."""

    parent: str
    parent_hash: str
    changed: list[int]
    records: list[str]
    writer: str
    attempt: int = Field(ge=1)
    round: int | None = None


class Filtered(Dialogue):
    """A dialogue with what the filter made of it; `lineage` is there for a repaired one."""

    filter_result: FilterResult
    lineage: Lineage | None = LATER

    @classmethod
    def of(cls, dialogue: Dialogue, result: FilterResult, lineage: Lineage | None = None) -> "Filtered":
        """The dialogue with its result."""
        return cls.model_construct(**dict(dialogue), filter_result=result, lineage=lineage)

    def bare(self) -> Dialogue:
        """The dialogue without what was added to it."""
        added = {"filter_result", "lineage"}
        return Dialogue.model_construct(**{k: v for k, v in dict(self).items() if k not in added})


def filter_dialogue(
    dialogue: Dialogue, gate: L0Result, verdict: Verdict | None, rubric: Rubric, thresholds: Thresholds = PAPER
) -> FilterResult:
    """What becomes of a dialogue, given its gate and its verdict (None: not judged).

    invalid: a fatal constraint is broken, by the rules or by what the judge says, or the evaluated role said nothing.
    undecided: it is valid, and not every checkbox of every evaluated turn has an answer, or the judge gave none about a fatal
    constraint that it was asked about. Else accepted or rejected by the thresholds.
    """
    broken = [Broken(**v.as_row(), by=RULES) for v in gate.violations]  # type: ignore[arg-type]
    tried: set[str] = set(gate.executed)
    fields: dict[str, object] = {}
    if verdict is not None:
        broken += [
            Broken(id=a.id, severity=SEVERITY[a.id], message_index=a.message_index, evidence=a.reason or "", by=verdict.judge)  # type: ignore[index,arg-type]
            for a in verdict.judge_violations()
        ]
        tried |= set(verdict.l0_executed())
        seen = coverage(verdict.boxes())
        boxes = list(verdict.boxes())
        fields = {
            "turn_score": turn_score(verdict, rubric), "dialogue_score": dialogue_score(verdict, rubric),
            "dimensions": {d.id: None if (q := dimension_score(boxes, d)) is None else float(q) for d in rubric.dimensions},
            "failed": [Failed(**box._asdict()) for box in failed_boxes(verdict)],
            "assessed": seen.assessed, "boxes": seen.total, "judge": verdict.judge, "judge_identity": verdict.judge_identity,
        }  # fmt: skip
    status, why = _status(dialogue, gate, broken, verdict, rubric, thresholds)
    score: float | None = None
    if status == "invalid":
        score = 0.0
    elif verdict is not None and status != "undecided":
        score = case_score(verdict, rubric)
    return FilterResult(
        status=status, why=why, violations=broken, final_score=score, grade=_grade(status, score),
        unexecuted=[c for c in SEVERITY if c not in tried], thresholds=thresholds, **fields,  # type: ignore[arg-type]
    )  # fmt: skip


def _status(
    dialogue: Dialogue, gate: L0Result, broken: list[Broken], verdict: Verdict | None, rubric: Rubric, thresholds: Thresholds
) -> tuple[Status, str]:
    fatal = [b for b in broken if b.severity == "fatal"]
    if gate.reason == "no_turns":
        return "invalid", "the evaluated role said nothing"
    if fatal or not gate.valid:
        return "invalid", f"breaks {', '.join(dict.fromkeys(b.id for b in fatal))}"
    if verdict is None:
        return "undecided", "not judged"
    open_l0 = [a.id for a in verdict.l0 if a.violated is None and SEVERITY[a.id] == "fatal"]  # type: ignore[index]
    if open_l0:
        return "undecided", f"the judge gave no usable answer about {', '.join(open_l0)}"
    if lacking := _lacking(dialogue, verdict, rubric):
        return "undecided", lacking
    seen = coverage(verdict.boxes())
    if seen.assessed < seen.total:
        reasons = Counter(verdict.unassessed()).most_common(2)
        said = ", ".join(f"{reason} {count}" for reason, count in reasons)
        return "undecided", f"{seen.assessed} of {seen.total} checkboxes have an answer ({said})"
    local, whole = turn_score(verdict, rubric), dialogue_score(verdict, rubric)
    if local is None or whole is None:
        return "undecided", "no turn was judged"
    lacks = [f"S_dialogue {whole:.4f} is below {thresholds.dialogue:g}"] if whole < thresholds.dialogue else []
    lacks += [f"S_turn {local:.4f} is not above {thresholds.turn:g}"] if local <= thresholds.turn else []
    return ("rejected", "; ".join(lacks)) if lacks else ("accepted", f"S_dialogue {whole:.4f}, S_turn {local:.4f}")


def _lacking(dialogue: Dialogue, verdict: Verdict, rubric: Rubric) -> str | None:
    """What the verdict's cards lack: each evaluated turn and the dialogue has one with all checkboxes of the rubric."""
    if [t.message_index for t in verdict.turns] != dialogue.turns():
        return f"{len(verdict.turns)} cards for {len(dialogue.turns())} evaluated turns"
    try:
        box_rows(verdict, rubric)
    except VerdictError as e:
        return str(e)
    return None


def _grade(status: Status, score: float | None) -> Grade | None:
    if status == "invalid":
        return "Invalid"
    return None if score is None else next(grade for least, grade in GRADES if score >= least)
