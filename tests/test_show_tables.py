"""Blocks and printed tables: what stands in them, and what marks it."""


from dataclasses import replace

import polars as pl
import pytest

from anthrolab.bench.published import published_table
from anthrolab.bench.stats import wilson
from anthrolab.judging.rubric import load_rubric
from anthrolab.show.blocks import measured_block, published_block
from anthrolab.show.comparison import comparisons
from anthrolab.show.conditions import conditions_table
from anthrolab.show.coverage import answers_table, denominators, failures_by_box, gate_table, invalid_cases, unassessed
from anthrolab.show.figures import category_figure, dimension_figure
from anthrolab.show.measured import Measured, load_all
from anthrolab.show.tables import as_html, as_markdown, as_text, plain_table, score_table
from tests.runs_for_tests import make_run


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return load_all(make_run(tmp_path_factory.mktemp("runs") / "partly"))[0]


@pytest.fixture(scope="module")
def fully(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    run = make_run(tmp_path_factory.mktemp("runs") / "fully", system="other-model", answers_all=True)
    return load_all(run)[0]


@pytest.mark.parametrize("number", [7, 8, 9, 10, 11])
def test_published_cells_stand_as_printed(number: int, partly: Measured) -> None:
    table = score_table(number, [published_block(), measured_block(partly)])
    published = published_table(number)
    assert table.frame.head(published.height).select(published.columns).equals(published)
    assert table.published == [True] * published.height + [False]
    assert table.frame.height == len(table.headings)


def test_published_intervals_are_wilsons(partly: Measured) -> None:
    frame = score_table(7, [published_block()]).frame
    of_39 = wilson(39, 100)
    assert of_39 is not None
    last = frame.row(-1, named=True)
    assert last["ACC, 95% interval"] == f"{100 * of_39.low:.1f} to {100 * of_39.high:.1f}%" == "30.0 to 48.8%"
    assert last["Score, 95% interval"] == "–"
    assert "ACC of fully assessed cases" not in frame.columns


def test_heading_says_judge_partner_rubric_counts_and_boxes(partly: Measured) -> None:
    with_rule = sum(b.rule is not None for b in load_rubric().boxes())
    assert measured_block(partly).heading == (
        "Measured here: run partly · judge: rules judge · partner: tiny-partner · rubric: anthrodial-44 · "
        f"10 valid of 12 planned cases · {with_rule} of 44 boxes"
    )


def test_partly_assessed_rows_are_starred_in_acc_columns_only(partly: Measured) -> None:
    blocks = [published_block(), measured_block(partly)]
    row = score_table(7, blocks).frame.row(-1, named=True)
    # of 4 turns the second and fourth fail D1.3; one box of the dialogue fails everywhere
    assert (row["ACC"], row["Turn ACC"], row["Holistic ACC"]) == ("0.00%*", "50.00%*", "0.00%*")
    assert row["ACC of fully assessed cases"] == "no such case"
    assert "*" not in row["Score"] + row["Per-turn"] + row["Holistic"]
    assert "*" not in "".join(score_table(8, blocks).frame.row(-1)) + "".join(score_table(10, blocks).frame.row(-1))
    assert all(cell.endswith("*") for cell in score_table(9, blocks).frame.row(-1)[1:] if cell != "–")
    assert any(note.startswith("* Over the assessed checkboxes only") for note in score_table(7, blocks).notes)


def test_fully_assessed_rows_have_no_star(fully: Measured) -> None:
    table = score_table(7, [published_block(), measured_block(fully)])
    assert "*" not in "".join(table.frame.row(-1)) + "".join(table.notes)
    assert table.frame.columns == score_table(7, [published_block()]).frame.columns
    assert "44 of 44 boxes" in table.headings[-1]


def test_a_category_without_a_valid_case_has_no_value(partly: Measured) -> None:
    row = score_table(11, [measured_block(partly)]).frame.row(0, named=True)
    assert [c for c in row if row[c] == "–"] == ["Tech", "Finance"]
    assert any("Sport 1, Relation 1" in note for note in score_table(11, [measured_block(partly)]).notes)


def test_only_the_published_block_is_ranked(partly: Measured) -> None:
    table = score_table(7, [measured_block(partly), published_block()])
    assert {row for row, _ in table.marked} <= set(range(1, 17))
    best = {table.frame["Model"][row]: column for (row, column), mark in table.marked.items() if mark == "best"}
    assert best["Qwen3.6-27B-SFT+RL (think)"]
    assert table.marked[16, "ACC"] == "best"
    assert table.marked[1, "ACC"] == "second"


def test_denominators_add_up(partly: Measured) -> None:
    row = denominators([partly]).frame.row(0, named=True)
    names = ("Planned", "Done", "Failed", "Missing", "Valid", "Invalid", "Evaluated turns")
    assert [row[n] for n in names] == ["12", "11", "1", "0", "10", "1", "40"]
    table = unassessed([partly])
    assert table is not None
    assert sum(map(int, table.frame["Boxes"])) == int(row["Boxes"]) - int(row["Assessed"])


def test_answers_of_a_model_judge_are_counted_by_rung_and_those_of_rules_not_at_all(partly: Measured) -> None:
    assert answers_table([partly]) is None
    first, second, *_ = partly.verdicts
    verdicts = dict(partly.verdicts)
    verdicts[first] = verdicts[first].model_copy(update={"rungs": {"json_schema": 5, "prompt": 2}, "from_reasoning": 3})
    verdicts[second] = verdicts[second].model_copy(update={"rungs": {"prompt": 4}, "from_reasoning": 1})
    table = answers_table([partly, replace(partly, judge="big", verdicts=verdicts)])
    assert table is not None
    assert table.frame.rows(named=True) == [
        {"Run, judge": f"{partly.run}, big", "json_schema": "5", "json_object": "0", "prompt": "6", "All": "11", "Read from reasoning": "4"}
    ]


def test_gate_says_what_ran_and_what_was_broken(partly: Measured) -> None:
    rows = {r["Constraint"][:5]: r for r in gate_table(partly).frame.iter_rows(named=True)}
    assert rows["L0-05"]["Executed by rules"] == "11 of 11"
    assert rows["L0-05"]["Broken by the tested side"] == "1"
    assert rows["L0-09"]["Executed by rules"] == rows["L0-09"]["Executed by the judge"] == "not executed"
    assert rows["L0-09"]["Broken by the tested side"] == "–"
    invalid = invalid_cases(partly)
    assert invalid is not None
    assert invalid.frame.select("Reason", "Evidence").rows() == [("L0-05", "equals message 2")]


def test_failures_by_box_count_assessed_boxes_only(partly: Measured) -> None:
    frame = failures_by_box(partly.verdicts, partly.rubric)
    row = frame.filter(pl.col("box") == "D1.3").row(0, named=True)
    assert (row["failed"], row["assessed"], row["share"]) == (20, 40, 0.5)
    assert frame["share"].is_sorted(descending=True)
    assert set(frame["box"]) == {b.id for b in partly.rubric.boxes() if b.rule is not None}


def test_table_6_lays_ours_beside_the_papers(partly: Measured) -> None:
    frame = conditions_table([partly]).frame
    rows = {r[0]: r[1:] for r in frame.rows()}
    assert frame.columns == ["Item", "AnthroDial (paper)", "Run partly (here)"]
    assert rows["Bindings"][1] == "12, giving 12 evaluated-role cases"
    assert rows["Longest dialogue"][1] == "24 messages, opener included"
    assert rows["Pace beyond the scheduler"][1] == "none" and rows["Older messages"][1] == "not shown"
    limits = partly.manifest["settings"]["limits"]
    limits.update(min_gap_s=5, follow_up_delays=[5, 20], typing_chars_per_minute=200)
    try:
        paced = {r[0]: r[2] for r in conditions_table([partly]).frame.rows()}["Pace beyond the scheduler"]
    finally:
        for key in ("min_gap_s", "follow_up_delays", "typing_chars_per_minute"):
            del limits[key]
    assert paced == "5 s between own messages; follow-ups after 5, 20 s; typing 200 characters a minute"


def test_runs_are_compared_only_under_the_same_conditions(partly: Measured, fully: Measured) -> None:
    table = comparisons([partly, fully])
    assert table is not None
    row = table.frame.row(0, named=True)
    assert (row["Systems"], row["Cases compared"], row["McNemar p"]) == ("tiny-model minus other-model", "10", "1.000")
    fully.manifest["settings"]["partner"]["name"] = "another"
    try:
        assert comparisons([partly, fully]) is None
    finally:
        fully.manifest["settings"]["partner"]["name"] = "tiny-partner"
    # The tested systems may differ, in their model files too; what the speakers were given may not.
    for part, key, value, comparable in (
        ("hashes", "system", "f" * 16, True), ("hashes", "skills", ["message_style v2 f"], False),
        ("hashes", "prompts", "f" * 16, False), ("settings", "summary", "none", False),
    ):  # fmt: skip
        had = fully.manifest[part].get(key)
        fully.manifest[part][key] = value
        try:
            assert (comparisons([partly, fully]) is not None) == comparable, key
        finally:
            if had is None:
                del fully.manifest[part][key]
            else:
                fully.manifest[part][key] = had


def test_markdown_and_text_hold_every_row_once(partly: Measured) -> None:
    table = score_table(7, [published_block(), measured_block(partly)])
    markdown, text = as_markdown(table), as_text(table)
    for model in table.frame["Model"]:
        assert markdown.count(f"| {model} |") == 1
        assert sum(line.startswith(f"{model}  ") for line in text.splitlines()) == 1
    assert "0.00%\\*" in markdown
    assert "0.00%*" in text
    assert max(map(len, text.splitlines()[5:15])) <= 100


def test_cells_cannot_become_markup() -> None:
    table = plain_table("x", "T", "", pl.DataFrame({"<i>": ["<b>|\n*x*"], "n": [1.5]}))
    assert "<b>" not in as_html(table) + as_markdown(table)
    assert "&lt;b&gt;" in as_html(table)
    assert "&lt;b&gt;\\| \\*x\\*" in as_markdown(table)


def test_floats_of_a_column_have_the_same_places() -> None:
    frame = pl.DataFrame({"a": [0.5, 0.12346, None, 2e-7, 0.0], "b": [1, 20, 3, 4, 5]})
    printed = plain_table("x", "", "", frame).frame
    assert printed["a"].to_list() == ["0.5000", "0.1235", "", "<0.0001", "0.0000"]
    assert printed["b"].to_list() == ["1", "20", "3", "4", "5"]


def test_figures_highlight_measured_systems_and_label_units(partly: Measured) -> None:
    blocks = [measured_block(partly), published_block()]
    for figure, unit in (
        (dimension_figure(blocks, {"D1": "Naturalness"}), "0 to 1"),
        (category_figure(blocks), "0 to 100"),
    ):
        assert len(figure.data) == 17
        assert figure.data[-1].name == "measured: tiny-model (partly-rules)"
        assert sum(bool(trace.showlegend) for trace in figure.data) == 2
        assert unit in figure.layout.yaxis.title.text
        assert figure.data[-1].line.width > figure.data[0].line.width
    profile = dimension_figure(blocks, {})
    assert list(profile.data[0].x) == [0, 1, 2, 3, 4, None, 5, 6, 7, 8, 9]
    first = published_table(8).row(0)
    assert [y for y in profile.data[0].y if y is not None] == [float(cell) for cell in first[1:]]
