"""A report at any time: of what a run has so far, while it goes on or after it was stopped, without touching it."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from anthrolab.bench.judge import judge_run
from anthrolab.bench.plan import count, planned_dialogues, planned_jobs
from anthrolab.bench.store import Run
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.judging.verdict import RULES
from anthrolab.show.measured import refuse_twins
from anthrolab.show.report import write_report


def write_partial_report(
    runs: Sequence[Path], out_dir: Path, *, rubric_file: Path | None = None, cards_dir: Path | None = None
) -> Path:
    """`write_report` of copies of the runs as they are now: gated, judged by the rules, and by model judges as far as these
    have come (nobody is asked). A case without a verdict counts as not judged."""
    library = load_library(cards_dir or default_cards_dir())
    refuse_twins(runs)
    said = []
    with tempfile.TemporaryDirectory(prefix="anthrolab-") as scratch:
        copies = [_copy(Run(Path(run)), Path(scratch)) for run in runs]
        for copy in copies:
            manifest = copy.manifest()
            jobs = planned_jobs(copy, manifest, library)
            done = planned_dialogues(copy, jobs)
            counts = count(jobs, done, [f for f in copy.rows("failures.jsonl") if f["dialogue_id"] not in done])
            copy.write_manifest({**manifest, "counts": counts})
            seen = f"{copy.name}: {counts['done']} of {counts['planned']} dialogues"
            for judge in dict.fromkeys([RULES, *(v.judge for v in copy.all_verdicts())]):
                judged = judge_run(
                    copy.path, judge, rubric_file=rubric_file, cards_dir=cards_dir, ask=False, progress=lambda _line: None
                )
                seen += f", {judged['judged']} judged by {judge}" if judge != RULES else ""
            said.append(seen)
        partial = f"Partial report: {'; '.join(said)}. What is not there yet may change every number below."
        return write_report([c.path for c in copies], out_dir, rubric_file=rubric_file, cards_dir=cards_dir, partial=partial)


def _copy(run: Run, scratch: Path) -> Run:
    manifest = run.manifest()
    copy = Run(scratch / run.name)
    copy.path.mkdir()
    for name in ("dialogues.jsonl", "verdicts.jsonl", "retests.jsonl", "failures.jsonl", "charges.jsonl"):
        if (run.path / name).exists():
            shutil.copy(run.path / name, copy.path)
    (copy.path / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False), encoding="utf-8")
    if run.calls.is_dir():
        copy.calls.symlink_to(run.calls.resolve(), target_is_directory=True)
    return copy
