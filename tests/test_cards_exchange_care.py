"""An import plants nothing for others, invents no id, loses no value, and writes all of its files or none."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from anthrolab.cards.exchange.anthrodial_cards import persona_card, scenario_card
from anthrolab.cards.exchange.anthrodial_export import export_anthrodial
from anthrolab.cards.exchange.anthrodial_import import import_anthrodial, write_library
from anthrolab.cards.exchange.character_card import character_card, import_character_card
from anthrolab.cards.exchange.files import write_all, write_imported
from anthrolab.cards.exchange.foreign import as_json
from anthrolab.cards.exchange.outcome import ExchangeError, Notes
from anthrolab.cards.exchange.verbs import export_to, import_into
from anthrolab.cards.library import Library
from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.errors import AnthrolabError
from anthrolab.files import FileError
from anthrolab.yaml_files import MAX_CHARS
from tests.cards_for_tests import make_persona, make_scenario


def memory(owner: str, partner: str) -> Memory:
    return Memory(owner=owner, partner=partner, as_of=date(2026, 2, 20), facts=["他欠我钱"])


def card_with(folder: Path, *memories: Memory, persona: Persona | None = None) -> Path:
    path = folder / "他人的卡.json"
    path.write_text(json.dumps(character_card(persona or make_persona("zz9"), 3, memories)), encoding="utf-8")
    return path


def files_in(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def lay(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("taken", [False, True])
def test_a_card_plants_no_memory_for_somebody_else(tmp_path: Path, taken: bool) -> None:
    cards = lay(tmp_path / "卡", {f"personas/{p}.yaml": "" for p in ("p02", "p03", *(["zz9"] if taken else []))})
    before = files_in(cards)
    path = card_with(tmp_path, memory("p02", "p03"), memory("zz9", "p03"), memory("ZZ9", "p02"))
    _, lines = import_into(path, cards)
    mine = "c01" if taken else "zz9"
    assert files_in(cards) - before == {
        f"personas/{mine}.yaml", f"memories/{mine}-p03.yaml", "drafts/memories/p02-p03.yaml", "drafts/memories/ZZ9-p02.yaml",
    }  # fmt: skip
    assert [line.split(": ")[1] for line in lines if "memory_of_another" in line] == ["memory_of_another"] * 2


def test_a_new_id_is_nobody_that_the_card_remembers(tmp_path: Path) -> None:
    imported = import_character_card(card_with(tmp_path, memory("zz9", "c01")), taken=["zz9"])
    assert imported.memories == (memory("c02", "c01"),)


def test_a_character_card_with_one_file_in_the_way_writes_nothing(tmp_path: Path) -> None:
    cards = lay(tmp_path / "卡", {"drafts/memories/zz9-p03.yaml": "x"})
    imported = import_character_card(card_with(tmp_path, memory("zz9", "p02"), memory("zz9", "p03")))
    with pytest.raises(ExchangeError, match=r"zz9-p03\.yaml: is there already"):
        write_imported(imported, cards)
    assert files_in(cards) == {"drafts/memories/zz9-p03.yaml"}
    twice = import_character_card(card_with(tmp_path, memory("zz9", "p02"), memory("zz9", "p02")))
    with pytest.raises(ExchangeError, match="two cards of the source would be this file"):
        write_imported(twice, cards)
    assert files_in(cards) == {"drafts/memories/zz9-p03.yaml"}


def small() -> Library:
    from anthrolab.cards.binding import Binding

    people = {p: make_persona(p, f"人{p}") for p in ("p1", "p2", "p3")}
    return Library(people, {"s90": make_scenario()}, {"b1": Binding(id="b1", persona_a="p1", persona_b="p2", scenario="s90")})


def test_a_library_goes_into_a_folder_that_has_bindings_whole_or_not_at_all(tmp_path: Path) -> None:
    export_anthrodial(small(), tmp_path / "布局")
    cards = lay(tmp_path / "卡", {"bindings.yaml": "bindings: []\n"})
    with pytest.raises(ExchangeError, match=r"bindings\.yaml: is there already"):
        import_into(tmp_path / "布局", cards)
    assert files_in(cards) == {"bindings.yaml"}


@pytest.mark.parametrize("format", ["v2", "png"])
def test_an_export_with_one_clash_writes_nothing(tmp_path: Path, format: Any) -> None:
    export_anthrodial(small(), tmp_path / "布局")
    write_library(import_anthrodial(tmp_path / "布局"), tmp_path / "卡")
    clash = "p3.png" if format == "png" else "p3.json"
    lay(tmp_path / "出", {clash: "x"})
    with pytest.raises(ExchangeError, match=f"{clash}: is there already"):
        export_to(tmp_path / "卡", format, tmp_path / "出")
    assert files_in(tmp_path / "出") == {clash} and (tmp_path / "出" / clash).read_text() == "x"


def test_an_anthrodial_export_that_is_too_large_writes_nothing(tmp_path: Path) -> None:
    library = small()
    library.personas["p3"] = make_persona("p3", extensions={"anthrodial": {"x": "字" * MAX_CHARS}})
    with pytest.raises(ExchangeError, match="would have"):
        export_anthrodial(library, tmp_path / "布局")
    assert not (tmp_path / "布局").exists()


def test_a_write_that_fails_takes_back_what_it_wrote(tmp_path: Path) -> None:
    lay(tmp_path, {"file": "x"})
    with pytest.raises(FileError):
        write_all([(tmp_path / "a.yaml", "a"), (tmp_path / "file" / "b.yaml", "b")])
    assert files_in(tmp_path) == {"file"}


@pytest.mark.parametrize("blank", ["", "null", "~", "''", "'  '"])
def test_a_blank_id_is_an_absent_one(tmp_path: Path, blank: str) -> None:
    folder = lay(tmp_path / "x", {
        "personas/P01/card.yaml": f"persona_id: {blank}\nnickname: 甲\n",
        "scenarios/s7.yaml": f"scenario_id: {blank}\nname: 七\n",
        "scenarios/None.yaml": "scenario_id: None\nplace: {甲: 家, 乙: 店}\n",
        "bindings.yaml": f"- {{id: {blank}, persona_a: P01, persona_b: {blank or 'null'}, scenario_id: {blank or 'null'}}}\n",
    })  # fmt: skip
    imported = import_anthrodial(folder)
    assert [i.id for i in imported.personas] == ["P01"] and {i.id for i in imported.scenarios} == {"s7", "None"}
    [binding] = imported.bindings
    assert binding.id == "b01" and {"persona_b", "scenario"} <= set(binding.missing) and binding.fields["persona_a"] == "P01"
    fields = {w.field for i in imported.cards for w in i.warnings if w.code == "missing_field"}
    assert fields == {"persona_id", "scenario_id", "id"}
    assert next(i for i in imported.scenarios if i.id == "None").fields["speakers"]["a"] == {"place": "家"}
    written = {str(p.relative_to(tmp_path / "卡")) for p in write_library(imported, tmp_path / "卡")}
    assert written == {"drafts/personas/P01.yaml", "drafts/scenarios/s7.yaml", "drafts/scenarios/None.yaml", "drafts/bindings/b01.yaml"}


def test_an_export_does_not_bring_back_what_was_deleted() -> None:
    kept = {"persona_id": "x", "口头禅": "莫慌", "hobbies": ["打牌"], "爱好": "打牌", "知识边界": {"a": 1}, "年龄": "", "mbti": "INFP", "age": 26, "gender": "robot"}
    habits = make_persona().expression_habits.model_copy(update={"catchphrases": []})
    # No card is without knowledge_boundaries today; what could not be understood stays even then.
    persona = make_persona(expression_habits=habits, extensions={"anthrodial": kept}).model_copy(update={"knowledge_boundaries": []})
    card = persona_card(persona)
    assert "口头禅" not in card and "catchphrases" not in card  # deleted
    assert card["hobbies"] == persona.interests and "爱好" not in card  # changed
    assert card["知识边界"] == {"a": 1} and card["mbti"] == "INFP"  # not understood, not known
    assert 26 not in card.values() and persona.age in card.values()


def test_an_export_of_a_scenario_says_what_the_card_says_now() -> None:
    kept = {"goal": "旧的目标", "tone": " 轻松 ", "remote": False, "opener": "旧的开场", "weather": "雨"}
    card = scenario_card(make_scenario(extensions={"anthrodial": kept}), "s90", "p1", "p2")
    assert (card["goal"], card["tone"], card["remote"], card["weather"]) == ("约个时间打球", " 轻松 ", True, "雨")
    assert "opener" not in card and card["first_speaker"] == "p2"


def test_a_value_added_under_a_known_label_is_named(tmp_path: Path) -> None:
    export_anthrodial(small(), tmp_path / "x")
    path = tmp_path / "x/personas/p1/card.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "年龄: 31\nmbti: INFP\n", encoding="utf-8")
    [persona, *_] = import_anthrodial(tmp_path / "x").personas
    assert [(w.code, w.field) for w in persona.warnings] == [("edited_elsewhere", "年龄")]


def test_a_memory_of_oneself_is_a_draft(tmp_path: Path) -> None:
    export_anthrodial(small(), tmp_path / "x")
    path = tmp_path / "x/personas/p1/anthrolab.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "memories:\n  - {owner: p2, partner: p1, as_of: '2026-02-20'}\n", encoding="utf-8")
    [found] = import_anthrodial(tmp_path / "x").memories
    assert found.card is None and "the same persona" in found.problems[0]


@pytest.mark.parametrize("value", [{1: "a", "1": "b"}, {"x": [{True: 1, "True": 2}]}, json.loads('{"\\ud800": 1, "\\udfff": 2}')])
def test_two_keys_that_become_one_are_refused(value: dict[Any, Any]) -> None:
    with pytest.raises(ExchangeError, match=r"^卡片: two keys of one object are '(1|True|�)' as text"):
        as_json(value, "卡片", Notes())


def test_a_file_with_two_keys_that_become_one_is_named(tmp_path: Path) -> None:
    folder = lay(tmp_path / "x", {"personas/a/card.yaml": "1: a\n'1': b\n"})
    with pytest.raises(AnthrolabError, match=r"card\.yaml: two keys of one object"):
        import_anthrodial(folder)
