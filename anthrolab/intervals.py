"""How sure a rate is: Wilson's interval, for judging and bench alike."""

from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A confidence interval, ends included, in the unit of the quantity."""

    low: float
    high: float


def wilson(passed: int, of: int, confidence: float = CONFIDENCE) -> Interval | None:
    """Wilson's score interval of a rate (0..1); None for a rate of nothing."""
    from scipy.stats import binomtest

    if of == 0:
        return None
    ends = binomtest(passed, of).proportion_ci(confidence, method="wilson")
    return Interval(float(ends.low), float(ends.high))


@dataclass(frozen=True)
class Rate:
    """A share as its two counts, so that nobody sees it without its denominator."""

    part: int
    of: int

    def __add__(self, other: "Rate") -> "Rate":
        return Rate(self.part + other.part, self.of + other.of)

    @property
    def value(self) -> float | None:
        """0..1; None for a share of nothing."""
        return self.part / self.of if self.of else None

    @property
    def interval(self) -> Interval | None:
        """Wilson's 95% interval."""
        return wilson(self.part, self.of)
