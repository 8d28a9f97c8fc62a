"""The field that a message is written in: Enter sends it, once, and never a half of it."""

import asyncio
from collections.abc import Callable
from typing import Any

from anthrolab.show.chat_loop import OnLoop

ENTER_S = 0.3
"""Real seconds that Enter waits for the text."""


class Entry:
    """An ipywidgets Text whose value comes whole: when Enter is pressed, or when the field loses its focus.

    A browser says that Enter was pressed, and right after it what was typed, but only if that is new: a text that was known
    (the field had lost its focus before) comes no second time, and is sent after `ENTER_S`. Enter that belongs to an input
    method is no Enter to the browser's form fields, so nothing comes of it.
    """

    def __init__(self, text: Any, on_loop: OnLoop, send: Callable[[], None]) -> None:
        self._on_loop, self._send = on_loop, send
        self._enter: asyncio.TimerHandle | None = None
        text.on_msg(lambda _, content, __: on_loop.soon(self._entered) if content.get("event") == "submit" else None)
        text.observe(lambda change: on_loop.soon(self._come) if change["new"] else None, names="value")

    def _entered(self) -> None:
        if self._enter is not None:
            self._enter.cancel()
        self._enter = self._on_loop.later(ENTER_S, self._come)

    def _come(self) -> None:
        """The text is there; it is sent if Enter was pressed, and otherwise stays to be written on."""
        if self._enter is not None:
            self._enter.cancel()
            self._enter = None
            self._send()
