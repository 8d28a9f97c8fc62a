"""Rounds of the closed loop (paper section 4.5): generate, judge, filter, repair, rewrite a skill, write training data.

Every step leaves its result in the loop's folder and takes what is there; the same command goes on after a kill, and
changes nothing once all rounds are there.
"""

import json
from collections import Counter
from pathlib import Path

from pydantic import Field, ValidationError

from anthrolab.bench.effort import NO_LIMIT, Effort
from anthrolab.bench.judge import judge_run
from anthrolab.bench.plan import Progress
from anthrolab.bench.run import generate
from anthrolab.cards.library import Library
from anthrolab.cards.skill import default_skills_dir, load_skills
from anthrolab.files import read_text, write_atomic
from anthrolab.loop.ab import SkillTest, run_ab
from anthrolab.loop.filter import Status
from anthrolab.loop.filtering import counted, filter_run, write_filtered
from anthrolab.loop.folder import FAILURES, FILTERED, Loop, LoopError, LoopSettings
from anthrolab.loop.records import failure_records, write_records
from anthrolab.loop.sft.entries import licence_of, loop_entries
from anthrolab.loop.sft.pool import PoolCounts, PoolSettings, write_pool
from anthrolab.loop.skill_files import Evolution, begin_skills, mend_skills, newest_pins
from anthrolab.loop.workshop import Files, Workshop
from anthrolab.loop.writer import repair_and_evolve
from anthrolab.runtime.dialogue import Record
from anthrolab.sync import run_async
from anthrolab.yaml_files import explain

SKILLS, DONE = "skills.json", "round.json"


class RoundReport(Record):
    """What a round came to. planned, done: dialogues; statuses: of the done ones; held_back: how many of these are of held-back
    bindings; repairs: rejected and invalid dialogues by what became of their repair; samples: training data of all rounds so far."""

    round: int = Field(ge=1)
    skills: dict[str, str]
    planned: int
    done: int
    statuses: dict[Status, int]
    held_back: int
    repairs: dict[str, int]
    evolution: str
    samples: dict[str, int]

    def in_words(self) -> str:
        """One line for the person who waits."""
        said = ", ".join(f"{count} {status}" for status, count in self.statuses.items())
        repaired = f" ({self.repairs['repaired']} of them repaired)" if self.repairs.get("repaired") else ""
        data = ", ".join(f"{count} {part}" for part, count in self.samples.items())
        return f"round {self.round}: {self.done} of {self.planned} dialogues: {said}{repaired}; skills: {self.evolution}; samples: {data}"


def have_rounds(
    folder: Path, settings: LoopSettings, rounds: int, *, files: Files = Files(), skills_dir: Path | None = None,  # noqa: B008 - frozen
    effort: Effort = NO_LIMIT, progress: Progress = print,
) -> list[RoundReport]:  # fmt: skip
    """See that the loop has its first `rounds` rounds; returns their reports.

    `skills_dir`: the skills that the loop begins with. LoopError if the folder holds a loop with other settings, or if a step
    could not be finished (a server that fails): the same command goes on from there.
    """
    if rounds < 1:
        raise LoopError(f"--rounds {rounds}: at least 1")
    loop = Loop(folder)
    shop = Workshop.open(loop, settings, files, effort, progress)
    with loop.locked():
        loop.begin(settings)
        begin_skills(loop.skills_dir, load_skills(skills_dir or default_skills_dir()))
        mend_skills(loop)
        return [_round(shop, number) for number in range(1, rounds + 1)]


def try_skills(folder: Path, number: int, *, files: Files = Files(), effort: Effort = NO_LIMIT, progress: Progress = print) -> SkillTest:  # noqa: B008 - frozen
    """The A/B of a round's skills (see `ab.run_ab`); what it costs counts with the whole loop."""
    loop = Loop(folder)
    shop = Workshop.open(loop, loop.settings(), files, effort, progress)
    with loop.locked():
        return run_ab(
            loop, number, rubric_file=files.rubric, systems_file=files.systems, cards_dir=files.cards,
            effort_for=shop.effort_for, progress=progress,
        )  # fmt: skip


def loop_pool(loop: Loop, library: Library, files: Files, *, upto: int) -> PoolCounts:
    """Write the training data of the rounds 1 to `upto`. The held-back pairs are held out."""
    settings = loop.settings()
    pool = PoolSettings(settings.sides, tuple(settings.held_back), settings.seed, settings.near, (licence_of(files.cards_dir),))
    return write_pool(loop.sft_dir, loop_entries(loop, library, upto=upto), pool)


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


def _round(shop: Workshop, number: int) -> RoundReport:
    there = read_report(shop.loop, number)
    if there is not None:
        return there
    loop, settings = shop.loop, shop.settings
    folder, run = loop.round_dir(number), loop.run(number)
    pins = _pins(loop, number)
    shop.progress(f"round {number}: skills {', '.join(f'{name} {version}' for name, version in pins.items())}")
    counts = generate(
        run.path, settings.system, cases=settings.cases, samples=settings.samples, partner=settings.partner,
        max_messages=settings.max_messages, window=settings.window, summary=settings.summary, skills=pins,
        seed=settings.seed + number - 1, systems_file=shop.files.systems, cards_dir=shop.files.cards, skills_dir=loop.skills_dir,
        effort=shop.effort_for(run), progress=shop.progress,
    )  # fmt: skip
    if counts["done"] < counts["planned"]:
        raise LoopError(f"{run.path}: {counts['planned'] - counts['done']} dialogues could not be had; mend what failed ({run.path / 'failures.jsonl'}) and give the same command again")
    judged = judge_run(
        run.path, settings.judge, rubric_file=shop.files.rubric, systems_file=shop.files.systems, cards_dir=shop.files.cards,
        effort=shop.effort_for(run), progress=shop.progress,
    )  # fmt: skip
    if judged["incomplete"]:
        raise LoopError(f"{run.path}: {judged['incomplete']} verdicts are not complete, since the judge could not be reached; give the same command again")
    filtered = filter_run(run, settings.judge, shop.library, shop.rubric, settings.thresholds)
    write_filtered(folder / FILTERED, filtered)
    scenarios = shop.library.all_scenarios()
    records = [r for f in filtered for r in failure_records(f, shop.rubric, shop.hints, scenarios, number)]
    write_records(folder / FAILURES, records)
    repairs, evolution = run_async(repair_and_evolve(shop, number, filtered)) if settings.writer else (Counter[str](), None)
    pool = loop_pool(loop, shop.library, shop.files, upto=number)
    report = RoundReport(
        round=number, skills=pins, planned=counts["planned"], done=counts["done"], statuses=counted(filtered),
        held_back=sum(f.binding in settings.held_back for f in filtered), repairs=dict(repairs), evolution=_said(evolution), samples={"train": pool.train, "held out": pool.held_out},
    )  # fmt: skip
    write_atomic(folder / DONE, json.dumps(report.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n")
    shop.progress(report.in_words())
    return report


def _pins(loop: Loop, number: int) -> dict[str, str]:
    """The versions of the skills that a round is made with: the newest when it began."""
    path = loop.round_dir(number) / SKILLS
    if not path.exists():
        write_atomic(path, json.dumps(newest_pins(loop)) + "\n")
    pins: dict[str, str] = json.loads(read_text(path))
    return pins


def _said(evolution: Evolution | None) -> str:
    """What became of the skills, for a line."""
    if evolution is None:
        return "no writer"
    if evolution.outcome == "rewritten":
        return f"{evolution.skill} {evolution.before} -> {evolution.after}"
    return {"refused": f"a rewrite of {evolution.skill} was refused", "no_target": "no failure to learn from"}[evolution.outcome]
