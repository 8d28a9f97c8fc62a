"""How one side of a chat times itself: reply delays, bursts, silences, and what interruptions make of its drafts.

Pure functions of dialogue records (paper sections 4.3 and 4.4 say what the runtime makes explicit; the paper prints no
such numbers). Everything is descriptive: a fast reply is neither good nor bad. Times are seconds of virtual time.

An *own message* is a message of the side that is no opener. The opener is given: it is nobody's own message, but a first
reply answers it. By the message directly before it, an own message is

- a *reply* after one of the partner; its delay is the time since that message,
- a *follow-up* after an own message; its gap is the time since that message,
- neither where nothing or the side's own opener stands before it.

A *burst* is an own message that is no follow-up, with all follow-ups directly after it.

Delays and gaps are of messages that were sent. A message that was decided on and still unsent when the chat stopped
(`Asks.unsent`) has none, and since the slow ones are cut off first, the delays lean to the fast: read them with that
count beside them. Drafts that a guard dropped or that ended with an interruption have none either, and are counted apart.

What only the asks can tell (`Asks`) is measured over the dialogues that have a log of asks; it is None where none has.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from anthrolab.errors import AnthrolabError
from anthrolab.metrics.asks import Asks, asks_of, share
from anthrolab.runtime.dialogue import Dialogue, Message, Speaker, other

Side = Literal["evaluated", "partner"]
FAST_S, SLOW_S = 5, 60
"""A reply in under `FAST_S` seconds is fast, one after more than `SLOW_S` slow."""


class TimingError(AnthrolabError):
    """A dialogue whose times cannot be measured."""


@dataclass(frozen=True)
class Times:
    """A distribution of whole seconds (each >= 0), in the order in which they were measured."""

    seconds: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.seconds)

    def quantile(self, level: float) -> float | None:
        """The time that this share (0 to 1) does not exceed, interpolated linearly between two; None without times."""
        return float(np.quantile(self.seconds, level)) if self.seconds else None

    def under(self, limit_s: int) -> int:
        """How many are shorter than the limit."""
        return sum(s < limit_s for s in self.seconds)

    def over(self, limit_s: int) -> int:
        """How many are longer than the limit."""
        return sum(s > limit_s for s in self.seconds)


@dataclass(frozen=True)
class Timing:
    """The timing of one side over some dialogues.

    messages: own messages. replies, follow_ups: delays and gaps of those sent. bursts: lengths in messages, in order.
    asks: None if no dialogue has a log of asks; guarded: drafts that a guard dropped when they came up, None if no
    dialogue has a log of guards.
    """

    dialogues: int = 0
    messages: int = 0
    replies: Times = Times()
    follow_ups: Times = Times()
    bursts: tuple[int, ...] = ()
    asks: Asks | None = None
    guarded: int | None = None

    @property
    def burst_lengths(self) -> dict[int, int]:
        """How many bursts there are of each length, shortest first."""
        return dict(sorted(Counter(self.bursts).items()))

    @property
    def mean_burst(self) -> float | None:
        """Messages in a burst, on average; None without a burst."""
        return share(sum(self.bursts), len(self.bursts))

    @property
    def long_bursts(self) -> int:
        """How many bursts have two or more messages."""
        return sum(length > 1 for length in self.bursts)


def measure(dialogues: Iterable[Dialogue], side: Side) -> Timing:
    """The timing of the tested systems' side (`evaluated`) or of their partners', over all dialogues given."""
    return pool(timing_of(d, d.evaluated_role if side == "evaluated" else other(d.evaluated_role)) for d in dialogues)


def timing_of(dialogue: Dialogue, speaker: Speaker) -> Timing:
    """The timing of one speaker in one dialogue; TimingError if a message is earlier than the one before it."""
    delays: list[int] = []
    gaps: list[int] = []
    bursts: list[int] = []
    before: Message | None = None
    for number, message in enumerate(dialogue.messages, 1):
        waited = int((message.at - before.at).total_seconds()) if before else 0
        if waited < 0:
            raise TimingError(
                f"{dialogue.dialogue_id}: message {number} is earlier than the one before it; put messages in the order sent"
            )
        if message.speaker == speaker and not message.opener:
            if before and before.speaker == speaker and not before.opener:
                gaps.append(waited)
                bursts[-1] += 1
            else:
                bursts.append(1)
                if before and before.speaker != speaker:
                    delays.append(waited)
        before = message
    return Timing(
        dialogues=1,
        messages=sum(bursts),
        replies=Times(tuple(delays)),
        follow_ups=Times(tuple(gaps)),
        bursts=tuple(bursts),
        asks=asks_of(dialogue, speaker),
        guarded=None if dialogue.guards is None else sum(g.speaker == speaker for g in dialogue.guards),
    )


def pool(parts: Iterable[Timing]) -> Timing:
    """Several timings as one: times and bursts laid end to end, counts added. Every message weighs the same."""
    parts = list(parts)
    asks = [t.asks for t in parts if t.asks is not None]
    guarded = [t.guarded for t in parts if t.guarded is not None]
    return Timing(
        dialogues=sum(t.dialogues for t in parts),
        messages=sum(t.messages for t in parts),
        replies=Times(tuple(s for t in parts for s in t.replies.seconds)),
        follow_ups=Times(tuple(s for t in parts for s in t.follow_ups.seconds)),
        bursts=tuple(length for t in parts for length in t.bursts),
        asks=Asks(**{f.name: sum(getattr(a, f.name) for a in asks) for f in fields(Asks)}) if asks else None,
        guarded=sum(guarded) if guarded else None,
    )
