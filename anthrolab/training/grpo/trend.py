"""Whether values in order go up or down beyond their noise. Pure."""

import math
from collections import Counter
from collections.abc import Sequence

RANKS = math.pi / 3
"""How many more values ranks need than a straight line does, with normal noise."""


def trend_p(values: Sequence[float], *, up: bool) -> float:
    """One-sided p (0 to 1) of a trend up (or down) in values in order: 1 where all are equal, or fewer than three.

    By the rank correlation (Spearman, equal values share a rank) of the values with their places, and Student's t; but never
    below one in so many orders as the values can come in, for with few values, or many equal ones, t promises too much. The
    noise must be independent from value to value and alike all the way, no more.
    """
    import numpy as np
    from scipy.special import stdtr
    from scipy.stats import rankdata

    count = len(values)
    if count < 3 or min(values) == max(values):
        return 1.0
    ranks = rankdata(values) - (count + 1) / 2
    places = np.arange(count) - (count - 1) / 2
    r = float(ranks @ places) / math.sqrt(float(ranks @ ranks) * float(places @ places))
    t = (r if up else -r) * math.sqrt((count - 2) / max(1 - r * r, 1e-12))
    orders = math.lgamma(count + 1) - sum(math.lgamma(n + 1) for n in Counter(values).values())
    return max(float(stdtr(count - 2, -t)), math.exp(-orders))


def noise_around_line(values: Sequence[float]) -> float:
    """The standard deviation of values in order around the straight line through them (three or more)."""
    import numpy as np

    places = np.arange(len(values))
    left = np.asarray(values) - np.polyval(np.polyfit(places, values, 1), places)
    return math.sqrt(float(left @ left) / (len(values) - 2))
