"""The verbs about cards, as they are typed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cards_for_tests import copy_cards

DATA = Path(__file__).parent.parent / "data"


def run_cli(*args: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-m", "anthrolab", *args], capture_output=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout, done.stderr


def test_cards_go_out_and_come_back(tmp_path: Path) -> None:
    code, out, _ = run_cli("cards", "export", str(DATA / "personas" / "p22.yaml"), "--format", "png", "--out", str(tmp_path / "厨师.png"))
    assert (code, out.strip()) == (0, str(tmp_path / "厨师.png"))
    code, out, _ = run_cli("cards", "import", str(tmp_path / "厨师.png"), "--to", str(tmp_path / "卡片"))
    assert code == 0 and (tmp_path / "卡片" / "personas" / "p22.yaml").exists()
    code, out, err = run_cli("cards", "export", str(DATA), "--format", "anthrodial", "--out", str(tmp_path / "out"))
    assert code == 0 and "left_out: series" in err and str(tmp_path / "out" / "bindings.yaml") in out


def test_a_wrong_format_is_named(tmp_path: Path) -> None:
    code, _, err = run_cli("cards", "export", str(DATA), "--format", "docx", "--out", str(tmp_path / "out"))
    assert code == 2 and "error: --format docx: give anthrodial, v2, v3, png" in err


def test_gold_dialogues_as_records(tmp_path: Path) -> None:
    code, _, _ = run_cli("cards", "gold", "--out", str(tmp_path / "gold.jsonl"), "--role", "b")
    assert code == 0
    rows = [json.loads(line) for line in (tmp_path / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 50 and {row["evaluated_role"] for row in rows} == {"b"} and all(row["asks"] for row in rows)
    cards = copy_cards(tmp_path / "cards")
    code, _, err = run_cli("cards", "gold", "--out", str(tmp_path / "none.jsonl"), "--cards", str(cards))
    assert code == 2 and "no gold dialogue here" in err


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("personas/p09.yaml", "name: 常莉", "name: 谭国祥", "p09: name: '谭国祥' is that of p01 too"),
        ("gold/b01.yaml", "19:42:00 a", "19:42:01 a", "b01.yaml: lines[1]: is not the opener of s01"),
    ],
)
def test_check_finds_what_is_wrong_between_cards(tmp_path: Path, file: str, old: str, new: str, said: str) -> None:
    cards = copy_cards(tmp_path / "cards")
    if file.startswith("gold"):
        (cards / "gold").mkdir()
        (cards / file).write_bytes((DATA / file).read_bytes())
    text = (cards / file).read_text(encoding="utf-8")
    assert old in text
    (cards / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    code, _, err = run_cli("cards", "check", str(cards))
    assert code == 2 and said in err


def test_check_says_what_is_wrong_with_cards_and_gold_at_once(tmp_path: Path) -> None:
    cards = copy_cards(tmp_path / "cards")
    (cards / "gold").mkdir()
    (cards / "gold" / "b01.yaml").write_text("binding: b01\nlines: [19:42:00 a x, 19:42:30 b y]\n", encoding="utf-8")
    edited = (cards / "personas" / "p09.yaml").read_text(encoding="utf-8").replace("name: 常莉", "name: 谭国祥")
    (cards / "personas" / "p09.yaml").write_text(edited, encoding="utf-8")
    _, _, err = run_cli("cards", "check", str(cards))
    assert "that of p01 too" in err and "is not the opener of s01" in err


def test_check_names_folders_that_nobody_reads(tmp_path: Path) -> None:
    cards = copy_cards(tmp_path / "cards")
    (cards / "Gold").mkdir()
    code, _, err = run_cli("cards", "check", str(cards))
    assert code == 2 and "Gold: is not read (did you mean 'gold'?)" in err
