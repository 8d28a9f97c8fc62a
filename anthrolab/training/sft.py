"""A supervised fine-tuning from settings to an adapter: gates first, then steps, resumable at each checkpoint."""

import shutil
import time
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from anthrolab.files import only_one
from anthrolab.training import tree_attention
from anthrolab.training.chat_template import stop_ids
from anthrolab.training.checkpoints import cut_log, is_last, last_checkpoint, read_log, step_of
from anthrolab.training.data import Data, encode_all, read_data
from anthrolab.training.dense import base_identity, load_model, load_tokenizer
from anthrolab.training.heavy import dtype_of, load_torch, load_unsloth
from anthrolab.training.loss import completion_loss
from anthrolab.training.manifest import check_same, read_manifest, write_manifest
from anthrolab.training.model_gates import overfit_gate, scores_gate, to_device
from anthrolab.training.preflight import Preflight, token_gates
from anthrolab.training.settings import SFTSettings, TrainingError
from anthrolab.training.tokens import Encoded
from anthrolab.training.trainer import Batches, make_trainer
from anthrolab.training.training_log import Say, duration, log_callback

LIBRARIES = ("torch", "transformers", "trl", "peft", "datasets", "accelerate", "tokenizers")


@dataclass(frozen=True)
class Trained:
    """A training that is done. `tuned`: the folder of the adapter (or of the whole model); `rows`: its log."""

    out: Path
    tuned: Path
    rows: list[dict[str, Any]]
    manifest: dict[str, Any]


def train(settings: SFTSettings, say: Say = print) -> Trained:
    """Fine-tune, or go on where a killed command stopped; a finished training is only read.

    Writes into `settings.out`: manifest.json, log.jsonl, checkpoints/, and tuned/ with adapter (or model) and tokenizer.
    TrainingError names the gate, setting or file that stands in the way.
    """
    with only_one(settings.out, TrainingError(f"{settings.out}: another command trains there; wait for it or give another folder")):
        return _train(settings, say)


def preflight(settings: SFTSettings, with_model: bool = True) -> Preflight:
    """All gates without the training; `with_model`: those too that load the model (seconds to minutes)."""
    _load(settings)
    data = read_data(settings)
    tokenizer = load_tokenizer(settings.base)
    encoded = encode_all(tokenizer, data.train, settings.max_length)
    seen = token_gates(tokenizer, data.train, encoded, settings)
    if with_model and seen.passed and settings.backend == "plain":
        return _model_gates(_model(settings, tokenizer), encoded, settings, seen)
    return seen


def _load(settings: SFTSettings) -> None:
    """The libraries, in the one order that unsloth takes."""
    if settings.backend == "unsloth":
        load_unsloth()
    load_torch(settings.threads)


def _train(settings: SFTSettings, say: Say) -> Trained:
    out, log = settings.out, settings.out / "log.jsonl"
    _load(settings)
    data = read_data(settings)
    checkpoint = last_checkpoint(out / "checkpoints")
    manifest = _begin(settings, data, anew=checkpoint is None)
    if "finished" in manifest:
        say(f"{out}: is trained already; nothing to do")
        return Trained(out, out / "tuned", read_log(log), manifest)
    began = time.monotonic()
    cut_log(log, step_of(checkpoint) if checkpoint else 0)
    tokenizer = load_tokenizer(settings.base)
    encoded = encode_all(tokenizer, data.train, settings.max_length)
    held_out = encode_all(tokenizer, data.held_out, settings.max_length)
    seen = token_gates(tokenizer, data.train, encoded, settings)
    seen.require()
    if settings.backend == "unsloth":
        from anthrolab.training.unsloth_backend import unsloth_trainer

        trainer = unsloth_trainer(settings, encoded, out / "checkpoints", [log_callback(log, say)])
        losses: dict[str, float | None] = {}
        manifest |= {"gates": seen.as_rows()}
    else:
        model = _model(settings, tokenizer)
        if checkpoint is None:
            seen = _model_gates(model, encoded, settings, seen)
            seen.require()
            manifest |= {"gates": seen.as_rows(), "held_out_loss_before": mean_loss(model, held_out, settings, tokenizer)}
        batches = Batches(encoded, settings, model, tokenizer.pad_token_id)
        once = sum(e.length for e in encoded)
        say(f"{len(encoded)} samples in {len(batches)} forward passes: {batches.tokens()} tokens an epoch instead of {once}")
        trainer = make_trainer(model, tokenizer, batches, settings, out / "checkpoints", [log_callback(log, say)])
    write_manifest(out / "manifest.json", manifest)  # not before the gates have passed: their advice holds for this folder
    if checkpoint and is_last(checkpoint):
        trainer._load_from_checkpoint(str(checkpoint))  # train() would go one step further
    else:
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if settings.backend == "plain":
        losses = {"held_out_loss_after": mean_loss(trainer.model, held_out, settings, tokenizer)}
    keep_tuned(trainer.model, tokenizer, out / "tuned")
    rows = read_log(log)
    steps = {"steps": len(rows), "training_seconds": round(sum(row["seconds"] for row in rows), 1), "tokens": rows[-1]["tokens"] if rows else 0}
    manifest |= {**losses, **steps, "last_command_seconds": round(time.monotonic() - began, 1), "finished": True}
    write_manifest(out / "manifest.json", manifest)
    say(f"trained in {duration(steps['training_seconds'])}: {out / 'tuned'}")
    return Trained(out, out / "tuned", rows, manifest)


def mean_loss(model: Any, encoded: list[Encoded], settings: SFTSettings, tokenizer: Any) -> float | None:
    """The loss per completion token over samples, nothing learnt; None without samples."""
    import torch

    if not encoded:
        return None
    batches = Batches(encoded, settings, model, tokenizer.pad_token_id)
    was, total, count = model.training, 0.0, 0
    model.eval()
    with torch.no_grad():
        for number in range(len(batches)):
            batch = to_device(model, batches.make(number))
            total += float(completion_loss(model, batch, 1))
            count += len(batch["labels"])
    model.train(was)
    return round(total / count, 5)


def _model(settings: SFTSettings, tokenizer: Any) -> Any:
    """The base with a fresh adapter, the same for the same seed."""
    from transformers import set_seed

    tree_attention.register()
    attention = tree_attention.NAME if settings.share_prefixes else "sdpa"
    model = load_model(settings.base, dtype_of(settings), stop_ids(tokenizer), attention)
    set_seed(settings.seed)
    if settings.lora_rank is None:
        return model
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=settings.lora_rank, lora_alpha=settings.lora_alpha, lora_dropout=settings.lora_dropout,
        target_modules=settings.lora_targets, exclude_modules=["lm_head"], task_type="CAUSAL_LM",
    )  # fmt: skip
    try:
        return get_peft_model(model, config)
    except ValueError as e:
        raise TrainingError(f"lora_targets {settings.lora_targets}: do not fit {settings.base} ({str(e)[:120]}); write 'all-linear'") from e


def _model_gates(model: Any, encoded: list[Encoded], settings: SFTSettings, seen: Preflight) -> Preflight:
    gates = [*seen.gates, scores_gate(model, encoded, dtype_of(settings), settings.share_prefixes)]
    if settings.overfit_steps:
        gates.append(overfit_gate(model, encoded, settings))
    return replace(seen, gates=gates)


def _begin(settings: SFTSettings, data: Data, anew: bool) -> dict[str, Any]:
    """The manifest of the folder: a fresh one while there is nothing to go on from (`anew`: no checkpoint), else the one that
    lies there, compared with the settings, base and data of now."""
    path = settings.out / "manifest.json"
    fresh = {
        "settings": settings.decisive,
        "base": base_identity(settings.base),
        "data": data.hashes,
        "samples": {"train": len(data.train), "held_out": len(data.held_out)},
    }
    manifest = read_manifest(path)
    if not manifest and not anew:
        raise TrainingError(f"{path}: is missing, though there are checkpoints; give another folder with --out")
    if anew and "finished" not in manifest:
        return {**fresh, "dtype": dtype_of(settings), "versions": library_versions()}
    check_same(settings.out, manifest, fresh)
    return manifest


def keep_tuned(model: Any, tokenizer: Any, folder: Path) -> None:
    """Adapter (the one that was trained) or model, with the tokenizer, whole or not at all."""
    neighbour = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(neighbour, ignore_errors=True)
    model.save_pretrained(neighbour, **({"selected_adapters": ["default"]} if hasattr(model, "peft_config") else {}))
    tokenizer.save_pretrained(neighbour)
    shutil.rmtree(folder, ignore_errors=True)
    neighbour.rename(folder)


def library_versions() -> dict[str, str | None]:
    """The versions of what trains."""
    return {name: _version(name) for name in LIBRARIES}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
