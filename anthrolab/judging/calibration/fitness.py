"""Is a judge fit for strict ACC? The thresholds, why they are what they are, and every reason against.

Strict ACC accepts a case only if every answer is yes: 21 checkboxes a turn and 23 a dialogue make some 300 answers. One
wrong "no" rejects a good case, and a box that is never answered cannot reject a bad one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anthrolab.intervals import Rate
from anthrolab.judging.calibration.measure import Measure
from anthrolab.judging.l0.result import SEVERITY
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.rules import RulesJudge
from anthrolab.judging.verdict import JUDGED_L0

GOLD_PASSED, GOLD_CASES = 0.9, 50
LABELS = 8
RECALL, PRECISION, LOW_END = 0.8, 0.9, 0.5
OUTCOME_FLIPS = 0.05

WHY = {
    "gold cases passed": "the share passed is the highest ACC that a faultless system can reach under this judge. Over 300 "
    'answers a case, 0.9 allows one wrong "no" in 2800; 50 cases tell it to about a tenth either way.',
    "coverage": "strict ACC takes an unanswered checkbox for no failure, so a judge's silence raises the score.",
    "labels": "of eight labelled failures one may be missed and the interval's lower end is still above a half; of fewer "
    "not, so fewer show nothing. (It takes failures for independent; those planted in one gold dialogue are not, and the "
    "interval is too narrow.)",
    "recall": "a system with one kind of failure passes wherever the judge misses it. The interval's lower end must be "
    "over a half, or tossing a coin could have done as well.",
    "precision": "in a good case every alleged failure is false, and one rejects it. The interval's lower end as above.",
    "repeats": "where one in twenty cases comes out otherwise the next time, the judge alone moves the ACC of 100 cases "
    "by some two points.",
}
"""Why each threshold is what it is, by criterion."""

BY_CONSTRUCTION = {
    "gold cases passed": "The gold dialogues that come with anthrolab had to pass the gate and the rules judge to be taken in, so of the "
    "rules judge this is true by construction and shows nothing about new dialogues.",
    "precision": "Most of what holds in the set is the text of gold dialogues that had to pass the gate and the rules judge; that the rules "
    "judge alleges nothing there is true by construction. Only planted look-alikes and new lines can tell against it.",
}
"""What a criterion cannot show of the rules judge."""


@dataclass(frozen=True)
class Criterion:
    """One condition. met: None where the run does not show it (not measured), which is as good as no.

    needed, found: in words, with counts. details: what stands against it, one id each; why: the threshold's reason.
    """

    name: str
    needed: str
    found: str
    met: bool | None
    details: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Fitness:
    """The verdict on a judge: fit only where every criterion is met."""

    judge: str
    criteria: tuple[Criterion, ...]

    @property
    def fit(self) -> bool:
        """True if every criterion is met."""
        return all(c.met for c in self.criteria)

    @property
    def words(self) -> str:
        """The verdict in one line."""
        return f"judge {self.judge}: {'fit' if self.fit else 'not fit'} for strict ACC"

    @property
    def reasons(self) -> list[str]:
        """Every reason against, one line a criterion."""
        return [
            f"{c.name}: {c.found}; needed: {c.needed}" + (f" ({'; '.join(c.details)})" if c.details else "")
            for c in self.criteria
            if not c.met
        ]

    def as_row(self) -> dict[str, Any]:
        """For fitness.json."""
        return {"judge": self.judge, "fit": self.fit, "verdict": self.words, "reasons": self.reasons,
                "criteria": [{**vars(c), "details": list(c.details)} for c in self.criteria]}  # fmt: skip

    def as_markdown(self) -> str:
        """For fitness.md: the verdict, the reasons against, all criteria with their thresholds and why."""
        state = {True: "met", False: "not met", None: "not measured"}
        lines = [f"# {self.words[0].upper()}{self.words[1:]}", ""]
        lines += ["Reasons against:", "", *(f"- {r}" for r in self.reasons), ""] if not self.fit else []
        lines += ["| Criterion | Needed | Found | |", "|---|---|---|---|"]
        lines += [f"| {c.name} | {c.needed} | {c.found} | {state[c.met]} |" for c in self.criteria]
        lines += ["", "Why these thresholds:", "", *(f"- {c.name}: {c.why}" for c in self.criteria)]
        return "\n".join(lines) + "\n"


def fitness(judge: str, measured: Sequence[Measure], gold: Rate, outcome_flips: Rate, rubric: Rubric) -> Fitness:
    """The verdict on a judge.

    measured: all measures, the gate's included; gold: `gold_passed`; outcome_flips: over untouched gold cases.
    """
    boxes = [b.id for b in rubric.boxes()]
    own = {m.id: m for m in measured if m.source == "judge"}
    deciding = {i: m for i in (*SEVERITY, *boxes) if (m := _deciding(measured, i))}
    measurable = [m for m in deciding.values() if m.answered and min(m.positives, m.held) >= LABELS]
    return Fitness(
        judge,
        (
            _marked(judge, _gold(gold)),
            _coverage([*JUDGED_L0, *boxes], own),
            _labels([*SEVERITY, *boxes], deciding),
            _limits("recall", RECALL, [(m.id, m.recall) for m in measurable]),
            _marked(judge, _limits("precision", PRECISION, [(m.id, m.precision) for m in measurable])),
            _repeats(outcome_flips),
        ),
    )


def _deciding(measured: Iterable[Measure], i: str) -> Measure | None:
    """What decides an id: both where gate and judge may each find it, else whoever answers it more often."""
    by_source = {m.source: m for m in measured if m.id == i}
    return by_source.get("both") or max(by_source.values(), key=lambda m: m.answered, default=None)


def _gold(gold: Rate) -> Criterion:
    met = None if gold.of < GOLD_CASES else gold.part >= GOLD_PASSED * gold.of
    return _criterion("gold cases passed", f"at least {GOLD_PASSED:.0%} of {GOLD_CASES} or more", _share(gold), met)


def _coverage(wanted: Sequence[str], own: Mapping[str, Measure]) -> Criterion:
    answers = Rate(sum(own[i].answered for i in wanted if i in own), sum(own[i].asked for i in wanted if i in own))
    silent = [i for i in wanted if i not in own or not own[i].answered]
    partly = [f"{i} {own[i].answered} of {own[i].asked}" for i in wanted if i not in silent and own[i].answered < own[i].asked]
    details = [f"never answered: {', '.join(silent)}"] if silent else []
    details += [f"sometimes unanswered: {', '.join(partly)}"] if partly else []
    found = f"{_share(answers)} answers; answers {len(wanted) - len(silent)} of {len(wanted)} ids at all"
    return _criterion("coverage", "every checkbox and every constraint left to a judge answered", found, not details, details)


def _labels(wanted: Sequence[str], deciding: Mapping[str, Measure]) -> Criterion:
    few = []
    for i in wanted:
        positives, held = (deciding[i].positives, deciding[i].held) if i in deciding else (0, 0)
        if min(positives, held) < LABELS:
            few.append(f"{i} {positives} and {held}")
    found = f"{len(wanted) - len(few)} of {len(wanted)} ids"
    details = [f"not measured: {', '.join(few)}"] if few else []
    return _criterion("labels", f"{LABELS} labelled failures and {LABELS} dialogues without, for each id", found, None if few else True, details)


def _limits(name: str, least: float, rates: Sequence[tuple[str, Rate]]) -> Criterion:
    """Met if every rate is; an id whose failures were never alleged has no precision, and its recall says so."""
    below = [
        f"{i} {_share(r)}" + (f" with an interval from {r.interval.low:.2f}" if r.value >= least else "")
        for i, r in rates
        if r.value is not None and r.interval is not None and (r.value < least or r.interval.low <= LOW_END)
    ]
    found = f"{len(rates) - len(below)} of {len(rates)} ids that are answered and measured"
    details = [f"below: {', '.join(below)}"] if below else []
    needed = f"at least {least:g}, lower end of the interval over {LOW_END:g}, for each id"
    return _criterion(name, needed, found, not below if rates else None, details)


def _repeats(flipped: Rate) -> Criterion:
    met = None if flipped.of < GOLD_CASES else flipped.part <= OUTCOME_FLIPS * flipped.of
    needed = f"another outcome in at most {OUTCOME_FLIPS:.0%} of {GOLD_CASES} or more pairs of judgings of a gold case"
    return _criterion("repeats", needed, _share(flipped), met)


def _marked(judge: str, criterion: Criterion) -> Criterion:
    """The criterion, which of the rules judge says in words what it cannot show; nothing was shown where nothing was measured."""
    if judge != RulesJudge.name or criterion.met is None:
        return criterion
    mark = "by construction" if criterion.name == "gold cases passed" else "partly by construction"
    return replace(criterion, found=f"{criterion.found}, {mark}", why=f"{criterion.why} {BY_CONSTRUCTION[criterion.name]}")


def _criterion(name: str, needed: str, found: str, met: bool | None, details: Sequence[str] = ()) -> Criterion:
    return Criterion(name, needed, found, met, tuple(details), WHY[name])


def _share(rate: Rate) -> str:
    return f"{rate.value:.3g} ({rate.part} of {rate.of})" if rate.value is not None else "none"
