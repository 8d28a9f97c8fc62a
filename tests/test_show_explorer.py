"""The failure explorer: its state, its widgets, its static page in a browser, and the notebook in a real JupyterLab."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import nbformat
import polars as pl
import pytest

from anthrolab.bench.ledger import Ledger
from anthrolab.bench.selection import read_selection, selected_cases
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.cards.scenario import CATEGORIES
from anthrolab.show.beside import beside_html, case_html, pairs
from anthrolab.show.explorer import FailureExplorer, failure_explorer
from anthrolab.show.explorer_page import page_data, write_explorer_page
from anthrolab.show.explorer_state import PAGE, ExplorerState
from anthrolab.show.failure_sources import FailuresError, published_source, run_source
from anthrolab.show.failures import FACETS, Failures, collect
from anthrolab.show.measured import Measured, load_measured
from anthrolab.show.notebooks import run_notebooks
from anthrolab.show.pages import asset
from tests.browser import open_page
from tests.jupyter_for_tests import jupyter_lab, open_notebook
from tests.runs_for_tests import make_run

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "05_failures.ipynb"
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}"
CHAT = ("好呀 几点", "首先我想说", "OK 就这样")


MARKED_IN_VIEW = """(() => {
    const chat = document.querySelector('.al-pane .chat'), marked = chat.querySelector('.marked .bubble');
    const c = chat.getBoundingClientRect(), b = marked.getBoundingClientRect();
    return b.top >= c.top && b.bottom <= c.bottom;
})()"""


def made_runs(folder: Path) -> tuple[Path, Path, Path]:
    """Three systems on the same twelve cases; the third one writes HTML everywhere."""
    one = make_run(folder / "one", system="plain-model")
    two = make_run(folder / "two", system="other-model", judge="big", said=CHAT, answers_all=True)
    return one, two, make_run(folder / "evil", system="<b>evil</b>", said=(EVIL, EVIL + "2", "好 " * 120, "a" * 300))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[Measured]:
    one, two, evil = made_runs(tmp_path_factory.mktemp("runs"))
    return [load_measured(one, "rules"), load_measured(two, "big"), load_measured(evil, "rules")]


@pytest.fixture(scope="module")
def failures(measured: list[Measured]) -> Failures:
    return collect([*(run_source(m) for m in measured), published_source()])


def test_the_state_finds_lists_and_offers_with_counts(failures: Failures) -> None:
    state = ExplorerState(failures)
    assert state.pages == -(-(33 + 1359) // PAGE) and len(state.listed()) == PAGE
    state.ask(system="plain-model", checkbox="D1.3")
    assert state.counted() == "20 failures in 10 of 12 planned cases (1 invalid, 0 not judged, 1 not done)"
    assert state.listed()[0][0] == "b01-a · Sport · plain-model · one · rules judge · 2 failed: D1.3"
    labels = {facet: [label for label, _ in options] for facet, options in state.options().items()}
    assert labels["category"][0] == "any (20)" and "Sport (2)" in labels["category"]
    assert "L0-05 (1) Hard repetition" in labels["gate"]
    assert any(label.startswith("D1.3 (20) Is the message") for label in labels["checkbox"])
    state.ask(search="没有这样的话")
    assert state.case is None and state.place == 0 and state.html() == "<p>No failure matches these filters.</p>" and state.neighbours() == []
    assert ("plain-model (0)", "plain-model") in state.options()["system"], "what is asked for stays in sight"


def test_checkbox_and_gate_take_turns_and_a_dimension_drops_a_checkbox_of_another(failures: Failures) -> None:
    state = ExplorerState(failures)
    state.ask(dimension="D1")
    state.ask(checkbox="D1.3")
    state.ask(dimension="E3")
    assert (state.asked["dimension"], state.asked["checkbox"]) == ("E3", None)
    state.ask(gate="L0-05")
    assert (state.asked["dimension"], state.asked["gate"]) == (None, "L0-05") and state.found.height == 3
    state.ask(checkbox="D1.3")
    assert state.asked["gate"] is None and state.found.height > 0


def test_pages_turn_and_the_shown_case_stays_when_it_is_found_again(failures: Failures) -> None:
    state = ExplorerState(failures)
    state.turn_page(3)
    kept = state.case
    assert kept == state.listed()[0][1] and state.page == 3
    state.ask(search="")
    assert (state.case, state.page) == (kept, 3)
    assert state.place == 3 * PAGE + 1
    state.go_to(state.cases.height)
    assert (state.page, state.listed()[-1][1]) == (state.pages - 1, state.case)
    state.go_to(0)
    state.go_to(state.cases.height + 1)
    assert state.place == state.cases.height, "there is no such place"
    state.turn_page(99)
    assert state.page == state.pages - 1 and state.listed()
    state.turn_page(-99)
    assert state.page == 0


def test_beside_a_case_stand_the_other_systems_runs_and_samples_on_it_and_the_choice_stays(failures: Failures) -> None:
    state = ExplorerState(failures)
    state.ask(system="plain-model")
    labels = {key: label for label, key in state.neighbours()}
    assert labels["two · big", "other-model", 0] == "other-model · two · big: 2 failures"
    assert set(labels) == {("two · big", "other-model", 0), ("evil · rules judge", "<b>evil</b>", 0)}
    state.beside = ("two · big", "other-model", 0)
    assert state.html().count('class="al-pane"') == 2
    state.case = state.listed()[4][1]
    assert state.html().count('class="al-pane"') == 2
    state.ask(source="published (reconstructed)", system="GPT-5.5")
    assert len(state.neighbours()) == 15, "the published systems stand beside each other only"
    assert state.html().count('class="al-pane"') == 1


def test_the_failing_turn_is_marked_with_the_reason_and_the_others_are_not(failures: Failures) -> None:
    state = ExplorerState(failures)
    state.ask(system="plain-model", checkbox="D1.3")
    html = state.html()
    assert html.count('class="line right marked"') == 2
    part = html.split('class="line right marked"')[1]
    assert part.index('turn 2</span>') < part.index("刚看到 手上有点事") < part.index("D1.3</b>") < part.index("“首先”是作文腔")
    state.ask(checkbox="E1.1")
    html = state.html()
    assert "marked" not in html and html.count('class="fault chosen"') == 1 < html.index('class="fault chosen"') - html.index("Of the whole dialogue")
    state.ask(gate="L0-05")
    assert state.html().count('class="line right marked"') == 1 and "equals message 2" in state.html()


def test_the_comparison_counts_what_fails_in_either_case(failures: Failures) -> None:
    rows = {row["source"]: row for row in failures.cases.filter(pl.col("case_id") == "b01-a").iter_rows(named=True)}
    found = {p.id: (p.left, p.right) for p in pairs(failures, rows["one · rules judge"], rows["two · big"])}
    assert found["D1.3"] == ((2, 4), (1, 3))
    assert all(left[0] or right[0] for left, right in found.values())
    gate = failures.cases.filter((pl.col("source") == "one · rules judge") & (pl.col("valid") == False)).row(0, named=True)  # noqa: E712
    assert next((p.id, p.left, p.right) for p in pairs(failures, gate, rows["two · big"])) == ("L0-05", (1, 1), (0, 0))
    html = beside_html(failures, rows["one · rules judge"], rows["two · big"], {("D1.3", 3)})
    assert "plain-model · one · rules judge" in html and "<b>2</b> of 4" in html
    assert "two judges" in html
    assert "two judges" not in beside_html(failures, rows["one · rules judge"], rows["evil · rules judge"])
    left, right = html.split('class="al-pane"')[1:]
    assert left.count(" marked") == 1 and right.count(" marked") == 1, "the same checkbox is marked on the other side"


def test_the_comparison_leaves_out_what_was_not_assessed(measured: list[Measured]) -> None:
    first = (pl.col("turn_index") == 1) & (pl.col("dimension") == "D1") & (pl.col("checkbox") == 3)
    boxes = measured[0].ledger.checkboxes.with_columns(passed=pl.when(first).then(None).otherwise("passed"))
    sources = [replace(run_source(measured[0]), ledger=Ledger(measured[0].ledger.cases, boxes)), run_source(measured[1])]
    found = collect(sources)
    left, right = found.cases.filter(pl.col("case_id") == "b01-a").iter_rows(named=True)
    assert {p.id: (p.left, p.right) for p in pairs(found, left, right)}["D1.3"] == ((2, 3), (1, 3))


def test_a_ledger_without_chats_says_so_and_shows_what_failed_at_which_turn(failures: Failures) -> None:
    state = ExplorerState(failures)
    state.ask(system="GPT-5.5", checkbox="D1.1")
    html = state.html()
    assert "reconstructed ledger: no chats, not the authors&#39; data" in html
    turn = state.found.filter(pl.col("case") == state.case)["turn_index"][0]
    row = html.split(f'<th scope="row">turn {turn}</th>')[1].split("</tr>")[0]
    assert '<span class="box chosen">D1.1</span>' in row
    state.ask(source="published (reconstructed)")
    assert not [label for label, _ in state.options()["checkbox"] if "?" in label], "its checkboxes have no known wording"


def test_a_case_that_was_not_done_says_why(failures: Failures) -> None:
    case = failures.cases.filter((pl.col("source") == "one · rules judge") & pl.col("valid").is_null()).row(0, named=True)
    assert "not done yet; last time: unreachable: no answer from the server" in case_html(failures, case)


def not_asked(m: Measured, case_id: str) -> Measured:
    """The run with a chat that its judge was not asked about."""
    other = pl.col("case_id") != case_id
    cases = m.ledger.cases.with_columns(valid=pl.when(other).then("valid").otherwise(None))
    verdicts = {k: v for k, v in m.verdicts.items() if k != f"{m.run}-{case_id}-0"}
    return replace(m, ledger=Ledger(cases, m.ledger.checkboxes.filter(other)), verdicts=verdicts)


def test_a_chat_that_nobody_judged_is_shown_and_called_so_everywhere(measured: list[Measured], tmp_path: Path) -> None:
    runs = [measured[0], not_asked(measured[1], "b01-a")]
    failures = collect([run_source(m) for m in runs])
    state = ExplorerState(failures)
    assert state.counted().endswith("planned cases (2 invalid, 1 not judged, 2 not done)")
    assert {key: label for label, key in state.neighbours()}["two · big", "other-model", 0] == "other-model · two · big: not judged"
    state.beside = ("two · big", "other-model", 0)
    where = state.html().split('class="al-pane"')[2].split("</header>")[0]
    assert where.endswith("· not judged</span>") and "首先我想说" in state.html()
    with open_page(write_explorer_page(runs, tmp_path / "part.html"), width=1300) as (p, log):
        assert p.locator(".count").inner_text() == state.counted()
        p.select_option("select.beside", label="other-model · two · big: not judged")
        other = p.locator(".al-pane").nth(1)
        assert other.locator(".where").inner_text().endswith("· not judged")
        assert other.locator(".bubble", has_text="首先我想说").count() == 1 and log.errors == []


def test_hostile_text_is_only_text(failures: Failures, measured: list[Measured], tmp_path: Path) -> None:
    explorer = failure_explorer(failures.sources, tmp_path)
    explorer.pickers["system"].value = "<b>evil</b>"
    explorer.beside.value = explorer.beside.options[1][1]
    for html in (explorer.shown.value, explorer.counted.value, explorer._repr_mimebundle_()["text/html"], page_data(failures)[0]):
        assert "<script" not in html and "<img" not in html and "<b>evil" not in html
    assert "&lt;script&gt;alert(1)" in explorer.shown.value


def test_the_widgets_follow_the_state_and_write_the_selection(failures: Failures, tmp_path: Path) -> None:
    explorer = failure_explorer(failures.sources, tmp_path / "out")
    explorer.pickers["system"].value = "plain-model"
    explorer.pickers["checkbox"].value = "D1.3"
    assert "20 failures in 10 of 12" in explorer.counted.value and len(explorer.list.options) == 10
    explorer.list.value = explorer.list.options[2][1]
    chosen_case = explorer.state.row(explorer.state.case or 0)["case_id"]
    explorer.note.value = "像客服"
    explorer.to["repair"].click()
    (row,) = read_selection(tmp_path / "out" / "repair.jsonl")
    assert (row.run, row.system, row.case_id, row.dialogue_id, row.judge, row.ids, row.note) == (
        "one", "plain-model", chosen_case, f"one-{chosen_case}-0", "rules", ("D1.3",), "像客服",
    )  # fmt: skip
    assert "1 new, 0 there already; it has 1 cases now" in explorer.said.value
    explorer.which.value = True
    explorer.to["regression"].click()
    assert selected_cases(tmp_path / "out" / "regression.jsonl") == [explorer.state.row(c)["case_id"] for _, c in explorer.list.options]
    (tmp_path / "out" / "regression.jsonl").write_text("{", encoding="utf-8")
    explorer.to["regression"].click()
    assert "line 1" in explorer.said.value and "problem" in explorer.said.value


def test_cases_of_the_reconstructed_ledger_are_not_for_repair(failures: Failures, tmp_path: Path) -> None:
    explorer = failure_explorer(failures.sources, tmp_path)
    explorer.pickers["system"].value = "GPT-5.5"
    explorer.to["repair"].click()
    assert "choose a case of a run" in explorer.said.value and not list(tmp_path.iterdir())
    state = ExplorerState(failures)
    assert {row.run for row in state.selected(everything=True)} == {"one", "two", "evil"}
    state.ask(search="没有这样的话")
    with pytest.raises(FailuresError, match="no case is found"):
        state.selected(everything=False)


def test_going_through_everything_ends_where_it_began(failures: Failures, tmp_path: Path) -> None:
    explorer = FailureExplorer(ExplorerState(failures), tmp_path)
    before = (explorer.counted.value, explorer.list.options, explorer.list.value)
    for name, box in explorer.pickers.items():
        for _, value in list(box.options)[1:4]:
            box.value = value
            assert box.value == value and explorer.state.asked[name] == value
        box.value = ""
        assert box.index == 0, "a picker is never blank"
    explorer.place.value = 42
    assert explorer.list.options[41][1] == explorer.list.value == explorer.state.case
    explorer.place.value = PAGE + 1
    assert explorer.list.options != before[1] and explorer.list.index == 0 and explorer.place.value == PAGE + 1
    explorer.place.value = 1
    explorer.later.click()
    assert explorer.list.options != before[1] and explorer.place.value == PAGE + 1
    explorer.earlier.click()
    assert (explorer.counted.value, explorer.list.options, explorer.list.value) == before


@pytest.fixture(scope="module")
def page(measured: list[Measured], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("页面") / "failures.html"
    return write_explorer_page([*measured, published_source()], out, library=load_library(default_cards_dir()))


def test_the_page_picks_searches_and_lays_two_systems_side_by_side(page: Path) -> None:
    with open_page(page, width=1300) as (p, log):
        assert p.locator(".note", has_text="not the authors' data").count() == 1
        assert p.locator(".count").inner_text().startswith(
            f"{31 + 21 + 31 + 22837} failures in {33 + 1359} of {36 + 1600} planned cases ({3 + 26} invalid, 0 not judged, 3 not done)"
        )
        p.select_option(".pick-system", "plain-model")
        p.select_option(".pick-checkbox", "D1.3")
        assert p.locator(".count").inner_text() == "20 failures in 10 of 12 planned cases (1 invalid, 0 not judged, 1 not done)"
        assert p.locator(".pick-checkbox option:checked").inner_text().startswith("D1.3 (20) Is the message")
        assert p.locator(".list option").count() == 10
        assert p.locator(".line.marked .bubble").all_inner_texts() == ["刚看到 手上有点事", "行吧 先这样"]
        assert "“首先”是作文腔" in p.locator(".line.marked .findings").first.inner_text()
        assert p.locator(".line.unsent .bubble").all_inner_texts() == ["在呢在呢", "算了不发了"]
        p.locator(".list").focus()
        p.keyboard.press("ArrowDown")
        assert "b02-b" in p.locator(".al-pane .where").inner_text()
        p.select_option("select.beside", label="other-model · two · big: 2 failures")
        assert p.locator(".al-pane > header b").all_inner_texts() == ["plain-model", "other-model"]
        assert p.locator(".al-pane").nth(1).locator(".line.marked .bubble").all_inner_texts() == ["首先我想说"]
        p.select_option(".pick-system", "")
        p.select_option(".pick-checkbox", "")
        p.locator(".search").fill("想说 首先")
        assert p.locator(".count").inner_text().startswith("11 failures in 11 of 1636 planned cases (")
        p.locator(".search").fill("没有这样的话")
        assert "No failure matches these filters." in p.locator(".shown").inner_text()
        assert (log.console, log.errors, log.dialogs) == ([], [], [])
        assert log.requests == [page.resolve().as_uri()]


def test_the_page_scrolls_to_the_failing_turn(page: Path) -> None:
    with open_page(page, width=1300) as (p, _):
        p.add_style_tag(content=".al-pane .chat { max-height: 180px; }")
        p.select_option(".pick-system", "plain-model")
        p.select_option(".pick-gate", "L0-05")
        p.wait_for_function("document.querySelector('.chat').scrollTop > 0")
        assert p.evaluate(MARKED_IN_VIEW)
        p.wait_for_timeout(600)
        p.evaluate("document.querySelector('.chat').scrollTop = 0")
        assert p.evaluate("document.querySelector('.chat').scrollTop") == 0, "and then lets go"


def test_model_text_on_the_page_does_nothing_and_is_shown_as_written(page: Path) -> None:
    with open_page(page) as (p, log):
        p.select_option(".pick-system", "<b>evil</b>")
        assert p.locator(".bubble").filter(has_text=EVIL).count() >= 2
        assert p.locator("main script, main img, main b:text-is('evil')").count() == 0
        assert p.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1")
        assert log.dialogs == []


def test_the_page_saves_what_is_found_as_a_selection_file(page: Path, tmp_path: Path) -> None:
    with open_page(page) as (p, _):
        p.select_option(".pick-system", "plain-model")
        p.select_option(".pick-checkbox", "D1.3")
        with p.expect_download() as download:
            p.locator(".save").click()
        download.value.save_as(tmp_path / "s.jsonl")
        rows = read_selection(tmp_path / "s.jsonl")
        assert len(rows) == 10 and {(r.run, r.system, r.judge, r.ids) for r in rows} == {("one", "plain-model", "rules", ("D1.3",))}


def test_the_page_and_the_notebook_agree(page: Path, failures: Failures) -> None:
    state = ExplorerState(failures)
    asked = [{}, {"source": "two · big"}, {"category": "Work", "role": "b"}, {"dimension": "D1"}, {"gate": "L0-05"}, {"checkbox": "E1.1"}, {"dimension": "E1", "system": "other-model"}]
    with open_page(page) as (p, _):
        for one in asked:
            for facet in FACETS:
                p.select_option(f".pick-{facet}", one.get(facet, ""))
            state.asked = {}
            state.ask(**one)  # type: ignore[arg-type]
            assert p.locator(".count").inner_text().split(";")[0] == state.counted(), one
            for facet, options in state.options().items():
                shown = p.locator(f".pick-{facet} option").evaluate_all("os => os.map(o => o.textContent)")
                assert shown == [label for label, _ in options], (one, facet)


def test_without_javascript_there_is_a_list_to_read(page: Path) -> None:
    from playwright.sync_api import sync_playwright

    from tests.browser import FLAGS, find_chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        try:
            p = browser.new_context(java_script_enabled=False).new_page()
            p.goto(page.resolve().as_uri())
            assert p.locator("noscript .al-listed").count() == 24
            assert p.locator(".al-listed summary b").first.inner_text() == "b01-a"
            p.locator(".al-listed > summary").first.click()
            assert p.locator(".al-listed .bubble", has_text="刚看到 手上有点事").first.is_visible()
            assert "Shown here: 24 of the failing cases" in p.locator("noscript").inner_text()
        finally:
            browser.close()


def test_a_page_that_would_be_too_large_says_what_it_leaves_out(measured: list[Measured], tmp_path: Path) -> None:
    whole, nothing = page_data(collect([run_source(m) for m in measured]))
    assert nothing == {"chats": 0, "cases": 0} and len(json.loads(whole)["cases"]) == 36
    data, left = page_data(collect([run_source(m) for m in measured]), max_bytes=25_000)
    cases = json.loads(data)["cases"]
    with_chat = [c for c in cases if "chat" in c]
    assert left == {"chats": 33 - len(with_chat), "cases": 0} and 0 < len(with_chat) < 33
    assert sum(len(json.dumps(c, ensure_ascii=False, separators=(",", ":")).encode()) for c in cases) <= 25_000
    out = write_explorer_page(measured, tmp_path / "small.html", max_bytes=2_000)
    left = page_data(collect([run_source(m) for m in measured]), max_bytes=2_000)[1]
    said = out.read_text(encoding="utf-8")
    assert left["cases"] > 0 and f"{left['cases']} cases are left out to keep this file small; neither pickers nor search see them." in said
    assert f"{left['chats']} chats are left out to keep this file small; they are in the run folders, and the search does not see their messages." in said
    with open_page(out) as (p, log):
        assert "left out to keep" in p.locator(".why").inner_text() and log.errors == []
        assert p.locator(".count").inner_text().endswith("of 36 planned cases (3 invalid, 0 not judged, 3 not done)"), "left out ones are planned too"


def test_the_page_has_its_categories_from_the_data(measured: list[Measured]) -> None:
    head = json.loads(page_data(collect([run_source(measured[0])]))[0])["head"]
    assert head["categories"] == list(CATEGORIES)
    script = asset("explorer.js")
    assert not [c for c in CATEGORIES if f'"{c}"' in script]


def test_a_page_of_one_run_has_no_sources_to_pick(measured: list[Measured], tmp_path: Path) -> None:
    with open_page(write_explorer_page(measured[:1], tmp_path / "one.html")) as (p, _):
        assert not p.locator(".pick-source").is_visible() and p.locator(".pick-system").is_visible()
        assert p.title() == "anthrolab failures: one"


def test_the_same_runs_give_the_same_page(page: Path, measured: list[Measured], tmp_path: Path) -> None:
    again = write_explorer_page([*measured, published_source()], tmp_path / "again.html", library=load_library(default_cards_dir()))
    assert again.read_bytes() == page.read_bytes()


def test_without_a_kernel_the_notebook_has_a_list(failures: Failures, tmp_path: Path) -> None:
    bundle = failure_explorer(failures.sources, tmp_path)._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/html"].count('class="al-listed"') == 24 and "刚看到 手上有点事" in bundle["text/html"]
    assert len(bundle["text/html"]) < 600_000


def test_the_notebook_runs_headless_on_several_runs_and_writes_its_page(tmp_path: Path) -> None:
    one, two, _ = made_runs(tmp_path)
    lines: list[str] = []
    (made,) = run_notebooks(["05"], one, [f"run_dirs={two}", f"out={tmp_path / 'out'}", "ledger_dir=published"], progress=lines.append)
    assert made == one / "notebooks" / "05_failures.ipynb"
    assert "plain-model, one · rules judge: 31 failures in 11 of 12 cases" in lines
    assert lines[-1] == f"page: {tmp_path / 'out' / 'explorer.html'}" and lines[-2] == "cases not done: 2, not judged: 0"
    with open_page(tmp_path / "out" / "explorer.html") as (p, log):
        assert p.locator(".pick-system option").count() == 1 + 2 + 16 and log.errors == []
    outputs = [o for c in nbformat.read(made, as_version=4).cells if c.cell_type == "code" for o in c.outputs]
    assert any("al-listed" in o.get("data", {}).get("text/html", "") for o in outputs)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notebook as it is, with the parameters of small runs."""
    folder = tmp_path_factory.mktemp("lab")
    made_runs(folder / "runs")
    text = NOTEBOOK.read_text(encoding="utf-8")
    for name, default, value in (("run_dir", "runs/quick", "runs/one"), ("run_dirs", "", "runs/two, runs/evil"), ("out", "", "out"), ("cards_dir", "", str(default_cards_dir()))):
        before = f'{name}: str = \\"{default}\\"'
        assert before in text
        text = text.replace(before, f'{name}: str = \\"{value}\\"')
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / NOTEBOOK.name).write_text(text, encoding="utf-8")
    return folder


def choose(page: Any, box: str, starts: str) -> None:
    """Pick the option that starts so, as soon as it is offered; JupyterLab writes its blanks as no-break spaces."""
    there = "([box, starts]) => [...document.querySelectorAll(box + ' option')].some(o => o.textContent.replaceAll('\\u00a0', ' ').startsWith(starts))"
    page.wait_for_function(there, arg=[box, starts])
    labels = [text.replace("\u00a0", " ") for text in page.locator(f"{box} option").all_text_contents()]
    page.locator(f"{box} select").select_option(index=next(i for i, label in enumerate(labels) if label.startswith(starts)))


def test_in_jupyterlab_a_failing_turn_is_found_compared_and_sent_to_a_file(lab: Path) -> None:
    with jupyter_lab(lab) as address, open_notebook(address, f"notebooks/{NOTEBOOK.name}", height=1400) as (page, log):
        page.wait_for_selector(".al-list option", state="attached", timeout=120_000)
        assert page.locator(".al-explorer select").evaluate_all("all => all.map(s => s.selectedIndex)") == [0] * 10, "none is blank"
        choose(page, ".al-pick-system", "plain-model (")
        page.wait_for_selector(".al-count >> text=31 failures in 11 of 12")
        page.add_style_tag(content=".al-pane .chat { max-height: 180px !important; }")
        choose(page, ".al-pick-checkbox", "D1.3 (20)")
        page.wait_for_selector(".al-count >> text=20 failures in 10 of 12")
        assert page.locator(".al-shown .marked .bubble").all_inner_texts() == ["刚看到 手上有点事", "行吧 先这样"]
        assert "“首先”是作文腔" in page.locator(".al-shown .marked .findings").first.inner_text()
        assert page.locator(".al-shown .unsent .bubble").all_inner_texts() == ["在呢在呢", "算了不发了"]
        page.wait_for_function("document.querySelector('.al-shown .chat').scrollTop > 0")
        assert page.evaluate(MARKED_IN_VIEW)
        choose(page, ".al-beside", "other-model")
        page.wait_for_function("document.querySelectorAll('.al-shown .al-pane').length === 2")
        assert page.locator(".al-shown .al-pane").nth(1).locator(".marked .bubble").all_inner_texts() == ["首先我想说"]
        page.locator(".al-place input").focus()
        page.keyboard.press("ArrowUp")
        page.wait_for_selector(".al-shown .where >> text=b02-b")
        assert page.locator(".al-list select").evaluate("s => s.selectedIndex") == 1, "the list follows the keyboard"
        assert page.locator(".al-shown .al-pane").count() == 2, "what stands beside stays"
        page.locator(".al-note input").fill("像客服")
        page.locator(".al-note input").press("Tab")
        page.locator("button.al-to-repair").click()
        page.wait_for_selector(".al-said >> text=1 new")
        page.locator(".al-search input").fill("没有这样的话")
        page.wait_for_selector(".al-shown >> text=No failure matches these filters.")
        page.locator(".al-search input").fill("手上 作文腔")
        page.wait_for_selector(".al-count >> text=10 failures in 10 of 12")
        choose(page, ".al-which", "all found cases")
        page.locator("button.al-to-regression").click()
        page.wait_for_selector(".al-said >> text=10 new")
        choose(page, ".al-pick-checkbox", "any")
        page.locator(".al-search input").fill("")
        choose(page, ".al-pick-system", "<b>evil</b>")
        page.wait_for_selector(".al-shown .bubble >> text=<script>alert(1)")
        assert page.locator(".al-shown script, .al-shown img").count() == 0
        assert log.errors == [] and log.dialogs == []
        assert [r for r in log.requests if not r.startswith((address, "data:", "blob:"))] == []
    (row,) = read_selection(lab / "out" / "repair.jsonl")
    assert (row.run, row.case_id, row.dialogue_id, row.ids, row.note) == ("one", "b02-b", "one-b02-b-0", ("D1.3",), "像客服")
    assert len(selected_cases(lab / "out" / "regression.jsonl")) == 10
    assert (lab / "out" / "explorer.html").is_file()


def test_in_jupyterlab_the_sixteen_systems_are_seen_and_picked_and_the_times_are_reported(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    cells = ["from pathlib import Path\nfrom anthrolab.show.explorer import failure_explorer\nfrom anthrolab.show.failure_sources import published_source",
             "failure_explorer([published_source()], Path('out'))"]  # fmt: skip
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}})
    notebook.cells = [nbformat.v4.new_code_cell(c) for c in cells]
    (tmp_path / "published.ipynb").write_text(nbformat.writes(notebook), encoding="utf-8")
    with jupyter_lab(tmp_path) as address, open_notebook(address, "published.ipynb", height=1400) as (page, log):
        start = perf_counter()
        page.wait_for_selector(".al-count >> text=22837 failures in 1359 of 1600", timeout=120_000)
        times = {"opened notebook, all cells, first time": perf_counter() - start}
        page.locator(".jp-Notebook .jp-CodeCell .jp-Editor").nth(1).click()
        page.evaluate("window.before = document.querySelector('.al-count')")
        start = perf_counter()
        page.keyboard.press("Shift+Enter")
        again = "(() => { const c = document.querySelector('.al-count'); return c && c !== window.before && document.querySelector('.al-list option') && document.querySelector('.al-shown .al-pane'); })()"
        page.wait_for_function(again, polling=10)
        times["first view"] = perf_counter() - start
        changed = """async ([box, label, wanted]) => {
            const select = document.querySelector(box + ' select');
            const index = [...select.options].findIndex(o => o.textContent.replaceAll('\\u00a0', ' ').startsWith(label));
            const start = performance.now();
            select.selectedIndex = index;
            select.dispatchEvent(new Event('change', {bubbles: true}));
            const done = () => {
                const list = document.querySelector('.al-list select'), [id] = list.options[list.selectedIndex].textContent.split(/\\s/);
                return document.querySelector('.al-count').textContent.includes(wanted) && document.querySelector('.al-shown .where').textContent.includes(id);
            };
            while (!done()) await new Promise(requestAnimationFrame);
            return (performance.now() - start) / 1000;
        }"""
        found = {}
        for box, label, wanted in (
            (".al-pick-system", "GPT-5.5 (", "1137 failures in 75 of 100"), (".al-pick-category", "Work (", "of 100"),
            (".al-pick-category", "any (", "1137 failures in 75 of 100"), (".al-pick-checkbox", "D1.3 (", "43 failures in 30 of 100"),
            (".al-pick-system", "any (", "of 1600"), (".al-pick-checkbox", "any (", "22837 failures"), (".al-pick-gate", "L0 (26)", "26 failures in 26"),
        ):  # fmt: skip
            found[f"{box} {label}"] = page.evaluate(changed, [box, label, wanted])
        times["changed selection, median"] = sorted(found.values())[len(found) // 2]
        times["changed selection, at most"] = max(found.values())
        assert "not the authors' data" in page.locator(".al-shown .why").inner_text()
        assert log.errors == []
    for name, seconds in times.items():
        print(f"16-system ledger in the browser: {name}: {seconds:.3f} s")
        record_property(name, round(seconds, 3))
