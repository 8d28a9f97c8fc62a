"""Who the person is taken to be in a live chat: what was inferred, its evidence, what was refused, and corrections by hand."""

from collections.abc import Callable
from typing import Any, cast, get_args

import ipywidgets as w  # type: ignore[import-untyped]
from markupsafe import Markup

from anthrolab.live.chat import LiveChat
from anthrolab.live.context import MANY, Context, Inferred, Kind, Refused, corrected, without

Change = Callable[[Context], Context]
KINDS: tuple[Kind, ...] = get_args(Kind)


class ContextPanel(w.VBox):  # type: ignore[misc]
    """The entries, each with its evidence and buttons; a line to set one by hand; what was refused, and why.

    `change` is called with what is to be done to the context (in whatever thread the button is handled in).
    """

    def __init__(self, change: Callable[[Change], None]) -> None:
        self._change = change
        self._editing: Inferred | None = None
        self._shown: Context | None = None
        self.head, self.rest, self.said = w.HTML(), w.HTML(), w.HTML()
        self.rows = w.VBox()
        self.kind = w.Dropdown(options=[(k.replace("_", " "), k) for k in KINDS], layout={"width": "170px"})
        self.value = w.Text(placeholder="in the person's words", continuous_update=False, layout={"width": "240px"})
        self.set = w.Button(description="Set by hand", icon="pencil", layout={"width": "130px"})
        self.set.on_click(lambda _: self.set_by_hand())
        line = w.Box([self.kind, self.value, self.set])
        line.add_class("al-bar")
        for box, name in ((self.kind, "kind"), (self.value, "value"), (self.set, "set"), (self.rows, "entries"), (self.rest, "refused")):
            box.add_class(f"al-context-{name}")
        super().__init__([self.head, self.rows, line, self.said, self.rest])

    def show(self, chat: LiveChat) -> None:
        """Show what is known in this chat now; only what changed is sent."""
        context, name = chat.state.context, chat.setting.seat.name
        every = chat.parts.analyse_every
        by = f"An analyser looks at every {every} new messages of yours" if chat.parts.analyser else "No analyser is set, so nothing is inferred"
        head = f"{by}. What stands here is told to {name} from the next decision on, and only what you really said or set counts."
        self.head.value = str(Markup('<p class="quiet">{}</p>').format(head))
        if context != self._shown:
            self._shown = context
            old = self.rows.children
            self.rows.children = [self._row(entry) for entry in context.entries] or [w.HTML('<p class="quiet">Nothing is known yet.</p>')]
            for row in old:
                row.close()
        self.rest.value = _rest(chat)

    def set_by_hand(self) -> None:
        """Set what is typed; where an entry of several of its kind is edited, in its place."""
        kind, value, old = cast(Kind, self.kind.value), self.value.value, self._editing
        self._editing, self.value.value = None, ""

        def change(context: Context) -> Context:
            edited = old is not None and old.kind == kind and kind in MANY and old in context.entries
            return corrected(without(context, old) if edited and old else context, kind, value)

        self._change(change)

    def say(self, text: str) -> None:
        """Say what could not be done."""
        self.said.value = str(Markup('<span class="problem">{}</span>').format(text)) if text else ""

    def _row(self, entry: Inferred) -> Any:
        edit = w.Button(icon="pencil", tooltip="correct it", layout={"width": "36px"})
        away = w.Button(icon="trash", tooltip="take it away; it never comes back", layout={"width": "36px"})
        edit.on_click(lambda _: self._edit(entry))
        away.on_click(lambda _: self._change(lambda context: without(context, entry)))
        row = w.HBox([edit, away, w.HTML(entry_html(entry), layout={"flex": "1 1 auto"})])
        row.add_class("al-entry")
        return row

    def _edit(self, entry: Inferred) -> None:
        self._editing, self.kind.value, self.value.value = entry, entry.kind, entry.value
        self.value.focus()


def entry_html(entry: Inferred) -> str:
    """One thing that is known, and where it comes from."""
    if entry.by == "hand":
        why = Markup('<span class="hand">set by hand</span>')
    else:
        why = Markup('<span class="evidence">message {}: “{}”</span>').format("?" if entry.message is None else entry.message + 1, entry.quote)
    return str(Markup("<b>{}</b>&ensp;{}<br>{}").format(entry.kind.replace("_", " "), entry.value, why))


def _rest(chat: LiveChat) -> str:
    analyses, context = chat.state.analyses, chat.state.context
    parts = []
    if analyses and analyses[-1].error:
        parts.append(Markup('<p class="problem">The last analysis came to nothing: {}. The chat goes on without.</p>').format(analyses[-1].error))
    if context.removed:
        gone = "; ".join(f"{e.kind.replace('_', ' ')} {e.value}" for e in context.removed)
        parts.append(Markup("<h4>Taken away by hand, never to come back</h4><p>{}</p>").format(gone))
    refused = list({(r.kind, r.value, r.message, r.reason): r for analysis in reversed(analyses) for r in analysis.refused if r.reason != "known already"}.values())
    if refused:
        parts.append(Markup("<h4>Claimed by the analyser and refused</h4><ul>{}</ul>").format(Markup("").join(map(_refusal, refused))))
    elif chat.parts.analyser is not None and analyses:
        parts.append(Markup('<p class="quiet">Nothing that the analyser claimed was refused.</p>'))
    return str(Markup("").join(parts))


def _refusal(claim: Refused) -> Markup:
    return Markup('<li><b>{}</b>&ensp;{} <span class="reason">{}</span><br><span class="evidence">message {}: “{}”</span></li>').format(
        claim.kind.replace("_", " "), claim.value, claim.reason, claim.message + 1, claim.quote
    )
