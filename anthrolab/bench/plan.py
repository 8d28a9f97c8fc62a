"""The plan of a run: its dialogues, and the manifest that fixes them before anything is generated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anthrolab.bench.cases import Case, select_cases
from anthrolab.bench.manifest import begin
from anthrolab.bench.settings import Limits, State
from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import Library
from anthrolab.cards.scenario import CATEGORIES, Category
from anthrolab.models.systems import System
from anthrolab.runtime.dialogue import Dialogue, Speaker, other

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """One dialogue to have: a case, which sample of it, and the id it will carry."""

    case: Case
    sample: int
    dialogue_id: str

    @property
    def name(self) -> str:
        """Case and sample, for a line of progress."""
        return f"{self.case.id}-{self.sample}" if self.sample else self.case.id


def planned_jobs(run: Run, manifest: Mapping[str, Any], library: Library) -> list[Job]:
    """Every dialogue that the manifest plans, in order."""
    settings = manifest["settings"]
    if "chats" in settings:
        return chat_jobs(run, manifest)
    if "cases" not in settings:
        raise RunError(f"{run.path}: holds a series of sessions and no cases; `anthrolab l0` and `anthrolab timing` take it")
    by_id = {case.id: case for case in select_cases(library, None)}
    missing = [case_id for case_id in settings["cases"] if case_id not in by_id]
    if missing:
        raise RunError(f"{run.path}: the cards have no case {missing[0]}; give the --cards folder that the run was made with")
    return [
        Job(by_id[case_id], sample, f"{manifest['run']}-{case_id}-{sample}")
        for case_id in settings["cases"]
        for sample in range(settings["samples"])
    ]


def chat_jobs(run: Run, manifest: Mapping[str, Any]) -> list[Job]:
    """The chats with a person that a manifest names, in order. RunError for an entry that is none."""
    jobs = []
    for i, entry in enumerate(manifest["settings"]["chats"]):
        try:
            chat, role, category = (entry[key] for key in ("chat", "role", "category"))
            if role not in ("a", "b") or category not in CATEGORIES or not isinstance(chat, str):
                raise ValueError(f"{chat!r}, role {role!r}, category {category!r}")
        except (TypeError, KeyError, ValueError) as e:
            raise RunError(f"{run.path / 'manifest.json'}: settings.chats[{i}]: is no chat ({e}); restore the file") from e
        jobs.append(chat_job(manifest["run"], chat, role, category))
    return jobs


def planned_cases(settings: Mapping[str, Any]) -> list[str]:
    """The cases that a manifest's settings plan, by id; chats with a person are cases, too."""
    if "chats" in settings:
        return [f"{chat['chat']}-{chat['role']}" for chat in settings["chats"]]
    return list(settings["cases"])


def chat_job(run: str, chat: str, role: Speaker, category: Category) -> Job:
    """A chat with a person as a job: it is a case of its own, of no binding that others have."""
    case = Case(chat, role, category)
    return Job(case, 0, f"{run}-{case.id}-0")


def begin_manifest(
    run: Run, tested: System, reference: System, library: Library, wanted: list[str], samples: int,
    limits: Limits, state: State, seed: int, progress: Progress, *, picked: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """The manifest of this run: begun now, or the one on disk if it agrees (its list of cases may grow).

    `picked`: the cases were chosen one by one, for instance because they failed; the run stays marked as that.
    """
    settings = {"samples": samples, "cases": wanted}
    manifest, old = begin(run, tested, reference, library, limits, state, seed, settings, {})
    if picked or (old or {}).get("picked"):
        manifest["picked"] = True
    if old is not None:
        before = old["settings"]["cases"]
        if len(wanted) < len(before):
            progress(f"{run.path}: plans {len(before)} cases already, and a plan does not shrink; for fewer use another --run")
        manifest["settings"]["cases"] = before + [c for c in wanted if c not in before]
    run.write_manifest(manifest)
    return manifest


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


def troubles(dialogue: Dialogue) -> str:
    """What a line of progress says of replies that broke their contract and of summaries that failed; mostly nothing."""
    broken = {s: sum(a.error is not None for a in dialogue.asks or [] if a.speaker == s) for s in dialogue.speakers}
    own, theirs = broken[dialogue.evaluated_role], broken[other(dialogue.evaluated_role)]
    said = f"; broken replies: {own} of the tested side, {theirs} of the partner" if own or theirs else ""
    failed = [s.error for s in dialogue.summaries or [] if s.error]
    return said + (f"; {len(failed)} summaries failed ({failed[0]})" if failed else "")


def count(jobs: list[Job], done: Mapping[str, Dialogue], failures: list[dict[str, Any]]) -> dict[str, int]:
    """The denominators: fixed by the plan, not by what survived."""
    missing = len(jobs) - len(done) - len(failures)
    return {"planned": len(jobs), "done": len(done), "failed": len(failures), "missing": missing}
