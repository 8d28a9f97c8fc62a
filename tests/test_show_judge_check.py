"""A checked judge in print: every figure with its count, and the verdict first."""

from pathlib import Path

import pytest

from anthrolab.intervals import Rate, wilson
from anthrolab.judging.calibration.check import Checked, check_judge
from anthrolab.judging.rubric import load_rubric
from anthrolab.show.judge_check import (
    _rate,
    agreement_table,
    fitness_table,
    judge_check_tables,
    judge_check_text,
    measures_table,
    raters_table,
    real_table,
    steadiness_table,
)
from anthrolab.show.tables import as_html, as_markdown
from tests.labelled_for_tests import GOLD, LIBRARY, chat, item

ESSAY = "首先我想说行，其次没了，综上所述就这样"


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """The rules judge over nine essays, one of them labelled at a turn where it is not, one clean chat, people's labels, and a real chat."""
    folder = tmp_path_factory.mktemp("check")
    items = [item(f"e{n}", ("D1.3", 2), edit="essay", say={3: ESSAY}) for n in range(8)]
    items += [item("e8", ("D1.3", 3), edit="essay", say={3: ESSAY}), item("n", holds=["D1.3", "L0-01"], edit="clean")]
    (folder / "h.jsonl").write_text(chat("<b>h01", ["在吗", ESSAY, "你说", "行"]).to_line() + "\n", encoding="utf-8")
    rows = ["dialogue,turn,box,rater,value", "e0,2,D1.3,ann,false", "e0,2,D1.3,<i>bob,false", "e0,1,D1.3,ann,true", "<b>h01,1,D1.3,ann,false"]
    (folder / "l.csv").write_text("\n".join(rows), encoding="utf-8")
    return check_judge(
        "rules", items, GOLD, LIBRARY, load_rubric(), out=folder / "out", repeats=2, labels_file=folder / "l.csv",
        dialogues_file=folder / "h.jsonl", progress=lambda _line: None,
    )  # fmt: skip


def row(table_rows: list[dict[str, str]], column: str, value: str) -> dict[str, str]:
    (found,) = [r for r in table_rows if r[column] == value]
    return found


def test_measures_stand_with_counts_and_wilsons_interval(checked: Checked) -> None:
    rows = measures_table(checked).frame.to_dicts()
    ends = wilson(8, 9)
    assert ends is not None
    essay = row(rows, "Id", "D1.3")
    assert essay["Recall"] == f"0.89 of 9 [{ends.low:.2f}, {ends.high:.2f}]" == "0.89 of 9 [0.57, 0.98]"
    assert essay["Precision"] == "1.00 of 8 [0.68, 1.00]"
    assert (essay["False alarms"], essay["Answered by"], essay["Flips"]) == ("0 of 1", "judge", "0 of 40")
    assert essay["Coverage"] == "40 of 40"
    silent = row(rows, "Id", "D1.1")
    assert (silent["Recall"], silent["Precision"], silent["Coverage"]) == ("–", "–", "0 of 40")
    gate = row(rows, "Id", "L0-01")
    assert (gate["Answered by"], gate["Coverage"], gate["Flips"]) == ("gate", "10 of 10", "–")


def test_captions_say_on_how_few_gold_dialogues_the_figures_stand_and_what_is_found_elsewhere(checked: Checked) -> None:
    stand = "10 labelled dialogues made from 1 gold dialogues"
    assert all(stand in table.caption for table in (fitness_table(checked), measures_table(checked), steadiness_table(checked)))
    for table in (measures_table(checked), steadiness_table(checked)):
        assert "not independent, and Wilson's interval is too narrow" in table.caption
    assert "another turn or message of its dialogue only (1 such" in measures_table(checked).caption


def test_the_verdict_comes_first_and_every_reason_is_there(checked: Checked) -> None:
    text = judge_check_text(checked)
    assert text.startswith("judge rules: not fit for strict ACC\n- gold cases passed: not measured: none; needed: ")
    for criterion in checked.fitness.criteria:
        assert f"- {criterion.name}: " in text
        assert all(f"    {detail}\n" in text for detail in criterion.details)
    assert "What is found, missed and falsely alleged" in text
    rows = fitness_table(checked).frame.to_dicts()
    assert row(rows, "Criterion", "gold cases passed")[""] == "not measured"
    assert row(rows, "Criterion", "coverage")[""] == "not met"


def test_steadiness_by_place_length_and_repeat(checked: Checked) -> None:
    rows = steadiness_table(checked).frame.to_dicts()
    assert row(rows, "Part", "failure in the middle third of the dialogue")["Recall"] == "0.89 of 9 [0.57, 0.98]"
    assert row(rows, "Part", "failure in the first third of the dialogue")["Recall"] == "–"
    answers = sum(checked.flips.values(), Rate(0, 0))
    assert row(rows, "Part", "single answers, over repeats")["Flips"].startswith(f"0.00 of {answers.of} [")
    assert row(rows, "Part", "strict outcome of untouched gold, over repeats")["Flips"] == "–"


def test_many_answers_are_printed_finer() -> None:
    assert _rate(Rate(3, 2000)) == "0.0015 of 2000 [0.0005, 0.0044]"
    assert _rate(Rate(0, 0)) == _rate(None) == "–"


def test_people_beside_the_judge(checked: Checked) -> None:
    boxes = agreement_table(checked).frame.to_dicts()
    assert [r["Checkbox"] for r in boxes] == ["all", "D1.3"]
    assert boxes[0]["Raters: failed"] == "0.75 of 4"
    assert boxes[0]["Alpha among raters"] == "– of 1", "one thing was rated twice, and alike"
    assert (boxes[0]["Majority: failed"], boxes[0]["Judge: failed"], boxes[0]["Kappa"]) == ("0.67 of 3", "0.67 of 3", "1.00")
    assert {r["Rater"]: r["Agree"] for r in raters_table(checked).frame.to_dicts()} == {"<i>bob": "1.00 of 1 [0.21, 1.00]", "ann": "1.00 of 3 [0.44, 1.00]"}


def test_what_real_people_fail(checked: Checked) -> None:
    assert checked.real is not None
    rows = real_table(checked, checked.real).frame.to_dicts()
    assert row(rows, "Id", "D1.3")["Judge"] == "0.50 of 2 [0.09, 0.91]"
    assert row(rows, "Id", "D1.3")["People"] == "1.00 of 1 [0.21, 1.00]"
    assert row(rows, "Id", "D1.3")["Question"].startswith("Is the message free of the connectors")


def test_print_is_inert_and_whole(checked: Checked) -> None:
    tables = judge_check_tables(checked)
    assert len({t.name for t in tables}) == len(tables) == 6
    for table in tables:
        html = as_html(table)
        assert "<i>bob" not in html
        assert table.title in html
        assert as_markdown(table).startswith(f"## {table.title}")


def test_without_people_and_real_chats_their_tables_are_not_there(tmp_path: Path) -> None:
    once = check_judge("rules", [item("n", holds=["D1.3"])], GOLD, LIBRARY, load_rubric(), out=tmp_path, progress=lambda _line: None)
    tables = judge_check_tables(once)
    assert len(tables) == 3
    assert "Flips" not in tables[1].frame.columns
