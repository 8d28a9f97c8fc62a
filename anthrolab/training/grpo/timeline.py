"""Who worked when in a step: generation, partner, judge, reward, training. Wall clock; no result depends on it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from anthrolab.files import whole_lines, write_atomic

Kind = Literal["generate", "partner", "judge", "reward", "train"]

PLAYING: tuple[Kind, ...] = ("generate", "partner", "judge")
"""The part of a step that is on disk once its rollouts are."""


@dataclass(frozen=True)
class Span:
    """Something that took from `start` to `end`, in seconds since the step began; `of`: a dialogue's id, or the wave."""

    kind: Kind
    of: str
    start: float
    end: float


@dataclass
class Timeline:
    """The spans of one step, in the order in which they ended."""

    spans: list[Span] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @contextmanager
    def span(self, kind: Kind, of: str) -> Iterator[None]:
        """Notes how long the body took, even if it failed."""
        start = time.monotonic() - self.began
        try:
            yield
        finally:
            self.spans.append(Span(kind, of, round(start, 4), round(time.monotonic() - self.began, 4)))

    @property
    def seconds(self) -> float:
        """How long the step took so far: to the end of its last span."""
        return max((span.end for span in self.spans), default=0.0)

    @classmethod
    def resumed(cls, spans: list[Span]) -> "Timeline":
        """Goes on where these spans ended: what lay between is no part of the step."""
        return cls(spans, time.monotonic() - max((span.end for span in spans), default=0.0))

    def write(self, path: Path) -> None:
        """One span a line."""
        write_atomic(path, "".join(json.dumps(asdict(span), ensure_ascii=False) + "\n" for span in self.spans))


def read_timeline(path: Path) -> list[Span]:
    """The spans of a step."""
    return [Span(**json.loads(line)) for line in whole_lines(path)]


def busy(spans: list[Span], kind: Kind) -> list[tuple[float, float]]:
    """The times in which at least one span of a kind was under way, merged and in order."""
    merged: list[tuple[float, float]] = []
    for span in sorted((s for s in spans if s.kind == kind), key=lambda s: s.start):
        if merged and span.start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], span.end))
        else:
            merged.append((span.start, span.end))
    return merged


def overlap(spans: list[Span], one: Kind, other: Kind) -> float:
    """Seconds in which spans of both kinds were under way."""
    return sum(max(0.0, min(b, d) - max(a, c)) for a, b in busy(spans, one) for c, d in busy(spans, other))
