"""Sampling with transformers: a wave's prompts go group by group, and what a group shares is read once.

All prompts of a group begin with the same system text. Its keys and values are kept, shifted under each row so that every
row ends at the same place; the model then reads only the rest of each prompt. On two cores that is a third of the work.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from anthrolab.training.grpo.rollout import Prompt, Sampled, Whose

LEAST_SHARED = 64
"""Tokens that must be shared for it to be worth keeping them."""


@dataclass
class _Kept:
    """The keys and values of a beginning, one pair a layer, each (1, heads, tokens, size)."""

    ids: tuple[int, ...]
    layers: list[tuple[Any, Any]]


@dataclass
class TransformersSampler:
    """Draws replies from a model of transformers, with or without adapters. `stops`: tokens that end a reply.

    What is kept between waves belongs to the weights of now: `forget` after every step.
    """

    model: Any
    pad: int
    stops: Sequence[int]
    max_new_tokens: int
    temperature: float = 1.0
    share: bool = True
    _kept: dict[str, _Kept] = field(default_factory=dict)

    def forget(self) -> None:
        """The weights have changed."""
        self._kept.clear()

    def sample(self, prompts: Sequence[Prompt], seed: int) -> list[Sampled]:
        """One reply a prompt, in order (see `Sampler`)."""
        import torch

        batches = _batches(prompts)
        found: list[Sampled | None] = [None] * len(prompts)
        devices = [self.model.device] if self.model.device.type == "cuda" else []
        was = self.model.training
        self.model.eval()
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=devices):
                torch.manual_seed(seed)
                for batch, rows in batches.items():
                    with speaking(self.model, prompts[rows[0]].whose):
                        for row, reply in zip(rows, self._draw(batch, [prompts[i].ids for i in rows]), strict=True):
                            found[row] = reply
        finally:
            self.model.train(was)
        return [reply for reply in found if reply is not None]

    def _draw(self, group: str, prompts: list[tuple[int, ...]]) -> list[Sampled]:
        import torch
        from transformers import GenerationConfig

        longest = max(map(len, prompts))
        ids = torch.full((len(prompts), longest), self.pad)
        mask = torch.zeros((len(prompts), longest), dtype=torch.long)
        for row, prompt in enumerate(prompts):
            ids[row, longest - len(prompt) :] = torch.tensor(prompt)
            mask[row, longest - len(prompt) :] = 1
        config = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=self.max_new_tokens, do_sample=True, temperature=self.temperature, top_p=1.0, top_k=0,
            eos_token_id=list(self.stops), pad_token_id=self.pad, disable_compile=True,
        )  # fmt: skip
        device = self.model.device
        cache = self._shared(group, prompts, longest) if self.share else None
        more = {} if cache is None else {"past_key_values": cache}
        out = self.model.generate(input_ids=ids.to(device), attention_mask=mask.to(device), generation_config=config, **more)
        return [Sampled.of(row, self.stops) for row in out[:, longest:].tolist()]

    def _shared(self, group: str, prompts: list[tuple[int, ...]], longest: int) -> Any:
        """A cache of what the rows share, or None if that is too little.

        With e = longest - len(row), a row's cache holds e places that nobody sees and then its first (shared - e) tokens: so
        all rows have as much in the cache, and as much left to read, as the longest one.
        """
        from transformers import DynamicCache

        shared = min(_common(prompts[0], p) for p in prompts)
        shared = min(shared, min(map(len, prompts)) - 1)
        short = longest - min(map(len, prompts))
        if shared - short < LEAST_SHARED:
            return None
        kept = self._kept.get(group)
        usable = _common(kept.ids, prompts[0]) if kept else 0
        if kept is None or min(usable, shared) < shared - LEAST_SHARED:
            kept = self._kept[group] = self._read(prompts[0][:shared])
            usable = shared
        shared = min(shared, usable)
        if shared - short < LEAST_SHARED:
            return None
        cache = DynamicCache()
        for layer, (key, value) in enumerate(kept.layers):
            rows = []
            for whole in (key, value):
                shifted = whole.new_zeros((len(prompts), whole.shape[1], shared, whole.shape[3]))
                for row, prompt in enumerate(prompts):
                    gap = longest - len(prompt)
                    shifted[row, :, gap:] = whole[0, :, : shared - gap]
                rows.append(shifted)
            cache.update(rows[0], rows[1], layer)
        return cache

    def _read(self, ids: tuple[int, ...]) -> _Kept:
        """The model's keys and values after the ids, all of them (a cache of the model's own would drop what is out of its
        sliding windows)."""
        import torch
        from transformers import DynamicCache

        cache = DynamicCache()
        self.model(input_ids=torch.tensor([ids], device=self.model.device), past_key_values=cache, use_cache=True, logits_to_keep=1)
        return _Kept(ids, [(keys, values) for keys, values, *_ in cache])


@contextmanager
def speaking(model: Any, whose: Whose) -> Iterator[None]:
    """The model as it is, or as it was at the beginning: the adapter "ref", where the training has made one."""
    if whose == "policy":
        yield
        return
    if "ref" not in getattr(model, "peft_config", {}):
        raise ValueError("the policy as it was at the beginning is not kept: there is no adapter 'ref'")
    model.set_adapter("ref")
    try:
        yield
    finally:
        model.set_adapter("default")


def _batches(prompts: Sequence[Prompt]) -> dict[str, list[int]]:
    """What is drawn together: a group each, and all that are alone in theirs (held-out cases) in one batch."""
    groups: dict[str, list[int]] = {}
    for i, prompt in enumerate(prompts):
        groups.setdefault(prompt.group, []).append(i)
    batches: dict[str, list[int]] = {}
    for group, rows in groups.items():
        name = group if len(rows) > 1 else f"alone/{prompts[rows[0]].whose}"
        batches.setdefault(name, []).extend(rows)
    return batches


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
