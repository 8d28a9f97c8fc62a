"""The parts of the blind rating form: a question with its buttons, of which none is chosen, and a way to take an answer back."""

from collections.abc import Callable
from typing import Any

import ipywidgets as w  # type: ignore[import-untyped]


def choice(options: tuple[str, ...]) -> Any:
    """Buttons of which none is chosen, each reached by Tab and pressed by Space."""
    return w.ToggleButtons(options=list(options), value=None, style={"button_width": "auto"}, layout={"width": "auto", "flex": "0 0 auto"})


class Question(w.Box):  # type: ignore[misc]
    """A question (HTML) with its buttons, and beside them, once one is chosen, "clear", which takes the answer back.

    Pressing the chosen button again would do as well, but the browser tells nobody of it.
    """

    def __init__(self, html: str, buttons: Any, clear: Callable[[], None]) -> None:
        self.buttons = buttons
        self.clear = w.Button(description="clear", tooltip="take this answer back", layout={"width": "auto"}, style={"button_color": "transparent", "text_color": "#444444"})
        self.clear.add_class("al-clear")
        self.clear.on_click(lambda _: clear())
        super().__init__([w.HTML(html, layout={"flex": "1 1 240px"}), buttons, self.clear], layout={"flex_flow": "row wrap", "align_items": "center"})
        self.add_class("al-row")
        self.show(None)

    def show(self, said: str | None) -> None:
        """Show what is answered; None: nothing."""
        self.buttons.value = said
        self.clear.layout.visibility = "hidden" if said is None else "visible"  # it keeps its place, so that no button moves
