"""The filter on a judged run: every dialogue of it with its result."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from anthrolab.bench.plan import planned_dialogues, planned_jobs
from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import Library
from anthrolab.errors import AnthrolabError
from anthrolab.files import content_hash, write_atomic
from anthrolab.judging.l0 import check
from anthrolab.judging.rubric import Rubric
from anthrolab.loop.filter import PAPER, Filtered, Status, Thresholds, filter_dialogue
from anthrolab.loop.rows import read_rows

STATUSES: tuple[Status, ...] = ("accepted", "rejected", "invalid", "undecided")


class FilteredError(AnthrolabError):
    """A file of filtered dialogues that cannot be used."""


def filter_run(run: Run, judge: str, library: Library, rubric: Rubric, thresholds: Thresholds = PAPER) -> list[Filtered]:
    """Every finished dialogue of a run, in the order of its plan, as the filter sees it by one judge's verdicts.

    RunError if the run was made with other cards, or is not judged so under this rubric. A verdict on another text of the
    dialogue counts for nothing.
    """
    manifest = run.manifest()
    if library.content_hash() != manifest["hashes"]["cards"]:
        raise RunError(f"{run.path}: its cards are not those of this folder; give theirs with --cards")
    described = manifest["judges"].get(judge)
    if described is None or described["rubric"] != rubric.hash:
        raise RunError(f"{run.path}: is not judged by {judge} under this rubric; run: anthrolab judge {run.path} --judge {judge}")
    jobs = planned_jobs(run, manifest, library)
    dialogues, verdicts, scenarios = planned_dialogues(run, jobs), run.verdicts(judge), library.all_scenarios()
    found = []
    for job in jobs:
        dialogue = dialogues.get(job.dialogue_id)
        if dialogue is None:
            continue
        verdict = verdicts.get(job.dialogue_id)
        if verdict is not None and (verdict.rubric, verdict.dialogue_hash) != (rubric.hash, content_hash(dialogue.to_line())):
            verdict = None
        gate = check(dialogue, dialogue.cards_of(library.personas), scenarios.get(dialogue.scenario or ""))
        found.append(Filtered.of(dialogue, filter_dialogue(dialogue, gate, verdict, rubric, thresholds)))
    return found


def counted(filtered: Iterable[Filtered]) -> dict[Status, int]:
    """How many dialogues of each status."""
    found = Counter(f.filter_result.status for f in filtered)
    return {status: found[status] for status in STATUSES}


def write_filtered(path: Path, filtered: Iterable[Filtered]) -> None:
    """Write them, one a line."""
    write_atomic(path, "".join(f.to_line() + "\n" for f in filtered))


def read_filtered(path: Path) -> list[Filtered]:
    """The filtered dialogues of a file; FilteredError names the line that is none."""
    return read_rows(path, Filtered, FilteredError, "remove the file and give the loop's command again")
