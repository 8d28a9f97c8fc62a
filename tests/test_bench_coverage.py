"""Coverage: what was planned, done, valid and assessed."""

from pathlib import Path

import polars as pl

from anthrolab.bench.coverage import COVERAGE_HEADERS, coverage, coverage_table
from anthrolab.bench.ledger import DIMENSIONS, Ledger, read_ledger

PUBLISHED = Path(__file__).parent / "data" / "published"


def small() -> Ledger:
    """System `half`: a case assessed in full, one in part, one invalid, one undone; `none`: nothing."""
    cases = pl.DataFrame(
        {
            "system": ["half"] * 4 + ["none"],
            "case_id": ["full", "part", "bad", "undone", "full"],
            "binding": ["b01", "b01", "b02", "b02", "b01"],
            "role": ["a", "b", "a", "b", "a"],
            "category": ["Work"] * 5,
            "valid": [True, True, False, None, None],
        }
    )
    rows = [
        ("full", "turn", 1, "D1", 1, True),
        ("full", "turn", 2, "D1", 1, True),
        ("full", "dialogue", None, "E5", 1, True),
        ("part", "turn", 1, "D1", 1, None),
        ("part", "turn", 1, "D2", 1, False),
        ("part", "dialogue", None, "E5", 1, None),
        ("bad", "turn", 1, "D1", 1, True),  # an invalid case: its box does not count
    ]
    names = ["case_id", "scope", "turn_index", "dimension", "checkbox", "passed"]
    boxes = pl.DataFrame(rows, schema=names, orient="row").with_columns(system=pl.lit("half"))
    return Ledger(cases, boxes)


def test_counts_by_hand() -> None:
    half, none = coverage(small()).rows(named=True)
    assert half == {
        "system": "half",
        **{"planned": 4, "done": 3, "missing": 1, "valid": 2, "invalid": 1},
        **{"turns": 3, "boxes": 6, "assessed": 4, "full": 1, "full_passed": 1},
    }
    zero = dict.fromkeys(["done", "valid", "invalid", "turns", "boxes", "assessed", "full", "full_passed"], 0)
    assert none == {"system": "none", "planned": 1, "missing": 1} | zero


def test_printed_coverage_by_hand() -> None:
    half, none = coverage_table(small()).rows(named=True)
    assert tuple(half) == COVERAGE_HEADERS
    assert half["Valid of planned"] == "50.00%"
    assert half["Coverage"] == "66.67%"
    assert (half["Fully assessed cases"], half["ACC of fully assessed cases"]) == ("1", "100.00%")
    assert [half[f"{d} assessed"] for d in ("D1", "D2", "D3", "E5")] == ["66.67%", "100.00%", "", "50.00%"]
    assert none["Valid of planned"] == "0.00%"
    assert none["Coverage"] == none["ACC of fully assessed cases"] == none["D1 assessed"] == ""


def test_a_case_without_a_dialogue_card_is_not_fully_assessed() -> None:
    made = small()
    local = made.checkboxes.filter(pl.col("scope") == "turn").drop("case")
    assert coverage(Ledger(made.cases.drop("case"), local))["full"].to_list() == [0, 0]


def test_one_unassessed_box_never_prints_as_full_coverage() -> None:
    whole = [pl.read_parquet(PUBLISHED / "ledger" / f"{name}.parquet") for name in ("cases", "checkboxes")]
    row = pl.int_range(pl.len())
    unsure = whole[1].with_columns(passed=pl.when(row > 0).then("passed"))
    first = coverage_table(Ledger(whole[0], unsure)).row(0, named=True)
    assert (first["Boxes"], first["Assessed boxes"], first["Coverage"]) == ("28571", "28570", "99.99%")
    assert first["Fully assessed cases"] == "99"


def test_the_published_counts() -> None:
    made = coverage(read_ledger(PUBLISHED / "ledger"))
    valid = [100, 100, 100, 100, 100, 99, 99, 91, 91, 100, 100, 98, 96, 100, 100, 100]
    turns = [1251, 1159, 1102, 1504, 1709, 1476, 1586, 1481, 1494, 1540, 1554, 1259, 1502, 1157, 1183, 1326]
    assert made["valid"].to_list() == valid
    assert made["turns"].to_list() == turns
    assert made["boxes"].to_list() == [21 * t + 23 * v for t, v in zip(turns, valid, strict=True)]
    printed = coverage_table(read_ledger(PUBLISHED / "ledger"))
    assert set(printed["Coverage"]) == {"100.00%"}
    assert {v for d in DIMENSIONS for v in printed[f"{d} assessed"]} == {"100.00%"}
    acc = pl.read_csv(PUBLISHED / "table7.csv", infer_schema=False)["ACC"]
    assert printed["ACC of fully assessed cases"].to_list() == acc.to_list()
