"""A judged run as the reward takes it: the ledger's scores against the verdicts' and against plain loops, and where a training begins."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.bench.ledger import DIMENSIONS, Ledger
from anthrolab.bench.store import Run, RunError
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.judging.scores import VerdictError
from anthrolab.judging.verdict import BoxVerdict, TurnVerdict, Verdict
from anthrolab.training.reward.batch import Dimensions
from anthrolab.training.reward.ledger import LedgerBatch, initial_scores
from anthrolab.training.reward.scores import scores_of
from anthrolab.training.settings import TrainingError
from tests.runs_for_tests import make_run

RUBRIC = load_rubric()
ALL = Dimensions.of(RUBRIC)


def cases(valid: list[bool | None]) -> pl.DataFrame:
    n = len(valid)
    return pl.DataFrame(
        {
            "system": ["m"] * n, "case_id": [f"b{i:02d}-a" for i in range(n)], "binding": [f"b{i:02d}" for i in range(n)], "role": ["a"] * n,
            "category": ["Sport"] * n, "valid": pl.Series(valid, dtype=pl.Boolean),
        }
    )  # fmt: skip


def boxes(rows: list[tuple[int, int | None, str, int, bool | None]]) -> pl.DataFrame:
    """Rows of (case, turn or None, dimension, checkbox, passed)."""
    made = [
        {"system": "m", "case_id": f"b{c:02d}-a", "scope": "dialogue" if t is None else "turn", "turn_index": t, "dimension": d, "checkbox": b, "passed": p}
        for c, t, d, b, p in rows
    ]
    types = {"system": pl.String, "case_id": pl.String, "scope": pl.String, "turn_index": pl.Int32, "dimension": pl.String, "checkbox": pl.Int32, "passed": pl.Boolean}
    return pl.DataFrame(made, schema=types)


def verdict(turns: list[list[bool | None]], whole: list[bool | None], rubric: Rubric = RUBRIC) -> Verdict:
    """A verdict with these answers in the rubric's order."""

    def card(answers: list[bool | None], scope: Any) -> list[BoxVerdict]:
        return [
            BoxVerdict(id=box.id, passed=a) if a is not None else BoxVerdict(id=box.id, unassessed="undecided")
            for box, a in zip(rubric.boxes(scope), answers, strict=True)
        ]

    cards = [TurnVerdict(turn_index=i, message_index=2 * i - 1, boxes=card(a, "turn")) for i, a in enumerate(turns, 1)]
    return Verdict(dialogue_id="d", judge="j", judge_identity="i", rubric=rubric.hash, turns=cards, dialogue=card(whole, "dialogue"))


answer = st.sampled_from([True, True, False, None])
turn = st.lists(answer, min_size=21, max_size=21)
whole_card = st.lists(answer, min_size=23, max_size=23)


@given(st.lists(turn, max_size=4), whole_card)
def test_scores_of_a_verdict_are_those_of_a_plain_loop(turns: list[list[bool | None]], whole: list[bool | None]) -> None:
    given_verdict = verdict(turns, whole)
    scores, passed = scores_of(given_verdict, RUBRIC, ALL)
    for k, dimension in enumerate(RUBRIC.dimensions):
        cards = [t.boxes for t in given_verdict.turns] if dimension.scope == "turn" else [given_verdict.dialogue]
        shares, flags = [], []
        for card in cards:
            answers = [box.passed for box in card if box.id.split(".")[0] == dimension.id and box.passed is not None]
            if answers:
                shares.append(sum(answers) / len(answers))
                flags += answers
        if shares:
            assert scores[k] == pytest.approx(sum(shares) / len(shares), abs=1e-12)
            assert passed[k] == float(all(flags))
        else:
            assert np.isnan(scores[k]) and np.isnan(passed[k])


def test_scores_made_by_hand() -> None:
    # D1 in three turns: 4 of 5, nothing assessed, 1 of 2; E5: 3 of 4
    d1: list[list[bool | None]] = [[True, True, True, True, False], [None] * 5, [True, False, None, None, None]]
    scores, passed = scores_of(verdict([[*part, *[True] * 16] for part in d1], [*[True] * 19, True, True, True, False]), RUBRIC, ALL)
    assert scores[0] == pytest.approx((0.8 + 0.5) / 2)
    assert scores[9] == 0.75
    assert passed.tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 1, 0]


def test_a_verdict_under_another_rubric_is_refused() -> None:
    with pytest.raises(VerdictError, match="rubric"):
        scores_of(verdict([], [True] * 23).model_copy(update={"rubric": "0" * 16}), RUBRIC, ALL)
    cut = verdict([[True] * 21], [True] * 23)
    cut.turns[0].boxes.pop()
    with pytest.raises(VerdictError, match="checkboxes"):
        scores_of(cut, RUBRIC, ALL)


def test_a_rubric_of_another_shape_and_order_is_scored_too() -> None:
    def part(i: str, scope: str, count: int) -> dict[str, Any]:
        return {"id": i, "name": i, "scope": scope, "weight": 1.0, "checkboxes": [{"id": f"{i}.{n}", "question": "?"} for n in range(1, count + 1)]}

    rubric = Rubric.model_validate({"name": "mixed", "dimensions": [part("E2", "dialogue", 2), part("D1", "turn", 3), part("E1", "dialogue", 1), part("D4", "turn", 1)]})
    scores, passed = scores_of(verdict([[True, False, False, True]], [True, False, True], rubric), rubric, Dimensions.of(rubric))
    assert scores == pytest.approx([1 / 2, 1 / 3, 1.0, 1.0])
    assert passed.tolist() == [0, 0, 1, 1]


def test_a_ledger_made_by_hand() -> None:
    ledger = Ledger(
        cases([True, False, None, True]),
        boxes([
            (0, 1, "D1", 1, True), (0, 1, "D1", 2, False), (0, 1, "D2", 1, None), (0, 2, "D1", 1, True), (0, 2, "D1", 2, None), (0, None, "E1", 1, True),
            (3, 1, "D2", 1, True), (3, None, "E1", 1, False), (3, None, "E1", 2, True), (3, None, "E1", 3, None),
        ]),
    )  # fmt: skip
    found = LedgerBatch.of(ledger, {"D1": 2.0, "D2": 1.0, "E1": 1.0})
    assert found.dimensions.ids == ("D1", "D2", "E1")
    assert found.dimensions.local.tolist() == [True, True, False]
    assert found.cases["case_id"].to_list() == ["b00-a", "b01-a", "b02-a", "b03-a"]
    assert found.cases.columns == ["system", "case_id", "sample", "binding", "role", "category", "valid"]
    assert found.batch.valid.tolist() == [True, False, False, True]
    assert found.batch.judged.tolist() == [True, True, False, True]
    nan = np.nan
    assert np.array_equal(found.batch.scores, [[0.75, nan, 1.0], [nan] * 3, [nan] * 3, [nan, 1.0, 0.5]], equal_nan=True)
    assert np.array_equal(found.batch.passed, [[0.0, nan, 1.0], [nan] * 3, [nan] * 3, [nan, 1.0, 0.0]], equal_nan=True)


@given(st.data())
def test_the_order_of_a_ledger_s_rows_does_not_matter_and_loops_find_the_same(data: st.DataObject) -> None:
    places = [(c, t, d) for c in range(3) for d in ("D1", "D3", "E2") for t in ((1, 2) if d[0] == "D" else (None,))]
    rows = [(c, t, d, b, data.draw(answer)) for c, t, d in places for b in range(1, data.draw(st.integers(1, 3)) + 1)]
    moved = data.draw(st.permutations(rows))
    valid = data.draw(st.lists(st.sampled_from([True, False, None]), min_size=3, max_size=3))
    weights = {"D1": 1.0, "D3": 1.0, "E2": 1.0}
    here, there = (LedgerBatch.of(Ledger(cases(valid), boxes(r)), weights).batch for r in (rows, moved))
    assert np.allclose(here.scores, there.scores, rtol=0, atol=1e-12, equal_nan=True)
    assert np.array_equal(here.passed, there.passed, equal_nan=True)
    for c in range(3):
        for k, d in enumerate(weights):
            cards: dict[int | None, list[bool]] = {}
            for row in rows:
                if row[0] == c and row[2] == d and row[4] is not None:
                    cards.setdefault(row[1], []).append(row[4])
            shares = [sum(a) / len(a) for a in cards.values()]
            expected = sum(shares) / len(shares) if shares else np.nan
            assert here.scores[c, k] == pytest.approx(expected, nan_ok=True)


def test_the_ledger_of_a_run_has_the_scores_of_its_verdicts(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path / "r", cases=8))
    found = LedgerBatch.read(run.ledger("rules"))
    assert found.dimensions.ids == ALL.ids
    assert np.array_equal(found.dimensions.rho, ALL.rho)
    verdicts = run.verdicts("rules")
    assert len(verdicts) == 6
    for i, case in enumerate(found.cases["case_id"]):
        given_verdict = verdicts.get(f"r-{case}-0")
        if given_verdict is None:
            assert np.isnan(found.batch.scores[i]).all()
            continue
        scores, passed = scores_of(given_verdict, RUBRIC, ALL)
        assert np.allclose(found.batch.scores[i], scores, rtol=0, atol=1e-12, equal_nan=True)
        assert np.array_equal(found.batch.passed[i], passed, equal_nan=True)
    assert found.batch.valid.tolist() == [True] * 6 + [False] * 2
    assert found.batch.judged.tolist() == [True] * 7 + [False], "the last case failed"


def test_a_training_begins_at_the_run_s_scores_with_invalid_cases_as_0(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path / "r", cases=8, answers_all=True))
    found = initial_scores(run.path, "rules")
    # six valid cases and an invalid one; D1.3 fails in every second of four turns: (1 + 4/5) / 2; E3.1 is one of five
    first = next(b.id for b in RUBRIC.boxes("dialogue") if b.rule is not None)
    share = {d.id: 1.0 for d in RUBRIC.dimensions} | {"D1": 0.9}
    failed = RUBRIC.dimension_of[first]
    share[failed.id] = 1 - 1 / len(failed.checkboxes)
    assert found == {i: pytest.approx(6 / 7 * s) for i, s in share.items()}


def test_a_dimension_that_nobody_assessed_is_not_tracked(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path / "r", cases=8))
    ruled = {RUBRIC.dimension_of[b.id].id for b in RUBRIC.boxes() if b.rule}
    found = initial_scores(run.path, "rules")
    assert {i for i, s in found.items() if s is not None} == ruled
    path = run.ledger("rules") / "checkboxes.parquet"
    pl.read_parquet(path).with_columns(passed=pl.when(pl.col("dimension") == "D3").then(None).otherwise("passed")).write_parquet(path)
    assert initial_scores(run.path, "rules")["D3"] is None


def test_what_cannot_be_begun_from_says_why(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"manifest\.json"):
        initial_scores(tmp_path / "none", "rules")
    run = Run(make_run(tmp_path / "r", cases=4))
    with pytest.raises(TrainingError, match="not judged by oracle; do: anthrolab judge"):
        initial_scores(run.path, "oracle")
    path = run.ledger("rules") / "cases.parquet"
    pl.read_parquet(path).with_columns(valid=pl.lit(None, dtype=pl.Boolean)).write_parquet(path)
    with pytest.raises(TrainingError, match="no case is judged"):
        initial_scores(run.path, "rules")


def test_weights_decide_which_dimensions_there_are(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path / "r", cases=4))
    path = run.ledger("rules") / "rubric.json"
    path.write_text(json.dumps({"weights": {"E1": 3, "D2": 1.5}}), encoding="utf-8")
    found = LedgerBatch.read(run.ledger("rules"))
    assert found.dimensions.ids == ("D2", "E1")
    assert found.dimensions.rho.tolist() == [1.5, 3.0]
    assert found.batch.scores.shape == (4, 2)
    path.write_text(json.dumps({"weights": {"X1": 3}}), encoding="utf-8")
    with pytest.raises(TrainingError, match="X1"):
        LedgerBatch.read(run.ledger("rules"))


def test_a_ledger_without_boxes_has_no_scores() -> None:
    found = LedgerBatch.of(Ledger(cases([None, False]), boxes([])))
    assert np.isnan(found.batch.scores).all()
    assert found.batch.scores.shape == (2, len(DIMENSIONS))
    other = replace(found, dimensions=replace(found.dimensions, rho=np.ones(len(DIMENSIONS))))
    assert other.batch is found.batch, "other weights need no second reading"
