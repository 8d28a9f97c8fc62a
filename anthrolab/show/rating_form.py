"""The blind rating form in a notebook: read a chat, answer a checkbox with yes, no or cannot say; every answer is saved at once.

The rater is never told which chats are of people (`judging.calibration.rating` says what is shown and why). Where no kernel
runs (a report, a page made of the notebook) the same object is shown as the first dialogues and what is asked of them.
"""

from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as w  # type: ignore[import-untyped]
from markupsafe import Markup

from anthrolab.errors import AnthrolabError
from anthrolab.judging.calibration.people import Place
from anthrolab.judging.calibration.rating import Page, Questions
from anthrolab.judging.calibration.rating_files import (
    Rating,
    check_texts,
    load_ratings,
    note_of,
    rater_name,
    save_ratings,
    with_note,
)
from anthrolab.runtime.dialogue import Speaker
from anthrolab.show.rating_guesses import GUESS, Guess, load_guesses, said_of, save_guess, sides_of
from anthrolab.show.rating_view import (
    chat_to_rate,
    left,
    overview,
    page_name,
    place_line,
    printed_form,
    question,
    rating_style,
)
from anthrolab.show.rating_widgets import Question, choice

ANSWERS = ("yes", "no", "cannot say")
_VALUES: dict[str, bool | None] = {"yes": True, "no": False, "cannot say": None}


class RatingForm(w.VBox):  # type: ignore[misc]
    """The chat of one dialogue beside the checkboxes of one of its turns, or of the whole of it.

    rater: who answers; "" until somebody has begun. answers: what is on disk. page: what is asked now.
    """

    def __init__(self, questions: Questions, folder: Path, rater: str = "") -> None:
        self.questions, self.folder, self.rater = questions, folder, ""
        self.answers: dict[Place, Rating] = {}
        self.guesses: dict[str, Guess] = {}
        self._pages: list[Page] = []
        self._number, self._quiet = 0, False
        self.name = w.Text(description="Your name", placeholder="a name or an alias, always the same", layout={"width": "340px"})
        self.begin = w.Button(description="Begin", icon="play", button_style="primary")
        self.where, self.glance, self.chat, self.heading, self.said = w.HTML(), w.HTML(), w.HTML(), w.HTML(), w.HTML()
        boxes = {box.id: box for pages in questions.pages.values() for page in pages for box in page.boxes}
        self.buttons = {key: choice(ANSWERS) for key in boxes}
        self._rows = {key: Question(question(box), self.buttons[key], partial(self.take_back, key)) for key, box in boxes.items()}
        self.guess = choice(GUESS)
        self._guess_row = Question("<div class='al-question'><b>Which side, if any, was a machine?</b> <span class='note'>A guess beside the answers, not counted as one.</span></div>", self.guess, partial(self._keep_guess, None))
        self.note = w.Text(placeholder="a note on these answers (after the first answer)", continuous_update=False, layout={"width": "97%"})
        self.asked, self._side = w.VBox(), w.VBox(layout={"flex": "1 1 480px", "min_width": "320px", "padding": "0 0 0 12px"})
        self.before, self.after, self.next_open = (w.Button(description=text, icon=icon, tooltip=tip, layout={"width": "auto"}) for text, icon, tip in (
            ("Previous", "chevron-left", "the page before this one"), ("Next", "chevron-right", "the page after this one"),
            ("Next unanswered", "forward", "the next page with something unanswered")))  # fmt: skip
        self.go = w.Dropdown(description="Go to", layout={"width": "310px"})
        self._start = w.HBox([self.name, self.begin])
        self._body = w.VBox()
        self._observe()
        super().__init__([w.HTML(f"<style>{rating_style()}</style>"), self._start, w.HBox([self.where, self.said]), self._body])
        self.add_class("al-rating")
        if rater:
            self.start(rater)

    @property
    def page(self) -> Page:
        return self._pages[self._number]

    def start(self, rater: str) -> None:
        """Begin as this rater, or go on where they stopped: at the first page with something unanswered."""
        try:
            self.rater = rater_name(rater)
            check_texts(self.folder, (r.dialogue for r in self.questions.rated.values()))
            self.answers, self.guesses = load_ratings(self.folder, self.rater, self.questions), load_guesses(self.folder, self.rater)
        except AnthrolabError as e:
            self.rater = ""
            self._say(str(e), "problem")
            return
        self.order = self.questions.order(self.rater)
        self._pages = self.questions.pages_of(self.rater)
        self._start.layout.display = "none"
        moves = w.Box([self.before, self.after, self.next_open, self.go], layout={"flex_flow": "row wrap"})
        columns = w.Box([w.Box([self.chat], layout={"flex": "1 1 400px", "min_width": "320px"}), self._side], layout={"flex_flow": "row wrap"})
        self.chat.layout.width = "100%"
        self._body.children = (self.glance, moves, columns)
        self._number = -1
        self.show_unanswered()

    def show_page(self, number: int) -> None:
        """Show a page by its number, from 0."""
        self._number = min(max(number, 0), len(self._pages) - 1)
        page = self.page
        self.chat.value = chat_to_rate(self.questions.blind(page.dialogue), page.turn)
        what = "All that A wrote" if page.turn is None else f"A's framed message ({page_name(page)})"
        self.heading.value = str(Markup("<b>{}</b>").format(what))
        last = page == self.questions.pages[page.dialogue][-1]
        old, self.asked = self.asked, w.VBox([*(self._rows[box.id] for box in page.boxes), *([self._guess_row] if last else [])])
        self.asked.add_class("al-questions")  # a new one each time, since the old one may be scrolled down
        self._side.children = (self.heading, self.asked, self.note)
        old.close()
        self.refresh()

    def show_unanswered(self) -> None:
        """Show the next page after this one that has something unanswered; the first page, if nothing has."""
        n = len(self._pages)
        later = [(self._number + step) % n for step in range(1, n + 1)]
        if self._number < 0:
            later = list(range(n))
        found = next((i for i in later if any(p not in self.answers for p in self._pages[i].places())), None)
        self.show_page(0 if found is None else found)
        if found is None:
            self._say("everything is answered; thank you", "good")

    def answer(self, box: str, said: str) -> None:
        """Save an answer ("yes", "no", "cannot say") to a checkbox of the page."""
        dialogue, turn, place = self.page.dialogue, self.page.turn, (self.page.dialogue, self.page.turn, box)
        note = self.answers[place].note if place in self.answers else ""
        self._keep([Rating(dialogue, turn, box, self.rater, _VALUES[said], note)])

    def take_back(self, box: str) -> None:
        """Leave a checkbox of the page unanswered again. The note goes over to another answer of the page, if there is one."""
        places, gone = self.page.places(), (self.page.dialogue, self.page.turn, box)
        others = {place: one for place, one in self.answers.items() if place != gone}
        self._keep(with_note(others, places, note_of(self.answers, places)), back=[gone])

    def refresh(self) -> None:
        """Show what is answered on this page and in all."""
        page, places = self.page, self.page.places()
        self._quiet = True
        try:
            for box, place in zip(page.boxes, places, strict=True):
                self._rows[box.id].show(_said(self.answers[place].value) if place in self.answers else None)
            guess = self.guesses.get(page.dialogue)
            self._guess_row.show(said_of(guess, self._a()) if guess else None)
            self.note.value, self.note.disabled = note_of(self.answers, places), not any(p in self.answers for p in places)
            options = [(f"dialogue {i}: {n} unanswered" if (n := left(self.questions, key, self.answers)) else f"dialogue {i}: all answered", key)
                       for i, key in enumerate(self.order, 1)]  # fmt: skip
            self._offer(options, page.dialogue)
        finally:
            self._quiet = False
        self.before.disabled, self.after.disabled = self._number == 0, self._number + 1 == len(self._pages)
        self.where.value = place_line(self.questions, self.order, page, self.answers)
        self.glance.value = overview(self.questions, self.order, page, self.answers)

    def _keep(self, changed: list[Rating], back: list[Place] | None = None) -> None:
        """Save, and only then show it as answered."""
        try:
            self.answers = save_ratings(self.folder, self.rater, changed, self.questions, back=back or ())
            self._say("saved", "good")
        except AnthrolabError as e:
            self._say(str(e), "problem")
        self.refresh()

    def _observe(self) -> None:
        for key, box in self.buttons.items():
            box.add_class("al-box-" + key.replace(".", "-"))
            box.observe(partial(self._answered, key), names="value")
        self.guess.observe(self._guess_given, names="value")
        self.note.observe(self._noted, names="value")
        self.go.observe(self._gone_to, names="value")
        self.begin.on_click(lambda _: self.start(self.name.value))
        self.before.on_click(lambda _: self._turn_to(self._number - 1))
        self.after.on_click(lambda _: self._turn_to(self._number + 1))
        self.next_open.on_click(lambda _: self._next_unanswered())
        for box, name in ((self.name, "name"), (self.begin, "begin"), (self.where, "where"), (self.glance, "glance"), (self.chat, "shown"), (self.guess, "guess"), (self.note, "note"),
                          (self.before, "before"), (self.after, "after"), (self.next_open, "open"), (self.go, "go"), (self.said, "said")):  # fmt: skip
            box.add_class(f"al-{name}")

    def _answered(self, box: str, change: Any) -> None:
        if not self._quiet and change["new"] is not None:
            self.answer(box, change["new"])

    def _noted(self, change: Any) -> None:
        if not self._quiet and (changed := with_note(self.answers, self.page.places(), change["new"])):
            self._keep(changed)

    def _guess_given(self, change: Any) -> None:
        if not self._quiet and change["new"] is not None:
            self._keep_guess(change["new"])

    def _keep_guess(self, said: str | None) -> None:
        """Save a guess about the dialogue; None takes it back."""
        guess = Guess(self.page.dialogue, self.rater, sides_of(said or "cannot say", self._a()))
        try:
            self.guesses = save_guess(self.folder, guess, self.questions, back=said is None)
            self._say("saved", "good")
        except AnthrolabError as e:
            self._say(str(e), "problem")
        self.refresh()

    def _a(self) -> Speaker:
        """The side that is shown as A."""
        return self.questions.rated[self.page.dialogue].dialogue.evaluated_role

    def _gone_to(self, change: Any) -> None:
        if not self._quiet and change["new"] is not None:
            self._turn_to(next(i for i, page in enumerate(self._pages) if page.dialogue == change["new"]))

    def _turn_to(self, number: int) -> None:
        self.said.value = ""
        self.show_page(number)

    def _next_unanswered(self) -> None:
        self.said.value = ""
        self.show_unanswered()

    def _offer(self, options: list[tuple[str, str]], value: str) -> None:
        with self.go.hold_sync():
            if list(self.go.options) != options:
                self.go.options = options
            self.go.value = value

    def _say(self, text: str, kind: str) -> None:
        self.said.value = str(Markup('<span class="{}">{}</span>').format(kind, Markup("<br>").join(text.splitlines())))

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        return bundle | {"text/html": printed_form(self.questions, self.rater, self.answers)} if isinstance(bundle, dict) else bundle


def rating_form(questions: Questions, folder: Path, rater: str = "") -> RatingForm:
    """The form of some questions (`judging.calibration.rating.ask`); answers go to `<folder>/<rater>.csv`. Without a rater it
    asks for the name first."""
    return RatingForm(questions, folder, rater)


def _said(value: bool | None) -> str:
    return "cannot say" if value is None else "yes" if value else "no"
