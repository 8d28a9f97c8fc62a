"""Attention over a prefix tree: every token sees its ancestors (the nearest `window` of them in a sliding layer).

The rows go in blocks. A block is given only the keys that one of its rows may see: in a tree most tokens are on other
branches, and a dense mask would pay for all of them.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from anthrolab.training.prefix_tree import PrefixTree

if TYPE_CHECKING:
    import torch

NAME = "anthrolab_tree"
"""The attention's name among those of transformers."""

BLOCK = 128
"""Rows of a block."""


@dataclass(frozen=True)
class Block:
    """Rows `first` up to `last` see the keys at `keys`; `seen` (rows, keys) says which row sees which, True = sees."""

    first: int
    last: int
    keys: "torch.Tensor"
    seen: "torch.Tensor"


def blocks_of(tree: PrefixTree, window: int | None) -> list[Block]:
    """The blocks of a tree's rows. `window`: a token sees itself and the window - 1 ancestors before it; None: all."""
    import numpy as np
    import torch

    size = len(tree)
    sees = np.zeros((size, size), dtype=bool)
    for node, parent in enumerate(tree.parents):
        if parent >= 0:
            sees[node] = sees[parent]
        sees[node, node] = True
    if window is not None:
        depths = np.asarray(tree.depths)
        sees &= depths[:, None] - depths[None, :] < window
    blocks = []
    for first in range(0, size, BLOCK):
        rows = sees[first : first + BLOCK]
        keys = np.flatnonzero(rows.any(axis=0))
        blocks.append(Block(first, first + len(rows), torch.from_numpy(keys), torch.from_numpy(rows[:, keys].copy())))
    return blocks


def on_device(tree: dict[int | None, list[Block]], device: "torch.device") -> dict[int | None, list[Block]]:
    """The blocks where the model is: moved once for a forward pass, not in every layer."""
    return {window: [replace(b, keys=b.keys.to(device), seen=b.seen.to(device)) for b in blocks] for window, blocks in tree.items()}


def register() -> None:
    """Make the attention known to transformers under NAME. Without a tree it is plain `sdpa`."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    AttentionInterface.register(NAME, tree_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def tree_attention(
    module: Any,
    query: "torch.Tensor",
    key: "torch.Tensor",
    value: "torch.Tensor",
    attention_mask: "torch.Tensor | None",
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    tree: "dict[int | None, list[Block]] | None" = None,
    **others: Any,
) -> "tuple[torch.Tensor, None]":
    """Query (1, heads, tokens, size), key and value (1, key heads, tokens, size) -> (1, tokens, heads, size).

    `tree`: the blocks for each window that the model's layers have, where the query is. The heads that share keys are laid under each other
    as rows, so that keys and values are not copied.
    """
    import torch
    from torch.nn.functional import scaled_dot_product_attention
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if tree is None and query.shape[2] == 1 and query.device.type == "cpu":
        return _one_token(query, key, value, attention_mask, scaling), None
    if tree is None:
        plain, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, sliding_window=sliding_window, **others
        )
        return plain, None
    _, heads, _, width = query.shape
    shared = heads // key.shape[1]
    parts = []
    for block in tree[sliding_window]:
        rows = query[:, :, block.first : block.last].reshape(1, key.shape[1], -1, width)
        seen = block.seen.repeat(shared, 1)
        out = scaled_dot_product_attention(
            rows, key.index_select(2, block.keys), value.index_select(2, block.keys), attn_mask=seen[None, None], scale=scaling
        )
        parts.append(out.reshape(1, heads, block.last - block.first, width))
    return torch.cat(parts, dim=2).transpose(1, 2).contiguous(), None


def _one_token(query: "torch.Tensor", key: "torch.Tensor", value: "torch.Tensor", seen: "torch.Tensor | None", scaling: float | None) -> "torch.Tensor":
    """Attention of one new token a row, as a processor should do it: torch's own takes ten times as long in bfloat16.

    `seen` (rows, 1, 1, tokens): True or 0 = sees. Returns (rows, 1, heads, size).
    """
    import torch

    rows, heads, _, width = query.shape
    grouped = query.reshape(rows, key.shape[1], heads // key.shape[1], width)
    scores = (grouped @ key.transpose(2, 3)).float() * (width**-0.5 if scaling is None else scaling)
    if seen is not None:
        mask = seen[..., : key.shape[2]]
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask.float()
    return (scores.softmax(-1).to(value.dtype) @ value).reshape(rows, 1, heads, width)
