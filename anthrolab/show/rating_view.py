"""What a rater reads, as HTML: the chat with the turn that is asked about, the wording of checkboxes, what is unanswered."""

from collections.abc import Collection, Mapping, Sequence

from markupsafe import Markup

from anthrolab.judging.calibration.people import Place
from anthrolab.judging.calibration.rating import BlindLine, Page, Questions
from anthrolab.judging.rubric import Checkbox
from anthrolab.show.pages import asset, environment

PRINTED = 3
"""Dialogues that are shown where no kernel runs."""


def rating_style() -> str:
    """The style of the form, as a CSS text."""
    return asset("chats.css") + asset("rating.css")


def chat_to_rate(lines: Sequence[BlindLine], asked: int | None) -> str:
    """A blind dialogue with one evaluated turn framed (None: none), as an HTML fragment without style."""
    return environment().get_template("rating.html").render(lines=lines, asked=asked, css="")


def question(box: Checkbox) -> str:
    """A checkbox's wording, as HTML."""
    note = Markup('<span class="note" lang="zh">{}</span>').format(box.note) if box.note else ""
    return str(Markup('<div class="al-question">{} <span class="box">{}</span>{}</div>').format(box.question, box.id, note))


def page_name(page: Page) -> str:
    """What a page asks about, as a rater reads it."""
    return "the whole chat" if page.turn is None else f"turn {page.turn}"


def unanswered(page: Page, answered: Collection[Place]) -> int:
    """How much of a page has no answer."""
    return sum(place not in answered for place in page.places())


def place_line(questions: Questions, order: Sequence[str], page: Page, answered: Collection[Place]) -> str:
    """Where a rater is: `dialogue 3 of 12 · 7 of 25 answered`, and in all, as HTML."""
    own, everything = [p for one in questions.pages[page.dialogue] for p in one.places()], questions.places()
    there = order.index(page.dialogue) + 1
    done, in_all = (sum(p in answered for p in places) for places in (own, everything))
    return str(
        Markup('<b class="place">dialogue {} of {} · {} of {} answered</b> <span class="quiet">· in all {} of {}</span>').format(
            there, len(order), done, len(own), in_all, len(everything)
        )
    )


def overview(questions: Questions, order: Sequence[str], page: Page, answered: Collection[Place]) -> str:
    """What is unanswered at a glance: the pages of this dialogue, then all dialogues by number, as HTML."""
    pages = [(page_name(one), unanswered(one, answered), one == page) for one in questions.pages[page.dialogue]]
    dialogues = [(str(n), left(questions, key, answered), key == page.dialogue) for n, key in enumerate(order, 1)]
    return str(Markup('<div class="al-chips">{}</div><div class="al-chips" style="margin-top:4px">{}</div>').format(_chips("unanswered here:", pages), _chips("by dialogue:", dialogues)))


def left(questions: Questions, dialogue: str, answered: Collection[Place]) -> int:
    """How much of a dialogue has no answer."""
    return sum(unanswered(page, answered) for page in questions.pages[dialogue])


def printed_form(questions: Questions, rater: str, answered: Mapping[Place, object] | None = None) -> str:
    """The form where no kernel runs: the first dialogues in the rater's order, and what is asked, as HTML."""
    order = questions.order(rater)
    shown = []
    for number, key in enumerate(order[:PRINTED], 1):
        asked = Markup("").join(
            Markup("<li>{}<ul>{}</ul></li>").format(page_name(page), Markup("").join(Markup("<li>{}</li>").format(Markup(question(b))) for b in page.boxes))
            for page in questions.pages[key]
        )
        chat = Markup(chat_to_rate(questions.blind(key), None))
        shown.append(Markup("<details{}><summary>dialogue {}</summary>{}<ul>{}</ul></details>").format(Markup(" open") if number == 1 else "", number, chat, asked))
    places = questions.places()
    done = sum(place in (answered or {}) for place in places)
    head = Markup("<p>Blind rating: {} dialogues, {} of {} questions answered. To answer, run the notebook in JupyterLab. Shown here: {}.</p>").format(
        len(order), done, len(places), f"the first {len(shown)}" if len(shown) < len(order) else "all of them"
    )
    return str(Markup('<style>{}</style><div class="al-rating al-rating-page">{}{}</div>').format(Markup(rating_style()), head, Markup("").join(shown)))


def _chips(title: str, entries: Sequence[tuple[str, int, bool]]) -> Markup:
    chips = [
        Markup('<span class="{}">{}{}</span>').format(
            " ".join(["done"] * (not count) + ["here"] * here), name, " ✓" if not count else f": {count} left"
        )
        for name, count, here in entries
    ]
    return Markup('<b class="quiet">{}</b>{}').format(title, Markup("").join(chips))
