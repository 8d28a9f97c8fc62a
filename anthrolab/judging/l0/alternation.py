"""Many frames as one pattern that passes quickly over a message in which none can start."""

import re
from collections.abc import Iterable


def one_of(frames: Iterable[str], first: str) -> re.Pattern[str]:
    """`frames` as one pattern, case ignored, tried only where one of the characters `first` stands.

    Every frame must start with one of them (what starts a clause is a lookbehind). Without them an alternation of
    dozens of frames is entered at each position of a message; nearly all of a message cannot start any.
    """
    return re.compile(f"(?=[{re.escape(first)}])(?:{'|'.join(frames)})", re.IGNORECASE)
