"""The table of pass definitions: what stands in its cells, and what does not."""

from dataclasses import replace

import polars as pl
import pytest

from anthrolab.bench.passes import PASSES, passes
from anthrolab.bench.published import published_table
from anthrolab.show.blocks import measured_block, published_block
from anthrolab.show.measured import Measured, load_all
from anthrolab.show.passes import PUBLISHED_NOTE, passes_table
from anthrolab.show.tables import NO_VALUE, PrintedTable, as_html, as_markdown
from tests.runs_for_tests import make_run


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return load_all(make_run(tmp_path_factory.mktemp("runs") / "partly"))[0]


@pytest.fixture(scope="module")
def fully(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return load_all(make_run(tmp_path_factory.mktemp("runs") / "fully", system="<b>other</b>", answers_all=True))[0]


def table_of(*measured: Measured, published: bool = True) -> PrintedTable:
    blocks = [published_block()] * published + [measured_block(m) for m in measured]
    table = passes_table(blocks, [passes(m.ledger, m.weights) for m in measured])
    return replace(table, frame=table.frame.select(pl.all().str.replace_all("\u00a0", " ")))


def test_published_systems_have_their_printed_acc_and_nothing_that_the_paper_does_not_say() -> None:
    table = table_of()
    assert table.frame.height == 16
    for row, acc in zip(table.frame.rows(), published_table(7)["ACC"], strict=True):
        assert acc in row[1]
        assert row[2:] == (NO_VALUE,) * 5
    assert table.frame.row(-1)[1] == "39 of 100: 39.00% (30.0 to 48.8%)"
    rounded = dict(table.frame.select("Model", "strict ACC").rows())
    assert rounded["Qwen3.5-9B-SFT+RL (no-think)"].startswith("18 of 98: 18.37% ")
    assert PUBLISHED_NOTE in table.notes and "made up" in PUBLISHED_NOTE
    assert not any(note.startswith("*") for note in table.notes)


def test_a_judge_that_leaves_boxes_open_gets_stars_and_its_open_boxes_matter_to_no_failed_training_filter(partly: Measured) -> None:
    table = table_of(partly)
    row = table.frame.row(-1, named=True)
    assert row["strict ACC"] == "0 of 10: 0.00%* (0.0 to 27.8%)"
    assert all(row[f"ACC@{at}"].split(": ")[1].count("*") == 1 for at in (85, 90, 95))
    assert row["both roles"] == NO_VALUE  # twelve cases of twelve bindings
    assert row["training filter"] == "0 of 10: 0.00% (0.0 to 27.8%)"  # a failed checkbox of the dialogue decides it
    assert any(note.startswith("* Over the assessed") for note in table.notes)
    assert "0.00%\\*" in as_markdown(table)


def test_strict_acc_and_its_interval_are_those_of_table_7(partly: Measured, fully: Measured) -> None:
    for m in (partly, fully):
        block = measured_block(m)
        acc = block.tables[7]["ACC"][0]
        cell = table_of(m, published=False).frame["strict ACC"][0]
        assert cell == f"0 of 10: {acc}{'*' if block.partly else ''} ({block.intervals[m.system]['ACC']})"


def test_a_fully_assessed_run_has_no_star_and_a_decided_filter(fully: Measured) -> None:
    table = table_of(fully, published=False)
    row = table.frame.row(0, named=True)
    assert "*" not in "".join(table.frame.row(0)) + "".join(table.notes)
    assert row["training filter"] == "0 of 10: 0.00% (0.0 to 27.8%)"
    assert PUBLISHED_NOTE not in table.notes


def test_rows_of_other_judges_stand_under_their_own_heading_and_nothing_is_ranked(partly: Measured, fully: Measured) -> None:
    blocks = [published_block(), measured_block(partly), measured_block(fully)]
    table = table_of(partly, fully)
    assert table.headings == [blocks[0].heading] * 16 + [blocks[1].heading, blocks[2].heading]
    assert table.published == [True] * 16 + [False] * 2
    assert table.marked == {}
    assert table.frame["Model"].to_list()[-2:] == ["tiny-model", "<b>other</b>"]
    assert "<b>other</b>" not in as_html(table)


def test_every_definition_is_explained_below_the_table(fully: Measured) -> None:
    notes = table_of(fully, published=False).notes
    for definition, note in zip(PASSES, notes, strict=False):
        assert note.startswith(f"{definition.name}: {definition.meaning}.")
        assert definition.unassessed in note


def test_a_run_without_a_valid_case_has_no_value(partly: Measured) -> None:
    cases = partly.ledger.cases.drop("case").with_columns(valid=None)
    nothing = replace(partly, ledger=type(partly.ledger)(cases, partly.ledger.checkboxes.clear()))
    row = table_of(nothing, published=False).frame.row(0)
    assert row == ("tiny-model", *[NO_VALUE] * 6)
