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


def converse(rules: Rules, opener: Sent) -> Dance:
    """Run one dialogue from its opener (at second 0), which counts as message 1."""
    course = Course()
    history: tuple[Sent, ...] = ()
    said: dict[Speaker, set[str]] = {"a": set(), "b": set()}
    farewells = frozenset(normalise(f) for f in rules.farewells)
    waved: set[Speaker] = set()
    drafts: dict[Speaker, Pending] = {}
    due: Sent | None = opener
    while due is not None:
        now, sender = due.at_s, due.speaker
        course.messages.append(due)
        history += (due,)
        text = normalise(due.content)
        said[sender].add(text)
        if text in farewells:
            waved.add(sender)
        if len(history) >= rules.max_messages:
            course.stop = "max_messages"
            return course
        unsent = drafts.get(other(sender))
        asks = (
            Asked(sender, now, history, None),
            Asked(other(sender), now, history, unsent, _interruption(rules, unsent, now)),
        )
        course.asks.extend(asks)
        plans = yield asks
        for ask, plan in zip(asks, plans, strict=True):
            drafts.pop(ask.speaker, None)
            if not plan.silent:
                due_s = now + min(max(plan.delay_s, 0), rules.max_delay_s)
                drafts[ask.speaker] = Pending(plan.content, max(due_s, _earliest(rules, ask)))
        due = _next_out(rules, course, history, drafts, said, waved, farewells)
    return course


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


def _next_out(
    rules: Rules,
    course: Course,
    history: tuple[Sent, ...],
    drafts: dict[Speaker, Pending],
    said: dict[Speaker, set[str]],
    waved: set[Speaker],
    farewells: frozenset[str],
) -> Sent | None:
    """Take drafts in the order due until one passes the guards; None ends the dialogue (`course.stop` says why)."""
    last = history[-1].speaker
    while drafts:
        # On a tie the one who did not send the last message comes first.
        speaker = min(drafts, key=lambda s: (drafts[s].due_s, s == last))
        draft = drafts[speaker]
        if draft.due_s > rules.horizon_s:
            course.stop = "horizon"
            return None
        del drafts[speaker]
        text = normalise(draft.content)
        tail = history[-rules.max_consecutive :]
        guard: Guard
        if len(text) > rules.repeat_exempt_chars and text in said[speaker]:
            guard = "self_repetition"
        elif len(tail) == rules.max_consecutive and all(m.speaker == speaker for m in tail):
            guard = "too_many_in_a_row"
        elif text in farewells and len(waved) == 2:
            guard = "goodbye_loop"
        else:
            return Sent(speaker, draft.content, draft.due_s)
        course.guards.append(Dropped(speaker, draft.content, guard, draft.due_s))
    course.stop = "closed"
    return None
