"""A live chat: a persona played by a model, and a person who writes whenever they like.

The single-draft scheduler runs as in the benchmark (`runtime.schedule.Floor`): every message that goes out has the persona
asked anew, with its unsent draft before it; what it decides waits for its time. Only the person is not asked.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal, Protocol

from anthrolab.live.analyser import Analysis
from anthrolab.live.care import care
from anthrolab.live.clock import INSTANT, Clock
from anthrolab.live.context import Context, refreshed
from anthrolab.live.events import (
    Begun,
    ContextSet,
    Event,
    Failed,
    MessageSent,
    Notice,
    Over,
    Rewound,
    SessionLog,
    State,
    Summarised,
    Typed,
    WentOn,
    answered,
    check_same_chat,
)  # fmt: skip
from anthrolab.live.past import ask_of, rebuilt
from anthrolab.live.record import dialogue_of
from anthrolab.live.scene import ChatError, Setting
from anthrolab.models.client import ModelError
from anthrolab.runtime.dialogue import Dialogue, Speaker, Summary
from anthrolab.runtime.history import History
from anthrolab.runtime.policy import Policy
from anthrolab.runtime.prompt import persona_hash
from anthrolab.runtime.schedule import SILENCE, Asked, Floor, Pending, Rules, Sent
from anthrolab.runtime.seat import Seat
from anthrolab.sync import both

Phase = Literal["first", "deciding", "chatting", "resting", "paused", "held", "trouble", "over"]
"""first: the person is to write the first message. deciding: the model is asked. chatting: a draft waits for its time.
resting: the persona has nothing to say for now. paused, held (by a notice), trouble (a model failed): the person is to go on.
"""

BURST = 3
"""Messages in a row of one speaker that the care rules read as one, besides each by itself."""

MOST_CHARS = 20_000
"""Characters of one message of a person."""


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
class LiveChat:
    """One chat. `run` keeps it going; the other methods are what a person does, and return at once.

    All in one event loop. `changed` is called after everything that a person could see. `log`: where its events go (None:
    nowhere). A chat whose log has events goes on from there.
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
        self._asked: Asked | None = None
        self.paused = False
        self._woken = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None
        self._least = 0
        begun = self.log.begun() if self.log else None
        if self.log is not None and begun is not None:
            check_same_chat(begun, self.about, self.log.path)
            for event in self.log.events():
                self.state.apply(event)
        else:
            self._note(Begun(setting=dict(self.about)))
        self._rebuild()
        if not self.state.messages and self.setting.opener is not None:
            self._put(Sent(self.setting.opener.speaker, self.setting.opener.content, 0))

    @property
    def persona(self) -> Speaker:
        """The persona's side."""
        return self.setting.seat.speaker

    @property
    def draft(self) -> Pending | None:
        """The persona's unsent draft."""
        return self.floor.drafts.get(self.persona)

    @property
    def phase(self) -> Phase:
        """What the chat is at."""
        if self.state.stop is not None:
            return "over"
        if self.state.held:
            return "held"
        if self.state.trouble is not None:
            return "trouble"
        if self.paused:
            return "paused"
        if self._asked is not None:
            return "deciding"
        if not self.state.messages:
            return "first"
        return "chatting" if self.draft is not None else "resting"

    @property
    def seat(self) -> Seat:
        """The persona's seat with what is known of the person by now."""
        return self._seat

    @property
    def typing(self) -> bool:
        """Whether the persona is typing its draft just now."""
        begins = self.typing_from()
        return self.phase == "chatting" and begins is not None and self.clock.now() >= begins

    def typing_from(self) -> float | None:
        """When the persona begins to type its draft, in virtual seconds: as long before it is sent as its text takes."""
        speed = self.floor.rules.typing_chars_per_minute
        if self.draft is None or not speed:
            return None
        return self.draft.due_s - 60 * len(self.draft.content) / speed

    def say(self, content: str, at_s: int | None = None) -> None:
        """The person sends a message, now or at a time (seconds after the start) that is still to come.

        ChatError if it is blank or too long, or if the chat is over or stands still.
        """
        if self.phase in ("over", "held", "paused", "trouble"):
            raise ChatError({"over": "the chat is over; go back to a message to try again"}.get(self.phase, "the chat stands still; go on first"))
        if not content.strip():
            raise ChatError("the message is blank; write something")
        if len(content) > MOST_CHARS:
            raise ChatError(f"the message has {len(content)} characters; a message has at most {MOST_CHARS}")
        self._note(Typed(content=content, at_s=max(int(self.clock.now()), self._least) if at_s is None else at_s))
        self._wake()

    def pause(self) -> None:
        """Time stands still; a decision that the model is at is still taken in."""
        if self.phase not in ("over", "held", "trouble"):
            self.paused = True
            self.clock.stop()
            self._wake()

    def go_on(self) -> None:
        """After a pause, a notice or a failure: time goes on, and what was to be asked is asked (again)."""
        self.paused = False
        if self.state.held:
            self._note(WentOn())
        self.state.trouble = None
        self._wake()

    def set_speed(self, speed: float) -> None:
        """How many virtual seconds pass in a real one from now on; ValueError unless above 0."""
        self.clock.speed = speed
        self._wake()

    def rewind(self, to: int) -> None:
        """Take back everything after the message at this position (from 0); the persona is asked anew.

        ChatError if there is no such message.
        """
        if not 0 <= to < len(self.state.messages):
            raise ChatError(f"there is no message {to + 1}; the chat has {len(self.state.messages)}")
        self._drop_ask()
        self._note(Rewound(to=to))
        self.paused = False
        self._rebuild()
        self._wake()

    def leave(self) -> None:
        """The person ends the chat."""
        if self.state.stop is None:
            pending = self.draft is not None or self._asked is not None
            self._drop_ask()
            self._note(Over(stop="left" if pending else "closed"))
            self.clock.stop()
            self._wake()

    def correct(self, context: Context) -> None:
        """The person says what is known of them and the scene, from the next ask on."""
        self._note(ContextSet(by="hand", context=context))
        self._sit()
        self._wake()

    def dialogue(self) -> Dialogue:
        """The record as it stands now."""
        return dialogue_of(self.dialogue_id, self.name, self.setting, self.state, self.floor)

    async def run(self) -> None:
        """Keep the chat going until it is over. A model that fails is shown, and waits for `go_on`."""
        try:
            while self.phase != "over":
                self._woken.clear()
                if self.phase in ("held", "trouble", "paused"):
                    self.clock.stop()
                    await self._woken.wait()
                elif self._asked is not None:
                    await self._answer(self._asked)
                else:
                    await self._pass_time()
        finally:
            self.clock.stop()
            self._drop_ask()

    async def _pass_time(self) -> None:
        """Until something is to happen, and have it happen."""
        typed = self.state.typed
        if not self.state.messages:
            if typed:
                self._put(Sent(self.setting.side, typed[0].content, 0))
            else:
                await self._woken.wait()
            return
        self.clock.go()
        draft = self.draft
        times = ([draft.due_s] if draft else []) + ([typed[0].at_s] if typed else [])
        begins = self.typing_from()
        if begins is not None and self.clock.now() < begins < min(times):
            if await self.clock.until(begins, self._woken):
                self.changed()
            return
        if not times and self.clock.speed != INSTANT:
            times = [self.floor.rules.horizon_s + 1]
        if not await self.clock.until(min(times, default=None), self._woken):
            return
        if self.clock.now() > self.floor.rules.horizon_s and not self.floor.drafts and not typed:
            self._note(Over(stop="horizon"))
            self.changed()
            return
        if typed and typed[0].at_s <= self.clock.now():
            self.floor.drafts[self.setting.side] = Pending(typed[0].content, max(typed[0].at_s, self.state.messages[-1].at_s))
        due = self.floor.next_out()
        if due is not None:
            self._put(due)
            return
        if self.floor.course.stop == "horizon":
            self._note(Over(stop="horizon"))
        else:
            self._least = int(self.clock.now()) + 1  # a guard dropped the draft before what the person says next
        self.changed()

    def _put(self, sent: Sent) -> None:
        """A message goes out."""
        self.clock.set(sent.at_s)
        self._note(MessageSent(speaker=sent.speaker, content=sent.content, at_s=sent.at_s))
        asks = self.floor.put(sent)
        self._asked = ask_of(asks, self.persona) if asks else None
        concern = care(sent.content) or care(self._burst())
        if concern is not None:
            position = len(self.state.messages) - 1
            self._note(Notice(concern=concern.concern, words=concern.words, speaker=sent.speaker, message=position))
        if asks is None:
            self._note(Over(stop="max_messages"))
        self.changed()

    def _burst(self) -> str:
        """The latest messages in a row of one speaker, after the last notice: what is meant may be spread over them."""
        since = self.state.notices[-1].message + 1 if self.state.notices else 0
        said = self.state.messages[since:]
        row = list(takewhile(lambda m: m.speaker == said[-1].speaker, reversed(said)))
        return " ".join(m.content for m in reversed(row[:BURST]))

    async def _answer(self, asked: Asked) -> None:
        """Ask the persona, and the analyser beside it where it is due; both see the same messages, and time stands still."""
        self.clock.stop()
        asking = self._asking = asyncio.ensure_future(self._ask(asked))
        self.changed()
        try:
            await asyncio.wait({asking})
        finally:
            self._drop_ask()
        if not asking.cancelled():
            asking.result()

    async def _ask(self, asked: Asked) -> None:
        known = self.state.context
        try:
            answer, analysis = await both(self._policy.decide(asked), self._analysed(asked))
        except ModelError as e:
            self._note(Failed(fault=e.fault, message=str(e)))
            self.changed()
            return
        for summary in self._history.summaries[len(self.state.summaries) :]:
            self._note(Summarised(summary=summary))
        self._note(answered(answer))
        self.floor.plan(asked, answer.plan or SILENCE)
        self._asked = None
        if analysis is not None and self.state.context is known:  # what the person set meanwhile is not lost; the next analysis reads on from there
            self._note(
                ContextSet(by="analyser", context=analysis.context, refused=analysis.refused, error=analysis.error, call=analysis.call)
            )
            self._sit()
        self.changed()

    async def _analysed(self, asked: Asked) -> Analysis | None:
        analyser, last = self.parts.analyser, asked.messages[-1]
        if analyser is None or last.speaker == self.persona:
            return None
        new = sum(1 for m in asked.messages[self.state.context.upto :] if m.speaker == self.setting.side)
        if new < self.parts.analyse_every:
            return None
        try:
            return await analyser.analyse(self.state.context, asked.messages, self.setting.seat, self.setting.side)
        except ModelError as e:  # the chat goes on without; the next message brings the next try
            return Analysis(context=self.state.context, error=str(e))

    def _note(self, event: Event) -> None:
        if self.log is not None:
            self.log.add(event)
        self.state.apply(event)

    def _rebuild(self) -> None:
        """Everything that follows from the state: the floor, the open ask, the past, the seat."""
        state = self.state
        try:
            self.floor, self._asked = rebuilt(self.parts.rules, state.messages, state.answers)
        except ValueError as e:
            where = f"{self.log.path}: " if self.log else ""
            raise ChatError(f"{where}the events do not fit each other ({e}); begin another chat") from e
        self._history = self.parts.history(state.summaries)
        self._least = 0
        self.clock.stop()
        self.clock.set(state.messages[-1].at_s if state.messages else 0)
        self._sit()

    def _sit(self) -> None:
        """The seat and the policy with what is known now. What the persona is made of stays as it was."""
        self._seat = refreshed(self.setting.seat, self.state.context)
        if persona_hash(self._seat) != persona_hash(self.setting.seat):
            raise AssertionError("the context changed the persona's own blocks")
        salt = f"{self.parts.salt}/take{self.state.rewinds}" if self.state.rewinds else self.parts.salt
        self._policy = self.parts.sit(self._seat, salt, self._history)

    def _drop_ask(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def _wake(self) -> None:
        self._woken.set()
        self.changed()
