"""What only the log of asks can tell of one side's timing: silences, interruptions, overlap, and what never went out.

Pure counts over dialogue records; `metrics/timing.py` says what the messages alone can tell.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from anthrolab.runtime.dialogue import Ask, Dialogue, Speaker
from anthrolab.runtime.drafts import action_of


@dataclass(frozen=True)
class Asks:
    """Counts of what one side was asked and what it decided, and their rates (0 to 1; None where nothing is counted).

    dialogues: with a log of asks. asks: all of the side. errors: replies that broke the contract; they are no
    decision, so never silence. decided: asks with a decision; silent: of these, decided to send nothing (and withdrew an
    unsent draft, if there was one).
    woken: asks as the receiver, that is after a message of the partner (the opener too). read: woken and decided;
    read_silent: of these, decided to send nothing; came_back: of these, followed by an own message later in the chat.
    interruptions: messages of the partner that found an own draft unsent. The unit is the interruption: one draft that
    is kept can be interrupted several times. typing, waiting: of these, how the message found the draft, where the
    run says so. keep, revise, replace, withdraw: what the decision then made of the draft.
    unsent: decided messages that still waited for their time when the chat stopped, at its horizon or message limit;
    unsent_replies, unsent_follow_ups: of these, what they would have been after the chat's last message.
    sent: own messages after which the partner was asked (the last one of a full dialogue has no ask after it);
    crossed: of these, found an unsent draft of the partner's.

    Nothing that was decided is lost from sight: in a whole log of the scheduler, decided - silent (the messages
    decided on) = own messages + interruptions + drafts dropped by a guard (`Timing.guarded`) + unsent.
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
    interruptions: int = 0
    typing: int = 0
    waiting: int = 0
    keep: int = 0
    revise: int = 0
    replace: int = 0
    withdraw: int = 0
    unsent: int = 0
    unsent_replies: int = 0
    unsent_follow_ups: int = 0
    sent: int = 0
    crossed: int = 0

    @property
    def silence_rate(self) -> float | None:
        """Decisions to send nothing, of all decisions."""
        return share(self.silent, self.decided)

    @property
    def read_silent_rate(self) -> float | None:
        """Messages that were read and left without an answer: read_silent of read."""
        return share(self.read_silent, self.read)

    @property
    def came_back_rate(self) -> float | None:
        """Of the messages read but left, those after which the side wrote again later all the same."""
        return share(self.came_back, self.read_silent)

    @property
    def interruption_rate(self) -> float | None:
        """Messages of the partner that found an own draft unsent, of all that woke the side."""
        return share(self.interruptions, self.woken)

    @property
    def typing_rate(self) -> float | None:
        """Interruptions that came while the draft was being typed, of those of which that is known."""
        return share(self.typing, self.typing + self.waiting)

    @property
    def reconsidered(self) -> int:
        """Interruptions with a decision: keep + revise + replace + withdraw."""
        return self.keep + self.revise + self.replace + self.withdraw

    @property
    def lost(self) -> int:
        """Interruptions without one: the reply broke the contract, and the draft was gone with it."""
        return self.interruptions - self.reconsidered

    @property
    def revision_rate(self) -> float | None:
        """Interruptions after which the draft was revised or replaced, of those with a decision."""
        return share(self.revise + self.replace, self.reconsidered)

    @property
    def overlap_rate(self) -> float | None:
        """Own messages that went out while the partner held an unsent draft, of those of which that is known."""
        return share(self.crossed, self.sent)


def asks_of(dialogue: Dialogue, speaker: Speaker) -> Asks | None:
    """What the log of asks tells of one speaker; None without a log."""
    if dialogue.asks is None:
        return None
    messages = dialogue.messages
    last_own = max((i for i, m in enumerate(messages) if m.speaker == speaker and not m.opener), default=-1)
    n: Counter[str] = Counter(dialogues=1)
    sent: set[int] = set()
    crossed: set[int] = set()
    own: list[tuple[Ask, int]] = []
    for ask, last in zip(dialogue.asks, last_seen(dialogue), strict=True):
        woken = last >= 0 and messages[last].speaker != ask.speaker
        draft = ask.previous_draft
        if ask.speaker != speaker:
            if woken and not messages[last].opener:
                sent.add(last)
                crossed.update([last] if draft else [])
            continue
        own.append((ask, last))
        decision = ask.decision if ask.error is None else None
        silent = decision is not None and not _writes(ask)
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
        n["interruptions"] += 1
        n["typing"] += ask.interrupted == "typing"
        n["waiting"] += ask.interrupted == "waiting"
        if decision is not None:
            known = None if ask.action in ("new", "silent") else ask.action
            n[known or action_of(draft.content, decision.content, silent)] += 1
    if _left_unsent(dialogue, speaker, own):
        n["unsent"] += 1
        n["unsent_replies"] += bool(messages) and messages[-1].speaker != speaker
        n["unsent_follow_ups"] += bool(messages) and messages[-1].speaker == speaker and not messages[-1].opener
    return Asks(**n, sent=len(sent), crossed=len(crossed))


def share(part: int, whole: int) -> float | None:
    """part / whole (0 to 1); None of nothing."""
    return part / whole if whole else None


def _writes(ask: Ask) -> bool:
    """True if the ask ended in a message to be sent."""
    decision = ask.decision if ask.error is None else None
    return decision is not None and not decision.end and bool(decision.content.strip())


def _left_unsent(dialogue: Dialogue, speaker: Speaker, own: Sequence[tuple[Ask, int]]) -> bool:
    """Whether the message of the speaker's last ask (`own`: its asks, each with the last message seen) was left unsent.

    The log of guards does not say which ask a dropped draft came from, and the same text can come up twice in one
    second. But an earlier draft that was neither sent nor shown to the next ask was dropped, so the last one was
    dropped only if the guards stopped one more than these.
    """
    if not own or not _writes(own[-1][0]):
        return False

    def sent(after: int, upto: int | None = None) -> bool:
        return any(m.speaker == speaker for m in dialogue.messages[after + 1 : upto])

    dropped = sum(
        _writes(ask) and following.previous_draft is None and not sent(last, seen + 1)
        for (ask, last), (following, seen) in pairwise(own)
    )
    return not sent(own[-1][1]) and sum(g.speaker == speaker for g in dialogue.guards or []) <= dropped


def last_seen(dialogue: Dialogue) -> list[int]:
    """The position of the last message that each ask could see, -1 if none.

    The scheduler asks a side after every message, so its k-th ask saw message k last (a person is not asked at all); by the
    clock alone a reply sent in the same second would count as seen. Logs of which that is not true are read by the clock.
    """
    asks, at = dialogue.asks or [], [m.at for m in dialogue.messages]
    asked, places = Counter[Speaker](), list[int]()
    for ask in asks:
        places.append(asked[ask.speaker])
        asked[ask.speaker] += 1
    if all(place < len(at) and at[place] == ask.now for place, ask in zip(places, asks, strict=True)):
        return places
    return [bisect_right(at, ask.now) - 1 for ask in asks]
