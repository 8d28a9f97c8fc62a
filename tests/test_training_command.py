"""The verbs of fine-tuning, as a person types them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("trl")

from anthrolab.cli.training import app
from anthrolab.errors import AnthrolabError
from tests.training_for_tests import settings

FEW = ["--set", "dtype=float32", "--set", "threads=1", "--set", "lora_rank=4", "--set", "token_budget=900", "--set", "overfit_steps=0"]


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(w) for w in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_train_export_and_the_gates_between(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    where = ["--data", chosen.data, "--base", chosen.base]
    said = run("preflight", *where, "--no-model")
    assert said.count("ok  ") == 6 and "stop token" in said
    said = run("train", *where, "--out", tmp_path / "tuned", "--limit", 8, "--set", "max_steps=2", *FEW)
    assert "shared prefixes" in said and "held-out loss" in said
    assert said.splitlines()[-1] == str(tmp_path / "tuned" / "tuned")
    manifest = json.loads((tmp_path / "tuned" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["samples"]["train"] == 8 and manifest["settings"]["max_steps"] == 2
    assert run("export", tmp_path / "tuned", "--no-gguf").strip() == str(tmp_path / "tuned" / "merged")


def test_gold_data_are_split_and_can_be_trained_on(tmp_path: Path) -> None:
    from anthrolab.loop.sft.samples import read_samples
    from anthrolab.training.settings import SFTSettings

    run("data", "--out", tmp_path / "gold", "--held-out", "b01,b02", "--skills", "none")
    train, held_out = (read_samples(tmp_path / "gold" / f"{name}.jsonl") for name in ("train", "held_out"))
    assert {s.binding for s in held_out} >= {"b01", "b02"} and len(train) > 1500
    assert not {s.pair for s in train} & {s.pair for s in held_out}
    assert "【聊天的门道】" not in train[0].system, "no skills"
    SFTSettings.of(data=tmp_path / "gold", out=tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "lora_rank"], "--set lora_rank: give NAME=VALUE"),
        (["--set", "epochs=3"], "--set epochs: has an option of its own, --epochs"),
        (["--set", "lora_rnak=3"], "lora_rnak"),
        (["--backend", "other"], "backend"),
        (["--set", "max_length=60"], "gate 'truncation' failed"),
    ],
)
def test_what_cannot_be_trained_is_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    chosen = settings(tmp_path)
    with pytest.raises(AnthrolabError, match=said):
        run("train", "--data", chosen.data, "--base", chosen.base, "--out", tmp_path / "o", *words)


def test_a_tuned_gguf_becomes_a_system(tmp_path: Path) -> None:
    from anthrolab.models.systems import load_systems

    gguf = tmp_path / "tuned.gguf"
    gguf.write_bytes(b"GGUF....")
    file = tmp_path / "systems.yaml"
    assert run("add-system", "tuned", "--systems", file, "--partner", "gemma-3-270m", "--gguf", gguf).strip() == f"{file}: tuned"
    system = load_systems(file)["tuned"]
    assert (system.embedded, system.policy, system.model) == (True, "chat", str(gguf))
    run("add-system", "served", "--systems", file, "--partner", "tuned", "--endpoint", "http://localhost:8000/v1", "--model", "m", "--server", "openai")
    assert load_systems(file)["served"].server == "openai"
