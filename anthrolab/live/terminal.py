"""A chat in the terminal: messages are plain lines that stay in the scroll-back, the input keeps its place below them."""

import asyncio
import contextlib
import signal
import sys
from typing import TYPE_CHECKING

from anthrolab.live.clock import Clock
from anthrolab.live.notices import AI_NOTICE
from anthrolab.live.opening import ChatSettings, OpenChat, open_chat
from anthrolab.live.scene import ChatError
from anthrolab.live.terminal_commands import Talk
from anthrolab.live.terminal_start import check_endpoint, check_terminal, part_text
from anthrolab.live.terminal_text import farewell, framed, message_text, toolbar_text, visible, waiting_text
from anthrolab.live.view import View, view_of

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings

REFRESH_S = 0.5
"""Seconds between two looks at the clock."""

_WHY_OVER = {"horizon": "its minutes are up", "max_messages": "it has as many messages as it may"}


async def chat_in_terminal(settings: ChatSettings, speed: float) -> None:
    """Have a chat until the person leaves. AnthrolabError if it cannot begin: then nothing was printed."""
    check_terminal()
    try:
        clock = Clock(speed)
    except ValueError:
        raise ChatError(f"--speed {speed:g}: give a number above 0, such as 10") from None
    await check_endpoint(settings)
    async with open_chat(settings, clock) as opened:
        screen = _Screen(opened)
        await screen.stay()
        state = opened.chat.state
        if screen.left_early:
            print("The model was still deciding; its reply is waited for a moment, so that it is not paid for in vain.", flush=True)
    print(farewell(settings.folder, opened.name, len(state.messages), state.stop is not None), flush=True)


class _Screen:
    """The terminal during one chat."""

    def __init__(self, opened: OpenChat) -> None:
        self.opened = opened
        self.talk = Talk(opened, self.show, self.leave)
        self.session = self._session()
        self._out = sys.stdout
        self._awake = asyncio.Event()
        self._said: dict[str, object] = {}
        self._day = ""
        self.left_early = self._leaving = False

    async def stay(self) -> None:
        """Until the person leaves, whatever else happens; an error of the chat itself goes to the caller."""
        from prompt_toolkit.patch_stdout import patch_stdout

        chat = self.opened.chat
        print(framed(AI_NOTICE, self._columns()))
        print(f"{part_text(chat.setting)}\n/help lists what can be done here.", flush=True)
        chat.changed = self.changed
        with patch_stdout():
            asking = asyncio.create_task(self.session.prompt_async(pre_run=self.changed))
            running = asyncio.create_task(self._keep_running())
            self._leave_on_signals()
            try:
                await asyncio.wait({asking, running}, return_when=asyncio.FIRST_COMPLETED)
                if running.done():
                    running.result()
                with contextlib.suppress(EOFError):
                    asking.result()
            finally:
                chat.changed = lambda: None
                self.leave()
                running.cancel()
                await asyncio.gather(asking, running, return_exceptions=True)

    async def _keep_running(self) -> None:
        """The chat runs; when it is over, until the person goes back."""
        while True:
            await self.opened.chat.run()
            self._awake.clear()
            await self._awake.wait()

    def changed(self) -> None:
        """Print what is new."""
        view = view_of(self.opened.chat, self.opened.system.name)
        self._messages(view)
        self._once("notice", view.notices[-1] if view.notice else None, framed(view.notice or "", self._columns()))
        self._once("trouble", view.trouble, f"error: {visible(view.trouble or '')}\n/go asks again.")
        stop = None if self._leaving else self.opened.chat.state.stop
        self._once("over", stop, f"The chat is over: {_WHY_OVER.get(stop or '', 'it was ended')}. /back N goes back to a message, Ctrl-D leaves.")
        still = view.phase in ("held", "trouble", "paused", "over")
        buffer = self.session.default_buffer
        if self.talk.kept and not still and not buffer.text:
            buffer.insert_text(self.talk.kept.pop(0))
        if view.phase != "over":
            self._awake.set()
        self.session.app.invalidate()

    def _messages(self, view: View) -> None:
        for line in view.lines[self.talk.printed :]:
            if line.index is None:
                return
            if f"{line.at:%Y-%m-%d}" != self._day:
                self._day = f"{line.at:%Y-%m-%d}"
                self.show(f"---- {self._day} ----")
            self.show(message_text(line))
            self.talk.printed = line.index + 1

    def _once(self, kind: str, what: object, text: str) -> None:
        """Say something when it comes up, not again while it lasts."""
        if what is not None and self._said.get(kind) is not what:
            self.show(text)
        self._said[kind] = what

    def show(self, text: str) -> None:
        """Print above the input, whose text stays as it is.

        prompt_toolkit's own `run_in_terminal` would give the keys back to the terminal for that moment: a Ctrl-D is lost then.
        """
        app = self.session.app
        if app.is_running:
            app.renderer.erase()
        self._out.write(text + "\n")
        self._out.flush()
        if app.is_running:
            app.renderer.request_absolute_cursor_position()
            app.invalidate()

    def leave(self) -> None:
        """End the input."""
        self.left_early |= self.opened.chat.phase == "deciding"
        self._leaving = True
        app = self.session.app
        if app.is_running and app.future is not None and not app.future.done():
            app.exit(exception=EOFError())

    def _leave_on_signals(self) -> None:
        """A closed window and a kill that can be heard leave as Ctrl-D does, so that the record is brought up to date."""
        for heard in (signal.SIGHUP, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(heard, self.leave)

    def _session(self) -> "PromptSession[str]":
        from prompt_toolkit import PromptSession

        return PromptSession(
            self._prompt, bottom_toolbar=self._toolbar, refresh_interval=REFRESH_S, erase_when_done=True, key_bindings=self._keys()
        )

    def _keys(self) -> "KeyBindings":
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

        keys = KeyBindings()

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            line = buffer.text
            buffer.reset(append_to_history=True)
            if not self.talk.typed(line):
                buffer.insert_text(line)
            self.changed()

        @keys.add("c-c")
        @keys.add("<sigint>")
        def _(event: KeyPressEvent) -> None:
            self.opened.chat.pause()
            self.show("Paused: /go goes on. To leave: Ctrl-D on an empty line, or /end, which also ends the chat.")

        return keys

    def _columns(self) -> int:
        return self.session.output.get_size().columns

    def _toolbar(self) -> str:
        view = view_of(self.opened.chat, self.opened.system.name)
        return toolbar_text(view, self.opened.chat.clock.speed, self._columns())

    def _prompt(self) -> str:
        from prompt_toolkit.renderer import CPR_Support

        view = view_of(self.opened.chat, self.opened.system.name)
        who = {"held": "go on (继续) or end (结束)?", "paused": "(paused)", "over": "(over)"}.get(view.phase, "")
        name = visible(self.opened.chat.setting.person)
        ask = f"{who} " if view.phase == "held" else f"{name}{' ' + who if who else ''}> "
        blind = self.session.app.renderer.cpr_support == CPR_Support.NOT_SUPPORTED  # then no toolbar is drawn
        return (self._toolbar() + "\n" if blind else "") + waiting_text(view) + ask
