"""Cards changed by program: nothing but the changed lines moves, and nothing bad or overtaken is saved."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.cards.authoring import AuthoringError, card_fields, new_card, open_card
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.cards.yaml_edit import EditError, load, scalar, set_value
from anthrolab.yaml_files import YamlError
from tests.cards_for_tests import copy_cards

CARDS = sorted(p for p in default_cards_dir().rglob("*.yaml") if p.parent.name in ("personas", "scenarios", "memories", "series"))
CARDS.append(default_cards_dir() / "bindings.yaml")
SOME = [p for p in CARDS if p.stem in ("p01", "p13", "s01", "s12", "r01")] + [p for p in CARDS if p.parent.name == "memories"][:2]
TEXT = st.text(max_size=40) | st.sampled_from(
    ["[强]", "- a", "a: b", "a #b", "true", "null", "~", "27", "1e3", "2026-03-06", "'", '"', "*x", "&x", "!x", "%", "@a", "`", "?", "a,b]", "|", "a\nb", " a "]
)
ODD = "\ufeff# 头\r\nid: p1   # 号\r\n'name' :  \"谭国祥\"\r\nnote: >\r\n    长\r\n    句\r\n\r\nlist:\r\n# 注\r\n-   a  # 一\r\n\r\n-   'b'\r\nempty: []  # 无\r\nflow: [x, \"y\"]\r\nnone:\r\nlast: 末"


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def one_line_differs(before: str, after: str, old: str, new: str) -> bool:
    return [(a, b) for a, b in zip(lines(before), lines(after), strict=True) if a != b] == [(old, new)]


def at(content: Any, where: tuple[str | int, ...]) -> Any:
    for part in where:
        content = content.get(part) if isinstance(content, dict) else content[part]
    return content


@pytest.mark.parametrize("path", CARDS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_opened_and_saved_unchanged_is_byte_identical(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.parent.name / path.name
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    draft = open_card(copy)
    content = load(draft.text)
    for field in card_fields(draft.model):
        value = at(content, field.where)
        assert value is None or field.read(field.written(value)) == value, "what a form shows and reads back is the value"
    assert draft.diff() == ""
    draft.save()
    assert copy.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", SOME, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_every_field_changes_its_own_line_only(path: Path) -> None:
    draft = open_card(path)
    content = load(draft.text)
    for field in card_fields(draft.model):
        value = at(content, field.where)
        if value is None or value == []:
            continue
        assert draft.changed(field.where, value) == draft
        new: Any = [*value[:-1], "新的: 一行"] if isinstance(value, list) else "新的 # 值"
        changed = draft.changed(field.where, new)
        assert at(load(changed.text), field.where) == new
        assert sum(a != b for a, b in zip(lines(draft.text), lines(changed.text), strict=True)) == 1


def test_comments_quotes_order_and_line_ends_stay_in_an_odd_file() -> None:
    assert set_value(ODD, ("name",), "何'\"惠") == ODD.replace('"谭国祥"', '"何\'\\"惠"')
    assert set_value(ODD, ("id",), "p2") == ODD.replace("id: p1   # 号", "id: p2   # 号")
    assert set_value(ODD, ("list",), ["a", "it's"]) == ODD.replace("'b'", "'it''s'")
    assert set_value(ODD, ("list",), ["a", "新", "b"]) == ODD.replace("# 一\r\n", "# 一\r\n-   新\r\n")
    assert set_value(ODD, ("list",), ["b"]) == ODD.replace("-   a  # 一\r\n", "")
    assert set_value(ODD, ("list",), ["a", "b", "c"]) == ODD.replace("-   'b'\r\n", "-   'b'\r\n-   c\r\n")
    assert set_value(ODD, ("list", 1), "z") == ODD.replace("'b'", "'z'")
    assert set_value(ODD, ("empty",), ["a"]) == ODD.replace("empty: []  # 无\r\n", "empty:  # 无\r\n  - a\r\n")
    assert set_value(ODD, ("flow",), ["x", "a, b"]) == ODD.replace('[x, "y"]', '[x, "a, b"]')
    assert set_value(ODD, ("none",), 3) == ODD.replace("none:", "none: 3")
    assert set_value(ODD, ("last",), "尾") == ODD.replace("末", "尾")
    assert set_value(ODD, ("note",), "短") == ODD.replace(">\r\n    长\r\n    句\r\n", "短\r\n")
    assert set_value(ODD, ("list",), []) == ODD.replace("list:\r\n# 注\r\n-   a  # 一\r\n\r\n-   'b'\r\n", "list: []\r\n# 注\r\n")


def test_a_missing_field_goes_behind_its_predecessor() -> None:
    text = "a: 1\nb:\n  - x  # y\n# of d\nd: 4"
    assert set_value(text, ("c",), ["新"], ["a", "b", "c", "d"]) == "a: 1\nb:\n  - x  # y\nc:\n  - 新\n# of d\nd: 4"
    assert set_value(text, ("e",), 5, ["a", "b", "c", "d", "e"]) == text + "\ne: 5\n"
    assert set_value("# top\n" + text, ("z",), True, ["z", "a"]) == "# top\nz: true\n" + text
    assert set_value(text, ("g", "h"), "i") == text + "\ng:\n  h: i\n"


def test_a_change_that_would_touch_another_field_is_refused() -> None:
    text = "a: &x one\nb: *x\n"
    for where in (("a",), ("b",)):
        with pytest.raises(EditError, match="change it in an editor"):
            set_value(text, where, "two")
    with pytest.raises(EditError, match="no group of fields"):
        set_value("a: 1\n", ("a", "b"), "two")


@given(TEXT, st.sampled_from([None, "'", '"']))
def test_any_text_is_read_back_as_it_was_written(value: str, style: str | None) -> None:
    assert load(f"k: {scalar(value, style)}\n") == {"k": value}
    assert load(f"k: [{scalar(value, style, flow=True)}]\n") == {"k": [value]}


@given(st.lists(TEXT, max_size=6), st.lists(TEXT, max_size=6))
def test_any_list_becomes_any_other_and_its_neighbours_stay(before: list[str], after: list[str]) -> None:
    text = set_value("a: 1  # one\nk: []\n# two\nz: 'end'\n", ("k",), before)
    changed = set_value(text, ("k",), after)
    assert load(changed) == {"a": 1, "k": after, "z": "end"}
    assert changed.startswith("a: 1  # one\n") and changed.endswith("# two\nz: 'end'\n")


@given(TEXT, TEXT)
def test_any_text_replaces_any_other(before: str, after: str) -> None:
    changed = set_value(set_value('k: "x" # c\nz: 1\n', ("k",), before), ("k",), after)
    assert load(changed) == {"k": after, "z": 1}
    assert "# c\nz: 1\n" in changed


def test_types_are_kept_apart() -> None:
    assert set_value("k: '27'\n", ("k",), 27) == "k: 27\n"
    assert set_value("k: 1\n", ("k",), True) == "k: true\n"
    assert set_value("k: x\n", ("k",), "27") == 'k: "27"\n'
    assert set_value("k: x\n", ("k",), datetime(2026, 3, 6, 20, 31)) == "k: 2026-03-06T20:31:00\n"
    assert set_value("k: x\n", ("k",), date(2026, 3, 6)) == "k: 2026-03-06\n"


def test_problems_stand_at_their_field_with_the_fix(tmp_path: Path) -> None:
    draft = open_card(copy_cards(tmp_path) / "personas" / "p01.yaml")
    assert draft.problems() == []
    bad = draft.changed(("age",), "很老").changed(("interests",), ["一"]).changed(("hard_facts", "gender"), "x")
    assert [str(p) for p in bad.problems()] == [
        "age: write a whole number (found '很老')", "interests: write at least 2 lines", "hard_facts.gender: choose 女 or 男 (found 'x')",
    ]  # fmt: skip
    (problem,) = draft.changed(("age",), 67).problems()
    concerned = [f.where for f in card_fields(Persona) if problem.concerns(f.where)]
    assert concerned == [("age",), ("hard_facts", "age")]
    (problem,) = draft.changed(("id",), "p02").problems()
    assert str(problem) == "id: makes it the card p02, but the file is named p01.yaml; make them equal"


def test_saves_only_what_is_valid_and_only_its_lines(tmp_path: Path) -> None:
    path = copy_cards(tmp_path) / "personas" / "p01.yaml"
    before = path.read_bytes()
    with pytest.raises(AuthoringError, match=r"p01\.yaml: age: write 6 or more"):
        open_card(path).changed(("age",), 5).save()
    assert path.read_bytes() == before
    saved = open_card(path).changed(("education",), "中专").save()
    assert one_line_differs(before.decode(), path.read_text("utf-8"), "education: 中专（卫校）\n", "education: 中专\n")
    saved.changed(("education",), "大专").save()
    assert open_card(path).value(("education",)) == "大专"
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".")] == []


def test_a_file_changed_or_removed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = copy_cards(tmp_path) / "personas" / "p01.yaml"
    draft = open_card(path).changed(("education",), "中专")
    path.write_bytes(path.read_bytes() + b"# by another\n")
    with pytest.raises(AuthoringError, match="changed or removed on disk since it was opened; nothing was saved"):
        draft.save()
    assert path.read_bytes().endswith(b"# by another\n")
    path.unlink()
    with pytest.raises(AuthoringError, match="nothing was saved"):
        draft.save()
    assert not path.exists()


@pytest.mark.parametrize(("name", "model"), [("personas/p99", Persona), ("scenarios/s99", Scenario), ("memories/p01-p02", Memory)])
def test_a_new_card_asks_for_every_required_field(tmp_path: Path, name: str, model: Any) -> None:
    draft = new_card(tmp_path / f"{name}.yaml")
    required = {f.where for f in card_fields(model) if f.required}
    known = {("id",), ("owner",), ("partner",), ("expression_habits", "catchphrases")}
    assert {p.where for p in draft.problems()} == required - known
    with pytest.raises(AuthoringError):
        draft.save()
    assert not draft.path.exists()


def test_a_new_card_filled_in_from_another_is_that_card(tmp_path: Path) -> None:
    folder = copy_cards(tmp_path)
    for kind, old, model in (("personas", "p01", Persona), ("scenarios", "s01", Scenario)):
        source = open_card(folder / kind / f"{old}.yaml")
        draft = new_card(folder / kind / "x1.yaml")
        for field in card_fields(model):
            value = source.value(field.where)
            if field.where != ("id",) and value is not None:
                draft = draft.changed(field.where, value)
        draft.save()
        assert draft.path.read_text("utf-8") == source.text.replace(f"id: {old}", "id: x1")
    assert "x1" in load_library(folder).personas
    with pytest.raises(AuthoringError, match="exists already"):
        new_card(folder / "personas" / "x1.yaml")


def test_two_new_cards_of_one_name_do_not_overwrite_each_other(tmp_path: Path) -> None:
    path = tmp_path / "memories" / "p01-p02.yaml"
    one, two = (new_card(path).changed(("as_of",), date(2026, 1, 2)).changed(("facts",), [fact]) for fact in ("甲", "乙"))
    one.save()
    with pytest.raises(AuthoringError, match="exists already"):
        two.save()
    assert "甲" in path.read_text("utf-8")


def test_what_is_no_card_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "personas").mkdir()
    path = tmp_path / "personas" / "p1.yaml"
    with pytest.raises(AuthoringError, match="no such card"):
        open_card(path)
    path.write_text("id: [", encoding="utf-8")
    with pytest.raises(YamlError, match="line 1: not valid YAML"):
        open_card(path)
    path.write_text("- a", encoding="utf-8")
    with pytest.raises(YamlError, match="holds no fields"):
        open_card(path)
    with pytest.raises(AuthoringError, match="is no card"):
        open_card(tmp_path / "notes.txt")


def test_bindings_are_changed_by_place() -> None:
    draft = open_card(default_cards_dir() / "bindings.yaml")
    changed = draft.changed(("bindings", 3, "scenario"), "s05")
    assert one_line_differs(draft.text, changed.text, "    scenario: s04\n", "    scenario: s05\n")
    assert changed.problems() == []
    (problem,) = draft.changed(("bindings", 0, "persona_b"), "p01").problems()
    assert "same card" in problem.message
