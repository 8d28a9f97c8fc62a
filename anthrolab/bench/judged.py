"""From gate and verdicts to the ledger of one judge: what is valid, and every checkbox as a row."""

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from anthrolab.bench.ledger import RUBRIC_FILE, write_ledger
from anthrolab.bench.plan import Job
from anthrolab.bench.store import Run
from anthrolab.files import write_atomic
from anthrolab.judging.l0 import SEVERITY, L0Result
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.scores import box_rows
from anthrolab.judging.verdict import Verdict


def valid_by(job: Job, gate: Mapping[str, L0Result], verdicts: Mapping[str, Verdict]) -> bool | None:
    """Validity of a planned case: None if it is not done, or valid by the gate and not judged; a fatal violation by
    rules or by the judge makes it False."""
    result = gate.get(job.dialogue_id)
    if result is None or not result.valid:
        return None if result is None else False
    verdict = verdicts.get(job.dialogue_id)
    if verdict is None:
        return None
    return not any(SEVERITY[v.id] == "fatal" for v in verdict.judge_violations())  # type: ignore[index]


def write_judged(
    run: Run, judge: str, manifest: Mapping[str, Any], jobs: list[Job], gate: Mapping[str, L0Result],
    verdicts: Mapping[str, Verdict], rubric: Rubric,
) -> None:  # fmt: skip
    """Write the ledger of a judge: every planned case, and the checkboxes of the valid ones that have a verdict."""
    system = manifest["settings"]["system"]["name"]
    cases = [
        {
            "system": system, "case_id": job.case.id, "sample": job.sample, "binding": job.case.binding,
            "role": job.case.role, "category": job.case.category, "valid": valid_by(job, gate, verdicts),
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
    weights = {d.id: d.weight for d in rubric.dimensions}
    write_atomic(run.ledger(judge) / RUBRIC_FILE, json.dumps({"name": rubric.name, "hash": rubric.hash, "weights": weights}))
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
