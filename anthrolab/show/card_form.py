"""A browser for cards in a notebook: filter, choose, change in a form that checks while one types, save.

Where no kernel runs (a report, a page made of the notebook) the same object is shown as a list of cards to read.
"""

from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import ipywidgets as w  # type: ignore[import-untyped]
from markupsafe import Markup
from pydantic import TypeAdapter, ValidationError

from anthrolab.cards.authoring import CardField, Draft, card_fields, new_card, open_card
from anthrolab.cards.library import CardError, default_cards_dir, load_library
from anthrolab.cards.persona import CardId, HardFacts
from anthrolab.cards.scenario import CATEGORIES
from anthrolab.cards.yaml_edit import Where, at, dotted, load
from anthrolab.errors import AnthrolabError
from anthrolab.show.card_list import AGES, ANY, chosen, listed_cards
from anthrolab.show.cards import cards_html

KINDS = ("personas", "scenarios", "memories")
_STATUSES = next(f for f in card_fields(HardFacts) if f.where == ("relationship_status",)).choices
_CSS = """<style>
.al-form { font: 13px/1.4 "Segoe UI", Roboto, "Helvetica Neue", Arial, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif; color: #1d2530; }
.al-form .help { color: #556; font-size: 12px; line-height: 1.35; display: block; padding-bottom: 4px; }
.al-form .problem { color: #b42318; }
.al-form .good { color: #15803d; }
.al-form pre { margin: 4px 0; padding: 8px 12px; background: #f6f7f9; border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 12.5px; line-height: 1.5; }
.al-form .removed { color: #b42318; } .al-form .added { color: #15803d; }
.al-form input:disabled { color: #556; }
</style>"""


class CardForm(w.VBox):  # type: ignore[misc]
    """The form of one card. `draft` is the card as typed; `opened` as it was opened or last saved."""

    def __init__(self, draft: Draft) -> None:
        self.opened = self.draft = draft
        self.fields = {f.where: f for f in card_fields(draft.model)}
        card = load(draft.text)
        self.inputs: dict[Where, Any] = {where: _input(f, f.written(at(card, where))) for where, f in self.fields.items()}
        self.beside = {where: w.HTML(layout={"width": "24%", "min_width": "150px"}) for where in self.fields}
        self.save = w.Button(description="Save", icon="check", button_style="primary", tooltip="write the file")
        self.again = w.Button(description="Open again", icon="refresh", tooltip="read the file anew; what was typed is dropped")
        self.note, self.diff = w.HTML(), w.HTML()
        self._first = {where: _typed(box) for where, box in self.inputs.items()}
        self._order = list(self.fields)
        rows = []
        for where, field in self.fields.items():
            self.inputs[where].disabled = where in (("id",), ("owner",), ("partner",))
            self.inputs[where].observe(partial(self._typed_into, where), names="value")
            name = Markup('<b>{}</b><span class="help" lang="zh">{}</span>').format(dotted(where).replace("_", " "), field.help)
            rows.append(w.HBox([w.HTML(name, layout={"width": "24%", "min_width": "150px"}), self.inputs[where], self.beside[where]]))
        self.save.add_class("card-save")
        self.again.add_class("card-again")
        self.note.add_class("card-note")
        self.diff.add_class("card-diff")
        self.save.on_click(lambda _: self.save_card())
        super().__init__([w.HTML(_CSS), *rows, w.HBox([self.save, self.again]), self.note, self.diff])
        self.add_class("al-form")
        self.check()

    def check(self) -> None:
        """Make the draft anew from what is typed, and say beside each field what is wrong with it."""
        typed = {where: _typed(self.inputs[where]) for where in self._order}
        try:
            self.draft = _with_changes(self.opened, tuple((where, text) for where, text in typed.items() if text != self._first[where]))
        except AnthrolabError as e:
            self._say(str(e), bad=True)
            self.save.disabled = True
            return
        problems = self.draft.problems()
        for where, html in self.beside.items():
            html.value = str(Markup("<br>").join(Markup('<span class="problem">{}</span>').format(p.message) for p in problems if p.concerns(where)))
        diff = self.draft.diff()
        self.diff.value = _coloured(diff)
        self.save.disabled = bool(problems) or not diff
        homeless = [str(p) for p in problems if not any(p.concerns(where) for where in self.fields)]
        if problems:
            self._say("\n".join([f"{len(problems)} to mend before it can be saved", *homeless]), bad=True)
        else:
            self._say("valid" + (", not saved yet" if diff else ", nothing changed"))

    def _typed_into(self, where: Where, _: Any) -> None:
        self._order.remove(where)
        self._order.append(where)  # the others' changes are known already, so only this one has to be made
        self.check()

    def save_card(self) -> None:
        """Save if all is well, and say what the folder's other cards now make of it."""
        try:
            self.opened = self.draft = self.draft.save()
        except AnthrolabError as e:
            self._say(str(e), bad=True)
            return
        self._first = {where: _typed(box) for where, box in self.inputs.items()}
        self.check()
        try:
            load_library(self.draft.path.parent.parent)
            self._say(f"saved {self.draft.path}")
        except CardError as e:
            self._say(f"saved {self.draft.path}, but the cards do not fit together:\n{e}", bad=True)

    def _say(self, text: str, *, bad: bool = False) -> None:
        lines = Markup("<br>").join(text.splitlines())
        self.note.value = str(Markup('<span class="{}">{}</span>').format("problem" if bad else "good", lines))


class CardBrowser(w.VBox):  # type: ignore[misc]
    """Filters, the list, and the form of the chosen card."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kind = w.Dropdown(options=KINDS, description="Cards")
        self.text = w.Text(description="Words", placeholder="in any field")
        self.ages = w.IntRangeSlider(value=AGES, min=AGES[0], max=AGES[1], description="Age", continuous_update=False)
        self.category = w.Dropdown(options=[ANY, *CATEGORIES], description="Category")
        self.status = w.Dropdown(options=[ANY, *_STATUSES], description="Status")
        self.list = w.Select(rows=8, layout={"width": "99%"})
        self.counted = w.HTML()
        self.new_id = w.Text(placeholder="id of a new card, e.g. p56", layout={"width": "240px"})
        self.new = w.Button(description="New card", icon="plus")
        self.place = w.VBox()
        for box, name in ((self.kind, "kind"), (self.text, "text"), (self.list, "list"), (self.new_id, "new-id"), (self.new, "new")):
            box.add_class(f"card-{name}")
        super().__init__(
            [w.HBox([self.kind, self.text]), w.HBox([self.ages, self.category, self.status]), self.list,
             w.HBox([self.counted, self.new_id, self.new]), self.place]
        )  # fmt: skip
        self.list.observe(self._chosen, names="value")
        self._relist()
        self.kind.observe(lambda _: self._relist(), names="value")
        for box in (self.text, self.ages, self.category, self.status):
            box.observe(lambda _: self._filter(), names="value")
        self.new.on_click(lambda _: self._new())

    def show_card(self, path: Path | None) -> None:
        """Show the form of a card file; of none, nothing. What could not be opened is said instead."""
        self._show(partial(open_card, path) if path else None)

    def _chosen(self, change: Any) -> None:
        self.show_card(change["new"])

    def _new(self) -> None:
        self._show(partial(_new_in, self.folder / self.kind.value, self.new_id.value.strip()))

    def _show(self, draft: Any) -> None:
        if draft is None:
            self.place.children = ()
            return
        try:
            form = CardForm(draft())
        except AnthrolabError as e:
            said = Markup("<br>").join(str(e).splitlines())
            self.place.children = (w.HTML(str(Markup('{}<div class="al-form"><span class="problem">{}</span></div>').format(Markup(_CSS), said))),)
            return
        form.again.on_click(lambda _: self.show_card(form.draft.path))
        form.save.on_click(lambda _: self._relist(keep=True))
        self.place.children = (form,)

    def _relist(self, *, keep: bool = False) -> None:
        self.cards = listed_cards(self.folder, self.kind.value)
        self._filter(keep=keep)

    def _filter(self, *, keep: bool = False) -> None:
        found = chosen(self.cards, self.text.value, self.ages.value, self.category.value, self.status.value)
        self.counted.value = f"{len(found)} of {len(self.cards)} cards&emsp;"
        before = self.list.value
        self.list.unobserve(self._chosen, names="value")  # new options choose the first for a moment
        self.list.options = [(c.label, c.path) for c in found]
        self.list.value = before if before in [c.path for c in found] else None
        self.list.observe(self._chosen, names="value")
        if not keep and self.list.value is None:
            self.show_card(None)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        return bundle | {"text/html": static_cards(self.folder)} if isinstance(bundle, dict) else bundle


def card_browser(folder: Path | None = None) -> CardBrowser:
    """The browser of a folder of cards, by default of those that come with anthrolab."""
    return CardBrowser(folder or default_cards_dir())


def static_cards(folder: Path) -> str:
    """What stands for the browser where no kernel runs: the list of cards, or what is wrong with the folder."""
    try:
        return cards_html(load_library(folder))
    except CardError as e:
        return str(Markup("<ul>{}</ul>").format(Markup("").join(Markup("<li>{}</li>").format(p) for p in e.problems)))


@lru_cache(maxsize=256)
def _with_changes(opened: Draft, changes: tuple[tuple[Where, str], ...]) -> Draft:
    """The draft with what was typed into each field."""
    if not changes:
        return opened
    where, typed = changes[-1]
    field = next(f for f in card_fields(opened.model) if f.where == where)
    return _with_changes(opened, changes[:-1]).changed(where, field.read(typed))


def _input(field: CardField, typed: str) -> Any:
    """The widget that fits a field, filled in."""
    layout = {"width": "50%", "min_width": "220px"}
    if field.kind == "choices":
        there = tuple(typed.splitlines())
        box = w.SelectMultiple(options=list(dict.fromkeys([*field.choices, *there])), value=there, rows=len(field.choices), layout=layout)
    elif field.kind == "yes_no" or field.choices:
        known = field.choices or ("true", "false")
        box = w.Dropdown(options=list(dict.fromkeys(["", *known, typed])), value=typed, layout=layout)
    elif field.kind == "lines":
        box = w.Textarea(value=typed, rows=2 + sum(1 + len(line) // 26 for line in typed.splitlines()), layout=layout, placeholder="one a line")
    elif field.kind == "text" and len(typed) > 26:
        box = w.Textarea(value=typed, rows=2 + len(typed) // 26, layout=layout)
    else:
        box = w.Text(value=typed, layout=layout)
    box.add_class("field-" + dotted(field.where).replace(".", "-"))
    return box


def _new_in(folder: Path, card_id: str) -> Any:
    """A blank card of that id in a folder; AnthrolabError if it is none, since it becomes a file's name."""
    try:
        TypeAdapter(CardId).validate_python(card_id)
    except ValidationError as e:
        raise AnthrolabError(f"{card_id!r:.40} is no id; write letters, digits, - and _, e.g. p56") from e
    return new_card(folder / f"{card_id}.yaml")


def _typed(box: Any) -> str:
    """What a widget holds, as text: several choices one a line."""
    return "\n".join(box.value) if isinstance(box.value, tuple) else str(box.value)


def _coloured(diff: str) -> str:
    if not diff:
        return ""
    lines = [
        Markup('<span class="{}">{}</span>').format({"+": "added", "-": "removed"}.get(line[:1], ""), line) for line in diff.split("\n")[2:]
    ]
    return str(Markup("<pre>{}</pre>").format(Markup("\n").join(lines)))
