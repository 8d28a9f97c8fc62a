"""Trainings from end to end on a tiny policy that really chats: what they write, resuming, kill -9, learning."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from typer.testing import CliRunner  # noqa: E402

from anthrolab.bench.effort import Effort  # noqa: E402
from anthrolab.cli import app  # noqa: E402
from anthrolab.judging.rubric import load_rubric  # noqa: E402
from anthrolab.models.client import ModelError  # noqa: E402
from anthrolab.models.scripted import Answer, Call, Served, serve  # noqa: E402
from anthrolab.training.checkpoints import read_log  # noqa: E402
from anthrolab.training.grpo.files import Folder, read_rollouts  # noqa: E402
from anthrolab.training.grpo.held_out import read_held_out  # noqa: E402
from anthrolab.training.grpo.timeline import read_timeline  # noqa: E402
from anthrolab.training.grpo.train import Files, preflight, train  # noqa: E402
from anthrolab.training.reward.batch import Dimensions  # noqa: E402
from anthrolab.training.reward.capability import Capability  # noqa: E402
from anthrolab.training.reward.log import read_rewards  # noqa: E402
from anthrolab.training.reward.reward import rewards  # noqa: E402
from anthrolab.training.reward.service import batch_of  # noqa: E402
from anthrolab.training.reward.settings import PAPER, RewardSettings, write_reward_settings  # noqa: E402
from anthrolab.training.settings import TrainingError  # noqa: E402
from tests.grpo_command import settings_of  # noqa: E402
from tests.policy_for_tests import partner, speaking_policy  # noqa: E402

DIMENSIONS = Dimensions.of(load_rubric())


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return speaking_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def toy() -> Iterator[Served]:
    with serve(partner) as served:
        yield served


@pytest.fixture(scope="module")
def systems(toy: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("systems") / "systems.yaml"
    path.write_text(f"systems:\n- name: toy\n  endpoint: {toy.url}\n  model: scripted\n  server: openai\n  policy: chat\n  retries: 0\n", encoding="utf-8")
    return path


def silent(_: str) -> None:
    """Nobody waits for progress here."""


@pytest.fixture(scope="module")
def undisturbed(policy: Path, systems: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed")
    train(settings_of(policy, out), silent, files=Files(systems=systems))
    return out


def without_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if "seconds" not in k} for row in rows]


def written(out: Path) -> dict[str, Any]:
    """All that a training's outcome is, without clocks."""
    files = {str(p.relative_to(out)): p.read_bytes() for pattern in ("rollouts/*", "rewards/*", "held_out/*", "capability.jsonl") for p in sorted(out.glob(pattern)) if not p.name.startswith(".")}
    return {**files, "log": without_time(read_log(out / "log.jsonl"))}


def adapter(out: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(out / "tuned" / "adapter_model.safetensors")


def same_adapter(one: Path, other: Path) -> bool:
    a, b = adapter(one), adapter(other)
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def capability_at(path: Path, step: int) -> Capability:
    (row,) = [row for row in read_log(path) if row["step"] == step]
    return Capability.from_json(json.dumps({"theta": row["theta"], "P": row["P"]}))


def test_a_training_writes_what_it_says(undisturbed: Path) -> None:
    folder = Folder(undisturbed)
    log = read_log(folder.log)
    assert [row["step"] for row in log] == [1, 2, 3, 4]
    assert all(row["rollouts"] == 4 and row["groups"] == 1 for row in log)
    assert [row["step"] for row in read_log(folder.capability)] == [0, 1, 2, 3, 4]
    frame = read_rewards(folder.rewards)
    assert frame.height == 16 and frame["step"].unique().to_list() == [1, 2, 3, 4]
    held = read_held_out(undisturbed / "held_out")
    assert held["step"].to_list() == [0, 2, 4] and held["case_id"].unique().to_list() == ["b02-a"]
    for step in (1, 2):  # the first one's dialogues were played for the gates
        spans = read_timeline(folder.timeline(step))
        assert {span.kind for span in spans} == {"generate", "partner", "judge", "reward", "train"}
        assert log[step - 1]["seconds"] == pytest.approx(max(span.end for span in spans), abs=0.01)
    manifest = json.loads(folder.manifest.read_text(encoding="utf-8"))
    assert manifest["finished"] and manifest["steps"] == 4 and manifest["gates"] and all(g["passed"] for g in manifest["gates"])
    assert "ref" not in [p.name for p in (undisturbed / "tuned").iterdir()], "the frozen copy is no result"


def test_the_log_of_rewards_is_what_filter_and_reward_make_of_the_rollouts(undisturbed: Path) -> None:
    folder = Folder(undisturbed)
    frame = read_rewards(folder.rewards)
    for step in range(1, 5):
        before = capability_at(folder.capability, step - 1)
        batch = batch_of([j for _, j in read_rollouts(folder.rollouts(step), DIMENSIONS)], DIMENSIONS)
        again = rewards(batch, before.theta, DIMENSIONS, PAPER).reward
        logged = frame.filter(pl.col("step") == step)["reward"].to_numpy()
        assert np.array_equal(again, logged, equal_nan=True)
        after, _ = before.observe(batch, PAPER)
        assert after.to_json() == capability_at(folder.capability, step).to_json()


def test_the_same_seed_gives_the_same_training(policy: Path, systems: Path, undisturbed: Path, tmp_path: Path) -> None:
    train(settings_of(policy, tmp_path), silent, files=Files(systems=systems))
    assert written(tmp_path) == written(undisturbed)
    assert same_adapter(tmp_path, undisturbed)


def test_a_finished_training_is_only_read(policy: Path, systems: Path, undisturbed: Path) -> None:
    before = written(undisturbed)
    said: list[str] = []
    done = train(settings_of(policy, undisturbed), said.append, files=Files(systems=systems))
    assert "nothing to do" in said[-1] and len(done.rows) == 4 and written(undisturbed) == before


def test_other_settings_in_the_same_folder_are_refused(policy: Path, systems: Path, undisturbed: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="learning_rate"):
        train(settings_of(policy, undisturbed, learning_rate=1e-4), silent, files=Files(systems=systems))
    write_reward_settings(tmp_path / "reward.json", RewardSettings(ablation="legacy"))
    with pytest.raises(TrainingError, match=r"reward\.ablation"):
        train(settings_of(policy, undisturbed, reward=tmp_path / "reward.json"), silent, files=Files(systems=systems))


def command(policy: Path, out: Path, systems: Path, steps: int = 4) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "tests.grpo_command", str(policy), str(out), str(systems), str(steps)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"})


@pytest.mark.parametrize("at", ["calls/step-0002.jsonl", "rollouts/0003.jsonl", "rewards/0002.parquet", "checkpoints/checkpoint-2", "held_out/0002.jsonl"])
def test_killed_and_gone_on_it_ends_as_undisturbed(at: str, policy: Path, systems: Path, toy: Served, undisturbed: Path, tmp_path: Path) -> None:
    asked = len(toy.calls)
    running = command(policy, tmp_path, systems)
    until = time.monotonic() + 300
    while not (tmp_path / at).exists() and running.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert (tmp_path / at).exists() and not (tmp_path / "tuned").exists(), "it was killed in the middle"
    rollouts = {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("rollouts/*.jsonl")}
    again = command(policy, tmp_path, systems)
    _, errors = again.communicate(timeout=300)
    assert again.returncode == 0, errors.decode()
    assert written(tmp_path) == written(undisturbed)
    assert same_adapter(tmp_path, undisturbed)
    assert all((tmp_path / "rollouts" / name).stat().st_mtime_ns == when for name, when in rollouts.items()), "what was played is not played again"
    needed = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in undisturbed.glob("calls/*.jsonl"))
    assert needed <= len(toy.calls) - asked <= needed + 4, "nothing is asked twice but what was on its way"


def test_a_finished_training_goes_on_with_more_steps(policy: Path, systems: Path, undisturbed: Path, tmp_path: Path) -> None:
    train(settings_of(policy, tmp_path, steps=2), silent, files=Files(systems=systems))
    train(settings_of(policy, tmp_path, steps=4), silent, files=Files(systems=systems))
    assert written(tmp_path) == written(undisturbed)
    assert same_adapter(tmp_path, undisturbed)


def test_the_initial_policy_can_be_the_partner(policy: Path, tmp_path: Path) -> None:
    done = train(settings_of(policy, tmp_path, partner="initial", steps=1, held_out_cases=0), silent)
    assert done.rows[0]["rollouts"] == 4 and not list((tmp_path / "calls").glob("step*"))


@pytest.mark.parametrize("ablation", ["legacy", "deficit_only", "zpd_only"])
def test_an_ablation_is_one_setting(ablation: Any, policy: Path, systems: Path, tmp_path: Path) -> None:
    write_reward_settings(tmp_path / "reward.json", RewardSettings(ablation=ablation))
    out = tmp_path / "out"
    train(settings_of(policy, out, reward=tmp_path / "reward.json", steps=2, held_out_cases=0), silent, files=Files(systems=systems))
    frame = read_rewards(out / "rewards").filter(pl.col("status") == "scored")
    theta = [row["theta"] for row in read_log(out / "capability.jsonl")]
    if ablation == "legacy":
        assert frame["reward"].to_list() == frame["legacy"].to_list()
    else:
        assert frame["adaptive"].to_list() != frame["legacy"].to_list()
    assert theta[0] != theta[2]


def test_weights_that_stay_want_a_beginning(policy: Path, systems: Path, tmp_path: Path) -> None:
    write_reward_settings(tmp_path / "reward.json", RewardSettings(ablation="static"))
    with pytest.raises(TrainingError, match="--capability-from"):
        train(settings_of(policy, tmp_path / "out", reward=tmp_path / "reward.json"), silent, files=Files(systems=systems))


def test_an_alarm_can_end_the_training(policy: Path, systems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from anthrolab.training.grpo import log
    from anthrolab.training.grpo.watch import Alarm

    monkeypatch.setattr(log, "alarms", lambda rows, watch: [Alarm(2, "chars", "messages grow")] if len(rows) >= 2 else [])
    said: list[str] = []
    done = train(settings_of(policy, tmp_path, watch={"stop": True}), said.append, files=Files(systems=systems))
    assert len(done.rows) == 2 and done.manifest["alarms"][0]["quantity"] == "chars"
    assert any("ALARM at step 2: messages grow" in line for line in said)
    assert read_held_out(tmp_path / "held_out")["step"].to_list() == [0, 2]


def test_gates_stop_a_policy_that_cannot_chat(systems: Path, tmp_path: Path) -> None:
    from tests.training_for_tests import tiny_base

    base = tiny_base(tmp_path / "base")
    seen = preflight(settings_of(base, tmp_path / "out", least_contract=0.5, held_out_cases=0), silent, files=Files(systems=systems))
    failed = {gate.name for gate in seen.gates if not gate.passed}
    assert {"contract", "reward"} <= failed
    with pytest.raises(TrainingError, match="fine-tune the policy"):
        train(settings_of(base, tmp_path / "out", least_contract=0.5, held_out_cases=0), silent, files=Files(systems=systems))


def test_the_command_line_trains(policy: Path, systems: Path, tmp_path: Path) -> None:
    s = settings_of(policy, tmp_path)
    named = {"held_out_cases", "cases", "policy", "out", "kind", "partner", "steps", "group"}
    others = [word for name, value in s.model_dump(mode="json", exclude_defaults=True).items() if name not in named for word in ("--set", f"{name}={json.dumps(value)}")]
    words = ["grpo", "train", "--policy", str(policy), "--out", str(tmp_path), "--kind", "transcript", "--partner", "toy", "--steps", "1", "--cases", "1", "--systems", str(systems), "--cache", "none", *others]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "ok   reward" in result.output and str(tmp_path / "tuned") in result.output


def test_a_limit_on_money_holds_over_commands(policy: Path, toy: Served, tmp_path: Path) -> None:
    systems = tmp_path / "systems.yaml"
    systems.write_text(
        f"systems:\n- name: toy\n  endpoint: {toy.url}\n  model: scripted\n  server: openai\n  policy: chat\n  prices: {{input: 1.0, output: 1.0}}\n", encoding="utf-8"
    )  # fmt: skip
    out = tmp_path / "out"
    first = train(settings_of(policy, out, steps=1, held_out_cases=0), silent, files=Files(systems=systems), effort=Effort(max_cost=1.0))
    spent = first.rows[-1]["cost"]
    assert spent > 0
    with pytest.raises(ModelError, match="max-cost"):
        train(settings_of(policy, out, steps=3, held_out_cases=0), silent, files=Files(systems=systems), effort=Effort(max_cost=spent * 1.01))
    done = train(settings_of(policy, out, steps=3, held_out_cases=0), silent, files=Files(systems=systems), effort=Effort(max_cost=1.0))
    assert len(done.rows) == 3


@pytest.mark.parametrize("first", [True, False])
def test_a_partner_that_fails_ends_the_command_and_leaves_no_rollouts(first: bool, policy: Path, undisturbed: Path, tmp_path: Path) -> None:
    """In the first step or later: the same command goes on once the partner answers, and ends as undisturbed."""
    asked = 0

    def answer(call: Call) -> str | Answer:
        nonlocal asked
        asked += 1
        return Answer({"error": "no key"}, status=401) if broken and (first or asked > 20) else partner(call)

    broken = True
    with serve(answer) as served:
        systems = tmp_path / "systems.yaml"
        systems.write_text(f"systems:\n- name: toy\n  endpoint: {served.url}\n  model: scripted\n  server: openai\n  policy: chat\n  retries: 0\n", encoding="utf-8")
        out = tmp_path / "out"
        with pytest.raises((TrainingError, ModelError)):
            train(settings_of(policy, out), silent, files=Files(systems=systems))
        played = sorted(p.name for p in out.glob("rollouts/*"))
        assert len(played) < 4 and (not first or not played)
        broken = False
        train(settings_of(policy, out), silent, files=Files(systems=systems))
    if first:  # the ids of its calls name another server
        found, expected = written(out), written(undisturbed)
        assert all(found[name] == expected[name] for name in ("log", "capability.jsonl"))
        assert same_adapter(out, undisturbed)


def test_bounds_may_be_widened_and_a_policy_may_lie_elsewhere(policy: Path, systems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(settings_of(policy, tmp_path, steps=1, held_out_cases=0), silent, files=Files(systems=systems))
    monkeypatch.chdir(policy.parent)
    changes: dict[str, Any] = {"max_length": 31_000, "token_budget": 50_000, "least_contract": 0.1}
    done = train(settings_of(Path(policy.name), tmp_path, steps=2, held_out_cases=0, **changes), silent, files=Files(systems=systems))
    assert len(done.rows) == 2


def test_an_alarms_stop_is_remembered_after_a_kill(policy: Path, systems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from anthrolab.training.grpo import log, training
    from anthrolab.training.grpo.watch import Alarm

    monkeypatch.setattr(log, "alarms", lambda rows, watch: [Alarm(2, "chars", "messages grow")] if len(rows) == 2 else [])
    settings = settings_of(policy, tmp_path, watch={"stop": True})

    def killed(*args: Any, **kwargs: Any) -> float:
        raise KeyboardInterrupt

    with monkeypatch.context() as once:
        once.setattr(training.Training, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            train(settings, silent, files=Files(systems=systems))
    done = train(settings, silent, files=Files(systems=systems))
    assert len(done.rows) == 2 and done.manifest["finished"]


def test_settings_changed_before_anything_was_learnt_play_anew(policy: Path, systems: Path, tmp_path: Path) -> None:
    said: list[str] = []
    preflight(settings_of(policy, tmp_path, held_out_cases=0), silent, files=Files(systems=systems))
    before = (tmp_path / "rollouts" / "0001.jsonl").read_bytes()
    done = train(settings_of(policy, tmp_path, held_out_cases=0, seed=2, steps=1), said.append, files=Files(systems=systems))
    assert (tmp_path / "rollouts" / "0001.jsonl").read_bytes() != before and done.manifest["settings"]["seed"] == 2
    assert any("played anew" in line for line in said)


@pytest.mark.parametrize("kind", ["fine-tuning", "run", "other files"])
def test_a_folder_of_something_else_is_refused_and_not_touched(kind: str, policy: Path, systems: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "checkpoint-5").mkdir(parents=True)
    (tmp_path / "rewards").mkdir()
    (tmp_path / "rewards" / "mine.txt").write_text("x")
    if kind != "other files":
        (tmp_path / "manifest.json").write_text(json.dumps({"settings": {"base": "b"}, "finished": True} if kind == "fine-tuning" else {"run": "r", "counts": {}}))
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    with pytest.raises(TrainingError, match="--out"):
        train(settings_of(policy, tmp_path), silent, files=Files(systems=systems))
    assert [p for p in sorted(str(p) for p in tmp_path.rglob("*")) if not p.endswith(".lock")] == before


def test_a_policy_that_is_not_there_is_said_at_once(systems: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no such folder; fine-tune one"):
        train(settings_of("runs/no/tuned", tmp_path), silent, files=Files(systems=systems))
