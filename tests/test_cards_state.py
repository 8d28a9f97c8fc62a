"""Skills and memories as cards: loaded by name and version, refused with file and fix."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from anthrolab.cards.library import CardError, default_cards_dir, load_library
from anthrolab.cards.skill import (
    SKILL_CHARS,
    SKILLS,
    Skill,
    SkillError,
    default_skills_dir,
    load_skills,
    skill_versions,
)
from tests.cards_for_tests import copy_cards


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    return Path(shutil.copytree(default_skills_dir(), tmp_path / "技能"))


def test_the_skills_that_come_along_are_short_and_in_order() -> None:
    loaded = load_skills(default_skills_dir())
    assert tuple(s.name for s in loaded) == SKILLS == ("message_style", "topic_progression", "human_like_reply")
    assert all(100 < len(s.text) <= 700 for s in loaded), "they are paid for in every call"
    assert all(s.text.startswith("# ") for s in loaded)


def test_the_newest_version_unless_another_is_named(skills: Path) -> None:
    for version in ("v2", "v10"):
        (skills / "message_style" / f"{version}.md").write_text(f"# 新的\n\n- {version}", encoding="utf-8")
    assert skill_versions(skills, "message_style") == ["v1", "v2", "v10"]
    assert [s.version for s in load_skills(skills)] == ["v10", "v1", "v1"]
    pinned = load_skills(skills, {"message_style": "v2"})
    assert pinned[0].text == "# 新的\n\n- v2" and pinned[1:] == load_skills(skills)[1:]
    assert pinned[0].label != load_skills(skills)[0].label


def test_a_label_follows_the_text() -> None:
    one, two = Skill(name="message_style", version="v1", text="短"), Skill(name="message_style", version="v1", text="长")
    assert one.label.startswith("message_style v1 ") and one.label != two.label


@pytest.mark.parametrize(
    ("pins", "problem"),
    [
        ({"message_styl": "v1"}, "no skill 'message_styl' (did you mean 'message_style'?)"),
        ({"message_style": "v9"}, "no version 'v9'; there are: v1"),
        ({"message_style": "../v1"}, "no version '../v1'"),
    ],
)
def test_a_skill_that_is_not_there(pins: dict[str, str], problem: str) -> None:
    with pytest.raises(SkillError) as refused:
        load_skills(default_skills_dir(), pins)
    assert problem in str(refused.value)


def test_broken_skill_files_name_the_file(skills: Path) -> None:
    (skills / "topic_progression" / "v1.md").write_text("字" * (SKILL_CHARS + 1), encoding="utf-8")
    with pytest.raises(SkillError, match=r"topic_progression/v1\.md: .*a skill is 1 to 1500 characters"):
        load_skills(skills)
    (skills / "topic_progression" / "v1.md").write_text("  \n", encoding="utf-8")
    with pytest.raises(SkillError, match="a skill is 1 to"):
        load_skills(skills)
    (skills / "topic_progression" / "v1.md").unlink()
    with pytest.raises(SkillError, match=r"no version of this skill here; put the first one into .*v1\.md"):
        load_skills(skills)


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    return copy_cards(tmp_path / "卡片")


def remember(cards: Path, name: str, text: str) -> Path:
    path = cards / "memories" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


GOOD = "owner: p01\npartner: p02\nas_of: 2026-05-30\nfacts:\n  - 她妈妈在怀化开粉店\n"


def test_a_memory_card_is_loaded_and_changes_the_hash(cards: Path) -> None:
    before = load_library(cards)
    ours = load_library(default_cards_dir())
    assert before.memories == {} and before.content_hash() == replace(ours, memories={}).content_hash()
    remember(cards, "p01-p02.yaml", GOOD)
    library = load_library(cards)
    assert library.memories["p01", "p02"].facts == ["她妈妈在怀化开粉店"]
    assert library.content_hash() != before.content_hash()


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("p02-p01.yaml", GOOD, "is the memory of p01 about p02; name it p01-p02.yaml"),
        ("p01-p99.yaml", GOOD.replace("p02", "p99"), "partner: no persona 'p99'"),
        ("p01-p02.yaml", GOOD.replace("facts", "fact"), "fact: is no field of a memory (did you mean 'facts'?)"),
        ("p01-p02.yaml", GOOD.replace("2026-05-30", "2026-05-30T10:00:00"), "as_of: is a time; write a date"),
        ("p01-p02.yaml", GOOD.replace("as_of: 2026-05-30\n", ""), "as_of: is missing; add it"),
        ("p01-p02.yaml", GOOD + "".join(f"  - 第{i}件\n" for i in range(6)), "facts: List should have at most 6 items"),
    ],
)
def test_a_broken_memory_card_names_file_field_and_fix(cards: Path, name: str, text: str, problem: str) -> None:
    path = remember(cards, name, text)
    with pytest.raises(CardError) as refused:
        load_library(cards)
    (line,) = refused.value.problems
    assert line.startswith(str(path)) and problem in line


@pytest.mark.parametrize("name", ["v02.md", "V2.md", "v2.txt", "draft.md"])
def test_a_file_that_is_no_version_is_named_and_not_passed_over(skills: Path, name: str) -> None:
    (skills / "message_style" / name).write_text("# 新的", encoding="utf-8")
    with pytest.raises(SkillError, match=rf"message_style/{name}: is not read; a version of a skill is named v1\.md"):
        load_skills(skills)


def test_a_memory_under_another_ending_or_from_the_future_is_named(cards: Path) -> None:
    path = remember(cards, "p01-p02.yml", GOOD)
    with pytest.raises(CardError, match=r"p01-p02\.yml: is not read; rename it to p01-p02\.yaml"):
        load_library(cards)
    path.unlink()
    remember(cards, "p01-p02.yaml", GOOD.replace("2026-05-30", "2026-06-12"))
    with pytest.raises(CardError) as refused:
        load_library(cards)
    (line,) = refused.value.problems
    assert "p01-p02.yaml: as_of: is 2026-06-12, but s01 begins on 2026-06-11" in line and "give an earlier day" in line
    remember(cards, "p01-p02.yaml", GOOD.replace("2026-05-30", "2026-06-11"))
    assert load_library(cards).memories


def test_a_byte_order_mark_is_no_part_of_a_skill(skills: Path) -> None:
    (skills / "message_style" / "v1.md").write_text("\ufeff# 短", encoding="utf-8")
    assert load_skills(skills)[0].text == "# 短"
