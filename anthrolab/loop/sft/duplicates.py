"""Samples that teach the same thing twice, found without comparing all with all.

Exact: the same prompt and completion. Near: samples of two dialogues whose last messages are alike and whose replies are
alike, both by the share of common runs of two characters (Jaccard); two silences are alike in their replies, so only their
last messages tell them apart. Samples of one dialogue are different states of it, never duplicates.

The search is exact. If last messages and replies are both alike by t, so are both taken together, and two sets alike by t
have one of the n - ceil(t n) + 1 rarest members of the one in common with those of the other (prefix filter). So only
samples with such a rare run in common are compared.
"""

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from anthrolab.loop.sft.samples import Sample

NEAR = 0.8
"""Share of common runs from which two texts are alike."""

LONG_ENOUGH = 20
"""Characters of last messages and reply from which a likeness of two different people is a copy; shorter ones are common."""


@dataclass(frozen=True)
class Distinct:
    """What is left, in order, and how many were dropped as exact and as near duplicates; `silent`: silences among these."""

    samples: list[Sample]
    exact: int
    near: int
    silent: int


@dataclass(frozen=True)
class _Traits:
    """What of a sample is compared. `seen`, `said`: runs of last messages and draft, and of the reply."""

    dialogue: str
    speaker: str
    drafted: bool
    long_enough: bool
    seen: frozenset[int]
    said: frozenset[int]
    rarest_first: tuple[int, ...]


def without_duplicates(samples: Sequence[Sample], near: float = NEAR) -> Distinct:
    """Drop every sample that is a duplicate of an earlier one that stays; near ones only of the same speaker."""
    whole: set[tuple[str, str, str]] = set()
    fresh = []
    for s in samples:
        key = (s.system, s.user, s.completion)
        if key not in whole:
            whole.add(key)
            fresh.append(s)
    kept = []
    index = _Index(near)
    for s, traits in zip(fresh, _traits(fresh), strict=True):
        if not index.holds(traits, others=False):
            index.add(traits)
            kept.append(s)
    return _distinct(samples, fresh, kept)


def without_copies_of(held_out: Sequence[Sample], train: Sequence[Sample], near: float = NEAR) -> Distinct:
    """Drop every sample of `train` that is an exact or near duplicate of one of `held_out`, whoever speaks there."""
    whole = {(s.system, s.user, s.completion) for s in held_out}
    fresh = [s for s in train if (s.system, s.user, s.completion) not in whole]
    index = _Index(near)
    traits = list(_traits([*held_out, *fresh]))
    for held in traits[: len(held_out)]:
        index.add(held)
    kept = [s for s, own in zip(fresh, traits[len(held_out) :], strict=True) if not index.holds(own, others=True)]
    return _distinct(train, fresh, kept)


def _distinct(given: Sequence[Sample], fresh: Sequence[Sample], kept: list[Sample]) -> Distinct:
    silent = sum(s.silent for s in given) - sum(s.silent for s in kept)
    return Distinct(kept, len(given) - len(fresh), len(fresh) - len(kept), silent)


class _Index:
    """Samples by their rarest runs."""

    def __init__(self, near: float) -> None:
        self._near = near
        self._by_run: dict[int, list[_Traits]] = defaultdict(list)

    def add(self, traits: _Traits) -> None:
        for run in self._rare(traits):
            self._by_run[run].append(traits)

    def holds(self, traits: _Traits, *, others: bool) -> bool:
        """Whether a near duplicate is there; of other speakers too if `others`."""
        return any(self._near_duplicates(traits, found, others) for found in self._candidates(traits))

    def _candidates(self, traits: _Traits) -> Iterator[_Traits]:
        met: set[int] = set()
        for run in self._rare(traits):
            for found in self._by_run.get(run, ()):
                if id(found) not in met:
                    met.add(id(found))
                    yield found

    def _rare(self, traits: _Traits) -> tuple[int, ...]:
        count = len(traits.rarest_first)
        return traits.rarest_first[: count - math.ceil(self._near * count - 1e-9) + 1]

    def _near_duplicates(self, x: _Traits, y: _Traits, others: bool) -> bool:
        return (
            x.dialogue != y.dialogue
            and x.drafted == y.drafted
            and (x.speaker == y.speaker or (others and x.long_enough and y.long_enough))
            and _alike(x.said, y.said, self._near)
            and _alike(x.seen, y.seen, self._near)
        )


def _alike(left: frozenset[int], right: frozenset[int], near: float) -> bool:
    common = len(left & right)
    return common >= near * (len(left) + len(right) - common) - 1e-9


def _traits(samples: Sequence[Sample]) -> Iterator[_Traits]:
    """Runs are numbered from the rarest to the commonest, so that sorting them puts the rare ones first."""
    raw = [_runs(s) for s in samples]
    often = Counter(run for seen, said in raw for run in (*seen, *said))
    number = {run: i for i, run in enumerate(sorted(often, key=lambda run: (often[run], run)))}
    for s, (seen, said) in zip(samples, raw, strict=True):
        seen_numbers, said_numbers = frozenset(number[r] for r in seen), frozenset(number[r] for r in said)
        length = sum(map(len, s.recent)) + len(s.response["content"])
        yield _Traits(
            s.dialogue_id, s.directed.split(">")[0], s.draft is not None, length >= LONG_ENOUGH, seen_numbers, said_numbers,
            tuple(sorted(seen_numbers | said_numbers)),
        )  # fmt: skip


def _runs(sample: Sample) -> tuple[set[str], set[str]]:
    """Runs of two characters of what was seen and of what was said, each with its kind before it."""
    seen = {f"m{run}" for text in sample.recent for run in _pairs(text)}
    if sample.draft is not None:
        seen |= {f"d{run}" for run in _pairs(sample.draft)}
    said = "" if sample.silent else sample.response["content"]
    return seen, {f"r{run}" for run in _pairs(said)}


def _pairs(text: str) -> Iterable[str]:
    """Runs of two characters, with the ends marked, so that the shortest text has one; blanks and case do not count."""
    plain = "\x02" + "".join(unicodedata.normalize("NFKC", text).casefold().split()) + "\x03"
    return {plain[i : i + 2] for i in range(len(plain) - 1)}
