"""The failure explorer in a notebook: pick, read, lay two systems side by side, and put cases into a file.

Where no kernel runs (a report, a page made of the notebook) the same object is shown as a list of failing cases.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as w  # type: ignore[import-untyped]
from markupsafe import Markup

from anthrolab.bench.selection import add_to_selection
from anthrolab.errors import AnthrolabError
from anthrolab.show.beside import explorer_style
from anthrolab.show.explorer_page import failures_list
from anthrolab.show.explorer_state import ANY, ExplorerState, Option
from anthrolab.show.failure_sources import Source
from anthrolab.show.failures import FACETS, collect
from anthrolab.show.records import FOUND, add_records, hints_by_source

SELECTIONS = {"repair": "repair.jsonl", "regression": "regression.jsonl"}
"""The files that cases go to, by what they are for."""


class FailureExplorer(w.VBox):  # type: ignore[misc]
    """Pickers, the list of failing cases, and the case that is chosen. `state` is all that is remembered."""

    def __init__(self, state: ExplorerState, folder: Path) -> None:
        self.state, self.folder = state, folder
        wide = {"width": "32%", "min_width": "260px"}
        self.pickers = {name: w.Dropdown(description=name.capitalize(), layout=wide) for name in FACETS}
        self.search = w.Text(description="Search", placeholder="words in message, reason or names", layout=wide)
        self.list = w.Select(rows=9, layout={"width": "99%"})
        self.earlier, self.later = (w.Button(icon=i, tooltip=t, layout={"width": "40px"}) for i, t in (
            ("chevron-left", "the cases before these"), ("chevron-right", "the cases after these")))  # fmt: skip
        # JupyterLab takes the arrow keys from a list, but not from a field to type in
        self.place = w.BoundedIntText(description="Case", continuous_update=True, tooltip="arrow keys go through the cases", layout={"width": "190px"})
        self.counted, self.shown, self.said = w.HTML(), w.HTML(), w.HTML()
        self.beside = w.Dropdown(description="Beside", layout={"width": "64%", "min_width": "260px"})
        self.which = w.Dropdown(options=[("this case", False), ("all found cases", True)], description="Take", layout={"width": "240px"})
        self.note = w.Text(placeholder="a note for the file", layout={"width": "220px"})
        self.to = {name: w.Button(description=f"Add to {name}", icon="plus", tooltip=str(folder / file), layout={"width": "160px"})
                   for name, file in SELECTIONS.items()}  # fmt: skip
        self.write = w.Button(description="Write records", icon="file-text", tooltip=str(folder / FOUND), layout={"width": "160px"})
        self._quiet = False
        self._observe()
        many = len(state.failures.sources) > 1
        first = [self.pickers[name] for name in FACETS if name != "source" or many]
        super().__init__(
            [w.HTML(f"<style>{explorer_style()}</style>"), w.Box([*first, self.search], layout={"flex_flow": "row wrap"}),
             w.Box([self.place, self.counted, self.earlier, self.later], layout={"flex_flow": "row wrap"}), self.list, self.beside,
             w.Box([self.which, self.note, *self.to.values(), self.write, self.said], layout={"flex_flow": "row wrap"}), self.shown]
        )  # fmt: skip
        self.add_class("al-explorer")
        self.refresh()

    def refresh(self) -> None:
        """Show what follows from the state."""
        state = self.state
        for name, options in state.options().items():
            self._offer(self.pickers[name], options, state.asked.get(name) or ANY)
        self.list_page()

    def list_page(self) -> None:
        """Show the state's page of the list, and its case."""
        state = self.state
        page = f"list: page {state.page + 1} of {state.pages}" if state.pages > 1 else ""
        self.counted.value = str(Markup('<span class="al-count">{}</span>&emsp;{}').format(state.counted(), page))
        self.earlier.disabled, self.later.disabled = state.page == 0, state.page + 1 >= state.pages
        self._offer(self.list, state.listed(), state.case)
        self.show_case()

    def show_case(self) -> None:
        """Show the state's case, and beside it what is asked for."""
        self._placed()
        neighbours = self.state.neighbours()
        there = self.state.beside if self.state.beside in [key for _, key in neighbours] else ANY
        nothing = "nothing" if there == (self.state.beside or ANY) else f"nothing: this case has no {' · '.join(map(str, self.state.beside or ()))}"
        self._offer(self.beside, [(nothing, ANY), *neighbours], there)
        self.said.value = ""
        self.shown.value = self.state.html()

    def add(self, to: str) -> None:
        """Put the chosen case, or all that are found, into a file."""
        path = self.folder / SELECTIONS[to]
        try:
            rows = self.state.selected(everything=self.which.value, note=self.note.value.strip())
            new, now = add_to_selection(path, rows)
        except AnthrolabError as e:
            self._say(str(e), "problem")
            return
        self._say(f"{path}: {new} new, {len(rows) - new} there already; it has {now} cases now", "good")

    def write_records(self) -> None:
        """Put the failure records of the chosen case, or of all that are found, into a file."""
        path, records = self.folder / FOUND, self.state.records(everything=self.which.value)
        if not records:
            self._say("nothing to write: no failure is found, or its chat is not known; choose a case of a run", "problem")
            return
        try:
            new, now = add_records(path, records)
        except AnthrolabError as e:
            self._say(str(e), "problem")
            return
        self._say(f"{path}: {new} new, {len(records) - new} there already; it has {now} records now", "good")

    def _observe(self) -> None:
        for name, box in self.pickers.items():
            box.add_class(f"al-pick-{name}")
            box.observe(partial(self._picked, name), names="value")
        self.search.observe(lambda change: self._ask(search=change["new"]), names="value")
        self.list.observe(self._case_chosen, names="value")
        self.place.observe(self._place_chosen, names="value")
        self.beside.observe(self._beside_chosen, names="value")
        for button, by in ((self.earlier, -1), (self.later, 1)):
            button.on_click(partial(self._turned, by))
        for name, button in self.to.items():
            button.add_class(f"al-to-{name}")
            button.on_click(lambda _, name=name: self.add(name))
        self.write.on_click(lambda _: self.write_records())
        for box, name in ((self.search, "search"), (self.write, "write"), (self.list, "list"), (self.place, "place"), (self.beside, "beside"), (self.which, "which"),
                          (self.note, "note"), (self.said, "said"), (self.shown, "shown"), (self.later, "later")):  # fmt: skip
            box.add_class(f"al-{name}")

    def _picked(self, name: str, change: Any) -> None:
        self._ask(**{name: change["new"]})

    def _ask(self, **changes: Any) -> None:
        if not self._quiet:
            self.state.ask(**changes)
            self.refresh()

    def _case_chosen(self, change: Any) -> None:
        if not self._quiet and change["new"] is not None:
            self.state.case = change["new"]
            self.show_case()

    def _place_chosen(self, change: Any) -> None:
        if not self._quiet:
            self.state.go_to(change["new"])
            self.list_page()

    def _placed(self) -> None:
        """The field that says which case is shown, set without its telling us so."""
        self._quiet = True
        try:
            with self.place.hold_sync():
                self.place.min, self.place.max = 0, self.state.cases.height
                self.place.value, self.place.min = self.state.place, min(1, self.state.cases.height)
        finally:
            self._quiet = False

    def _beside_chosen(self, change: Any) -> None:
        if not self._quiet:
            self.state.beside = change["new"] or None
            self.show_case()

    def _turned(self, by: int, _: Any) -> None:
        self.state.turn_page(by)
        self.list_page()

    def _offer(self, box: Any, options: Sequence[Option], value: Any) -> None:
        """New options and value for a picker, without its telling us so; nothing is sent where nothing changes."""
        if list(box.options) == list(options) and box.value == value:
            return
        self._quiet = True
        try:
            with box.hold_sync():
                if list(box.options) != list(options):
                    box.options = options
                box.value = value
        finally:
            self._quiet = False

    def _say(self, text: str, kind: str) -> None:
        self.said.value = str(Markup('<span class="{}">{}</span>').format(kind, text))

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        return bundle | {"text/html": failures_list(self.state.failures)} if isinstance(bundle, dict) else bundle


def failure_explorer(sources: Sequence[Source], folder: Path) -> FailureExplorer:
    """The explorer of some runs and ledgers (`show.failures`); selections and failure records go to files in `folder`."""
    return FailureExplorer(ExplorerState(collect(sources), hints=hints_by_source(sources)), folder)
