"""Generating the dialogues of a run: the tested system against its reference partner, case by case."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anthrolab.bench.cases import Case, case_ids, select_cases
from anthrolab.bench.manifest import check_same, code_hash, library_versions
from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.client import ModelClient, ModelError
from anthrolab.models.opening import model_identity, open_models
from anthrolab.models.systems import System, default_systems_path, find_partner, find_system, load_systems
from anthrolab.runtime.dialogue import Dialogue, Speaker, other
from anthrolab.runtime.policies import Player
from anthrolab.runtime.prompt import prompts_hash
from anthrolab.runtime.schedule import Rules
from anthrolab.runtime.seat import seats
from anthrolab.runtime.session import play
from anthrolab.sync import run_async

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """One dialogue to have: a case, which sample of it, and the id it will carry."""

    case: Case
    sample: int
    dialogue_id: str


@dataclass(frozen=True)
class Limits:
    """The scheduler's limits that do not depend on the scenario, and the verbatim window of the prompts."""

    max_messages: int = 50
    max_consecutive: int = 4
    max_delay_s: int = 600
    window: int = 12

    def __post_init__(self) -> None:
        for field, least in (("max_messages", 2), ("max_consecutive", 1), ("max_delay_s", 0), ("window", 1)):
            value = getattr(self, field)
            if value < least:
                raise RunError(f"--{field.replace('_', '-')} {value}: at least {least}")

    def rules(self, horizon_minutes: int) -> Rules:
        """The scheduler's rules for a scenario."""
        return Rules(
            horizon_s=60 * horizon_minutes,
            max_delay_s=self.max_delay_s,
            max_consecutive=self.max_consecutive,
            max_messages=self.max_messages,
        )


def generate(
    run_dir: Path,
    system: str,
    *,
    cases: int | None = None,
    samples: int = 1,
    partner: str | None = None,
    max_messages: int = 50,
    window: int = 12,
    seed: int = 0,
    systems_file: Path | None = None,
    cards_dir: Path | None = None,
    progress: Progress = print,
) -> dict[str, int]:
    """Have every planned dialogue of a run that is not there yet; returns the manifest's counts.

    `cases` as in `select_cases`; `samples` dialogues per case; `partner` overrides the system's own partner.
    What is on disk is not asked for again. A dialogue whose model could not be reached is a row of
    `failures.jsonl` and stays to be done. RunError if the folder belongs to a run with other settings.
    """
    if samples < 1:
        raise RunError(f"--samples {samples}: at least 1")
    library = load_library(cards_dir or default_cards_dir())
    known = load_systems(systems_file or default_systems_path())
    tested = find_system(known, system)
    reference = find_partner(known, tested, partner)
    limits = Limits(max_messages=max_messages, window=window)
    wanted = select_cases(library, cases)
    run = Run(run_dir)
    with run.locked():
        run.mend()
        manifest = _manifest(run, tested, reference, library, case_ids(wanted), samples, limits, seed, progress)
        jobs = planned_jobs(run, manifest, library)
        done = planned_dialogues(run, jobs)
        todo = [job for job in jobs if job.dialogue_id not in done]
        failures: list[dict[str, Any]] = []
        if todo:
            manifest["code"] = _with(manifest["code"], code_hash())
            manifest["versions"] = _with(manifest["versions"], library_versions())
            run.write_manifest({**manifest, "counts": _counts(jobs, done, failures)})
            progress(f"{tested.name} against {reference.name}: {len(todo)} of {len(jobs)} dialogues to have")
            work = _have_all(run, todo, tested, reference, library, limits, seed, progress)
            failures = run_async(work)
            done = planned_dialogues(run, jobs)
        run.settle("dialogues.jsonl", (done[j.dialogue_id].to_line() for j in jobs if j.dialogue_id in done))
        run.settle("failures.jsonl", (json.dumps(f, ensure_ascii=False) for f in failures))
        counts = _counts(jobs, done, failures)
        run.write_manifest({**manifest, "counts": counts})
        progress(
            f"{run.path}: {counts['done']} of {counts['planned']} dialogues there, {counts['failed']} failed, "
            f"{counts['missing']} not tried"
        )
    return counts


def planned_dialogues(run: Run, jobs: list[Job]) -> dict[str, Dialogue]:
    """The dialogues on disk; RunError if one of them is not of the plan (it would be lost on the next write)."""
    dialogues, planned = run.dialogues(), {job.dialogue_id for job in jobs}
    strange = next((d for d in dialogues if d not in planned), None)
    if strange is not None:
        raise RunError(
            f"{run.path / 'dialogues.jsonl'}: {strange} is not in the manifest's plan; move that line elsewhere "
            "(dialogues from elsewhere are gated with `anthrolab l0`)"
        )
    return dialogues


def _counts(jobs: list[Job], done: Mapping[str, Dialogue], failures: list[dict[str, Any]]) -> dict[str, int]:
    """The denominators: fixed by the plan, not by what survived."""
    missing = len(jobs) - len(done) - len(failures)
    return {"planned": len(jobs), "done": len(done), "failed": len(failures), "missing": missing}


def _with(seen: list[Any], now: Any) -> list[Any]:
    return seen if now in seen else [*seen, now]


def planned_jobs(run: Run, manifest: Mapping[str, Any], library: Library) -> list[Job]:
    """Every dialogue that the manifest plans, in order."""
    settings = manifest["settings"]
    by_id = {case.id: case for case in select_cases(library, None)}
    missing = [case_id for case_id in settings["cases"] if case_id not in by_id]
    if missing:
        raise RunError(f"{run.path}: the cards have no case {missing[0]}; give the --cards folder that the run was made with")
    return [
        Job(by_id[case_id], sample, f"{manifest['run']}-{case_id}-{sample}")
        for case_id in settings["cases"]
        for sample in range(settings["samples"])
    ]


def _manifest(
    run: Run, tested: System, reference: System, library: Library, wanted: list[str], samples: int,
    limits: Limits, seed: int, progress: Progress,
) -> dict[str, Any]:  # fmt: skip
    """The manifest of this run: begun now, or the one on disk if it agrees (its list of cases may grow)."""
    manifest: dict[str, Any] = {
        "run": run.name,
        "settings": {
            "system": tested.model_dump(mode="json"),
            "partner": reference.model_dump(mode="json"),
            "limits": limits.__dict__.copy(),
            "seed": seed,
            "samples": samples,
            "cases": wanted,
        },
        "hashes": {
            "cards": library.content_hash(),
            "prompts": prompts_hash(),
            "system": model_identity(tested),
            "partner": model_identity(reference),
        },
        "code": [],
        "versions": [],
        "counts": {},
        "judges": {},
    }
    run.check_own()
    # A run without a dialogue may begin again with other settings: a mended endpoint needs no new folder.
    if (run.path / "manifest.json").exists() and run.dialogues():
        old = run.manifest()
        check_same(old, manifest, str(run.path / "manifest.json"))
        before = old["settings"]["cases"]
        if len(wanted) < len(before):
            progress(f"{run.path}: plans {len(before)} cases already, and a plan does not shrink; for fewer use another --run")
        manifest["settings"]["cases"] = before + [c for c in wanted if c not in before]
        # A copied or renamed folder keeps its run's name: the ids of its dialogues begin with it.
        manifest |= {key: old[key] for key in ("run", "code", "versions", "counts", "judges")}
    elif not (run.path / "manifest.json").exists() and (run.path / "dialogues.jsonl").exists():
        raise RunError(f"{run.path}: holds dialogues but no manifest.json; use another --run, or remove the folder")
    run.write_manifest(manifest)
    return manifest


async def _have_all(
    run: Run, todo: list[Job], tested: System, reference: System, library: Library, limits: Limits, seed: int,
    progress: Progress,
) -> list[dict[str, Any]]:  # fmt: skip
    """Have the dialogues concurrently; returns a row for each that failed.

    Once an endpoint is unreachable no new dialogue is begun: the next one would fail the same way.
    """
    players = {s.name: Player(s, limits.max_delay_s, limits.window) for s in (tested, reference)}
    failures: list[dict[str, Any]] = []
    begun, finished, dead = time.monotonic(), 0, False
    async with open_models() as models:
        clients = {s.name: await models.client(s) for s in (tested, reference)}
        seats_free = asyncio.Semaphore(_tables(tested))

        async def have(job: Job) -> None:
            nonlocal finished, dead
            async with seats_free:
                if dead:
                    return
                try:
                    dialogue = await _have_one(run, job, tested, reference, players, clients, library, limits, seed)
                except ModelError as e:
                    dead = dead or e.fault == "unreachable"
                    failures.append({"dialogue_id": job.dialogue_id, "fault": e.fault, "error": str(e)})
                    progress(f"  {job.case.id}: failed ({e.fault}): {e}")
                    return
                run.add_dialogue(dialogue)
            finished += 1
            left = (time.monotonic() - begun) / finished * (len(todo) - finished)
            progress(
                f"  {job.case.id}: {len(dialogue.messages)} messages, {dialogue.stop}"
                f"   ({finished}/{len(todo)}, about {left:.0f} s left)"
            )

        async with asyncio.TaskGroup() as group:
            for job in todo:
                group.create_task(have(job))
    return sorted(failures, key=lambda f: str(f["dialogue_id"]))


def _tables(tested: System) -> int:
    """How many dialogues run at once. Each has at most two requests under way, of which the embedded server's
    slots (and its prefix cache) should hold both; other servers queue, and must never run dry."""
    return max(1, (tested.concurrency + 1) // 2) if tested.embedded else tested.concurrency


async def _have_one(
    run: Run, job: Job, tested: System, reference: System, players: Mapping[str, Player],
    clients: Mapping[str, ModelClient], library: Library, limits: Limits, seed: int,
) -> Dialogue:  # fmt: skip
    binding = library.bindings[job.case.binding]
    scenario = library.scenarios[binding.scenario]
    rules = limits.rules(scenario.horizon_minutes)
    table = seats(library.personas[binding.persona_a], library.personas[binding.persona_b], scenario)
    who: dict[Speaker, System] = {job.case.role: tested, other(job.case.role): reference}
    log = CallLog(run.calls / f"{job.case.id}-{job.sample}.jsonl")
    salt = f"{seed}/{job.case.id}/{job.sample}"
    policies = {
        s: players[who[s].name].sit(table[s], Recorded(clients[who[s].name], log), salt)
        for s in table
    }
    return await play(
        job.dialogue_id, table, policies, rules, evaluated_role=job.case.role, binding=binding.id, sample=job.sample
    )
