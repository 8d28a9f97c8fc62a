"""A live chat: a persona played by a model, and a person who writes whenever they like.

The single-draft scheduler runs as in the benchmark (`runtime.schedule.Floor`): every message that goes out has the persona
asked anew, with its unsent draft before it; what it decides waits for its time. Only the person is not asked.
"""

import asyncio
from dataclasses import dataclass
from typing import Literal

from anthrolab.live.analyser import Analysis
from anthrolab.live.clock import INSTANT
from anthrolab.live.context import Context
from anthrolab.live.events import ContextSet, Failed, Over, Rewound, Summarised, Typed, WentOn, answered
from anthrolab.live.scene import ChatError
from anthrolab.live.table import Table
from anthrolab.models.client import ModelError
from anthrolab.runtime.schedule import SILENCE, Asked, Pending, Sent
from anthrolab.sync import both

Phase = Literal["first", "deciding", "chatting", "resting", "paused", "held", "trouble", "over"]
"""first: the person is to write the first message. deciding: the model is asked. chatting: a draft waits for its time.
resting: the persona has nothing to say for now. paused, held (by a notice), trouble (a model failed): the person is to go on.
"""

MOST_CHARS = 20_000
"""Characters of one message of a person."""


@dataclass
class LiveChat(Table):
    """One chat. `run` keeps it going; the other methods are what a person does, and return at once. All in one event loop."""

    def __post_init__(self) -> None:
        self.paused = False
        self._woken = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None
        self._tried = 0
        super().__post_init__()

    @property
    def phase(self) -> Phase:
        """What the chat is at."""
        if self.state.stop is not None:
            return "over"
        if self.state.held:
            return "held"
        if self.state.failed is not None:
            return "trouble"
        if self.paused:
            return "paused"
        if self.asked is not None:
            return "deciding"
        if not self.state.messages:
            return "first"
        return "chatting" if self.draft is not None else "resting"

    @property
    def typing(self) -> bool:
        """Whether the persona is typing its draft just now."""
        begins = self.typing_from()
        return self.phase == "chatting" and begins is not None and self.clock.now() >= begins

    def say(self, content: str, at_s: int | None = None) -> None:
        """The person sends a message, now or at a time (seconds after the start) that is still to come.

        ChatError if it is blank, too long or no Unicode text, or if the chat is over or stands still.
        """
        if self.phase in ("over", "held", "paused", "trouble"):
            raise ChatError("the chat is over; go back to a message to try again" if self.phase == "over" else "the chat stands still; go on first")
        if not content.strip():
            raise ChatError("the message is blank; write something")
        if len(content) > MOST_CHARS:
            raise ChatError(f"the message has {len(content)} characters; a message has at most {MOST_CHARS}")
        if any("\ud800" <= c <= "\udfff" for c in content):
            raise ChatError("the message holds half a character; is the terminal's encoding UTF-8?")
        self.note(Typed(content=content, at_s=max(int(self.clock.now()), self.least) if at_s is None else at_s))
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
        if self.state.failed is not None:
            self.forget_past()  # it keeps the failure of a summariser
        if self.state.held or self.state.failed is not None:
            self.note(WentOn())
        self._wake()

    def set_speed(self, speed: float) -> None:
        """How many virtual seconds pass in a real one from now on; ValueError unless above 0."""
        self.clock.speed = speed
        self._wake()

    def rewind(self, to: int) -> None:
        """Take back everything after the message at this position (from 0); the persona is asked anew.

        Nothing is taken back where that very ask is still open. ChatError if there is no such message.
        """
        if not 0 <= to < len(self.state.messages):
            raise ChatError(f"there is no message {to + 1}; the chat has {len(self.state.messages)}")
        if to == len(self.state.messages) - 1 and self.asked is not None and self.state.stop is None and not self.state.typed:
            return
        self._drop_ask()
        self.note(Rewound(to=to))
        self.paused, self._tried = False, 0
        self.rebuild()
        self._wake()

    def leave(self) -> None:
        """The person ends the chat."""
        if self.state.stop is None:
            pending = self.draft is not None or self.asked is not None
            self._drop_ask()
            self.note(Over(stop="left" if pending else "closed"))
            self.clock.stop()
            self._wake()

    def correct(self, context: Context) -> None:
        """The person says what is known of them and the scene, from the next ask on."""
        self.note(ContextSet(by="hand", context=context))
        self.sit()
        self._wake()

    async def run(self) -> None:
        """Keep the chat going until it is over. A model that fails is shown, and waits for `go_on`."""
        try:
            while self.phase != "over":
                self._woken.clear()
                if self.phase in ("held", "trouble", "paused"):
                    self.clock.stop()
                    await self._woken.wait()
                elif self.asked is not None:
                    await self._answer(self.asked)
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
                self.put(Sent(self.setting.side, typed[0].content, 0))
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
            self.note(Over(stop="horizon"))
            self.changed()
            return
        if typed and typed[0].at_s <= self.clock.now():
            self.floor.drafts[self.setting.side] = Pending(typed[0].content, max(typed[0].at_s, self.state.messages[-1].at_s))
        due = self.next_out()
        if due is not None:
            self.put(due)
            return
        if self.floor.course.stop == "horizon":
            self.note(Over(stop="horizon"))
        self.changed()

    async def _answer(self, asked: Asked) -> None:
        """Ask the persona, and the analyser beside it where it is due; both see the same messages, and time stands still."""
        self.clock.stop()
        asking = self._asking = asyncio.ensure_future(self._ask(asked))
        self.changed()
        try:
            await asyncio.wait({asking})
            if asking.cancelled() and self._asking is asking:
                raise RuntimeError("the persona's policy was cancelled, and not by this chat")
        finally:
            self._drop_ask()
        if not asking.cancelled():
            asking.result()

    async def _ask(self, asked: Asked) -> None:
        known = self.state.context
        try:
            answer, analysis = await both(self._policy.decide(asked), self._analysed(asked))
        except ModelError as e:
            self.note(Failed(fault=e.fault, message=str(e)))
            self.changed()
            return
        for summary in self._history.summaries[len(self.state.summaries) :]:
            self.note(Summarised(summary=summary))
        informed = None
        if analysis is not None and self.state.context is known:  # what the person set meanwhile is not lost; the next analysis reads on from there
            informed = ContextSet(by="analyser", context=analysis.context, refused=analysis.refused, error=analysis.error, call=analysis.call)
        self.note(answered(answer, informed))
        self.floor.plan(asked, answer.plan or SILENCE)
        self.asked = None
        if informed is not None:
            self.sit()
        self.changed()

    async def _analysed(self, asked: Asked) -> Analysis | None:
        analyser, last = self.parts.analyser, asked.messages[-1]
        if analyser is None or last.speaker == self.persona:
            return None
        since = max(self.state.context.upto, self._tried)
        if sum(1 for m in asked.messages[since:] if m.speaker == self.setting.side) < self.parts.analyse_every:
            return None
        try:
            return await analyser.analyse(self.state.context, asked.messages, self.setting.seat, self.setting.side)
        except ModelError as e:  # the chat goes on without; it is tried again after as many messages more
            self._tried = len(asked.messages)
            return Analysis(context=self.state.context, error=str(e))

    def _drop_ask(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def _wake(self) -> None:
        self._woken.set()
        self.changed()
