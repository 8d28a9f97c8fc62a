"""Training with unsloth: its own model loader, its own kernels, one sample a row. Needs a GPU; see heavy.load_unsloth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anthrolab.training.settings import SFTSettings
from anthrolab.training.tokens import Encoded
from anthrolab.training.trainer import common_arguments


def rows_of(encoded: Sequence[Encoded]) -> dict[str, list[list[int]]]:
    """Samples as TRL's ready-made columns: ids, and 1 where the loss is."""
    return {
        "input_ids": [[*e.prompt, *e.completion] for e in encoded],
        "completion_mask": [[0] * len(e.prompt) + [1] * len(e.completion) for e in encoded],
    }


def unsloth_trainer(settings: SFTSettings, encoded: Sequence[Encoded], folder: Path, callbacks: list[Any]) -> Any:
    """TRL's trainer as unsloth has changed it, on the same tokens and masks as the plain backend."""
    import unsloth  # type: ignore[import-not-found]
    from datasets import Dataset  # type: ignore[import-untyped]
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    from anthrolab.training.chat_template import stop_ids, with_chat_template
    from anthrolab.training.dense import dense_folder

    model, tokenizer = unsloth.FastLanguageModel.from_pretrained(
        model_name=dense_folder(settings.base), max_seq_length=settings.max_length, load_in_4bit=False, dtype=None
    )
    with_chat_template(tokenizer, settings.base)
    model.generation_config.eos_token_id = stop_ids(tokenizer)
    targets = settings.lora_targets
    modules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"] if targets == "all-linear" else targets
    model = unsloth.FastLanguageModel.get_peft_model(
        model, r=settings.lora_rank, lora_alpha=settings.lora_alpha, lora_dropout=settings.lora_dropout,
        target_modules=modules, random_state=settings.seed,
    )  # fmt: skip
    config = SFTConfig(
        output_dir=str(folder), per_device_train_batch_size=settings.batch, gradient_accumulation_steps=settings.accumulation,
        completion_only_loss=True, **common_arguments(settings),
    )  # fmt: skip
    return SFTTrainer(model=model, args=config, processing_class=tokenizer, callbacks=callbacks, train_dataset=Dataset.from_dict(rows_of(encoded)))
