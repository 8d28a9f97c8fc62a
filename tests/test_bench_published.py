"""The published numbers as data, and the audit that reads them against each other."""

from pathlib import Path

import polars as pl
import pytest

from anthrolab.bench import audit as audit_room
from anthrolab.bench.coverage import coverage
from anthrolab.bench.published import (
    PUBLISHED_TABLES,
    published_counts,
    published_numbers,
    published_source,
    published_table,
    reconstructed_ledger,
)
from anthrolab.bench.tables import tables

PUBLISHED = Path(__file__).parent / "data" / "published"


@pytest.mark.parametrize("number", PUBLISHED_TABLES)
def test_the_package_has_the_printed_cells(number: int) -> None:
    assert published_table(number).equals(pl.read_csv(PUBLISHED / f"table{number}.csv", infer_schema=False))
    numbers = published_numbers(number)
    assert set(numbers.dtypes[1:]) == {pl.Float64}
    assert sum(numbers.null_count().row(0)) == 0
    assert published_source(number) == f"AnthroDial, Table {number}"


def test_printed_strings_as_numbers() -> None:
    assert published_numbers(1).row(-1) == ("Total", 334.0, 100.0, 16436.0, 100.0)
    assert published_numbers(7).row(0) == ("Gemini-3.5-Flash", 32.0, 81.87, 87.0, 97.3, 0.9614, 0.9848)


def test_the_reconstructed_ledger_prints_the_published_tables_and_counts() -> None:
    ledger = reconstructed_ledger()
    for name, table in tables(ledger).items():
        assert table.equals(published_table(int(name.removeprefix("table"))))
    counts = coverage(ledger).select(Model="system", Cases="planned", valid="valid", turns="turns")
    assert counts.rows() == published_counts().rows()


def test_the_audit_computes_its_figures() -> None:
    items = {f.__name__: f() for f in (audit_room.turns_or_cases, audit_room.valid_rates)}
    micro = items["turns_or_cases"]
    # (13*.9661 + 9*.9718 + 14*.9624 + 8*.9896 + 8*.9694) / 52
    assert micro.frame.row(0) == ("Gemini-3.5-Flash", 0.9702, 0.9614, 0.0088)
    assert "for 12 the pooled value is the higher one" in micro.finding
    assert "lowest valid rate is 91%" in items["valid_rates"].finding
    assert "10 of 16 systems" in items["valid_rates"].finding


def test_the_audit_of_the_lead() -> None:
    lead = audit_room.is_the_lead_real(seed=1)
    assert lead.title.startswith("39% against 32%")
    assert lead.frame["95% low"].to_list() == [30.0, 23.7]
    assert lead.frame["95% high"].to_list() == [48.8, 41.7]
    # no overlap beyond need: 39 against 32 alone, p = 0.477; all 32 shared: 7 against 0, p = 2/2^7
    assert "goes from 0.016 to 0.477" in lead.finding
    assert "at least 31 of the 32" in lead.finding  # 8 against 1: p = 20/512
    assert "invented" in lead.finding


def test_the_audit_of_rl_and_of_the_two_mixtures() -> None:
    rl = audit_room.what_rl_changed()
    assert rl.frame["Change"].to_list() == pytest.approx([20, -1, -9])
    e4 = rl.frame.row(2, named=True)
    # 97 and 88 of 100: at the least 85 in common (12 against 3), at the most 88 (9 against 0)
    assert e4["Lowest p"] == pytest.approx(2 / 2**9, abs=1e-4)
    assert e4["Highest p"] == pytest.approx(2 * (1 + 15 + 105 + 455) / 2**15, abs=1e-4)
    ranks = audit_room.score_and_reward().frame
    gpt = ranks.filter(pl.col("Model") == "GPT-5.5").row(0, named=True)
    assert gpt["Reward mixture 0.7/0.3"] == pytest.approx(70 * 0.9460 + 30 * 0.9905, abs=0.01)
    assert (gpt["Rank"], gpt["Its rank"]) == (3, 7)


def test_every_audit_item_has_a_title_a_finding_and_a_frame() -> None:
    items = audit_room.audit(seed=1)
    assert len(items) == 5
    for item in items:
        assert item.title
        assert item.finding.endswith(".")
        assert item.frame.height >= 2
