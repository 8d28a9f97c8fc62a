"""How one side of a chat times itself: reply delays, bursts, silences, and what becomes of interrupted drafts.

Pure functions of dialogue records (paper sections 4.3 and 4.4 say what the runtime makes explicit; the paper prints no
such numbers). Everything is descriptive: a fast reply is neither good nor bad. Times are seconds of virtual time.

An *own message* is a message of the side that is no opener. The opener is given: it is nobody's own message, but a first
reply answers it. By the message directly before it, an own message is

- a *reply* after one of the partner; its delay is the time since that message,
- a *follow-up* after an own message; its gap is the time since that message,
- neither where nothing or the side's own opener stands before it.

A *burst* is an own message that is no follow-up, with all follow-ups directly after it.

What only the asks can tell (`Asks`) is measured over the dialogues that have a log of asks; it is None where none has.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from anthrolab.errors import AnthrolabError
from anthrolab.runtime.dialogue import Dialogue, Message, Speaker, other
from anthrolab.runtime.drafts import action_of

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

    def quantile(self, share: float) -> float | None:
        """The time that this share (0 to 1) does not exceed, interpolated linearly between two; None without times."""
        return float(np.quantile(self.seconds, share)) if self.seconds else None

    def under(self, limit_s: int) -> float | None:
        """The share (0 to 1) that is shorter than the limit; None without times."""
        return _share(sum(s < limit_s for s in self.seconds), self.n)

    def over(self, limit_s: int) -> float | None:
        """The share (0 to 1) that is longer than the limit; None without times."""
        return _share(sum(s > limit_s for s in self.seconds), self.n)


@dataclass(frozen=True)
class Asks:
    """Counts of what one side was asked and what it decided, and their rates (0 to 1; None where nothing is counted).

    dialogues: with a log of asks. asks: all of the side. errors: replies that broke the contract; they are no
    decision, so never silence. decided: asks with a decision; silent: of these, decided to send nothing (and withdrew an
    unsent draft, if there was one).
    woken: asks as the receiver, that is after a message of the partner (the opener too). read: woken and decided;
    read_silent: of these, decided to send nothing; came_back: of these, followed by an own message later in the chat.
    interrupted: woken while an own draft was unsent; typing, waiting: of these, how the message found the draft,
    where the run says so. keep, revise, replace, withdraw: what the interrupted asks with a decision made of the draft.
    sent: own messages after which the partner was asked (the last one of a full dialogue has no ask after it);
    crossed: of these, found an unsent draft of the partner's.
    """

    dialogues: int = 0
    asks: int = 0
    errors: int = 0
    decided: int = 0
    silent: int = 0
    woken: int = 0
    read: int = 0
    read_silent: int = 0
    came_back: int = 0
    interrupted: int = 0
    typing: int = 0
    waiting: int = 0
    keep: int = 0
    revise: int = 0
    replace: int = 0
    withdraw: int = 0
    sent: int = 0
    crossed: int = 0

    @property
    def silence_rate(self) -> float | None:
        """Decisions to send nothing, of all decisions."""
        return _share(self.silent, self.decided)

    @property
    def read_silent_rate(self) -> float | None:
        """Messages that were read and left without an answer: read_silent of read."""
        return _share(self.read_silent, self.read)

    @property
    def came_back_rate(self) -> float | None:
        """Of the messages read but left, those after which the side wrote again later all the same."""
        return _share(self.came_back, self.read_silent)

    @property
    def interruption_rate(self) -> float | None:
        """Messages of the partner that came while an own draft was unsent, of all that woke the side."""
        return _share(self.interrupted, self.woken)

    @property
    def typing_rate(self) -> float | None:
        """Interruptions that came while the draft was being typed, of those of which that is known."""
        return _share(self.typing, self.typing + self.waiting)

    @property
    def reconsidered(self) -> int:
        """Interrupted asks with a decision: keep + revise + replace + withdraw."""
        return self.keep + self.revise + self.replace + self.withdraw

    @property
    def revision_rate(self) -> float | None:
        """Interrupted drafts that were revised or replaced, of those reconsidered."""
        return _share(self.revise + self.replace, self.reconsidered)

    @property
    def overlap_rate(self) -> float | None:
        """Own messages that went out while the partner held an unsent draft, of those of which that is known."""
        return _share(self.crossed, self.sent)


@dataclass(frozen=True)
class Timing:
    """The timing of one side over some dialogues.

    messages: own messages. bursts: lengths in messages, in order. asks: None if no dialogue has a log of asks;
    guarded: drafts that a guard dropped when they came up, None if no dialogue has a log of guards.
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
        return _share(sum(self.bursts), len(self.bursts))

    @property
    def long_burst_share(self) -> float | None:
        """The share (0 to 1) of bursts of two or more messages; None without a burst."""
        return _share(sum(length > 1 for length in self.bursts), len(self.bursts))


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
        asks=_asks(dialogue, speaker),
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


def _asks(dialogue: Dialogue, speaker: Speaker) -> Asks | None:
    if dialogue.asks is None:
        return None
    messages = dialogue.messages
    last_own = max((i for i, m in enumerate(messages) if m.speaker == speaker and not m.opener), default=-1)
    n: Counter[str] = Counter(dialogues=1)
    sent: set[int] = set()
    crossed: set[int] = set()
    for ask, last in zip(dialogue.asks, _last_seen(dialogue), strict=True):
        woken = last >= 0 and messages[last].speaker != ask.speaker
        draft = ask.previous_draft
        if ask.speaker != speaker:
            if woken and not messages[last].opener:
                sent.add(last)
                crossed.update([last] if draft else [])
            continue
        decision = ask.decision if ask.error is None else None
        silent = decision is not None and (decision.end or not decision.content.strip())
        n["asks"] += 1
        n["errors"] += ask.error is not None
        n["decided"] += decision is not None
        n["silent"] += silent
        if not woken:
            continue
        n["woken"] += 1
        n["read"] += decision is not None
        n["read_silent"] += silent
        n["came_back"] += silent and last_own > last
        if draft is None:
            continue
        n["interrupted"] += 1
        n["typing"] += ask.interrupted == "typing"
        n["waiting"] += ask.interrupted == "waiting"
        if decision is not None:
            known = None if ask.action in ("new", "silent") else ask.action
            n[known or action_of(draft.content, decision.content, silent)] += 1
    return Asks(**n, sent=len(sent), crossed=len(crossed))


def _last_seen(dialogue: Dialogue) -> list[int]:
    """The position of the last message that each ask could see, -1 if none.

    The scheduler asks both speakers after every message, so pair k of asks saw message k last; by the clock alone a
    reply sent in the same second would count as seen. Logs that are no such pairs are read by the clock.
    """
    asks, at = dialogue.asks or [], [m.at for m in dialogue.messages]
    paired = (
        len(asks) % 2 == 0
        and len(asks) <= 2 * len(at)
        and all(
            x.speaker != y.speaker and x.now == y.now == t for x, y, t in zip(asks[::2], asks[1::2], at, strict=False)
        )
    )
    return [i // 2 if paired else bisect_right(at, ask.now) - 1 for i, ask in enumerate(asks)]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
