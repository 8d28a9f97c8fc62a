"""The run that judges a judge: a labelled set, people's labels and chats of real people, through the gate and the judge.

    <out>/verdicts.jsonl             every verdict and its repeat, as soon as it is there; nothing is ever removed
          calls/judge-NAME.jsonl     every call to a model judge
          measures.csv               one row an id and source
          fitness.json, fitness.md   fit for strict ACC or not, and why
          people.csv                 agreement of raters and judge, where there are human labels
          raters.csv                 agreement of every two raters with each other
          fails.csv                  what the given dialogues fail, where there are any

The same command again goes on where it stopped and asks nothing twice.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from anthrolab.cards.library import Library
from anthrolab.files import write_atomic
from anthrolab.intervals import Rate
from anthrolab.judging.calibration import sensitivity
from anthrolab.judging.calibration.fitness import Fitness, fitness
from anthrolab.judging.calibration.judged import CheckError, EngineFor, judge_repeatedly, locked, no_limit
from anthrolab.judging.calibration.labels import HumanLabel, read_labels
from anthrolab.judging.calibration.measure import Measure, answered_ids, gold_passed, measures, units
from anthrolab.judging.calibration.outside import read_dialogues
from anthrolab.judging.calibration.people import BoxAgreement, agreement, failed_by_judge, failed_by_people
from anthrolab.judging.calibration.rater_pairs import RaterPair, agree_of, rater_pairs
from anthrolab.judging.calibration.rating_files import check_texts
from anthrolab.judging.l0 import SEVERITY, L0Result
from anthrolab.judging.l0 import check as gate
from anthrolab.judging.labelled.items import UNTOUCHED, Labelled, applied, load_all_labelled, untouched
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.verdict import Verdict
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.runtime.written import load_gold
from anthrolab.sync import run_async


@dataclass(frozen=True)
class RealChats:
    """What chats from elsewhere fail: dialogues by constraint (rules of the gate), answers by checkbox, most first."""

    dialogues: int
    constraints: Mapping[str, Rate]
    by_judge: Mapping[str, Rate]
    by_people: Mapping[str, Rate]


@dataclass(frozen=True)
class Checked:
    """All that is known of a judge. Measures and sensitivities are of the first repeat, flips of all repeats.

    items: labelled dialogues judged, untouched ones included; sources: gold dialogues that they are made from (a gold
    dialogue as seen from either side is two). gold: untouched ones passed strictly.
    agreement, pairs: empty without human labels; real: None without dialogues from elsewhere.
    """

    judge: str
    judge_identity: str
    rubric: Rubric
    items: int
    sources: int
    repeats: int
    measures: list[Measure]
    flips: Mapping[str, Rate]
    gold: Rate
    outcome_flips: Rate
    position: list[sensitivity.Bin]
    dialogue_length: list[sensitivity.Bin]
    message_length: list[sensitivity.Bin]
    fitness: Fitness
    agreement: list[BoxAgreement]
    pairs: list[RaterPair]
    real: RealChats | None


def check_judge(
    judge: str, items: Sequence[Labelled], gold: Mapping[str, Dialogue], library: Library, rubric: Rubric, *, out: Path,
    repeats: int = 1, limit: int | None = None, labels_file: Path | None = None, dialogues_file: Path | None = None,
    systems_file: Path | None = None, engine_for: EngineFor = no_limit, deadline_s: float | None = None,
    progress: Callable[[str], None] = print,
) -> Checked:  # fmt: skip
    """Judge labelled dialogues `repeats` times and write what comes of it to the folder `out`.

    judge: "rules", or a system that serves as model judge. items, gold: the labelled set and its gold dialogues by
    binding. limit: that many labelled dialogues, of every id alike (those that people labelled besides).
    labels_file: answers of human raters (a file, or a folder of such files) about labelled dialogues or those of
    dialogues_file, which are judged once; RatingError if a folder made by blind rating was about other texts.
    engine_for, deadline_s: what it may cost, and how many seconds a verdict may take (see `judge_repeatedly`).
    """
    if repeats < 1:
        raise CheckError(f"--repeats {repeats}: judge at least once")
    if twice := [i for i, n in Counter(item.id for item in items).items() if n > 1]:
        raise CheckError(f"labelled set: the id {twice[0]} stands twice, and would count twice; rename one")
    real = read_dialogues(dialogues_file) if dialogues_file else {}
    dialogues = {item.id: applied(item, gold) for item in items} | real
    if clash := sorted({item.id for item in items} & set(real)):
        raise CheckError(f"{dialogues_file}: dialogue {clash[0]} is called like one of the labelled set; rename it")
    turns = {key: len(d.turns()) for key, d in dialogues.items()}
    labels = read_labels(labels_file, rubric, turns) if labels_file else []
    if labels_file and labels_file.is_dir():
        check_texts(labels_file, [dialogues[key] for key in sorted({label.dialogue for label in labels})])
    wanted = {item.id for item in spread(items, limit)} | {label.dialogue for label in labels} | set(real)
    dialogues = {key: d for key, d in dialogues.items() if key in wanted}
    if not dialogues:
        raise CheckError("nothing to judge: the labelled set is empty and no --dialogues are given")
    with locked(out):
        times = {key: 1 if key in real else repeats for key in dialogues}
        work = judge_repeatedly(
            judge, dialogues, times, library, rubric, out, systems_file=systems_file, progress=progress, engine_for=engine_for,
            deadline_s=deadline_s,
        )  # fmt: skip
        judged = run_async(work)
        kept = [item for item in items if item.id in dialogues]
        checked = _checked(kept, dialogues, judged, labels, list(real), library, rubric)
        _write(checked, out)
    progress(f"{out}: {checked.fitness.words}")
    return checked


def labelled_set(folder: Path, library: Library, rubric: Rubric) -> tuple[list[Labelled], dict[str, Dialogue]]:
    """The labelled set beside a folder's cards: untouched gold dialogues, then `labelled/*.jsonl`; and the gold dialogues.

    Both empty where the cards have no gold dialogues. LabelledError, WrittenError for files that cannot be used.
    """
    gold = load_gold(folder, library)
    items = untouched(gold, [*SEVERITY, *(b.id for b in rubric.boxes())])
    return items + (load_all_labelled(folder / "labelled") if gold else []), gold


def spread(items: Sequence[Labelled], limit: int | None) -> list[Labelled]:
    """The first `limit` items when every id that must fail has one by turns (what holds throughout counts as one more,
    and so do the untouched ones), in their order; all if None."""
    rounds: Counter[str] = Counter()
    order = []
    for place, item in enumerate(items):
        kind = item.fails[0].id if item.fails else UNTOUCHED if item.edit == UNTOUCHED else "holds"
        order.append((rounds[kind], place))
        rounds[kind] += 1
    return [items[place] for place in sorted(place for _, place in sorted(order)[:limit])]


def _checked(
    items: Sequence[Labelled], dialogues: Mapping[str, Dialogue], judged: Sequence[Mapping[str, Verdict]],
    labels: Sequence[HumanLabel], real: Sequence[str], library: Library, rubric: Rubric,
) -> Checked:  # fmt: skip
    first, scenarios = judged[0], library.all_scenarios()
    gates = {key: gate(d, d.cards_of(library.personas), scenarios.get(d.scenario or "")) for key, d in dialogues.items()}
    own = {item.id: first[item.id] for item in items}
    own_gates = {item.id: gates[item.id] for item in items}
    found = units(items, own, own_gates, rubric)
    measured = measures(found, own, own_gates, rubric)
    untouched_ids = [item.id for item in items if item.edit == UNTOUCHED]
    gold, answered = gold_passed(items, own, own_gates), answered_ids(measured)
    flipped = sensitivity.outcome_flips(judged, untouched_ids)
    name = next(iter(first.values()))
    return Checked(
        judge=name.judge,
        judge_identity=name.judge_identity,
        rubric=rubric,
        items=len(items),
        sources=len({(item.gold, item.role) for item in items}),
        repeats=len(judged),
        measures=measured,
        flips=sensitivity.flips(judged),
        gold=gold,
        outcome_flips=flipped,
        position=sensitivity.by_position(found, dialogues, answered),
        dialogue_length=sensitivity.by_dialogue_length(found, dialogues, answered),
        message_length=sensitivity.by_message_length(items, dialogues, own),
        fitness=fitness(name.judge, measured, gold, flipped, rubric),
        agreement=agreement(labels, first, rubric),
        pairs=rater_pairs(labels, rubric),
        real=_real([first[k] for k in real], [gates[k] for k in real], labels, rubric) if real else None,
    )


def _real(
    verdicts: Sequence[Verdict], gates: Sequence[L0Result], labels: Sequence[HumanLabel], rubric: Rubric
) -> RealChats:
    known = {v.dialogue_id for v in verdicts}
    constraints = {
        i: Rate(sum(any(v.id == i for v in g.violations) for g in gates), sum(i in g.executed for g in gates)) for i in SEVERITY
    }
    return RealChats(
        dialogues=len(verdicts),
        constraints={i: rate for i, rate in constraints.items() if rate.of},
        by_judge=failed_by_judge(verdicts, rubric),
        by_people=failed_by_people([label for label in labels if label.dialogue in known], rubric),
    )


def _write(checked: Checked, out: Path) -> None:
    write_atomic(out / "measures.csv", _csv([_row(m, checked.flips) for m in checked.measures]))
    write_atomic(out / "fitness.json", json.dumps(checked.fitness.as_row(), ensure_ascii=False, indent=1) + "\n")
    write_atomic(out / "fitness.md", checked.fitness.as_markdown())
    if checked.agreement:
        write_atomic(out / "people.csv", _csv([row for a in checked.agreement for row in _people_rows(a, agree_of(checked.pairs, a.box))]))
    if checked.pairs:
        write_atomic(out / "raters.csv", _csv([_pair_row(p) for p in checked.pairs]))
    if checked.real:
        by = {"gate": checked.real.constraints, "judge": checked.real.by_judge, "people": checked.real.by_people}
        write_atomic(out / "fails.csv", _csv([{"by": k, "id": i, **_rate("failed", r)} for k, rates in by.items() for i, r in rates.items()]))


def _row(m: Measure, flipped: Mapping[str, Rate]) -> dict[str, Any]:
    counts = {
        "id": m.id, "source": m.source, "positives": m.positives, "found": m.found, "missed": m.missed,
        "unanswered": m.unanswered, "elsewhere": m.elsewhere, "held": m.held, "false_alarms": m.false_alarms,
        "held_unanswered": m.held_unanswered,
    }  # fmt: skip
    pairs = flipped.get(m.id, Rate(0, 0)) if m.source == "judge" else Rate(0, 0)
    return counts | _rate("recall", m.recall) | _rate("precision", m.precision) | _rate("coverage", m.coverage) | _rate("flips", pairs)


def _people_rows(a: BoxAgreement, alike: Rate) -> list[dict[str, Any]]:
    low, high = (a.among.interval.low, a.among.interval.high) if a.among.interval else (None, None)
    common = {"box": a.box, "alpha": a.among.value, "alpha_low": low, "alpha_high": high, "rated_twice": a.among.units, **_rate("raters_agree", alike),
              "ties": a.ties, "unanswered": a.unanswered, **_rate("failed", a.failed)}  # fmt: skip
    return [
        common | {"rater": rater, "kappa": k.value, **_rate("agree", k.agree), **_rate("judge_failed", k.failed_a), **_rate("rater_failed", k.failed_b)}
        for rater, k in {"majority": a.judge, **a.by_rater}.items()
    ]


def _pair_row(p: RaterPair) -> dict[str, Any]:
    k = p.kappa
    return {"box": p.box, "rater": p.rater, "other": p.other, "kappa": k.value, **_rate("agree", k.agree),
            **_rate("rater_failed", k.failed_a), **_rate("other_failed", k.failed_b)}  # fmt: skip


def _rate(name: str, rate: Rate) -> dict[str, Any]:
    low, high = (rate.interval.low, rate.interval.high) if rate.interval else (None, None)
    return {name: rate.value, f"{name}_of": rate.of, f"{name}_low": low, f"{name}_high": high}


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    return pl.DataFrame(rows, infer_schema_length=None).write_csv(float_precision=6) if rows else ""
