"""The numbers that the AnthroDial paper prints, as data (sources: `published/README.md`)."""

from importlib.resources import files
from io import BytesIO

import polars as pl

from anthrolab.bench.ledger import CASES_FILE, CHECKBOXES_FILE, Ledger

PAPER = "AnthroDial"
PUBLISHED_TABLES = (1, 7, 8, 9, 10, 11)


def published_table(number: int) -> pl.DataFrame:
    """Table 1, 7, 8, 9, 10 or 11 of the paper as printed strings; the first column is Category or Model."""
    return pl.read_csv(BytesIO(_data(f"table{number}.csv")), infer_schema=False)


def published_numbers(number: int) -> pl.DataFrame:
    """The same table as floats: percentages in percent (32.00% is 32.0), thousands without their commas."""
    table = published_table(number)
    digits = pl.exclude(table.columns[0]).str.replace_all("[%,]", "")
    return table.with_columns(digits.cast(pl.Float64))


def published_source(number: int) -> str:
    """How to name the source of a table in print."""
    return f"{PAPER}, Table {number}"


def published_counts() -> pl.DataFrame:
    """Model, Cases, Valid cases, Evaluated turns: not printed, but fixed by the printed digits."""
    return pl.read_csv(BytesIO(_data("counts.csv")))


def reconstructed_ledger() -> Ledger:
    """A ledger from which every printed digit of Tables 7-11 comes out. It is not the authors' data.

    How many checkboxes fail is as published; which ones, and in which cases, is invented.
    """
    cases, boxes = (pl.scan_parquet(_data(f"reconstructed_ledger/{name}")) for name in (CASES_FILE, CHECKBOXES_FILE))
    return Ledger(cases, boxes)


def _data(name: str) -> bytes:
    return (files("anthrolab.bench") / "published" / name).read_bytes()
