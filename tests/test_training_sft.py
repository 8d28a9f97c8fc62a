"""A whole training on a tiny random model: it learns, it goes on after a kill, it refuses what does not fit."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

import torch

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.loop.sft.entries import gold_entries
from anthrolab.loop.sft.pool import PoolSettings, build_pool
from anthrolab.loop.sft.samples import read_samples
from anthrolab.training import sft, trainer
from anthrolab.training.chat_template import GEMMA, stop_ids
from anthrolab.training.checkpoints import last_checkpoint, read_log
from anthrolab.training.data import encode_all, evenly, spread
from anthrolab.training.dense import base_identity, load_tokenizer
from anthrolab.training.heavy import dtype_of, load_unsloth
from anthrolab.training.loss import completion_loss, padded_batch
from anthrolab.training.merge import export, merge
from anthrolab.training.prefix_tree import plant
from anthrolab.training.settings import SFTSettings, TrainingError
from anthrolab.training.sft import Trained, preflight, train
from anthrolab.training.trainer import common_arguments
from anthrolab.training.unsloth_backend import rows_of
from tests.training_for_tests import sample, settings, tiny_model, tiny_tokenizer, write_data

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[SFTSettings, Trained, list[str]]:
    chosen = settings(tmp_path_factory.mktemp("trained"), max_steps=16, epochs=8.0)
    said: list[str] = []
    return chosen, train(chosen, said.append), said


def test_the_loss_falls_on_the_samples_and_on_those_held_out(trained: tuple[SFTSettings, Trained, list[str]]) -> None:
    _, done, said = trained
    assert [row["step"] for row in done.rows] == list(range(1, 17))
    assert done.rows[-1]["loss"] < done.rows[0]["loss"] - 0.2, "an adapter moves a random model a little"
    assert done.manifest["held_out_loss_after"] < done.manifest["held_out_loss_before"] - 0.2
    assert all(math.isfinite(row["loss"]) and row["seconds"] > 0 for row in done.rows)
    assert any("step 16 of 16" in line and "left" in line for line in said)


def test_the_manifest_says_what_was_trained_on_what(trained: tuple[SFTSettings, Trained, list[str]]) -> None:
    chosen, done, _ = trained
    manifest = json.loads((chosen.out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest == done.manifest
    assert manifest["samples"] == {"train": 16, "held_out": 4}
    assert manifest["settings"]["lora_rank"] == 4
    assert set(manifest["data"]) == {"train", "held_out"}
    assert all(gate["passed"] for gate in manifest["gates"]) and len(manifest["gates"]) == 8
    assert manifest["versions"]["trl"] and manifest["tokens"] == done.rows[-1]["tokens"] > 0


def test_the_same_command_again_changes_nothing(trained: tuple[SFTSettings, Trained, list[str]]) -> None:
    chosen, done, _ = trained
    before = {p: p.stat().st_mtime_ns for p in chosen.out.rglob("*") if p.is_file() and p.name != ".lock"}
    said: list[str] = []
    again = train(chosen, said.append)
    assert again.manifest == done.manifest and again.rows == done.rows
    assert {p: p.stat().st_mtime_ns for p in chosen.out.rglob("*") if p.is_file() and p.name != ".lock"} == before
    assert said == [f"{chosen.out}: is trained already; nothing to do"]


def test_other_settings_or_data_in_the_same_folder_are_refused(trained: tuple[SFTSettings, Trained, list[str]]) -> None:
    chosen, _, _ = trained
    with pytest.raises(TrainingError, match=r"was begun with settings.learning_rate = 0.01 and not 0.02; give another folder"):
        train(settings(chosen.out.parent, max_steps=16, epochs=8.0, learning_rate=0.02), print)
    other = write_data(chosen.out.parent / "other", dialogues=3)
    with pytest.raises(TrainingError, match=r"was begun with data.train = "):
        train(settings(chosen.out.parent, max_steps=16, epochs=8.0, data=other), print)


def test_the_merged_model_says_what_base_and_adapter_say_together(trained: tuple[SFTSettings, Trained, list[str]]) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    chosen, done, _ = trained
    folder = merge(chosen.out)
    merged: Any = AutoModelForCausalLM.from_pretrained(folder)
    base: Any = AutoModelForCausalLM.from_pretrained(chosen.base)
    ids = torch.tensor([[2, 40, 50, 60, 70]])
    with torch.no_grad():
        apart = base(ids).logits.clone()
        tuned = PeftModel.from_pretrained(base, str(done.tuned))(ids).logits
        assert torch.allclose(merged(ids).logits, tuned, atol=1e-4)
        assert not torch.allclose(tuned, apart, atol=1e-2), "the adapter says something"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.chat_template == GEMMA
    assert merged.generation_config.eos_token_id == stop_ids(tokenizer) == [1, 5]


def test_a_gguf_needs_a_gguf_to_come_from(trained: tuple[SFTSettings, Trained, list[str]], tmp_path: Path) -> None:
    chosen, _, _ = trained
    with pytest.raises(TrainingError, match="is no GGUF; name one of the same model with --base-gguf"):
        export(chosen.out)
    assert export(chosen.out, gguf=False).gguf is None
    with pytest.raises(TrainingError, match="is no finished training"):
        merge(tmp_path)


def test_the_stop_token_is_learnt(tmp_path: Path) -> None:
    """After the training the model gives the end of the turn more probability after a whole answer than before it."""
    chosen = settings(tmp_path, max_steps=24, epochs=12.0, lora_rank=None)
    train(chosen, lambda line: None)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(chosen.out / "tuned")
    encoded = encode_all(tokenizer, read_samples(chosen.data / "train.jsonl"), 4096)[0]
    chances = []
    for folder in (chosen.base, merge(chosen.out)):
        model: Any = AutoModelForCausalLM.from_pretrained(folder)
        with torch.no_grad():
            scores = model(torch.tensor([[*encoded.prompt, *encoded.completion[:-1]]])).logits[0, -1].softmax(-1)
        chances.append(float(scores[encoded.completion[-1]]))
    assert chances[1] > 5 * chances[0]


def test_the_loss_is_trls_own(tmp_path: Path) -> None:
    """TRL's trainer on the same tokens and mask, with its own scoring of every token, has the same number."""
    from datasets import Dataset
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    chosen = settings(tmp_path, share_prefixes=False, lora_rank=None)
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = GEMMA
    encoded = encode_all(tokenizer, [sample(0, k) for k in range(3)], 4096)
    model = tiny_model()
    config = SFTConfig(
        output_dir=str(tmp_path / "trl"), per_device_train_batch_size=3, completion_only_loss=True,
        **{**common_arguments(chosen), "gradient_checkpointing": False},
    )  # fmt: skip
    trainer: Any = SFTTrainer(model=model, args=config, processing_class=tokenizer, train_dataset=Dataset.from_dict(rows_of(encoded)))
    batch = next(iter(trainer.get_train_dataloader()))
    model.eval()
    theirs = trainer.compute_loss(model, dict(batch), num_items_in_batch=None)
    assert completion_loss(model, padded_batch(encoded, 0)).item() == pytest.approx(theirs.item(), abs=1e-5)


def test_a_step_over_several_batches_weighs_every_token_alike(tmp_path: Path) -> None:
    """A fresh adapter changes nothing, so the first step's loss is the base model's over all completion tokens."""
    chosen = settings(tmp_path, max_steps=1, accumulation=100, token_budget=500, overfit_steps=0)
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = GEMMA
    encoded = encode_all(tokenizer, read_samples(chosen.data / "train.jsonl"), 4096)
    sizes = [len(tree.asked) for tree in plant(encoded, chosen.token_budget)]
    assert len(set(sizes)) > 1, "batches of unequal size"
    (row,) = train(chosen, lambda line: None).rows
    assert row["loss"] == pytest.approx(float(completion_loss(tiny_model().eval(), padded_batch(encoded, 0))), abs=1e-4)


def test_a_full_fine_tuning_without_shared_prefixes_learns_too(tmp_path: Path) -> None:
    done = train(settings(tmp_path, lora_rank=None, share_prefixes=False, batch=4, max_steps=8, learning_rate=5e-3), lambda line: None)
    assert done.rows[-1]["loss"] < 0.9 * done.rows[0]["loss"]
    assert (done.tuned / "model.safetensors").exists()
    assert (merge(done.out) / "model.safetensors").exists()


CHILD = """
import sys
from pathlib import Path
from tests.training_for_tests import settings
from anthrolab.training.sft import train
train(settings(Path(sys.argv[1]), max_steps=10, epochs=8.0, lora_dropout=0.1), lambda line: print(line, flush=True))
"""


def _child(tmp: Path) -> "subprocess.Popen[str]":
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    return subprocess.Popen([sys.executable, "-c", CHILD, str(tmp)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)


def _losses(tmp: Path) -> list[tuple[int, float, int]]:
    return [(row["step"], row["loss"], row["tokens"]) for row in read_log(tmp / "out" / "log.jsonl")]


def test_a_killed_training_goes_on_to_the_same_losses(tmp_path: Path) -> None:
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    for tmp in (calm, killed):
        tmp.mkdir()
        settings(tmp)
    assert _child(calm).wait(180) == 0
    child = _child(killed)
    log = killed / "out" / "log.jsonl"
    end = time.monotonic() + 150
    while len(read_log(log)) < 5 and child.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert 5 <= len(read_log(log)) < 10, "it was killed on its way"
    checkpoint = last_checkpoint(killed / "out" / "checkpoints")
    assert checkpoint is not None
    assert _child(killed).wait(180) == 0
    for (step, loss, tokens), (step2, loss2, tokens2) in zip(_losses(calm), _losses(killed), strict=True):
        assert (step, tokens) == (step2, tokens2)
        assert loss2 == pytest.approx(loss, abs=1e-5), f"step {step}"
    results = [json.loads((tmp / "out" / "manifest.json").read_text(encoding="utf-8")) for tmp in (calm, killed)]
    assert results[0]["held_out_loss_after"] == pytest.approx(results[1]["held_out_loss_after"], abs=1e-4)
    assert results[0]["gates"] == results[1]["gates"]


def test_a_torn_checkpoint_is_passed_over(tmp_path: Path) -> None:
    for step, whole in ((2, True), (4, False)):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
            (folder / name).touch()
        text = json.dumps({"global_step": step})
        (folder / "trainer_state.json").write_text(text if whole else text[:-3], encoding="utf-8")
    assert last_checkpoint(tmp_path) == tmp_path / "checkpoint-2"
    assert not (tmp_path / "checkpoint-4").exists()
    (tmp_path / "checkpoint-2" / "optimizer.pt").unlink()
    assert last_checkpoint(tmp_path) is None


def test_a_failed_gate_stops_before_the_first_step(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"gate 'truncation' failed: .*raise max_length to \d+"):
        train(settings(tmp_path, max_length=100), print)
    assert not (tmp_path / "out" / "checkpoints").exists()
    seen = preflight(settings(tmp_path, out=tmp_path / "other"))
    assert seen.passed and [g.name for g in seen.gates[-2:]] == ["shared prefixes", "one-batch overfit"]
    plain = preflight(settings(tmp_path, out=tmp_path / "other", share_prefixes=False))
    assert plain.passed and [g.name for g in plain.gates[-2:]] == ["the model's own scores", "one-batch overfit"]


@pytest.mark.parametrize("wrong", [{"max_length": 100}, {"overfit_share": 0.001}])
def test_the_advice_of_a_failed_gate_can_be_followed_in_the_same_folder(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(TrainingError, match=r"gate '.*' failed"):
        train(settings(tmp_path, max_steps=1, **wrong), lambda line: None)
    assert train(settings(tmp_path, max_steps=1), lambda line: None).manifest["finished"]


def test_a_loss_or_gradient_that_is_no_number_stops_before_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def ill(model: Any, batch: Any, divide_by: Any = None) -> Any:
        nonlocal calls
        calls += 1
        return completion_loss(model, batch, divide_by) * (math.nan if calls > 2 else 1.0)

    monkeypatch.setattr(trainer, "completion_loss", ill)
    chosen = settings(tmp_path, overfit_steps=0, held_out_samples=0, save_steps=1)
    with pytest.raises(TrainingError, match=r"out: step 2: loss is nan, so nothing is learnt any more; lower learning_rate"):
        train(chosen, lambda line: None)
    assert [row["step"] for row in read_log(chosen.out / "log.jsonl")] == [1]
    assert [p.name for p in (chosen.out / "checkpoints").iterdir()] == ["checkpoint-1"]
    monkeypatch.setattr(trainer, "completion_loss", lambda *given: _EndlessSlope.apply(completion_loss(*given)))
    with pytest.raises(TrainingError, match=r"other: step 1: grad_norm is (inf|nan)"):
        train(settings(tmp_path, out=tmp_path / "other", overfit_steps=0, held_out_samples=0), lambda line: None)
    monkeypatch.undo()
    lower = settings(tmp_path, out=tmp_path / "other", overfit_steps=0, held_out_samples=0, learning_rate=1e-3, max_steps=1)
    assert train(lower, lambda line: None).manifest["finished"], "without a checkpoint the folder is begun anew"


class _EndlessSlope(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loss: torch.Tensor) -> torch.Tensor:
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> torch.Tensor:
        return slope * math.inf


def test_every_forward_pass_is_made_with_more_than_one_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As transformers sees a machine with two: it would hand two rows to one collate."""
    from trl.trainer.sft_config import SFTConfig

    ready = SFTConfig.__post_init__

    def with_two(config: Any) -> None:
        ready(config)
        config._n_gpu = 2

    monkeypatch.setattr(SFTConfig, "__post_init__", with_two)
    chosen = settings(tmp_path, share_prefixes=False)
    tokenizer = load_tokenizer(chosen.base)
    model = tiny_model()
    batches = trainer.Batches(encode_all(tokenizer, [sample(0, k) for k in range(4)], 4096), chosen, model, 0)
    made = trainer.make_trainer(model, tokenizer, batches, chosen, tmp_path / "c", [])
    assert made.args.train_batch_size == 1 and len(made.get_train_dataloader()) == len(batches) == 4
    with pytest.raises(ValueError, match="too many values"):
        made.data_collator([{"number": 0}, {"number": 1}])


@pytest.mark.parametrize("rank", [4, None])
def test_a_kill_after_the_last_checkpoint_trains_no_step_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: int | None) -> None:
    """The planned steps end within an epoch; the kill comes while the held-out loss is computed."""
    chosen = settings(tmp_path, max_steps=3, epochs=1.0, accumulation=1, overfit_steps=0, lora_rank=rank)
    calm = train(settings(tmp_path, out=tmp_path / "calm", max_steps=3, epochs=1.0, accumulation=1, overfit_steps=0, lora_rank=rank), lambda line: None)
    true = sft.mean_loss

    def killed(model: Any, *given: Any) -> float | None:
        if (chosen.out / "checkpoints").exists():
            raise KeyboardInterrupt
        return true(model, *given)

    with monkeypatch.context() as patch:
        patch.setattr(sft, "mean_loss", killed)
        with pytest.raises(KeyboardInterrupt):
            train(chosen, lambda line: None)
    rows = read_log(chosen.out / "log.jsonl")
    again = train(chosen, lambda line: None)
    assert again.rows == rows and [(r["step"], r["loss"]) for r in rows] == [(r["step"], r["loss"]) for r in calm.rows]
    assert again.manifest["steps"] == 3
    assert again.manifest["held_out_loss_after"] == calm.manifest["held_out_loss_after"] != again.manifest["held_out_loss_before"]


def test_a_base_of_other_weights_in_the_same_folder_is_another_base(tmp_path: Path) -> None:
    chosen = settings(tmp_path, max_steps=1, overfit_steps=0)
    train(chosen, lambda line: None)
    before = base_identity(chosen.base)
    tiny_model(seed=1).save_pretrained(chosen.base)
    assert base_identity(chosen.base) != before
    with pytest.raises(TrainingError, match=r"is not what the adapter was trained on \(base:.*\); put that one back"):
        merge(chosen.out)
    tiny_model(seed=0).save_pretrained(chosen.base)
    assert base_identity(chosen.base) == before
    merge(chosen.out)


def test_a_gemma_that_scales_its_positions_is_not_taken_out_of_a_gguf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gguf import GGUFWriter

    monkeypatch.setenv("ANTHROLAB_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "4b.gguf"
    writer = GGUFWriter(path, "gemma3")
    writer.add_rope_scaling_factor(8.0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(TrainingError, match=r"4b.gguf: scales its positions \(gemma3.rope.scaling.factor\).*give the folder for transformers"):
        load_tokenizer(str(path))


def test_a_pair_on_both_sides_of_the_split_is_refused(tmp_path: Path) -> None:
    folder = write_data(tmp_path / "data")
    rows = (folder / "train.jsonl").read_text(encoding="utf-8").splitlines()
    with (folder / "held_out.jsonl").open("a", encoding="utf-8") as f:
        f.write(rows[0] + "\n")
    with pytest.raises(TrainingError, match=r"the pair p01\+p02 stands in train.jsonl and held_out.jsonl"):
        train(settings(tmp_path), print)


def test_missing_data_and_bases_are_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"nowhere/train.jsonl: cannot be read .*`anthrolab sft data` makes"):
        train(settings(tmp_path, data=tmp_path / "nowhere"), print)
    with pytest.raises(TrainingError, match=r"base '.*/none': cannot be loaded"):
        train(settings(tmp_path, base=str(tmp_path / "none")), print)
    with pytest.raises(TrainingError, match=r"none.gguf: no such model file"):
        train(settings(tmp_path, base=str(tmp_path / "none.gguf")), print)
    with pytest.raises(TrainingError, match=r"lora_targets \['nothing'\]: do not fit"):
        train(settings(tmp_path, lora_targets=["nothing"], out=tmp_path / "out2"), print)


def test_settings_name_the_field_and_the_fix() -> None:
    for change, words in (
        ({"epochs": 0}, "epochs"), ({"lora_targets": ["lm_head"]}, "lm_head"), ({"lora_targets": ["q_proj", "embed_tokens"]}, "embed_tokens"),
        ({"lora_targets": ".*embed_tokens"}, "embed_tokens"), ({"learning_rate": "x"}, "learning_rate"),
        ({"backend": "unsloth", "lora_rank": None}, "unsloth"), ({"lora_rnak": 3}, "lora_rnak"),
    ):  # fmt: skip
        with pytest.raises(TrainingError, match=words):
            SFTSettings.of(**{"data": Path("d"), "out": Path("o"), **change})


def test_unsloth_without_a_gpu_is_one_clear_sentence(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    chosen = settings(tmp_path, backend="unsloth")
    for call in (load_unsloth, lambda: train(chosen, print), lambda: preflight(chosen), lambda: preflight(chosen, with_model=False)):
        with pytest.raises(TrainingError, match=r"^backend: unsloth needs a GPU and this machine has none; write 'plain'$"):
            call()


def test_unsloth_must_come_before_the_libraries_that_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(TrainingError, match=r"must be imported before .*transformers.*fresh process"):
        load_unsloth()
    for name in ("trl", "transformers", "peft"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "unsloth", None)
    with pytest.raises(TrainingError, match="unsloth is not installed"):
        load_unsloth()


def test_all_weights_are_trained_in_float32_unless_it_is_said(tmp_path: Path) -> None:
    assert dtype_of(settings(tmp_path, dtype="auto", lora_rank=None)) == "float32"
    assert dtype_of(settings(tmp_path, dtype="bfloat16", lora_rank=None)) == "bfloat16"


def test_a_limit_takes_whole_runs_and_keeps_every_category_and_side() -> None:
    """Dialogues stand in the file in the order of their categories, as gold dialogues do; a limit must not follow that order."""
    cycle = ("Sport", "Work", "Pet/Fam.", "Daily")
    samples = [
        replace(sample(n, k), category=cycle[n % 4], speaker="ab"[k % 2], id=f"d{n}/{k}") for n in range(24) for k in range(8)
    ]  # fmt: skip
    for limit in (32, 48, 96, 100):
        taken = spread(samples, limit)
        assert len(taken) == limit
        counts = Counter((s.category, s.speaker) for s in taken)
        assert len(counts) == 8 and max(counts.values()) - min(counts.values()) <= 4, counts
        runs = Counter((s.dialogue_id, s.speaker) for s in taken)
        assert sum(n != 4 for n in runs.values()) <= 1, "only the last run may be cut"
    assert spread(samples, None) == samples == spread(samples, 192)
    assert [s.id for s in evenly(samples, 3)] == ["d0/0", "d8/0", "d16/0"] and evenly(samples, 500) == samples


def test_the_gold_dialogues_keep_every_category_under_a_limit() -> None:
    library = load_library(default_cards_dir())
    pool = build_pool(gold_entries(library, default_cards_dir()), PoolSettings("both", 0.0))
    wanted = Counter(s.category for s in pool.samples)
    got = Counter(s.category for s in spread(pool.samples, 600))
    assert set(got) == set(wanted) and min(got.values()) >= 0.5 * 600 / len(wanted)
