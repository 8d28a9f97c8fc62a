"""Dialogue-level GRPO on TRL: a batch of rollouts in, as many training rows as the policy made decisions.

TRL's public hooks want one row a prompt. Here a small subclass of its trainer makes the batch itself: every decision is a row,
every row carries its dialogue's advantage, and the loss is divided by all tokens of the batch ("dapo"), so that a dialogue's
gradient is A(D) times the sum over its tokens. Everything that is private of TRL is touched in this file alone.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anthrolab.training.grpo.logps import tree_log_probs
from anthrolab.training.grpo.rollout import Decision, Prompt, Sampled
from anthrolab.training.grpo.settings import GRPOSettings
from anthrolab.training.prefix_tree import PrefixTree
from anthrolab.training.tokens import Encoded

PER_TOKEN = ("old_per_token_logps", "ref_per_token_logps", "sampling_per_token_logps", "importance_sampling_ratio")


@dataclass(frozen=True)
class Rows:
    """The training rows of a step: the policy's decisions, each with its dialogue's advantage. `tokens`: of all the step's
    decisions, also of those that are left out because they teach nothing; the loss is divided by it."""

    decisions: list[Decision]
    advantages: list[float]
    tokens: int


def trainer_class() -> type[Any]:
    """GRPOTrainer for dialogues; made late, so that importing this module loads no torch."""
    import torch
    from trl.trainer.grpo_trainer import GRPOTrainer
    from trl.trainer.utils import pad, use_adapter

    base: type[Any] = GRPOTrainer  # untyped: much of what is used here is private
    fill: Any = pad

    class DialogueGRPOTrainer(base):  # type: ignore[misc]
        """have: the rows of a step (from 1). keep: called with a checkpoint's folder after all else is in it."""

        def __init__(self, *args: Any, have: Callable[[int], Rows], keep: Callable[[str], None], share_prefixes: bool, token_budget: int, **kwargs: Any) -> None:
            super().__init__(*args, reward_funcs=[_no_reward_function], **kwargs)
            if self.loss_type not in ("dapo", "cispo"):
                raise ValueError(f"loss_type {self.loss_type}: is not divided by all tokens of the batch; take dapo or cispo")
            self.have, self.keep, self.share_prefixes, self.token_budget = have, keep, share_prefixes, token_budget

        def sample(self, prompts: Sequence[Prompt], seed: int) -> list[Sampled]:
            """Replies by vLLM (see `Sampler`). It draws by its own seed."""
            ids, logprobs = self._generate_single_turn([list(p.ids) for p in prompts], None, {}, num_generations=1)
            return [_of_vllm(i, lp, self.eos_token_ids) for i, lp in zip(ids, logprobs, strict=True)]

        def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
            rows = self.have(self.state.global_step + 1)
            batch = self.padded(rows.decisions)
            batch["advantages"] = torch.tensor(rows.advantages, dtype=torch.float32, device=self.accelerator.device)
            batch["num_items_in_batch"] = torch.tensor(float(rows.tokens), device=self.accelerator.device)
            with torch.no_grad():
                if self.use_vllm:
                    batch["old_per_token_logps"] = self._scored(self.model, batch)
                if self.use_vllm and rows.decisions:  # TRL's "token_truncate"; a token that vLLM gave no log p has ratio 1
                    drawn = [torch.tensor(d.logprobs or [torch.nan] * len(d.completion)) for d in rows.decisions]
                    batch["sampling_per_token_logps"] = fill(drawn, padding_value=0.0, padding_side="right").to(self.accelerator.device)
                    apart = (batch["old_per_token_logps"] - batch["sampling_per_token_logps"]) * batch["completion_mask"]
                    batch["importance_sampling_ratio"] = torch.exp(torch.nan_to_num(apart)).clamp(max=self.vllm_importance_sampling_clip_max)
                if self.beta != 0.0:
                    batch["ref_per_token_logps"] = self._reference(batch, use_adapter)
            return batch

        def padded(self, decisions: Sequence[Decision]) -> dict[str, Any]:
            """Decisions as TRL's tensors: prompts filled up on the left, completions on the right."""
            device, empty = self.accelerator.device, self._tokenizer.pad_token_id
            parts = {"prompt": ([d.prompt for d in decisions], "left"), "completion": ([d.completion for d in decisions], "right")}
            found = {}
            for name, (ids, side) in parts.items():
                tensors = [torch.tensor(i, dtype=torch.long) for i in ids] or [torch.zeros(0, dtype=torch.long)]
                found[f"{name}_ids"] = fill(tensors, padding_value=empty, padding_side=side)[: len(ids)].to(device)
                found[f"{name}_mask"] = fill([torch.ones_like(t) for t in tensors], padding_value=0, padding_side=side)[: len(ids)].to(device)
            return found

        def _reference(self, batch: dict[str, Any], use_adapter: Any) -> Any:
            """log p under the policy at the beginning: the adapter "ref", or a model of its own where all weights are trained."""
            if self.ref_model is not None:
                return self._scored(self.ref_model, batch)
            model = self.accelerator.unwrap_model(self.model)
            with use_adapter(model, adapter_name="ref"):
                return self._scored(self.model, batch)

        def _scored(self, model: Any, batch: dict[str, Any]) -> Any:
            """log p of every completion token (B, T), a few rows at a time."""
            found = torch.zeros(batch["completion_ids"].shape, dtype=torch.float32, device=self.accelerator.device)
            for rows in self.pieces(batch):
                part = _take(batch, rows)
                ids = torch.cat([part["prompt_ids"], part["completion_ids"]], 1)
                mask = torch.cat([part["prompt_mask"], part["completion_mask"]], 1)
                width = part["completion_ids"].shape[1]
                found[rows, :width] = self._get_per_token_logps_and_entropies(model, ids, mask, width)[0].float()
            return found * batch["completion_mask"]

        def pieces(self, batch: dict[str, Any]) -> list[list[int]]:
            """The rows in pieces of at most `token_budget` tokens each, those that begin alike together."""
            prompts = [row[mask == 1].tolist() for row, mask in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)]
            drawn = [row[mask == 1].tolist() for row, mask in zip(batch["completion_ids"], batch["completion_mask"], strict=True)]
            return list(_pieces(prompts, drawn, self.token_budget, self.share_prefixes))

        def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
            """All rows of the step, forwards and backwards a piece at a time; the pieces' losses add up to the batch's."""
            model.train()
            batch = self._generate_and_score_completions(inputs)
            total = torch.zeros((), device=self.accelerator.device)
            for rows in self.pieces(batch):
                loss = self.compute_loss(model, _take(batch, rows))
                self.accelerator.backward(loss)
                total += loss.detach()
            self._step += 1
            return total

        def _get_per_token_logps_and_entropies(self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, *args: Any, **kwargs: Any) -> Any:
            if not self.share_prefixes:
                return super()._get_per_token_logps_and_entropies(model, input_ids, attention_mask, logits_to_keep, *args, **kwargs)
            plain = self.accelerator.unwrap_model(model)
            return (*tree_log_probs(plain, input_ids, attention_mask, logits_to_keep, self.temperature), None)

        def _save_checkpoint(self, model: Any, trial: Any) -> None:
            super()._save_checkpoint(model, trial)
            self.keep(f"{self.args.output_dir}/checkpoint-{self.state.global_step}")

        def _load_from_checkpoint(self, checkpoint: str, model: Any = None) -> None:
            """The trained adapter of a checkpoint. (transformers sees the folder of "ref" beside it and would load that one alone.)"""
            own = self.accelerator.unwrap_model(model or self.model)
            if "default" not in getattr(own, "peft_config", {}):
                super()._load_from_checkpoint(checkpoint, model)
                return
            own.load_adapter(checkpoint, "default", is_trainable=True)
            own.set_adapter("default")

        def restore(self, checkpoint: str) -> None:
            """The weights of a checkpoint, without a step."""
            self._load_from_checkpoint(checkpoint)

        def create_model_card(self, *args: Any, **kwargs: Any) -> None:
            """None: a card that nobody wrote says nothing."""

    return DialogueGRPOTrainer


def arguments(s: GRPOSettings, checkpoints: Path, stops: Sequence[int] = ()) -> Any:
    """What TRL is told. One "sample" of its dataset stands for a dialogue, and means nothing."""
    import torch
    from trl.trainer.grpo_config import GRPOConfig

    vllm: dict[str, Any] = {}
    if s.backend != "transformers":
        vllm = {"use_vllm": True, "vllm_mode": "server" if s.backend == "vllm_server" else "colocate", "vllm_server_base_url": s.vllm_url, "vllm_max_model_length": s.max_length, "vllm_importance_sampling_mode": "token_truncate", "generation_kwargs": {"stop_token_ids": list(stops)}}
    return GRPOConfig(
        output_dir=str(checkpoints), per_device_train_batch_size=s.rollouts, gradient_accumulation_steps=1, steps_per_generation=1,
        num_generations=s.group, max_completion_length=s.max_new_tokens, temperature=s.temperature, top_p=1.0, top_k=0,
        beta=s.beta, loss_type="dapo", learning_rate=s.learning_rate, lr_scheduler_type="constant_with_warmup", warmup_steps=s.warmup,
        weight_decay=0.0, max_grad_norm=1.0, max_steps=s.steps, seed=s.seed, use_cpu=not torch.cuda.is_available(), bf16=False,
        gradient_checkpointing=False, disable_dropout=True, remove_unused_columns=False, ignore_data_skip=True, logging_steps=1, logging_nan_inf_filter=False,
        save_strategy="steps", save_steps=s.save_steps, save_total_limit=2, report_to=[], disable_tqdm=True, dataloader_pin_memory=False, **vllm,
    )  # fmt: skip


def _take(batch: dict[str, Any], rows: list[int]) -> dict[str, Any]:
    """Some rows of a batch, cut to their own longest prompt and completion."""
    prompt = int(batch["prompt_mask"][rows].sum(1).max())
    drawn = int(batch["completion_mask"][rows].sum(1).max())
    found = {name: batch[name][rows, batch[name].shape[1] - prompt :] for name in ("prompt_ids", "prompt_mask")}
    found |= {name: batch[name][rows, :drawn] for name in ("completion_ids", "completion_mask", *PER_TOKEN) if name in batch}
    return found | {"advantages": batch["advantages"][rows], "num_items_in_batch": batch["num_items_in_batch"]} if "advantages" in batch else found


def _pieces(prompts: list[list[int]], drawn: list[list[int]], budget: int, share: bool) -> Iterator[list[int]]:
    """Row numbers in pieces of at most `budget` tokens (a longer row goes alone), what rows share counted once if `share`."""
    order = sorted(range(len(prompts)), key=lambda i: prompts[i]) if share else range(len(prompts))
    rows: list[int] = []
    tree, longest = PrefixTree(), 0
    for i in order:
        row = Encoded(str(i), "", tuple(prompts[i]), tuple(drawn[i]))
        grown = max(longest, row.length)
        more = len(tree) + tree.new_tokens(row) if share else grown * (len(rows) + 1)
        if rows and more > budget:
            yield rows
            rows, tree, grown = [], PrefixTree(), row.length
        longest = grown
        rows.append(i)
        if share:
            tree.add(row)
    if rows:
        yield rows


def _of_vllm(ids: Sequence[int], logprobs: Sequence[float | None], stops: Sequence[int]) -> Sampled:
    """A reply of vLLM; log p is nan where there is none."""
    return Sampled.of(ids, stops, [math.nan if p is None else p for p in logprobs])


def _no_reward_function(prompts: list[Any], completions: list[Any], **kwargs: Any) -> list[float]:
    """TRL wants a reward function; the rewards of dialogues come with their rollouts, so this one is never asked."""
    raise AssertionError("rewards come with the rollouts")
