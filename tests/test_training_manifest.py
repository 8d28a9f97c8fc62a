"""What a training was begun with, compared with what it is to go on with."""

from pathlib import Path

import pytest

from anthrolab.training.manifest import check_same, read_manifest, same, write_manifest
from anthrolab.training.settings import TrainingError

THERE = {"settings": {"rank": 8, "seed": 1}, "base": "b", "cases": ["b01-a"]}


def test_the_same_passes_and_is_the_same_from_disk(tmp_path: Path) -> None:
    write_manifest(tmp_path / "manifest.json", THERE)
    again = read_manifest(tmp_path / "manifest.json")
    check_same(tmp_path, again, {"settings": {"rank": 8, "seed": 1}, "cases": ("b01-a",)})
    assert same(again, {"base": "b"}) and not same(again, {"base": "c"})
    assert read_manifest(tmp_path / "none.json") == {}


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"settings": {"rank": 16, "seed": 1}}, r"settings\.rank = 8 and not 16"),
        ({"settings": {"rank": 8, "seed": 1, "skills": None}}, r"settings\.skills"),
        ({"settings": {"rank": 8}}, r"settings\.seed"),
        ({"base": "other"}, "base = 'b' and not 'other'"),
    ],
)
def test_a_difference_is_named(now: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=said):
        check_same(tmp_path, THERE, now)


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_manifest_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(TrainingError, match=r"manifest\.json: not valid JSON"):
        read_manifest(tmp_path / "manifest.json")
