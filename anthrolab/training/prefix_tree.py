"""Samples that begin alike, laid out as one sequence in which what they share stands once.

All decisions of one speaker in one dialogue have the same system text and mostly the same history before them. As a tree
of tokens, in which each token sees only its own ancestors, they cost a sixth of what they cost one by one, and every
prediction is made from the same context as in its own sequence, so the loss is the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from anthrolab.training.tokens import Encoded


@dataclass
class PrefixTree:
    """Node k is one token: its id, its depth (the position in its own sequence), and its parent (-1 for a first token).
    `asked` are the predictions that the loss is made of: from which node, to which token; one for every completion token
    of every sample. Parents stand before their children."""

    tokens: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    asked: list[tuple[int, int]] = field(default_factory=list)
    samples: list[str] = field(default_factory=list)
    _children: dict[tuple[int, int], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens)

    def new_tokens(self, sample: Encoded) -> int:
        """How many nodes the sample would add."""
        node = -1
        for depth, token in enumerate((*sample.prompt, *sample.completion)):
            child = self._children.get((node, token))
            if child is None:
                return sample.length - depth
            node = child
        return 0

    def add(self, sample: Encoded) -> None:
        """Put a sample in. Its first token is never predicted, since nothing stands before it."""
        node = -1
        for depth, token in enumerate((*sample.prompt, *sample.completion)):
            if depth >= len(sample.prompt) and node >= 0:
                self.asked.append((node, token))
            child = self._children.get((node, token))
            if child is None:
                child = len(self.tokens)
                self.tokens.append(token)
                self.depths.append(depth)
                self.parents.append(node)
                self._children[node, token] = child
            node = child
        self.samples.append(sample.id)


def plant(samples: Iterable[Encoded], budget: int) -> list[PrefixTree]:
    """Trees of at most `budget` tokens (a longer sample has one alone), none with samples of two groups."""
    trees: list[PrefixTree] = []
    group: str | None = None
    for sample in sorted(samples, key=lambda s: s.group):  # stable: a group keeps the order of its asks
        if not trees or sample.group != group or len(trees[-1]) + trees[-1].new_tokens(sample) > budget:
            trees.append(PrefixTree())
            group = sample.group
        trees[-1].add(sample)
    return trees


def tokens_saved(samples: Sequence[Encoded], trees: Sequence[PrefixTree]) -> float:
    """How many times fewer tokens the trees have than the samples one by one."""
    return sum(s.length for s in samples) / max(1, sum(len(t) for t in trees))
