"""From checkboxes to scores (paper section 5.4), for one verdict. Pure.

An unassessed checkbox leaves numerator and denominator. A dimension with no assessed checkbox leaves the weighted
mean of its turn or dialogue; a turn with no assessed dimension leaves the mean over turns. Where nothing is
left the result is None, never 0. Sums are exact fractions, so that no result depends on the order of summation.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from anthrolab.errors import AnthrolabError
from anthrolab.judging.rubric import Dimension, Rubric, Scope, box_number
from anthrolab.judging.verdict import BoxVerdict, Verdict


class VerdictError(AnthrolabError):
    """A verdict that does not belong to the rubric it is scored with."""


class Coverage(NamedTuple):
    """How many checkboxes of how many a judge assessed."""

    assessed: int
    total: int


class FailedBox(NamedTuple):
    """A failed checkbox with its place; `turn_index` (from 1) and `message_index` (from 0) are None for a dialogue."""

    id: str
    scope: Scope
    turn_index: int | None
    message_index: int | None
    reason: str | None


class BoxRow(NamedTuple):
    """A row of the ledger's checkboxes.parquet, without the columns of the case."""

    scope: Scope
    turn_index: int | None
    dimension: str
    checkbox: int
    passed: bool | None


def coverage(boxes: Iterable[BoxVerdict]) -> Coverage:
    """Assessed and all checkboxes."""
    answers = [box.passed for box in boxes]
    return Coverage(sum(a is not None for a in answers), len(answers))


def dimension_score(boxes: Iterable[BoxVerdict], dimension: Dimension) -> Fraction | None:
    """q_d: the share passed of the dimension's assessed checkboxes, 0 to 1; None if none is assessed."""
    own = {box.id for box in dimension.checkboxes}
    answers = [box.passed for box in boxes if box.id in own and box.passed is not None]
    return Fraction(sum(answers), len(answers)) if answers else None


def card_score(boxes: Sequence[BoxVerdict], dimensions: Iterable[Dimension]) -> Fraction | None:
    """The weight-normalised score of one card, 0 to 1, over the dimensions with an assessed checkbox; None if none has.

    >>> d1, d2 = (Dimension.model_validate({"id": i, "name": i, "scope": "turn", "weight": w, "checkboxes":
    ...           [{"id": f"{i}.1", "question": "?"}]}) for i, w in (("D1", 3), ("D2", 1)))
    >>> card_score([BoxVerdict(id="D1.1", passed=True), BoxVerdict(id="D2.1", passed=False)], [d1, d2])
    Fraction(3, 4)
    """
    weighted = weights = Fraction(0)
    for dimension in dimensions:
        q = dimension_score(boxes, dimension)
        if q is not None:
            weighted += Fraction(dimension.weight) * q
            weights += Fraction(dimension.weight)
    return weighted / weights if weights else None


def turn_score(verdict: Verdict, rubric: Rubric) -> float | None:
    """S_turn: the mean of the local card's score over the turns that have one, 0 to 1."""
    return _float(_turn_score(verdict, rubric))


def dialogue_score(verdict: Verdict, rubric: Rubric) -> float | None:
    """S_dialogue: the score of the global card, 0 to 1."""
    return _float(card_score(verdict.dialogue, rubric.of_scope("dialogue")))


def case_score(verdict: Verdict, rubric: Rubric) -> float | None:
    """S = 100 (0.5 S_turn + 0.5 S_dialogue), 0 to 100; None unless both halves are assessed."""
    local, whole = _turn_score(verdict, rubric), card_score(verdict.dialogue, rubric.of_scope("dialogue"))
    return None if local is None or whole is None else float(50 * (local + whole))


def strict_pass(boxes: Iterable[BoxVerdict]) -> bool | None:
    """True if every assessed checkbox passed; None if none is assessed."""
    answers = [box.passed for box in boxes if box.passed is not None]
    return all(answers) if answers else None


def case_pass(verdict: Verdict) -> bool | None:
    """The strict acceptance (ACC) of a valid case: every assessed checkbox of every turn and of the dialogue passed."""
    return strict_pass(verdict.boxes())


def failed_boxes(verdict: Verdict) -> list[FailedBox]:
    """All failed checkboxes, turns first."""
    failed = [
        FailedBox(box.id, "turn", turn.turn_index, turn.message_index, box.reason)
        for turn in verdict.turns
        for box in turn.boxes
        if box.passed is False
    ]
    return failed + [
        FailedBox(box.id, "dialogue", None, None, box.reason) for box in verdict.dialogue if box.passed is False
    ]


def box_rows(verdict: Verdict, rubric: Rubric) -> list[BoxRow]:
    """The verdict as ledger rows, every checkbox once; VerdictError if it was given under another rubric."""
    if verdict.rubric != rubric.hash:
        raise VerdictError(
            f"verdict on {verdict.dialogue_id}: field 'rubric' is {verdict.rubric} but this rubric is {rubric.hash} "
            f"({rubric.name}); judge the dialogue again or load the rubric it was judged with"
        )
    rows: list[BoxRow] = []
    for turn in verdict.turns:
        rows += _rows(turn.boxes, rubric, "turn", turn.turn_index, verdict.dialogue_id)
    return rows + _rows(verdict.dialogue, rubric, "dialogue", None, verdict.dialogue_id)


def _rows(
    boxes: Sequence[BoxVerdict], rubric: Rubric, scope: Scope, turn_index: int | None, dialogue_id: str
) -> list[BoxRow]:
    if [box.id for box in boxes] != [box.id for box in rubric.boxes(scope)]:
        where = f"turn {turn_index}" if turn_index else "the dialogue"
        raise VerdictError(f"verdict on {dialogue_id}: the card of {where} has not the rubric's checkboxes; judge it again")
    return [
        BoxRow(scope, turn_index, rubric.dimension_of[box.id].id, box_number(box.id), box.passed) for box in boxes
    ]


def _turn_score(verdict: Verdict, rubric: Rubric) -> Fraction | None:
    local = rubric.of_scope("turn")
    scores = [s for turn in verdict.turns if (s := card_score(turn.boxes, local)) is not None]
    return sum(scores, Fraction(0)) / len(scores) if scores else None


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
