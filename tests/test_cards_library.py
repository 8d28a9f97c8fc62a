"""Loading cards: every problem is a line that names the file, the field and the fix."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anthrolab.cards.library import CardError, default_cards_dir, load_library
from tests.cards_for_tests import copy_cards


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    """A copy of the cards in a folder with a Chinese name."""
    return copy_cards(tmp_path / "卡片")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def problems(folder: Path) -> list[str]:
    with pytest.raises(CardError) as caught:
        load_library(folder)
    return caught.value.problems


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("personas/p01.yaml", "occupation:", "ocupation:", "ocupation: is no field of a persona (did you mean 'occupation'?)"),
        ("personas/p01.yaml", "occupation:", "ocupation:", "occupation: is missing; add it"),
        ("personas/p01.yaml", "\nage: 68", "\nage: sixty", "age: Input should be a valid integer"),
        ("personas/p01.yaml", "\nage: 68", "\nage: 67", "hard_facts.age is 68 but age is 67; make them equal"),
        ("personas/p01.yaml", "\nid: p01", "\nid: p99", "id: is 'p99' but the file is named 'p01'; make them equal"),
        ("personas/p01.yaml", "\nname:", "\nname: x\nname:", "not valid YAML"),
        ("personas/p01.yaml", "\ngender: 男", "\ngender: 男性", "gender: Input should be '女' or '男'"),
        ("scenarios/s01.yaml", "category: Sport", "category: Sports", "category: Input should be"),
        ("scenarios/s01.yaml", "horizon_minutes: 15", "horizon_minutes: 16", "horizon_minutes: Input should be 8, 10, 15, 20 or 25"),
        ("scenarios/s01.yaml", "start: 2026-06-11T19:42:00", "start: 2026-06-11T19:42:00Z", "start: write a local time"),
        ("bindings.yaml", "persona_a: p01", "persona_a: p100", "persona_a: no persona 'p100' (did you mean 'p10'?); add personas/p100.yaml"),
        ("bindings.yaml", "persona_a: p01", "persona_a: p02", "persona_a and persona_b are the same card"),
        ("bindings.yaml", "id: b02", "id: b01", "(b01): id: stands twice"),
    ],
)  # fmt: skip
def test_a_broken_card_is_named_with_field_and_fix(cards: Path, file: str, old: str, new: str, said: str) -> None:
    edit(cards / file, old, new)
    found = [line for line in problems(cards) if said in line]
    assert found, problems(cards)
    assert str(cards / file) in found[0]


def test_a_broken_card_is_not_reported_missing_as_well(cards: Path) -> None:
    edit(cards / "personas" / "p01.yaml", "\nage: 68", "\nage: 67")
    assert len(problems(cards)) == 1


def test_an_empty_card_and_another_ending_are_named(cards: Path) -> None:
    (cards / "personas" / "p01.yaml").write_text("", encoding="utf-8")
    (cards / "personas" / "p98.yml").write_text("id: p98\n", encoding="utf-8")
    listed = problems(cards)
    assert any("p01.yaml: is empty" in line for line in listed)
    assert any("p98.yml: is not read; rename it to p98.yaml" in line for line in listed)


def test_every_problem_is_listed_at_once(cards: Path) -> None:
    edit(cards / "personas" / "p01.yaml", "\nage: 68", "\nage: 67")
    edit(cards / "scenarios" / "s02.yaml", "remote: true", "remote: maybe")
    listed = problems(cards)
    assert any("p01.yaml" in line for line in listed)
    assert any("s02.yaml: remote:" in line for line in listed)


def test_another_encoding_is_named(cards: Path) -> None:
    path = cards / "personas" / "p01.yaml"
    path.write_bytes(path.read_text(encoding="utf-8").encode("gb18030"))
    assert any("not UTF-8" in line and "p01.yaml" in line for line in problems(cards))


def test_the_command_line_under_a_bare_locale(cards: Path) -> None:
    """LC_ALL=C, no UTF-8 mode, ASCII streams: Chinese paths and names still come out whole."""
    command = [sys.executable, "-m", "anthrolab", "cards", "check", str(cards)]
    env = {"PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "ascii"}
    if str(Path(__file__).resolve()).isascii():
        # In a checkout under a Chinese path Python itself would not start so: it reads the path of an editable
        # install in the locale's encoding.
        env |= {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    good = subprocess.run(command, capture_output=True, env=env)
    assert good.returncode == 0, good.stderr
    assert "卡片: 55 personas, 50 scenarios, 50 bindings, 0 memories, 0 series, 0 gold dialogues: all good" in good.stdout.decode("utf-8")
    edit(cards / "personas" / "p01.yaml", "\nage: 68", "\nage: 67")
    bad = subprocess.run(command, capture_output=True, env=env)
    assert bad.returncode == 2
    assert bad.stderr.decode("utf-8").startswith("error: ")
    assert "卡片/personas/p01.yaml" in bad.stderr.decode("utf-8")


def test_the_hash_changes_with_any_card(cards: Path) -> None:
    shutil.copytree(default_cards_dir() / "memories", cards / "memories")
    before = load_library(cards).content_hash()
    assert before == load_library(default_cards_dir()).content_hash()
    edit(cards / "scenarios" / "s03.yaml", "remote: true", "remote: false")
    assert load_library(cards).content_hash() != before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ('"小\\n龙"', "holds a line break"),
        ('"小\\u2028龙"', "holds a line break"),
        ('"小\\u202e龙"', "cannot be seen"),
        ('"<|im_end|>"', "holds <, > or :"),
        ('"小龙: 我"', "holds <, > or :"),
    ],
)
def test_a_name_that_would_break_a_transcript_is_refused(cards: Path, name: str, said: str) -> None:
    edit(cards / "personas" / "p01.yaml", "name: 谭国祥", f"name: {name}")
    (line,) = problems(cards)
    assert "p01.yaml: name: " in line and said in line


@pytest.mark.parametrize("name", ["小🐟", "A.J.(小)", "阿 明", "👨\u200d👩\u200d👧 一家"])
def test_a_name_may_be_what_people_call_themselves(cards: Path, name: str) -> None:
    edit(cards / "personas" / "p01.yaml", "name: 谭国祥", f"name: {name}")
    assert load_library(cards).personas["p01"].name == name


def test_two_people_of_one_name_cannot_chat(cards: Path) -> None:
    edit(cards / "personas" / "p01.yaml", "name: 谭国祥", "name: 龙佳颖")
    (line,) = problems(cards)
    assert "bindings.yaml: b01: p01 and p02 are both called 龙佳颖" in line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id: \x1bp01", "line 1: holds the character U+001B, which YAML does not allow; remove it"),
        ("id: p01\nname: 零\x00", "line 2: holds the character"),
        ("id: " + "[" * 20_000, "is nested too deep"),
        ("id: p01\n" + "# 长\n" * 400_000, "a card or settings file is at most 1,000,000"),
        ("a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(f"{c}: &{c} [{', '.join([f'*{p}'] * 10)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)), "its aliases stand for more than"),
        ("a: &a [*a]", "its aliases stand for more than"),
    ],
)  # fmt: skip
def test_hostile_yaml_is_one_line(cards: Path, text: str, said: str) -> None:
    path = cards / "personas" / "p01.yaml"
    path.write_text(text, encoding="utf-8")
    assert any(line.startswith(f"{path}: ") and said in line for line in problems(cards))


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("education: 中专（卫校）", "education: 中专 #卫校", True),
        ("education: 中专（卫校）", "education: 中专（卫校） # a comment", False),
        ("education: 中专（卫校）", 'education: "中专 #卫校"', False),
        ("education: 中专（卫校）", "education: 中专#卫校", False),
    ],
)
def test_what_yaml_takes_for_a_comment_is_not_lost_silently(cards: Path, old: str, new: str, lost: bool) -> None:
    edit(cards / "personas" / "p01.yaml", old, new)
    if lost:
        assert any("'#卫校' is a comment to YAML" in line and "double quotes" in line for line in problems(cards))
    else:
        assert load_library(cards).personas["p01"].education.startswith("中专")
