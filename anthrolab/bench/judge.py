"""Judging a run: the gate on every dialogue, a judge on the valid ones, and the ledger of what they said."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anthrolab.bench.effort import NO_LIMIT, Effort, cache_report
from anthrolab.bench.judged import valid_by, write_judged
from anthrolab.bench.ledger import GLOBAL_DIMENSIONS, LOCAL_DIMENSIONS
from anthrolab.bench.manifest import code_hash, library_versions
from anthrolab.bench.plan import Progress, planned_dialogues, planned_jobs
from anthrolab.bench.store import Run, RunError
from anthrolab.bench.ticker import Ticker
from anthrolab.bench.workers import work_through
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.files import content_hash
from anthrolab.judging.calibration.judged import open_judge, raise_final
from anthrolab.judging.l0 import L0Result, check
from anthrolab.judging.llm import LLMJudge
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.judging.scores import coverage
from anthrolab.judging.verdict import RULES, Verdict
from anthrolab.models.client import FINAL_FAULTS, ModelError
from anthrolab.runtime.dialogue import Dialogue, Speaker
from anthrolab.sync import run_async

MOST = 1024
"""Dialogues judged at once, whatever the server wants."""

CALLS_EACH = 12
"""About how many requests a dialogue brings: one a turn, and one for the whole."""


def judge_run(
    run_dir: Path,
    judge: str = RULES,
    *,
    rubric_file: Path | None = None,
    systems_file: Path | None = None,
    cards_dir: Path | None = None,
    effort: Effort = NO_LIMIT,
    ask: bool = True,
    progress: Progress = print,
) -> dict[str, int]:
    """Gate and judge every dialogue of a run and write `ledgers/<judge>/`; returns counts.

    `judge` is "rules" or the name of a system that serves as model judge. Verdicts that are there under the same
    judge and rubric are not asked for again; incomplete ones (a call got no answer) are. `effort`: what it may cost and
    take; what took too long is unassessed. With `ask` False a model judge is not
    asked: the ledger holds what it has answered so far.
    """
    run = Run(run_dir)
    run.manifest()  # before the lock, which would make the folder of a run that there is not
    library = load_library(cards_dir or default_cards_dir())
    rubric = load_rubric(rubric_file)
    _check_dimensions(rubric)
    with run.locked():
        run.mend()
        manifest = run.manifest()
        if library.content_hash() != manifest["hashes"]["cards"]:
            raise RunError(f"{run.path}: its cards are not those of this folder (changed since, or others); give theirs with --cards, or make a new run")
        jobs = planned_jobs(run, manifest, library)
        dialogues = planned_dialogues(run, jobs)
        gate = {d.dialogue_id: _gate(d, library) for d in dialogues.values()}
        rows = [gate[j.dialogue_id].as_row(j.dialogue_id) for j in jobs if j.dialogue_id in gate]
        run.settle("gate.jsonl", (json.dumps(row, ensure_ascii=False) for row in rows))
        valid = [dialogues[j.dialogue_id] for j in jobs if j.dialogue_id in gate and gate[j.dialogue_id].valid]
        if ask or judge == RULES:
            work = _judge_all(run, judge, valid, library, rubric, systems_file, effort, progress)
            verdicts, described = run_async(work)
        else:
            verdicts = _judged_so_far(run, judge, valid, rubric)
            described = manifest["judges"].get(judge) or _unfinished(judge, verdicts)
        others = [v for v in run.all_verdicts() if v.judge != judge]
        run.settle("verdicts.jsonl", [v.to_line() for v in [*others, *verdicts.values()]])
        write_judged(run, judge, manifest, jobs, gate, verdicts, rubric)
        counted = [v for j in jobs if (v := verdicts.get(j.dialogue_id)) and valid_by(j, gate, verdicts)]
        seen = coverage(box for v in counted for box in v.boxes())
        counts = {
            "planned": len(jobs), "done": len(gate), "valid": len(counted), "judged": len(verdicts),
            "incomplete": len(valid) - sum(v.complete for v in verdicts.values()), "boxes": seen.total, "assessed": seen.assessed,
        }  # fmt: skip
        manifest["judges"][judge] = {
            **described, "rubric": rubric.hash, "rubric_name": rubric.name, "boxes": len(rubric.boxes()),
            "gate": content_hash(rows), "code": code_hash(), "versions": library_versions(), "counts": counts,
        }  # fmt: skip
        run.write_manifest(manifest)
    progress(
        f"{run.path}: judge {judge}: {counts['valid']} valid of {counts['done']} done ({counts['planned']} planned); "
        f"{counts['assessed']} of {counts['boxes']} checkboxes assessed"
    )
    return counts


def _check_dimensions(rubric: Rubric) -> None:
    """RunError if the rubric has dimensions that the ledger cannot hold: nothing is judged (and paid for) in vain."""
    for dimension in rubric.dimensions:
        fitting = LOCAL_DIMENSIONS if dimension.scope == "turn" else GLOBAL_DIMENSIONS
        if dimension.id not in fitting:
            raise RunError(
                f"rubric {rubric.name}: dimension {dimension.id} of scope {dimension.scope}: the ledger holds "
                f"{', '.join(fitting)} there; rename it (any number of checkboxes is fine)"
            )


def _gate(dialogue: Dialogue, library: Library) -> L0Result:
    return check(dialogue, *_cards(dialogue, library))


async def _judge_all(
    run: Run, name: str, valid: list[Dialogue], library: Library, rubric: Rubric, systems_file: Path | None,
    effort: Effort, progress: Progress,
) -> tuple[dict[str, Verdict], dict[str, Any]]:  # fmt: skip
    """All verdicts in the order of the plan, each on disk before it is counted, and what the judge was.

    A judge whose endpoint is unreachable, or that would cost too much, ends the command with its ModelError; what was
    judged before stays.
    """
    hashes = {d.dialogue_id: content_hash(d.to_line()) for d in valid}
    calls = run.calls / f"judge-{name}.jsonl"
    async with open_judge(name, rubric, calls, systems_file, lambda known: effort.engine(run, *known)) as opened:
        judge = opened.judge
        there = {
            key: v for key, v in run.verdicts(name).items()
            if v.complete and v.judge_identity == judge.identity and v.rubric == rubric.hash
            and v.dialogue_hash == hashes.get(key)
        }  # fmt: skip
        todo = [d for d in valid if d.dialogue_id not in there]
        if todo and name != RULES:
            progress(f"judge {name}: {len(todo)} of {len(valid)} valid dialogues to judge")
        ticker, ends = Ticker(len(todo), opened.engine.meter), []

        def keep(dialogue: Dialogue, verdict: Verdict) -> None:
            verdict = verdict.model_copy(update={"dialogue_hash": hashes[dialogue.dialogue_id]})
            run.add_verdict(verdict)
            there[dialogue.dialogue_id] = verdict

        async def one(dialogue: Dialogue) -> None:
            verdict = await judge.judge(dialogue, *_cards(dialogue, library))
            keep(dialogue, verdict)
            raise_final(verdict)
            if name != RULES:
                got = coverage(verdict.boxes())
                ticker.finish(sum(verdict.rungs.values()))
                progress(f"  {dialogue.dialogue_id}: {got.assessed} of {got.total} checkboxes   ({ticker.line()})")

        def failed(dialogue: Dialogue, e: ModelError) -> None:
            if e.fault in FINAL_FAULTS:
                ends.append(e)
                return
            assert isinstance(judge, LLMJudge)  # the rules judge asks nobody
            keep(dialogue, judge.unanswered(dialogue, *_cards(dialogue, library), e.fault, str(e)))
            progress(f"  {dialogue.dialogue_id}: not judged ({e.fault}): {e}")

        await work_through(
            todo, one, failed, most=MOST, flows=opened.flows, calls_each=CALLS_EACH, deadline_s=effort.deadline_s,
            beat=lambda: progress(f"  {ticker.line()}"),
        )  # fmt: skip
        for line in cache_report(opened.engine):
            progress(line)
        if ends:
            raise ends[0]
        verdicts = {d.dialogue_id: there[d.dialogue_id] for d in valid if d.dialogue_id in there}
        return verdicts, {"identity": judge.identity, **opened.described}


def _cards(dialogue: Dialogue, library: Library) -> tuple[dict[Speaker, Persona], Scenario | None]:
    return dialogue.cards_of(library.personas), library.scenarios.get(dialogue.scenario or "")


def _unfinished(name: str, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    """What can be said of a model judge whose command has not come to its end: the manifest does not name it yet."""
    identity = next((v.judge_identity for v in verdicts.values()), "")
    return {"kind": "model", "identity": identity, "system": {"name": name}}


def _judged_so_far(run: Run, name: str, valid: list[Dialogue], rubric: Rubric) -> dict[str, Verdict]:
    """The verdicts that fit, all by the judge as it was last asked (its model, prompts, ...)."""
    found = run.verdicts(name)
    last = next((v.judge_identity for v in reversed(found.values())), None)
    return {
        d.dialogue_id: v
        for d in valid
        if (v := found.get(d.dialogue_id)) and v.judge_identity == last and v.rubric == rubric.hash
        and v.dialogue_hash == content_hash(d.to_line())
    }  # fmt: skip
