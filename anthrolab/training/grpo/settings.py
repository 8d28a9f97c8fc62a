"""The settings of a GRPO training, checked before anything heavy is loaded."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from anthrolab.training.grpo.watch import WatchSettings
from anthrolab.training.settings import Settings

INITIAL = "initial"
"""In place of a system's name: the partner is the policy as it was when the training began."""

Cases = int | list[str]

_NOT_DECISIVE = {
    "out", "policy", "skills", "reward", "capability_from", "vllm_url", "threads", "token_budget", "save_steps", "steps", "max_length", "least_contract", "watch",
}  # fmt: skip


class GRPOSettings(Settings):
    """Settings of dialogue-level GRPO (paper section 4.6). Use `GRPOSettings.of(...)` for one-line errors."""

    policy: str = Field(min_length=1, description="folder of a finished fine-tuning, or a base model: 'gemma3-270m', a .gguf file of Gemma 3, a folder of transformers, a name on its hub")
    out: Path = Field(description="the folder of this training: rollouts, rewards, capability, checkpoints, log, manifest, adapter")
    kind: Literal["chat", "transcript"] = Field(default="chat", description="how the policy is asked: two messages and a JSON decision, or a plain transcript to go on with")
    judge: str = Field(default="rules", min_length=1, description="'rules', or a chat system that judges the rollouts")
    partner: str = Field(default="gemma-3-270m", min_length=1, description=f"the system that plays the other side, or '{INITIAL}': the policy as it was at the beginning")
    reward: Path | None = Field(default=None, description="a file of reward settings (notebook 08 writes one); null: the paper's")
    capability_from: Path | None = Field(default=None, description="a judged run of the policy, whose scores per dimension are theta_0; null: theta begins with the first batch")
    backend: Literal["transformers", "vllm", "vllm_server"] = Field(default="transformers", description="what samples: transformers (CPU or GPU), vLLM in this process, or a vLLM server (trl vllm-serve)")
    vllm_url: str | None = Field(default=None, description="address of the server for backend vllm_server")
    cases: Cases | None = Field(default=None, description="how many cases to train on, or which; null: all that are not held out")
    cases_per_step: int = Field(default=1, ge=1, le=1024, description="groups of one step")
    group: int = Field(default=4, ge=2, le=256, description="dialogues of one case: G")
    steps: int = Field(default=20, ge=1, le=1_000_000)
    max_messages: int = Field(default=8, ge=2, le=200, description="messages of a dialogue, the opener included")
    max_new_tokens: int = Field(default=96, ge=4, le=8192, description="tokens of one decision; a longer one is cut and breaks the contract")
    window: int = Field(default=12, ge=1, le=1000, description="messages that a prompt holds verbatim")
    skills: str | None = Field(default=None, description="folder of skills, or 'none'; null: those beside the cards, else those that come with anthrolab")
    temperature: float = Field(default=1.0, gt=0, le=5, allow_inf_nan=False, description="of the policy that is trained: log p is taken at it too")
    learning_rate: float = Field(default=1e-5, gt=0, le=1, allow_inf_nan=False)
    warmup: int = Field(default=0, ge=0, description="steps in which the rate rises; then it is constant")
    beta: float = Field(default=0.04, ge=0, le=10, allow_inf_nan=False, description="weight of the KL to the policy at the beginning; 0: none is computed")
    scale_advantages: bool = Field(default=True, description="divide advantages by the group's standard deviation")
    lora_rank: int | None = Field(default=16, ge=1, le=1024, description="of a fresh adapter; an adapter that the policy has already is trained on as it is; null: all weights")
    lora_alpha: int = Field(default=32, ge=1, le=4096)
    share_prefixes: bool = Field(default=True, description="what prompts share goes through the model once; the log probabilities are the same (a gate checks it)")
    token_budget: int = Field(default=6000, ge=64, le=1_000_000, description="tokens of one forward and backward pass (a longer decision goes alone): memory grows with it")
    max_length: int = Field(default=4096, ge=16, le=1_000_000, description="tokens of prompt and decision; a longer prompt ends the command")
    dtype: Literal["auto", "float32", "bfloat16"] = Field(default="auto", description="of the frozen weights; auto: bfloat16 where the processor multiplies it, else float32")
    threads: int | None = Field(default=None, ge=1, le=1024, description="processor threads; null: all cores of this process")
    save_steps: int = Field(default=1, ge=1, description="a checkpoint every so many steps; two are kept")
    held_out_cases: Cases = Field(default=0, description="cases that teach nothing and are judged now and then: how many of the benchmark's first, or which")
    held_out_every: int = Field(default=5, ge=1, description="steps between two looks at the held-out cases (before the first step and after the last in any case)")
    least_contract: float = Field(default=0.25, ge=0, le=1, description="share of first replies that must keep the contract before anything is trained")
    watch: WatchSettings = Field(default=WatchSettings(), description="what counts as reward hacking, and whether it stops the training")
    seed: int = Field(default=1, ge=0, lt=2**31)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.backend != "transformers" and self.partner == INITIAL:
            raise ValueError(f"partner: '{INITIAL}' is sampled by transformers only; serve the policy elsewhere and name that system")
        if self.backend == "vllm_server" and self.vllm_url is None:
            raise ValueError("vllm_url: backend vllm_server needs the address of the server, such as http://localhost:8000")
        if self.partner == INITIAL and self.lora_rank is None:
            raise ValueError(f"partner: '{INITIAL}' is kept as an adapter, so lora_rank cannot be null; name a system")
        return self

    @property
    def decisive(self) -> dict[str, Any]:
        """What decides the outcome: all but where things lie (they are known by their content), what only changes speed, and
        bounds that stop a training and may be widened."""
        return self.model_dump(mode="json", exclude=_NOT_DECISIVE)

    @property
    def rollouts(self) -> int:
        """Dialogues of one step."""
        return self.cases_per_step * self.group
