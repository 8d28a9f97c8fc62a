"""Reading what a report shows of a run: its ledger by one judge, with the dialogues, verdicts and gate rows behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from anthrolab.bench.ledger import Ledger, read_ledger
from anthrolab.bench.spend import Outlay, read_spend
from anthrolab.bench.store import Run, RunError
from anthrolab.files import content_hash
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.judging.verdict import Verdict
from anthrolab.runtime.dialogue import Dialogue


@dataclass(frozen=True)
class Measured:
    """One run as one judge saw it.

    path: the run's folder. gate: rows of gate.jsonl by dialogue id (`L0Result.as_row`); failures: rows of failures.jsonl, each with
    dialogue_id, fault and error.
    """

    run: str
    judge: str
    manifest: Mapping[str, Any]
    ledger: Ledger
    dialogues: Mapping[str, Dialogue]
    verdicts: Mapping[str, Verdict]
    gate: Mapping[str, Mapping[str, Any]]
    failures: Sequence[Mapping[str, Any]]
    rubric: Rubric
    path: Path

    @cached_property
    def spends(self) -> list[Outlay]:
        """What each system did in the run, from its call logs."""
        return read_spend(Run(self.path))

    @property
    def system(self) -> str:
        """Name of the tested system."""
        return str(self.manifest["settings"]["system"]["name"])

    @property
    def with_people(self) -> bool:
        """Whether a person took the other side (a folder of `anthrolab chat`)."""
        return "chats" in self.manifest["settings"]

    @property
    def partner(self) -> str:
        """Name of the reference partner."""
        return str(self.manifest["settings"]["partner"]["name"])

    @property
    def judge_label(self) -> str:
        """What print calls the judge."""
        return "rules judge" if self.judge == "rules" else self.judge

    @property
    def weights(self) -> dict[str, float]:
        """The rubric's weights by dimension."""
        return {d.id: d.weight for d in self.rubric.dimensions}

    @cached_property
    def _rows(self) -> dict[tuple[str, int], Mapping[str, Any]]:
        return {(r["case_id"], r["sample"]): r for r in self.ledger.cases.iter_rows(named=True)}

    def case(self, dialogue: Dialogue) -> Mapping[str, Any]:
        """The ledger's row of a dialogue of this run."""
        key = (f"{dialogue.binding}-{dialogue.evaluated_role}", dialogue.sample)
        if key not in self._rows:
            raise RunError(f"run {self.run}: the ledger of judge {self.judge} has no case {key[0]}; judge the run again")
        return self._rows[key]


def load_measured(run_dir: Path, judge: str, rubric: Rubric | None = None) -> Measured:
    """A run and one of its ledgers; RunError if it was judged under another rubric, or before the last dialogues."""
    run = Run(run_dir)
    manifest = run.manifest()
    rubric = rubric or load_rubric()
    again = f"judge it again: anthrolab judge {run_dir} --judge {judge}"
    if judge not in manifest["judges"]:
        raise RunError(f"{run_dir}: not judged by {judge}; do: anthrolab judge {run_dir} --judge {judge}")
    judged = manifest["judges"][judge]
    if judged["rubric"] != rubric.hash:
        raise RunError(
            f"{run_dir}: judge {judge} used the rubric {judged['rubric_name']} ({judged['rubric']}), not {rubric.name} "
            f"({rubric.hash}); give that rubric's file, or {again}"
        )
    if any(judged["counts"][key] != manifest["counts"].get(key) for key in ("planned", "done")):
        raise RunError(f"{run_dir}: has dialogues that judge {judge} has not seen; {again}")
    gate = {row["dialogue_id"]: row for row in run.rows("gate.jsonl")}
    dialogues, verdicts = run.dialogues(), run.verdicts(judge)
    if set(gate) != set(dialogues) or content_hash(list(gate.values())) != judged["gate"]:
        raise RunError(f"{run_dir / 'gate.jsonl'}: is not what judge {judge} went by; {again}")
    changed = [k for k, v in verdicts.items() if k not in dialogues or v.dialogue_hash != content_hash(dialogues[k].to_line())]
    if changed:
        raise RunError(f"{run_dir}: dialogue {changed[0]} is not what judge {judge} saw; {again}")
    return Measured(
        run=run.name,
        judge=judge,
        manifest=manifest,
        ledger=read_ledger(run.ledger(judge)),
        dialogues=dialogues,
        verdicts=verdicts,
        gate=gate,
        failures=run.rows("failures.jsonl"),
        rubric=rubric,
        path=run_dir,
    )


def load_all(run_dir: Path, rubric: Rubric | None = None) -> list[Measured]:
    """A run as each of its judges saw it; RunError if none has."""
    judges = Run(run_dir).judges()
    if not judges:
        if "series" in Run(run_dir).manifest()["settings"]:
            raise RunError(f"{run_dir}: holds a series of sessions and no cases; `anthrolab timing` and `anthrolab l0` take it")
        begun = next((v.judge for v in reversed(Run(run_dir).all_verdicts())), None)
        if begun:
            raise RunError(f"{run_dir}: judge {begun} has not come to its end; go on with anthrolab judge {run_dir} --judge {begun}, or give --partial")
        raise RunError(f"{run_dir}: not judged yet; do: anthrolab judge {run_dir} --judge rules")
    return [load_measured(run_dir, judge, rubric) for judge in judges]


def with_people(measured: Measured) -> str:
    """What is to be said of a run of chats with a person."""
    tried = sum(bool((d.model_extra or {}).get("rewinds")) for d in measured.dialogues.values())
    return (
        f"Run {measured.run}: chats with a person, who said what they liked, and not with a reference partner. No two of its cases are alike, so it "
        f"is compared with no other run. In {tried} of {len(measured.dialogues)} chats the person went back and tried again: these were picked, not drawn."
    )


def picked_cases(measured: Measured) -> list[str]:
    """What is to be said of a run whose cases were chosen one by one; nothing of any other."""
    if not measured.manifest.get("picked"):
        return []
    return [
        f"Run {measured.run}: its cases were picked from a file, for instance because they had failed. Its numbers are no score of "
        f"{measured.system}; compare them with the same cases of another run."
    ]


def refuse_twins(runs: Sequence[Path]) -> None:
    """RunError if two run folders have the same name."""
    names = [Path(run).resolve().name for run in runs]
    if len(set(names)) < len(names):
        raise RunError(f"two run folders have the same name ({', '.join(names)}); rename one, reports tell runs by name")
