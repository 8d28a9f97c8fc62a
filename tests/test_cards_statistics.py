"""Counts of a small corpus by hand, and what the rules for free texts make of real wordings."""

from datetime import date, datetime

import polars as pl
import pytest

from anthrolab.bench.published import published_counts
from anthrolab.cards.binding import Binding
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import HardFacts, Persona
from anthrolab.cards.places import province, region
from anthrolab.cards.scenario import CATEGORIES
from anthrolab.cards.statistics import (
    HORIZONS,
    PERSONA_PARTS,
    QUOTA,
    SCENARIO_PARTS,
    age_band,
    corpus_counts,
    crossed,
    education_level,
    holes,
    occupation_group,
    persona_frame,
    relationship_kind,
    scenario_frame,
    table6,
)
from anthrolab.show.tables import PLANNED_BY_CATEGORY
from tests.cards_for_tests import make_persona, make_scenario


def person(key: str, age: int, gender: str, status: str) -> Persona:
    facts = HardFacts.model_validate({"age": age, "gender": gender, "city": ["成都"], "occupation": ["老师"], "relationship_status": status})
    return make_persona(key, key, age, gender=gender, hard_facts=facts)


def small() -> Library:
    people = [person("p1", 17, "女", "单身"), person("p2", 18, "男", "恋爱"), person("p3", 65, "女", "丧偶"), person("p4", 64, "男", "已婚")]
    scenes = [make_scenario(id="s1"), make_scenario(id="s2", category="Game", horizon_minutes=8, remote=False, start=datetime(2026, 1, 1))]
    memory = Memory(owner="p1", partner="p2", as_of=date(2026, 1, 1))
    bindings = [Binding(id="b1", persona_a="p1", persona_b="p2", scenario="s1"), Binding(id="b2", persona_a="p1", persona_b="p3", scenario="s2")]
    return Library({p.id: p for p in people}, {s.id: s for s in scenes}, {b.id: b for b in bindings}, {("p1", "p2"): memory})


def counted(part: str) -> dict[str, int]:
    return dict(corpus_counts(small()).filter((pl.col("part") == part) & (pl.col("count") > 0)).select("value", "count").iter_rows())


def test_counts_of_a_small_corpus() -> None:
    assert counted("age band") == {"under 18": 1, "18-24": 1, "55-64": 1, "65 and over": 1}
    assert counted("gender") == {"女": 2, "男": 2}
    assert counted("relationship status") == {"单身": 1, "恋爱": 1, "丧偶": 1, "已婚": 1}
    assert counted("education") == {"bachelor": 4}
    assert counted("region") == {"Southwest": 4}
    assert counted("occupation group") == {"education": 4}
    assert counted("category") == {"Sport": 1, "Game": 1}
    assert counted("horizon") == {"15 min": 1, "8 min": 1}
    assert counted("relationship kind") == {"classmates and old friends": 2}
    assert counted("opener") == {"b": 2}
    assert counted("remote") == {"remote": 1, "same place": 1}
    assert counted("cards") == {"personas": 4, "scenarios": 2, "bindings": 2, "memories": 1}


def test_every_value_is_counted_and_every_card_once() -> None:
    counts = corpus_counts(small())
    for parts, cards in ((PERSONA_PARTS, 4), (SCENARIO_PARTS, 2)):
        for part, values in parts.items():
            own = counts.filter(pl.col("part") == part)
            assert own["value"].to_list() == list(values)
            assert own["count"].sum() == cards


def test_crossed_counts_pairs_and_keeps_empty_ones() -> None:
    table = crossed(persona_frame(small()), "age band", "gender")
    assert table.columns == ["age band", "女", "男"]
    assert table.rows() == [
        ("under 18", 1, 0), ("18-24", 0, 1), ("25-34", 0, 0), ("35-44", 0, 0), ("45-54", 0, 0), ("55-64", 0, 1), ("65 and over", 1, 0),
    ]  # fmt: skip


def test_rows_of_the_frames() -> None:
    first = persona_frame(small()).row(0, named=True)
    assert (first["id"], first["categories"], first["bindings"], first["province"], first["setting"]) == ("p1", "Sport, Game", 2, "四川", "town or city")
    assert scenario_frame(small()).select("genders", "age gap").rows() == [("女男", 1), ("女女", 48)]


def test_table_6_beside_the_papers() -> None:
    rows = {item: (paper, ours) for item, paper, ours in table6(small()).iter_rows()}
    assert table6(small()).columns == ["Item", "AnthroDial, Table 6", "Ours"]
    assert rows["Personas"] == ("55 role cards", "4 role cards")
    assert rows["Scenarios"] == ("50 scenario cards", "2 scenario cards")
    assert rows["Bindings"] == ("50, expanded into 100 cases", "2, expanded into 4 cases")
    assert rows["Categories"] == ("12", "2")
    assert rows["Duration horizon"] == ("8, 10, 15, 20 or 25 virtual minutes", "8 or 15 virtual minutes")
    assert rows["Ages"] == ("not said", "from 17 to 65 years")
    assert rows["Memories"] == ("not said", "1, for 1 of the 4 directed pairs")


def test_holes_name_what_is_missing_and_by_how_much() -> None:
    found = {(part, value): (have, want, missing) for part, value, have, want, missing in holes(small()).iter_rows()}
    assert found["cards", "personas"] == (4, 55, 51)
    assert found["memories", "directed pairs"] == (1, 20, 19)
    assert found["bindings of a category", "Sport"] == (1, 4, 3)
    assert found["bindings of a category", "Work"] == (0, 5, 5)
    assert found["age band", "35-44"] == (0, 1, 1)
    assert found["age band x gender", "under 18, 男"] == (0, 1, 1)
    assert found["personas", "in no binding"] == (1, 0, 1)
    assert ("age band x gender", "under 18, 女") not in found
    assert ("scenarios", "in no binding") not in found
    assert not [value for _, value in found if value == "other"]


def test_the_quota_is_half_of_the_papers_cases() -> None:
    assert tuple(QUOTA) == CATEGORIES
    assert sum(QUOTA.values()) == 50
    assert ", ".join(f"{c} {2 * n}" for c, n in QUOTA.items()) == PLANNED_BY_CATEGORY
    assert published_counts()["Cases"].max() == 2 * sum(QUOTA.values())


@pytest.mark.parametrize(("age", "band"), [(6, "under 18"), (17, "under 18"), (18, "18-24"), (24, "18-24"), (25, "25-34"), (64, "55-64"), (65, "65 and over"), (110, "65 and over")])
def test_age_bands_begin_at_their_first_year(age: int, band: str) -> None:
    assert age_band(age) == band


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("大专（护理），自考本科还差两门", "college"), ("本科在读", "bachelor"), ("初中没念完", "lower secondary"), ("中师", "upper secondary"),
        ("硕士（历史）", "master"), ("念到小学四年级", "primary"), ("没上过学", "none"), ("自学", "other"),
    ],
)  # fmt: skip
def test_education(text: str, level: str) -> None:
    assert education_level(text) == level


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("退休厂医，在化工厂的职工医院干了三十多年", "retired"), ("大三学生，读包装工程", "pupil or student"), ("养鸭户，三千多只蛋鸭", "farming and fishing"),
        ("公交车司机", "driving and delivery"), ("汽配厂流水线工", "factory and building"), ("银行客户经理", "office, finance and public service"),
        ("酒楼厨师，站炒锅的", "shop, food and lodging"), ("魔术师", "other"),
    ],
)  # fmt: skip
def test_occupation(text: str, group: str) -> None:
    assert occupation_group(text) == group


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("退休厂医和大三学生，在街道文体中心打球认识快一年；一个喊小龙，一个喊谭爷爷", "friends through a pastime"),
        ("护士和外卖站长，女方小姨介绍相亲认识三周", "dating"), ("退休语文老师和在珠海做厨师的独子，父亲前年过世", "parent and child"),
        ("初二四班班主任和住校生马骏的妈妈", "teachers, pupils and their parents"), ("老弄堂里的裁缝阿婆和从前租她亭子间的女学生", "landlord and tenant"),
        ("从前在一家民宿共过事的两个人，一个是做了一年半的保洁阿姨", "colleagues"), ("前岳母和前女婿", "parents-in-law"),
        ("大学足球队的老队友", "classmates and old friends"), ("同一款手游里的队友，没见过面", "met online"), ("两个人", "other"),
    ],
)  # fmt: skip
def test_relationship(text: str, kind: str) -> None:
    assert relationship_kind(text) == kind


@pytest.mark.parametrize(
    ("text", "home", "where"),
    [("深圳（老家汕头潮阳）", "广东", "South"), ("周口郸城的村里", "河南", "Central"), ("内蒙古牧区", "内蒙古", "North"), ("重庆", "重庆", "Southwest"), ("火星", "", "")],
)  # fmt: skip
def test_places(text: str, home: str, where: str) -> None:
    assert (province(text), region(text)) == (home, where)


def test_our_corpus_is_counted_whole_and_the_rules_know_most_of_it() -> None:
    library = load_library(default_cards_dir())
    people, scenes = persona_frame(library), scenario_frame(library)
    assert people.height == len(library.personas)
    assert scenes.height == len(library.scenarios)
    for column in ("education", "region", "occupation group"):
        assert people.filter(pl.col(column) == "other").height <= people.height // 20, column
    assert scenes.filter(pl.col("relationship kind") == "other").height <= scenes.height // 10
    assert set(scenes["horizon"]) <= {f"{h} min" for h in HORIZONS}
