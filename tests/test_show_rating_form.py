"""The blind rating form: its widgets, what a rater can learn from it, two simulated raters through judge-check, and JupyterLab."""

import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ipywidgets.embed import dependency_state  # type: ignore[import-untyped]

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.judging.calibration.people import Place
from anthrolab.judging.calibration.rating import Questions, Rated, ask, choose_boxes, load_rated, written_rated
from anthrolab.judging.calibration.rating_files import (
    Rating,
    labels_so_far,
    load_ratings,
    save_ratings,
    write_rated,
)
from anthrolab.judging.rubric import load_rubric
from anthrolab.show.notebooks import run_notebooks
from anthrolab.show.rating_form import RatingForm, rating_form
from anthrolab.show.rating_guesses import Guess, load_guesses
from anthrolab.show.rating_tables import guesses_table, pairs_table, progress_table, raters_agreement_table
from tests.browser import open_page
from tests.jupyter_for_tests import jupyter_lab, open_notebook
from tests.rating_for_tests import SECRETS, dialogue, kinds_in, rated_in

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "12_rating.ipynb"
RUBRIC = load_rubric()
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}"


def questions_of(rated: list[Rated], boxes: str = "D1.1, D1.2, E4.1", **choice: Any) -> Questions:
    return ask(rated, choose_boxes(RUBRIC, boxes), RUBRIC, **{"turns_per_dialogue": 2, **choice})


@pytest.fixture
def questions(tmp_path: Path) -> Questions:
    """Six dialogues of three kinds; two turns with two checkboxes and one for the whole dialogue: 30 questions."""
    return questions_of(rated_in(tmp_path / "in"))


def rows(folder: Path, rater: str) -> list[dict[str, str]]:
    with (folder / f"{rater}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def where(form: RatingForm) -> str:
    return re.sub("<[^>]+>", "", form.where.value)


# --- answering ------------------------------------------------------------------------------------------------------------


def test_nothing_is_answered_by_default_and_every_answer_is_saved_at_once(questions: Questions, tmp_path: Path) -> None:
    form = rating_form(questions, tmp_path / "out", "li")
    assert {b.value for b in form.buttons.values()} == {None} and form.guess.value is None
    assert where(form) == "dialogue 1 of 6 · 0 of 5 answered · in all 0 of 30"
    assert not (tmp_path / "out").exists(), "no answer, no file"
    first = form.page
    form.buttons["D1.1"].value = "yes"
    form.buttons["D1.2"].value = "cannot say"
    assert [(r["dialogue"], r["turn"], r["box"], r["rater"], r["value"]) for r in rows(tmp_path / "out", "li")] == [
        (first.dialogue, str(first.turn), "D1.1", "li", "true"), (first.dialogue, str(first.turn), "D1.2", "li", "")]  # fmt: skip
    form.buttons["D1.1"].value = "no"
    assert [r["value"] for r in rows(tmp_path / "out", "li")] == ["false", ""], "the newer answer takes the older one's place"
    assert where(form) == "dialogue 1 of 6 · 2 of 5 answered · in all 2 of 30"
    form.after.click()
    assert form.page.turn is not None and form.page != first and {form.buttons[i].value for i in ("D1.1", "D1.2")} == {None}, "another turn is another question"
    form.before.click()
    assert (form.buttons["D1.1"].value, form.buttons["D1.2"].value) == ("no", "cannot say")


def test_turns_come_before_the_whole_chat_and_the_guess_at_the_end_of_each_dialogue(questions: Questions, tmp_path: Path) -> None:
    form = rating_form(questions, tmp_path, "li")
    shown = []
    for _ in range(6):
        shown.append((form.page.dialogue, form.page.turn, [r.children[1] for r in form.asked.children]))
        form.after.click()
    keys = form.order[:2]
    turns = [page.turn for key in keys for page in questions.pages[key]]
    assert [(key, turn) for key, turn, _ in shown] == [(key, turn) for key, turn in zip([k for k in keys for _ in range(3)], turns, strict=True)]
    assert [len(inputs) for *_, inputs in shown] == [2, 2, 2, 2, 2, 2]
    assert [form.guess in inputs for *_, inputs in shown] == [False, False, True] * 2
    only_turns = rating_form(questions_of([*questions.rated.values()], "D1.1", turns_per_dialogue=1), tmp_path, "li")
    assert only_turns.guess in [r.children[1] for r in only_turns.asked.children], "also where the whole chat is not asked about"


def test_opening_it_again_goes_on_where_it_stopped_also_for_another_rater(questions: Questions, tmp_path: Path) -> None:
    form = rating_form(questions, tmp_path, "王老师")
    for _ in range(4):
        for box in form.page.boxes:
            form.buttons[box.id].value = "yes"
        form.after.click()
    there = form.page
    again = rating_form(questions, tmp_path, " 王老师 ")
    assert again.page == there and where(again) == "dialogue 2 of 6 · 2 of 5 answered · in all 7 of 30"
    assert again.answers == form.answers == load_ratings(tmp_path, "王老师", questions)
    other = rating_form(questions, tmp_path, "li")
    assert where(other).endswith("in all 0 of 30") and other.order != again.order


def test_what_is_unanswered_is_seen_at_a_glance_and_gone_to(questions: Questions, tmp_path: Path) -> None:
    form = rating_form(questions, tmp_path, "li")
    first = form.page
    for box in first.boxes:
        form.buttons[box.id].value = "no"
    assert f"turn {first.turn} ✓" in form.glance.value and "the whole chat: 1 left" in form.glance.value
    assert "1: 3 left" in form.glance.value and "6: 5 left" in form.glance.value
    assert [label for label, _ in form.go.options] == ["dialogue 1: 3 unanswered", *(f"dialogue {n}: 5 unanswered" for n in range(2, 7))]
    form.go.value = form.order[5]
    assert form.page == questions.pages[form.order[5]][0] and where(form).startswith("dialogue 6 of 6 · 0 of 5")
    for _ in range(3):
        for box in form.page.boxes:
            form.buttons[box.id].value = "no"
        form.next_open.click()
    assert form.page == questions.pages[form.order[0]][1], "after the last one it begins at the front again, and passes over what is answered"
    form.show_page(10_000)
    assert form.after.disabled and not form.before.disabled
    for key in questions.places():
        form.answers = save_ratings(tmp_path, "li", [Rating(*key, "li", True)], questions)
    form.next_open.click()
    assert "everything is answered" in form.said.value and where(form).endswith("in all 30 of 30")


def test_a_note_waits_for_an_answer_and_is_kept_with_it(questions: Questions, tmp_path: Path) -> None:
    form = rating_form(questions, tmp_path, "li")
    assert form.note.disabled
    form.buttons["D1.2"].value = "no"
    assert not form.note.disabled
    form.note.value = "像客服, 真的"
    form.buttons["D1.2"].value = "yes"
    assert [(r["box"], r["value"], r["note"]) for r in rows(tmp_path, "li")] == [("D1.2", "true", "像客服, 真的")]
    form.after.click()
    assert form.note.value == "" and form.note.disabled
    form.before.click()
    assert form.note.value == "像客服, 真的"
    assert rating_form(questions, tmp_path, "li").show_page(0) is None and len(load_ratings(tmp_path, "li", questions)) == 1


def test_an_answer_and_a_guess_can_be_taken_back_and_a_note_goes_to_what_is_left(questions: Questions, tmp_path: Path) -> None:
    form = rating_form(questions, tmp_path, "li")
    rows_here = {row.buttons: row for row in form.asked.children}
    first, second = (rows_here[form.buttons[i]].clear for i in ("D1.1", "D1.2"))
    assert (first.layout.visibility, second.layout.visibility) == ("hidden", "hidden"), "there is nothing to take back"
    form.buttons["D1.1"].value = "no"
    form.buttons["D1.2"].value = "yes"
    form.note.value = "像客服"
    assert (first.layout.visibility, second.layout.visibility) == ("visible", "visible")
    first.click()
    assert form.buttons["D1.1"].value is None and first.layout.visibility == "hidden" and where(form) == "dialogue 1 of 6 · 1 of 5 answered · in all 1 of 30"
    assert [(r["box"], r["value"], r["note"]) for r in rows(tmp_path, "li")] == [("D1.2", "true", "像客服")]
    second.click()
    assert rows(tmp_path, "li") == [] and form.note.disabled and form.note.value == "" and where(form).endswith("in all 0 of 30")
    form.buttons["D1.1"].value = "yes"
    assert [(r["box"], r["value"]) for r in rows(tmp_path, "li")] == [("D1.1", "true")], "and answered anew, the same too"
    while form.page.turn is not None:
        form.after.click()
    form.guess.value = "both"
    form.asked.children[-1].clear.click()
    assert form.guess.value is None and load_guesses(tmp_path, "li") == {} and len(rows(tmp_path, "li")) == 1


def test_a_dialogue_that_changed_since_it_was_rated_stops_the_form_before_an_answer(tmp_path: Path) -> None:
    before, after = (questions_of([Rated(dialogue("h01", texts), "human-human")]) for texts in (("在吗", "在"), ("在吗", "不在")))
    form = rating_form(before, tmp_path, "li")
    form.buttons["D1.1"].value = "yes"
    for rater in ("li", "wang"):
        stopped = rating_form(after, tmp_path, rater)
        assert stopped._body.children == () and "rated.json: h01: the dialogue is not the one that was rated" in stopped.said.value
    open_meanwhile = rating_form(after, tmp_path / "other", "wang")
    open_meanwhile.folder = tmp_path
    open_meanwhile.buttons["D1.1"].value = "no"
    assert open_meanwhile.buttons["D1.1"].value is None and "h01: the dialogue is not the one" in open_meanwhile.said.value
    assert rating_form(before, tmp_path, "li").rater == "li"


def test_a_guess_is_of_the_real_side_and_no_answer(tmp_path: Path) -> None:
    rated = [Rated(dialogue("one", role="b"), "human-model", frozenset("a"))]
    form = rating_form(questions_of(rated, "E4.1"), tmp_path, "li")
    for said, machines in (("A", ("b",)), ("B", ("a",)), ("both", ("a", "b")), ("neither", ()), ("cannot say", None)):
        form.guess.value = said
        assert load_guesses(tmp_path, "li") == {"one": Guess("one", "li", machines)}
        assert rating_form(form.questions, tmp_path, "li").guess.value == said
    assert where(form).endswith("0 of 1") and not (tmp_path / "li.csv").exists()
    form.guess.value = "A"
    table = guesses_table(load_guesses(tmp_path, "li").values(), form.questions)
    assert table.frame.rows() == [(kind, "1.00 of 1 [0.21, 1.00]") for kind in ("human-model", "all")]
    assert "Always saying A, without reading, would be right in 1.00 of 1." in table.caption and "one in four" not in table.caption
    assert "Always" not in guesses_table([], form.questions).caption


def test_without_a_name_it_asks_for_one_first(questions: Questions, tmp_path: Path) -> None:
    form = rating_form(questions, tmp_path)
    assert form._body.children == () and form.rater == ""
    form.begin.click()
    assert "is no name of a rater" in form.said.value and form._body.children == ()
    form.name.value = "<b>王</b>"
    form.begin.click()
    assert form.rater == "<b>王</b>" and where(form).startswith("dialogue 1 of 6") and form._start.layout.display == "none"
    form.buttons["D1.1"].value = "yes"
    assert [label.rater for label in labels_so_far(tmp_path, questions)] == ["<b>王</b>"]


def test_what_cannot_be_saved_is_not_shown_as_answered(questions: Questions, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    form = rating_form(questions, tmp_path / "file", "li")
    form.buttons["D1.1"].value = "yes"
    assert form.buttons["D1.1"].value is None and "cannot be" in form.said.value and "problem" in form.said.value
    form.guess.value = "A"
    assert form.guess.value is None and where(form).endswith("in all 0 of 30")


def test_a_broken_file_is_named_and_the_form_does_not_begin(questions: Questions, tmp_path: Path) -> None:
    (tmp_path / "li.csv").write_text("dialogue,turn,box,rater,value\nd,1,D1.1,<i>wang,true\n", encoding="utf-8")
    form = rating_form(questions, tmp_path, "li")
    assert form._body.children == () and "li.csv: line 2: rater: is &lt;i&gt;wang" in form.said.value


# --- blindness ------------------------------------------------------------------------------------------------------------


def everything_sent(form: RatingForm) -> str:
    """All that the browser has of the form's widgets, as text."""
    return json.dumps(dependency_state([form], drop_defaults=True), ensure_ascii=False, default=str)


def test_no_kind_id_name_date_or_file_reaches_the_browser_on_any_page(questions: Questions, tmp_path: Path) -> None:
    form = rating_form(questions, tmp_path / "ratings", "li")
    for number in range(len(form._pages)):
        form.show_page(number)
        for box in form.page.boxes:
            form.buttons[box.id].value = "yes"
        sent, bundle = everything_sent(form), form._repr_mimebundle_()["text/html"]
        for text in (without_framework(sent), bundle):
            assert [secret for secret in SECRETS if secret in text] == [], form.page
    assert "周末有空没" in sent and "周末有空没" in bundle


def without_framework(text: str) -> str:
    """Without ipywidgets' own words (fields such as `model_name`) and its random ids."""
    return re.sub(r'"_?model_\w+"|\b(?:IPY_MODEL_)?[0-9a-f]{32}\b', "", text)


def test_the_two_sides_look_alike_whatever_the_kind(tmp_path: Path) -> None:
    chats = {kind: rating_form(questions_of([Rated(dialogue("d"), kind)]), tmp_path, "li").chat.value for kind in ("human-human", "human-model", "model-model", "written")}  # type: ignore[arg-type]
    assert len(set(chats.values())) == 1


def test_text_of_a_chat_is_shown_as_written_and_does_nothing(tmp_path: Path) -> None:
    form = rating_form(questions_of([Rated(dialogue("d", ("在吗", EVIL, "你说", EVIL)), "model-model")]), tmp_path, "li")
    for html in (form.chat.value, form._repr_mimebundle_()["text/html"]):
        assert "<script>" not in html and "<img" not in html and "&lt;script&gt;alert(1)" in html and "{{ 7 * 7 }}" in html


def test_without_a_kernel_the_first_chats_and_what_is_asked_can_be_read(questions: Questions, tmp_path: Path) -> None:
    form = rating_form(questions, tmp_path / "out", "li")
    bundle = form._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    (tmp_path / "page.html").write_text(f"<!doctype html><meta charset=utf-8>{bundle['text/html']}", encoding="utf-8")
    with open_page(tmp_path / "page.html") as (page, log):
        text = page.locator(".al-rating").inner_text()
        assert "6 dialogues, 0 of 30 questions answered" in text and "Shown here: the first 3" in text
        assert page.locator("details").count() == 3 and page.locator(".line.right .bubble").first.inner_text() == "有啊 咋了"
        assert "Is the message in spoken language" in text and log.errors == []


# --- two simulated raters, through the form and judge-check -------------------------------------------------------------------

CELLS = [("yes", "yes")] * 30 + [("yes", "no")] * 5 + [("no", "yes")] * 5 + [("no", "no")] * 10
"""What two raters say of 50 questions. They agree on 40: 0.8. Each says no 15 times, so chance agrees on
(35 * 35 + 15 * 15) / 2500 = 0.58, and kappa is (0.8 - 0.58) / (1 - 0.58) = 11/21. Alpha over the 100 answers with 30 no's and 10
questions told apart: 1 - 99 * 20 / (100 * 100 - 30 * 30 - 70 * 70) = 1 - 1980 / 4200 = 37/70."""


def rate_all(form: RatingForm, answers: Mapping[Place, str]) -> None:
    """Answer every page through the form's own buttons."""
    for _ in form._pages:
        for place in form.page.places():
            form.buttons[place[2]].value = answers[place]
        form.after.click()


def test_two_raters_of_known_agreement_are_reported_by_judge_check(tmp_path: Path) -> None:
    files = kinds_in(tmp_path / "in")
    rated = load_rated(files)[:5]
    asked = questions_of(rated, "D1.1, D1.2, D1.5, E4.1, E4.2, E4.3, E4.5")
    places = sorted(asked.places(), key=str)
    assert len(places) == len(CELLS) == 50
    folder = tmp_path / "ratings"
    for number, rater in enumerate(("李", "wang")):
        form = rating_form(asked, folder, rater)
        rate_all(form, {place: cell[number] for place, cell in zip(places, CELLS, strict=True)})
        form.guess.value = "both"
    assert write_rated(tmp_path / "rated.jsonl", asked, []) == 5
    command = [sys.executable, "-m", "anthrolab", "judge-check", "--judge", "rules", "--labels", str(folder), "--dialogues", str(tmp_path / "rated.jsonl"),
               "--limit", "0", "--repeats", "1", "--out", str(tmp_path / "out")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 1, done.stderr  # the rules judge is not fit, whoever rates
    with (tmp_path / "out" / "people.csv").open(encoding="utf-8", newline="") as file:
        people = [r for r in csv.DictReader(file) if r["box"] == "all"]
    assert [r["rater"] for r in people] == ["majority", "wang", "李"]
    assert {(float(r["raters_agree"]), r["raters_agree_of"], r["rated_twice"], r["ties"]) for r in people} == {(0.8, "50", "50", "10")}
    assert float(people[0]["alpha"]) == pytest.approx(37 / 70, abs=1e-6)
    with (tmp_path / "out" / "raters.csv").open(encoding="utf-8", newline="") as file:
        pair = next(csv.DictReader(file))
    assert (pair["box"], pair["rater"], pair["other"]) == ("all", "wang", "李")
    assert (float(pair["agree"]), pair["agree_of"], float(pair["rater_failed"]), float(pair["other_failed"])) == (0.8, "50", 0.3, 0.3)
    assert float(pair["kappa"]) == pytest.approx(11 / 21, abs=1e-6)
    assert "Every two raters with each other" in done.stdout and "wang, 李  0.80 of 50   0.52" in done.stdout
    labels = labels_so_far(folder, asked)
    table = raters_agreement_table(labels, RUBRIC).frame.row(0, named=True)
    assert (table["Checkbox"], table["Failed"], table["Rated twice"], table["Equal answers"], table["Alpha"], table["Ties"]) == ("all", "0.30 of 100", "50", "0.80 of 50", "0.53", "10")


def test_what_is_cannot_say_or_unanswered_is_counted_and_no_agreement(questions: Questions, tmp_path: Path) -> None:
    assert progress_table([], questions).frame.rows() == [] and "Nobody has answered anything yet." in progress_table([], questions).caption
    form = rating_form(questions, tmp_path, "li")
    form.buttons["D1.1"].value, form.buttons["D1.2"].value = "yes", "cannot say"
    labels = labels_so_far(tmp_path, questions)
    assert progress_table(labels, questions).frame.rows() == [("li", "1", "1", "28", "0")]
    fewer = questions_of([*questions.rated.values()], "D1.2")
    assert progress_table(labels, fewer).frame.rows() == [("li", "0", "1", "11", "1")], "what is not asked any more is kept and said"
    assert raters_agreement_table(labels, RUBRIC).frame["Rated twice"].to_list() == ["0", "0"] and pairs_table([]).frame.height == 0


# --- the notebook -----------------------------------------------------------------------------------------------------------


def test_the_notebook_runs_headless_by_its_defaults_and_calls_the_gold_dialogues_written(tmp_path: Path) -> None:
    lines: list[str] = []
    run_notebooks(["12"], tmp_path / "run", progress=lines.append)
    assert "dialogues: 12" in lines and "raters: 0, questions: 432, answered by nobody: 432" in lines
    assert lines[-1] == f"anthrolab judge-check --judge rules --labels {tmp_path / 'run' / 'ratings'}"
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["notebooks"], "nothing is answered, so nothing is written"


def test_the_notebook_takes_three_files_and_says_the_command(tmp_path: Path) -> None:
    files = kinds_in(tmp_path / "in", each=1)
    lines: list[str] = []
    given = [f"{kind.replace('-', '_')}={path}" for kind, path in files.items()]
    run_notebooks(["12"], tmp_path / "run", [*given, "boxes=E4", "rater=li"], progress=lines.append)
    assert "dialogues: 3" in lines
    assert lines[-1].endswith(f"--labels {tmp_path / 'run' / 'ratings'} --dialogues {tmp_path / 'run' / 'rated.jsonl'}")
    assert (tmp_path / "run" / "rated.jsonl").is_file()


def printed(run: Path) -> str:
    """All that the notebook of a run shows, in whatever form."""
    notebook = json.loads((run / "notebooks" / "12_rating.ipynb").read_text(encoding="utf-8"))
    return json.dumps([out for cell in notebook["cells"] if cell["cell_type"] == "code" for out in cell["outputs"]], ensure_ascii=False)


def test_the_notebook_tells_kinds_agreement_and_guesses_only_who_asks_for_results(tmp_path: Path) -> None:
    files = kinds_in(tmp_path / "in")
    run = tmp_path / "run"
    asked = questions_of(load_rated(files), "E4", turns_per_dialogue=3)
    for rater in ("li", "wang"):
        form = rating_form(asked, run / "ratings", rater)
        rate_all(form, dict.fromkeys(asked.places(), "no"))
        form.guess.value = "both"
    given = [*(f"{kind.replace('-', '_')}={path}" for kind, path in files.items()), "boxes=E4", "rater=li"]
    telling = ("2 human-human", "model-model", "Agreement among raters", "Which side was a machine?", "Always saying", "1.00 of 30")
    lines: list[str] = []
    run_notebooks(["12"], run, given, progress=lines.append)
    assert "dialogues: 6" in lines and "30 of 30 questions answered" in printed(run)
    assert [text for text in telling if text in printed(run)] == []
    run_notebooks(["12"], run, [*given, "results=true"], progress=lines.append)
    assert "dialogues: 2 human-human, 2 human-model, 2 model-model" in lines
    assert [text for text in telling if text not in printed(run)] == []


def test_the_notebook_goes_on_when_other_files_are_given_or_fewer_drawn_and_judge_check_reads_what_it_wrote(tmp_path: Path) -> None:
    files = kinds_in(tmp_path / "in")
    run = tmp_path / "run"
    gold = questions_of(written_rated(default_cards_dir(), load_library(default_cards_dir())), "E4.1", dialogues=2)
    every = questions_of(load_rated(files), "E4.1")
    for asked in (gold, every):
        rate_all(rating_form(asked, run / "ratings", "li"), dict.fromkeys(asked.places(), "yes"))
    lines: list[str] = []
    given = [f"{kind.replace('-', '_')}={path}" for kind, path in files.items()]
    run_notebooks(["12"], run, [*given, "boxes=E4.1", "dialogues=3"], progress=lines.append)
    assert "raters: 1, questions: 3, answered by nobody: 0" in lines and not [line for line in lines if "not loaded" in line]
    command = [sys.executable, "-m", *lines[-1].split(), "--limit", "0", "--repeats", "1", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 1 and "not fit" in done.stdout, done.stderr
    run_notebooks(["12"], run, [given[0], "boxes=E4.1"], progress=lines.append)
    assert "answered, but not loaded: 4; before judge-check name their files too (human_human, human_model, model_model)" in lines


@contextmanager
def opened(folder: Path) -> Iterator[tuple[Any, Any]]:
    """The notebook as it is with three files, in JupyterLab, run to its end."""
    files = kinds_in(folder / "in")
    text = NOTEBOOK.read_text(encoding="utf-8")
    for name, value in {**{kind.replace("-", "_"): path for kind, path in files.items()}, "rater": "王老师", "ratings": str(folder / "answers")}.items():
        before = f'{name}: str = \\"\\"'
        assert before in text
        text = text.replace(before, f'{name}: str = \\"{value}\\"')
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / NOTEBOOK.name).write_text(text, encoding="utf-8")
    with jupyter_lab(folder) as address, open_notebook(address, f"notebooks/{NOTEBOOK.name}", width=1500, height=1250) as (page, log):
        page.on("dialog", lambda d: d.accept())
        page.wait_for_selector(".al-rating .bubble", timeout=120_000)
        yield page, log


def test_in_jupyterlab_answers_by_click_and_by_keyboard_are_there_after_a_reload(tmp_path: Path) -> None:
    with opened(tmp_path) as (page, log):
        page.wait_for_selector(".al-where >> text=dialogue 1 of 6 · 0 of 36 answered")
        assert page.locator(".al-rating .mod-active").count() == 0, "nothing is answered by default"
        assert page.locator(".al-rating .asked.right").count() == 1
        page.locator(".al-box-D1-1 button").nth(1).click()
        page.wait_for_selector(".al-where >> text=1 of 36")
        page.locator(".al-box-D1-2 button").first.focus()
        page.keyboard.press("Space")
        page.wait_for_selector(".al-where >> text=2 of 36")
        for key in ("Tab", "Tab", "Tab", "Tab", "Tab", "Tab"):  # the sixth for "clear" of what is answered
            page.keyboard.press(key)
        page.keyboard.press("Enter")
        page.wait_for_selector(".al-where >> text=3 of 36")
        assert page.locator(".al-clear:visible").count() == 3
        page.locator(".al-box-D1-2 + .al-clear").click()
        page.wait_for_selector(".al-where >> text=2 of 36")
        assert page.locator(".al-box-D1-2 .mod-active").count() == 0 and page.locator(".al-clear:visible").count() == 2
        page.locator(".al-box-D1-2 button").first.click()
        page.wait_for_selector(".al-where >> text=3 of 36")
        page.locator(".al-note input").fill("后面像在念稿")
        page.locator(".al-note input").press("Tab")
        page.wait_for_function("document.querySelector('.al-said').textContent.includes('saved')")
        page.locator("button.al-after").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".al-glance .here >> text=9 left")
        assert page.locator(".al-rating .mod-active").count() == 0, "the next turn has no answers yet"
        shown = page.locator(".al-rating").evaluate("e => e.outerHTML")
        words = page.locator(".al-rating").inner_text()
        for secret in SECRETS:
            assert secret not in words, secret
        for secret in ("human-human", "model-model", "human-model", "secret", "wechat", "selfplay", "jsonl", "林晓雯", "周子航", "2026-"):
            assert secret not in shown, secret
        page.reload()
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        page.wait_for_selector("text=| Idle", timeout=60_000)
        page.click(".jp-Notebook .jp-Cell")
        page.click("text=Run >> nth=0")
        page.click("text=Run All Cells")
        page.wait_for_selector(".al-where >> text=dialogue 1 of 6 · 3 of 36 answered", timeout=120_000)
        chosen = page.locator(".al-rating .mod-active").all_inner_texts()
        assert chosen == ["no", "yes", "cannot say"] and page.locator(".al-note input").input_value() == "后面像在念稿"
        page.wait_for_selector("text=王老师 >> nth=0")
        assert log.errors == []
    assert sorted((r["box"], r["value"], r["note"]) for r in rows(tmp_path / "answers", "王老师")) == [("D1.1", "false", "后面像在念稿"), ("D1.2", "true", ""), ("D1.3", "", "")]
