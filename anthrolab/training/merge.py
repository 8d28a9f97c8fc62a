"""The tuned model as a whole: adapter merged into the base, in a folder that vLLM and `transformers serve` take."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from anthrolab.files import read_text
from anthrolab.training.chat_template import stop_ids
from anthrolab.training.dense import base_identity, dense_folder, gguf_of, load_model, load_tokenizer
from anthrolab.training.gguf_file import Quantize, write_gguf
from anthrolab.training.heavy import load_torch
from anthrolab.training.settings import TrainingError

Dtype = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class Exported:
    """`folder`: for transformers and vLLM; `gguf`: for the embedded server, None if none was wanted."""

    folder: Path
    gguf: Path | None


def export(training: Path, *, dtype: Dtype = "float32", gguf: bool = True, base_gguf: Path | None = None, quantize: Quantize = "Q8_0") -> Exported:
    """Write `merged/`, and `<training>.gguf` beside it, into the folder of a finished training.

    dtype: of the merged folder (a CPU serves float32 faster). base_gguf: tokenizer and metadata of the GGUF come from it;
    None: the base itself, if it is a GGUF. TrainingError for a training that is not finished, or without a GGUF to take them from.
    """
    base: str = _manifest_of(training)["settings"]["base"]
    source = base_gguf or gguf_of(base)
    if gguf and source is None:
        raise TrainingError(f"{training}: base '{base}' is no GGUF; name one of the same model with --base-gguf, or leave the GGUF out with --no-gguf")
    folder = merge(training, dtype)
    if not gguf or source is None:
        return Exported(folder, None)
    from transformers import AutoTokenizer

    template = AutoTokenizer.from_pretrained(folder).chat_template
    return Exported(folder, write_gguf(folder, source, training / f"{training.resolve().name}.gguf", chat_template=template, quantize=quantize))


def export_base(base: str, out: Path, *, quantize: Quantize = "Q8_0") -> Path:
    """The untouched base as a GGUF that answers chats in the template that its tuning would use, so that it can be asked what
    the tuned model is asked; TrainingError if the base is no GGUF. (The file it comes from has no template, and llama.cpp
    would put another one on it.)"""
    source = gguf_of(base)
    if source is None:
        raise TrainingError(f"base '{base}': is no GGUF; a folder of transformers is served by vLLM or `transformers serve` as it is")
    load_torch()
    return write_gguf(Path(dense_folder(base)), source, out, chat_template=load_tokenizer(base).chat_template, quantize=quantize)


def merge(training: Path, dtype: Dtype = "float32") -> Path:
    """Base and adapter as one model, with tokenizer, chat template and the list of end tokens; returns `merged/`."""
    manifest = _manifest_of(training)
    base: str = manifest["settings"]["base"]
    load_torch()
    from transformers import AutoTokenizer

    tuned, folder = training / "tuned", training / "merged"
    tokenizer = AutoTokenizer.from_pretrained(tuned)
    stops = stop_ids(tokenizer)
    if (tuned / "adapter_config.json").exists():
        from peft import PeftModel

        if base_identity(base) != manifest["base"]:
            raise TrainingError(f"{training}: base '{base}' is not what the adapter was trained on ({manifest['base']}); put that one back")
        model: Any = load_model(base, "float32", stops, "sdpa")
        model = PeftModel.from_pretrained(model, str(tuned)).merge_and_unload()
    else:
        model = load_model(str(tuned), "float32", stops, "sdpa")
    import torch

    model = model.to(getattr(torch, dtype))
    model.generation_config.eos_token_id = stops
    neighbour = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(neighbour, ignore_errors=True)
    model.save_pretrained(neighbour)
    tokenizer.save_pretrained(neighbour)
    shutil.rmtree(folder, ignore_errors=True)
    neighbour.rename(folder)
    return folder


def _manifest_of(training: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(read_text(training / "manifest.json")) if (training / "manifest.json").exists() else {}
    if not manifest.get("finished"):
        raise TrainingError(f"{training}: is no finished training; run `anthrolab sft train` to its end first")
    return manifest
