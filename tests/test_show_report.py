"""The report, read as bytes and opened in a browser."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from jinja2 import ChainableUndefined
from markupsafe import Markup

from anthrolab.bench.ledger import Ledger
from anthrolab.bench.published import published_table
from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.show.measured import Measured, load_all
from anthrolab.show.pages import environment
from anthrolab.show.report import CONTENTS, chats_of, write_report
from tests.browser import open_page
from tests.runs_for_tests import make_run

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two runs, in one of which the tested side writes HTML."""
    folder = tmp_path_factory.mktemp("report")
    plain = make_run(folder / "runs" / "plain")
    evil = make_run(folder / "runs" / "evil", system="<b>evil</b>", said=(EVIL, "好 " * 120, "a" * 300))
    return write_report([plain, evil], folder / "out")


def test_is_one_small_file_with_plotly_once(report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    assert len(text.encode("utf-8")) < 8_000_000
    assert text.count("plotly.js v") == 1
    assert 'src="http' not in text
    assert "<link rel=\"stylesheet\"" not in text


def test_same_inputs_give_the_same_bytes(report: Path, tmp_path: Path) -> None:
    runs = report.parents[1] / "runs"
    again = write_report([runs / "plain", runs / "evil"], tmp_path / "again")
    files = sorted(p.relative_to(report.parent) for p in report.parent.rglob("*") if p.is_file())
    assert len(files) == 2 + 12 + 6 + 3 * 5 + 2 * 2  # pages, Markdown, CSV of all runs, tables of 3 blocks, coverage and passes of 2
    for name in files:
        assert (again.parent / name).read_bytes() == (report.parent / name).read_bytes(), name


def test_csv_files_have_the_papers_headers_and_no_marks(report: Path) -> None:
    for number in (7, 8, 9, 10, 11):
        published = pl.read_csv(report.parent / "tables" / "published" / f"table{number}.csv", infer_schema=False)
        measured = pl.read_csv(report.parent / "tables" / "plain-rules" / f"table{number}.csv", infer_schema=False)
        assert published.equals(published_table(number))
        assert measured.columns == published.columns
        assert measured["Model"].to_list() == ["tiny-model"]
    assert "*" not in "".join(p.read_text(encoding="utf-8") for p in report.parent.glob("tables/*/*.csv"))


def test_secrets_in_addresses_and_paths_of_this_machine_do_not_come_along(report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    assert "secret" not in text.split("plotly.js v")[0] + text.split("</script>", 1)[1]
    assert str(report.parents[1]) not in text
    assert "http://localhost:1/v1" in text


def test_opens_offline_without_a_complaint(report: Path) -> None:
    with open_page(report) as (page, log):
        assert page.title() == "anthrolab report: plain, evil"
        assert log.console == []
        assert log.errors == []
        assert log.requests == [report.resolve().as_uri()]
        assert page.locator(".js-plotly-plot .main-svg").count() >= 3
        assert page.evaluate("(ids => ids.length - new Set(ids).size)([...document.querySelectorAll('[id]')].map(e => e.id))") == 0
        assert page.locator("html").get_attribute("lang") == "en"
        assert page.locator(".bubble").first.get_attribute("lang") == "zh"
        assert "CJK" in page.evaluate("getComputedStyle(document.querySelector('.bubble')).fontFamily")


def test_model_text_does_nothing_and_is_shown_as_written(report: Path) -> None:
    with open_page(report) as (page, log):
        assert log.dialogs == []
        assert page.locator(".bubble", has_text="<script>alert(1)</script>").count() > 0
        assert page.locator(".bubble script, .bubble img, table b:text('evil')").count() == 0
        assert page.locator(".bubble").filter(has_text="{{ 7 * 7 }}").count() > 0
        assert page.locator("th", has_text="<b>evil</b>").count() > 0


@pytest.mark.parametrize("width", [1280, 1600])
def test_nothing_is_wider_than_the_page(report: Path, width: int) -> None:
    with open_page(report, width=width) as (page, _):
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        wide = page.evaluate(
            "[document.documentElement, ...document.querySelectorAll('.table > div, table, .figure, .chat, .bubble')]"
            ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.tagName + '#' + e.id + '.' + e.className)"
        )
        assert wide == []
        assert page.locator("table").count() > 15


def test_published_and_measured_rows_look_different(report: Path) -> None:
    with open_page(report) as (page, _):
        colours = page.evaluate(
            "[...document.querySelectorAll('#table7 tbody tr')].map(r => "
            "[r.firstElementChild.textContent, getComputedStyle(r.firstElementChild).backgroundColor])"
        )
        by_name = dict(colours)
        assert by_name["Gemini-3.5-Flash"] != by_name["tiny-model"]
        headings = [text for text, _ in colours if "·" in text]
        bands = [colour for text, colour in colours if "·" in text]
        assert bands == ["rgb(223, 228, 234)", "rgb(255, 223, 142)", "rgb(255, 223, 142)"]
        assert len(headings) == 3
        assert headings[0].startswith("Published in the AnthroDial paper")
        assert "judge: rules judge · partner: tiny-partner" in headings[1]
        assert "10 valid of 12 planned cases" in headings[1]


def test_timing_stands_apart_from_scores_with_a_row_for_each_side(report: Path) -> None:
    with open_page(report) as (page, _):
        section = page.locator("section#timing")
        assert "Descriptive, not a score" in section.inner_text()
        rows = section.locator("tbody tr").evaluate_all("rs => rs.map(r => [...r.children].slice(0, 4).map(c => c.textContent))")
        assert [row for row in rows if len(row) == 4] == [
            ["tiny-model, tested", "plain", "44 in 11", "25 (25 to 25), n = 39"],
            ["tiny-partner, partner", "plain", "44 in 11", "15 (15 to 15), n = 44"],
            ["<b>evil</b>, tested", "evil", "33 in 11", "25 (25 to 25), n = 28"],
            ["tiny-partner, partner", "evil", "33 in 11", "15 (15 to 15), n = 33"],
        ]
        headers = section.locator("thead th").all_text_contents()
        assert "Unsent replies" in headers and "Interruptions" in headers
        legend = section.locator(".legendtext").all_text_contents()
        assert "tested: <b>evil</b> (evil), replies: 28 sent, 0 unsent" in legend
        assert len(legend) == 4
    assert pl.read_csv(report.parent / "tables" / "timing-by-side.csv", infer_schema=False).height == 4


def contents(page: Any) -> list[str]:
    texts: list[str] = page.locator("nav a").all_text_contents()
    return texts


def test_stops_and_faults_have_a_section_and_their_warnings_stand_at_the_top_and_over_the_rows(report: Path) -> None:
    with open_page(report) as (page, _):
        assert "Stops and faults" in contents(page)
        tables = page.locator("section#stops td.gt_title, section#stops .gt_title").all_text_contents()
        assert [t.strip() for t in tables] == [
            "Why chats stopped", "Whose fault", "Replies by side",
            "Dialogues that could not be had: run plain", "Dialogues that could not be had: run evil",
        ]  # fmt: skip
        banners = page.locator("header .banner").all_text_contents()
        assert [b[:9] for b in banners] == ["Run plain", "Run evil:"]
        said = "11 of 11 replies of its partner tiny-partner (100.0%) broke the output contract"
        assert all(said in banner for banner in banners)
        assert "<b>evil</b> chats" in banners[1] and page.locator(".banner b").count() == 0
        for table in ("table7", "table8", "table9", "table10", "table11", "pass-definitions"):
            over = page.locator(f"#{table} .gt_group_heading").all_text_contents()
            assert [said in text for text in over] == [False, True, True], table
        # headline and banner are read one after the other, so the headline does not repeat it
        assert said not in page.locator(".headline").first.inner_text()


def test_warnings_stand_in_markdown_and_never_in_csv(report: Path) -> None:
    assert (report.parent / "tables" / "table7.md").read_text(encoding="utf-8").count("Do not read this row") == 2
    assert not any("Do not read" in p.read_text(encoding="utf-8") for p in report.parent.rglob("*.csv"))


def test_definitions_of_a_pass_stand_side_by_side_and_as_files(report: Path) -> None:
    with open_page(report) as (page, _):
        section = page.locator("section#passes")
        assert section.locator("thead th").all_text_contents()[-7:] == [
            "Model", "strict ACC", "ACC@85", "ACC@90", "ACC@95", "both roles", "training filter",
        ]  # fmt: skip
        assert "what the paper's sections 4.5 and 4.6 accept as training data" in section.inner_text()
    rows = pl.read_csv(report.parent / "tables" / "plain-rules" / "passes.csv", infer_schema=False)
    assert rows["Definition"].to_list() == ["strict ACC", "ACC@85", "ACC@90", "ACC@95", "both roles", "training filter"]
    assert not (report.parent / "tables" / "published" / "passes.csv").exists()


def test_a_run_without_trouble_has_no_warning_and_a_partial_report_says_so_first(tmp_path: Path) -> None:
    run = make_run(tmp_path / "fine", answers_all=True, partner_breaks=False, failed_side="partner")
    page = write_report([run], tmp_path / "whole")
    text = page.read_text(encoding="utf-8").split("plotly.js v", 1)[1].split("</script>", 1)[1]
    assert 'class="banner' not in text and "Do not read" not in text
    assert 'href="#agreement"' not in text and 'href="#spend"' not in text
    assert "Not had: the partner&#x27;s endpoint failed" in text or "Not had: the partner's endpoint failed" in text
    partial = write_report([run], tmp_path / "part", partial="Partial report: 11 of 12 <dialogues> done.")
    with open_page(partial) as (opened, _):
        assert opened.locator("header .banner").all_text_contents() == ["Partial report: 11 of 12 <dialogues> done."]
        # cells with rate, interval and counts in every column
        assert opened.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('#pass-definitions'))") <= 1


def test_the_page_has_room_for_warnings_agreement_and_spend() -> None:
    filled = environment().overlay(undefined=ChainableUndefined).get_template("report.html").render(
        contents=CONTENTS, warnings=["judge & tested of one family"], agreement=[Markup("<i>kappa</i>")], spend=Markup("<i>cost</i>"),
    )  # fmt: skip
    assert '<p class="banner mild" role="note">judge &amp; tested of one family</p>' in filled
    assert "<i>kappa</i>" in filled.split('<section id="agreement">')[1].split("</section>")[0]
    assert "<i>cost</i>" in filled.split('<section id="spend">')[1].split("</section>")[0]
    assert '<a href="#agreement">' in filled and '<a href="#spend">' in filled
    empty = environment().overlay(undefined=ChainableUndefined).get_template("report.html").render(contents=CONTENTS, agreement=[])
    assert "agreement" not in empty and "spend" not in empty and "banner" not in empty


def test_every_category_with_a_dialogue_can_be_read(report: Path) -> None:
    with open_page(report) as (page, _):
        assert page.locator("#dialogues details.dialogue").count() == 2 * 11
        first = page.locator("#dialogues details.dialogue").first
        for text in ("opener, given", "draft dropped: repeats an earlier message", "D1.3", "“首先”是作文腔", "turn 4"):
            assert text in first.inner_text(), text
        assert "decisions without a message" in first.inner_text()


def test_over_a_chat_that_one_judge_was_not_asked_about_stands_no_validity_and_one_judges_invalid_is_enough(tmp_path: Path) -> None:
    (one,) = load_all(make_run(tmp_path / "r", partner_breaks=False))
    key = next(iter(one.verdicts))

    def by_another_judge(valid: bool | None) -> Measured:
        cases = one.ledger.cases.drop("case")
        own = cases["case_id"] == one.case(one.dialogues[key])["case_id"]
        changed = cases.with_columns(valid=pl.when(own).then(pl.lit(valid, pl.Boolean)).otherwise("valid"))
        return replace(one, judge="big", verdicts={}, ledger=Ledger(changed, one.ledger.checkboxes.drop("case")))

    def outcome(*judges: Measured) -> str:
        return chats_of(judges, load_library(default_cards_dir()))[0].outcome

    assert "both fell silent · valid · rules judge" in outcome(one, by_another_judge(True))
    assert "both fell silent · rules judge" in outcome(one, by_another_judge(None))
    assert "both fell silent · invalid (found by the judge)" in outcome(one, by_another_judge(False), by_another_judge(None))
    assert "both fell silent · invalid (found by the judge)" in outcome(by_another_judge(None), by_another_judge(False))


def test_the_coverage_section_says_by_which_rung_a_model_judge_answered(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path / "r", judge="big", answers_all=True))
    verdicts = [v.model_copy(update={"rungs": {"json_object": 4}, "from_reasoning": 1}) for v in run.verdicts("big").values()]
    run.settle("verdicts.jsonl", [v.to_line() for v in verdicts])
    with open_page(write_report([run.path], tmp_path / "out")) as (page, _):
        cells = page.locator("section#coverage #judge-answers tbody tr").first.locator("th, td").all_text_contents()
        assert cells == ["r, big", "0", "40", "0", "40", "10"]


def test_a_run_that_is_not_judged_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    with pytest.raises(RunError, match=r"no manifest\.json"):
        write_report([tmp_path / "r"], tmp_path / "out")
    (tmp_path / "r" / "manifest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RunError, match="run is missing; restore the file"):
        write_report([tmp_path / "r"], tmp_path / "out")
    shutil.rmtree(make_run(tmp_path / "r") / "ledgers")
    with pytest.raises(RunError, match="judge rules has not come to its end; go on with"):
        write_report([tmp_path / "r"], tmp_path / "out")
    (tmp_path / "r" / "verdicts.jsonl").unlink()
    with pytest.raises(RunError, match="not judged yet; do: anthrolab judge"):
        write_report([tmp_path / "r"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_ledger_older_than_the_dialogues_or_of_another_rubric_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r")
    path = run / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["counts"]["done"] += 1
    path.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(RunError, match="has dialogues that judge rules has not seen"):
        write_report([run], tmp_path / "out")
    manifest["judges"]["rules"]["rubric"] = "another"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(RunError, match=r"used the rubric anthrodial-44 \(another\)"):
        write_report([run], tmp_path / "out")


def test_two_runs_of_one_name_are_refused(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / "x" / "r"), make_run(tmp_path / "y" / "r")]
    with pytest.raises(RunError, match="the same name"):
        write_report(runs, tmp_path / "out")
