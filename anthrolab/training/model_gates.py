"""The gates that need the model: is the fast loss the one of its own scores, and can the model learn one batch at all?"""

from collections.abc import Sequence
from typing import Any

from anthrolab.training.loss import completion_loss, layer_kinds, padded_batch, token_log_probs, tree_batch, windows_of
from anthrolab.training.prefix_tree import plant
from anthrolab.training.preflight import Gate
from anthrolab.training.settings import SFTSettings
from anthrolab.training.tokens import Encoded

OVERFIT_RATE = 1e-3
"""The least rate of the one-batch gate for an adapter, which has few steps; all weights take their own."""

TOLERANCE = {"float32": (1e-2, 1e-3), "bfloat16": (1.5, 0.15)}
"""How far log p may be from the one of the model's own scores, for any one token and on average: rounding, and no more. In
bfloat16 a score of 16 to 32 has steps of 0.125; one of 93 tokens of the embedded model was 0.44 away."""

ATTENTION = {"full_attention", "sliding_attention"}
"""The kinds of layers in which a token can be shown its own ancestors only."""


def small_batch(encoded: Sequence[Encoded]) -> list[Encoded]:
    """The two shortest samples of the group with the shortest one."""
    shortest = min(encoded, key=lambda e: e.length)
    return sorted((e for e in encoded if e.group == shortest.group), key=lambda e: e.length)[:2]


def to_device(model: Any, batch: dict[str, Any]) -> dict[str, Any]:
    """The batch's tensors where the model is."""
    return {name: value.to(model.device) if hasattr(value, "to") else value for name, value in batch.items()}


def own_log_probs(model: Any, samples: Sequence[Encoded]) -> Any:
    """log p of each completion token (n,) from the scores that the model itself gives, each sample by itself."""
    import torch

    causal = model.get_base_model() if hasattr(model, "get_base_model") else model
    found = []
    with torch.no_grad():
        for s in samples:
            wanted = torch.tensor([*s.prompt, *s.completion][max(1, len(s.prompt)) :], device=model.device)
            ids = torch.tensor([[*s.prompt, *s.completion]], device=model.device)
            scores = causal(input_ids=ids, use_cache=False, logits_to_keep=len(wanted) + 1).logits[0, -len(wanted) - 1 : -1]
            found.append(scores.float().log_softmax(-1).gather(1, wanted[:, None])[:, 0])
    return torch.cat(found)


def scores_gate(model: Any, encoded: Sequence[Encoded], dtype: str, share_prefixes: bool) -> Gate:
    """Two samples as the training sees them, token by token against the model's own scores: the model may put its layers or
    its scores together in a way that the fast loss does not know."""
    name = "shared prefixes" if share_prefixes else "the model's own scores"
    strange = sorted(layer_kinds(model) - ATTENTION)
    if share_prefixes and strange:
        return Gate(name, False, f"the model has layers of {', '.join(strange)}, which mix what a tree keeps apart", "set share_prefixes to false")
    few = small_batch(encoded)
    was = model.training
    model.eval()
    own = own_log_probs(model, few)
    plain = padded_batch(few, 0)
    (tree,) = plant(few, 10**9)
    allowed = TOLERANCE[dtype]
    most, mean = _distances(model, tree_batch(tree, windows_of(model)) if share_prefixes else plain, own)
    near = most <= allowed[0] and mean <= allowed[1]  # a distance that is no number is not near
    fix = ""
    if not near:
        without, its_mean = _distances(model, plain, own) if share_prefixes else (most, mean)
        can_do_without = without <= allowed[0] and its_mean <= allowed[1]
        fix = "set share_prefixes to false" if can_do_without else "this model makes its scores in a way that is not known here: take another base, or backend unsloth"
    model.train(was)
    seen = f"log p of {len(own)} tokens is {most:.4f} at most and {mean:.4f} on average from the model's own (allowed: {allowed[0]}, {allowed[1]})"
    return Gate(name, near, seen, fix)


def _distances(model: Any, batch: dict[str, Any], own: Any) -> tuple[float, float]:
    """The largest and the mean distance of a token's log p from its own one."""
    far = (token_log_probs(model, to_device(model, batch)) - own).abs()
    return float(far.max()), float(far.mean())


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
