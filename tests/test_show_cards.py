"""Cards and their statistics on a page: holes are seen, and card text can do nothing."""

import csv
from pathlib import Path

import polars as pl

from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.cards.statistics import PERSONA_PARTS, corpus_counts
from anthrolab.show.cards import (
    CROSSINGS,
    HOLE,
    card_html,
    cards_html,
    cards_page,
    corpus_table6,
    crossed_figure,
    holes_table,
    parts_figure,
    quota_figure,
    write_corpus,
)
from tests.browser import open_page
from tests.cards_for_tests import make_persona, make_scenario
from tests.test_cards_statistics import small

EVIL = "<script>alert(1)</script>"


def test_a_pair_that_no_card_has_is_a_red_cell() -> None:
    (heat,) = crossed_figure(small(), "age band", "gender").data
    assert list(heat.x) == ["女", "男"]
    assert [list(row) for row in heat.z][:3] == [[1, 0], [0, 1], [0, 0]]
    (zero, red), (edge, _), (above, blue), _ = heat.colorscale
    assert (zero, edge, above) == (0, 0.5, 0.5), "0 has a colour of its own below half a card"
    assert red != blue


def test_all_crossings_can_be_drawn() -> None:
    for rows, columns in CROSSINGS:
        figure = crossed_figure(small(), rows, columns)
        assert sum(map(sum, figure.data[0].z)) in (2, 4), "every card once"


def test_a_value_that_no_card_has_is_a_red_0() -> None:
    (bars,) = parts_figure(corpus_counts(small()), ("gender", "age band")).data
    shown = dict(zip(bars.y[1], bars.text, strict=True))
    assert shown["女"] == "2"
    assert shown["25-34"] == f"<b style='color:{HOLE}'>0</b>"
    assert set(bars.y[0]) == {"Gender", "Age band"}


def test_missing_bindings_fill_the_bar_up_to_the_quota() -> None:
    there, missing = quota_figure(small()).data
    have, lack = dict(zip(there.x, there.y, strict=True)), dict(zip(missing.x, missing.y, strict=True))
    assert (have["Sport"], lack["Sport"]) == (1, 3)
    assert (have["Work"], lack["Work"]) == (0, 5)


def test_tables() -> None:
    assert corpus_table6(small()).frame.columns == ["Item", "AnthroDial, Table 6", "Ours"]
    assert holes_table(small()).frame.columns == ["What", "Where", "There", "Wanted", "Missing"]


def test_a_card_shows_every_field_and_is_only_text() -> None:
    html = card_html(make_persona(name="张三", personality=[EVIL, "b"], city=f"成都{EVIL}"), remembers={"of p2": [EVIL]})
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 4, "city twice, personality, memory"
    for text in ("p90", "张三", "小学语文老师", "不用句号", "catchphrases", "hard facts", "老师", "remembers"):
        assert text in html
    assert "<dt>remote</dt><dd>yes</dd>" in card_html(make_scenario())


def test_the_list_says_who_plays_and_who_remembers() -> None:
    html = cards_html(small())
    assert "4 personas" in html and "2 scenarios" in html
    assert "b1: p1 / p2" in html
    assert html.count("<dt>remembers</dt>") == 1


def test_writes_files_that_can_be_read(tmp_path: Path) -> None:
    written = write_corpus(small(), tmp_path / "corpus")
    assert [p.name for p in written] == ["corpus.csv", "table6.csv", "holes.csv", "personas.csv", "scenarios.csv", "cards.html"]
    assert pl.read_csv(written[0]).columns == ["part", "value", "count"]
    with written[1].open(encoding="utf-8", newline="") as f:
        assert list(csv.reader(f))[1] == ["Personas", "55 role cards", "4 role cards"]


def test_the_page_of_our_cards_opens_offline(tmp_path: Path) -> None:
    path = tmp_path / "cards.html"
    library = load_library(default_cards_dir())
    evil = library.personas | {"x": make_persona("x", "恶意", weak_topics=[EVIL])}
    path.write_text(cards_page(Library(evil, library.scenarios, library.bindings)), encoding="utf-8")
    for width in (1200, 400):
        with open_page(path, width=width) as (page, log):
            assert page.locator("details.card").count() == len(evil) + len(library.scenarios)
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            assert page.locator("dd").first.is_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert (log.console, log.errors, log.dialogs) == ([], [], [])
            assert log.requests == [path.resolve().as_uri()]


def test_parts_exist() -> None:
    assert {a for pair in CROSSINGS for a in pair} - {"category", "horizon", "relationship kind"} <= set(PERSONA_PARTS)
