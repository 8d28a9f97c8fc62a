"""The folder layout of AnthroDial's benchmark code: ours come back equal, others' become cards or drafts, nothing is lost."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.cards.binding import Binding
from anthrolab.cards.exchange.anthrodial_cards import memory_text, persona_card
from anthrolab.cards.exchange.anthrodial_export import export_anthrodial
from anthrolab.cards.exchange.anthrodial_import import ImportedLibrary, import_anthrodial, write_library
from anthrolab.cards.exchange.files import yaml_text
from anthrolab.cards.exchange.outcome import ExchangeError
from anthrolab.cards.exchange.verbs import export_to, import_into
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario, Side, Sides
from anthrolab.errors import AnthrolabError
from tests.cards_for_tests import make_persona, make_scenario

FOREIGN = Path(__file__).parent / "data" / "exchange" / "anthrodial"
MEMORY = Memory(owner="p90", partner="p91", as_of=date(2026, 2, 20), version=3, facts=["他换了工作"], concerns=["怕狗"])
ROLE = Binding(id="b91", persona_a="p91", persona_b="p90", scenario="s90", extensions={"anthrodial": {"tested_role": "persona_b"}, "x": 1})


def small(**scenario: Any) -> Library:
    """Two people, one scenario in two bindings, one memory."""
    return Library(
        {"p90": make_persona(), "p91": make_persona("p91", "周子航", 29)},
        {"s90": make_scenario(**scenario), "s91": make_scenario(id="s91", title="没人演的")},
        {"b90": Binding(id="b90", persona_a="p90", persona_b="p91", scenario="s90"), "b91": ROLE},
        {("p90", "p91"): MEMORY},
    )


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def theirs(path: Path) -> Any:
    """A file as their code loads it."""
    with path.open(encoding="utf-8") as f:
        return yaml.safe_load(f)


def said(imported: ImportedLibrary) -> set[tuple[str, str]]:
    return {(w.code, w.field) for w in (*imported.warnings, *(w for c in imported.cards for w in c.warnings))}


def test_the_library_that_comes_with_anthrolab_comes_back_equal(tmp_path: Path) -> None:
    library = load_library(default_cards_dir())
    done = export_anthrodial(library, tmp_path / "布局")
    imported = import_anthrodial(tmp_path / "布局")
    assert said(imported) == set()
    assert imported.library() == replace(library, series={})
    assert [w.code for w in done.warnings if w.code != "opener_of_b"] == ["left_out"] * bool(library.series)
    write_library(imported, tmp_path / "回来")
    assert load_library(tmp_path / "回来") == replace(library, series={})


def test_tested_role_memories_and_a_scenario_of_two_bindings_come_back(tmp_path: Path) -> None:
    done = export_anthrodial(small(), tmp_path / "x")
    imported = import_anthrodial(tmp_path / "x")
    assert imported.library() == small() and said(imported) == set()
    assert [(w.code, w.field) for w in done.warnings] == [("scenario_copied", "s90"), ("opener_of_b", "s90, s91")]
    assert {p.relative_to(tmp_path / "x") for p in done.paths} == {p.relative_to(tmp_path / "x") for p in (tmp_path / "x").rglob("*") if p.is_file()}


def test_their_code_reads_what_we_write(tmp_path: Path) -> None:
    """As libs/chat/persona.py, scenario.py and memory.py and the runner of github.com/ChubbyAI/AnthroDial do."""
    export_anthrodial(small(), tmp_path / "x")
    rows = theirs(tmp_path / "x" / "bindings.yaml")
    assert isinstance(rows, list) and rows[1]["tested_role"] == "persona_b"
    for row in rows:
        a, b = (theirs(tmp_path / "x" / "personas" / row[key] / "card.yaml") for key in ("persona_a", "persona_b"))
        scenario = theirs(tmp_path / "x" / "scenarios" / f"{row['scenario_id']}.yaml")
        assert (a["persona_id"], b["persona_id"], scenario["scenario_id"]) == (row["persona_a"], row["persona_b"], row["scenario_id"])
        assert scenario["place"] == {row["persona_a"]: "甲的家里", row["persona_b"]: "乙的公司"}
        assert datetime.strptime(scenario["start_time"], "%Y-%m-%d %H:%M:%S") == datetime(2026, 3, 6, 20, 31)
        assert scenario["first_speaker"] == row["persona_b"] and "opener" not in scenario
    card = theirs(tmp_path / "x" / "personas" / "p90" / "card.yaml")
    assert (card["nickname"], card["age"], card["personality_keywords"]) == ("林晓雯", 27, ["慢热", "嘴硬"])
    assert "anthrolab" not in str(card) and "hard_facts" not in str(card)  # their prompt prints every field
    memory = (tmp_path / "x" / "personas" / "p90" / "memory.md").read_text(encoding="utf-8")
    assert memory == "# p90 林晓雯 的记忆\n\n## 关于 p91\n- [2026-02-20] 他换了工作\n- [2026-02-20] 怕狗\n"


def test_an_opener_of_a_is_theirs_too(tmp_path: Path) -> None:
    export_anthrodial(small(opener={"speaker": "a", "content": "在不"}), tmp_path / "x")
    assert theirs(tmp_path / "x" / "scenarios" / "s90.yaml")["opener"] == "在不"


@pytest.mark.parametrize("text", ["no", "Yes", "12:30", "0x1f", "1_000", "2026-01-01", "~", "=", "<<", "1e3", "", " a", "null", "- x", "a: b", "#x", "\x85", "\u2028x", "a\n\nb ", "N", "😂", "0o7", "'", "!x", "12：30"])
def test_yaml_of_1_1_and_1_2_readers_says_the_same(text: str, tmp_path: Path) -> None:
    from anthrolab.yaml_files import read_yaml

    value = {"x": [text, {text: 1}], "day": [1.5, True, None]}
    (tmp_path / "x.yaml").write_text(yaml_text(value), encoding="utf-8")
    assert theirs(tmp_path / "x.yaml") == read_yaml(tmp_path / "x.yaml") == value


lines = st.text(min_size=1).map(str.strip).filter(bool)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_library_comes_back_equal(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    line = data.draw
    people = {
        key: make_persona(key, f"人{key}", occupation=line(lines), interests=[line(lines), line(lines)], weak_topics=[line(lines)])
        for key in ("p1", "P-2", "p_3")
    }
    sides = Sides(**{s: Side(place=line(lines), trigger=line(lines), emotion=line(lines), knows=[line(lines)]) for s in ("a", "b")})
    scenes = {key: make_scenario(id=key, title=line(lines), goal=line(lines), speakers=sides) for key in ("s1", "s1-b2", "A0001_B0001_C0001")}
    pairs = line(st.lists(st.tuples(st.permutations(list(people)), st.sampled_from(list(scenes))), min_size=1, max_size=4))
    bindings = {f"b{i}": Binding(id=f"b{i}", persona_a=p[0], persona_b=p[1], scenario=s) for i, (p, s) in enumerate(pairs, 1)}
    facts = line(st.lists(st.text("字ab -[]#", min_size=1, max_size=9).map(str.strip).filter(bool), max_size=3))
    memory = Memory(owner="p1", partner="P-2", as_of=date(2026, 1, 2), facts=facts)
    library = Library(people, scenes, bindings, {("p1", "P-2"): memory})
    folder = tmp_path_factory.mktemp("x") / "布局"
    export_anthrodial(library, folder)
    assert import_anthrodial(folder).library() == library


def test_edits_in_their_files_are_noticed_and_kept(tmp_path: Path) -> None:
    export_anthrodial(small(), tmp_path / "x")
    edit(tmp_path / "x/personas/p90/card.yaml", "age: 27", "age: 28\nmbti: INFP")
    edit(tmp_path / "x/personas/p90/memory.md", "怕狗", "不怕狗了")
    edit(tmp_path / "x/scenarios/s90.yaml", "name: 周末约球\ncategory", "name: 周日约球\ncategory")
    imported = import_anthrodial(tmp_path / "x")
    assert said(imported) == {("edited_elsewhere", "age"), ("edited_elsewhere", "memory.md"), ("edited_elsewhere", "name")}
    library = imported.library()
    assert library.personas["p90"] == make_persona(extensions={"anthrodial": {"age": 28, "mbti": "INFP"}})
    assert library.scenarios["s90"].title == "周末约球" and library.scenarios["s90"].extensions == {"anthrodial": {"name": "周日约球"}}
    assert library.memories["p90", "p91"].extensions == {"anthrodial": {"lines": ["[2026-02-20] 他换了工作", "[2026-02-20] 不怕狗了"]}}
    export_anthrodial(library, tmp_path / "y")
    assert theirs(tmp_path / "y/personas/p90/card.yaml")["mbti"] == "INFP"
    assert import_anthrodial(tmp_path / "y").library() == library


def test_a_foreign_folder_becomes_cards_and_drafts(tmp_path: Path) -> None:
    imported = import_anthrodial(FOREIGN)
    personas = {i.id: i for i in imported.personas}
    assert list(personas) == ["BP01", "BP03", "c01"]
    whole = personas["BP01"].card
    assert whole is not None and (whole.name, whole.age, whole.gender) == ("阿杰", 29, "男")
    assert whole.hard_facts.relationship_status == "恋爱" and whole.expression_habits.typical_length == "一条十个字左右"
    draft = personas["c01"]
    assert draft.card is None and "age" in draft.missing and draft.fields["extensions"]["anthrodial"]["脾气"] == "急"
    [scenario] = imported.scenarios
    assert scenario.fields["speakers"]["b"] == {"place": "医院值班室", "trigger": "刚接班，病人少", "emotion": "都有点累"}
    assert scenario.fields["start"] == datetime(2026, 5, 26, 22) and scenario.fields["horizon_minutes"] == 15
    assert set(scenario.missing) == {"category", "remote", "goal", "tone", "opener", "speakers.a.knows", "speakers.b.knows"}
    first, second = imported.bindings
    assert first.card == Binding(id="b01", persona_a="BP01", persona_b="c01", scenario="A0002_B0001_C0001", extensions={"anthrodial": {"tested_role": "persona_b"}})
    assert ("unresolved", "persona_b") in {(w.code, w.field) for w in second.warnings}
    about, unknown = imported.memories
    assert about.card == Memory(owner="BP01", partner="c01", as_of=date(2026, 5, 20), facts=["[2026-05-02] 她在二医院上夜班", "[2026-05-20] 她妈妈下月来成都"])
    written = memory_text("BP01", "阿杰", [about.card])
    assert written == (FOREIGN / "personas/BP01/memory.md").read_text(encoding="utf-8").split("\n## 关于 BP99")[0].replace("关于 小岚", "关于 c01")
    assert unknown.missing == ("as_of",) and unknown.fields["extensions"] == {"anthrodial": {"partner": "BP99"}}
    library = imported.library()
    assert list(library.personas) == ["BP01"] and not library.bindings and not library.memories
    paths = {str(p.relative_to(tmp_path / "卡片")) for p in write_library(imported, tmp_path / "卡片")}
    assert paths == {
        "personas/BP01.yaml", "drafts/personas/BP03.yaml", "drafts/personas/c01.yaml", "drafts/scenarios/A0002_B0001_C0001.yaml",
        "drafts/bindings/b01.yaml", "drafts/bindings/b02.yaml", "drafts/memories/BP01-c01.yaml", "drafts/memories/BP01-BP99.yaml",
    }  # fmt: skip


def test_no_field_of_a_foreign_persona_is_lost_and_our_changes_win() -> None:
    [card] = [i.card for i in import_anthrodial(FOREIGN).personas if i.card]
    came = theirs(FOREIGN / "personas/BP01/card.yaml")
    came["birthday"] = str(came["birthday"])
    assert persona_card(card) == came
    older = Persona.model_validate({**card.model_dump(), "age": 30, "hard_facts": {**card.hard_facts.model_dump(), "age": 30}})
    assert persona_card(older) == {**came, "age": 30}


def test_a_foreign_scenario_that_was_completed_keeps_its_fields(tmp_path: Path) -> None:
    shutil.copytree(FOREIGN, tmp_path / "x")
    [scenario] = import_anthrodial(tmp_path / "x").scenarios
    rest = make_scenario().model_dump(include={"remote", "goal", "tone", "opener"})
    speakers = {s: {**side, "knows": ["认识"]} for s, side in scenario.fields["speakers"].items()}
    card = Scenario.model_validate({**scenario.fields, **rest, "category": "Work", "speakers": speakers})
    people = {"BP01": make_persona("BP01"), "c01": make_persona("c01", "小岚")}
    library = Library(people, {card.id: card}, {"b1": Binding(id="b1", persona_a="BP01", persona_b="c01", scenario=card.id)})
    export_anthrodial(library, tmp_path / "y")
    written = theirs(tmp_path / "y" / "scenarios" / f"{card.id}.yaml")
    assert written.pop("anthrolab")["category"] == "Work"
    assert written == {**scenario.fields["extensions"]["anthrodial"], "category": "Work", "first_speaker": "c01"}
    assert import_anthrodial(tmp_path / "y").library() == library


@pytest.mark.parametrize(
    ("file", "content", "fix"),
    [
        ("bindings.yaml", "- 1\n", "is no list of bindings"),
        ("bindings.yaml", "a: [", "line"),
        ("personas/BP01/card.yaml", "- a\n", "holds no fields"),
        ("personas/BP01/card.yaml", "a: &a [*a]\n", "aliases"),
        ("personas/BP01/card.yaml", "a: 0x" + "f" * 9_000 + "\n", "more than 3,000 digits"),
        ("personas/BP01/card.yaml", "a: " + "[" * 90 + "]" * 90 + "\n", "nested more than 80 levels deep"),
        ("personas/BP01/card.yaml", "a: " + "x" * 4_100_000, "has more than 4,000,000 bytes"),
        ("personas/BP01/memory.md", "## 关于 p91\n- \udcff", "not UTF-8"),
        ("scenarios/x.yaml", "", "holds no fields"),
    ],
)
def test_a_broken_file_is_named_with_the_fix(tmp_path: Path, file: str, content: str, fix: str) -> None:
    shutil.copytree(FOREIGN, tmp_path / "布局")
    (tmp_path / "布局" / file).write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(AnthrolabError) as refused:
        import_anthrodial(tmp_path / "布局")
    assert str(tmp_path / "布局" / file) in str(refused.value) and fix in str(refused.value)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    shutil.copytree(FOREIGN, tmp_path / "x")
    (tmp_path / "secret.yaml").write_text("nickname: secret\n", encoding="utf-8")
    os.symlink(tmp_path / "secret.yaml", tmp_path / "x/scenarios/s.yaml")
    with pytest.raises(ExchangeError, match="leads out of"):
        import_anthrodial(tmp_path / "x")


def test_foreign_ids_become_no_paths(tmp_path: Path) -> None:
    (tmp_path / "x/personas/a").mkdir(parents=True)
    (tmp_path / "x/personas/a/card.yaml").write_text("persona_id: ../../../evil\nnickname: 甲\n", encoding="utf-8")
    (tmp_path / "x/personas/b").mkdir()
    (tmp_path / "x/personas/b/card.yaml").write_text("persona_id: A\n", encoding="utf-8")
    (tmp_path / "x/personas/a/memory.md").write_text("## 关于 ../../evil\n- [2026-01-01] 坏\n", encoding="utf-8")
    (tmp_path / "x/bindings.yaml").write_text("- {id: ../b, persona_a: /etc/passwd, persona_b: ../../../evil, scenario_id: ../s}\n", encoding="utf-8")
    paths = write_library(import_anthrodial(tmp_path / "x"), tmp_path / "卡")
    assert {str(p.relative_to(tmp_path / "卡")) for p in paths} == {
        "drafts/personas/evil.yaml", "drafts/personas/A.yaml", "drafts/bindings/b.yaml", "drafts/memories/evil-c01.yaml",
    }  # fmt: skip


def test_an_export_writes_into_no_full_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("", encoding="utf-8")
    for folder in (tmp_path, tmp_path / "x"):
        with pytest.raises(ExchangeError, match="is not empty"):
            export_anthrodial(small(), folder)


def test_an_id_that_their_code_would_split_is_named(tmp_path: Path) -> None:
    library = Library({"p_1": make_persona("p_1")}, {}, {})
    assert [(w.code, w.field) for w in export_anthrodial(library, tmp_path / "x").warnings] == [("underscore_id", "p_1")]


def test_the_verbs_bring_a_folder_out_and_in(tmp_path: Path) -> None:
    cards = tmp_path / "卡片"
    write_library(import_anthrodial(export_small(tmp_path)), cards)
    for format, ending in (("v2", "json"), ("v3", "json"), ("png", "png")):
        paths, _ = export_to(cards, format, tmp_path / format)  # type: ignore[arg-type]
        assert [p.name for p in paths] == [f"p90.{ending}", f"p91.{ending}"]
        import_into(paths[0], tmp_path / f"回{format}")
        import_into(paths[1], tmp_path / f"回{format}")
        assert (tmp_path / f"回{format}/personas/p90.yaml").read_bytes() == (cards / "personas/p90.yaml").read_bytes()
    paths, lines = import_into(paths[0], cards)
    assert paths[0].name == "c01.yaml" and any("id_taken" in line for line in lines)
    [path], _ = export_to(cards / "personas/p91.yaml", "png", tmp_path / "一张.png")
    with pytest.raises(ExchangeError, match="is there already"):
        export_to(cards / "personas/p91.yaml", "png", path)
    with pytest.raises(ExchangeError, match="is no folder of cards"):
        export_to(cards / "personas/p91.yaml", "anthrodial", tmp_path / "z")


def export_small(folder: Path) -> Path:
    export_anthrodial(small(), folder / "布局")
    return folder / "布局"


def test_it_works_in_any_locale(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from anthrolab.cards.exchange.verbs import export_to, import_into\n"
        "source, cards, card, image = map(Path, sys.argv[1:])\n"
        "import_into(source, cards); export_to(card, 'png', image); import_into(image, cards)\n"
    )
    env = dict(os.environ)
    if str(Path(__file__).resolve()).isascii():
        # In a checkout under a Chinese path Python itself would not start so: it reads the path of an editable
        # install in the locale's encoding.
        env |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    cards, image = tmp_path / "卡片", tmp_path / "出.png"
    subprocess.run([sys.executable, "-c", code, FOREIGN, cards, cards / "personas/BP01.yaml", image], env=env, check=True)
    assert (tmp_path / "出.png").exists()
    assert "阿杰" in (tmp_path / "卡片/personas/BP01.yaml").read_text(encoding="utf-8")
