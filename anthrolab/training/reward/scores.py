"""From a verdict's checkboxes to a score and a strict flag per dimension, as the reward takes them (paper section 4.6). Pure."""

import numpy as np

from anthrolab.judging.rubric import Dimension, Rubric
from anthrolab.judging.scores import VerdictError
from anthrolab.judging.verdict import Verdict
from anthrolab.training.reward.batch import Dimensions, Floats


def scores_of(verdict: Verdict, rubric: Rubric, dimensions: Dimensions) -> tuple[Floats, Floats]:
    """s_k and a_k of one dialogue, (K,) each; nan where nothing of a dimension was assessed.

    s_k, 0..1: of a local dimension the mean, over the evaluated turns that have an assessed box of it, of the share of those
    boxes that passed; of a global one the share of its assessed boxes that passed. a_k: 1.0 if all its assessed boxes passed,
    in all turns, else 0.0. VerdictError if the verdict was given under another rubric.
    """
    if verdict.rubric != rubric.hash:
        raise VerdictError(
            f"verdict on {verdict.dialogue_id}: field 'rubric' is {verdict.rubric} but this rubric is {rubric.hash} "
            f"({rubric.name}); judge the dialogue again or load the rubric it was judged with"
        )
    local, whole = rubric.of_scope("turn"), rubric.of_scope("dialogue")
    scores, passed = np.full(len(dimensions.ids), np.nan), np.full(len(dimensions.ids), np.nan)
    for columns, owners, cards in (
        (dimensions.local, local, [turn.boxes for turn in verdict.turns]),
        (~dimensions.local, whole, [verdict.dialogue]),
    ):
        ids = [box.id for dimension in owners for box in dimension.checkboxes]
        if any([box.id for box in card] != ids for card in cards):
            raise VerdictError(f"verdict on {verdict.dialogue_id}: a card has not the rubric's checkboxes; judge it again")
        if cards:
            answers = np.array([[box.passed for box in card] for card in cards], dtype=float)  # None becomes nan
            scores[columns], passed[columns] = _by_dimension(answers, owners)
    return scores, passed


def _by_dimension(answers: Floats, owners: list[Dimension]) -> tuple[Floats, Floats]:
    """From boxes (cards, boxes) to the scores and flags of the dimensions that own them, in the boxes' order."""
    begins = np.cumsum([0, *(len(dimension.checkboxes) for dimension in owners)])[:-1]
    there = ~np.isnan(answers)
    assessed = np.add.reduceat(there, begins, axis=1, dtype=float)
    right = np.add.reduceat(np.where(there, answers, 0.0), begins, axis=1)
    some = assessed > 0
    shares = np.where(some, right / np.where(some, assessed, 1.0), 0.0)
    cards = some.sum(axis=0)
    nothing = cards == 0
    scores = np.where(nothing, np.nan, shares.sum(axis=0) / np.where(nothing, 1, cards))
    return scores, np.where(nothing, np.nan, (right == assessed).all(axis=0))
