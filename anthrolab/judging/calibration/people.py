"""People's judgement beside the judge's: how far raters agree, how far the judge agrees with them, and what real people fail."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from anthrolab.intervals import Rate
from anthrolab.judging.calibration.agreement import Alpha, Kappa, alpha_by_dialogue, kappa, majority
from anthrolab.judging.calibration.labels import HumanLabel
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.verdict import BoxVerdict, Verdict

Place = tuple[str, int | None, str]
"""Dialogue, turn (from 1; None for the dialogue's checkboxes), checkbox."""


@dataclass(frozen=True)
class BoxAgreement:
    """One checkbox (or "all" of them) as people and judge see it.

    failed: share of people's answers that say failed. among: agreement among the raters. ties: things without a
    majority (left out); unanswered: with a majority but without the judge's answer (left out). judge: kappa of the
    judge (its `failed_a`) with the majority (`failed_b`); by_rater: with each rater.
    """

    box: str
    failed: Rate
    among: Alpha
    ties: int
    unanswered: int
    judge: Kappa
    by_rater: Mapping[str, Kappa]


def agreement(
    labels: Sequence[HumanLabel], verdicts: Mapping[str, Verdict], rubric: Rubric, *, seed: int = 0
) -> list[BoxAgreement]:
    """Agreement over all checkboxes together, then for each labelled one in the rubric's order.

    verdicts: the judge's, by dialogue id; what it has not judged counts as unanswered. The seed is the bootstrap's.
    """
    given = [label for label in labels if label.passed is not None]
    judged = {place: passed for v in verdicts.values() for place, passed in _places(v)}
    labelled = {label.box for label in given}
    boxes = [b.id for b in rubric.boxes() if b.id in labelled]
    rows = [_agreement("all", given, judged, seed)] if given else []
    return rows + [_agreement(box, [x for x in given if x.box == box], judged, seed) for box in boxes]


def failed_by_judge(verdicts: Iterable[Verdict], rubric: Rubric) -> dict[str, Rate]:
    """How often each checkbox fails of the times that it is answered; those that fail most first."""
    return _failed(((box.id, box.passed) for v in verdicts for box in v.boxes()), rubric)


def failed_by_people(labels: Iterable[HumanLabel], rubric: Rubric) -> dict[str, Rate]:
    """The same by the raters' majority."""
    answers: dict[Place, list[bool]] = defaultdict(list)
    for label in labels:
        if label.passed is not None:
            answers[label.dialogue, label.turn, label.box].append(label.passed)
    return _failed(((box, majority(said)) for (_, _, box), said in answers.items()), rubric)


def _failed(answers: Iterable[tuple[str, bool | None]], rubric: Rubric) -> dict[str, Rate]:
    rates: dict[str, Rate] = {}
    for box, passed in answers:
        if passed is not None:
            rates[box] = rates.get(box, Rate(0, 0)) + Rate(not passed, 1)
    in_order = [b.id for b in rubric.boxes() if b.id in rates]
    return {box: rates[box] for box in sorted(in_order, key=lambda b: -(rates[b].value or 0))}


def _places(verdict: Verdict) -> Iterable[tuple[Place, bool | None]]:
    def of(turn: int | None, boxes: Iterable[BoxVerdict]) -> Iterable[tuple[Place, bool | None]]:
        return [((verdict.dialogue_id, turn, box.id), box.passed) for box in boxes]

    return [*(p for t in verdict.turns for p in of(t.turn_index, t.boxes)), *of(None, verdict.dialogue)]


def _agreement(box: str, labels: Sequence[HumanLabel], judged: Mapping[Place, bool | None], seed: int) -> BoxAgreement:
    said: dict[Place, dict[str, bool]] = defaultdict(dict)
    for label in labels:
        assert label.passed is not None
        said[label.dialogue, label.turn, label.box][label.rater] = label.passed
    by_dialogue: dict[str, list[tuple[bool, ...]]] = defaultdict(list)
    for (dialogue, _, _), answers in said.items():
        by_dialogue[dialogue].append(tuple(answers.values()))
    common = {place: majority(answers.values()) for place, answers in said.items()}
    decided = [(judged.get(place), passed) for place, passed in common.items() if passed is not None]
    raters = sorted({label.rater for label in labels})
    return BoxAgreement(
        box=box,
        failed=Rate(sum(not label.passed for label in labels), len(labels)),
        among=alpha_by_dialogue(list(by_dialogue.values()), seed=seed),
        ties=len(common) - len(decided),
        unanswered=sum(own is None for own, _ in decided),
        judge=kappa((own, passed) for own, passed in decided if own is not None),
        by_rater={
            rater: kappa(
                (own, answers[rater]) for place, answers in said.items() if rater in answers and (own := judged.get(place)) is not None
            )
            for rater in raters
        },
    )
