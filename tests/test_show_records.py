"""Failure records to browse: from the explorer, from a loop's rounds, in the notebook, and nothing of them acts."""

import shutil
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.files import append_line
from anthrolab.judging.rubric import load_rubric
from anthrolab.loop.filtering import filter_run
from anthrolab.loop.folder import Loop, LoopSettings
from anthrolab.loop.hints import load_hints
from anthrolab.loop.records import FailureRecord, RecordsError, failure_records, read_records, write_records
from anthrolab.show.explorer import FailureExplorer, failure_explorer
from anthrolab.show.explorer_page import write_explorer_page
from anthrolab.show.failure_sources import Source, published_source, run_source
from anthrolab.show.failures import collect
from anthrolab.show.measured import load_measured
from anthrolab.show.notebooks import run_notebooks
from anthrolab.show.records import (
    FOUND,
    add_records,
    found_records,
    hints_by_source,
    loop_records,
    loop_runs,
    records_by_box,
    records_table,
    suggestions_html,
)
from anthrolab.show.tables import great_table
from tests.browser import open_page
from tests.runs_for_tests import SAID, make_run

HINTS, LIBRARY, RUBRIC = load_hints(), load_library(default_cards_dir()), load_rubric()
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Source]:
    folder = tmp_path_factory.mktemp("runs")
    one = load_measured(make_run(folder / "one", cases=4), "rules")
    evil = load_measured(make_run(folder / "evil", system="<b>evil</b>", judge="big", cases=4, answers_all=True, said=(EVIL, EVIL + "2")), "big")
    return [run_source(one, LIBRARY), run_source(evil, LIBRARY)]


@pytest.fixture
def explorer(sources: list[Source], tmp_path: Path) -> FailureExplorer:
    return failure_explorer([*sources, published_source()], tmp_path / "out")


def record(n: int, box: str = "D1.3", **changes: object) -> FailureRecord:
    values = {
        "id": f"d{n}/{box}/3", "dialogue_id": f"d{n}", "evaluated_role": "a", "kind": "checkbox", "dimension": box.split(".")[0], "box": box,
        "scope": "turn", "turn_index": 2, "message_index": 3, "text": "首先好", "reason": "作文腔", "suggestion": HINTS.checkboxes[box],
    }  # fmt: skip
    return FailureRecord.model_validate({**values, **changes})


def test_every_failure_of_a_run_with_chats_has_its_record_and_a_ledger_alone_has_none(sources: list[Source]) -> None:
    failures = collect([*sources, published_source()])
    records = found_records(failures, failures.rows, hints_by_source(failures.sources))
    with_chat = failures.rows.filter(failures.rows["run"].is_not_null())
    assert [(r.dialogue_id, r.box, r.reason) for r in records] == [tuple(row) for row in with_chat.select("dialogue_id", "id", "reason").iter_rows()]
    first = next(r for r in records if r.box == "D1.3")
    assert (first.text, first.turn_index, first.judge, first.suggestion) == (SAID[1], 2, "rules", HINTS.checkboxes["D1.3"])
    assert first.context[-2].endswith(f"：{SAID[0]}") and first.category == LIBRARY.scenarios[first.scenario or ""].category
    gate = next(r for r in records if r.box == "L0-05")
    assert (gate.kind, gate.text, gate.dimension, gate.suggestion) == ("gate", SAID[1], None, HINTS.constraints["L0-05"])


def test_what_was_never_sent_is_no_failure_of_the_whole_dialogue(sources: list[Source]) -> None:
    measured = sources[0].measured
    assert measured is not None
    broken = {"id": "L0-04", "severity": "fatal", "message_index": -1, "evidence": "no JSON"}
    gate = {key: {**row, "violations": [*row["violations"], broken]} for key, row in measured.gate.items()}
    failures = collect([replace(sources[0], measured=replace(measured, gate=gate))])
    records = [r for r in found_records(failures, failures.rows, hints_by_source(failures.sources)) if r.box == "L0-04"]
    assert len(records) == 3 and {(r.message_index, r.scope, r.text, r.id.split("/")[2]) for r in records} == {(-1, "turn", None, "-1")}


def test_the_explorer_says_what_to_do_at_what_fails_and_only_there(explorer: FailureExplorer) -> None:
    explorer.pickers["system"].value = "tiny-model"
    explorer.pickers["checkbox"].value = "D1.3"
    shown = explorer.shown.value
    panel = shown.split("</details>")[0]
    assert "1 suggested repair<" in panel and "turn 2, turn 4" in panel and HINTS.checkboxes["D1.3"] in panel
    assert HINTS.checkboxes["E1.1"] not in shown, "the filter did not find it"
    explorer.pickers["checkbox"].value = ""
    assert "2 suggested repairs" in explorer.shown.value and "the dialogue" in explorer.shown.value
    explorer.pickers["system"].value = "GPT-5.5"
    assert "suggested" not in explorer.shown.value, "a ledger alone has no chats"


def test_the_button_writes_the_records_of_the_case_or_of_all_once_each(explorer: FailureExplorer) -> None:
    explorer.pickers["system"].value = "tiny-model"
    explorer.pickers["checkbox"].value = "D1.3"
    path = explorer.folder / FOUND
    explorer.write.click()
    first = read_records(path)
    assert {r.dialogue_id for r in first} == {"one-b01-a-0"} and [r.turn_index for r in first] == [2, 4]
    assert f"{path}: 2 new, 0 there already; it has 2 records now" in explorer.said.value
    explorer.which.value = True
    explorer.write.click()
    assert "2 new, 2 there already; it has 4 records now" in explorer.said.value and read_records(path)[:2] == first
    explorer.pickers["system"].value = "GPT-5.5"
    explorer.write.click()
    assert "its chat is not known" in explorer.said.value and len(read_records(path)) == 4
    explorer.pickers["system"].value = "tiny-model"
    append_line(path, "{}")
    explorer.write.click()
    assert "line 5" in explorer.said.value and "problem" in explorer.said.value


def test_a_record_written_again_is_replaced_and_another_judges_is_another(tmp_path: Path) -> None:
    path = tmp_path / "sub" / FOUND
    assert add_records(path, [record(1, judge="a"), record(2, judge="a")]) == (2, 2)
    assert add_records(path, [record(2, judge="a", reason="新"), record(2, judge="b")]) == (1, 3)
    assert [(r.dialogue_id, r.judge, r.reason) for r in read_records(path)] == [("d1", "a", "作文腔"), ("d2", "a", "新"), ("d2", "b", "作文腔")]
    before = path.stat().st_mtime_ns
    assert add_records(path, [record(1, judge="a")]) == (0, 3) and path.stat().st_mtime_ns == before


def test_tables_count_by_checkbox_and_keep_long_texts_short() -> None:
    records = [record(1, round=1), record(1, id="d1/D1.3/5", round=1), record(2, round=2), record(3, "E4.1", text=None, turn_index=None, round=2), *(record(n, text="长" * 500) for n in range(4, 50))]
    counted = records_by_box(records).frame.rows(named=True)
    assert [(r["What"], r["Failures"], r["Dialogues"], r["Rounds"]) for r in counted] == [("D1.3", "49", "48", "1, 2"), ("E4.1", "1", "1", "2")]
    listed = records_table(records)
    assert listed.frame.height == 30 and listed.notes == ["20 more are not shown."]
    assert listed.frame["Where"][0] == "d1, turn 2" and listed.frame["Where"][3] == "d3" and listed.frame["Text"][5] == "长" * 60 + "…"
    assert "Failure records" in great_table(records_table([])).as_raw_html() and "0 failure records" in great_table(records_by_box([])).as_raw_html()


def test_text_of_models_in_records_is_only_text(sources: list[Source], explorer: FailureExplorer) -> None:
    explorer.pickers["system"].value = "<b>evil</b>"
    records = explorer.state.records(everything=True)
    assert any(r.text == EVIL + "2" for r in records)
    evil = [r.model_copy(update={"box": EVIL, "reason": EVIL, "suggestion": EVIL}) for r in records]
    for html in (explorer.shown.value, great_table(records_table(evil)).as_raw_html(), great_table(records_by_box(evil)).as_raw_html(), suggestions_html(evil)):
        assert "<script>alert" not in html and "<img" not in html
    assert "&lt;script&gt;" in suggestions_html(evil)


def make_loop(folder: Path) -> Loop:
    """Two rounds, each with its run and its failure records."""
    loop = Loop(folder)
    loop.begin(LoopSettings(system="tiny-model", cases=["b01-a"]))
    for number in (1, 2):
        run = loop.run(number)
        make_run(run.path, cases=4, answers_all=True)
        filtered = filter_run(run, "rules", LIBRARY, RUBRIC)
        records = [r for f in filtered for r in failure_records(f, RUBRIC, HINTS, LIBRARY.all_scenarios(), number)]
        assert records
        write_records(loop.round_dir(number) / "failures.jsonl", records)
    return loop


def test_a_loops_buffer_is_that_of_its_rounds_in_order(tmp_path: Path) -> None:
    loop = make_loop(tmp_path / "loop")
    records = loop_records(str(loop.path))
    assert [r.round for r in records] == sorted(r.round or 0 for r in records) and {r.round for r in records} == {1, 2}
    assert loop_runs(str(loop.path)) == f"{loop.run(1).path},{loop.run(2).path}"
    assert loop_records("") == [] and loop_runs("") == ""
    with pytest.raises(RecordsError, match="holds no rounds"):
        loop_records(str(tmp_path))
    shutil.rmtree(loop.run(2).path / "ledgers")
    assert loop_runs(str(loop.path)) == str(loop.run(1).path), "what nobody judged has nothing to show"
    (loop.round_dir(2) / "failures.jsonl").unlink()
    assert {r.round for r in loop_records(str(loop.path))} == {1}, "a round that is not that far has none yet"


def test_the_static_page_says_what_to_do_at_the_failing_place(sources: list[Source], tmp_path: Path) -> None:
    with open_page(write_explorer_page([*sources, published_source()], tmp_path / "page.html")) as (page, log):
        page.select_option(".pick-system", "tiny-model")
        page.select_option(".pick-checkbox", "D1.3")
        said = page.locator(".line.marked .findings").first.inner_text()
        assert f"suggested repair: {HINTS.checkboxes['D1.3']}" in said
        page.select_option(".pick-system", "GPT-5.5")
        assert "suggested repair" not in page.locator(".shown").inner_text()
        page.select_option(".pick-checkbox", "")
        page.select_option(".pick-system", "<b>evil</b>")
        assert "suggested repair" in page.locator(".shown").inner_text() and page.locator("main script, main img").count() == 0
        assert (log.errors, log.dialogs) == ([], [])


def test_the_notebook_browses_a_loops_buffer(tmp_path: Path) -> None:
    loop = make_loop(tmp_path / "loop")
    one = make_run(tmp_path / "one", cases=4)
    lines: list[str] = []
    (made,) = run_notebooks(["05"], one, [f"loop={loop.path}", f"out={tmp_path / 'out'}"], progress=lines.append)
    outputs = [o.get("data", {}).get("text/html", "") for c in nbformat.read(made, as_version=4).cells if c.cell_type == "code" for o in c.outputs]
    counted = next(o for o in outputs if "What fails" in o)
    assert f"{len(loop_records(str(loop.path)))} failure records." in counted and "1, 2" in counted
    assert any("Failure records" in o and "one-b" not in o and "-r1-b" in o for o in outputs), "the loop's, not the run's"
    assert any("loop-r2" in line for line in lines)
