"""The judged dialogues that settings of the reward are tried on, and what may stand for their groups."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from anthrolab.bench.ledger import Ledger, read_ledger, read_weights
from anthrolab.bench.scores import PAPER_WEIGHTS
from anthrolab.bench.store import Run
from anthrolab.errors import AnthrolabError
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.show.failure_sources import PUBLISHED
from anthrolab.show.measured import load_measured
from anthrolab.training.reward.batch import Batch, Dimensions, Floats
from anthrolab.training.reward.capability import Capability
from anthrolab.training.reward.ledger import LedgerBatch, initial_scores

Rows = npt.NDArray[np.intp]
_COLUMNS = {"system": pl.String, "case_id": pl.String, "sample": pl.Int64, "category": pl.String}


class NoDialoguesError(AnthrolabError):
    """Nothing that a setting could be tried on."""


@dataclass(frozen=True)
class JudgedDialogues:
    """n dialogues that settings are tried on.

    name: of the run or ledger. cases (n rows): system, case_id, sample, category. batch: their scores. names: of the
    dimensions. theta (n, K): the capability that each dialogue is weighted with, by default its own system's mean scores.
    """

    name: str
    cases: pl.DataFrame
    batch: Batch
    dimensions: Dimensions
    names: Mapping[str, str]
    theta: Floats

    @classmethod
    def of(cls, name: str, cases: pl.DataFrame, batch: Batch, dimensions: Dimensions, names: Mapping[str, str]) -> "JudgedDialogues":
        """With every system's own mean scores as its theta, as a training of it would begin."""
        cases = cases.select(pl.col(column).cast(kind) for column, kind in _COLUMNS.items())
        theta = np.empty_like(batch.scores)
        for system in cases["system"].unique(maintain_order=True):
            own = (cases["system"] == system).to_numpy()
            theta[own] = Capability.initial(dimensions).observe(batch.take(own))[1].mean
        return cls(name, cases, batch, dimensions, names, theta)

    @property
    def systems(self) -> list[str]:
        """In the order of their first appearance."""
        return self.cases["system"].unique(maintain_order=True).to_list()

    def of_system(self, system: str) -> "JudgedDialogues":
        """The dialogues of one system."""
        own = (self.cases["system"] == system).to_numpy()
        return replace(self, cases=self.cases.filter(own), batch=self.batch.take(own), theta=self.theta[own])

    def with_theta(self, theta: Floats) -> "JudgedDialogues":
        """All dialogues weighted with one capability (K,)."""
        return replace(self, theta=np.broadcast_to(theta, self.batch.scores.shape))

    @cached_property
    def groupings(self) -> "list[Grouping]":
        """What may stand for a group, the most honest one first: the samples of a case where a case has several; then stand-ins."""
        several = self.cases.select("system", "case_id").is_duplicated().any()
        kinds: list[tuple[str, str, tuple[str, ...], bool]] = []
        if several:
            kinds.append(("samples", "samples of a case", ("system", "case_id"), False))
        kinds.append(("category", "a system's dialogues of a category", ("system", "category"), True))
        if len(self.systems) > 1:
            kinds.append(("case", "one case, every system", ("case_id",), True))
        kinds.append(("system", "all dialogues of a system", ("system",), True))
        found = [Grouping.of(self.cases, *kind) for kind in kinds]
        return [g for g in found if len(g.labels) < len(g.number)] or found[-1:]  # one dialogue a group compares nothing


@dataclass(frozen=True)
class Grouping:
    """Dialogues put into groups. key and words name the kind; stand_in: these are not the groups of a training;
    number (n,): the group of each dialogue; labels: of the groups."""

    key: str
    words: str
    stand_in: bool
    number: Rows
    labels: tuple[str, ...]

    @classmethod
    def of(cls, cases: pl.DataFrame, key: str, words: str, columns: tuple[str, ...], stand_in: bool) -> "Grouping":
        """By equal values in some columns; groups are numbered in the order of their first dialogue."""
        label = cases.select(pl.concat_str(columns, separator=" · ")).to_series()
        labels = label.unique(maintain_order=True)
        number = label.replace_strict(labels, range(len(labels)), return_dtype=pl.Int64) if len(labels) else label.cast(pl.Int64)
        return cls(key, words, stand_in, number.to_numpy().astype(np.intp), tuple(labels))


def open_dialogues(run_dir: str = "", judge: str = "rules", ledger_dir: str = "", rubric: Rubric | None = None) -> JudgedDialogues:
    """Those that a notebook names: a judged run as one judge saw it, or a ledger folder in its place ("published": the
    reconstructed ledger of the sixteen published systems). NoDialoguesError if nothing is named or nothing is judged there."""
    rubric = rubric or load_rubric()
    if ledger_dir == PUBLISHED:
        from anthrolab.bench.published import reconstructed_ledger

        return dialogues_of(reconstructed_ledger(), "published systems (reconstructed ledger, not the authors' data)", PAPER_WEIGHTS, rubric)
    if ledger_dir:
        weights = read_weights(ledger_dir) or PAPER_WEIGHTS
        return dialogues_of(read_ledger(ledger_dir), Run(Path(ledger_dir)).name, weights, rubric)
    if not run_dir:
        raise NoDialoguesError(f"nothing to try settings on: name a judged run folder, or a ledger folder (or {PUBLISHED})")
    measured = load_measured(Path(run_dir), judge, rubric)
    return dialogues_of(measured.ledger, f"{measured.run} · {measured.judge_label}", measured.weights, rubric)


def open_capabilities(run_dirs: str, judge: str, dimensions: Dimensions) -> dict[str, Floats]:
    """The mean scores (K,) of judged runs by their folders' names; `run_dirs`: with commas between them, empty for none."""
    folders = [Path(part.strip()) for part in run_dirs.split(",") if part.strip()]
    return {f"run {folder.name}": dimensions.row(initial_scores(folder, judge)) for folder in folders}


def dialogues_of(ledger: Ledger, name: str, weights: Mapping[str, float], rubric: Rubric) -> JudgedDialogues:
    """A ledger's; `weights` of the rubric that it was judged under, `rubric` for the names of its dimensions."""
    found = LedgerBatch.of(ledger, weights)
    if not found.batch.judged.any():
        raise NoDialoguesError(f"{name}: no case is judged, so there is nothing to reward; judge it first")
    return JudgedDialogues.of(name, found.cases, found.batch, found.dimensions, {d.id: d.name for d in rubric.dimensions})
