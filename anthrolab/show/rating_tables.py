"""Raters in print: how far each is, how far they agree, and how often they guess which side was a machine."""

from collections.abc import Iterable, Sequence

import polars as pl

from anthrolab.intervals import Rate
from anthrolab.judging.calibration.labels import HumanLabel
from anthrolab.judging.calibration.people import agreement
from anthrolab.judging.calibration.rater_pairs import RaterPair, agree_of, rater_pairs
from anthrolab.judging.calibration.rating import Questions
from anthrolab.judging.rubric import Rubric
from anthrolab.show.rating_guesses import Guess, best_single_guess, guessed_right
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table


def progress_table(labels: Sequence[HumanLabel], questions: Questions) -> PrintedTable:
    """What every rater answered and left unanswered of what is asked."""
    asked = set(questions.places())
    rows = []
    for rater in sorted({label.rater for label in labels}):
        own = [label for label in labels if label.rater == rater]
        here = [label for label in own if (label.dialogue, label.turn, label.box) in asked]
        said = sum(label.passed is not None for label in here)
        row = {"Rater": rater, "Yes or no": said, "Cannot say": len(here) - said, "Unanswered": len(asked) - len(here), "Not asked now": len(own) - len(here)}
        rows.append(row)
    columns = {"Rater": pl.String, "Yes or no": pl.Int64, "Cannot say": pl.Int64, "Unanswered": pl.Int64, "Not asked now": pl.Int64}
    return plain_table(
        "rating-progress", "Raters so far",
        ("" if rows else "Nobody has answered anything yet. ") + f"Of {len(asked)} questions on {len(questions.rated)} dialogues. Not asked now: answers under another choice of "
        "files, dialogues, turns or checkboxes; they are kept, and count for agreement.",
        pl.DataFrame(rows, schema=columns),
    )  # fmt: skip


def raters_agreement_table(labels: Sequence[HumanLabel], rubric: Rubric) -> PrintedTable:
    """Agreement among all raters, by checkbox."""
    pairs = rater_pairs(labels, rubric)
    rows = [
        {
            "Checkbox": a.box, "Failed": _rate(a.failed), "Rated twice": a.among.units, "Equal answers": _rate(agree_of(pairs, a.box)),
            "Alpha": NO_VALUE if a.among.value is None else f"{a.among.value:.2f}",
            "95% interval": f"{a.among.interval.low:.2f} to {a.among.interval.high:.2f}" if a.among.interval else NO_VALUE,
            "Ties": a.ties,
        }
        for a in agreement(labels, {}, rubric)
    ]  # fmt: skip
    columns = {"Checkbox": pl.String, "Failed": pl.String, "Rated twice": pl.Int64, "Equal answers": pl.String, "Alpha": pl.String, "95% interval": pl.String, "Ties": pl.Int64}
    return plain_table(
        "rating-agreement", "Agreement among raters",
        "Failed: answers that say no. Equal answers: of all that two raters gave to the same question. Alpha: Krippendorff's, nominal, "
        "interval by bootstrap over dialogues. Where almost nothing fails, alpha is low whatever the agreement.",
        pl.DataFrame(rows, schema=columns),
    )  # fmt: skip


def pairs_table(pairs: Sequence[RaterPair]) -> PrintedTable:
    """Every two raters with each other, over all checkboxes."""
    rows = [
        {
            "Raters": f"{p.rater}, {p.other}", "Agree": _rate(p.kappa.agree),
            "Kappa": NO_VALUE if p.kappa.value is None else f"{p.kappa.value:.2f}",
            "First: failed": _rate(p.kappa.failed_a), "Second: failed": _rate(p.kappa.failed_b),
        }
        for p in pairs if p.box == "all"
    ]  # fmt: skip
    return plain_table(
        "rating-pairs", "Every two raters with each other, all checkboxes",
        "Over what both answered; Cohen's kappa beside the shares that fail. By checkbox in raters.csv of judge-check.",
        pl.DataFrame(rows, schema=dict.fromkeys(("Raters", "Agree", "Kappa", "First: failed", "Second: failed"), pl.String)),
    )  # fmt: skip


def guesses_table(guesses: Iterable[Guess], questions: Questions) -> PrintedTable:
    """How often raters name exactly the sides that a machine played, by kind of dialogue."""
    guesses = list(guesses)
    rates = guessed_right(guesses, questions.loaded)
    always, right = best_single_guess(guesses, questions.loaded)
    baseline = f" Always saying {always}, without reading, would be right in {_rate(right)}." if rates else ""
    total = {"all": sum(rates.values(), Rate(0, 0))} if rates else {}
    rows = [{"Dialogues": kind, "Guessed right": _rate(rate, interval=True)} for kind, rate in [*rates.items(), *total.items()]]
    return plain_table(
        "rating-guesses", "Which side was a machine?",
        "Guesses that name exactly the sides that a machine played, with Wilson's 95% interval." + baseline + " Written dialogues are not counted.",
        pl.DataFrame(rows, schema=dict.fromkeys(("Dialogues", "Guessed right"), pl.String)),
    )  # fmt: skip


def _rate(rate: Rate, *, interval: bool = False) -> str:
    if rate.value is None:
        return NO_VALUE
    ends = rate.interval if interval else None
    return f"{rate.value:.2f} of {rate.of}" + (f" [{ends.low:.2f}, {ends.high:.2f}]" if ends else "")
