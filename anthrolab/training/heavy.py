"""Loading torch, transformers and their friends: late, quietly, and with one sentence where they are missing."""

import os
from typing import Any, Protocol

from anthrolab.models.local import SPINS, usable_cores
from anthrolab.training.settings import INSTALL_TRAIN, TrainingError


class Weights(Protocol):
    """Settings that say how the weights are held."""

    @property
    def dtype(self) -> str: ...

    @property
    def lora_rank(self) -> int | None: ...


def load_torch(threads: int | None = None) -> Any:
    """The torch module with its threads set; TrainingError if the `train` extra is not installed."""
    os.environ.setdefault("GOMP_SPINCOUNT", SPINS)  # as in models/local.py: read once, when torch is loaded
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        import torch
        import transformers
    except ImportError as e:
        raise TrainingError(f"training needs {e.name}, which is not installed; run: {INSTALL_TRAIN}") from None
    torch.set_num_threads(threads or usable_cores())
    logging: Any = transformers.utils.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return torch


def load_unsloth() -> Any:
    """unsloth, which must be imported before trl, transformers and peft; TrainingError where it cannot work."""
    import sys

    try:
        import torch
    except ImportError:
        raise TrainingError("backend: unsloth needs its own environment; run there: pip install 'anthrolab[unsloth]'") from None
    if not torch.cuda.is_available():
        raise TrainingError("backend: unsloth needs a GPU and this machine has none; write 'plain'")
    loaded = [name for name in ("trl", "transformers", "peft") if name in sys.modules]
    if loaded and "unsloth" not in sys.modules:
        raise TrainingError(f"backend: unsloth must be imported before {', '.join(loaded)}; start the training in a fresh process")
    try:
        import unsloth  # type: ignore[import-not-found]
    except ImportError:
        raise TrainingError("backend: unsloth is not installed; run in an environment of its own: pip install 'anthrolab[unsloth]'") from None
    return unsloth


def dtype_of(settings: Weights) -> str:
    """The dtype of the frozen weights: as set; 'auto' is bfloat16 where the processor multiplies it fast."""
    if settings.dtype != "auto":
        return settings.dtype
    import torch

    fast = torch.cuda.is_available() or torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bfloat16" if fast and settings.lora_rank is not None else "float32"
