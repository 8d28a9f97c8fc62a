"""The policy that is trained: a fine-tuning's adapter on its base, or a base with a fresh adapter."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anthrolab.files import read_text
from anthrolab.training import tree_attention
from anthrolab.training.chat_template import stop_ids
from anthrolab.training.dense import base_identity, load_model, load_tokenizer
from anthrolab.training.grpo.settings import INITIAL, GRPOSettings
from anthrolab.training.settings import TrainingError


@dataclass(frozen=True)
class Origin:
    """Where a policy begins: its base, and the folder of the adapter on it (None: a fresh one, or none)."""

    base: str
    adapter: Path | None

    @property
    def identity(self) -> dict[str, str | None]:
        """Names both by their content."""
        return {"base": base_identity(self.base), "adapter": base_identity(str(self.adapter)) if self.adapter else None}


def origin_of(policy: str) -> Origin:
    """What a policy's name stands for: a finished fine-tuning (or GRPO training), or a base model.

    TrainingError for a training that is not finished, or whose base is not the one that it was made on.
    """
    folder = Path(policy).expanduser()
    if not (folder / "manifest.json").exists():
        named = policy.startswith((".", "/", "~")) or policy.count("/") > 1 or policy.startswith("runs/")
        if named and not folder.is_dir() and not policy.endswith(".gguf"):
            raise TrainingError(f"policy: {policy}: no such folder; fine-tune one with `anthrolab sft train`, or name a base model")
        return Origin(policy, None)
    manifest = json.loads(read_text(folder / "manifest.json"))
    if not manifest.get("finished"):
        raise TrainingError(f"policy: {folder} is a training that is not finished; bring it to its end first")
    tuned = folder / "tuned"
    if not (tuned / "adapter_config.json").exists():
        return Origin(str(tuned), None)
    base = str(manifest["settings"]["base"])
    if base_identity(base) != manifest["base"]:
        raise TrainingError(f"policy: {folder}: its base '{base}' is not what the adapter was trained on ({manifest['base']}); put that one back")
    return Origin(base, tuned)


def load_policy_tokenizer(origin: Origin) -> Any:
    """The tokenizer that the policy was tuned with."""
    return load_tokenizer(str(origin.adapter or origin.base))


def load_policy(origin: Origin, settings: GRPOSettings, dtype: str, tokenizer: Any) -> Any:
    """The model in memory, ready to be trained; its adapter is called "default"."""
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import GenerationConfig, set_seed

    tree_attention.register()
    attention = tree_attention.NAME if settings.share_prefixes else "sdpa"
    model = load_model(origin.base, dtype, stop_ids(tokenizer), attention)
    # the model's own (a repetition penalty, say) would draw from another distribution than the one that is trained
    model.generation_config = GenerationConfig(bos_token_id=tokenizer.bos_token_id, eos_token_id=stop_ids(tokenizer), pad_token_id=tokenizer.pad_token_id)  # type: ignore[no-untyped-call]
    set_seed(settings.seed)
    if origin.adapter is not None:
        model = PeftModel.from_pretrained(model, str(origin.adapter), is_trainable=True)
    elif settings.lora_rank is not None:
        config = LoraConfig(
            r=settings.lora_rank, lora_alpha=settings.lora_alpha, target_modules="all-linear", exclude_modules=["lm_head"], task_type="CAUSAL_LM"
        )
        model = get_peft_model(model, config)
    if settings.partner == INITIAL and settings.beta == 0.0:  # with beta TRL makes this copy itself
        model.add_adapter("ref", model.peft_config["default"])
        for name, weight in list(model.named_parameters()):
            if ".default." in name:
                model.get_parameter(name.replace(".default.", ".ref.")).data.copy_(weight.data)
        model.set_adapter("default")
    return model
