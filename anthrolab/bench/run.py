"""Generating the dialogues of a run: the tested system against its reference partner, case by case."""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from anthrolab.bench.cases import case_ids, select_cases
from anthrolab.bench.effort import NO_LIMIT, Effort, cache_report
from anthrolab.bench.manifest import code_hash, library_versions, with_new
from anthrolab.bench.plan import (
    Job,
    Progress,
    begin_manifest,
    count,
    planned_dialogues,
    planned_jobs,
    troubles,
)
from anthrolab.bench.settings import NO_PACE, Limits, Pace, State
from anthrolab.bench.stage import Stage
from anthrolab.bench.store import Run, RunError
from anthrolab.bench.ticker import Ticker
from anthrolab.bench.workers import work_through
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.models.calls import CallLog
from anthrolab.models.client import ModelError
from anthrolab.models.engine import Engine
from anthrolab.models.opening import open_models
from anthrolab.models.systems import System, default_systems_path, find_partner, find_system, load_systems
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.runtime.seat import seats
from anthrolab.sync import run_async

MOST_SAMPLES = 10_000
"""Dialogues of one case; the plan of a run is held in memory."""

MOST = 8192
"""Dialogues at once, whatever the servers want."""


def generate(
    run_dir: Path,
    system: str,
    *,
    cases: int | Sequence[str] | None = None,
    samples: int = 1,
    partner: str | None = None,
    max_messages: int = 50,
    window: int = 12,
    pace: Pace = NO_PACE,
    summary: str = "rules",
    skills: Mapping[str, str] | None = None,
    seed: int = 0,
    systems_file: Path | None = None,
    cards_dir: Path | None = None,
    skills_dir: Path | None = None,
    effort: Effort = NO_LIMIT,
    progress: Progress = print,
) -> dict[str, int]:
    """Have every planned dialogue of a run that is not there yet; returns the manifest's counts.

    `cases` as in `select_cases`; `samples` dialogues per case; `partner` overrides the system's own partner;
    `summary`: who summarises what is older than `window` messages ("rules", "none" or a chat system); `skills`
    pins versions of skills (the newest otherwise).
    What is on disk is not asked for again. A dialogue whose model could not be reached, or that took too long or would
    have cost too much (`effort`), is a row of `failures.jsonl` and stays to be done. RunError if the folder belongs to a
    run with other settings.
    """
    if not 1 <= samples <= MOST_SAMPLES:
        raise RunError(f"--samples {samples}: at least 1 and at most {MOST_SAMPLES}")
    library = load_library(cards_dir or default_cards_dir())
    known = load_systems(systems_file or default_systems_path())
    tested = find_system(known, system)
    reference = find_partner(known, tested, partner)
    limits = Limits(max_messages=max_messages, window=window, pace=pace)
    state = State.of(skills_dir, cards_dir, skills or {}, summary, known)
    wanted = select_cases(library, cases)
    run = Run(run_dir)
    with run.locked():
        run.mend()
        picked = not (cases is None or isinstance(cases, int))
        manifest = begin_manifest(
            run, tested, reference, library, case_ids(wanted), samples, limits, state, seed, progress, picked=picked
        )
        jobs = planned_jobs(run, manifest, library)
        done = planned_dialogues(run, jobs)
        todo = [job for job in jobs if job.dialogue_id not in done]
        failures: list[dict[str, Any]] = []
        if todo:
            manifest["code"] = with_new(manifest["code"], code_hash())
            manifest["versions"] = with_new(manifest["versions"], library_versions())
            run.write_manifest({**manifest, "counts": count(jobs, done, failures)})
            progress(f"{tested.name} against {reference.name}: {len(todo)} of {len(jobs)} dialogues to have; {state.in_words()}")
            opened = effort.engine(run, *known.values())
            try:
                run_async(_have_all(run, todo, tested, reference, library, limits, state, seed, opened, effort, failures, progress))
            except KeyboardInterrupt:
                _settle(run, manifest, jobs, failures, progress)
                raise
        return _settle(run, manifest, jobs, failures, progress)


def _settle(
    run: Run, manifest: dict[str, Any], jobs: list[Job], failures: list[dict[str, Any]], progress: Progress
) -> dict[str, int]:
    """Put what is there in the order of the plan, and count it."""
    done = planned_dialogues(run, jobs)
    failures.sort(key=lambda f: str(f["dialogue_id"]))
    run.settle("dialogues.jsonl", (done[j.dialogue_id].to_line() for j in jobs if j.dialogue_id in done))
    run.settle("failures.jsonl", (json.dumps(f, ensure_ascii=False) for f in failures))
    counts = count(jobs, done, failures)
    run.write_manifest({**manifest, "counts": counts})
    progress(
        f"{run.path}: {counts['done']} of {counts['planned']} dialogues there, {counts['failed']} failed, "
        f"{counts['missing']} not tried"
    )
    return counts


async def _have_all(
    run: Run, todo: list[Job], tested: System, reference: System, library: Library, limits: Limits, state: State,
    seed: int, opened: AbstractAsyncContextManager[Engine], effort: Effort, failures: list[dict[str, Any]], progress: Progress,
) -> None:  # fmt: skip
    """Have the dialogues concurrently; adds a row to `failures` for each that could not be had."""
    async with open_models() as models, opened as engine:
        stage = await Stage.open(models, engine, tested, reference, limits, state)
        ticker = Ticker(len(todo), engine.meter)

        async def have(job: Job) -> None:
            log = CallLog(run.calls / f"{job.case.id}-{job.sample}.jsonl", engine)
            dialogue = await _have_one(job, stage, library, log, seed)
            run.add_dialogue(dialogue)
            ticker.finish(log.asked + log.answered)
            said = f"{len(dialogue.messages)} messages, {dialogue.stop}{troubles(dialogue)}"
            progress(f"  {job.name}: {said}   ({ticker.line()})")

        def failed(job: Job, e: ModelError) -> None:
            row = {"dialogue_id": job.dialogue_id, "fault": e.fault, "side": e.side, "system": e.system, "error": str(e)}
            failures.append(row)
            progress(f"  {job.name}: failed ({e.fault}): {e}")

        await work_through(
            todo, have, failed, most=_most(tested, reference), flows=models.flows, deadline_s=effort.deadline_s,
            beat=lambda: progress(f"  {ticker.line()}"),
        )  # fmt: skip
    for line in cache_report(engine):
        progress(line)


def _most(*systems: System) -> int:
    """How many dialogues may run at once. Each has at most two requests under way, of which the embedded server's slots
    (and its prefix cache) should hold both; for other servers it follows from what they want."""
    slots = [s.most_at_once for s in systems if s.embedded]
    return max(1, (min(slots) + 1) // 2) if slots else MOST


async def _have_one(job: Job, stage: Stage, library: Library, log: CallLog, seed: int) -> Dialogue:
    binding = library.bindings[job.case.binding]
    table = seats(
        library.personas[binding.persona_a],
        library.personas[binding.persona_b],
        library.scenarios[binding.scenario],
        memories=library.memories,
        skills=stage.state.skills,
    )
    salt = f"{seed}/{job.case.id}/{job.sample}"
    return await stage.play(
        job.dialogue_id, table, log, salt, tested_role=job.case.role, binding=binding.id, sample=job.sample
    )
