"""Exact numbers as the paper prints them: fixed places, half to even."""

import csv
from fractions import Fraction
from io import StringIO

import polars as pl


def as_decimal(value: Fraction | None, places: int) -> str:
    """A number >= 0 with a fixed number of places (>= 1), rounded half to even; "" for None.

    >>> as_decimal(Fraction(94075, 100000), 4)
    '0.9408'
    """
    if value is None:
        return ""
    whole, rest = divmod(round(value * 10**places), 10**places)
    return f"{whole}.{rest:0{places}}"


def as_percent(value: Fraction | None, places: int) -> str:
    """A share as a percentage with a fixed number of places, rounded half to even; "" for None.

    >>> as_percent(Fraction(27, 32), 2)
    '84.38%'
    """
    return "" if value is None else as_decimal(100 * value, places) + "%"


def ratio(part: int, whole: int) -> Fraction | None:
    """part / whole, or None where there is nothing to divide by."""
    return Fraction(part, whole) if whole else None


def as_csv(table: pl.DataFrame) -> str:
    """A frame of strings as CSV: a header, \\n line ends, quotes only where a cell needs them."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.iter_rows())
    return text.getvalue()
