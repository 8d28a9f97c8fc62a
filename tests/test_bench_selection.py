"""Selection files: what goes in comes out, once, and damage is named."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.bench.selection import Selected, SelectionError, add_to_selection, read_selection, selected_cases


def row(case_id: str = "b01-a", ids: tuple[str, ...] = ("D1.3",), **more: object) -> Selected:
    values = {"run": "r7", "system": "tiny", "dialogue_id": f"r7-{case_id}-0", "judge": "rules"}
    return Selected.model_validate({**values, "case_id": case_id, "ids": ids, **more})


def test_a_row_is_one_json_object_with_the_documented_fields(tmp_path: Path) -> None:
    path = tmp_path / "new" / "repair.jsonl"
    assert add_to_selection(path, [row(ids=("D1.3", "E3.1"), note="像客服")]) == (1, 1)
    (line,) = path.read_text(encoding="utf-8").splitlines()
    assert "像客服" in line
    assert json.loads(line) == {
        "run": "r7", "system": "tiny", "case_id": "b01-a", "sample": 0, "dialogue_id": "r7-b01-a-0", "judge": "rules",
        "ids": ["D1.3", "E3.1"], "note": "像客服",
    }  # fmt: skip


def test_a_case_that_is_there_gets_the_ids_that_it_lacks_and_no_second_line(tmp_path: Path) -> None:
    path = tmp_path / "repair.jsonl"
    add_to_selection(path, [row(note="first"), row("b02-b")])
    assert add_to_selection(path, [row("b02-b"), row(ids=("E1.1", "D1.3")), row("b03-a")]) == (1, 3)
    assert [(r.case_id, r.ids, r.note) for r in read_selection(path)] == [
        ("b01-a", ("D1.3", "E1.1"), "first"), ("b02-b", ("D1.3",), ""), ("b03-a", ("D1.3",), ""),
    ]  # fmt: skip


def test_another_run_judge_system_or_sample_is_another_row_of_the_same_case(tmp_path: Path) -> None:
    path = tmp_path / "regression.jsonl"
    rows = [row("b02-a"), row(), row(run="r8"), row(judge="big"), row(system="other"), row(sample=1), row(run=None, judge=None)]
    assert add_to_selection(path, rows) == (7, 7)
    assert selected_cases(path) == ["b02-a", "b01-a"]


@pytest.mark.parametrize("content", ["", "\n", " \n\n"])
def test_a_selection_of_nothing_is_no_set_of_cases(tmp_path: Path, content: str) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text(content, encoding="utf-8")
    assert read_selection(path) == [], "it may still be added to"
    with pytest.raises(SelectionError, match=r"empty\.jsonl: names no case"):
        selected_cases(path)


def test_nothing_new_leaves_the_file_untouched(tmp_path: Path) -> None:
    path = tmp_path / "repair.jsonl"
    add_to_selection(path, [row()])
    before = path.stat().st_mtime_ns, path.stat().st_ino
    assert add_to_selection(path, [row()]) == (0, 1)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
ROWS = st.lists(
    st.builds(
        Selected, run=st.none() | TEXT, system=TEXT, case_id=TEXT, sample=st.integers(0, 3), dialogue_id=st.none() | TEXT,
        judge=st.none() | TEXT, ids=st.lists(TEXT, unique=True, max_size=4).map(tuple), note=st.just("") | TEXT,
    ),
    max_size=6, unique_by=lambda r: r.key,
)  # fmt: skip


@given(ROWS, ROWS)
@settings(max_examples=60, deadline=None)
def test_what_was_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, first: list[Selected], second: list[Selected]) -> None:
    path = tmp_path_factory.mktemp("selection") / "s.jsonl"
    add_to_selection(path, first)
    assert (read_selection(path) if path.exists() else []) == first
    new, now = add_to_selection(path, second)
    keys = list(dict.fromkeys(r.key for r in [*first, *second]))
    assert (new, now) == (len(keys) - len(first), len(keys))
    assert [r.key for r in (read_selection(path) if path.exists() else [])] == keys


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"run": "r7", "system": "t', "line 2: Invalid JSON"),
        ('{"run": "r7", "system": "t"}', "line 2: case_id: is missing; add it"),
        ('{"system": "t", "case_id": "b01-a", "sample": "0"}', "line 2: sample: "),
        ('{"system": "t", "case_id": "b01-a", "notes": ""}', "notes: is no field of a selected (did you mean 'note'?)"),
        ('{"system": "t", "case_id": "", "sample": 0}', "line 2: case_id: "),
        ("[]", "line 2: "),
        (None, "line 2: the same case as line 1; remove one of the two"),
    ],
)
def test_a_damaged_line_is_named_and_nothing_is_written_over_it(tmp_path: Path, line: str | None, said: str) -> None:
    path = tmp_path / "repair.jsonl"
    add_to_selection(path, [row()])
    good = path.read_text(encoding="utf-8")
    path.write_text(good + (good if line is None else line + "\n"), encoding="utf-8")
    before = path.read_bytes()
    for use in (read_selection, selected_cases, lambda p: add_to_selection(p, [row("b09-a")])):
        with pytest.raises(SelectionError) as caught:
            use(path)
        assert str(caught.value).startswith(f"{path}: line 2: ") and said in str(caught.value)
        assert "\n" not in str(caught.value) and "remove" in str(caught.value)
    assert path.read_bytes() == before
