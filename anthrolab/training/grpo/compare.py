"""Trainings side by side on their held-out cases: each against its own beginning, and against the first of them.

The pairs are the cases; the two cases of a binding go together (see loop/paired.py). One question is asked of each pair of
arms, that of the score; the p values of these questions are corrected for being many, and so is what else is compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from anthrolab.loop.paired import LEAST_BINDINGS, LEVEL, Outcome, Quantity, Verdict, compare, holm, verdict_of
from anthrolab.training.grpo.comparable import differences, policy_of, require_same
from anthrolab.training.grpo.files import Folder
from anthrolab.training.grpo.held_out import read_held_out
from anthrolab.training.manifest import read_manifest
from anthrolab.training.settings import TrainingError


@dataclass(frozen=True)
class Arm:
    """A training at one of its held-out steps. `planned`, `had`, `valid`: dialogues planned, those with a verdict, the valid ones."""

    run: str
    ablation: str
    step: int
    planned: int
    had: int
    valid: int


@dataclass(frozen=True)
class Pair:
    """Two arms compared, `after` minus `before`. quantities: the score first; its `holm` is corrected for all pairs of the
    comparison, that of the others for all quantities of this pair. verdict: what the corrected score says."""

    before: Arm
    after: Arm
    quantities: list[Quantity]
    verdict: Verdict

    @property
    def score(self) -> Quantity:
        return self.quantities[0]


@dataclass(frozen=True)
class Comparison:
    """step: the held-out step that all runs were compared at. gained: each run against its own step 0; against_first: every
    run but the first against the first, both at `step`. said: a sentence a pair; notes: what to bear in mind."""

    step: int
    cases: int
    bindings: int
    gained: list[Pair]
    against_first: list[Pair]
    said: list[str]
    notes: list[str]

    @property
    def pairs(self) -> list[Pair]:
        return [*self.gained, *self.against_first]


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest of a training; TrainingError where the folder is none."""
    manifest = read_manifest(Folder(folder).manifest)
    if not isinstance(manifest.get("settings"), dict):
        raise TrainingError(f"{folder}: holds no training (no manifest.json with settings); give the folder of `anthrolab grpo train`")
    return manifest


def held_out_by_step(folder: Path) -> dict[int, pl.DataFrame]:
    """The held-out cases of a training by the step at which they were judged, in order; empty where none were."""
    found = {}
    for path in sorted((folder / "held_out").glob("[0-9]*.parquet")):
        step = int(path.stem)
        try:
            found[step] = read_held_out(path.parent, [step])
        except (pl.exceptions.PolarsError, OSError) as e:
            fix = f"restore the file, or make it again from {path.stem}.jsonl beside it (write_held_out of what files.read_rollouts reads)"
            raise TrainingError(f"{path}: cannot be read ({str(e).splitlines()[0]}); {fix}") from e
    return found


def outcomes(frame: pl.DataFrame) -> list[Outcome]:
    """What the dialogues of a held-out step are compared by. One that was not had, or whose judge failed, has no value at all;
    an invalid one has none but being invalid and not accepted."""
    dimensions = [c for c in frame.columns if c.startswith("s_")]
    return [_outcome(row, dimensions) for row in frame.iter_rows(named=True)]


def compare_runs(folders: Sequence[Path], *, step: int | None = None, seed: int = 0) -> Comparison:
    """Compare trainings on their held-out cases, at `step` or else at the last held-out step that all of them have.

    TrainingError where a folder holds no training, where there is no common step after 0, or where the held-out cases, the
    judge, the partner, the rubric, the cards or the chats' settings differ: their difference would not be the training's.
    """
    if not folders:
        raise TrainingError("compare: names no training; give at least one folder")
    if len({f.resolve() for f in folders}) < len(folders):
        raise TrainingError("compare: names a training twice; give each folder once")
    names = _names(folders)
    manifests = [manifest_of(f) for f in folders]
    held_out = [held_out_by_step(f) for f in folders]
    require_same(folders, manifests)
    at = _common_step(folders, held_out, step)
    _require_same_cases(folders, held_out, at)
    arms = [[_arm(name, m, found[s], s) for s in (0, at)] for name, m, found in zip(names, manifests, held_out, strict=True)]
    values = [[outcomes(found[s]) for s in (0, at)] for found in held_out]
    dimensions = [c for c in held_out[0][at].columns if c.startswith("s_")]
    gained = [_pair(a, v, dimensions, seed) for a, v in zip(arms, values, strict=True)]
    first = [_pair([arms[0][1], a[1]], [values[0][1], v[1]], dimensions, seed) for a, v in zip(arms[1:], values[1:], strict=True)]
    pairs = _corrected([*gained, *first])
    frame = held_out[0][at]
    notes = _notes(names, manifests, held_out, at, [a for both in arms for a in both])
    said = [_sentence(p) for p in pairs]
    return Comparison(at, frame["case_id"].n_unique(), frame["binding"].n_unique(), pairs[: len(gained)], pairs[len(gained) :], said, notes)


def least_bindings(comparisons: int) -> int:
    """With fewer bindings no outcome at all gives a p value below LEVEL after Holm's correction for so many comparisons: the
    least p is 2 / 2^bindings, and the smallest of them is multiplied by their number."""
    least = LEAST_BINDINGS
    while comparisons * 2.0 ** (1 - least) >= LEVEL:
        least += 1
    return least


def _names(folders: Sequence[Path]) -> list[str]:
    """The folders' own names, with those above them where two are equal."""
    parts = [f.resolve().parts for f in folders]
    depth = 1
    while len({p[-depth:] for p in parts}) < len(parts):
        depth += 1
    return ["/".join(p[-depth:]) for p in parts]


def _outcome(row: dict[str, Any], dimensions: Sequence[str]) -> Outcome:
    valid = row["valid"]
    values: dict[str, float | None] = {"valid": None if valid is None else float(valid)}
    values["score"] = row["score"] if valid else None
    values["accepted"] = 0.0 if valid is False else None if valid is None or row["passed"] is None else float(row["passed"])
    return Outcome(row["case_id"], row["binding"], values | {d: row[d] if valid else None for d in dimensions})


def _common_step(folders: Sequence[Path], held_out: Sequence[dict[int, pl.DataFrame]], step: int | None) -> int:
    for folder, found in zip(folders, held_out, strict=True):
        if 0 not in found:
            raise TrainingError(f"{folder}: has no held-out cases of step 0; train with held_out_cases above 0")
        if step is not None and step not in found:
            raise TrainingError(f"{folder}: has no held-out cases of step {step}; there are: {', '.join(map(str, found))}")
    common = set.intersection(*(set(found) for found in held_out)) - {0}
    if step == 0 or not common:
        raise TrainingError(f"{folders[0]}: no step after 0 at which every run has judged its held-out cases; let the trainings go on")
    return max(common) if step is None else step


def _require_same_cases(folders: Sequence[Path], held_out: Sequence[dict[int, pl.DataFrame]], step: int) -> None:
    def cases(frame: pl.DataFrame) -> set[tuple[str, int]]:
        return set(frame.select("case_id", "sample").iter_rows())

    wanted = cases(held_out[0][0])
    for folder, found in zip(folders, held_out, strict=True):
        for at in (0, step):
            if differ := wanted ^ cases(found[at]):
                case, sample = min(differ)
                raise TrainingError(
                    f"{folder / 'held_out'}: step {at} has not the cases of {folders[0]}, step 0 (case {case}, sample {sample}, is in one only); "
                    "compare trainings with the same held_out_cases"
                )


def _arm(name: str, manifest: dict[str, Any], frame: pl.DataFrame, step: int) -> Arm:
    ablation = str((manifest.get("reward") or {}).get("ablation", "full"))
    return Arm(name, ablation, step, frame.height, frame.height - frame["valid"].null_count(), int(frame["valid"].sum() or 0))


def _pair(arms: Sequence[Arm], values: Sequence[Sequence[Outcome]], dimensions: Sequence[str], seed: int) -> Pair:
    found = compare(values[0], values[1], dimensions, seed=seed)
    named = [q.model_copy(update={"name": q.name.removeprefix("s_")}) for q in found]
    return Pair(arms[0], arms[1], named, "nothing to compare")


def _corrected(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with the p values of their scores corrected for all of them, and what each then says."""
    done = []
    for pair, p in zip(pairs, holm([pair.score.p for pair in pairs]), strict=True):
        score = pair.score.model_copy(update={"holm": p})
        valid = next(q for q in pair.quantities if q.name == "valid")
        verdict = verdict_of(score.model_copy(update={"p": p}), valid)
        done.append(Pair(pair.before, pair.after, [score, *pair.quantities[1:]], verdict))
    return done


def _sentence(pair: Pair) -> str:
    s = pair.score
    against = "its own step 0" if pair.before.run == pair.after.run else pair.before.run
    begin = f"{pair.after.run} against {against}: {pair.verdict}"
    if s.difference is None or s.holm is None:
        return f"{begin}."
    ends = f", 95% interval {s.low:+.1f} to {s.high:+.1f}" if s.low is not None and s.high is not None else ""
    return f"{begin}. Score {s.difference:+.1f} points{ends}, p = {s.holm:.3f} corrected; {s.cases} cases of {s.bindings} bindings."


def _notes(
    names: Sequence[str], manifests: Sequence[dict[str, Any]], held_out: Sequence[dict[int, pl.DataFrame]], step: int, arms: Sequence[Arm]
) -> list[str]:  # fmt: skip
    notes = []
    comparisons = 2 * len(names) - 1
    if held_out[0][step]["binding"].n_unique() < (least := least_bindings(comparisons)):
        notes.append(
            f"With {comparisons} comparisons, corrected for being many, fewer than {least} held-out bindings cannot tell any outcome from chance "
            f"at the {100 * LEVEL:.0f}% level."
        )
    for name, manifest, found in zip(names, manifests, held_out, strict=True):
        if max(found) > step:
            notes.append(f"{name} also has held-out cases of step {max(found)}; all runs are compared at step {step}.")
        if policy_of(manifest) != policy_of(manifests[0]):
            notes.append(f"{name} began with another policy than {names[0]}, so a difference between the two is not of the training alone.")
        if differ := differences(manifests[0], manifest):
            notes.append(f"{name} differs from {names[0]} in: {'; '.join(differ)}.")
    lost = [f"{arm.run}, step {arm.step}: {arm.planned - arm.had} of {arm.planned}" for arm in arms if arm.had < arm.planned]
    invalid = [f"{arm.run}, step {arm.step}: {arm.had - arm.valid} of {arm.had}" for arm in arms if arm.valid < arm.had]
    if lost:
        notes.append(f"Held-out dialogues that are not there or were not judged, and so in no number: {'; '.join(lost)}.")
    if invalid:
        notes.append(f"Invalid held-out dialogues, which are in no score: {'; '.join(invalid)}.")
    return notes
