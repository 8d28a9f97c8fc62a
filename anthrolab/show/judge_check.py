"""A checked judge in print: the verdict and why, what it finds and misses, how steady it is, and people beside it."""

import polars as pl

from anthrolab.intervals import Rate
from anthrolab.judging.calibration.agreement import Kappa
from anthrolab.judging.calibration.check import Checked, RealChats
from anthrolab.judging.calibration.people import BoxAgreement
from anthrolab.judging.calibration.sensitivity import Bin
from anthrolab.show.coverage import L0_NAMES
from anthrolab.show.tables import NO_VALUE, PrintedTable, as_text, plain_table

MOST = 15
"""Checkboxes that the table of real chats shows."""

_RATES = "A rate of n, with its 95% interval (Wilson)."
_STATE = {True: "met", False: "not met", None: "not measured"}
_SOURCES = {"gate": "gate", "judge": "judge", "both": "gate or judge"}


def judge_check_tables(checked: Checked) -> list[PrintedTable]:
    """All tables that there is something for, in the order of reading."""
    tables = [fitness_table(checked), measures_table(checked), steadiness_table(checked)]
    if checked.agreement:
        tables += [agreement_table(checked), raters_table(checked)]
    return tables + ([real_table(checked, checked.real)] if checked.real else [])


def judge_check_text(checked: Checked) -> str:
    """All of it for a terminal: the verdict, each criterion with what stands against it, the tables."""
    lines = [checked.fitness.words]
    for c in checked.fitness.criteria:
        lines += [f"- {c.name}: {_STATE[c.met]}: {c.found}; needed: {c.needed}", *(f"    {detail}" for detail in c.details)]
    return "\n\n".join(["\n".join(lines), *(as_text(t) for t in judge_check_tables(checked)[1:])])


def fitness_table(checked: Checked) -> PrintedTable:
    """The criteria of fitness for strict ACC, with thresholds and what was found."""
    rows = [{"Criterion": c.name, "": _STATE[c.met], "Found": c.found, "Needed": c.needed} for c in checked.fitness.criteria]
    return plain_table(
        f"fitness-{checked.judge}", checked.fitness.words[0].upper() + checked.fitness.words[1:],
        f"Over {_set(checked)}, judged {_times(checked.repeats)}. Fit only where every criterion is met; what is not "
        "measured counts against.",
        pl.DataFrame(rows),
        [f"{c.name}: {c.why}" for c in checked.fitness.criteria] + [f"Against: {r}" for r in checked.fitness.reasons],
    )  # fmt: skip


def measures_table(checked: Checked) -> PrintedTable:
    """Recall, precision, false alarms, coverage and flips of every constraint and checkbox."""
    rows = []
    for m in checked.measures:
        row = {
            "Id": m.id,
            "Answered by": _SOURCES[m.source],
            "Recall": _rate(m.recall),
            "Precision": _rate(m.precision),
            "False alarms": f"{m.false_alarms} of {m.held}",
            "Coverage": f"{m.answered} of {m.asked}",
        }
        if checked.repeats > 1:
            pairs = checked.flips.get(m.id, Rate(0, 0))
            row["Flips"] = f"{pairs.part} of {pairs.of}" if m.source == "judge" else NO_VALUE
        rows.append(row)
    return plain_table(
        f"measures-{checked.judge}", f"What is found, missed and falsely alleged: judge {checked.judge}",
        f"{_RATES} {_shared(checked)} Recall: labelled failures found, an unanswered one is not found; so is one that is alleged in "
        f"another turn or message of its dialogue only ({sum(m.elsewhere for m in checked.measures)} such over all rows; `elsewhere` in measures.csv). Precision: alleged failures that are labelled ones; "
        "it depends on the set's mix. False alarms: dialogues in which the id holds and is alleged to fail. Coverage: answers "
        "given of those asked. Flips: pairs of judgings that differ.",
        pl.DataFrame(rows),
    )  # fmt: skip


def steadiness_table(checked: Checked) -> PrintedTable:
    """Recall and false alarms by place and length, and flips over repeats."""
    bins = [Bin(f"failure in the {b.label} of the dialogue", b.recall, b.false_alarms) for b in checked.position]
    rows = [
        {"Part": b.label, "Recall": _rate(b.recall), "False alarms": _rate(b.false_alarms), "Flips": NO_VALUE}
        for b in [*bins, *checked.dialogue_length, *checked.message_length]
    ]
    rows += [
        {"Part": part, "Recall": NO_VALUE, "False alarms": NO_VALUE, "Flips": _rate(rate)}
        for part, rate in (
            ("single answers, over repeats", sum(checked.flips.values(), Rate(0, 0))),
            ("strict outcome of untouched gold, over repeats", checked.outcome_flips),
        )
    ]
    return plain_table(
        f"steadiness-{checked.judge}", f"By place, length and repeat: judge {checked.judge}",
        f"{_RATES} {_shared(checked)} Over the ids that the judge answers at all. False alarms by dialogue: ids that hold and are alleged to fail; by message: "
        "single answers to turn checkboxes that hold. Parts differ in which ids they have, too.",
        pl.DataFrame(rows),
    )  # fmt: skip


def agreement_table(checked: Checked) -> PrintedTable:
    """Agreement among raters, and of the judge with their majority, by checkbox."""
    rows = [
        {
            "Checkbox": a.box, "Raters: failed": _short(a.failed), "Alpha among raters": _alpha(a), "Ties": a.ties,
            "Unanswered": a.unanswered, **_kappa(a.judge, "Majority"),
        }
        for a in checked.agreement
    ]  # fmt: skip
    return plain_table(
        f"agreement-{checked.judge}", f"Raters among themselves and judge {checked.judge} with their majority",
        "Krippendorff's alpha (nominal) over what two or more rated, with a 95% interval by bootstrap over dialogues; Cohen's kappa of the "
        "judge with the majority, ties left out. Where almost nothing fails, alpha and kappa are low whatever the agreement: read them "
        "beside the shares that fail.",
        pl.DataFrame(rows),
    )  # fmt: skip


def raters_table(checked: Checked) -> PrintedTable:
    """The judge with every single rater over all checkboxes."""
    rows = [{"Rater": rater, **_kappa(k, "Rater")} for rater, k in checked.agreement[0].by_rater.items()]
    return plain_table(
        f"raters-{checked.judge}", f"Judge {checked.judge} with each rater, all checkboxes",
        "Cohen's kappa beside the shares that fail; by checkbox in people.csv.", pl.DataFrame(rows),
    )  # fmt: skip


def real_table(checked: Checked, real: RealChats) -> PrintedTable:
    """What the given chats fail most, by the judge and by people."""
    questions = {b.id: b.question for b in checked.rubric.boxes()} | {i: L0_NAMES[i] for i in L0_NAMES}
    shown = [i for i, r in real.constraints.items() if r.part]
    shown += [i for i, r in real.by_judge.items() if r.part][:MOST]
    shown += [i for i, r in list(real.by_people.items())[:MOST] if r.part and i not in shown]
    rows = [
        {
            "Id": i, "Question": questions[i], "Gate": _rate(real.constraints.get(i)), "Judge": _rate(real.by_judge.get(i)),
            "People": _rate(real.by_people.get(i)),
        }
        for i in shown
    ]  # fmt: skip
    return plain_table(
        f"real-{checked.judge}", f"What the {real.dialogues} given dialogues fail most",
        f"{_RATES} Failed of answered: dialogues for a constraint, answers for a checkbox; people by majority. If real people wrote them, "
        "a checkbox that often fails here says something of the checkbox or of its judge.",
        pl.DataFrame(rows, schema=dict.fromkeys(("Id", "Question", "Gate", "Judge", "People"), pl.String)),
    )  # fmt: skip


def _kappa(k: Kappa, whose: str) -> dict[str, str]:
    return {
        f"{whose}: failed": _short(k.failed_b),
        "Judge: failed": _short(k.failed_a),
        "Agree": _rate(k.agree),
        "Kappa": NO_VALUE if k.value is None else f"{k.value:.2f}",
    }


def _alpha(a: BoxAgreement) -> str:
    if a.among.value is None:
        return f"{NO_VALUE} of {a.among.units}"
    ends = f" [{a.among.interval.low:.2f}, {a.among.interval.high:.2f}]" if a.among.interval else ""
    return f"{a.among.value:.2f} of {a.among.units}{ends}"


def _rate(rate: Rate | None) -> str:
    """`0.88 of 8 [0.53, 0.98]`; four places where there is that much to go by: one answer in 1000 matters to strict ACC."""
    if rate is None or rate.interval is None:
        return NO_VALUE
    places = 2 if rate.of < 1000 else 4
    return f"{rate.value:.{places}f} of {rate.of} [{rate.interval.low:.{places}f}, {rate.interval.high:.{places}f}]"


def _short(rate: Rate) -> str:
    return NO_VALUE if rate.value is None else f"{rate.value:.2f} of {rate.of}"


def _set(checked: Checked) -> str:
    return f"{checked.items} labelled dialogues made from {checked.sources} gold dialogues (either side of a chat is one)"


def _shared(checked: Checked) -> str:
    """What the intervals leave out: items made from one gold dialogue hang together."""
    return f"n counts within {_set(checked)}; items that share one are not independent, and Wilson's interval is too narrow for them."


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"
