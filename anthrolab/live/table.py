"""Where a live chat stands: its state, and what follows from it. Nothing here waits; `chat.LiveChat` lets time pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Protocol

from anthrolab.files import FileError
from anthrolab.live.analyser import Analysis
from anthrolab.live.care import care
from anthrolab.live.clock import Clock
from anthrolab.live.context import Context, refreshed
from anthrolab.live.events import Begun, DraftDropped, Event, MessageSent, Notice, Over
from anthrolab.live.past import ask_of, rebuilt
from anthrolab.live.record import dialogue_of
from anthrolab.live.scene import ChatError, Setting
from anthrolab.live.session_log import SessionLog, check_same_chat
from anthrolab.live.state import State
from anthrolab.runtime.dialogue import Dialogue, Speaker, Summary
from anthrolab.runtime.history import History
from anthrolab.runtime.policy import Policy
from anthrolab.runtime.prompt import persona_hash
from anthrolab.runtime.schedule import Asked, Floor, Pending, Rules, Sent
from anthrolab.runtime.seat import Seat

BURST = 3
"""Messages in a row of one speaker that the care rules read as one, besides each by itself."""


class AnalyserLike(Protocol):
    """What infers the context (`live.analyser.Analyser`)."""

    async def analyse(self, known: Context, messages: Sequence[Sent], seat: Seat, person: Speaker) -> Analysis:
        """The context after these messages. ModelError if the model could not be had."""
        ...


@dataclass(frozen=True)
class Parts:
    """What a live chat is made of besides its setting. `sit` gives the persona's policy at a seat (with a salt for its
    draws, and the chat's past), `history` a new past that begins with these summaries. `analyse_every`: how many messages
    of the person are between two analyses."""

    sit: Callable[[Seat, str, History], Policy]
    history: Callable[[Sequence[Summary]], History]
    rules: Rules
    salt: str
    analyser: AnalyserLike | None = None
    analyse_every: int = 3


@dataclass
class Table:
    """One chat as it stands. `log`: where its events go (None: nowhere); a chat whose log has events goes on from there, and
    `about`, what it is opened with, must then be what it was. `changed` is called after everything that can be seen.

    ChatError if the log does not fit `about`, or does not fit itself.
    """

    dialogue_id: str
    name: str
    setting: Setting
    parts: Parts
    clock: Clock
    log: SessionLog | None = None
    about: dict[str, object] = field(default_factory=dict)
    changed: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.state = State(self.setting.side)
        self.floor = Floor(self.parts.rules)
        self.asked: Asked | None = None
        self.least = 0
        events = self.log.events() if self.log else []
        if self.log is not None and events:
            check_same_chat(events[0], self.about, self.log.path)
            for event in events:
                self.state.apply(event)
        else:
            self.note(Begun(setting=dict(self.about)))
        self.rebuild()
        if not self.state.messages and self.setting.opener is not None:
            self.put(Sent(self.setting.opener.speaker, self.setting.opener.content, 0))
        elif self.state.messages and self.state.stop is None:
            self._after_message()  # it may have been killed before this was noted

    @property
    def persona(self) -> Speaker:
        """The persona's side."""
        return self.setting.seat.speaker

    @property
    def draft(self) -> Pending | None:
        """The persona's unsent draft."""
        return self.floor.drafts.get(self.persona)

    @property
    def seat(self) -> Seat:
        """The persona's seat with what is known of the person by now."""
        return self._seat

    def typing_from(self) -> float | None:
        """When the persona begins to type its draft, in virtual seconds: as long before it is sent as its text takes."""
        speed = self.floor.rules.typing_chars_per_minute
        if self.draft is None or not speed:
            return None
        return self.draft.due_s - 60 * len(self.draft.content) / speed

    def dialogue(self) -> Dialogue:
        """The record as it stands now."""
        return dialogue_of(self.dialogue_id, self.name, self.setting, self.state, self.floor)

    def note(self, event: Event) -> None:
        """An event: on disk first, then in the state. FileError if it cannot be written: then nothing follows from it."""
        if self.log is not None:
            try:
                self.log.add(event)
            except FileError:
                self.rebuild()
                raise
        self.state.apply(event)

    def put(self, sent: Sent) -> None:
        """A message goes out. Words of danger in it hold the chat before anybody is asked."""
        self.clock.set(sent.at_s)
        self.note(MessageSent(speaker=sent.speaker, content=sent.content, at_s=sent.at_s))
        asks = self.floor.put(sent)
        self.asked = ask_of(asks, self.persona) if asks else None
        self._after_message()

    def next_out(self) -> Sent | None:
        """The draft that goes out next, if one does; a draft that a guard drops is noted. The floor says why there is none."""
        before = len(self.floor.course.guards)
        due = self.floor.next_out()
        for drop in self.floor.course.guards[before:] if due is None else ():
            self.note(DraftDropped(content=drop.content, guard=drop.guard, at_s=drop.at_s))
            self.least = drop.at_s + 1  # what the person says next comes after it
        return due

    def rebuild(self) -> None:
        """Everything that follows from the state: the floor, the open ask, the past, the seat, the time."""
        state = self.state
        try:
            drops = [after for after, _ in state.dropped]
            self.floor, self.asked = rebuilt(self.parts.rules, state.messages, state.answers, drops)
        except ValueError as e:
            where = f"{self.log.path}: " if self.log else ""
            raise ChatError(f"{where}the events do not fit each other ({e}); begin another chat") from e
        self.least = state.dropped[-1][1].at_s + 1 if state.dropped else 0
        self.clock.stop()
        self.clock.set(max([0, *(m.at_s for m in state.messages[-1:]), *(t.at_s for t in state.typed), self.least - 1]))
        self.forget_past()

    def forget_past(self) -> None:
        """Begin the past that the persona is shown anew, out of the summaries that are noted."""
        self._history = self.parts.history(self.state.summaries)
        self.sit()

    def sit(self) -> None:
        """The seat and the policy with what is known now. What the persona is made of stays as it was."""
        self._seat = refreshed(self.setting.seat, self.state.context)
        if persona_hash(self._seat) != persona_hash(self.setting.seat):
            raise AssertionError("the context changed the persona's own blocks")
        salt = f"{self.parts.salt}/take{self.state.rewinds}" if self.state.rewinds else self.parts.salt
        self._policy = self.parts.sit(self._seat, salt, self._history)

    def _after_message(self) -> None:
        """What the last message brings with it before anybody is asked: a notice, or the end."""
        position, last = len(self.state.messages) - 1, self.state.messages[-1]
        if len(self.state.answers) <= position and all(n.message != position for n in self.state.notices):
            concern = care(last.content) or care(self._burst())
            if concern is not None:
                self.note(Notice(concern=concern.concern, words=concern.words, speaker=last.speaker, message=position))
        if len(self.state.messages) >= self.floor.rules.max_messages:
            self.note(Over(stop="max_messages"))
        self.changed()

    def _burst(self) -> str:
        """The latest messages in a row of one speaker, after the last notice: what is meant may be spread over them."""
        since = self.state.notices[-1].message + 1 if self.state.notices else 0
        said = self.state.messages[since:]
        row = list(takewhile(lambda m: m.speaker == said[-1].speaker, reversed(said)))
        return " ".join(m.content for m in reversed(row[:BURST]))
