"""A live chat in a notebook: bubbles, a field to write in, and what steers the chat.

The chat is a task on the kernel's own event loop, so its cell ends at once. What is pressed may come in on another thread
(JupyterLab handles widgets beside running cells) and is done on that loop.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from traceback import format_exception
from typing import Any

import ipywidgets as w  # type: ignore[import-untyped]

from anthrolab.errors import AnthrolabError
from anthrolab.live.chat import LiveChat
from anthrolab.live.clock import Clock
from anthrolab.live.opening import ChatSettings, OpenChat, open_chat
from anthrolab.live.scene import ChatError
from anthrolab.live.view import View, view_of
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.show import chat_page as page
from anthrolab.show.chat_behind import Behind
from anthrolab.show.chat_context import Change
from anthrolab.show.chat_entry import Entry
from anthrolab.show.chat_loop import OnLoop
from anthrolab.show.chat_panel import short
from anthrolab.show.chat_parts import ChatParts, sync_box
from anthrolab.sync import both

Opening = Callable[[ChatSettings, Clock], AbstractAsyncContextManager[OpenChat]]

TICK_S = 1.0
"""Real seconds between two looks at the clock while time goes on."""

_ASKED = ("deciding", "chatting", "resting")


class ChatWidget(w.VBox):  # type: ignore[misc]
    """One chat with its person. Nothing is opened before Start. `opened` is the chat and what is behind it, kept when it is
    closed again; `dialogue` its record so far."""

    def __init__(self, settings: ChatSettings, speed: float = 1.0, opening: Opening = open_chat) -> None:
        self.settings = settings
        self.opened: OpenChat | None = None
        self._opening = opening
        self._on_loop = OnLoop(self._failed)
        self._talk: asyncio.Task[None] | None = None
        self._news, self._moved = asyncio.Event(), asyncio.Event()
        self._ended = self._done = False
        self.parts = ChatParts(speed)
        self.panels = Behind(lambda change: self._on_loop.soon(lambda: self._correct(change)), lambda: self._on_loop.soon(self._show))
        self.panels.layout.display = "none"
        self._observe()
        super().__init__([w.HTML(page.style()), self.parts.first, self.parts.talk, self.parts.begin, self.parts.said, self.panels])
        self.add_class("al-live")
        self._between()

    @property
    def chat(self) -> LiveChat | None:
        """The chat, once it has been opened."""
        return self.opened.chat if self.opened else None

    @property
    def running(self) -> bool:
        """Whether the chat is open."""
        return self._talk is not None and not self._talk.done()

    @property
    def _begun(self) -> bool:
        """Whether there is a saved chat that Start goes on with."""
        folder, name = self.settings.folder, self.settings.chat
        return folder is not None and name != "" and (folder / "chats" / f"{name}.jsonl").exists()

    def dialogue(self) -> Dialogue | None:
        """The record as it stands now; None where nobody has written yet."""
        return self.chat.dialogue() if self.chat is not None and self.chat.state.messages else None

    def told(self) -> str:
        """In a line what this is: a chat that runs, one to go on with, or a new one."""
        folder, name = self.settings.folder, self.settings.chat
        count = len(self.chat.state.messages) if self.chat else 0
        if self.opened is not None:
            return f"{self.opened.name}: the chat of this kernel is shown again, with its {count} messages; it is {'running' if self.running else 'closed'}"
        if folder is None:
            return "a new chat, which is saved nowhere; nothing is opened before you press Start"
        if self._begun:
            return f"{folder}: {name} was begun there before; press Go on, and it goes on where it stopped"
        return f"{folder}: a new chat{f' named {name}' if name else ''} will be saved there; nothing is opened before you press Start"

    def start(self) -> None:
        """Open the chat and have it go on; on the loop, at once."""
        if not self.running:
            self._ended = self._done = False
            self.parts.start.disabled = True
            self._say("Opening the cards and the model.")
            self._talk = self._on_loop.spawn(self._talking(), self._closed)

    def send(self, text: str) -> None:
        """The person sends a message; what cannot be sent stays in the field."""
        if self.chat is not None and self.running and text.strip():
            self.chat.say(text)
            self.parts.text.value = ""
            self._say("")

    def end(self) -> None:
        """The person ends the chat, and everything is closed."""
        if self.chat is not None and self.running:
            self._ended = True
            self.chat.leave()
            self._changed()

    async def _talking(self) -> None:
        async with self._opening(self.settings, Clock(self.parts.speed.value)) as opened:
            self.opened = opened
            chat = opened.chat
            chat.changed = self._changed
            there = len(chat.state.messages)
            where = f"Saved in {opened.folder} as {opened.name}." if opened.folder else "This chat is saved nowhere."
            begun = there > (chat.setting.opener is not None) or chat.state.rewinds > 0
            self._say(f"{where} It goes on where it stopped, with the {there} messages that were there." if begun else where)
            self._inside(chat)
            await both(self._going(chat), self._watching(chat))
        self._say(f"Closed. {where}")

    async def _going(self, chat: LiveChat) -> None:
        """Until the person ends the chat; one that is over may be taken up again by going back."""
        while not self._ended:
            await chat.run()
            while chat.phase == "over" and not self._ended:
                self._moved.clear()
                await self._moved.wait()
        self._done = True
        self._changed()

    async def _watching(self, chat: LiveChat) -> None:
        """Show what is new, and the clock while it goes."""
        while True:
            self._news.clear()
            self._show()
            if self._done:
                return
            try:
                async with asyncio.timeout(TICK_S if chat.phase in _ASKED else None):
                    await self._news.wait()
            except TimeoutError:
                pass

    def _changed(self) -> None:
        self._news.set()
        self._moved.set()

    def _show(self) -> None:
        """Everything that follows from the chat; a value that stays is not sent again."""
        if self.opened is None:
            return
        chat, parts = self.opened.chat, self.parts
        view = view_of(chat, self.opened.system.name)
        parts.ai.value = page.header_html(view.header)
        sync_box(parts.lines, page.lines_html(view.lines))
        parts.typing.value = page.TYPING if view.typing else ""
        parts.clock.value = f"{view.now:%H:%M:%S}"
        again = " Go back to a message to try again, or press End to close it." if view.phase == "over" and self.running and not self._ended else ""
        parts.status.value = page.status_html(view.status + again)
        parts.show_phase(view, open=self.running and not self._ended)
        parts.offer_messages([(f"{line.index + 1}  {line.at:%H:%M:%S}  {line.name}: {short(line.text)}", line.index) for line in view.lines if line.index is not None])
        self.panels.show(self.opened)

    def _inside(self, chat: LiveChat) -> None:
        """The chat takes the place of the notice."""
        self.parts.scene.value = page.scene_html(chat.setting)
        self.panels.layout.display = None
        self.parts.open()
        self.parts.text.focus()

    def _between(self) -> None:
        """What stands there before the chat is opened, and after it is closed."""
        self.parts.first.value = page.notice_html([self.told()])
        self.parts.start.description = "Go on" if self._begun else "Start a new chat" if self.opened else "Start"
        self.parts.close()

    def _closed(self) -> None:
        self._between()
        self._on_loop.soon(self._show)

    def _correct(self, change: Change) -> None:
        if self.chat is None:
            return
        try:
            self.chat.correct(change(self.chat.state.context))
        except ValueError as e:
            self.panels.context.say(str(e))
        else:
            self.panels.context.say("")
            self._changed()

    def _observe(self) -> None:
        p, soon = self.parts, self._on_loop.soon
        p.start.on_click(lambda _: soon(self.start))
        p.send.on_click(lambda _: soon(lambda: self.send(p.text.value)))
        Entry(p.text, self._on_loop, lambda: self.send(p.text.value))
        p.pause.on_click(lambda _: soon(self._pause))
        p.back.on_click(lambda _: soon(self._rewind))
        p.speed.observe(lambda _: soon(self._speed), names="value")
        for button in (p.go_on, p.again):
            button.on_click(lambda _: soon(self._go_on))
        for button in (p.end, p.end_held):
            button.on_click(lambda _: soon(self.end))

    def _pause(self) -> None:
        if self.chat is not None and self.chat.phase == "paused":
            self._go_on()
        elif self.chat is not None:
            self.chat.pause()

    def _go_on(self) -> None:
        if self.chat is not None:
            self.chat.go_on()
            self.parts.text.focus()

    def _rewind(self) -> None:
        to = self.parts.messages.value
        if self.chat is not None and self.running and to is not None:
            self.chat.rewind(to)
            self._say(f"Back at message {to + 1}; the answer to it is decided anew.")

    def _speed(self) -> None:
        if self.chat is not None:
            self.chat.set_speed(self.parts.speed.value)

    def _say(self, text: str) -> None:
        self.parts.said.value = page.status_html(text) if text else ""

    def _failed(self, error: BaseException) -> None:
        """An error that a user can mend is shown as its one line, anything else whole."""
        self.parts.said.value = page.problem_html(str(error) if isinstance(error, AnthrolabError) else "".join(format_exception(error)))

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        return bundle | {"text/html": self.static()} if isinstance(bundle, dict) else bundle

    def static(self) -> str:
        """What stands for the chat where no kernel runs: the notice, and the chat so far."""
        view: View | None = view_of(self.opened.chat, self.opened.system.name) if self.opened else None
        return page.chat_fragment(view, self.opened.chat.setting if self.opened else None, [self.told()])


def chat_widget(settings: ChatSettings, speed: float = 1.0, before: object = None) -> ChatWidget:
    """A chat, to be shown in a cell. `before`: what an earlier run of the cell gave; with the same settings it is given again
    as it is, so that nothing is lost, else that chat is ended first. ChatError for a speed that is not above 0."""
    if not speed > 0:
        raise ChatError(f"speed {speed:g}: give a number above 0, such as 5")
    if isinstance(before, ChatWidget):
        if before.settings == settings:
            return before
        before.end()
    return ChatWidget(settings, speed)
