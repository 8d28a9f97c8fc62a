"""Judging a run: the gate on every dialogue, a judge on the valid ones, and the ledger of what they said."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import polars as pl

from anthrolab.bench.ledger import write_ledger
from anthrolab.bench.run import Job, Progress, planned_jobs
from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.cards.persona import Persona
from anthrolab.judging.l0 import SEVERITY, L0Result, check
from anthrolab.judging.llm import LLMJudge
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.judging.rules import RulesJudge
from anthrolab.judging.scores import box_rows, coverage
from anthrolab.judging.verdict import Judge, Verdict
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.opening import open_model
from anthrolab.models.systems import System, default_systems_path, find_system, load_systems
from anthrolab.runtime.dialogue import Dialogue, Speaker
from anthrolab.sync import run_async

RULES = "rules"
"""The name of the rules judge."""

JUDGE_TOKENS = 4096
"""The least length cap of a model judge's reply: 23 checkboxes with a reason each."""


def judge_run(
    run_dir: Path,
    judge: str = RULES,
    *,
    rubric_file: Path | None = None,
    systems_file: Path | None = None,
    cards_dir: Path | None = None,
    progress: Progress = print,
) -> dict[str, int]:
    """Gate and judge every dialogue of a run and write `ledgers/<judge>/`; returns counts.

    `judge` is "rules" or the name of a system that serves as model judge. Verdicts that are there under the same
    judge and rubric are not asked for again; incomplete ones (a call got no answer) are.
    """
    run = Run(run_dir)
    manifest = run.manifest()
    library = load_library(cards_dir or default_cards_dir())
    if library.content_hash() != manifest["hashes"]["cards"]:
        raise RunError(f"{run.path}: made with other cards; give their folder with --cards, or make a new run")
    rubric = load_rubric(rubric_file)
    with run.locked():
        run.mend()
        jobs = planned_jobs(run, manifest, library)
        dialogues = run.dialogues()
        gate = {d.dialogue_id: _gate(d, library) for d in dialogues.values()}
        run.settle(
            "gate.jsonl",
            (json.dumps(gate[j.dialogue_id].as_row(j.dialogue_id), ensure_ascii=False) for j in jobs if j.dialogue_id in gate),
        )
        valid = [dialogues[j.dialogue_id] for j in jobs if j.dialogue_id in gate and gate[j.dialogue_id].valid]
        verdicts, identity = run_async(_judge_all(run, judge, valid, library, rubric, systems_file, progress))
        others = [v for v in run.all_verdicts() if v.judge != judge]
        run.settle("verdicts.jsonl", [v.model_dump_json() for v in [*others, *verdicts.values()]])
        _write_ledger(run, judge, manifest, jobs, gate, verdicts, rubric)
        seen = coverage(box for v in verdicts.values() for box in v.boxes())
        counts = {
            "planned": len(jobs), "done": len(gate), "valid": sum(_valid(j, gate, verdicts) is True for j in jobs),
            "judged": len(verdicts), "incomplete": sum(not v.complete for v in verdicts.values()),
            "boxes": seen.total, "assessed": seen.assessed,
        }  # fmt: skip
        manifest["judges"][judge] = {
            "identity": identity, "rubric": rubric.hash, "rubric_name": rubric.name,
            "boxes": len(rubric.boxes()), "counts": counts,
        }  # fmt: skip
        run.write_manifest(manifest)
    progress(
        f"{run.path}: judge {judge}: {counts['valid']} valid of {counts['done']} done ({counts['planned']} planned); "
        f"{counts['assessed']} of {counts['boxes']} checkboxes assessed"
    )
    return counts


def _gate(dialogue: Dialogue, library: Library) -> L0Result:
    return check(dialogue, people(dialogue, library.personas), library.scenarios.get(dialogue.scenario or ""))


def people(dialogue: Dialogue, personas: Mapping[str, Persona]) -> dict[Speaker, Persona]:
    """The cards of a dialogue's speakers, where they are known."""
    return {s: personas[p.persona] for s, p in dialogue.speakers.items() if p.persona and p.persona in personas}


async def _judge_all(
    run: Run, name: str, valid: list[Dialogue], library: Library, rubric: Rubric, systems_file: Path | None,
    progress: Progress,
) -> tuple[dict[str, Verdict], str]:  # fmt: skip
    """All verdicts in the order of the plan; each is on disk before the next is counted."""
    async with _open_judge(run, name, rubric, systems_file) as (judge, concurrency):
        there = {
            key: v for key, v in run.verdicts(name).items()
            if v.complete and v.judge_identity == judge.identity and v.rubric == rubric.hash
        }  # fmt: skip
        todo = [d for d in valid if d.dialogue_id not in there]
        if todo and name != RULES:
            progress(f"judge {name}: {len(todo)} of {len(valid)} valid dialogues to judge")
        room = asyncio.Semaphore(concurrency)

        async def one(dialogue: Dialogue) -> None:
            async with room:
                scenario = library.scenarios.get(dialogue.scenario or "")
                verdict = await judge.judge(dialogue, people(dialogue, library.personas), scenario)
            run.add_verdict(verdict)
            there[dialogue.dialogue_id] = verdict
            if name != RULES:
                got = coverage(verdict.boxes())
                progress(f"  {dialogue.dialogue_id}: {got.assessed} of {got.total} checkboxes")

        async with asyncio.TaskGroup() as group:
            for dialogue in todo:
                group.create_task(one(dialogue))
        return {d.dialogue_id: there[d.dialogue_id] for d in valid}, judge.identity


@asynccontextmanager
async def _open_judge(
    run: Run, name: str, rubric: Rubric, systems_file: Path | None
) -> AsyncIterator[tuple[Judge, int]]:
    if name == RULES:
        yield RulesJudge(rubric), 1
        return
    system = find_system(load_systems(systems_file or default_systems_path()), name)
    async with open_model(system) as bare:
        client = Recorded(bare, CallLog(run.calls / f"judge-{name}.jsonl"))
        yield LLMJudge(client, system.model, rubric, name=name, params=judge_params(system)), system.concurrency


def judge_params(system: System) -> dict[str, Any]:
    """The request body of a system that serves as judge: temperature 0, and room for a reason per checkbox."""
    body = {**system.body(), "temperature": 0}
    if "max_tokens" in body:
        body["max_tokens"] = max(body["max_tokens"], JUDGE_TOKENS)
    return body


def _valid(job: Job, gate: Mapping[str, L0Result], verdicts: Mapping[str, Verdict]) -> bool | None:
    """Validity of a planned case: None if not done; a fatal violation by rules or by the judge makes it False."""
    result = gate.get(job.dialogue_id)
    if result is None:
        return None
    verdict = verdicts.get(job.dialogue_id)
    found = verdict.judge_violations() if verdict else []
    return result.valid and not any(SEVERITY[v.id] == "fatal" for v in found)  # type: ignore[index]


def _write_ledger(
    run: Run, judge: str, manifest: Mapping[str, Any], jobs: list[Job], gate: Mapping[str, L0Result],
    verdicts: Mapping[str, Verdict], rubric: Rubric,
) -> None:  # fmt: skip
    system = manifest["settings"]["system"]["name"]
    cases = [
        {
            "system": system, "case_id": job.case.id, "sample": job.sample, "binding": job.case.binding,
            "role": job.case.role, "category": job.case.category, "valid": _valid(job, gate, verdicts),
        }
        for job in jobs
    ]  # fmt: skip
    boxes = [
        {"system": system, "case_id": job.case.id, "sample": job.sample, **row._asdict()}
        for job, case in zip(jobs, cases, strict=True)
        if case["valid"] and job.dialogue_id in verdicts
        for row in box_rows(verdicts[job.dialogue_id], rubric)
    ]
    text, count = pl.String, pl.Int32
    write_ledger(
        run.ledger(judge),
        pl.DataFrame(cases, schema={
            "system": text, "case_id": text, "sample": count, "binding": text, "role": text, "category": text,
            "valid": pl.Boolean,
        }),
        pl.DataFrame(boxes, schema={
            "system": text, "case_id": text, "sample": count, "scope": text, "turn_index": count,
            "dimension": text, "checkbox": count, "passed": pl.Boolean,
        }),
    )  # fmt: skip
