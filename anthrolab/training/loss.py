"""The loss of completion tokens only, without the scores of all the prompt tokens.

With a vocabulary of 262,144 the scores of a prompt of 1,300 tokens cost more than the model behind them, and nobody
reads them. Here the last layer's states are taken at the tokens from which a completion token is predicted, and only
these go through the head, a piece at a time, with the gradient made on the way.
"""

from typing import TYPE_CHECKING, Any

from anthrolab.training.prefix_tree import PrefixTree
from anthrolab.training.tokens import Encoded
from anthrolab.training.tree_attention import blocks_of, on_device

if TYPE_CHECKING:
    import torch

PIECE = 256
"""Predictions that go through the head at once (268 MB of scores for Gemma's vocabulary)."""


def tree_batch(tree: PrefixTree, windows: set[int | None]) -> dict[str, Any]:
    """A tree as what the model is given. `labels` are the predicted tokens, in the order of `asked_from`."""
    import torch

    labels = torch.tensor([token for _, token in tree.asked])
    return {
        "input_ids": torch.tensor([tree.tokens]),
        "position_ids": torch.tensor([tree.depths]),
        "tree": {window: blocks_of(tree, window) for window in windows},
        "asked_from": torch.tensor([node for node, _ in tree.asked]),
        "labels": labels,
        "shift_labels": labels,
    }


def padded_batch(samples: list[Encoded], pad: int) -> dict[str, Any]:
    """Samples under each other, filled up on the right. `asked_from` counts through all rows."""
    import torch

    longest = max(s.length for s in samples)
    ids = torch.full((len(samples), longest), pad)
    mask = torch.zeros((len(samples), longest), dtype=torch.long)
    asked, labels = [], []
    for row, s in enumerate(samples):
        ids[row, : s.length] = torch.tensor([*s.prompt, *s.completion])
        mask[row, : s.length] = 1
        first = max(1, len(s.prompt))  # nothing stands before a first token, so it is not predicted
        asked += [row * longest + at - 1 for at in range(first, s.length)]
        labels += list((*s.prompt, *s.completion)[first:])
    targets = torch.tensor(labels)
    return {"input_ids": ids, "attention_mask": mask, "asked_from": torch.tensor(asked), "labels": targets, "shift_labels": targets}


def layer_kinds(model: Any) -> set[str]:
    """What the layers are, in the words of transformers; full attention where the model does not say."""
    return set(getattr(model.config.get_text_config(), "layer_types", None) or ["full_attention"])


def windows_of(model: Any) -> set[int | None]:
    """The windows that the model's layers have: None for full attention, a number of tokens for sliding layers."""
    config = model.config.get_text_config()
    kinds = layer_kinds(model)
    window = getattr(config, "sliding_window", None)
    if kinds == {"full_attention"} and window is not None and not getattr(config, "layer_types", None):
        return {None, window}
    return {window if kind == "sliding_attention" else None for kind in kinds}


def completion_loss(model: Any, batch: dict[str, Any], divide_by: Any = None) -> "torch.Tensor":
    """The sum of -log p over the predicted tokens, divided by their number (or by `divide_by`, that of a whole step)."""
    import torch
    from torch.nn.functional import cross_entropy

    causal, asked = asked_states(model, batch)
    head = causal.get_output_embeddings()
    if _softcap(causal) is None and head.bias is None:
        total: torch.Tensor = _head_loss()(asked, head.weight, batch["labels"], torch.is_grad_enabled())
    else:
        total = cross_entropy(scores_of(causal, asked), batch["labels"], reduction="sum")
    count = len(batch["labels"]) if divide_by is None else divide_by
    return total / count


def token_log_probs(model: Any, batch: dict[str, Any]) -> "torch.Tensor":
    """log p of each predicted token, (n,) float32, made of the same states as the loss; no gradient."""
    import torch

    with torch.no_grad():
        causal, asked = asked_states(model, batch)
        pieces = zip(torch.split(asked, PIECE), torch.split(batch["labels"], PIECE), strict=True)
        return torch.cat([scores_of(causal, states).log_softmax(-1).gather(1, wanted[:, None])[:, 0] for states, wanted in pieces])


def asked_states(model: Any, batch: dict[str, Any]) -> "tuple[Any, torch.Tensor]":
    """The model without its adapter's wrapper, and the last layer's states (n, width) from which a token is predicted."""
    import torch

    causal = model.get_base_model() if hasattr(model, "get_base_model") else model
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "position_ids", "tree") if name in batch}
    if "tree" in batch:  # four dimensions: transformers makes no mask of its own
        inputs["tree"] = on_device(batch["tree"], batch["input_ids"].device)
        inputs["attention_mask"] = torch.ones((1, 1, 1, 1), dtype=torch.bool, device=batch["input_ids"].device)
    states = causal.base_model(**inputs, use_cache=False).last_hidden_state
    return causal, states.reshape(-1, states.shape[-1])[batch["asked_from"]]


def _softcap(causal: Any) -> float | None:
    cap: float | None = getattr(causal.config.get_text_config(), "final_logit_softcapping", None)
    return cap


def scores_of(causal: Any, states: "torch.Tensor") -> "torch.Tensor":
    """Scores (n, vocabulary) of states (n, width), float32."""
    import torch

    cap = _softcap(causal)
    scores: torch.Tensor = causal.get_output_embeddings()(states).float()
    return scores if cap is None else cap * torch.tanh(scores / cap)


def _head_loss() -> Any:
    import torch
    from torch.autograd.function import once_differentiable

    class HeadLoss(torch.autograd.Function):
        """Summed cross entropy of states (n, width) through a head (vocabulary, width); the scores are never all there."""

        @staticmethod
        def forward(ctx: Any, states: "torch.Tensor", weight: "torch.Tensor", labels: "torch.Tensor", learns: bool) -> "torch.Tensor":
            of_states = torch.empty_like(states) if learns else None
            of_weight = torch.zeros_like(weight) if learns and weight.requires_grad else None
            total = torch.zeros((), dtype=torch.float32, device=states.device)
            for first in range(0, len(labels), PIECE):
                piece, wanted = states[first : first + PIECE], labels[first : first + PIECE, None]
                scores = (piece @ weight.T).float()
                norm = scores.logsumexp(1, keepdim=True)
                total += (norm - scores.gather(1, wanted)).sum()
                if of_states is None:
                    continue
                slope = scores.sub_(norm).exp_()  # the softmax
                slope.scatter_add_(1, wanted, torch.full_like(wanted, -1, dtype=slope.dtype))
                slope = slope.to(weight.dtype)
                of_states[first : first + PIECE] = slope @ weight
                if of_weight is not None:
                    of_weight += slope.T @ piece
            ctx.save_for_backward(of_states, of_weight)
            return total

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, slope: "torch.Tensor") -> "tuple[torch.Tensor, torch.Tensor | None, None, None]":
            of_states, of_weight = ctx.saved_tensors
            return of_states * slope, None if of_weight is None else of_weight * slope, None, None

    return HeadLoss.apply
