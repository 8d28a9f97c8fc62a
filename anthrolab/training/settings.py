"""The settings of a fine-tuning, checked before anything heavy is loaded."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from anthrolab.errors import AnthrolabError
from anthrolab.yaml_files import explain

INSTALL_TRAIN = "pip install 'anthrolab[train]'"


class TrainingError(AnthrolabError):
    """A training that cannot begin, go on or be exported."""


class Settings(BaseModel):
    """Settings of a training: strict types, no unknown names, fixed once made. Use `of(...)` for one-line errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """The settings; TrainingError with a line `setting: problem; fix` for each fault."""
        try:
            return cls.model_validate(values)
        except ValidationError as e:
            raise TrainingError("\n".join(explain(e, cls))) from None


class SFTSettings(Settings):
    """Settings of a supervised fine-tuning (paper section 4.6). Use `SFTSettings.of(...)` for one-line errors."""

    base: str = Field(
        default="gemma3-270m", min_length=1,
        description="'gemma3-270m' (the embedded model), a .gguf file of Gemma 3, a folder of transformers, or a name on its hub",
    )
    data: Path = Field(description="a folder with train.jsonl and held_out.jsonl")
    out: Path = Field(description="the folder of this training: checkpoints, log, manifest, adapter")
    backend: Literal["plain", "unsloth"] = Field(default="plain", description="unsloth needs a GPU and an environment of its own")
    limit: int | None = Field(default=None, ge=1, description="train on so many samples of the file, spread over its dialogues; null: all")
    lora_rank: int | None = Field(default=16, ge=1, le=1024, description="null: no adapter, all weights are trained")
    lora_alpha: int = Field(default=32, ge=1, le=4096, description="the adapter's scale is alpha / rank")
    lora_dropout: float = Field(default=0.0, ge=0, lt=1)
    lora_targets: str | list[str] = Field(default="all-linear", description="'all-linear', or the names of modules such as q_proj")
    learning_rate: float = Field(default=5e-4, gt=0, le=1, allow_inf_nan=False)
    warmup: float = Field(default=0.05, ge=0, lt=1, description="share of the steps in which the rate rises; then it falls along a cosine")
    epochs: float = Field(default=1.0, gt=0, le=1000, allow_inf_nan=False)
    max_steps: int | None = Field(default=None, ge=1, description="stop after so many steps; null: by the epochs")
    share_prefixes: bool = Field(
        default=True,
        description="samples of one speaker in one dialogue go through the model together, what their prompts share only once; "
        "the loss is the same (a gate checks it)",
    )
    batch: int = Field(default=1, ge=1, le=4096, description="samples of one forward pass; not used with share_prefixes")
    token_budget: int = Field(
        default=3000, ge=64, le=1_000_000,
        description="tokens of one forward pass with share_prefixes (a longer sample goes alone): memory grows with it",
    )
    accumulation: int = Field(default=2, ge=1, le=4096, description="forward passes of one optimiser step")
    max_length: int = Field(default=4096, ge=16, le=1_000_000, description="tokens of a sample; a gate stops if completions would be cut")
    max_truncated: float = Field(default=0.0, ge=0, lt=1, description="share of samples that may lose the beginning of their prompt")
    seed: int = Field(default=1, ge=0, lt=2**31)
    dtype: Literal["auto", "float32", "bfloat16"] = Field(default="auto", description="auto: bfloat16 where the processor multiplies it, else float32")
    threads: int | None = Field(default=None, ge=1, le=1024, description="processor threads; null: all cores of this process")
    save_steps: int = Field(default=10, ge=1, description="a checkpoint every so many steps; two are kept")
    checkpoint_activations: bool = Field(default=False, description="less memory for a third more time")
    overfit_steps: int = Field(default=8, ge=0, le=1000, description="steps of the one-batch gate; 0 leaves it out")
    overfit_share: float = Field(default=0.7, gt=0, lt=1, description="the loss must fall below this share of its first value there")
    held_out_samples: int = Field(default=60, ge=0, description="samples of held_out.jsonl for the loss before and after; 0: none")
    allow_thinking: bool = Field(default=False, description="completions may hold <think> text")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.backend == "unsloth" and self.lora_rank is None:
            raise ValueError("lora_rank: unsloth trains an adapter; give it a rank such as 16")
        targets = [self.lora_targets] if isinstance(self.lora_targets, str) else self.lora_targets
        for name in ("lm_head", "embed_tokens"):
            if any(name in target for target in targets):
                raise ValueError(f"lora_targets: an adapter on {name} would train one model and export another (the loss reads the head's weight directly); leave it out")
        return self

    @property
    def decisive(self) -> dict[str, Any]:
        """What decides the outcome: all but where it lies and what only changes speed or safety."""
        return self.model_dump(mode="json", exclude={"out", "data", "threads", "save_steps"})


