"""A judged run as the reward takes it: from a ledger's checkboxes to scores per dialogue and dimension, many at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from anthrolab.bench.ledger import DIMENSIONS, LOCAL_DIMENSIONS, Ledger, card_dimension_key, read_ledger, read_weights
from anthrolab.bench.scores import PAPER_WEIGHTS
from anthrolab.bench.store import Run
from anthrolab.training.reward.batch import Batch, Dimensions, Floats
from anthrolab.training.reward.capability import Capability
from anthrolab.training.settings import TrainingError


@dataclass(frozen=True)
class LedgerBatch:
    """cases: a row a planned case, in the ledger's order, with system, case_id, sample, binding, role, category, valid;
    dimensions: those of the rubric; batch: the same rows as scores. A case that was not done or not judged (valid null) is not
    judged here. A ledger does not tell a call that got no answer from a box that the judge left open: both are unassessed."""

    cases: pl.DataFrame
    dimensions: Dimensions
    batch: Batch

    @classmethod
    def of(cls, ledger: Ledger, weights: Mapping[str, float] = PAPER_WEIGHTS) -> "LedgerBatch":
        """Of a ledger in memory. weights: of the rubric that it was judged under; they also say which dimensions there are."""
        dimensions = _dimensions(weights)
        valid = ledger.cases["valid"]
        scores, passed = _by_case(ledger, dimensions)
        done = valid.is_not_null().to_numpy()
        batch = Batch(scores, passed, valid.fill_null(False).to_numpy(), done)
        columns = ("system", "case_id", "sample", "binding", "role", "category", "valid")
        return cls(ledger.cases.select(columns).with_columns(pl.col("category").cast(pl.String)), dimensions, batch)

    @classmethod
    def read(cls, folder: Path) -> "LedgerBatch":
        """Of a ledger's folder, with the weights that stand beside it (the paper's where none do); LedgerError if it is none."""
        return cls.of(read_ledger(folder), read_weights(folder) or PAPER_WEIGHTS)


def initial_scores(run_dir: Path, judge: str) -> dict[str, float | None]:
    """Per dimension the mean score (0..1) of a run's judged cases, of which the invalid ones count 0; None for a dimension that
    no valid case has assessed. It is what a training's capabilities begin at (paper section 4.6).

    TrainingError if no case is judged, LedgerError or RunError if the run has no ledger of that judge.
    """
    run = Run(run_dir)
    run.manifest()
    if judge not in run.judges():
        raise TrainingError(f"{run_dir}: not judged by {judge}; do: anthrolab judge {run_dir} --judge {judge}")
    found = LedgerBatch.read(run.ledger(judge))
    if not found.batch.judged.any():
        raise TrainingError(f"{run.ledger(judge)}: no case is judged, so nothing says what the policy can do; do: anthrolab judge {run_dir} --judge {judge}")
    _, seen = Capability.initial(found.dimensions).observe(found.batch)
    return {i: None if np.isnan(mean) else float(mean) for i, mean in zip(found.dimensions.ids, seen.mean, strict=True)}


def _dimensions(weights: Mapping[str, float]) -> Dimensions:
    ids = tuple(i for i in DIMENSIONS if i in weights)
    if len(ids) != len(weights) or not ids:
        raise TrainingError(f"weights: they are for {', '.join(weights) or 'nothing'}; a ledger holds {', '.join(DIMENSIONS)}")
    return Dimensions(ids, np.array([i in LOCAL_DIMENSIONS for i in ids]), np.array([float(weights[i]) for i in ids]))


def _by_case(ledger: Ledger, dimensions: Dimensions) -> tuple[Floats, Floats]:
    """(cases, K) each: the mean share of passed boxes over the cards that have an assessed one, and whether all passed."""
    boxes = ledger.checkboxes.select(key=card_dimension_key(), passed="passed").filter(pl.col("passed").is_not_null())
    keys, right = boxes["key"].to_numpy(), boxes["passed"].to_numpy()
    if (keys[1:] < keys[:-1]).any():  # a ledger written in order needs no sorting
        order = np.argsort(keys, kind="stable")
        keys, right = keys[order], right[order]
    begins = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.empty(0, dtype=np.intp)
    sizes = np.diff(begins, append=len(keys))
    passes = np.add.reduceat(right, begins, dtype=np.int64) if len(keys) else sizes
    cards = keys[begins]
    place = (cards >> 20).astype(np.intp) * len(DIMENSIONS) + (cards & 15).astype(np.intp)  # a key is case, turn in 16 bits, dimension in 4
    size = ledger.cases.height * len(DIMENSIONS)
    count = np.bincount(place, minlength=size)
    share = np.bincount(place, passes / np.maximum(sizes, 1), minlength=size)
    failed = np.bincount(place, passes < sizes, minlength=size)
    nothing = count == 0
    scores = np.where(nothing, np.nan, share / np.maximum(count, 1)).reshape(-1, len(DIMENSIONS))
    passed = np.where(nothing, np.nan, failed == 0).reshape(-1, len(DIMENSIONS))
    own = [DIMENSIONS.index(i) for i in dimensions.ids]
    return scores[:, own], passed[:, own]
