"""The page and the notebook of a loop's skills: what they count, what they show of a change, and what a browser makes of it."""

import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from anthrolab.errors import AnthrolabError
from anthrolab.loop.folder import Loop, LoopError
from anthrolab.show.loop_view import read_loop
from anthrolab.show.notebooks import run_notebooks
from anthrolab.show.skill_diffs import diff_lines, diffs_html
from anthrolab.show.skills import (
    ab_table,
    became,
    failures_table,
    rounds_figure,
    rounds_table,
    skills_figure,
    versions_table,
    write_skills_page,
)
from anthrolab.show.tables import as_html
from tests.browser import open_page
from tests.loop_for_tests import FAILING, STATUSES, add_failures, begin_loop, make_loop


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Loop:
    return make_loop(tmp_path_factory.mktemp("loops") / "圈 <一>")


@pytest.fixture(scope="module")
def page(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_skills_page(read_loop(loop.path), tmp_path_factory.mktemp("pages") / "skills.html")


def test_rounds_are_counted_as_their_files_say(loop: Loop) -> None:
    view = read_loop(loop.path)
    frame = rounds_table(view).frame
    for row, counts in zip(frame.iter_rows(named=True), STATUSES, strict=True):
        assert {s.capitalize(): row[s.capitalize()] for s in counts} == {s.capitalize(): str(n) for s, n in counts.items()}
        assert row["Dialogues"] == str(sum(counts.values())) == "12"
    assert frame["Repaired"].to_list() == ["1", "2", "3"]
    assert frame["Held back, accepted"].to_list() == ["1 of 4", "2 of 4", "3 of 4"]
    assert frame["Skills"][0] == "message_style v1 to v2" and "topic_progression was refused: text has 2210" in frame["Skills"][1]


def test_failures_stand_by_dimension_with_their_skill(loop: Loop) -> None:
    frame = failures_table(read_loop(loop.path)).frame
    counted = {row["Failed"]: (row["Skill"], [int(v) for k, v in row.items() if k.startswith("Round")]) for row in frame.iter_rows(named=True)}
    assert counted["D1"] == ("message_style", [5, 1, 0]) and counted["E4"] == ("topic_progression", [4, 5, 2])
    assert counted["L0-05"] == ("topic_progression", [1, 0, 0]) and counted["D3"] == ("human_like_reply", [0, 1, 3])
    assert sum(sum(n) for _, n in counted.values()) == sum(sum(f.values()) for f in FAILING)
    assert list(counted) == ["D1", "D2", "D3", "E4", "E5", "L0-05"]


def test_failures_of_held_back_bindings_are_in_no_count(tmp_path: Path) -> None:
    loop = make_loop(tmp_path / "l", rounds=1)
    add_failures(loop, 1, {"D1.3": 4}, binding="b07")
    assert failures_table(read_loop(loop.path)).frame.columns == ["Failed"]


def test_the_curves_have_a_point_a_round_and_a_star_where_a_skill_was_rewritten(loop: Loop) -> None:
    view = read_loop(loop.path)
    lines = {t.name: list(t.y) for t in rounds_figure(view).data}
    assert lines["accepted"] == pytest.approx([100 * 4 / 12, 50, 100 * 7 / 12])
    assert lines["accepted or repaired"] == pytest.approx([100 * 5 / 12, 100 * 8 / 12, 100 * 10 / 12])
    assert lines["held back: accepted"] == [25, 50, 75]
    stars = {t.name: list(t.marker.symbol) for t in skills_figure(view).data}
    assert stars == {
        "message_style": ["star", "circle", "circle"], "topic_progression": ["circle"] * 3, "human_like_reply": ["circle", "circle", "star"],
    }  # fmt: skip
    by_skill = {t.name: list(t.y) for t in skills_figure(view).data}
    assert by_skill["message_style"] == pytest.approx([8 / 12, 1 / 12, 0])


def test_every_version_stands_with_its_size_and_origin(loop: Loop) -> None:
    rows = list(versions_table(read_loop(loop.path)).frame.iter_rows(named=True))
    assert [(r["Skill"], r["Version"], r["Comes from"], r["Round"]) for r in rows] == [
        ("message_style", "v1", "given", "–"), ("message_style", "v2", "evolved from v1", "1"), ("message_style", "v3", "rolled back from v1", "–"),
        ("topic_progression", "v1", "given", "–"), ("human_like_reply", "v1", "given", "–"), ("human_like_reply", "v2", "evolved from v1", "3"),
    ]  # fmt: skip
    assert rows[0]["Characters, at most 1500"] == "516" and rows[0]["Hash"] == rows[2]["Hash"] != rows[1]["Hash"]


def test_the_ab_stands_with_interval_and_what_can_be_said(loop: Loop) -> None:
    view = read_loop(loop.path)
    table = ab_table(view.tests[1])
    score = table.frame.row(0, named=True)
    assert (score["Quantity"], score["Difference"], score["Cases"], score["Bindings"]) == ("score", "+4.4", "16", "8")
    low, high = map(float, score["95% interval"].split(" to "))
    assert low < 4.4 < high
    assert table.notes == view.tests[1].said and "higher score" in table.notes[1]


LINES = st.one_of(st.text(max_size=60), st.text("字<&\n", max_size=30))


@given(LINES, LINES)
def test_a_diff_holds_both_texts_and_nothing_else(old: str, new: str) -> None:
    lines = diff_lines(old, new)

    def text(kinds: tuple[str, str], drop: str) -> str:
        found = [re.sub(rf"<{drop}>|</{drop}>", "", str(html)) for kind, html in lines if kind in kinds]
        return str(Markup("\n").join(Markup(f) for f in found))

    assert text(("same", "old"), "del") == str(Markup.escape(old))
    assert text(("same", "new"), "ins") == str(Markup.escape(new))


def test_in_a_changed_line_only_the_changed_words_are_marked() -> None:
    assert diff_lines("# 头\n- 一<条>说一个意思\n- 尾", "# 头\n- 一<条>只说一个<意思>\n- 中间\n- 尾") == [
        ("same", Markup("# 头")), ("old", Markup("- 一&lt;条&gt;说一个意思")),
        ("new", Markup("- 一&lt;条&gt;<ins>只</ins>说一个<ins>&lt;</ins>意思<ins>&gt;</ins>")), ("new", Markup("- 中间")), ("same", Markup("- 尾")),
    ]  # fmt: skip


def test_a_rollback_is_shown_beside_what_it_took_back(loop: Loop) -> None:
    html = diffs_html(read_loop(loop.path))
    assert "message_style: v2 to v3" in html and "rolled back to v1" in html
    assert "<b>先退回去" not in html and "&lt;b&gt;先退回去&lt;/b&gt;" in html and "把&lt;短句&gt;说明白" in html
    assert html.count('<p class="new">') >= 4 and html.count('<p class="old">') >= 4


def test_the_page_opens_offline_and_is_the_same_each_time(loop: Loop, page: Path, tmp_path: Path) -> None:
    with open_page(page) as (p, log):
        assert (log.console, log.errors, log.dialogs) == ([], [], [])
        assert [u for u in log.requests if not u.startswith(("file:", "data:"))] == []
        assert p.title() == "anthrolab skills: 圈 <一>" and p.locator("h1").inner_text() == "anthrolab skills: 圈 <一>"
        assert p.locator(".al-skill").count() == 3 and p.locator(".js-plotly-plot").count() == 2
        red = p.locator(".al-skill del").first.evaluate("e => getComputedStyle(e).backgroundColor")
        green = p.locator(".al-skill ins").first.evaluate("e => getComputedStyle(e).backgroundColor")
        assert red != green and "rgba(0, 0, 0, 0)" not in (red, green)
        assert p.locator("#ab-1").count() == 1 and "+4.4" in p.locator("#ab-1").inner_text()
        assert p.evaluate("document.documentElement.scrollWidth") <= 1280
    assert write_skills_page(read_loop(loop.path), tmp_path / "again.html").read_bytes() == page.read_bytes()


def test_on_a_narrow_screen_a_diff_is_read_without_scrolling_sideways(page: Path) -> None:
    with open_page(page, width=600) as (p, _):
        widths = p.locator(".al-skill .lines p").evaluate_all("all => all.map(e => e.scrollWidth - e.clientWidth)")
        assert max(widths) <= 0


@pytest.mark.parametrize(
    ("made", "says"),
    [({"rounds": 1}, "message_style v1 to v2"), ({"rounds": 1, "ab": False, "rollback": False}, "There is no A/B yet"),
     ({"rounds": 2, "evolve": False}, "No round of this loop has come to its skills yet")],
)  # fmt: skip
def test_a_loop_with_little_in_it_is_shown_and_says_what_is_lacking(tmp_path: Path, made: dict[str, int], says: str) -> None:
    loop = make_loop(tmp_path / "l", **made)  # type: ignore[arg-type]
    page = write_skills_page(read_loop(loop.path), tmp_path / "skills.html")
    assert says in page.read_text("utf-8")
    if not made.get("evolve", True):
        with open_page(page) as (p, log):
            assert log.errors == [] and p.locator(".js-plotly-plot").count() == 2


def test_a_round_that_is_only_begun_is_no_round_of_zeros(tmp_path: Path) -> None:
    loop = make_loop(tmp_path / "l", rounds=1)
    loop.round_dir(2).mkdir()
    view = read_loop(loop.path)
    table = rounds_table(view)
    assert table.frame["Accepted"].to_list() == ["4", "–"] and "Round 2: begun" in table.notes[0]
    assert became(view.rounds[1].evolution) == "not come to it"
    assert [len(t.x) for t in rounds_figure(view).data] == [1] * 5
    assert as_html(failures_table(view))


def test_what_is_no_loop_or_has_no_round_or_is_damaged_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoopError, match="this is no loop"):
        read_loop(tmp_path)
    with pytest.raises(LoopError, match="holds no round yet"):
        read_loop(begin_loop(tmp_path / "l").path)
    loop = make_loop(tmp_path / "m", rounds=1)
    for damage in ("nonsense\n", "{}\n", '{"filter_result": 3}\n'):
        (loop.round_dir(1) / "filtered.jsonl").write_text(damage, encoding="utf-8")
        with pytest.raises(AnthrolabError, match=r"filtered\.jsonl: "):
            read_loop(loop.path)


def test_the_notebook_runs_headless_and_writes_its_page(loop: Loop, tmp_path: Path) -> None:
    copy = Loop(Path(shutil.copytree(loop.path, tmp_path / "first")))
    lines: list[str] = []
    (made,) = run_notebooks(["06"], copy.path, [f"out={tmp_path / 'out'}"], progress=lines.append)
    assert made == copy.path / "notebooks" / "06_skills.ipynb"
    assert lines[-1] == f"page: {tmp_path / 'out' / 'skills.html'}" and (tmp_path / "out" / "skills.html").is_file()
    assert "rewrites refused: 1; dialogues undecided: 1" in lines
    assert any(line.startswith("A/B of round 1: better. Score after minus before: +4.4 points") for line in lines)
    outputs = [o for c in nbformat.read(made, as_version=4).cells if c.cell_type == "code" for o in c.outputs]
    assert any("al-skill" in o.get("data", {}).get("text/html", "") for o in outputs)
    assert sum("application/vnd.plotly.v1+json" in o.get("data", {}) for o in outputs) == 2
    assert json.dumps(outputs).count("Traceback") == 0


@pytest.mark.parametrize("evolve", [True, False])
def test_the_notebook_of_a_loop_without_an_ab_says_how_to_make_one_if_a_skill_was_rewritten(tmp_path: Path, evolve: bool) -> None:
    loop = make_loop(tmp_path / "l", rounds=1, evolve=evolve)
    shutil.rmtree(loop.path / "ab", ignore_errors=True)
    lines: list[str] = []
    run_notebooks(["06"], loop.path, [f"out={tmp_path / 'out'}"], progress=lines.append)
    assert any(line.startswith("no A/B yet; make one with: anthrolab loop ab") and line.endswith("--round 1") for line in lines) == evolve
