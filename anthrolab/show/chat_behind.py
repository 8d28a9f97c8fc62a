"""The panels under a live chat, closed at first: what the model was shown, what it withheld, and who the person is to it."""

from collections.abc import Callable

import ipywidgets as w  # type: ignore[import-untyped]

from anthrolab.live.opening import OpenChat
from anthrolab.show.chat_context import Change, ContextPanel
from anthrolab.show.chat_panel import asks_listed, shown_html, withheld_html
from anthrolab.show.chat_parts import offer

LATEST = -1
"""Stands for the newest ask."""

TITLES = ("What the model was shown", "What it withheld", "Who you are to it")


class Behind(w.Accordion):  # type: ignore[misc]
    """The three panels. `change` is called with what the person does to the context, `again` when something else is picked."""

    def __init__(self, change: Callable[[Change], None], again: Callable[[], None]) -> None:
        self.ask = w.Dropdown(options=[("the latest", LATEST)], description="Asked", layout={"width": "99%"})
        self.shown, self.withheld = w.HTML(), w.HTML()
        self.context = ContextPanel(change)
        for box, name in ((self.ask, "ask"), (self.shown, "shown"), (self.withheld, "withheld")):
            box.add_class(f"al-{name}")
        super().__init__([w.VBox([self.ask, self.shown]), self.withheld, self.context], selected_index=None, titles=TITLES)
        self.ask.observe(lambda _: again(), names="value")
        self.observe(lambda _: again(), names="selected_index")

    def show(self, opened: OpenChat) -> None:
        """Show the panel that is open; the others wait."""
        chat = opened.chat
        if self.selected_index == 0:
            offer(self.ask, [("the latest", LATEST), *asks_listed(chat)])
            chosen = self.ask.value
            self.shown.value = shown_html(opened, len(chat.state.answers) - 1 if chosen == LATEST else chosen)
        elif self.selected_index == 1:
            self.withheld.value = withheld_html(chat)
        elif self.selected_index == 2:
            self.context.show(chat)
