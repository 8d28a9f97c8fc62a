"""The log of rewards: what stands in a step's file, and that it comes back."""

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anthrolab.judging.l0 import L0Result, Violation
from anthrolab.judging.rubric import load_rubric
from anthrolab.runtime.dialogue import Ask, Decision, Dialogue, Message, Participant
from anthrolab.training.reward.batch import Dimensions
from anthrolab.training.reward.log import RewardRow, read_rewards, rewards_path, write_rewards
from anthrolab.training.reward.reward import rewards
from anthrolab.training.reward.service import Judged, batch_of
from anthrolab.training.settings import TrainingError

DIMENSIONS = Dimensions.of(load_rubric())
K = len(DIMENSIONS.ids)
THETA = DIMENSIONS.row({i: 0.1 * k for k, i in enumerate(DIMENSIONS.ids[:-1])})
"""The last dimension is not tracked yet."""

GATE = L0Result(True, None, (Violation("L0-08", 1, "洗完了"),), (Violation("L0-05", 2, "copy"),), ("L0-01",))
BROKEN = L0Result(False, "fatal", (Violation("L0-05", 1, "copy"), Violation("L0-08", 1, "洗完了")), (), ("L0-05",))


def dialogue(name: str, said: tuple[str, ...] = ("在呢", "刚下班啊"), silent: int = 1) -> Dialogue:
    """b opens; a says these, with as many decisions and `silent` to say nothing."""
    at = datetime(2026, 3, 6, 20, 31)
    messages = [Message(speaker="b", content="人呢", at=at, opener=True)]
    messages += [Message(speaker="a", content=text, at=at + timedelta(seconds=20 * i), opener=False) for i, text in enumerate(said, 1)]
    messages.append(Message(speaker="b", content="那行 回头说 不急的", at=at + timedelta(seconds=300), opener=False))
    decided = [Decision(content=text, at=at, end=False) for text in said] + [Decision(content="", at=at, end=True)] * silent
    asks = [Ask(speaker="a", now=at, decision=d) for d in decided] + [Ask(speaker="b", now=at, decision=Decision(content="", at=at, end=True))]
    return Dialogue(
        dialogue_id=name, evaluated_role="a", speakers={"a": Participant(name="林晓雯"), "b": Participant(name="周子航")}, start=at, messages=messages, asks=asks
    )


def scored(name: str, scores: list[float | None], rules_score: float | None = 71.5) -> Judged:
    row = np.array([np.nan if s is None else s for s in scores])
    return Judged(name, GATE, None, "scored", None, row, np.where(np.isnan(row), np.nan, row == 1), rules_score)


def step() -> list[RewardRow]:
    nothing = np.full(K, np.nan)
    return [
        RewardRow(0, 0, "b01-a", "b01", "a", dialogue("d0"), scored("d0", [1 / 3] * (K - 1) + [1.0])),
        RewardRow(1, 0, "b01-a", "b01", "a", dialogue("d1"), scored("d1", [None, *[1.0] * (K - 1)], None)),
        RewardRow(2, 0, "b01-a", "b01", "a", dialogue("d2", ("嗯嗯嗯嗯",), 0), Judged("d2", BROKEN, None, "invalid", "L0-05", nothing, nothing)),
        RewardRow(3, 1, "b02-b", "b02", "b", dialogue("d3", ()), Judged("d3", GATE, None, "judge_failed", "timeout", nothing, nothing)),
        RewardRow(4, 1, "b02-b", "b02", "b", fault="partner unreachable"),
    ]


def written(folder: Path, number: int = 1) -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    rows = step()
    batch = batch_of([r.judged for r in rows], DIMENSIONS)
    found = rewards(batch, THETA, DIMENSIONS)
    advantages = np.array([0.5, 1 / 7, -1.5, np.nan, np.nan])
    write_rewards(rewards_path(folder, number), number, rows, DIMENSIONS, batch, found, THETA, advantages)
    return read_rewards(folder), found.reward, found.alpha


def test_every_rollout_stands_in_the_log_with_all_its_parts(tmp_path: Path) -> None:
    frame, reward, alpha = written(tmp_path)
    assert (tmp_path / "0001.parquet").exists()
    assert frame["step"].to_list() == [1] * 5
    assert frame["rollout"].to_list() == [0, 1, 2, 3, 4]
    assert frame["group"].to_list() == [0, 0, 0, 1, 1]
    assert frame["case_id"].to_list() == ["b01-a"] * 3 + ["b02-b"] * 2
    assert frame["role"].to_list() == ["a", "a", "a", "b", "b"]
    assert frame["dialogue_id"].to_list() == ["d0", "d1", "d2", "d3", None]
    assert frame["status"].to_list() == ["scored", "scored", "invalid", "judge_failed", "no_dialogue"]
    assert frame["fault"].to_list() == [None, None, "L0-05", "timeout", "partner unreachable"]
    assert frame["reward"].to_list() == [reward[0], reward[1], 0.0, None, None], "to the last bit, and never 0 for a failure"
    assert frame["advantage"].to_list() == [0.5, 1 / 7, -1.5, None, None]
    assert frame["s_D1"].to_list() == [1 / 3, None, None, None, None]
    assert frame["a_D2"].to_list() == [0.0, 1.0, None, None, None]
    assert frame["alpha_D2"].to_list() == [alpha[0, 1], alpha[1, 1], None, None, None]
    assert frame["theta_D3"].to_list() == [0.2] * 5
    assert frame["theta_E5"].to_list() == [None] * 5, "it is not tracked yet"
    assert frame["rules_score"].to_list() == [71.5, None, None, None, None]
    assert frame["violations"].to_list() == [1, 1, 2, 1, None], "the partner's are not counted"
    for name in ("reward", "legacy", "adaptive"):
        assert frame[name].is_nan().sum() == 0


def test_what_the_policy_did_is_beside_its_reward(tmp_path: Path) -> None:
    frame, _, _ = written(tmp_path)
    assert frame["messages"].to_list() == [2, 2, 1, 0, None]
    assert frame["chars"].to_list() == [3.0, 3.0, 4.0, None, None]
    assert frame["decisions"].to_list() == [3, 3, 1, 1, None]
    assert frame["silent"].to_list() == [1 / 3, 1 / 3, 0.0, 1.0, None]


def test_the_weights_in_the_log_add_up_to_1_in_each_group(tmp_path: Path) -> None:
    frame, _, _ = written(tmp_path)
    for group in ("D", "E"):
        total = frame.select(pl.sum_horizontal(f"alpha_{i}" for i in DIMENSIONS.ids if i.startswith(group))).to_series()
        assert total[:2].to_list() == pytest.approx([1.0, 1.0])


def test_steps_come_back_in_order_whatever_order_they_were_written_in(tmp_path: Path) -> None:
    for number in (9999, 2, 1, 10000):
        written(tmp_path, number)
    frame = read_rewards(tmp_path)
    assert frame["step"].unique(maintain_order=True).to_list() == [1, 2, 9999, 10000]
    assert frame.height == 20


def test_a_step_written_again_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    written(tmp_path)
    before = (tmp_path / "0001.parquet").read_bytes()
    written(tmp_path)
    assert (tmp_path / "0001.parquet").read_bytes() == before, "the same step gives the same bytes"
    assert [p.name for p in tmp_path.iterdir()] == ["0001.parquet"], "no half file beside it"


def test_every_file_of_a_training_has_the_same_columns_even_where_nothing_is_known(tmp_path: Path) -> None:
    written(tmp_path)
    rows = [RewardRow(0, 0, "b01-a", "b01", "a", fault="partner timeout")]
    batch = batch_of([None], DIMENSIONS)
    write_rewards(tmp_path / "0002.parquet", 2, rows, DIMENSIONS, batch, rewards(batch, THETA, DIMENSIONS), THETA, np.array([np.nan]))
    write_rewards(tmp_path / "0003.parquet", 3, [], DIMENSIONS, batch.take(np.array([], dtype=np.intp)), rewards(batch_of([], DIMENSIONS), THETA, DIMENSIONS), THETA, np.empty(0))
    assert read_rewards(tmp_path).height == 6


def test_a_file_that_is_no_log_is_named(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "0002.parquet").write_bytes(b"PAR1 half of a file")
    with pytest.raises(TrainingError, match=r"0002\.parquet"):
        read_rewards(tmp_path)
    pl.DataFrame({"step": [2], "rollout": [0]}).write_parquet(tmp_path / "0002.parquet")
    with pytest.raises(TrainingError, match=r"0002\.parquet: has other columns"):
        read_rewards(tmp_path)


def test_a_folder_without_steps_is_empty(tmp_path: Path) -> None:
    assert read_rewards(tmp_path / "none").is_empty()


def test_rows_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    rows = step()
    batch = batch_of([r.judged for r in rows], DIMENSIONS)
    found = rewards(batch, THETA, DIMENSIONS)
    with pytest.raises(ValueError, match="a row a rollout"):
        write_rewards(tmp_path / "0001.parquet", 1, rows[:2], DIMENSIONS, batch, found, THETA, np.zeros(5))
    assert not list(tmp_path.iterdir())
