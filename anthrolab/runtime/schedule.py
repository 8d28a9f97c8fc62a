"""The single-draft scheduler (paper section 4.3): who speaks next, when, and when the chat is over.

Pure and exact: it knows nothing of models, files or the wall clock. It is a generator: it yields the two asks
that belong to one event, is sent the two plans, and returns the whole course. Whoever drives it decides how
the asks are answered (concurrently over a network, in lockstep waves for many dialogues, or from a list).

    course = converse(rules, opener)
    asks = next(course)
    while True:
        try:
            asks = course.send((answer(asks[0]), answer(asks[1])))
        except StopIteration as stop:
            return stop.value

Times are whole seconds of virtual time since the start of the dialogue.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import takewhile

from anthrolab.runtime.dialogue import Guard, Speaker, Stop, other
from anthrolab.runtime.drafts import Interruption
from anthrolab.runtime.text import FAREWELLS, normalise


@dataclass(frozen=True)
class Rules:
    """The limits of a dialogue. A draft due exactly at the horizon still goes out.

    The last three are off (0, empty) in the benchmark. `min_gap_s`: seconds between two messages of one speaker.
    `follow_up_delays`: the k-th follow-up of a speaker who got no answer waits at least the k-th of these seconds
    after the message before it (the last one serves all further ones). Both push a draft back, even beyond
    `max_delay_s`. `typing_chars_per_minute`: with it an interrupted draft counts as being typed if the partner's
    message came within the time that its text takes, else as waiting; it changes no time.
    `person`: the side that a person plays, if any. What a person sends is never dropped, nor put off by any of these.
    """

    horizon_s: int
    max_delay_s: int = 600
    max_consecutive: int = 4
    max_messages: int = 50
    repeat_exempt_chars: int = 3
    farewells: frozenset[str] = FAREWELLS
    min_gap_s: int = 0
    follow_up_delays: tuple[int, ...] = ()
    typing_chars_per_minute: int = 0
    person: Speaker | None = None

    def __post_init__(self) -> None:
        if self.horizon_s < 0 or self.max_delay_s < 0 or self.repeat_exempt_chars < 0:
            raise ValueError("horizon_s, max_delay_s and repeat_exempt_chars are at least 0")
        if self.min_gap_s < 0 or self.typing_chars_per_minute < 0 or any(d < 0 for d in self.follow_up_delays):
            raise ValueError("min_gap_s, typing_chars_per_minute and follow_up_delays are at least 0")
        if self.max_consecutive < 1 or self.max_messages < 1:
            raise ValueError("max_consecutive and max_messages are at least 1")


@dataclass(frozen=True)
class Sent:
    """A message that went out at `at_s`."""

    speaker: Speaker
    content: str
    at_s: int


@dataclass(frozen=True)
class Plan:
    """A decision: what to send, how many seconds from now, or silence (`end`, or blank content)."""

    content: str = ""
    delay_s: int = 0
    end: bool = False

    @property
    def silent(self) -> bool:
        """True if nothing is to be sent."""
        return self.end or not self.content.strip()


SILENCE = Plan(end=True)


@dataclass(frozen=True)
class Pending:
    """An unsent draft and the time at which it is due."""

    content: str
    due_s: int


@dataclass(frozen=True)
class Asked:
    """One question to one speaker. Both asks of an event see the same messages and the same time."""

    speaker: Speaker
    now_s: int
    messages: tuple[Sent, ...]
    draft: Pending | None
    interrupted: Interruption | None = None


@dataclass(frozen=True)
class Dropped:
    """A draft that a guard stopped at its due time."""

    speaker: Speaker
    content: str
    guard: Guard
    at_s: int


@dataclass
class Course:
    """What happened: every message, ask and dropped draft in order, and why it stopped."""

    messages: list[Sent] = field(default_factory=list)
    asks: list[Asked] = field(default_factory=list)
    guards: list[Dropped] = field(default_factory=list)
    stop: Stop = "closed"


Dance = Generator[tuple[Asked, Asked], tuple[Plan, Plan], Course]


class Floor:
    """Where a dialogue stands: what was said, and each speaker's unsent draft.

    `put` sends a message and says who is asked now, `plan` takes an answer, `next_out` the draft that goes out next.
    `converse` runs it to its end; a live chat does the three steps when their time has come.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.course = Course()
        self.drafts: dict[Speaker, Pending] = {}
        self._history: tuple[Sent, ...] = ()
        self._said: dict[Speaker, set[str]] = {"a": set(), "b": set()}
        self._farewells = frozenset(normalise(f) for f in rules.farewells)
        self._waved: set[Speaker] = set()

    def put(self, due: Sent) -> tuple[Asked, Asked] | None:
        """A message goes out: its sender and its receiver are to be asked. None ends the dialogue: it is full."""
        sender = due.speaker
        self.course.messages.append(due)
        self._history += (due,)
        text = normalise(due.content)
        self._said[sender].add(text)
        if text in self._farewells:
            self._waved.add(sender)
        if len(self._history) >= self.rules.max_messages:
            self.course.stop = "max_messages"
            return None
        unsent = self.drafts.get(other(sender))
        asks = (
            Asked(sender, due.at_s, self._history, None),
            Asked(other(sender), due.at_s, self._history, unsent, _interruption(self.rules, unsent, due.at_s)),
        )
        self.course.asks.extend(asks)
        return asks

    def plan(self, ask: Asked, plan: Plan) -> None:
        """The answer to an ask: it replaces the speaker's draft."""
        self.drafts.pop(ask.speaker, None)
        if plan.silent:
            return
        if ask.speaker == self.rules.person:
            due_s = ask.now_s + max(plan.delay_s, 0)
        else:
            due_s = max(ask.now_s + min(max(plan.delay_s, 0), self.rules.max_delay_s), _earliest(self.rules, ask))
        self.drafts[ask.speaker] = Pending(plan.content, due_s)

    def next_out(self) -> Sent | None:
        """Take drafts in the order due until one passes the guards; None ends the dialogue (`course.stop` says why)."""
        last = self._history[-1].speaker
        while self.drafts:
            # On a tie the one who did not send the last message comes first.
            speaker = min(self.drafts, key=lambda s: (self.drafts[s].due_s, s == last))
            draft = self.drafts[speaker]
            if draft.due_s > self.rules.horizon_s:
                self.course.stop = "horizon"
                return None
            del self.drafts[speaker]
            guard = None if speaker == self.rules.person else self._guard(speaker, normalise(draft.content))
            if guard is None:
                return Sent(speaker, draft.content, draft.due_s)
            self.course.guards.append(Dropped(speaker, draft.content, guard, draft.due_s))
        self.course.stop = "closed"
        return None

    def _guard(self, speaker: Speaker, text: str) -> Guard | None:
        """The guard that stops a normalised text, if one does."""
        tail = self._history[-self.rules.max_consecutive :]
        if len(text) > self.rules.repeat_exempt_chars and text in self._said[speaker]:
            return "self_repetition"
        if len(tail) == self.rules.max_consecutive and all(m.speaker == speaker for m in tail):
            return "too_many_in_a_row"
        if text in self._farewells and len(self._waved) == 2:
            return "goodbye_loop"
        return None


def converse(rules: Rules, opener: Sent) -> Dance:
    """Run one dialogue from its opener (at second 0), which counts as message 1."""
    floor = Floor(rules)
    due: Sent | None = opener
    while due is not None:
        asks = floor.put(due)
        if asks is None:
            break
        plans = yield asks
        for ask, plan in zip(asks, plans, strict=True):
            floor.plan(ask, plan)
        due = floor.next_out()
    return floor.course


def _earliest(rules: Rules, ask: Asked) -> int:
    """The time before which a new draft of this speaker may not go out (0: any time)."""
    if not rules.min_gap_s and not rules.follow_up_delays:
        return 0
    own_last = next((m for m in reversed(ask.messages) if m.speaker == ask.speaker), None)
    if own_last is None:
        return 0
    gap = rules.min_gap_s
    in_a_row = sum(1 for _ in takewhile(lambda m: m.speaker == ask.speaker, reversed(ask.messages)))
    if in_a_row and rules.follow_up_delays:
        gap = max(gap, rules.follow_up_delays[min(in_a_row, len(rules.follow_up_delays)) - 1])
    return own_last.at_s + gap


def _interruption(rules: Rules, draft: Pending | None, now: int) -> Interruption | None:
    """How a message that comes in at `now` finds the receiver's draft; None without a draft or a typing speed."""
    if draft is None or not rules.typing_chars_per_minute:
        return None
    typing_s = -(-len(draft.content) * 60 // rules.typing_chars_per_minute)
    return "typing" if now >= draft.due_s - typing_s else "waiting"
