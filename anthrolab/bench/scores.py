"""From checkbox answers to counts and scores: exact sums for the tables, floats for one case.

The definitions are those of AnthroDial section 5.4, for judges that may leave checkboxes unassessed (null):
q of a dimension is the passed share of its assessed checkboxes; a dimension without one leaves the weighted
mean of its card; a card with nothing assessed leaves the mean over cards; strict acceptance looks at the
assessed checkboxes alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import polars as pl

from anthrolab.bench.ledger import DIALOGUE, DIMENSIONS, Ledger, card_dimension_key
from anthrolab.errors import AnthrolabError

Weights = Mapping[str, int | float | Fraction]
PAPER_WEIGHTS: dict[str, int] = {
    "D1": 13, "D2": 9, "D3": 14, "D4": 8, "D5": 8,
    "E1": 14, "E2": 10, "E3": 11, "E4": 9, "E5": 4,
}  # fmt: skip
"""The weights of the paper's Table 4; only their ratios within the local and the global card matter."""


class WeightsError(AnthrolabError):
    """Rubric weights that cannot be used."""


def exact_weights(weights: Weights) -> dict[str, Fraction]:
    """The weight of each of the ten dimensions as a fraction (the float 0.1 as the tenth that it prints as).

    Raises WeightsError if a dimension is missing, unknown, or has no positive weight.
    """
    if set(weights) != set(DIMENSIONS):
        raise WeightsError(f"weights: they are for {', '.join(weights)}; give one for each of {', '.join(DIMENSIONS)}")
    for dimension, weight in weights.items():
        if not 0 < weight < inf:
            raise WeightsError(f"weights: {dimension} has {weight}; give it a positive number")
    return {d: Fraction(str(weights[d])) for d in DIMENSIONS}


@dataclass(frozen=True)
class Counts:
    """Counts of a ledger's valid cases, from which every score is finished.

    dimensions: one row per dimension of a card; card (a number), case (row number in the ledger's cases),
        local (False: the dialogue card), dimension (place in DIMENSIONS), passed, assessed, boxes.
    cards: one row per card with an assessed checkbox; card, case, local, mask (bit i: dimension i is
        assessed), ok (all assessed checkboxes passed), turns (such cards of the case in this scope).
    shares: the assessed rows of `dimensions` with mask and turns of their card.
    """

    dimensions: pl.DataFrame
    cards: pl.DataFrame
    shares: pl.DataFrame


def count_boxes(ledger: Ledger) -> Counts:
    """Count the checkboxes of the valid cases by card and dimension."""
    boxes = ledger.checkboxes
    valid = ledger.cases["valid"].fill_null(False)
    if not valid.all():
        boxes = boxes.filter(valid.gather(boxes["case"]))
    boxes = boxes.select("passed", key=card_dimension_key())
    # a ledger written in order is grouped without a hash table
    if boxes["key"].is_sorted():
        boxes = boxes.with_columns(pl.col("key").set_sorted())
    card = pl.col("key") // 16
    dimensions = (
        boxes.group_by("key")
        .agg(passed=pl.col("passed").sum(), assessed=pl.col("passed").count(), boxes=pl.len())
        .sort("key")
        .select(
            card=card.set_sorted(),
            case=(card // 2**16).cast(pl.UInt32),
            local=card % 2**16 != DIALOGUE,
            dimension=(pl.col("key") % 16).cast(pl.UInt8),
            passed="passed",
            assessed="assessed",
            boxes="boxes",
        )
    )
    shares = dimensions.filter(pl.col("assessed") > 0)
    local = pl.col("local")
    cards = (
        shares.group_by("card")
        .agg(
            pl.col("case", "local").first(),
            mask=(2 ** pl.col("dimension").cast(pl.UInt16)).sum().cast(pl.UInt16),
            ok=(pl.col("passed") == pl.col("assessed")).all(),
        )
        .with_columns(turns=pl.when(local).then(local.sum().over("case")).otherwise(1))
    )
    marked = shares.drop("boxes").join(cards.select("card", "mask", "turns"), on="card", maintain_order="left")
    return Counts(dimensions, cards, marked)


def case_scores(ledger: Ledger, weights: Weights = PAPER_WEIGHTS) -> pl.DataFrame:
    """One row per planned case in the ledger's order, for figures and intervals.

    Columns: system, case_id, sample, binding, role, category, valid; boxes and assessed (counts); turns
    (those with an assessed checkbox); s_turn and s_dialogue (0..1); score (0..100); turn_acc (share of those
    turns passed, 0..1); dialogue_passed and passed (strict acceptance of the dialogue card and of the case).
    What cannot be said (case not valid, nothing assessed) is null, and so are the counts of a case that is
    not valid. The scores are floats; the tables are finished from exact counts.
    """
    weight_of = [float(w) for w in exact_weights(weights).values()]
    counts = count_boxes(ledger)
    weight = pl.col("dimension").replace_strict(list(range(len(DIMENSIONS))), weight_of, return_dtype=pl.Float64)
    scored = counts.shares.group_by("card").agg(s=(weight * pl.col("passed") / pl.col("assessed")).sum() / weight.sum())
    cards = counts.cards.join(scored, on="card")
    local = pl.col("local")
    of_cards = cards.group_by("case").agg(
        turns=local.sum(),
        s_turn=pl.col("s").filter(local).mean(),
        s_dialogue=pl.col("s").filter(~local).first(),
        turn_acc=pl.col("ok").filter(local).mean(),
        dialogue_passed=pl.col("ok").filter(~local).first(),
        passed=pl.col("ok").all(),
    )
    of_boxes = counts.dimensions.group_by("case").agg(pl.col("boxes", "assessed").sum())
    counted = pl.col("boxes", "assessed", "turns")
    return (
        ledger.cases.join(of_boxes, on="case", how="left", maintain_order="left")
        .join(of_cards, on="case", how="left", maintain_order="left")
        .with_columns(
            pl.when("valid").then(counted.fill_null(0)),
            pl.col("category").cast(pl.String),
            score=50 * (pl.col("s_turn") + pl.col("s_dialogue")),
        )
        .select(
            "system", "case_id", "sample", "binding", "role", "category", "valid",
            "boxes", "assessed", "turns", "s_turn", "s_dialogue", "score",
            "turn_acc", "dialogue_passed", "passed",
        )
    )  # fmt: skip
