"""log p of drawn tokens, with the gradient, over rows that share their beginnings (`training/prefix_tree.py`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from anthrolab.training.loss import PIECE, asked_states, scores_of, tree_batch, windows_of
from anthrolab.training.model_gates import to_device
from anthrolab.training.prefix_tree import plant
from anthrolab.training.tokens import Encoded

if TYPE_CHECKING:
    import torch


def rows_of(input_ids: "torch.Tensor", attention_mask: "torch.Tensor", completion: int) -> list[Encoded]:
    """Padded rows (B, P + T) as prompts and completions without their padding; the last `completion` columns are T."""
    rows = []
    for i, (ids, mask) in enumerate(zip(input_ids.tolist(), attention_mask.tolist(), strict=True)):
        cut = len(ids) - completion
        prompt = tuple(t for t, m in zip(ids[:cut], mask[:cut], strict=True) if m)
        drawn = tuple(t for t, m in zip(ids[cut:], mask[cut:], strict=True) if m)
        rows.append(Encoded(str(i), "", prompt, drawn))
    return rows


def tree_log_probs(
    model: Any, input_ids: "torch.Tensor", attention_mask: "torch.Tensor", completion: int, temperature: float
) -> "tuple[torch.Tensor, torch.Tensor]":
    """log p and entropy of the next token at each completion token, both (B, T) float32, 0 at padding; p at `temperature`.

    The gradient flows through log p, none through the entropy.
    """
    import torch

    rows = rows_of(input_ids, attention_mask, completion)
    (tree,) = plant(rows, 10**9)
    batch = to_device(model, tree_batch(tree, windows_of(model)))
    causal, states = asked_states(model, batch)
    pieces = zip(torch.split(states, PIECE), torch.split(batch["labels"], PIECE), strict=True)
    scored = [_scored(causal, temperature, some, wanted) for some, wanted in pieces]
    flat, entropies = torch.cat([p for p, _ in scored]), torch.cat([h for _, h in scored])
    places = _places([len(r.completion) for r in rows], completion, flat.device)
    empty = torch.zeros(len(rows) * completion, dtype=flat.dtype, device=flat.device)
    shape = (len(rows), completion)
    return empty.index_put((places,), flat).reshape(shape), empty.index_put((places,), entropies).reshape(shape)


def _scored(causal: Any, temperature: float, states: "torch.Tensor", wanted: "torch.Tensor") -> "tuple[torch.Tensor, torch.Tensor]":
    """log p (n,) of the wanted tokens and the entropy (n,); the scores are made anew for the gradient, not kept."""
    import torch
    from torch.utils.checkpoint import checkpoint

    def log_p(some: "torch.Tensor") -> "tuple[torch.Tensor, torch.Tensor]":
        logs = (scores_of(causal, some) / temperature).log_softmax(-1)
        with torch.no_grad():
            entropy = -(logs.exp() * logs).sum(-1)
        return logs.gather(1, wanted[:, None])[:, 0], entropy

    if not torch.is_grad_enabled():
        return log_p(states)
    made: tuple[torch.Tensor, torch.Tensor] = checkpoint(log_p, states, use_reentrant=False)
    return made


def _places(lengths: Sequence[int], width: int, device: Any) -> "torch.Tensor":
    """Where each row's tokens stand in a flattened (B, width)."""
    import torch

    return torch.tensor([row * width + at for row, length in enumerate(lengths) for at in range(length)], device=device, dtype=torch.long)
