"""Every two raters with each other: how often they say the same of the same checkbox, and Cohen's kappa. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from anthrolab.intervals import Rate
from anthrolab.judging.calibration.agreement import Kappa, kappa
from anthrolab.judging.calibration.labels import HumanLabel
from anthrolab.judging.calibration.people import Place
from anthrolab.judging.rubric import Rubric


@dataclass(frozen=True)
class RaterPair:
    """Two raters on one checkbox (or "all" of them), over what both answered; in `kappa`, a is `rater` and b `other`."""

    box: str
    rater: str
    other: str
    kappa: Kappa


def rater_pairs(labels: Sequence[HumanLabel], rubric: Rubric) -> list[RaterPair]:
    """All checkboxes together, then each in the rubric's order: a row for every two raters, by name, that both answered it.

    What only one of the two answered counts for nothing.
    """
    said: dict[str, dict[Place, bool]] = defaultdict(dict)
    for label in labels:
        if label.passed is not None:
            said[label.rater][label.dialogue, label.turn, label.box] = label.passed
    shared = {
        (one, two): [(place, said[one][place], said[two][place]) for place in said[one] if place in said[two]]
        for one, two in combinations(sorted(said), 2)
    }
    boxes = ["all", *(b.id for b in rubric.boxes())]
    rows = [
        RaterPair(box, one, two, kappa((a, b) for (_, _, i), a, b in both if box in ("all", i)))
        for box in boxes
        for (one, two), both in shared.items()
    ]
    return [row for row in rows if row.kappa.agree.of]


def agree_of(pairs: Iterable[RaterPair], box: str) -> Rate:
    """Equal answers to a checkbox (or "all") of those that two raters gave, every two raters counted."""
    return sum((p.kappa.agree for p in pairs if p.box == box), Rate(0, 0))
