"""Rounds of the closed loop (paper section 4.5): generate, judge, filter, repair, rewrite a skill, write training data.

Every step leaves its result in the loop's folder and takes what is there; the same command goes on after a kill, and
changes nothing once all rounds are there.
"""

import json
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pydantic import Field, ValidationError

from anthrolab.bench.effort import NO_LIMIT, Effort
from anthrolab.bench.judge import judge_run
from anthrolab.bench.plan import Progress
from anthrolab.bench.run import generate
from anthrolab.bench.settings import NO_SKILLS, skills_folder
from anthrolab.cards.library import Library
from anthrolab.cards.skill import load_skill, load_skills
from anthrolab.files import read_text, write_atomic
from anthrolab.loop.ab import SkillTest, run_ab
from anthrolab.loop.filter import Status
from anthrolab.loop.filtering import counted, filter_run, read_filtered, write_filtered
from anthrolab.loop.folder import FAILURES, FILTERED, REPAIRS, Loop, LoopError, LoopSettings
from anthrolab.loop.records import failure_records, write_records
from anthrolab.loop.repair import read_repairs
from anthrolab.loop.sft.entries import licence_of, loop_entries
from anthrolab.loop.sft.pool import PoolCounts, PoolSettings, write_pool
from anthrolab.loop.skill_files import Evolution, begin_skills, mend_skills, round_pins
from anthrolab.loop.workshop import Files, Workshop
from anthrolab.loop.writer import repair_and_evolve
from anthrolab.runtime.dialogue import Record
from anthrolab.sync import run_async
from anthrolab.yaml_files import explain

DONE = "round.json"

LASTING = ("rejected", "refusal", "empty", "no_reply", "not_json")
"""Faults of a model or a request that the same request would meet again."""


class RoundReport(Record):
    """What a round came to. planned, done: dialogues; missing: those that were not had, by fault; statuses: of the done ones;
    held_back: how many of these are of held-back bindings; repairs: rejected and invalid dialogues by what became of their
    repair; samples: training data of all rounds so far."""

    round: int = Field(ge=1)
    skills: dict[str, str]
    planned: int
    done: int
    missing: dict[str, int] = Field(default={})
    statuses: dict[Status, int]
    held_back: int
    repairs: dict[str, int]
    evolution: str
    samples: dict[str, int]

    def in_words(self) -> str:
        """One line for the person who waits."""
        said = ", ".join(f"{count} {status}" for status, count in self.statuses.items())
        missing = "".join(f", {count} not had ({fault})" for fault, count in self.missing.items())
        data = ", ".join(f"{count} {part}" for part, count in self.samples.items())
        return (
            f"round {self.round}: {self.done} of {self.planned} dialogues: {said}{missing}; {self.repairs.get('repaired', 0)} repaired; "
            f"skills: {self.evolution}; samples: {data}"
        )


def have_rounds(
    folder: Path, settings: LoopSettings, rounds: int, *, files: Files = Files(), skills_dir: Path | None = None,  # noqa: B008 - frozen
    go_on: bool = False, effort: Effort = NO_LIMIT, progress: Progress = print,
) -> list[RoundReport]:  # fmt: skip
    """See that the loop has its first `rounds` rounds; returns their reports.

    `skills_dir`: the skills that the loop begins with. LoopError if the folder holds a loop that was begun with other settings,
    cards, rubric, prompts or systems, or if a server failed in a step: the same command goes on from there. What a model will
    not do (LASTING faults) is counted and left; with `go_on` everything that failed is.
    """
    if rounds < 1:
        raise LoopError(f"--rounds {rounds}: at least 1")
    if skills_dir == NO_SKILLS:
        raise LoopError(f"--skills {NO_SKILLS}: a loop rewrites skills, so it needs some to begin with; name a folder or leave the option out")
    loop = Loop(folder)
    shop = Workshop.open(loop, settings, files, effort, progress)
    given = load_skills(skills_folder(skills_dir, files.cards))
    with loop.locked():
        conditions = shop.conditions()
        if skills_dir is not None or not loop.has_dialogues:
            conditions["skills"] = [skill.label for skill in given]
        loop.begin(shop.settings, conditions)
        begin_skills(loop.skills_dir, given)
        if not loop.has_dialogues and [load_skill(loop.skills_dir, s.name, s.version).label for s in given] != conditions["skills"]:
            raise LoopError(f"{loop.skills_dir}: holds other skills than those that the loop is to begin with; remove that folder")
        mend_skills(loop)
        finished = finished_rounds(loop)
        hurt = [n for n in finished if (report := read_report(loop, n)) is not None and not is_whole(loop, report)]
        reports = [_round(shop, number, go_on, hurt=number in hurt) for number in range(1, rounds + 1)]
        if hurt and max(hurt) <= rounds:  # the data that was written on the way lacks the later rounds
            loop_pool(loop, shop.library, files, upto=max(*finished, rounds))
        return reports


def try_skills(folder: Path, number: int, *, files: Files = Files(), effort: Effort = NO_LIMIT, progress: Progress = print) -> SkillTest:  # noqa: B008 - frozen
    """The A/B of a round's skills (see `ab.run_ab`); what it costs counts with the whole loop."""
    loop = Loop(folder)
    shop = Workshop.open(loop, loop.settings(), files, effort, progress)
    if number not in loop.rounds():
        raise LoopError(f"--round {number}: {folder} has {len(loop.rounds())} rounds; name one of them")
    with loop.locked():
        loop.check(shop.conditions())
        return run_ab(
            loop, number, rubric_file=files.rubric, systems_file=files.systems, cards_dir=files.cards,
            effort_for=shop.effort_for, progress=progress,
        )  # fmt: skip


def loop_pool(loop: Loop, library: Library, files: Files, *, upto: int) -> PoolCounts:
    """Write the training data of the rounds 1 to `upto`. The held-back pairs are held out."""
    settings = loop.settings()
    for number in range(1, upto + 1):
        report = read_report(loop, number)
        if report is not None and not is_whole(loop, report):
            raise LoopError(f"{loop.round_dir(number)}: its files are not what {DONE} counts; give the loop's `anthrolab loop run` command again, which makes them anew")
    pool = PoolSettings(settings.sides, tuple(settings.held_back), settings.seed, settings.near, (licence_of(files.cards_dir),))
    return write_pool(loop.sft_dir, loop_entries(loop, library, upto=upto), pool)


def is_whole(loop: Loop, report: RoundReport) -> bool:
    """Whether the files of a finished round are still what its report counts."""
    folder = loop.round_dir(report.round)
    if not (folder / FILTERED).exists() or not (folder / FAILURES).exists():
        return False
    outcomes = Counter(str(r.outcome) for r in read_repairs(folder / REPAIRS)) if (folder / REPAIRS).exists() else Counter[str]()
    return counted(read_filtered(folder / FILTERED)) == report.statuses and outcomes == Counter(report.repairs)


def finished_rounds(loop: Loop) -> list[int]:
    """The rounds that have their report."""
    return [n for n in loop.rounds() if read_report(loop, n) is not None]


def read_report(loop: Loop, number: int) -> RoundReport | None:
    """The report of a round; None if the round is not finished."""
    path = loop.round_dir(number) / DONE
    if not path.exists():
        return None
    try:
        return RoundReport.model_validate_json(read_text(path))
    except ValidationError as e:
        raise LoopError(f"{path}: {'; '.join(explain(e, RoundReport))}; remove it and give the command again") from e


def _round(shop: Workshop, number: int, go_on: bool, *, hurt: bool) -> RoundReport:
    there = read_report(shop.loop, number)
    if there is not None and not hurt:
        shop.progress(f"{there.in_words()} (finished before)")
        return there
    if hurt:
        shop.progress(f"round {number}: its files are not what {DONE} counts; they are made again from what is on disk")
    loop, settings = shop.loop, shop.settings
    folder, run = loop.round_dir(number), loop.run(number)
    pins = round_pins(loop, number)
    shop.progress(f"round {number}: skills {', '.join(f'{name} {version}' for name, version in pins.items())}")
    counts = generate(
        run.path, settings.system, cases=settings.cases, samples=settings.samples, partner=settings.partner,
        max_messages=settings.max_messages, window=settings.window, summary=settings.summary, skills=pins,
        seed=settings.seed + number - 1, systems_file=shop.files.systems, cards_dir=shop.files.cards, skills_dir=loop.skills_dir,
        effort=shop.effort_for(run), progress=shop.progress,
    )  # fmt: skip
    missing = Counter(str(row["fault"]) for row in run.rows("failures.jsonl"))
    _stop(missing, f"{run.path / 'failures.jsonl'}: dialogues could not be had", go_on)
    if not counts["done"]:
        raise LoopError(f"{run.path / 'failures.jsonl'}: not one dialogue could be had, so there is no round; mend what failed and give the same command again")
    planned = {str(case).rsplit("-", 1)[0] for case in run.manifest()["settings"]["cases"]}
    if settings.held_back and planned.isdisjoint(settings.held_back):
        shop.progress(f"round {number}: none of its cases is of a held-back binding, so no sample will be held out; give more cases")
    judged = judge_run(
        run.path, settings.judge, rubric_file=shop.files.rubric, systems_file=shop.files.systems, cards_dir=shop.files.cards,
        effort=shop.effort_for(run), progress=shop.progress,
    )  # fmt: skip
    if judged["incomplete"]:
        faults = Counter(fault for v in run.verdicts(settings.judge).values() for fault in v.model_faults())
        _stop(faults, f"{run.path}: {judged['incomplete']} verdicts are not complete", go_on)
    filtered = filter_run(run, settings.judge, shop.library, shop.rubric, settings.thresholds)
    write_filtered(folder / FILTERED, filtered)
    scenarios = shop.library.all_scenarios()
    records = [r for f in filtered for r in failure_records(f, shop.rubric, shop.hints, scenarios, number)]
    write_records(folder / FAILURES, records)
    repairs, evolution = Counter[str](), None
    if settings.writer is not None:
        with run.locked():  # repairs are judged into the log of the run's judge
            stop = partial(_stop, what=f"{folder / REPAIRS}: repairs got no answer", go_on=go_on)
            repairs, evolution = run_async(repair_and_evolve(shop, number, filtered, stop))
    pool = loop_pool(loop, shop.library, shop.files, upto=number)
    report = RoundReport(
        round=number, skills=pins, planned=counts["planned"], done=counts["done"], missing=dict(missing), statuses=counted(filtered),
        held_back=sum(f.binding in settings.held_back for f in filtered), repairs=dict(repairs), evolution=_said(evolution), samples={"train": pool.train, "held out": pool.held_out},
    )  # fmt: skip
    write_atomic(folder / DONE, json.dumps(report.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n")
    shop.progress(report.in_words())
    return report


def _stop(faults: Mapping[str, int], what: str, go_on: bool) -> None:
    """LoopError if some of what failed may go well the next time, unless it is to be left."""
    passing = {fault: count for fault, count in faults.items() if fault not in LASTING}
    if passing and not go_on:
        said = ", ".join(f"{count} {fault}" for fault, count in passing.items())
        raise LoopError(f"{what} ({said}); mend the server and give the same command again, or leave them out with --go-on")


def _said(evolution: Evolution | None) -> str:
    """What became of the skills, for a line."""
    if evolution is None:
        return "no writer"
    if evolution.outcome == "rewritten":
        return f"{evolution.skill} {evolution.before} -> {evolution.after}"
    return {
        "refused": f"a rewrite of {evolution.skill} was refused", "no_target": "no failure to learn from",
        "superseded": f"{evolution.skill} is another text by now, so it stays",
    }[evolution.outcome]  # fmt: skip
