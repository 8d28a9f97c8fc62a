"""Character Cards V1 to V3: ours come back as they were, of others nothing is lost and nothing invented."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.cards.exchange.character_card import (
    Version,
    character_card,
    export_character_card,
    import_character_card,
)
from anthrolab.cards.exchange.files import card_yaml, write_imported
from anthrolab.cards.exchange.foreign import beyond
from anthrolab.cards.exchange.outcome import ExchangeError, Imported
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.runtime.history import Recall
from anthrolab.runtime.prompt import chat_snapshot, chat_system, transcript_prompt
from anthrolab.runtime.schedule import Asked, Sent
from anthrolab.runtime.seat import seats
from anthrolab.yaml_files import read_model
from tests.cards_for_tests import make_persona, make_scenario

DATA = Path(__file__).parent / "data" / "exchange"
VERSIONS: tuple[Version, ...] = (2, 3)

lines = st.text(min_size=1).map(str.strip).filter(bool)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(st.text(), values, max_size=4)


@st.composite
def personas(draw: st.DrawFn) -> Persona:
    habits = make_persona().expression_habits.model_copy(
        update={"catchphrases": draw(st.lists(lines, max_size=2)), "emoji": draw(lines)}
    )
    return make_persona(
        age=draw(st.integers(6, 110)),
        occupation=draw(lines),
        personality=draw(st.lists(lines, min_size=2, max_size=3)),
        interests=draw(st.lists(lines, min_size=2, max_size=3)),
        expression_habits=habits,
        extensions=draw(st.dictionaries(st.text().filter(lambda k: k != "character_card"), values, max_size=2)),
    )


def write(folder: Path, card: object, name: str = "他人的卡.json") -> Path:
    (folder / name).write_text(json.dumps(card), encoding="utf-8")
    return folder / name


def whole(imported: Imported[Persona]) -> Persona:
    assert imported.card is not None, imported.problems
    return imported.card


def exported(persona: Persona, folder: Path, version: Version, name: str = "出.json") -> Any:
    export_character_card(persona, folder / name, version)
    return json.loads((folder / name).read_text(encoding="utf-8"))


@settings(max_examples=40, deadline=None)
@given(personas(), st.sampled_from(VERSIONS), st.sampled_from(["json", "png"]))
def test_our_card_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, persona: Persona, version: Version, ending: str) -> None:
    path = tmp_path_factory.mktemp("x") / f"卡.{ending}"
    export_character_card(persona, path, version)
    imported = import_character_card(path)
    assert imported.card == persona and imported.warnings == ()


def test_every_persona_that_comes_with_anthrolab_comes_back(tmp_path: Path) -> None:
    for persona in load_library(default_cards_dir()).personas.values():
        for version, ending in ((2, "json"), (3, "json"), (3, "png")):
            export_character_card(persona, tmp_path / f"x.{ending}", version)  # type: ignore[arg-type]
            assert whole(import_character_card(tmp_path / f"x.{ending}")) == persona


@settings(max_examples=40, deadline=None)
@given(objects, objects, objects, st.sampled_from(VERSIONS), st.sampled_from(VERSIONS))
def test_no_field_of_a_foreign_card_is_lost(
    tmp_path_factory: pytest.TempPathFactory, root: dict[str, Any], data: dict[str, Any], extensions: dict[str, Any], came: Version, goes: Version
) -> None:
    folder = tmp_path_factory.mktemp("x")
    readable = {k: v for k, v in character_card(make_persona(), came)["data"].items() if k in ("name", "description", "personality")}  # type: ignore[union-attr]
    extensions.pop("anthrolab", None)
    foreign = {**root, "spec": f"chara_card_v{came}", "spec_version": f"{came}.0", "data": {**data, **readable, "extensions": extensions}}
    imported = import_character_card(write(folder, foreign))
    back = exported(whole(imported), folder, goes)
    if came != goes:
        foreign |= {"spec": back["spec"], "spec_version": back["spec_version"]}
    assert beyond(foreign, back) == {}
    assert "kept_outside" in {w.code for w in imported.warnings}
    # And through our own file, as a person would keep it.
    (folder / "c01.yaml").write_text(card_yaml(whole(imported)), encoding="utf-8")
    assert read_model(folder / "c01.yaml", Persona) == imported.card
    assert whole(import_character_card(folder / "出.json")) == imported.card


def test_a_hand_made_card_of_another_tool_is_read_and_written_back(tmp_path: Path) -> None:
    imported = import_character_card(DATA / "tavern_v2.json")
    card = whole(imported)
    assert (card.id, card.name, card.gender, card.age, card.city) == ("c01", "林小满", "女", 26, "自贡")
    assert card.relationship_status == "单身，家里催" and card.hard_facts.relationship_status == "单身"
    assert card.hard_facts.city == ["自贡"] and card.hard_facts.occupation == ["护士"]
    assert card.personality == ["嘴快，心软", "夜班完了爱嚼耳朵"] and card.interests == ["打麻将", "看本地美食号"]
    assert card.expression_habits.emoji == "只会发[捂脸]" and card.expression_habits.catchphrases == ["哎哟喂", "莫慌"]
    assert card.knowledge_boundaries == ["打针输液门清，开药的事不敢讲"]
    foreign = json.loads((DATA / "tavern_v2.json").read_text(encoding="utf-8"))
    assert beyond(foreign, exported(card, tmp_path, 2)) == {}
    said = {(w.code, w.field) for w in imported.warnings}
    assert {("read_from_text", "age"), ("derived", "hard_facts.city"), ("id_made", "id"), ("split", "interests")} <= said


def test_what_a_card_does_not_say_is_missing_and_not_made_up(tmp_path: Path) -> None:
    description = "A nurse of about thirty who lives in Chengdu.\nAge: thirtyish\nGender: robot\nCity: 成都，老家自贡\nRelationship status: complicated"
    imported = import_character_card(write(tmp_path, {"spec": "chara_card_v2", "data": {"name": "Nyx", "description": description}}))
    assert imported.card is None and imported.id == "Nyx"
    assert {k: v for k, v in imported.fields.items() if k != "extensions"} == {
        "id": "Nyx", "name": "Nyx", "city": "成都，老家自贡", "relationship_status": "complicated",
    }  # fmt: skip
    assert {"age", "gender", "occupation", "hard_facts"} <= set(imported.missing)
    assert "age: is missing; add it" in imported.problems
    assert {(w.code, w.field) for w in imported.warnings if w.code == "not_understood"} == {("not_understood", "age"), ("not_understood", "gender")}


def test_a_draft_is_written_where_no_library_reads_it(tmp_path: Path) -> None:
    imported = import_character_card(write(tmp_path, {"name": "小岚", "description": "年龄：27岁", "x": " kept "}))
    [path] = write_imported(imported, tmp_path / "卡片")
    assert path == tmp_path / "卡片" / "drafts" / "personas" / "c01.yaml"
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# a draft; it still needs:\n") and "# gender: is missing; add it\n" in text and "x: ' kept '" in text
    with pytest.raises(ExchangeError, match="is there already"):
        write_imported(imported, tmp_path / "卡片")


@pytest.mark.parametrize(
    ("name", "card_id"),
    [("小岚", "c01"), ("", "c01"), ("Nyx", "Nyx"), ("../../etc/passwd", "etc-passwd"), ("..", "c01"), ("/abs", "abs"), ("a\\b\0c", "a-b-c"),
     ("Nyx\n", "Nyx"), ("x" * 300, "x" * 64), ("Ñandú", "c01"), ("TAKEN", "c01"), ("C01", "c02")],
)  # fmt: skip
def test_no_foreign_name_becomes_a_path(tmp_path: Path, name: str, card_id: str) -> None:
    path = write(tmp_path, {"spec": "chara_card_v3", "data": {"name": name}})
    imported = import_character_card(path, taken=["taken", *(["c01"] if name == "C01" else [])])
    assert imported.id == imported.fields["id"] == card_id
    [written] = write_imported(imported, tmp_path / "out")
    assert written.parent == tmp_path / "out" / "drafts" / "personas"


def test_an_edit_in_another_tool_is_noticed_and_kept(tmp_path: Path) -> None:
    persona = make_persona()
    card = exported(persona, tmp_path, 3)
    card["data"]["description"] = card["data"]["description"].replace("年龄：27岁", "年龄：28岁")
    card["data"]["tags"] = ["added"]
    imported = import_character_card(write(tmp_path, card))
    edits = [w for w in imported.warnings if w.code == "edited_elsewhere"]
    assert [w.field for w in edits] == ["data.description"] and "'年龄：27岁' is now '年龄：28岁'" in edits[0].done
    back = whole(imported)
    assert back.age == 27 and back.model_copy(update={"extensions": {}}) == persona
    again = exported(back, tmp_path, 3)
    assert again["data"]["description"] == card["data"]["description"] and again["data"]["tags"] == ["added"]
    last = import_character_card(tmp_path / "出.json")
    assert whole(last) == back and last.warnings == ()
    again["data"]["scenario"] = "a second edit"
    kept = whole(import_character_card(write(tmp_path, again))).extensions["character_card"]["data"]  # type: ignore[index, call-overload]
    assert kept == {"description": card["data"]["description"], "tags": ["added"], "scenario": "a second edit"}


def test_a_kept_text_that_the_card_has_outgrown_is_named(tmp_path: Path) -> None:
    card = whole(import_character_card(DATA / "tavern_v2.json"))
    older = Persona.model_validate({**card.model_dump(), "age": 27, "hard_facts": {**card.hard_facts.model_dump(), "age": 27}})
    assert export_character_card(card, tmp_path / "a.json").warnings == ()
    [warning] = export_character_card(older, tmp_path / "b.json").warnings
    assert (warning.code, warning.field) == ("stale_text", "data.description") and "age" in warning.done


def test_a_version_2_card_loses_the_note_that_it_was_a_fallback(tmp_path: Path) -> None:
    from anthrolab.cards.exchange.embedded import BACKFILL_NOTE

    card = character_card(make_persona(), 2)
    card["data"]["creator_notes"] = BACKFILL_NOTE  # type: ignore[index, call-overload]
    assert import_character_card(write(tmp_path, card)).card == make_persona()


def test_memories_travel_along(tmp_path: Path) -> None:
    memory = Memory(owner="p90", partner="p91", as_of="2026-02-20", facts=["他换了工作"])  # type: ignore[arg-type]
    export_character_card(make_persona(), tmp_path / "x.png", memories=[memory])
    imported = import_character_card(tmp_path / "x.png", taken=["P90"])
    assert imported.id == "c01" and imported.memories == (memory.model_copy(update={"owner": "c01"}),)
    assert [w.code for w in imported.warnings] == ["id_taken"]
    paths = write_imported(imported, tmp_path / "卡片")
    assert [str(p.relative_to(tmp_path / "卡片")) for p in paths] == ["personas/c01.yaml", "drafts/memories/c01-p91.yaml"]


def test_a_travelled_card_that_does_not_hold_is_not_believed_and_not_lost(tmp_path: Path) -> None:
    card = exported(make_persona(), tmp_path, 3)
    card["data"]["extensions"]["anthrolab"]["persona"]["age"] = 900
    imported = import_character_card(write(tmp_path, card))
    assert "anthrolab_card_unreadable" in {w.code for w in imported.warnings}
    back = whole(imported)
    assert back.age == 27  # from the description
    assert exported(back, tmp_path, 3)["data"]["extensions"]["anthrolab_unread"]["persona"]["age"] == 900


@pytest.mark.parametrize(
    ("card", "code"),
    [
        ({"name": "x", "first_mes": "hi"}, "v1_card"),
        ({"spec": "chara_card_v9", "data": {"name": "x"}}, "unknown_spec"),
        ({"spec": "chara_card_v3", "spec_version": "3.1", "data": {"name": "x"}}, "newer_version"),
        ({"spec": "chara_card_v3", "data": {"name": "x"}}, "missing_field"),
        ({"spec": "chara_card_v3", "data": {"name": 5, "tags": "a"}}, "wrong_type"),
        ({"spec": "chara_card_v3", "data": {"name": "half \ud83d"}}, "broken_unicode"),
        ({"spec": "chara_card_v3", "data": {"name": "Nyx: <the> star\n"}}, "name_mended"),
        ({"spec": "chara_card_v3", "data": {"name": "x", "description": "Age: 20\nAge: 30"}}, "label_twice"),
    ],
)
def test_every_repair_has_a_name(tmp_path: Path, card: object, code: str) -> None:
    imported = import_character_card(write(tmp_path, card))
    assert code in {w.code for w in imported.warnings}
    json.dumps(dict(imported.fields), ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize(
    ("name", "image", "version", "said"),
    [("x.webp", None, 3, "ends in neither .json nor .png"), ("x.json", "a.png", 3, "a .json card has no image"), ("x.png", None, 1, "no Character Card version 1"),
     ("x.png", "missing.png", 3, "is no file")],
)  # fmt: skip
def test_an_export_that_cannot_be_is_refused(tmp_path: Path, name: str, image: str | None, version: Any, said: str) -> None:
    with pytest.raises(ExchangeError, match=said):
        export_character_card(make_persona(), tmp_path / name, version, tmp_path / image if image else None)


def test_extensions_are_kept_as_they_are_and_reach_neither_hash_nor_prompt() -> None:
    kept = {"x ": [" y ", 1, 2.0, True, None, {"z": "SECRET "}]}
    persona = make_persona(extensions=kept)
    assert persona.extensions == kept
    assert "extensions" not in make_persona().model_dump() and "extensions" not in make_persona().model_dump_json()
    seat = seats(persona, make_persona("p91", "周子航", 29, extensions=kept), make_scenario(extensions=kept))["a"]
    ask = Asked("a", 0, (Sent("b", "周末有空没", 0),), None)
    recall = Recall(None, ask.messages)
    for shown in (chat_system(seat) + chat_snapshot(seat, ask, recall), transcript_prompt(seat, ask, recall)):
        assert "SECRET" not in shown and "周子航" in shown
    with pytest.raises(ValueError, match="holds something that JSON has not"):
        make_persona(extensions={"x": {1, 2}})
