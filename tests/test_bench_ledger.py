"""Reading, checking and writing a ledger."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from anthrolab.bench.ledger import Ledger, LedgerError, read_ledger, write_ledger
from anthrolab.bench.tables import tables
from anthrolab.errors import AnthrolabError

PUBLISHED = Path(__file__).parent / "data" / "published" / "ledger"


def cases(**columns: list[Any]) -> pl.DataFrame:
    """Three planned cases of one system: valid, invalid, not done."""
    plain = {
        "system": ["s"] * 3,
        "case_id": ["x", "y", "z"],
        "binding": ["b01", "b01", "b02"],
        "role": ["a", "b", "a"],
        "category": ["Sport", "Sport", "Tech"],
        "valid": [True, False, None],
    }
    return pl.DataFrame(plain | columns)


def boxes(**columns: list[Any]) -> pl.DataFrame:
    """Two checkboxes of a turn and one of the dialogue of case x."""
    plain = {
        "system": ["s"] * 3,
        "case_id": ["x"] * 3,
        "category": ["Sport"] * 3,
        "role": ["a"] * 3,
        "valid": [True] * 3,
        "scope": ["turn", "turn", "dialogue"],
        "turn_index": [1, 1, None],
        "dimension": ["D1", "D1", "E1"],
        "checkbox": [1, 2, 1],
        "passed": [True, False, None],
    }
    return pl.DataFrame(plain | columns)


def test_the_frames_of_a_ledger() -> None:
    made = Ledger(cases(), boxes())
    assert made.systems == ["s"]
    assert made.cases.columns == [
        "case",
        "system",
        "case_id",
        "binding",
        "role",
        "category",
        "valid",
        "sample",
    ]
    assert made.cases["sample"].to_list() == [0, 0, 0]
    assert made.checkboxes["case"].to_list() == [0, 0, 0]
    assert made.checkboxes["passed"].to_list() == [True, False, None]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    several = cases(case_id=["x", "x", "z"], sample=[0, 1, 0])
    of_second = boxes(sample=[1, 1, 1], category=["Tech"] * 3, role=["b"] * 3).drop("valid")
    written = write_ledger(tmp_path / "run", several, of_second)
    again = read_ledger(tmp_path / "run")
    assert again.cases.equals(written.cases)
    assert again.checkboxes.equals(written.checkboxes)
    assert again.checkboxes["case"].to_list() == [1, 1, 1]
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["cases.parquet", "checkboxes.parquet"]


def test_a_written_file_has_plain_types_and_the_columns_of_the_case(tmp_path: Path) -> None:
    # what the checkboxes say of their case is wrong on purpose: the cases decide
    write_ledger(tmp_path, cases(), boxes(category=["Tech"] * 3, valid=[False] * 3))
    file = pl.read_parquet(tmp_path / "checkboxes.parquet")
    assert file.schema == {
        "system": pl.String,
        "case_id": pl.String,
        "sample": pl.Int32,
        "category": pl.String,
        "role": pl.String,
        "valid": pl.Boolean,
        "scope": pl.String,
        "turn_index": pl.Int32,
        "dimension": pl.String,
        "checkbox": pl.Int32,
        "passed": pl.Boolean,
    }
    assert file.select("category", "role", "valid").unique().row(0) == ("Sport", "a", True)


def test_a_refused_ledger_leaves_the_old_files_as_they_were(tmp_path: Path) -> None:
    write_ledger(tmp_path, cases(), boxes())
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(LedgerError):
        write_ledger(tmp_path, cases(), boxes(checkbox=[1, 1, 1]))
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(AnthrolabError, match="cannot be written"):
        write_ledger(tmp_path / "file", cases(), boxes())


def test_a_ledger_that_pandas_wrote_gives_the_same_tables(tmp_path: Path) -> None:
    """pandas turns whole numbers with nulls into floats, and adds its index."""
    for name in ("cases", "checkboxes"):
        frame = pd.read_parquet(PUBLISHED / f"{name}.parquet")
        frame = frame[frame["system"].isin(["GPT-5.5", "Claude-Opus-4-8"])]
        if name == "checkboxes":
            assert frame["turn_index"].dtype.kind == "f"
            frame["scope"] = frame["scope"].astype("category")
        frame.to_parquet(tmp_path / f"{name}.parquet")
    whole = tables(read_ledger(PUBLISHED))
    for name, table in tables(read_ledger(tmp_path)).items():
        assert table.equals(whole[name].filter(pl.col("Model").is_in(["GPT-5.5", "Claude-Opus-4-8"])))


@pytest.mark.parametrize(
    ("planned", "answers", "message"),
    [
        (
            cases().drop("valid"),
            boxes(),
            "cases.parquet: column 'valid' is missing; the file has only: system,",
        ),
        (cases(), boxes().drop("passed"), "checkboxes.parquet: column 'passed' is missing"),
        (
            cases(valid=["yes", "no", ""]),
            boxes(),
            "cases.parquet: column 'valid' is String; store it as a boolean",
        ),
        (
            cases(),
            boxes(turn_index=["1", "1", None]),
            "column 'turn_index' is String; store it as a whole number",
        ),
        (
            cases(),
            boxes(passed=[1, 0, 1]),
            "checkboxes.parquet: column 'passed' is Int64; store it as a boolean",
        ),
        (cases(system=[1, 1, 1]), boxes(), "cases.parquet: column 'system' is Int64; store it as text"),
        (
            cases(category=["Sport", "Sports", "Tech"]),
            boxes(),
            "column 'category' has 'Sports'; it must be one of Sport,",
        ),
        (cases(category=["Sport", None, "Tech"]), boxes(), "cases.parquet: column 'category' has None"),
        (cases(system=["s", "s", None]), boxes(), "cases.parquet: column 'system' has None"),
        (cases(case_id=["x", "x", "z"]), boxes(), "system 's', case_id 'x', sample 0: in two rows"),
        (
            cases(sample=[0, -1, 0]),
            boxes(),
            "cases.parquet: column 'sample' has -1; it must be a whole number",
        ),
        (
            cases(),
            boxes(case_id=["x", "w", "x"]),
            "column 'case_id' has 'w'; it must be one of cases.parquet",
        ),
        (cases(), boxes(sample=[0, 0, 3]), "system 's', case_id 'x', sample 3: no case of cases.parquet"),
        (
            cases(),
            boxes(scope=["turn", "turn", "chat"]),
            "column 'scope' has 'chat'; it must be one of turn, dialogue",
        ),
        (
            cases(),
            boxes(dimension=["D1", "D9", "E1"]),
            "column 'dimension' has 'D9'; it must be one of D1, D2,",
        ),
        (cases(), boxes(dimension=["D1", "E2", "E1"]), "scope 'turn', dimension 'E2': no pair"),
        (
            cases(),
            boxes(turn_index=[1, None, None]),
            "scope 'turn', turn_index None: no pair; turns count from 1",
        ),
        (cases(), boxes(turn_index=[1, 0, None]), "scope 'turn', turn_index 0: no pair"),
        (cases(), boxes(turn_index=[1, 1, 1]), "scope 'dialogue', turn_index 1: no pair"),
        (
            cases(),
            boxes(turn_index=[1.0, 1.5, None]),
            "column 'turn_index' has 1.5; it must be a whole number",
        ),
        (cases(), boxes(checkbox=[1, 0, 1]), "checkbox 0: too low"),
        (cases(), boxes(checkbox=[1, None, 1]), "column 'checkbox' has None"),
        (cases(), boxes(checkbox=[1, 1, 1]), "turn_index 1, dimension 'D1', checkbox 1: in two rows"),
    ],
)
def test_a_broken_ledger_is_refused(planned: pl.DataFrame, answers: pl.DataFrame, message: str) -> None:
    with pytest.raises(LedgerError) as refused:
        Ledger(planned, answers, Path("runs/r7"))
    assert message in str(refused.value)
    assert str(refused.value).startswith("runs/r7/")
    assert "\n" not in str(refused.value)


def test_missing_and_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"cases\.parquet: no such file; a ledger folder holds"):
        read_ledger(tmp_path)
    shutil.copy(PUBLISHED / "cases.parquet", tmp_path)
    with pytest.raises(LedgerError, match=r"checkboxes\.parquet: no such file"):
        read_ledger(tmp_path)
    (tmp_path / "checkboxes.parquet").write_text("<html>not found</html>", encoding="utf-8")
    with pytest.raises(LedgerError, match=r"checkboxes\.parquet: cannot be read as parquet"):
        read_ledger(tmp_path)
    torn = (PUBLISHED / "checkboxes.parquet").read_bytes()[:20_000]
    (tmp_path / "checkboxes.parquet").write_bytes(torn)
    with pytest.raises(LedgerError, match=r"checkboxes\.parquet: cannot be read as parquet"):
        read_ledger(tmp_path)
    (tmp_path / "checkboxes.parquet").write_bytes(b"")
    with pytest.raises(LedgerError, match=r"checkboxes\.parquet: "):
        read_ledger(tmp_path)


def test_a_twin_box_is_found_in_an_unsorted_ledger_too() -> None:
    files = [pl.read_parquet(PUBLISHED / f"{name}.parquet") for name in ("cases", "checkboxes")]
    shuffled = files[1].head(40_000).sample(fraction=1.0, shuffle=True, seed=1)
    assert Ledger(files[0], shuffled).checkboxes.height == 40_000
    with pytest.raises(LedgerError, match="in two rows; keep one row per checkbox"):
        Ledger(files[0], pl.concat([shuffled, shuffled.head(1)]))


def test_a_folder_name_with_brackets_is_no_pattern(tmp_path: Path) -> None:
    write_ledger(tmp_path / "run[1]*", cases(), boxes())
    assert read_ledger(tmp_path / "run[1]*").cases.height == 3
