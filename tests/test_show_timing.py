"""Timing in print: the command line's table and JSON, and the report's table, file and figure."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from anthrolab.metrics.timing import Timing
from anthrolab.runtime.dialogue import other
from anthrolab.show.delays import delay_figure
from anthrolab.show.measured import Measured, load_all
from anthrolab.show.tables import as_text
from anthrolab.show.timing import timing_at, timing_frame, timing_row, timing_table, timing_text
from tests.runs_for_tests import make_run
from tests.test_metrics_timing import BY_HAND, CUT, CUT_AT, chat, message, record


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "plain")


@pytest.fixture(scope="module")
def measured(run: Path) -> Measured:
    return load_all(run)[0]


@pytest.fixture
def by_hand(tmp_path: Path) -> Path:
    path = tmp_path / "dialogues.jsonl"
    path.write_text(chat(BY_HAND)[0].to_line() + "\n", encoding="utf-8")
    return path


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """A chat whose tested side decided on a second answer that the horizon cut off."""
    path = tmp_path / "cut.jsonl"
    path.write_text(chat(CUT, CUT_AT)[0].to_line() + "\n", encoding="utf-8")
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file from elsewhere: a byte order mark, a blank line, no asks, no newline at the end."""
    messages = [message("b", 0, opener=True), message("a", 4), message("a", 6)]
    path = tmp_path / "别处.jsonl"
    line = record(messages).model_dump_json(exclude_none=True)
    path.write_text(f"\ufeff{line}\n\n{line}", encoding="utf-8")
    return path


def command(*args: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "anthrolab", "timing", *map(str, args)]
    return subprocess.run(line, capture_output=True, text=True, encoding="utf-8")


def cells_of(table: str) -> dict[str, list[str]]:
    """The cells of a terminal's table by label; labels and cells have two blanks between."""
    rows = [[c.strip() for c in line.split("  ") if c.strip()] for line in table.splitlines()[2:]]
    return {label: cells for label, *cells in rows}


def test_the_table_of_a_terminal(by_hand: Path) -> None:
    done = command(by_hand)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    cells = cells_of(done.stdout)
    assert lines[0] == f"Timing: {by_hand}"
    assert cells["Measure"] == ["Tested", "Partner"]
    assert cells["Replies sent"] == ["3", "3"]
    assert cells["delay, s: median (quartiles)"] == ["12 (8.5 to 106), n = 3", "5 (4.5 to 7.5), n = 3"]
    assert cells["delay, s: 90% within"] == ["162.4, n = 3", "9, n = 3"]
    assert cells["gap, s: median (quartiles)"] == ["3 (3 to 3), n = 1", "70 (70 to 70), n = 1"]
    assert cells["replies unsent at the end"] == cells["follow-ups unsent at the end"] == ["0", "0"]
    assert cells["under 5 s"] == ["0.0% of 3", "33.3% of 3"]
    assert cells["mean length"] == ["1.33", "1.33"]
    assert cells["by length"] == ["2 of 1, 1 of 2"] * 2
    assert cells["Silent decisions"] == ["33.3% of 9", "12.5% of 8"]
    assert cells["Read but silent"] == ["40.0% of 5", "0.0% of 4"]
    assert cells["came back later"] == ["50.0% of 2", "–"]
    assert cells["Interruptions of a draft"] == ["40.0% of 5", "50.0% of 4"]
    assert cells["while typing"] == ["–", "–"]
    assert cells["draft kept"] == ["0.0% of 2", "50.0% of 2"]
    assert cells["draft withdrawn"] == ["50.0% of 2", "0.0% of 2"]
    assert cells["draft lost to an error"] == ["0", "0"]
    assert cells["Overlap with a partner's draft"] == ["50.0% of 4", "50.0% of 4"]
    assert cells["Errors of the contract"] == ["0.0% of 9", "11.1% of 9"]
    assert cells["Drafts dropped by a guard"] == ["0", "1"]
    assert len({len(line) for line in lines[2:]}) == 1  # columns end together


def test_what_was_unsent_at_the_end_stands_beside_the_delays(cut: Path, measured: Measured) -> None:
    cells = cells_of(command(cut).stdout)
    assert cells["Replies sent"] == ["1", "1"]
    assert cells["delay, s: 90% within"] == ["30, n = 1", "20, n = 1"]
    assert cells["replies unsent at the end"] == ["1", "0"]
    tested, partner = json.loads(command(cut, "--json").stdout).values()
    assert (tested["replies"], tested["reply_delay_p90_s"], tested["unsent_replies"]) == (1, 30, 1)
    assert (tested["unsent"], tested["unsent_follow_ups"], partner["unsent"]) == (1, 0, 0)
    shown = replace(measured, dialogues={"x": chat(CUT, CUT_AT)[0]})
    assert timing_table([shown]).frame["Reply delay, s"].to_list() == ["30 (30 to 30), n = 1", "20 (20 to 20), n = 1"]
    assert timing_table([shown]).frame["Unsent replies"].to_list() == ["1", "0"]
    figure = delay_figure([shown])
    assert figure is not None
    assert [line.name for line in figure.data] == [
        "tested: tiny-model (plain), replies: 1 sent, 1 unsent", "partner: tiny-partner (plain), replies: 1 sent, 0 unsent",
    ]  # fmt: skip


def test_json_has_every_measure_of_the_sides_asked_for(by_hand: Path) -> None:
    done = command(by_hand, "--json", "--side", "evaluated")
    found = json.loads(done.stdout)
    assert list(found) == ["evaluated"]
    one = found["evaluated"]
    assert (one["reply_delay_q1_s"], one["reply_delay_median_s"], one["reply_over_60s_share"]) == (8.5, 12, 1 / 3)
    assert (one["follow_up_gap_median_s"], one["burst_lengths"]) == (3, {"1": 2, "2": 1})
    assert (one["silence_rate"], one["read_silent_rate"], one["came_back_rate"]) == (3 / 9, 2 / 5, 1 / 2)
    assert (one["revision_rate"], one["overlap_rate"], one["ask_errors"], one["guarded"]) == (1 / 2, 1 / 2, 0, 0)
    assert (one["interruptions"], one["interruptions_typing"], one["typing_rate"]) == (2, None, None)
    assert list(json.loads(command(by_hand, "--json").stdout)) == ["evaluated", "partner"]
    assert list(json.loads(command(by_hand, "--json", "--side", "partner").stdout)) == ["partner"]


def test_dialogues_from_elsewhere_have_no_ask_measures(outside: Path) -> None:
    row = timing_row(timing_at(outside)["evaluated"])
    measured = {key for key, value in row.items() if value is not None}
    assert (row["dialogues"], row["messages"], row["reply_delay_median_s"], row["mean_burst"]) == (2, 4, 4, 2)
    assert not measured & {"asks", "silent", "silence_rate", "interruptions", "unsent", "unsent_replies", "kept", "overlap_rate", "guarded", "ask_errors"}
    text = as_text(timing_text(timing_at(outside), "x"))
    assert cells_of(text)["replies unsent at the end"] == ["–", "–"]
    assert command(outside).returncode == 0


def test_a_run_folder_is_read_as_its_dialogues(run: Path) -> None:
    assert timing_at(run) == timing_at(run / "dialogues.jsonl")
    assert timing_at(run)["evaluated"].dialogues == 11


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("not json", "line 2: Invalid JSON"),
        ('{"dialogue_id": "x9", "evaluated_role": "a"}', "line 2: speakers: is missing; add it"),
        (record([message("b", 10, opener=True), message("a", 4)]).to_line(), "line 2: x1: message 2 is earlier than"),
    ],
)
def test_errors_name_the_file_the_line_and_the_fix(by_hand: Path, line: str, says: str) -> None:
    by_hand.write_text(by_hand.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    done = command(by_hand)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {by_hand}: {says}")
    assert done.stderr.count("\n") == 1 and ";" in done.stderr


def test_wrong_paths_and_sides_are_explained(tmp_path: Path, by_hand: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n", encoding="utf-8")
    for path, says in (
        (tmp_path / "nowhere", "nowhere: cannot be read (No such file or directory); check the path"),
        (tmp_path, "no manifest.json here, so this is no run; make one with `anthrolab run`"),
        (tmp_path / "empty.jsonl", "empty.jsonl: holds no dialogue; generate some"),
    ):
        done = command(path)
        assert done.returncode == 2 and says in done.stderr, done.stderr
    done = command(by_hand, "--side", "tested")
    assert (done.returncode, done.stderr) == (2, "error: --side tested: give evaluated, partner or both\n")


def test_the_report_has_a_row_for_each_side_of_each_run(measured: Measured) -> None:
    tested, partner = timing_table([measured]).frame.rows(named=True)
    assert (tested["System, side"], partner["System, side"]) == ("tiny-model, tested", "tiny-partner, partner")
    assert (tested["Messages"], tested["Unsent replies"], tested["Bursts of 2+"]) == ("44 in 11", "0", "0.0% of 44")
    assert partner["Reply delay, s"] == "15 (15 to 15), n = 44"
    # one ask of the tested side, silent over a draft; the partner's only reply broke the contract
    assert (tested["Silent"], tested["Read but silent"], tested["Interruptions"], tested["Rewritten"]) == (
        "100.0% of 11", "100.0% of 11", "100.0% of 11", "0.0% of 11",
    )  # fmt: skip
    assert (partner["Silent"], partner["Errors"], partner["Overlap"]) == ("–", "100.0% of 11", "100.0% of 11")
    assert (tested["Guarded"], partner["Guarded"]) == ("11", "0")


def test_the_csv_holds_every_measure_and_empty_cells_for_what_is_not_measured(measured: Measured) -> None:
    frame = timing_frame([measured])
    tested, partner = frame.rows(named=True)
    assert list(tested) == ["run", "side", "system", *timing_row(Timing())]
    assert (tested["side"], tested["system"], partner["system"]) == ("evaluated", "tiny-model", "tiny-partner")
    assert (tested["reply_delay_median_s"], tested["burst_lengths"], partner["silence_rate"]) == ("25.0", "1:44", "")


def test_the_figure_has_a_line_for_each_side_that_replied(measured: Measured) -> None:
    figure = delay_figure([measured])
    assert figure is not None
    tested, partner = figure.data
    assert (tested.name, partner.name) == (
        "tested: tiny-model (plain), replies: 39 sent, 0 unsent", "partner: tiny-partner (plain), replies: 44 sent, 0 unsent",
    )  # fmt: skip
    assert tested.line.color == partner.line.color and tested.line.dash != partner.line.dash
    # the tested side answers in 25 s, the opener in 20 s where the partner speaks first
    firsts = sum(d.messages[0].speaker != d.evaluated_role for d in measured.dialogues.values())
    assert list(tested.x) == [20, 20, 25] and list(tested.y) == pytest.approx([0, firsts / 39, 1])
    assert figure.layout.xaxis.type == "log" and "virtual time" in figure.layout.xaxis.title.text


def test_an_instant_reply_stands_on_the_logarithmic_axis(measured: Measured) -> None:
    one = next(iter(measured.dialogues.values()))
    me, partner = one.evaluated_role, other(one.evaluated_role)
    instant = one.model_copy(update={"messages": [message(partner, 0, opener=True), message(me, 0)], "asks": None})
    silent = one.model_copy(update={"messages": [message(partner, 0, opener=True)]})
    figure = delay_figure([replace(measured, dialogues={"x": instant})])
    assert figure is not None
    (line,) = figure.data
    assert line.name.endswith(", replies: 1 sent")  # without a log of asks nobody knows what was unsent
    assert min(line.x) > 0 and list(line.customdata) == [0, 0] and list(line.y) == [0, 1]
    assert delay_figure([replace(measured, dialogues={"x": silent})]) is None
