"""A second opinion on a run: two judges on the same dialogues, and one judge on the same dialogues twice.

How often judges agree bounds what the difference between two systems can mean; how often one judge answers otherwise the
next time is noise that no number of cases takes away.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anthrolab.bench.effort import NO_LIMIT, Effort
from anthrolab.bench.plan import Progress
from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.files import append_line, content_hash
from anthrolab.intervals import Rate
from anthrolab.judging.calibration.agreement import Kappa, kappa_by_cluster
from anthrolab.judging.calibration.judged import judge_each, open_judge, verdicts_in
from anthrolab.judging.calibration.measure import strict_outcome
from anthrolab.judging.calibration.sensitivity import flips, outcome_flips
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.judging.verdict import JUDGED_L0, Verdict
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.sync import run_async

OUTCOME, ALL = "strict acceptance", "all checkboxes"
"""Rows beside those of single checkboxes and constraints."""

RETESTS = "retests.jsonl"
"""Of a run folder: second verdicts by the judge that gave the first ones, one a line."""

SALT = "retest"


@dataclass(frozen=True)
class Agreement:
    """What two judges say of the same places.

    of: a checkbox, a constraint (passed: no violation), ALL, or OUTCOME (one place a dialogue).
    kappa: over the places that both answer; its interval resamples bindings (see `kappa_by_cluster`).
    one_only: places that only one of the two answers.
    """

    of: str
    kappa: Kappa
    one_only: int

    def no_kappa(self, a: str, b: str) -> str | None:
        """Why kappa says nothing, with the judges' names; None where it says something."""
        if not self.kappa.agree.of:
            return "nothing that both answer"
        words = {True: "passed", False: "failed"}
        one, two = self.kappa.one_kind
        if one is not None and one == two:
            return f"both always say {words[one]}"
        named = [f"{name} always says {words[kind]}" for name, kind in ((a, one), (b, two)) if kind is not None]
        return ", ".join(named) or None


@dataclass(frozen=True)
class Retest:
    """One judge twice over the same dialogues.

    judged: dialogues that it judged first; dialogues: those of them judged again; incomplete: those of these where a call
    got no answer. flips: by checkbox and constraint, answers that changed of those given both times; flips_all: over all
    checkboxes; outcome_flips: strict acceptances that changed.
    """

    judge: str
    judged: int
    dialogues: int
    incomplete: int
    flips: Mapping[str, Rate]
    flips_all: Rate
    outcome_flips: Rate


def agreements(
    a: Mapping[str, Verdict], b: Mapping[str, Verdict], bindings: Mapping[str, str], rubric: Rubric, *, seed: int = 0
) -> list[Agreement]:
    """Agreement of two judges over the dialogues (by id) that both judged.

    First OUTCOME and ALL, then every checkbox in the rubric's order, then the constraints that both judges answer at all.
    bindings: by dialogue id what is resampled together. The seed is the bootstrap's.
    """
    pairs: dict[str, dict[str, list[tuple[bool | None, bool | None]]]] = defaultdict(lambda: defaultdict(list))
    for key in (key for key in a if key in b):
        pairs[OUTCOME][bindings[key]].append((strict_outcome(a[key]), strict_outcome(b[key])))
        said_a, said_b = dict(_answers(a[key])), dict(_answers(b[key]))
        for place in {**said_a, **said_b}:
            pair = said_a.get(place), said_b.get(place)
            pairs[place[0]][bindings[key]].append(pair)
            if place[0] in rubric.dimension_of:
                pairs[ALL][bindings[key]].append(pair)
    boxes = [OUTCOME, ALL, *(box.id for box in rubric.boxes())]
    rows = [_agreement(i, pairs[i].values(), seed) for i in (*boxes, *JUDGED_L0)]
    return [row for row in rows if row.of in boxes or row.kappa.agree.of]


def retest_of(judge: str, first: Mapping[str, Verdict], second: Mapping[str, Verdict], rubric: Rubric) -> Retest:
    """What changed between two judgings, both by dialogue id; only dialogues judged twice count."""
    twice = [{key: verdicts[key] for key in first if key in second} for verdicts in (first, second)]
    found = flips(twice)
    boxes = [box.id for box in rubric.boxes()]
    return Retest(
        judge=judge,
        judged=len(first),
        dialogues=len(twice[0]),
        incomplete=sum(not verdict.complete for verdict in twice[1].values()),
        flips={i: found.get(i, Rate(0, 0)) for i in (*boxes, *(i for i in JUDGED_L0 if i in found))},
        flips_all=sum((found.get(i, Rate(0, 0)) for i in boxes), Rate(0, 0)),
        outcome_flips=outcome_flips(twice, twice[0]),
    )


def sample(ids: Iterable[str], n: int, seed: int) -> list[str]:
    """`n` of the ids, or all if there are fewer, in their order. A larger sample of the same seed holds the smaller one."""
    order = list(ids)
    drawn = sorted(order)
    random.Random(seed).shuffle(drawn)
    kept = set(drawn[:n])
    return [i for i in order if i in kept]


def retested(run: Run, first: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """The second verdicts on disk, by dialogue id, that are by the same judge, asked alike, on the same dialogue as the first."""
    second = {}
    for verdict in verdicts_in(run.path / RETESTS, Verdict):
        before = first.get(verdict.dialogue_id)
        if before is not None and _asked(before) == _asked(verdict):
            second[verdict.dialogue_id] = verdict
    return second


def retest(
    run_dir: Path,
    judge: str,
    dialogues: int,
    *,
    seed: int = 0,
    rubric_file: Path | None = None,
    systems_file: Path | None = None,
    cards_dir: Path | None = None,
    effort: Effort = NO_LIMIT,
    progress: Progress = print,
) -> Retest:
    """Have `dialogues` of the dialogues that a judge judged (drawn by the seed) judged by it again; what changed.

    Drawn from what the gate let pass and the judge judged completely. Every request is drawn anew. The second verdicts
    are kept in the run folder: the same command again asks for nothing that is there, one with more dialogues only for
    the further ones. What is counted are the dialogues of this draw. `effort`: what it may cost and take; a dialogue that took
    too long is incomplete.
    """
    if dialogues < 1:
        raise RunError(f"--dialogues {dialogues}: judge at least one again")
    run = Run(run_dir)
    run.manifest()  # before the lock, which would make the folder of a run that there is not
    with run.locked():
        run.mend()
        manifest = run.manifest()
        if judge not in manifest["judges"]:
            raise RunError(f"{run_dir}: not judged by {judge}; do: anthrolab judge {run_dir} --judge {judge}")
        rubric = load_rubric(rubric_file)
        first = _first(run, judge, rubric)
        library = load_library(cards_dir or default_cards_dir())
        if library.content_hash() != manifest["hashes"]["cards"]:
            raise RunError(f"{run_dir}: its cards are not those of this folder (changed since, or others); give theirs with --cards")
        chosen = sample(first, dialogues, seed)
        second = run_async(_judge_again(run, judge, first, chosen, library, rubric, systems_file, effort, progress))
        own = {key: second[key] for key in first if key in second}
        others = [v for v in verdicts_in(run.path / RETESTS, Verdict) if v.judge != judge]
        run.settle(RETESTS, [v.to_line() for v in [*others, *own.values()]])
    return retest_of(judge, first, {key: own[key] for key in chosen}, rubric)


async def _judge_again(
    run: Run, judge: str, first: Mapping[str, Verdict], chosen: Sequence[str], library: Library, rubric: Rubric,
    systems_file: Path | None, effort: Effort, progress: Progress,
) -> dict[str, Verdict]:  # fmt: skip
    """All second verdicts on disk after those on the chosen dialogues are there."""
    dialogues, calls = run.dialogues(), run.calls / f"retest-{judge}.jsonl"
    async with open_judge(judge, rubric, calls, systems_file, lambda systems: effort.engine(run, *systems)) as opened:
        again = opened.salted(SALT)
        if any(v.judge_identity != again.identity for v in first.values()):
            raise RunError(f"{run.path}: judge {judge} is not asked as it was (model, rubric, prompts or code are others now); judge the run again first")
        second = retested(run, first)
        there = {key for key, verdict in second.items() if verdict.complete}
        todo = [dialogues[key] for key in chosen if key not in there]
        progress(f"judge {judge} again: {len(todo)} of {len(chosen)} dialogues to judge")

        def keep(verdict: Verdict) -> None:
            kept = verdict.model_copy(update={"dialogue_hash": first[verdict.dialogue_id].dialogue_hash})
            append_line(run.path / RETESTS, kept.to_line())
            second[kept.dialogue_id] = kept

        await judge_each(again, todo, library, opened.at_once, keep, deadline_s=effort.deadline_s)
    return second


def _first(run: Run, judge: str, rubric: Rubric) -> dict[str, Verdict]:
    """The complete first verdicts; RunError if there are none, or some are of other dialogues or another rubric."""
    verdicts, dialogues = run.verdicts(judge), run.dialogues()
    for key, verdict in verdicts.items():
        if key not in dialogues or verdict.dialogue_hash != _hash(dialogues[key]) or verdict.rubric != rubric.hash:
            raise RunError(f"{run.path}: the verdict of {judge} on {key} is of another dialogue or rubric; judge the run again first")
    if not (complete := {key: verdict for key, verdict in verdicts.items() if verdict.complete}):
        raise RunError(f"{run.path}: judge {judge} has no complete verdict here; judge the run again first")
    return complete


def _agreement(of: str, clusters: Iterable[Sequence[tuple[bool | None, bool | None]]], seed: int) -> Agreement:
    pairs = list(clusters)
    both = [[(x, y) for x, y in cluster if x is not None and y is not None] for cluster in pairs]
    one_only = sum((x is None) != (y is None) for cluster in pairs for x, y in cluster)
    return Agreement(of, kappa_by_cluster(both, seed=seed), one_only)


def _answers(verdict: Verdict) -> Iterator[tuple[tuple[str, int | None], bool | None]]:
    """(id, turn) -> passed; of a constraint that it is not violated."""
    for turn in verdict.turns:
        yield from (((box.id, turn.turn_index), box.passed) for box in turn.boxes)
    yield from (((box.id, None), box.passed) for box in verdict.dialogue)
    yield from (((answer.id, None), None if answer.violated is None else not answer.violated) for answer in verdict.l0)


def _asked(verdict: Verdict) -> tuple[str, str, str, str | None]:
    return verdict.judge, verdict.judge_identity, verdict.rubric, verdict.dialogue_hash


def _hash(dialogue: Dialogue) -> str:
    return content_hash(dialogue.to_line())
