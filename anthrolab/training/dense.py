"""The base model as a folder that transformers loads: a GGUF is taken apart once and kept."""

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from anthrolab.files import content_hash, write_atomic
from anthrolab.models.bundled import GEMMA, LocalModelError, cache_dir
from anthrolab.models.local import find_model
from anthrolab.training.chat_template import stop_ids, with_chat_template
from anthrolab.training.gguf_tokenizer import tokenizer_from_gguf
from anthrolab.training.settings import TrainingError

DONE = "anthrolab_base.json"
"""Written last into a dense folder: what it was made of."""

LAYOUT = 1
"""Changes when a dense folder of an earlier version is no good any more."""

END = 2**20
"""Bytes at each end of a file of weights that name it: training changes all of them."""


def gguf_of(base: str) -> Path | None:
    """The GGUF file behind a base (the embedded model's too), or None for a folder or a name on the hub."""
    if base == GEMMA or base.endswith(".gguf"):
        try:
            return find_model(base)[0]
        except LocalModelError as e:
            raise TrainingError(str(e)) from None
    return None


def dense_folder(base: str) -> str:
    """What transformers is given to load: the folder or hub name itself, or the dense copy of a GGUF, made if need be.

    The copy (1.1 GB for the embedded model, float32) lies in the cache beside the embedded model, named by the file's
    content; a killed copy leaves only a folder that is made anew.
    """
    path = gguf_of(base)
    if path is None:
        return base
    identity = find_model(base)[1]
    folder = cache_dir() / f"{path.stem}-dense-{content_hash([identity, LAYOUT])}"
    if not (folder / DONE).exists():
        neighbour = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
        shutil.rmtree(neighbour, ignore_errors=True)
        try:
            _take_apart(path, neighbour)
            write_atomic(neighbour / DONE, json.dumps({"made_of": identity, "layout": LAYOUT}) + "\n")
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(folder)
            os.replace(neighbour, folder)
        except OSError as e:
            if not (folder / DONE).exists():  # another process may have been faster
                raise TrainingError(f"{folder}: cannot be written ({e.strerror}); free some space or set ANTHROLAB_CACHE") from e
        finally:
            shutil.rmtree(neighbour, ignore_errors=True)
    return str(folder)


def _take_apart(path: Path, folder: Path) -> None:
    import torch
    from gguf import GGUFReader
    from transformers import AutoModelForCausalLM, GgufConfig

    fields = GGUFReader(path).fields
    kind = fields["general.architecture"].contents()
    if kind != "gemma3":
        raise TrainingError(f"{path}: is of architecture {kind}; only gemma3 is taken apart here, so give the model's folder or hub name as base")
    scale = fields.get("gemma3.rope.scaling.factor")
    if scale is not None and scale.contents() != 1.0:  # Gemma 3 from 4B on; transformers drops it from a GGUF
        raise TrainingError(f"{path}: scales its positions (gemma3.rope.scaling.factor), which is lost when it is taken apart; give the folder for transformers as base")
    tokenizer = tokenizer_from_gguf(path)
    model = AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    with_chat_template(tokenizer, str(path))
    model.generation_config.eos_token_id = stop_ids(tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load_tokenizer(base: str) -> Any:
    """The tokenizer of a base, with a chat template in any case; TrainingError if it cannot be had."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(dense_folder(base))
    except (OSError, ValueError) as e:
        raise TrainingError(f"base '{base}': cannot be loaded ({_first_line(e)}); give gemma3-270m, a .gguf file, a folder or a name on the hub") from e
    with_chat_template(tokenizer, base)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(base: str, dtype: str, stops: list[int], attention: str) -> Any:
    """The base model in memory, its list of end tokens set before any trainer sees it."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        model: Any = AutoModelForCausalLM.from_pretrained(dense_folder(base), dtype=getattr(torch, dtype), attn_implementation=attention)
    except (OSError, ValueError) as e:
        raise TrainingError(f"base '{base}': cannot be loaded ({_first_line(e)}); give gemma3-270m, a .gguf file, a folder or a name on the hub") from e
    model.generation_config.eos_token_id = stops
    return model.to("cuda") if torch.cuda.is_available() else model


def base_identity(base: str) -> str:
    """Names the base by its content: a GGUF by its hash; a folder by its sizes, its config and both ends of each file of
    weights (a second of reading); a hub name by itself."""
    if gguf_of(base) is not None:
        return find_model(base)[1]
    folder = Path(base).expanduser()
    if not folder.is_dir():
        return base
    sizes = [(p.name, p.stat().st_size) for p in sorted(folder.iterdir()) if p.is_file()]
    config = (folder / "config.json").read_bytes() if (folder / "config.json").exists() else b""
    weights = [_ends(p) for p in sorted(folder.iterdir()) if p.suffix in (".safetensors", ".bin")]
    return f"{folder.name}:{content_hash([sizes, content_hash(config), weights])}"


def _ends(path: Path) -> str:
    """A hash of the first and the last megabyte."""
    with path.open("rb") as f:
        head = f.read(END)
        f.seek(max(0, path.stat().st_size - END))
        return content_hash(head + f.read(END))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
