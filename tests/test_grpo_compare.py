"""Trainings compared on their held-out cases."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anthrolab.training.grpo.compare import compare_runs, held_out_by_step, least_bindings, outcomes
from anthrolab.training.settings import TrainingError
from tests.grpo_for_tests import make_training

FLAT = [40.0, 50.0, 60.0, 55.0, 45.0, 52.0]


def training(folder: Path, scores: dict[int, Sequence[float | None]] | None = None, **changes: Any) -> Path:
    """A training of which only manifest and held-out cases are there: by step the scores of as many cases, each of a binding of
    its own (None: the case was not had). `changes` replace fields of the manifest."""
    folder.mkdir(parents=True)
    manifest = {
        "settings": {"kind": "chat", "max_messages": 8, "partner": "p"}, "reward": {"ablation": "full"}, "judge": "rules", "partner": {"name": "p"},
        "rubric": "r", "cards": "c", "base": "b", "adapter": None,
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest | changes), encoding="utf-8")
    for step, values in ({0: FLAT, 4: FLAT} if scores is None else scores).items():
        rows = [
            {"step": step, "case_id": f"b{i:02}-a", "binding": f"b{i:02}", "sample": 0, "valid": None if v is None else True, "score": v,
             "passed": None if v is None else v > 90, "s_D1": None if v is None else v / 100}
            for i, v in enumerate(values)
        ]  # fmt: skip
        write(folder, step, pl.DataFrame(rows, schema_overrides={"valid": pl.Boolean, "score": pl.Float64, "passed": pl.Boolean, "s_D1": pl.Float64}))
    return folder


def write(folder: Path, step: int, frame: pl.DataFrame) -> None:
    (folder / "held_out").mkdir(exist_ok=True)
    frame.write_parquet(folder / "held_out" / f"{step:04}.parquet")


def plus(points: float) -> list[float | None]:
    return [score + points for score in FLAT]


def test_two_trainings_are_compared_with_their_beginning_and_with_each_other_as_by_hand(tmp_path: Path) -> None:
    one = training(tmp_path / "one", {0: FLAT, 4: plus(10)})
    two = training(tmp_path / "two", {0: FLAT, 4: plus(4)}, reward={"ablation": "legacy"})
    found = compare_runs([one, two])
    assert (found.step, found.cases, found.bindings) == (4, 6, 6)
    assert [(p.before.run, p.before.step, p.after.run, p.after.ablation) for p in found.pairs] == [
        ("one", 0, "one", "full"), ("two", 0, "two", "legacy"), ("one", 4, "two", "legacy"),
    ]  # fmt: skip
    assert [p.score.difference for p in found.pairs] == pytest.approx([10, 4, -6])
    assert [(p.score.low, p.score.high) for p in found.pairs] == [pytest.approx((d, d)) for d in (10, 4, -6)]
    assert [p.score.p for p in found.pairs] == pytest.approx([2 / 64] * 3)  # all six signs alike: two of 64 choices
    assert [p.score.holm for p in found.pairs] == pytest.approx([6 / 64] * 3)  # three comparisons
    assert {p.verdict for p in found.pairs} == {"not told apart"}, "six bindings are too few for three comparisons"
    assert "With 3 comparisons, corrected for being many, fewer than 7 held-out bindings cannot tell any outcome from chance at the 5% level." in found.notes


def test_one_training_alone_is_compared_with_its_beginning(tmp_path: Path) -> None:
    found = compare_runs([training(tmp_path / "one", {0: FLAT, 4: plus(10)})])
    assert found.against_first == [] and found.gained[0].verdict == "better"
    assert found.said == ["one against its own step 0: better. Score +10.0 points, 95% interval +10.0 to +10.0, p = 0.031 corrected; 6 cases of 6 bindings."]
    dimension = next(q for q in found.gained[0].quantities if q.name == "D1")
    assert dimension.difference == pytest.approx(0.1)


def test_a_worse_training_is_called_worse_and_equal_ones_are_not_told_apart(tmp_path: Path) -> None:
    assert compare_runs([training(tmp_path / "down", {0: FLAT, 4: plus(-5)})]).gained[0].verdict == "worse"
    same = compare_runs([training(tmp_path / "one"), training(tmp_path / "two")])
    assert [p.score.difference for p in same.pairs] == [0.0] * 3
    assert {p.verdict for p in same.pairs} == {"not told apart"}


def test_fewer_than_six_bindings_can_tell_nothing_and_that_is_said(tmp_path: Path) -> None:
    found = compare_runs([training(tmp_path / "few", {0: [10, 20, 30], 4: [80, 90, 95]})])
    assert found.gained[0].verdict == "too few bindings"
    assert any("fewer than 6 held-out bindings" in note for note in found.notes)
    assert [least_bindings(n) for n in (1, 2, 3, 5, 11)] == [6, 7, 7, 8, 9]  # 2 / 2^b times n is below 0.05
    enough = compare_runs([training(tmp_path / "enough", {0: FLAT, 4: plus(10)})])
    assert not any("bindings cannot tell" in note for note in enough.notes)



def test_an_invalid_dialogue_is_not_accepted_and_has_no_score_and_one_not_had_has_nothing() -> None:
    frame = pl.DataFrame(
        {"case_id": ["b1-a", "b2-a", "b3-a", "b4-a"], "binding": ["b1", "b2", "b3", "b4"], "valid": [True, False, None, True], "score": [80.0, 70.0, 60.0, None],
         "passed": [True, None, None, None], "s_D1": [0.9, 0.5, 0.4, 0.3]}
    )  # fmt: skip
    assert [dict(o.values) for o in outcomes(frame)] == [
        {"valid": 1.0, "score": 80.0, "accepted": 1.0, "s_D1": 0.9},
        {"valid": 0.0, "score": None, "accepted": 0.0, "s_D1": None},
        {"valid": None, "score": None, "accepted": None, "s_D1": None},
        {"valid": 1.0, "score": None, "accepted": None, "s_D1": 0.3},
    ]


def test_a_case_that_was_not_had_is_in_no_number_and_is_counted(tmp_path: Path) -> None:
    found = compare_runs([training(tmp_path / "one", {0: FLAT, 4: [None, *plus(10)[1:]]})])
    assert (found.gained[0].score.cases, found.gained[0].score.difference) == (5, 10.0)
    assert any("one, step 4: 1 of 6" in note for note in found.notes)


def test_a_higher_score_of_fewer_valid_dialogues_is_mixed(tmp_path: Path) -> None:
    one = training(tmp_path / "one", {0: [*FLAT, 50.0, 50.0], 4: [*plus(10), 60.0, 60.0]})
    frame = held_out_by_step(one)[4]
    broken = pl.col("case_id").is_in(["b07-a"])
    write(one, 4, frame.with_columns(valid=pl.when(broken).then(False).otherwise("valid"), score=pl.when(broken).then(None).otherwise("score")))
    assert compare_runs([one]).gained[0].verdict == "mixed"


def test_trainings_are_compared_at_the_last_step_that_all_have_and_that_is_said(tmp_path: Path) -> None:
    one = training(tmp_path / "one", {0: FLAT, 4: plus(1), 8: plus(2)})
    two = training(tmp_path / "two", {0: FLAT, 4: plus(5)})
    found = compare_runs([one, two])
    assert found.step == 4 and found.gained[0].score.difference == pytest.approx(1)
    assert any(note.startswith("one also has held-out cases of step 8") for note in found.notes)
    assert (compare_runs([one]).step, compare_runs([one], step=4).step) == (8, 4)


@pytest.mark.parametrize("field", ["judge", "partner", "rubric", "cards", "prompts", "skills"])
def test_trainings_with_another_judge_partner_or_rubric_are_refused(tmp_path: Path, field: str) -> None:
    one, two = training(tmp_path / "one"), training(tmp_path / "two", **{field: "other"})
    with pytest.raises(TrainingError, match=f"two: its {field} differs"):
        compare_runs([one, two])


def test_trainings_whose_chats_were_made_otherwise_are_refused(tmp_path: Path) -> None:
    two = training(tmp_path / "two", settings={"kind": "chat", "max_messages": 12, "partner": "p"})
    with pytest.raises(TrainingError, match="its setting max_messages"):
        compare_runs([training(tmp_path / "one"), two])


def test_another_first_policy_is_said_and_refused_where_it_is_the_partner(tmp_path: Path) -> None:
    one, two = training(tmp_path / "one"), training(tmp_path / "two", adapter="a")
    assert any("two began with another policy than one" in note for note in compare_runs([one, two]).notes)
    own = {"settings": {"kind": "chat", "max_messages": 8, "partner": "initial"}, "partner": None}
    three, four = training(tmp_path / "three", **own), training(tmp_path / "four", adapter="a", **own)
    with pytest.raises(TrainingError, match="its partner is its own first policy"):
        compare_runs([three, four])


def test_every_field_in_which_two_trainings_differ_is_said(tmp_path: Path) -> None:
    first: dict[str, Any] = {"reward": {"ablation": "full", "p": 1.0}, "cases": ["b1-a", "b2-a"], "capability": {"D1": 0.5, "D2": None}}
    one, same = training(tmp_path / "one", **first), training(tmp_path / "same", **first)
    settings_ = {"kind": "chat", "max_messages": 8, "partner": "p", "learning_rate": 1e-5, "seed": 1}
    two = training(
        tmp_path / "two", settings=settings_ | {"learning_rate": 0.0001}, reward={"ablation": "legacy", "p": 1.0, "sigma": 0.25},
        cases=[f"b{i}-a" for i in range(5)], capability={"D1": 0.25, "D2": None},
    )  # fmt: skip
    assert not any("differs" in note for note in compare_runs([one, same]).notes)
    (note,) = [n for n in compare_runs([one, two]).notes if "differs" in n]
    assert note == (
        'two differs from one in: settings.learning_rate (null, here 0.0001); settings.seed (null, here 1); reward.ablation ("full", here "legacy"); '
        'reward.sigma (null, here 0.25); capability.D1 (0.5, here 0.25); cases (["b1-a", "b2-a"], here 5: b0-a to b4-a).'
    )


def test_trainings_with_other_held_out_cases_are_refused_with_the_case(tmp_path: Path) -> None:
    one, two = training(tmp_path / "one"), training(tmp_path / "two", {0: [*FLAT, 1.0], 4: [*FLAT, 1.0]})
    with pytest.raises(TrainingError, match=r"b06-a, sample 0, is in one only"):
        compare_runs([one, two])
    shrunk = training(tmp_path / "shrunk", {0: FLAT, 4: FLAT[:-1]})
    with pytest.raises(TrainingError, match="step 4 has not the cases"):
        compare_runs([shrunk])


def test_a_folder_that_cannot_be_compared_is_refused_by_name(tmp_path: Path) -> None:
    one = training(tmp_path / "one")
    with pytest.raises(TrainingError, match="at least one folder"):
        compare_runs([])
    with pytest.raises(TrainingError, match="twice"):
        compare_runs([one, tmp_path / "." / "one"])
    with pytest.raises(TrainingError, match="holds no training"):
        compare_runs([tmp_path / "nothing"])
    with pytest.raises(TrainingError, match="no step after 0"):
        compare_runs([training(tmp_path / "early", {0: FLAT})])
    with pytest.raises(TrainingError, match="no held-out cases of step 0"):
        compare_runs([training(tmp_path / "none", {})])
    with pytest.raises(TrainingError, match="no held-out cases of step 7; there are: 0, 4"):
        compare_runs([one], step=7)
    (one / "held_out" / "0004.parquet").write_bytes(b"PAR1 cut")
    with pytest.raises(TrainingError, match=r"0004\.parquet: cannot be read .*restore the file, or make it again from 0004\.jsonl"):
        compare_runs([one])


def test_folders_of_one_name_are_told_apart_by_those_above_them(tmp_path: Path) -> None:
    found = compare_runs([training(tmp_path / "a" / "grpo"), training(tmp_path / "b" / "grpo")])
    assert [p.after.run for p in found.gained] == ["a/grpo", "b/grpo"]


SCORES = st.lists(st.floats(0, 100, width=16), min_size=6, max_size=6)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SCORES, SCORES, SCORES)
def test_comparing_the_other_way_round_turns_the_sign_and_corrected_p_values_are_never_smaller(
    tmp_path_factory: pytest.TempPathFactory, start: list[float], first: list[float], second: list[float]
) -> None:
    folder = tmp_path_factory.mktemp("pair")
    one, two = training(folder / "one", {0: start, 4: first}), training(folder / "two", {0: start, 4: second})
    there, back = compare_runs([one, two]), compare_runs([two, one])
    assert there.against_first[0].score.difference == pytest.approx(-(back.against_first[0].score.difference or 0.0))
    for pair in there.pairs:
        assert pair.score.p is not None and pair.score.holm is not None
        assert 0 <= pair.score.p <= pair.score.holm <= 1
        assert sum(q.holm is None for q in pair.quantities if q.p is not None) == 0


def test_a_made_training_compares_as_it_was_made(tmp_path: Path) -> None:
    runs = [make_training(tmp_path / n, gain=g, seed=i) for i, (n, g) in enumerate((("full", 0.3), ("legacy", 0.02)))]
    found = compare_runs(runs)
    assert found.gained[0].verdict == "better" and found.against_first[0].verdict == "worse"
    assert found.gained[0].score.difference == pytest.approx(30, abs=3)
