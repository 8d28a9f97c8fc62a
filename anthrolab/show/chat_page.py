"""A live chat in HTML: bubbles with times and marks, what stands around them, and the whole as one page without a kernel."""

from collections.abc import Sequence

from markupsafe import Markup

from anthrolab.live.notices import AI_NOTICE
from anthrolab.live.scene import Setting
from anthrolab.live.view import Line, View
from anthrolab.show.pages import asset

TYPING = "对方正在输入…"
"""What a chat program shows while the partner types."""


def style() -> str:
    """The stylesheet of everything here, as an element."""
    return f"<style>{asset('live_chat.css')}</style>"


def line_html(line: Line, day: str | None = None, *, named: bool = True) -> str:
    """One message as a bubble; `day` is put above it where another day begins, the name where `named`.

    Under a person's own message stands whether it waits to go out, is sent, or is read (the persona was asked after it).
    """
    mark = ("waits to go out" if line.index is None else "read" if line.read else "sent") if line.mine else ""
    return str(
        Markup('{}<div class="line{}">{}<div class="bubble">{}</div><span class="meta">{}{}</span></div>').format(
            Markup('<div class="day">{}</div>').format(day) if day else "",
            " mine" if line.mine else "",
            Markup('<span class="name">{}</span>').format(line.name) if named else "",
            line.text,
            f"{line.at:%H:%M:%S}",
            Markup(' <span class="mark">{}</span>').format(mark) if mark else "",
        )
    )


def lines_html(lines: Sequence[Line]) -> list[str]:
    """Every message of a chat: a new day above its first message (the first day stands in the head of the chat), a name where
    the other side begins to speak."""
    shown = []
    for before, line in zip([None, *lines], lines, strict=False):
        new_day = before is not None and before.at.date() != line.at.date()
        shown.append(line_html(line, f"{line.at:%Y-%m-%d}" if new_day else None, named=before is None or new_day or before.mine != line.mine))
    return shown


def header_html(text: str) -> str:
    """What says that this is an AI, above the chat at all times."""
    return str(Markup('<div class="ai" role="note">{}</div>').format(text))


def scene_html(setting: Setting) -> str:
    """The day, what the two are to each other, who begins, and in a case the part that the person takes."""
    scene, card, part = setting.seat.scene, setting.card, setting.part
    begins = setting.opener
    first = "you write first" if begins is None else "you sent the first message, it is given" if begins.speaker == setting.side else f"{setting.seat.name} wrote first"
    head = Markup('<div class="scene"><b>{}</b> with <b>{}</b>, {:%Y-%m-%d}. {}. {}.</div>').format(
        setting.person, setting.seat.name, scene.start, first[0].upper() + first[1:], scene.relationship)  # fmt: skip
    if card is None or part is None:
        return str(head)
    facts = f"{card.gender}, {card.age}, {card.occupation}, {card.city}, {card.relationship_status}"
    rows = [("You are", f"{card.name} ({facts})"), ("Where", part.place), ("What happened", part.trigger), ("How you feel", part.emotion),
            ("You know", "；".join(part.knows)), ("What it is about", scene.goal)]  # fmt: skip
    told = Markup("").join(Markup("<tr><th>{}</th><td>{}</td></tr>").format(*row) for row in rows)
    return str(head + Markup('<details class="part" open><summary>Your part</summary><table>{}</table></details>').format(told))


def status_html(text: str) -> str:
    """The line under the chat: what it is at."""
    return str(Markup('<span class="status">{}</span>').format(text))


def problem_html(text: str) -> str:
    """Something that went wrong, as many lines as it has."""
    return str(Markup('<div class="problem" role="alert">{}</div>').format(text)) if text else ""


def care_html(text: str) -> str:
    """What is said out of character while the chat is held."""
    return str(Markup('<div class="care" role="alert">{}</div>').format(text))


def notice_html(more: Sequence[str] = ()) -> str:
    """What is said before anything is opened; `more`: further paragraphs."""
    return str(Markup('<p class="first">{}</p>').format(AI_NOTICE) + Markup("").join(Markup("<p>{}</p>").format(text) for text in more))


def chat_fragment(view: View | None, setting: Setting | None = None, more: Sequence[str] = ()) -> str:
    """The notice, the header and the chat so far, for readers without a kernel. None: nothing is opened yet."""
    parts = [style(), '<div class="al-live al-page">', notice_html(more)]
    if view is not None and setting is not None:
        shown = "\n".join(lines_html(view.lines)) or '<p class="quiet">Nobody has written yet.</p>'
        parts += [header_html(view.header), scene_html(setting), f'<div class="chat">{shown}</div>']
        parts += [care_html(view.notice)] if view.notice else []
        parts += [problem_html(view.trouble or ""), status_html(view.status)]
    else:
        parts.append('<p class="quiet">Nobody has written yet.</p>')
    return "\n".join([*parts, "</div>"])
