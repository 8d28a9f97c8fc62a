"""TRL's SFTTrainer on ready batches: made late, since unsloth must be imported before TRL, which it changes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from anthrolab.training.loss import completion_loss, padded_batch, tree_batch, windows_of
from anthrolab.training.prefix_tree import PrefixTree, plant
from anthrolab.training.settings import SFTSettings
from anthrolab.training.tokens import Encoded


class Batches:
    """The forward passes of an epoch, each ready for the model: trees of samples, or samples filled up to one length.

    Batches of samples that are nearly equally long waste the least. Their order is drawn anew for each epoch.
    """

    def __init__(self, encoded: Sequence[Encoded], settings: SFTSettings, model: Any, pad: int) -> None:
        self.windows = windows_of(model)
        self.pad = pad
        self.trees: list[PrefixTree] = plant(encoded, settings.token_budget) if settings.share_prefixes else []
        by_length = sorted(encoded, key=lambda e: e.length)
        self.rows = [] if settings.share_prefixes else [by_length[i : i + settings.batch] for i in range(0, len(by_length), settings.batch)]

    def __len__(self) -> int:
        return len(self.trees) or len(self.rows)

    def make(self, number: int) -> dict[str, Any]:
        """Forward pass `number` (from 0)."""
        return tree_batch(self.trees[number], self.windows) if self.trees else padded_batch(self.rows[number], self.pad)

    def tokens(self) -> int:
        """Tokens that go through the model in an epoch."""
        return sum(len(t) for t in self.trees) + sum(len(r) * max(e.length for e in r) for r in self.rows)


def trainer_class() -> type[Any]:
    """SFTTrainer with the loss of loss.py. TRL's own scores every prompt token where there is no GPU."""
    from trl.trainer.sft_trainer import SFTTrainer

    class ReadyTrainer(SFTTrainer):
        def compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None) -> Any:
            if model.training:
                self._total_train_tokens += int(inputs["input_ids"].numel())
                self._metrics["train"]["num_tokens"] = [self._total_train_tokens]
            return completion_loss(self.accelerator.unwrap_model(model), inputs, num_items_in_batch)

        def create_model_card(self, *args: Any, **kwargs: Any) -> None:
            """None: a card that nobody wrote says nothing."""

        def _set_signature_columns_if_needed(self) -> None:
            self._signature_columns: Any = ["number"]

    return ReadyTrainer


def make_trainer(
    model: Any, tokenizer: Any, batches: Batches, settings: SFTSettings, folder: Path, callbacks: list[Any]
) -> Any:
    """A trainer over ready batches; one row of its dataset is the number of one forward pass."""
    from datasets import Dataset  # type: ignore[import-untyped]
    from transformers import PrinterCallback
    from trl.trainer.sft_config import SFTConfig

    collate: Callable[[list[dict[str, int]]], dict[str, Any]] = lambda rows: batches.make(_only(rows)["number"])  # noqa: E731
    config = SFTConfig(
        output_dir=str(folder),
        per_device_train_batch_size=1,
        gradient_accumulation_steps=settings.accumulation,
        dataset_kwargs={"skip_prepare_dataset": True},
        **common_arguments(settings),
    )
    config._n_gpu = min(1, config.n_gpu)  # one forward pass a device: with more of them the trainer would ask for several rows at once
    trainer = trainer_class()(
        model=model, args=config, processing_class=tokenizer, callbacks=callbacks, data_collator=collate,
        train_dataset=Dataset.from_dict({"number": list(range(len(batches)))}),
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)  # the log says it already
    return trainer


def _only(rows: list[dict[str, int]]) -> dict[str, int]:
    """The row of a forward pass; more than one would mean that samples are passed over."""
    (row,) = rows
    return row


def common_arguments(settings: SFTSettings) -> dict[str, Any]:
    """What both backends tell TRL."""
    import torch

    return {
        "max_length": None,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": "cosine",
        "warmup_steps": settings.warmup,
        "num_train_epochs": settings.epochs,
        "max_steps": settings.max_steps or -1,
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
        "seed": settings.seed,
        "data_seed": settings.seed,
        "use_cpu": not torch.cuda.is_available(),
        "bf16": False,
        "gradient_checkpointing": settings.checkpoint_activations,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,  # it would log a loss that is not a number as 0; the log stops the training there
        "save_strategy": "steps",
        "save_steps": settings.save_steps,
        "save_total_limit": 2,
        "report_to": [],
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "average_tokens_across_devices": True,
    }
