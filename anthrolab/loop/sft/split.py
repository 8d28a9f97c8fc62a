"""Train and held-out samples, apart by persona pair: no pair, in either direction, stands in both.

Pairs and not people: a person may stand in both halves with different partners; `Split.people_in_both` names them.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from anthrolab.cards.library import Library
from anthrolab.files import content_hash
from anthrolab.loop.sft.samples import Sample, SftError, pair_of
from anthrolab.yaml_files import suggest


@dataclass(frozen=True)
class Split:
    """Both halves in the order given, and the pairs that are held out (sorted), whether or not they have samples."""

    train: list[Sample]
    held_out: list[Sample]
    held_pairs: list[str]

    @property
    def people_in_both(self) -> list[str]:
        """Personas of held-out pairs that stand in train with another partner."""
        return sorted(_people(self.train) & _people(self.held_out))


def split_by_pairs(samples: Sequence[Sample], held_pairs: Collection[str]) -> Split:
    """Samples of these pairs are held out, all others train."""
    held = set(held_pairs)
    return Split([s for s in samples if s.pair not in held], [s for s in samples if s.pair in held], sorted(held))


def split_by_share(samples: Sequence[Sample], share: float, seed: int) -> Split:
    """Hold out whole pairs, in an order drawn by `seed`, until their share of the samples is as near as it gets to `share`.

    `share`: 0 to 1; above 0 at least one pair is held out, below 1 one is left to train if there are two. The order of the
    pairs depends on `seed` and their names only, so a pool that grows keeps its held-out pairs but for those at the edge.
    """
    if not 0 <= share <= 1:
        raise SftError(f"held-out share {share:g}: at least 0 and at most 1")
    sizes = Counter(s.pair for s in samples)
    order = sorted(sizes, key=lambda pair: content_hash([seed, pair]))
    wanted = Fraction(share) * len(samples)
    misses = []
    total = 0
    for pair in [None, *order]:
        total += sizes[pair] if pair is not None else 0
        misses.append(abs(total - wanted))
    least = 1 if share > 0 and len(order) > 1 else 0
    most = len(order) - 1 if share < 1 and len(order) > 1 else len(order)
    count = min(range(least, most + 1), key=lambda k: (misses[k], k))
    return split_by_pairs(samples, order[:count])


def pairs_of_bindings(libraries: Collection[Library], bindings: Collection[str]) -> set[str]:
    """The persona pairs of these bindings, in every library that has them; SftError names a binding that none has."""
    pairs = set()
    for key in bindings:
        found = [library.bindings[key] for library in libraries if key in library.bindings]
        if not found:
            known = [known for library in libraries for known in library.bindings]
            raise SftError(f"held out: no binding '{key}'{suggest(key, known)}; name one of the cards' bindings")
        pairs |= {pair_of(binding.persona_a, binding.persona_b) for binding in found}
    return pairs


def _people(samples: Sequence[Sample]) -> set[str]:
    return {person for s in samples for person in s.pair.split("+")}
