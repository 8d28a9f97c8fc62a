"""The pieces of a live chat's widget: which there are, how they stand, and which of them a phase shows."""

from collections.abc import Sequence
from typing import Any

import ipywidgets as w  # type: ignore[import-untyped]

from anthrolab.live.clock import INSTANT
from anthrolab.live.view import View
from anthrolab.show import chat_page as page

SPEEDS = (1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
"""Virtual seconds in a real one that can be picked."""


class ChatParts:
    """Fields, buttons and texts. `first`: before the chat; `talk`: the chat and what steers it; `begin`: Start."""

    def __init__(self, speed: float) -> None:
        self.first, self.ai, self.scene, self.typing, self.clock, self.status, self.said = (w.HTML() for _ in range(7))
        self.care, self.trouble = w.HTML(), w.HTML()
        self.start = w.Button(description="Start", icon="play", button_style="primary", layout={"width": "170px"})
        self.begin = w.Box([self.start])
        self.lines = w.VBox()
        self.scroll = w.Box([self.typing, self.lines])
        self.text = w.Text(placeholder="write a message; Enter sends it", continuous_update=False, layout={"flex": "1 1 auto", "width": "auto"})
        self.send = w.Button(description="Send", icon="paper-plane", button_style="primary", layout={"width": "100px"})
        self.pause = w.Button(description="Pause", icon="pause", tooltip="time stands still", layout={"width": "90px"})
        self.end = w.Button(description="End", icon="stop", tooltip="end the chat and close the model", layout={"width": "80px"})
        options = [(f"{s:g}x", s) for s in sorted({*SPEEDS, speed} - {INSTANT})]
        self.speed = w.Dropdown(options=[*options, ("no waiting", INSTANT)], value=speed, description="Speed", tooltip="virtual seconds in a real second",
                                style={"description_width": "44px"}, layout={"width": "156px"})  # fmt: skip
        self.messages = w.Dropdown(description="Back to", style={"description_width": "54px"}, layout={"flex": "1 1 120px", "width": "auto", "min_width": "120px"})
        self.back = w.Button(description="Go back and try again", icon="undo", tooltip="takes back everything after this message; it is answered anew", layout={"width": "200px"})
        self.go_on = w.Button(description="Go on with the chat", layout={"width": "auto"})
        self.end_held = w.Button(description="End the chat", layout={"width": "auto"})
        self.again = w.Button(description="Ask again", icon="refresh", button_style="warning", layout={"width": "120px"})
        self.held = w.VBox([self.care, w.HBox([self.go_on, self.end_held])])
        self.failed = w.HBox([self.trouble, self.again])
        self.write = w.HBox([self.text, self.send])
        self.now = w.Box([self.clock, self.status])
        self.steer = w.Box([self.pause, self.end, self.speed, self.messages, self.back])
        self.talk = w.VBox([self.ai, self.scene, self.scroll, self.held, self.failed, self.write, self.now, self.steer])
        self._name()

    def open(self) -> None:
        """The chat is open."""
        _visible(self.first, False)
        _visible(self.begin, False)
        _visible(self.talk, True)

    def close(self) -> None:
        """The chat is not open (yet, or any more); what was said stays to be read."""
        self.start.disabled = False
        _visible(self.begin, True)
        _visible(self.talk, bool(self.ai.value))
        _visible(self.first, not self.ai.value)
        for row in (self.held, self.failed, self.write, self.steer):
            _visible(row, False)

    def show_phase(self, view: View, *, open: bool) -> None:
        """Which rows there are and what can be pressed."""
        phase = view.phase
        self.care.value = page.care_html(view.notice) if view.notice else ""
        self.trouble.value = page.problem_html(view.trouble or "")
        _visible(self.held, open and phase == "held")
        _visible(self.failed, open and phase == "trouble")
        _visible(self.write, open and phase not in ("held", "over"))
        _visible(self.steer, open and phase != "held")
        self.text.disabled = self.send.disabled = phase in ("paused", "trouble")
        paused = phase == "paused"
        self.pause.description, self.pause.icon = ("Go on", "play") if paused else ("Pause", "pause")
        self.pause.disabled = phase in ("first", "trouble", "over")

    def offer_messages(self, options: Sequence[tuple[str, int]]) -> None:
        """The messages that can be gone back to."""
        offer(self.messages, options, last=True)
        self.back.disabled = self.messages.value is None

    def _name(self) -> None:
        names = ("first", "ai", "scene", "lines", "scroll", "typing", "clock", "status", "said", "held", "failed", "start", "send", "pause", "end", "speed", "messages",
                 "back", "again", "write", "text")  # fmt: skip
        for name in names:
            getattr(self, name).add_class(f"al-{name}")
        self.go_on.add_class("al-go-on")
        self.end_held.add_class("al-end-held")
        for button in (self.go_on, self.end_held):
            button.add_class("al-big")
        for row in (self.now, self.steer):
            row.add_class("al-bar")
        self.typing.add_class("typing")
        self.clock.add_class("clock")


def offer(box: Any, options: Sequence[tuple[str, Any]], *, last: bool = False) -> None:
    """New options for a picker; nothing is sent where nothing changes. New ones come at the end, so that a choice that is on
    its way from the browser (it names a place in the list) means the same here.

    What is chosen stays chosen if it is still there; with `last` the last one is chosen until the person picks another.
    """
    if list(box.options) != list(options):
        values = [value for _, value in options]
        was_last = not box.options or box.value == box.options[-1][1]
        kept = box.value in values and not (last and was_last)
        chosen = box.value if kept else values[-1 if last else 0] if values else None
        with box.hold_sync():
            box.options = options
            box.value = chosen


def sync_box(box: Any, html: Sequence[str]) -> None:
    """Have a box hold one HTML widget for each text; those that stay the same are left alone."""
    there = list(box.children)
    for widget, text in zip(there, html, strict=False):
        widget.value = text
    if len(html) != len(there):
        like = {"layout": there[0].layout, "style": there[0].style} if there else {}
        box.children = [*there[: len(html)], *(w.HTML(text, **like) for text in html[len(there) :])]
        for gone in there[len(html) :]:
            gone.close()


def _visible(widget: Any, yes: bool) -> None:
    widget.layout.display = None if yes else "none"
