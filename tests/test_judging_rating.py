"""Blind rating without a form: which dialogues are taken, what is asked and shown, and what raters answered, on disk."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.files import FileError
from anthrolab.intervals import Rate, wilson
from anthrolab.judging.calibration.check import check_judge, labelled_set
from anthrolab.judging.calibration.judged import CheckError
from anthrolab.judging.calibration.labels import HumanLabel, LabelsError, read_labels
from anthrolab.judging.calibration.outside import read_dialogues
from anthrolab.judging.calibration.rater_pairs import agree_of, rater_pairs
from anthrolab.judging.calibration.rating import (
    Questions,
    Rated,
    RatingError,
    ask,
    choose_boxes,
    kinds,
    load_rated,
    written_rated,
)
from anthrolab.judging.calibration.rating_files import (
    Rating,
    check_texts,
    labels_so_far,
    load_ratings,
    not_loaded,
    note_of,
    rater_file,
    rater_name,
    save_ratings,
    with_note,
    write_rated,
)
from anthrolab.judging.labelled.items import applied
from anthrolab.judging.rubric import load_rubric
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.show.rating_guesses import (
    Guess,
    best_single_guess,
    guess_file,
    guessed_right,
    guesses_so_far,
    load_guesses,
    save_guess,
)
from tests.labelled_for_tests import SMALL, TEXTS
from tests.rating_for_tests import about, dialogue, rated_in
from tests.runs_for_tests import make_run

RUBRIC = load_rubric()
ROOT = Path(__file__).parent.parent


def asked(rated: list[Rated], boxes: str = "D1.1, E4.1", **choice: Any) -> Questions:
    return ask(rated, choose_boxes(RUBRIC, boxes), RUBRIC, **choice)


# --- which dialogues ------------------------------------------------------------------------------------------------------


def test_every_file_gives_its_kind_and_a_run_folder_is_a_file_too(tmp_path: Path) -> None:
    rated = rated_in(tmp_path)
    assert kinds(rated) == {"human-human": 2, "human-model": 2, "model-model": 2}
    run = make_run(tmp_path / "run")
    both = load_rated({"model-model": f"{tmp_path / 'selfplay.jsonl'}, {run}", "human-human": ""})
    assert kinds(both) == {"model-model": 2 + 11}


@pytest.mark.parametrize(
    ("kind", "human", "said"),
    [
        ("human-human", ["b"], "side b was played by a person, but the file is given as human-human; give it as another kind, or mend the field"),
        ("human-human", [], "no side was played by a person"),
        ("human-model", ["a", "b"], "both sides were played by a person, but the file is given as human-model"),
        ("model-model", ["a"], "side a was played by a person, but the file is given as model-model"),
        ("written", ["a"], "side a was played by a person, but the file is given as written"),
        ("human-model", ["a", "a"], "is ['a', 'a']; write the sides that a person played"),
        ("human-model", "b", "is 'b'; write the sides"),
        ("human-model", ["c"], "is ['c']; write the sides"),
        ("human-model", [["a"]], "is [['a']]; write the sides"),
    ],
)
def test_a_record_that_says_another_kind_than_its_file_is_refused_by_line(tmp_path: Path, kind: Any, human: Any, said: str) -> None:
    lines = [dialogue("d1").to_line(), "", dialogue("d2", human=human).to_line()]
    (tmp_path / "x.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(RatingError, match=re.escape(f"{tmp_path / 'x.jsonl'}: line 3: human: ") + ".*" + re.escape(said)):
        load_rated({kind: str(tmp_path / "x.jsonl")})


@pytest.mark.parametrize(("kind", "human"), [("human-human", ["a", "b"]), ("human-model", ["a"]), ("model-model", []), ("model-model", None)])
def test_a_record_that_says_the_kind_of_its_file_is_taken(tmp_path: Path, kind: Any, human: Any) -> None:
    (tmp_path / "x.jsonl").write_text(dialogue("d", human=human).to_line(), encoding="utf-8")
    (one,) = load_rated({kind: str(tmp_path / "x.jsonl")})
    assert one.human == (None if human is None else frozenset(human))


def test_an_id_in_two_files_is_an_error_that_names_both_lines(tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / f"{name}.jsonl").write_text("\n" * (name == "y") + dialogue("d").to_line(), encoding="utf-8")
    with pytest.raises(RatingError, match=r"y\.jsonl: line 2: dialogue_id: 'd' stands in \S+x\.jsonl: line 1 too"):
        load_rated({"human-human": str(tmp_path / "x.jsonl"), "model-model": str(tmp_path / "y.jsonl")})
    with pytest.raises(FileError, match="cannot be read"):
        load_rated({"human-human": str(tmp_path / "none.jsonl")})


@pytest.mark.parametrize("name", ["h01 ", " h01", "h\u00a001", "h\r01", "h\n01", "\ufeffh01", "h\u200b01", "h\t01", "", " "])
def test_an_id_that_a_csv_file_would_not_give_back_is_refused_by_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.jsonl").write_text("\n" + dialogue(name).to_line(), encoding="utf-8")
    with pytest.raises(RatingError, match=r"x\.jsonl: line 2: dialogue_id: .* rename it"):
        load_rated({"human-human": str(tmp_path / "x.jsonl")})


@given(st.text(min_size=1, max_size=6))
def test_an_id_is_refused_or_comes_back_from_the_file_of_answers_as_it_is(name: str) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "x.jsonl").write_text(json.dumps(json.loads(dialogue("d").to_line()) | {"dialogue_id": name}), encoding="utf-8")
        try:
            rated = load_rated({"human-human": str(folder / "x.jsonl")})
        except (RatingError, CheckError):
            return
        questions = asked(rated)
        save_ratings(folder / "out", "li", [Rating(name, 1, "D1.1", "li", True)], questions)
        assert [label.dialogue for label in labels_so_far(folder / "out", questions)] == [name]


def test_gold_dialogues_are_called_written_and_judge_check_knows_them_by_the_same_ids() -> None:
    cards = default_cards_dir()
    library = load_library(cards)
    gold = written_rated(cards, library)
    assert kinds(gold) == {"written": 50}
    assert {r.dialogue.dialogue_id for r in gold} <= {item.id for item in labelled_set(cards, library, RUBRIC)[0]}


def test_a_dialogue_in_which_the_rated_side_says_nothing_is_left_out_and_named(tmp_path: Path) -> None:
    rated = [*rated_in(tmp_path), Rated(dialogue("silent", ("在吗",)), "model-model")]
    questions = asked(rated)
    assert questions.silent == ("silent",) and "silent" not in questions.rated
    with pytest.raises(RatingError, match="no dialogue in which the rated side says anything"):
        asked(rated[-1:])
    with pytest.raises(RatingError, match=r"are 0 \(all\) or more"):
        asked(rated, dialogues=-1)


# --- what is asked --------------------------------------------------------------------------------------------------------


def test_checkboxes_are_chosen_by_dimension_or_id_and_those_that_need_a_card_are_not_asked() -> None:
    assert [b.id for b in choose_boxes(RUBRIC, "E5, D1.3,D1")] == ["D1.1", "D1.2", "D1.3", "D1.4", "D1.5", "E5.1", "E5.2", "E5.3", "E5.4"]
    assert [b.id for b in choose_boxes(RUBRIC, "D4")] == ["D4.3", "D4.4"], "D4.1 and D4.2 need the persona card"
    every = choose_boxes(RUBRIC)
    assert every == [b for b in RUBRIC.boxes() if not b.needs] and 0 < len(every) < 44
    with pytest.raises(RatingError, match=r"boxes: D3\.5 needs the persona and scenario card, which would tell"):
        choose_boxes(RUBRIC, "D1, D3.5")
    with pytest.raises(RatingError, match="every checkbox of D3 needs a card"):
        choose_boxes(RUBRIC, "D3")
    with pytest.raises(RatingError, match=r"boxes: 'E4\.9' is no checkbox or dimension of the rubric anthrodial-44 \(did you mean 'E4"):
        choose_boxes(RUBRIC, "E4.9")


def test_all_raters_are_asked_the_same_in_orders_of_their_own(tmp_path: Path) -> None:
    rated = rated_in(tmp_path, each=8)
    questions = asked(rated, turns_per_dialogue=2, seed=3)
    assert asked(rated[::-1], turns_per_dialogue=2, seed=3) == questions, "the order of the files is nothing"
    li, wang = questions.order("li"), questions.order("王")
    assert sorted(li) == sorted(wang) == sorted(questions.rated) and li != wang
    assert {p for page in questions.pages_of("li") for p in page.places()} == set(questions.places())
    for order in (li, wang):
        assert order == questions.order("li" if order is li else "王"), "and always the same"
        seen = [questions.rated[key].kind for key in order]
        assert len(set(seen[:12])) == 3 and seen != sorted(seen), "kinds are mixed"
    assert asked(rated, turns_per_dialogue=2, seed=4).order("li") != li


def test_turns_are_drawn_with_the_seed_and_a_longer_file_changes_none_of_them(tmp_path: Path) -> None:
    rated = rated_in(tmp_path, each=8)
    questions = asked(rated, turns_per_dialogue=2)
    drawn = {key: [page.turn for page in pages] for key, pages in questions.pages.items()}
    assert all(turns[-1] is None and len(turns) == 3 and turns[:2] == sorted(turns[:2]) for turns in drawn.values())  # type: ignore[type-var]
    assert {turn for turns in drawn.values() for turn in turns} == {1, 2, 3, 4, None}, "not the same turns of every dialogue"
    some = asked(rated[::3], turns_per_dialogue=2)
    assert {key: [page.turn for page in pages] for key, pages in some.pages.items()} == {key: drawn[key] for key in some.pages}
    assert some.order("li") == [key for key in questions.order("li") if key in some.rated]
    assert all([p.turn for p in pages] == [1, 2, 3, 4, None] for pages in asked(rated, turns_per_dialogue=0).pages.values())
    assert all([p.turn for p in pages] == [None] for pages in asked(rated, "E4").pages.values())
    assert all(len(pages) == 3 for pages in asked(rated, "D1").pages.values())


def test_dialogues_are_drawn_of_every_kind_by_turns(tmp_path: Path) -> None:
    rated = rated_in(tmp_path, each=8)
    assert kinds(asked(rated, dialogues=6).rated.values()) == {"human-human": 2, "human-model": 2, "model-model": 2}
    few = [r for r in rated if r.kind != "human-human"] + rated[:1]
    assert kinds(asked(few, dialogues=7).rated.values()) == {"human-human": 1, "human-model": 3, "model-model": 3}
    assert set(asked(rated, dialogues=6).rated) < set(asked(rated, dialogues=9).rated), "more of them are more, not others"
    assert kinds(asked(rated).rated.values()) == {"human-human": 8, "human-model": 8, "model-model": 8}


# --- what a rater sees ----------------------------------------------------------------------------------------------------


def test_a_rater_sees_who_of_the_two_wrote_what_and_when_and_the_rated_side_is_a() -> None:
    for role in ("a", "b"):
        one = dialogue("d", role=role)
        lines = asked([Rated(one, "model-model")]).blind("d")
        assert [line.text for line in lines] == list(TEXTS)
        assert [line.rated for line in lines] == [m.speaker == role for m in one.messages]
        clock = [datetime.strptime(line.at, "%H:%M:%S") for line in lines]
        assert [(later - clock[0]).total_seconds() for later in clock] == [31 * i for i in range(8)], "the gaps stay"
        assert 0 <= (clock[0] - datetime.strptime("20:31:00", "%H:%M:%S")).total_seconds() < 60


@given(st.data())
def test_nothing_but_messages_and_times_of_day_has_any_influence_on_what_is_seen(data: st.DataObject) -> None:
    text = st.text(min_size=1, max_size=8)
    one = dialogue("d")
    other = dialogue("d", human=data.draw(st.sampled_from([None, [], ["a"], ["a", "b"]])), start=f"{data.draw(st.dates(datetime(1990, 1, 1).date())):%Y-%m-%d}T20:31:00")
    other.speakers["a"].name, other.speakers["b"].name, other.speakers["b"].persona = data.draw(text), data.draw(text), data.draw(st.none() | text)
    other.stop, other.asks, other.scenario, other.binding = data.draw(st.none() | text), None, None, None
    other.messages[0].opener = data.draw(st.booleans())
    seen = asked([Rated(one, "model-model")]).blind("d")
    assert asked([Rated(other, "human-human")]).blind("d") == seen


def test_chats_do_not_begin_at_second_nought_where_virtual_ones_would(tmp_path: Path) -> None:
    rated = rated_in(tmp_path, each=8)
    begins = {asked(rated).blind(r.dialogue.dialogue_id)[0].at for r in rated}
    assert len(begins) > 10, "all of these begin at 20:31:00"


def test_where_one_clock_has_no_seconds_none_is_shown_with_seconds(tmp_path: Path) -> None:
    coarse = Rated(dialogue("coarse", gap_s=60), "human-human")
    fine = Rated(dialogue("fine"), "model-model")
    questions = asked([coarse, fine])
    assert [questions.blind(key)[0].at for key in ("coarse", "fine")] == ["20:31", "20:31"]
    assert re.fullmatch(r"20:31:\d\d", asked([fine]).blind("fine")[0].at)
    short = Rated(dialogue("short", ("在吗", "在的"), gap_s=60), "human-human")
    assert asked([short, fine]).blind("short")[0].at == "20:31", "a chat of two messages counts too"


def test_a_chat_over_several_days_says_how_many_days_later_and_no_date() -> None:
    one = dialogue("d", gap_s=60 * 60 * 20 + 1)
    later = [line.later for line in asked([Rated(one, "human-human")]).blind("d")]
    assert later[:3] == ["", "the next day", "the next day"] and set(later) == {"", "the next day"}
    assert [line.later for line in asked([Rated(dialogue("d", gap_s=3 * 86400 + 1), "human-human")]).blind("d")][1] == "3 days later"


# --- answers on disk ------------------------------------------------------------------------------------------------------


D = about("d")


def rating(turn: int | None = 1, box: str = "D1.1", value: bool | None = True, rater: str = "王老师", note: str = "") -> Rating:
    return Rating("d", turn, box, rater, value, note)


def test_answers_are_labels_and_a_changed_one_takes_the_place_of_the_older(tmp_path: Path) -> None:
    save_ratings(tmp_path, "王老师", [rating()], D)
    save_ratings(tmp_path, "王老师", [rating(None, "E4.1", None)], D)
    save_ratings(tmp_path, "王老师", [rating(value=False, note='差,"一点"\n 不像')], D)
    assert (tmp_path / "王老师.csv").read_text(encoding="utf-8") == (
        'dialogue,turn,box,rater,value,note\nd,1,D1.1,王老师,false,"差,""一点"" 不像"\nd,,E4.1,王老师,,\n'
    )
    assert list(load_ratings(tmp_path, "王老师", D).values()) == [rating(value=False, note='差,"一点" 不像'), rating(None, "E4.1", None)]
    assert labels_so_far(tmp_path, D) == [
        HumanLabel("d", 1, "D1.1", "王老师", False), HumanLabel("d", None, "E4.1", "王老师", None)]  # fmt: skip
    assert labels_so_far(tmp_path / "none", D) == []


def test_what_another_window_saved_meanwhile_is_kept(tmp_path: Path) -> None:
    first = save_ratings(tmp_path, "li", [rating(rater="li")], D)
    save_ratings(tmp_path, "li", [rating(2, rater="li"), replace(rating(rater="li"), dialogue="of another set")], D)
    assert len(first) == 1 and len(save_ratings(tmp_path, "li", [rating(3, rater="li")], D)) == 4


def test_two_windows_of_one_rater_lose_nothing_of_each_other(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom anthrolab.judging.calibration.rating_files import Rating, save_ratings\n"
        "from anthrolab.show.rating_guesses import Guess, save_guess\nfrom tests.rating_for_tests import about\n"
        "folder, box, questions = Path(sys.argv[1]), sys.argv[2], about(*(f'{sys.argv[2]}-{n}' for n in range(60)))\n"
        "print('ready', flush=True)\nsys.stdin.readline()\n"
        "for n in range(60):\n"
        "    save_ratings(folder, 'li', [Rating(f'{box}-{n}', 1, box, 'li', True)], questions)\n"
        "    save_guess(folder, Guess(f'{box}-{n}', 'li', ()), questions)\n"
    )
    windows = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), box], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) for box in ("D1.1", "D1.2")]
    for window in windows:
        assert window.stdout is not None and window.stdout.readline() == "ready\n"
    for window in windows:
        assert window.stdin is not None
        window.stdin.write("go\n")
        window.stdin.flush()
    for window in windows:
        window.communicate(timeout=120)
        assert window.returncode == 0
    every = {f"{box}-{n}" for box in ("D1.1", "D1.2") for n in range(60)}
    assert {r.dialogue for r in load_ratings(tmp_path, "li", D).values()} == every == set(load_guesses(tmp_path, "li"))
    assert set(json.loads((tmp_path / "rated.json").read_text(encoding="utf-8"))) == every


def test_an_answer_can_be_taken_back_and_then_there_is_none(tmp_path: Path) -> None:
    save_ratings(tmp_path, "li", [rating(1, rater="li"), rating(2, rater="li")], D)
    left = save_ratings(tmp_path, "li", [rating(2, rater="li", note="x")], D, back=[("d", 1, "D1.1"), ("d", 3, "D1.1")])
    assert list(left.values()) == [rating(2, rater="li", note="x")] == list(load_ratings(tmp_path, "li", D).values())
    assert save_ratings(tmp_path, "li", [], D, back=left) == {} == load_ratings(tmp_path, "li", D)
    assert labels_so_far(tmp_path, D) == []


# --- the dialogue that was rated --------------------------------------------------------------------------------------------


def changed(**fields: Any) -> Questions:
    """Questions on d with another first answer of a, or another message of it changed."""
    one = dialogue("d")
    for name, value in (fields or {"content": "完全不同的话"}).items():
        setattr(one.messages[1], name, value)
    return about(one)


@pytest.mark.parametrize(
    "other",
    [changed(), changed(at=datetime(2026, 3, 6, 20, 31, 40)), changed(opener=True), changed(speaker="b"), about(dialogue("d", role="b")), about(dialogue("d", (*TEXTS, "还有一句")))],
    ids=["content", "time", "opener", "speaker", "role", "longer"],
)
def test_answers_are_of_a_text_and_not_of_whatever_has_its_id_later(tmp_path: Path, other: Questions) -> None:
    save_ratings(tmp_path, "li", [rating(rater="li")], D)
    save_guess(tmp_path, Guess("d", "li", ()), D)
    before = (tmp_path / "li.csv").read_bytes()
    for work in (
        lambda: labels_so_far(tmp_path, other),
        lambda: save_ratings(tmp_path, "wang", [rating(rater="wang")], other),
        lambda: save_guess(tmp_path, Guess("d", "wang", ()), other),
    ):
        with pytest.raises(RatingError, match=r"rated\.json: d: the dialogue is not the one that was rated under this id; restore its text, or rename it"):
            work()
    assert (tmp_path / "li.csv").read_bytes() == before and not (tmp_path / "wang.csv").exists() and not guess_file(tmp_path, "wang").exists()
    assert len(labels_so_far(tmp_path, D)) == 1, "with the text restored it goes on"


def test_a_text_may_change_until_somebody_answers_and_its_record_for_ever(tmp_path: Path) -> None:
    questions = about("d", "e")
    save_ratings(tmp_path, "li", [rating(rater="li")], questions)
    rest = Dialogue.model_validate(dialogue("d", human=["b"]).model_dump() | {"stop": "closed", "asks": [], "scenario": None})
    labels_so_far(tmp_path, about(rest, dialogue("e", ("在吗", "在的"))))
    save_guess(tmp_path, Guess("e", "li", None), questions)
    with pytest.raises(RatingError, match=r"rated\.json: e: "):
        labels_so_far(tmp_path, about(rest, dialogue("e", ("在吗", "在的"))))


def test_judge_check_finds_the_gold_dialogues_to_be_those_that_were_rated(tmp_path: Path) -> None:
    cards = default_cards_dir()
    library = load_library(cards)
    gold = written_rated(cards, library)
    questions = asked(gold)
    save_ratings(tmp_path, "li", [Rating(place[0], place[1], place[2], "li", True) for place in questions.places()], questions)
    items, sources = labelled_set(cards, library, RUBRIC)
    check_texts(tmp_path, [applied(item, sources) for item in items if item.id in questions.rated])


def test_judge_check_does_not_take_answers_for_another_text(tmp_path: Path) -> None:
    save_ratings(tmp_path / "ratings", "li", [rating(rater="li")], D)
    write_rated(tmp_path / "other.jsonl", changed(), [])
    given: Any = {"out": tmp_path / "out", "limit": 0, "labels_file": tmp_path / "ratings", "dialogues_file": tmp_path / "other.jsonl", "progress": lambda _line: None}
    with pytest.raises(RatingError, match=r"rated\.json: d: the dialogue is not the one that was rated"):
        check_judge("rules", [], {}, load_library(default_cards_dir()), RUBRIC, **given)


@pytest.mark.parametrize("text", ["{", "[]", '{"d": 1}'])
def test_a_broken_list_of_rated_texts_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "rated.json").write_text(text, encoding="utf-8")
    with pytest.raises(RatingError, match=r"rated\.json: is broken \("):
        save_ratings(tmp_path, "li", [rating(rater="li")], D)
    assert not (tmp_path / "li.csv").exists()


# --- broken files, notes and names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("d,1,D1.1,wang,true,", r"line 3: rater: is wang, but this is the file of li"),
        ("d,1,D1.1,li,false,", r"line 3: D1\.1 of this turn or dialogue is answered above already"),
        ("d,one,D1.2,li,false,", r"line 3: turn: 'one' is no whole number"),
        ("d,1,,li,false,", r"line 3: box: is missing"),
        ("d,1,D1.2,li,vielleicht,", r"line 3: value: 'vielleicht' is neither true nor false"),
        ("d,0,D1.2,li,true,", r"line 3: turn: is 0, but D1\.2 is asked of each turn; write 1 to 4"),
        ("d,99,D1.2,li,true,", r"line 3: turn: is 99, but D1\.2 is asked of each turn; write 1 to 4"),
        ("d,,D1.2,li,true,", r"line 3: turn: is missing, but D1\.2 is asked of each turn; write 1 to 4"),
        ("elsewhere,0,D1.2,li,true,", r"line 3: turn: is 0, but D1\.2 is asked of each turn; write its number, from 1"),
        ("d,1,E4.1,li,true,", r"line 3: turn: E4\.1 is asked of the whole dialogue; leave the turn blank"),
        ("d,1,D9.9,li,true,", r"line 3: box: 'D9\.9' is no checkbox of the rubric"),
    ],
)
def test_a_file_that_somebody_broke_is_named_by_line_and_not_written_over(tmp_path: Path, row: str, said: str) -> None:
    text = f"dialogue,turn,box,rater,value,note\nd,1,D1.1,li,true,\n{row}\n"
    (tmp_path / "li.csv").write_text(text, encoding="utf-8")
    for work in (lambda: load_ratings(tmp_path, "li", D), lambda: save_ratings(tmp_path, "li", [rating(rater="li")], D)):
        with pytest.raises(LabelsError, match=said):
            work()
    assert (tmp_path / "li.csv").read_text(encoding="utf-8") == text


def test_a_note_stands_with_the_first_answer_of_its_page() -> None:
    page = [("d", 1, "D1.1"), ("d", 1, "D1.2"), ("d", 1, "D1.3")]
    ratings = {r.place: r for r in (rating(1, "D1.3"), rating(1, "D1.2", note="old"), rating(2, "D1.1", note="elsewhere"))}
    assert note_of(ratings, page) == "old" and note_of(ratings, page[:1]) == ""
    assert with_note(ratings, page, " new\n one ") == [rating(1, "D1.2", note="new one")]
    assert with_note(ratings, page, "old") == [] and with_note({}, page, "nothing is answered yet") == []
    assert with_note(ratings | {rating().place: rating()}, page, "x") == [rating(note="x"), rating(1, "D1.2")], "one note a page"


def test_names_of_raters_become_files_and_what_is_no_name_is_refused() -> None:
    assert rater_name("  王  老师 ") == "王 老师" and rater_file(Path("r"), "王老师") == Path("r/王老师.csv")
    assert rater_name("e\u0301") == "é" and rater_name("x\ud800") == "x?"
    for name in ("", " \n", "majority"):
        with pytest.raises(RatingError, match="is no name of a rater"):
            rater_name(name)


@pytest.mark.parametrize("name", ["王\u200b老师", "\ufeffli", "l\u00adi", "li\u202e", "l\x00i", "li\ufe0f", "l\u3164i", "li\u2800", "\u034fli", "li\U000e0101"])
def test_two_names_that_look_alike_are_not_two_raters(name: str) -> None:
    with pytest.raises(RatingError, match=r"rater: .* holds a character that cannot be seen \(U\+[0-9A-F]{4,}\); type the name anew"):
        rater_name(name)


def test_raters_have_files_of_their_own_where_large_letters_are_small_ones_and_some_names_are_devices() -> None:
    names = ["li", "Li", "LI", "lI", "ß", "ss", "ı", "i", "I", "con", "Con", "aux", "lpt1", "COM9", rater_file(Path("r"), "Li").stem, rater_file(Path("r"), "con").stem]
    stems = [rater_file(Path("r"), name).stem for name in names]
    assert len({s.upper() for s in stems} | {s.casefold() for s in stems}) == 2 * len(names) and stems[0] == "li"
    assert not {s.lower() for s in stems} & {"con", "aux", "lpt1", "com9"}
    assert len(rater_file(Path("r"), "\U00020000" * 300).name.encode()) < 255 - 20, "with room for the neighbour that is written first"


@given(st.lists(st.text(min_size=1).map(lambda s: " ".join(s.encode("utf-8", "replace").decode().split())).filter(bool), min_size=2, max_size=2, unique=True))
def test_two_raters_never_share_a_file_and_no_name_leaves_the_folder(names: list[str]) -> None:
    files = [rater_file(Path("r"), name) for name in names]
    assert files[0] != files[1] and {guess_file(Path("r"), n).stem for n in names} == {f.stem for f in files}
    for file in files:
        assert file.parent == Path("r") and file.suffix == ".csv" and re.fullmatch(r"[\w-]+", file.stem) and len(file.name.encode()) < 255 - 20


def test_kill_dash_nine_loses_at_most_the_answer_under_way(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom anthrolab.judging.calibration.rating_files import Rating, load_ratings, save_ratings\n"
        "from tests.rating_for_tests import about\n"
        "folder, questions = Path(sys.argv[1]), about('another')\n"
        "for n in range(len(load_ratings(folder, '王老师', questions)) + 1, 100000):\n"
        "    save_ratings(folder, '王老师', [Rating('d', n, 'D1.1', '王老师', n % 2 == 0, '备注' * 50)], questions)\n"
        "    print(n, flush=True)\n"
    )
    for more_ms in (40, 0, 1, 2, 3, 5, 8, 13):
        process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stdout is not None
        said = int(process.stdout.readline())
        time.sleep(more_ms / 1000)  # so that it is killed at different points of its work
        os.kill(process.pid, signal.SIGKILL)
        said = max([said, *map(int, process.stdout.read().split())])
        process.wait()
        kept = load_ratings(tmp_path, "王老师", about("another"))
        assert [r.turn for r in kept.values()] in ([*range(1, said + 1)], [*range(1, said + 2)]), "what was shown as saved is there"
        assert all(r.value is (r.turn % 2 == 0) and r.note == "备注" * 50 for r in kept.values() if r.turn is not None)


# --- guesses, and what judge-check gets ----------------------------------------------------------------------------------------


def test_guesses_are_right_only_if_they_name_exactly_the_sides_of_a_machine(tmp_path: Path) -> None:
    rated = {r.dialogue.dialogue_id: r for r in [
        Rated(dialogue("hh"), "human-human"), Rated(dialogue("hm"), "human-model", frozenset("b")), Rated(dialogue("unknown"), "human-model"),
        Rated(dialogue("mm"), "model-model"), Rated(dialogue("gold"), "written", frozenset())]}  # fmt: skip
    said: list[tuple[str, Any]] = [
        ("hh", ()), ("hh", ("a",)), ("hh", None), ("hm", ("a",)), ("hm", ("b",)), ("hm", ("a", "b")), ("mm", ("a", "b")), ("mm", ("a",)),
        ("unknown", ("a",)), ("gold", ()), ("gone", ())]  # fmt: skip
    rates = guessed_right([Guess(key, f"r{i}", sides) for i, (key, sides) in enumerate(said)], rated)
    assert rates == {"human-human": Rate(1, 3), "human-model": Rate(1, 3), "model-model": Rate(1, 2)}
    assert rates["human-human"].interval == wilson(1, 3)


def test_guesses_are_kept_beside_the_labels_and_are_none(tmp_path: Path) -> None:
    save_guess(tmp_path, Guess("d", "王", ("a",)), D)
    save_guess(tmp_path, Guess("e", "王", None), D)
    save_guess(tmp_path, Guess("d", "王", ()), D)
    assert load_guesses(tmp_path, "王") == {"d": Guess("d", "王", ()), "e": Guess("e", "王", None)}
    assert load_guesses(tmp_path, "li") == {}
    save_ratings(tmp_path, "王", [rating(rater="王")], D)
    labels = labels_so_far(tmp_path, D)
    assert len(labels) == 1 and guesses_so_far(tmp_path) == list(load_guesses(tmp_path, "王").values())
    save_guess(tmp_path, Guess("d", "only guesses", ("b",)), D)
    assert [g.rater for g in guesses_so_far(tmp_path)] == ["only guesses", "王", "王"], "also of who answered nothing else"
    assert save_guess(tmp_path, Guess("d", "王", None), D, back=True) == load_guesses(tmp_path, "王") == {"e": Guess("e", "王", None)}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"dialogue": "e", "rater": "li", "machines": ["c"]}', "machines: are null or the sides in order"),
        ('{"dialogue": "e", "rater": "li", "machines": ["a", "a"]}', "machines: are null or the sides in order"),
        ('{"dialogue": "e", "rater": "li", "machines": {}}', "machines: are null or the sides in order"),
        ('{"dialogue": "e", "rater": "wang", "machines": ["a"]}', "rater: is wang, but this is the file of another"),
        ('{"dialogue": "d", "rater": "li", "machines": ["a"]}', "dialogue: is guessed above already"),
        ('{"dialogue": ["e"], "rater": "li", "machines": null}', "one is missing or no text"),
        ('{"dialogue": "e", "rater": "li"}', "one is missing or no text"),
        ("null", "one is missing or no text"),
        ("{", "Expecting"),
    ],
)
def test_a_row_that_is_no_guess_of_the_rater_is_named_by_line(tmp_path: Path, row: str, said: str) -> None:
    save_guess(tmp_path, Guess("d", "li", ("a", "b")), D)
    with guess_file(tmp_path, "li").open("a", encoding="utf-8") as file:
        file.write(row + "\n")
    for work in (lambda: load_guesses(tmp_path, "li"), lambda: guesses_so_far(tmp_path), lambda: save_guess(tmp_path, Guess("f", "li", ()), D)):
        with pytest.raises(RatingError, match=rf"guesses/li\.jsonl: line 2: is no guess \(.*{re.escape(said)}"):
            work()


def test_a_file_of_guesses_that_is_all_of_another_rater_is_named_too(tmp_path: Path) -> None:
    save_guess(tmp_path, Guess("d", "wang", ()), D)
    guess_file(tmp_path, "wang").rename(guess_file(tmp_path, "li"))
    with pytest.raises(RatingError, match=r"guesses/li\.jsonl: line 1: is no guess \(rater: is wang, but this is the file of another"):
        guesses_so_far(tmp_path)


def test_guesses_are_held_against_the_best_that_can_be_said_without_reading() -> None:
    saved = [Rated(dialogue(f"s{n}", role="ab"[n % 2]), "human-model", frozenset("ba"[n % 2])) for n in range(3)]
    rated = {r.dialogue.dialogue_id: r for r in [*saved, Rated(dialogue("hh"), "human-human"), Rated(dialogue("gold"), "written")]}
    guesses = [Guess(key, "li", ()) for key in rated]
    assert best_single_guess(guesses, rated) == ("A", Rate(3, 4)), "in saved chats A, the rated side, is the machine; that is not one in four"
    assert best_single_guess([Guess("hh", "li", None)], rated) == ("neither", Rate(1, 1))
    assert best_single_guess([], rated)[1] == Rate(0, 0)


def test_the_rated_dialogues_are_written_for_judge_check_without_the_written_ones(tmp_path: Path) -> None:
    questions = asked([*rated_in(tmp_path), Rated(dialogue("gold-b01-a"), "written")], dialogues=4)
    assert write_rated(tmp_path / "rated.jsonl", questions, []) == 3
    assert set(read_dialogues(tmp_path / "rated.jsonl")) == set(questions.rated) - {"gold-b01-a"}
    only_gold = asked([Rated(dialogue("gold-b01-a"), "written")])
    assert write_rated(tmp_path / "none.jsonl", only_gold, []) == 0 and not (tmp_path / "none.jsonl").exists()


def test_what_was_answered_is_written_for_judge_check_also_if_fewer_dialogues_are_drawn_later(tmp_path: Path) -> None:
    rated = rated_in(tmp_path / "in")
    every, fewer = asked(rated), asked(rated, dialogues=3)
    folder = tmp_path / "ratings"
    save_ratings(folder, "li", [Rating(*place, "li", True) for place in every.places()], every)
    labels = labels_so_far(folder, fewer)
    assert len(labels) == len(every.places()) > len(fewer.places())
    assert write_rated(tmp_path / "rated.jsonl", fewer, labels) == 6 and write_rated(tmp_path / "drawn.jsonl", fewer, []) == 3
    turns = {key: len(d.turns()) for key, d in read_dialogues(tmp_path / "rated.jsonl").items()}
    assert read_labels(folder, RUBRIC, turns) == labels, "as judge-check reads them"


def test_answers_of_another_set_in_the_folder_are_kept_and_named_as_not_loaded(tmp_path: Path) -> None:
    rated = rated_in(tmp_path / "in")
    save_ratings(tmp_path, "li", [rating(rater="li")], D)
    files = asked(rated)
    save_ratings(tmp_path, "li", [Rating(*files.places()[0], "li", True)], files)
    labels = labels_so_far(tmp_path, files)
    assert [label.dialogue for label in labels] == ["d", files.places()[0][0]]
    assert not_loaded(labels, rated) == ["d"] and not_loaded(labels, [*rated, *D.rated.values()]) == []


def test_every_two_raters_with_each_other_by_hand() -> None:
    said = {"ann": "++--+", "bob": "+-+-?", "cy": "+????"}
    labels = [HumanLabel("d", n + 1 if n < 4 else None, "D1.1" if n < 4 else "E1.1", rater, {"+": True, "-": False, "?": None}[sign])
              for rater, signs in said.items() for n, sign in enumerate(signs)]  # fmt: skip
    pairs = {(p.box, p.rater, p.other): p.kappa for p in rater_pairs(labels, SMALL)}
    assert set(pairs) == {(box, *two) for box in ("all", "D1.1") for two in (("ann", "bob"), ("ann", "cy"), ("bob", "cy"))}
    assert pairs["all", "ann", "bob"].agree == Rate(2, 4) and pairs["all", "ann", "bob"].value == 0.0, "half is what chance gives"
    assert (pairs["D1.1", "ann", "bob"].failed_a, pairs["D1.1", "ann", "bob"].failed_b) == (Rate(2, 4), Rate(2, 4))
    assert agree_of(rater_pairs(labels, SMALL), "all") == Rate(4, 6)
    assert agree_of([], "all") == Rate(0, 0) and rater_pairs(labels[:5], SMALL) == []
