"""The card form, driven in Python and in a real JupyterLab."""

import shutil
from pathlib import Path

import pytest

from anthrolab.cards.authoring import open_card
from anthrolab.cards.library import default_cards_dir
from anthrolab.show.card_form import CardBrowser, CardForm, card_browser
from anthrolab.show.card_list import chosen, listed_cards
from anthrolab.show.notebooks import run_notebooks
from tests.cards_for_tests import copy_cards
from tests.jupyter_for_tests import jupyter_lab, open_notebook

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "01_cards.ipynb"


def form_of(browser: CardBrowser, name: str) -> CardForm:
    browser.list.value = browser.folder / browser.kind.value / f"{name}.yaml"
    (form,) = browser.place.children
    assert isinstance(form, CardForm)
    return form


def test_filters_by_words_age_category_and_status(tmp_path: Path) -> None:
    cards = listed_cards(copy_cards(tmp_path), "personas")
    assert [c.path.stem for c in chosen(cards, "厂医 株洲")] == ["p01"]
    assert "p07" in [c.path.stem for c in chosen(cards, ages=(70, 110))]
    assert all(c.age is not None and c.age >= 70 for c in chosen(cards, ages=(70, 110)))
    assert {"p01", "p02"} <= {c.path.stem for c in chosen(cards, category="Sport")} < {c.path.stem for c in cards}
    assert "p04" in [c.path.stem for c in chosen(cards, status="离异")]
    scenes = listed_cards(tmp_path, "scenarios")
    assert "s01" in [c.path.stem for c in chosen(scenes, category="Sport")]
    assert chosen(scenes, ages=(20, 30)) == []
    assert len(chosen(cards)) == len(cards)


def test_the_list_follows_the_filters_and_a_choice_opens_its_form(tmp_path: Path) -> None:
    browser = card_browser(copy_cards(tmp_path))
    browser.text.value = "厂医 株洲"
    assert [path.stem for _, path in browser.list.options] == ["p01"]
    assert browser.list.value is None and browser.place.children == ()
    form = form_of(browser, "p01")
    assert form.inputs["name",].value == "谭国祥"
    assert form.inputs["interests",].value.splitlines()[0].startswith("乒乓球")
    browser.text.value = "没有这样的卡"
    assert browser.place.children == ()
    browser.text.value = ""
    browser.kind.value = "scenarios"
    form = form_of(browser, "s01")
    assert form.inputs["horizon_minutes",].value == "15"
    assert form.inputs["remote",].value == "true"
    assert form.inputs["start",].value == "2026-06-11T19:42:00"


def test_checks_while_typing_and_saves_only_what_is_valid(tmp_path: Path) -> None:
    form = form_of(card_browser(copy_cards(tmp_path)), "p01")
    before = form.draft.path.read_bytes()
    assert form.save.disabled, "nothing changed"
    form.inputs["interests",].value = "一样<b>"
    assert "write at least 2 lines" in form.beside["interests",].value
    assert form.save.disabled and "1 to mend" in form.note.value
    assert "&lt;b&gt;" in form.diff.value and "<b>" not in form.diff.value
    form.inputs["interests",].value = "一样\n\n 两样 "
    form.inputs["age",].value = "67"
    assert all("hard_facts.age is 68 but age is 67" in form.beside[where].value for where in (("age",), ("hard_facts", "age")))
    form.inputs["hard_facts", "age"].value = "67"
    assert [html.value for html in form.beside.values() if html.value] == []
    assert not form.save.disabled
    form.save.click()
    assert "saved" in form.note.value and form.save.disabled and form.diff.value == ""
    after = form.draft.path.read_bytes()
    assert after != before and "  - 一样\n  - 两样\n".encode() in after


def test_the_form_stays_open_when_it_is_saved_and_the_list_says_the_new(tmp_path: Path) -> None:
    browser = card_browser(copy_cards(tmp_path))
    form = form_of(browser, "p04")
    form.inputs["occupation",].value = "外卖站长"
    form.save.click()
    assert browser.place.children == (form,)
    assert next(label for label, path in browser.list.options if path.stem == "p04").endswith("· 外卖站长")


def test_typing_back_leaves_nothing_to_save(tmp_path: Path) -> None:
    form = form_of(card_browser(copy_cards(tmp_path)), "p01")
    before = form.inputs["interests",].value
    form.inputs["interests",].value = ""
    assert form.diff.value
    form.inputs["interests",].value = before
    assert form.diff.value == "" and form.save.disabled


def test_a_file_that_another_changed_is_not_saved_over(tmp_path: Path) -> None:
    browser = card_browser(copy_cards(tmp_path))
    form = form_of(browser, "p01")
    form.inputs["education",].value = "中专"
    path = form.draft.path
    path.write_bytes(path.read_bytes() + b"# by another\n")
    form.save.click()
    assert "nothing was saved" in form.note.value
    assert path.read_bytes().endswith(b"# by another\n")
    form.again.click()
    (fresh,) = browser.place.children
    fresh.inputs["education",].value = "中专"
    fresh.save.click()
    assert path.read_text("utf-8").endswith("# by another\n") and "education: 中专\n" in path.read_text("utf-8")


def test_says_when_a_valid_card_no_longer_fits_the_others(tmp_path: Path) -> None:
    form = form_of(card_browser(copy_cards(tmp_path)), "p01")
    form.inputs["name",].value = "龙佳颖"
    form.save.click()
    assert "do not fit together" in form.note.value and "both called" in form.note.value


def test_broken_cards_are_listed_and_can_be_mended(tmp_path: Path) -> None:
    folder = copy_cards(tmp_path)
    path = folder / "personas" / "p01.yaml"
    path.write_text(path.read_text("utf-8").replace("gender: 男\nage: 68", "gender: 无\nage: 68"), encoding="utf-8")
    (folder / "personas" / "p02.yaml").write_text("a: [", encoding="utf-8")
    browser = card_browser(folder)
    labels = [label for label, _ in browser.list.options[:2]]
    assert labels[0].startswith("⚠ p01") and labels[1] == "⚠ p02: cannot be read"
    browser.list.value = folder / "personas" / "p02.yaml"
    assert "not valid YAML" in browser.place.children[0].value
    form = form_of(browser, "p01")
    assert "choose 女 or 男" in form.beside["gender",].value
    form.inputs["gender",].value = "男"
    form.save.click()
    assert "gender: 男\n" in path.read_text("utf-8")


def test_a_new_card_begins_blank_and_is_written_when_it_is_whole(tmp_path: Path) -> None:
    browser = card_browser(copy_cards(tmp_path))
    browser.new_id.value = "p01"
    browser.new.click()
    assert "exists already" in browser.place.children[0].value
    browser.new_id.value = "p99"
    browser.new.click()
    (form,) = browser.place.children
    other = form_of(card_browser(tmp_path), "p01")
    for where, box in form.inputs.items():
        assert form.save.disabled
        if where != ("id",):
            box.value = other.inputs[where].value
    form.save.click()
    assert (tmp_path / "personas" / "p99.yaml").read_text("utf-8") == other.draft.text.replace("id: p01", "id: p99")


@pytest.mark.parametrize("card_id", ["../../evil/personas/p99", "", "p 99", "甲"])
def test_a_new_card_gets_no_id_that_leaves_its_folder(tmp_path: Path, card_id: str) -> None:
    browser = CardBrowser(copy_cards(tmp_path / "cards"))
    browser.new_id.value = card_id
    browser._new()
    assert "is no id" in str(browser.place.children[0].value)


def test_a_line_separator_in_a_field_does_not_break_the_diff(tmp_path: Path) -> None:
    cards = copy_cards(tmp_path / "cards")
    path = cards / "personas" / "p01.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("education: 中专（卫校）", 'education: "甲\u2028\u2028 乙"'), encoding="utf-8")
    form = CardForm(open_card(path))
    form.inputs["education",].value = "中专"
    assert "中专" in form.diff.value and not form.save.disabled


def test_without_a_kernel_there_is_a_list_of_cards(tmp_path: Path) -> None:
    bundle = card_browser(copy_cards(tmp_path))._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "谭国祥" in bundle["text/html"] and "<details" in bundle["text/html"]
    (tmp_path / "personas" / "p02.yaml").write_text("id: <i>x", encoding="utf-8")
    html = card_browser(tmp_path)._repr_mimebundle_()["text/html"]
    assert "p02.yaml" in html and "<i>" not in html


def test_the_notebook_runs_headless_and_writes_its_files(tmp_path: Path) -> None:
    lines: list[str] = []
    (made,) = run_notebooks(["01"], tmp_path / "run", [f"cards_dir={copy_cards(tmp_path / 'cards')}"], progress=lines.append)
    assert {p.name for p in (tmp_path / "run" / "corpus").iterdir()} >= {"corpus.csv", "table6.csv", "holes.csv", "cards.html"}
    assert any(line.startswith("holes: ") for line in lines)
    assert made.stat().st_size < 2_000_000


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    (folder / "notebooks").mkdir()
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert 'cards_dir: str = \\"\\"' in text
    (folder / "notebooks" / NOTEBOOK.name).write_text(text.replace('cards_dir: str = \\"\\"', 'cards_dir: str = \\"cards\\"'), encoding="utf-8")
    shutil.copytree(default_cards_dir(), folder / "cards")
    return folder


def test_in_jupyterlab_a_wrong_age_is_explained_and_a_right_one_saved_as_one_line(lab: Path) -> None:
    path = lab / "cards" / "personas" / "p14.yaml"
    before = path.read_bytes()
    with jupyter_lab(lab) as address, open_notebook(address, f"notebooks/{NOTEBOOK.name}") as (page, log):
        page.wait_for_selector(".card-list select", timeout=120_000)
        page.locator(".card-text input").fill("恩施 兽医")
        page.wait_for_function("document.querySelectorAll('.card-list option').length === 1")
        page.locator(".card-list select").select_option(index=0)
        page.wait_for_selector(".field-age input")
        assert page.locator(".field-name input").input_value() == "向延军"
        assert page.locator(".card-save").is_disabled()
        page.locator(".field-age input").fill("3")
        page.wait_for_selector(".al-form .problem >> text=write 6 or more")
        assert page.locator(".card-save").is_disabled()
        assert path.read_bytes() == before
        page.locator(".field-age input").fill("38")
        page.locator(".field-education input").fill("本科（动物医学），函授")
        page.wait_for_selector(".card-diff >> text=+education: 本科（动物医学），函授")
        assert page.locator(".al-form .problem").count() == 0
        page.locator(".card-save").click()
        page.wait_for_selector(".card-note >> text=saved")
        assert log.errors == []
        assert [r for r in log.requests if not r.startswith((address, "data:", "blob:"))] == []
    after = path.read_bytes()
    changed = [(a, b) for a, b in zip(before.split(b"\n"), after.split(b"\n"), strict=True) if a != b]
    assert changed == [("education: 本科（动物医学）".encode(), "education: 本科（动物医学），函授".encode())]
