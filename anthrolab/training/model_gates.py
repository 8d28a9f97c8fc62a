"""The gates that need the model: is the fast loss the plain one, and can the model learn one batch at all?"""

from collections.abc import Sequence
from typing import Any

from anthrolab.training.loss import completion_loss, padded_batch, tree_batch, windows_of
from anthrolab.training.prefix_tree import plant
from anthrolab.training.preflight import Gate
from anthrolab.training.settings import SFTSettings
from anthrolab.training.tokens import Encoded

OVERFIT_RATE = 1e-3
"""The least rate of the one-batch gate for an adapter, which has few steps; all weights take their own."""

TOLERANCE = {"float32": 1e-3, "bfloat16": 3e-2}
"""How far (relative) the shared loss may be from the plain one: rounding, and no more."""


def small_batch(encoded: Sequence[Encoded]) -> list[Encoded]:
    """The two shortest samples of the group with the shortest one."""
    shortest = min(encoded, key=lambda e: e.length)
    return sorted((e for e in encoded if e.group == shortest.group), key=lambda e: e.length)[:2]


def to_device(model: Any, batch: dict[str, Any]) -> dict[str, Any]:
    """The batch's tensors where the model is."""
    return {name: value.to(model.device) if hasattr(value, "to") else value for name, value in batch.items()}


def sharing_gate(model: Any, encoded: Sequence[Encoded], dtype: str) -> Gate:
    """Two samples as a tree and one by one: the same loss, or the model does not see the tree as it should."""
    import torch

    few = small_batch(encoded)
    (tree,) = plant(few, 10**9)
    was, model_was = torch.is_grad_enabled(), model.training
    model.eval()
    with torch.no_grad():
        together = float(completion_loss(model, to_device(model, tree_batch(tree, windows_of(model)))))
        apart = float(completion_loss(model, to_device(model, padded_batch(few, 0))))
    model.train(model_was)
    assert torch.is_grad_enabled() == was
    near = abs(together - apart) <= TOLERANCE[dtype] * max(1.0, abs(apart))
    seen = f"loss {together:.4f} with shared prefixes, {apart:.4f} without"
    return Gate("shared prefixes", near, seen, "" if near else "this model's attention does not take them: set share_prefixes to false")


def overfit_gate(model: Any, encoded: Sequence[Encoded], settings: SFTSettings) -> Gate:
    """Some steps on one small batch; then every weight is put back, so that the training starts fresh."""
    import torch

    weights = [p for p in model.parameters() if p.requires_grad]
    before = [p.detach().clone() for p in weights]
    few = small_batch(encoded)
    (tree,) = plant(few, 10**9)
    batch = tree_batch(tree, windows_of(model)) if settings.share_prefixes else padded_batch(few, 0)
    batch = to_device(model, batch)
    least = OVERFIT_RATE if settings.lora_rank is not None else 0.0
    optimiser = torch.optim.AdamW(weights, lr=max(settings.learning_rate, least), weight_decay=0.0)
    was = model.training
    model.eval()  # no dropout: the same batch gives the same loss
    losses = []
    for step in range(settings.overfit_steps + 1):
        loss = completion_loss(model, batch)
        losses.append(float(loss.detach()))
        if step < settings.overfit_steps:
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
    with torch.no_grad():
        for weight, old in zip(weights, before, strict=True):
            weight.copy_(old)
    model.train(was)
    fell = losses[-1] < settings.overfit_share * losses[0]
    seen = f"loss {losses[0]:.3f} to {losses[-1]:.3f} in {settings.overfit_steps} steps on {len(few)} samples"
    fix = "" if fell else "nothing is learnt: check that the adapter's modules exist in this model, and the data"
    return Gate("one-batch overfit", fell, seen, fix)
