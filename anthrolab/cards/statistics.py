"""What a corpus of cards is made of: counts, Table 6, and holes (paper sections 5.5 and 6.1, Table 6). All frames, no files.

Age, gender, relationship status, category, horizon, remote and the opener's side are fields of the cards. Education,
region, setting, occupation and the kind of relationship are free text there; the groups here are derived from its words,
and what no rule knows is counted as "other", never left out.
"""

import re
from collections.abc import Mapping, Sequence
from typing import get_args

import polars as pl

from anthrolab.cards.library import Library
from anthrolab.cards.persona import Gender, Persona, RelationshipStatus
from anthrolab.cards.places import REGIONS, province, region
from anthrolab.cards.scenario import CATEGORIES, Category

OTHER = "other"
PAPER_SOURCE = "AnthroDial, Table 6"
PAPER_COUNTS = {"personas": 55, "scenarios": 50, "bindings": 50}
QUOTA: Mapping[Category, int] = dict(zip(CATEGORIES, (4, 4, 5, 4, 4, 5, 5, 4, 5, 3, 3, 4), strict=True))
"""Bindings of each category; half the cases that the paper's Tables 10 and 11 count."""
HORIZONS = (8, 10, 15, 20, 25)
"""Virtual minutes."""
MEMORY_PAIRS = 20
"""Directed pairs of speakers with a memory that the corpus should have at least; ours, the paper names none."""

AGE_BANDS: dict[str, int] = {"under 18": 0, "18-24": 18, "25-34": 25, "35-44": 35, "45-54": 45, "55-64": 55, "65 and over": 65}
"""Each band's name and the age at which it begins."""

_EDUCATION = {
    "doctorate": "博士", "master": "硕士|研究生", "bachelor": "本科|大学", "college": "大专|专科|高职",
    "upper secondary": "高中|高一|高二|高三|中专|职高|中职|技校|中师", "lower secondary": "初中|初一|初二|初三",
    "primary": "小学", "none": "没上过学|没念过书|不识字|文盲",
}  # fmt: skip
_OCCUPATION = {
    "retired": "退休|内退|离休",
    "pupil or student": "学生|在读|高一|高二|高三|大一|大二|大三|大四|研究生|博士生",
    "no paid work": "全职妈妈|全职太太|全职爸爸|家庭主妇|待业|失业|被裁",
    "health": "医|护士|护理|药|120|保健|康复",
    "education": "老师|教师|保育|教练|教授|辅导员|幼师",
    "science and engineering": "工程师|程序员|开发|产品经理|测试|测绘|分析|研究|博士后|设计|算法|运维",
    "farming and fishing": "种地|务农|农|养|渔|果|茶园|牧",
    "driving and delivery": "司机|外卖|快递|货车|海轮|船|铁路|骑手|物流|水手|二副|调度",
    "factory and building": "厂|工地|流水线|瓦匠|电工|焊|木工|装修|工人|汽修|裁缝",
    "shop, food and lodging": "店|超市|老板|厨|饭|酒楼|网咖|网吧|民宿|餐|销售|导购|摊|外贸|收租|房东|理发",
    "office, finance and public service": "银行|保险|会计|内勤|客户经理|网格员|公务员|文员|行政|社区|人事|估价|律师|前台|物业|警",
    "media and culture": "编辑|记者|电台|主播|博物馆|讲解|导游|摄影|演员|歌|写手|翻译|画|出版",
}  # fmt: skip
"""In order: the first group with a word in the text has it. Retired people and students are groups of their own."""
_RELATIONSHIP = {
    "strangers": "陌生人|头一回说话|第一次说话|素不相识",
    "dating": "相亲|暧昧|处对象|黄昏恋|没说破|追求|来往了",
    "couple": "夫妻|两口子|情侣|男女朋友|恋人|未婚夫|未婚妻|老公|老婆|丈夫|妻子|异地恋|恋爱",
    "former couple": "前夫|前妻|前任|前男友|前女友",
    "teachers, pupils and their parents": "班主任|师生|同一个班|同学的家长|家长会|(?:老师|教练)和.*(?:学生|妈|爸|孩子|家长)",
    "landlord and tenant": "租客|租户|房客|租[她他]|房东和她的|房东和他的",
    "neighbours and same village": "邻居|同小区|同村|楼上|楼下|街坊|业主|团购|对门",
    "grandparent and grandchild": "爷爷|奶奶|外公|外婆|姥姥|姥爷|孙女|孙子|外孙|祖孙",
    "parents-in-law": "公公|婆婆|儿媳|岳父|岳母|丈母娘|老丈人|女婿|亲家",
    "parent and child": "母子|母女|父子|父女|儿子|女儿|闺女|独子|妈妈|爸爸|母亲|父亲",
    "siblings and other relatives": "姐妹|兄弟|姐弟|兄妹|亲姐|亲哥|[堂表][姐妹哥弟兄叔嫂]|(?<!阿)姨|舅|姑(?!娘)|叔|侄|外甥|妯娌|连襟|亲戚|小姑子|嫂",
    "classmates and old friends": "同学|大学.*队友|室友|同寝|闺蜜|发小|老友|老朋友|好友|战友",
    "met online": "网友|手游|游戏|队友|开黑|公会|豆瓣|论坛|贴吧|群友|听众|没见过面",
    "colleagues": "同事|工友|同一家|搭班|上司|领导|下属|徒弟|师傅|师徒|老板和|同厂|同公司|工作搭|同行|前辈|带过|外包|搭档|共过事|共事|作者|合作",
    "customer and seller": "客户|顾客|买家|卖家|熟客|老主顾|乘客|店主|客人|会员|住客|寄养|坐[他她]的车",
    "friends through a pastime": "球友|棋友|钓友|跑友|舞友|舞伴|牌友|车友|票友|驴友|打球认识|钓鱼认识|爱好",
}  # fmt: skip
"""The first clause of the card's text in which a group has a word decides, the groups in this order."""

PERSONA_PARTS: dict[str, tuple[str, ...]] = {
    "age band": tuple(AGE_BANDS),
    "gender": get_args(Gender),
    "relationship status": get_args(RelationshipStatus),
    "education": (*_EDUCATION, OTHER),
    "region": (*REGIONS, OTHER),
    "setting": ("village", "town or city"),
    "occupation group": (*_OCCUPATION, OTHER),
}
"""What personas are counted by, each with all its values: those that no card has are counted too, as 0."""
SCENARIO_PARTS: dict[str, tuple[str, ...]] = {
    "category": CATEGORIES,
    "horizon": tuple(f"{h} min" for h in HORIZONS),
    "relationship kind": (*_RELATIONSHIP, OTHER),
    "opener": ("a", "b"),
    "remote": ("remote", "same place"),
}


def age_band(age: int) -> str:
    """The band of an age in years."""
    return [name for name, start in AGE_BANDS.items() if age >= start][-1]


def education_level(text: str) -> str:
    """The level that the text names first: "大专（护理），自考本科还差两门" is a college education."""
    found = [(m.start(), level) for level, words in _EDUCATION.items() if (m := re.search(words, text))]
    return min(found)[1] if found else OTHER


def occupation_group(text: str) -> str:
    """The group of an occupation, by the part of the text that has one: its first, else a later one."""
    return _first_group(text, _OCCUPATION)


def relationship_kind(text: str) -> str:
    """The kind of a relationship, by the first clause of the text that says one."""
    return _first_group(text, _RELATIONSHIP)


def persona_frame(library: Library) -> pl.DataFrame:
    """A row for each persona: id, name, age, what it is counted by, its categories, and how many bindings it plays in."""
    played: dict[str, list[str]] = {key: [] for key in library.personas}
    for binding in library.bindings.values():
        for key in (binding.persona_a, binding.persona_b):
            played[key].append(library.scenarios[binding.scenario].category)
    rows = [
        {
            "id": p.id, "name": p.name, "age": p.age, "age band": age_band(p.age), "gender": p.gender,
            "relationship status": p.hard_facts.relationship_status, "education": education_level(p.education),
            "region": region(_home(p)) or OTHER, "province": province(_home(p)) or OTHER, "city": re.split("[（(，,]", p.city)[0],
            "setting": "village" if re.search("村|乡下|屯里", re.split("[（(]", p.city)[0]) else "town or city",
            "occupation group": occupation_group(p.occupation), "occupation": p.occupation,
            "categories": ", ".join(dict.fromkeys(played[p.id])), "bindings": len(played[p.id]),
        }
        for p in library.personas.values()
    ]  # fmt: skip
    return pl.DataFrame(rows)


def scenario_frame(library: Library) -> pl.DataFrame:
    """A row for each scenario of the benchmark: id, title, what it is counted by, and both speakers' ages and genders."""
    pairs = {b.scenario: (library.personas[b.persona_a], library.personas[b.persona_b]) for b in library.bindings.values()}
    rows = []
    for s in library.scenarios.values():
        pair = pairs.get(s.id)
        rows.append({
            "id": s.id, "title": s.title, "category": s.category, "horizon": f"{s.horizon_minutes} min",
            "relationship kind": relationship_kind(s.relationship), "relationship": s.relationship,
            "opener": s.opener.speaker, "remote": "remote" if s.remote else "same place", "start": s.start,
            "genders": "".join(sorted(p.gender for p in pair)) if pair else "",
            "age gap": abs(pair[0].age - pair[1].age) if pair else None,
        })  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"age gap": pl.Int64})


def corpus_counts(library: Library) -> pl.DataFrame:
    """part, value, count: personas by PERSONA_PARTS, scenarios by SCENARIO_PARTS, and what there is of each card."""
    rows: list[tuple[str, str, int]] = [("cards", kind, len(cards)) for kind, cards in vars(library).items()]
    for frame, parts in ((persona_frame(library), PERSONA_PARTS), (scenario_frame(library), SCENARIO_PARTS)):
        for part, values in parts.items():
            there = dict(frame.group_by(part).len().iter_rows())
            rows += [(part, value, there.get(value, 0)) for value in values]
    return pl.DataFrame(rows, schema={"part": pl.String, "value": pl.String, "count": pl.Int64}, orient="row")


def crossed(frame: pl.DataFrame, rows: str, columns: str) -> pl.DataFrame:
    """How many cards have each pair of values, 0 included: a row for each value of `rows`, a column for each of `columns`.

    frame: `persona_frame` or `scenario_frame`; "other" stands only where a card has it.
    """
    parts = PERSONA_PARTS | SCENARIO_PARTS
    counted = {(a, b): n for a, b, n in frame.group_by(rows, columns).len().iter_rows()}
    wide = [v for v in parts[columns] if v != OTHER or v in frame[columns]]
    long = [v for v in parts[rows] if v != OTHER or v in frame[rows]]
    return pl.DataFrame([{rows: a} | {b: counted.get((a, b), 0) for b in wide} for a in long])


def table6(library: Library) -> pl.DataFrame:
    """Item, the paper's value and ours, as text: the corpus rows of the paper's Table 6 and those that it does not have."""
    scenarios = library.scenarios.values()
    horizons = sorted({s.horizon_minutes for s in scenarios})
    pairs = _pairs(library)
    ages = [p.age for p in library.personas.values()]
    rows = [
        ("Personas", "55 role cards", f"{len(library.personas)} role cards"),
        ("Scenarios", "50 scenario cards", f"{len(scenarios)} scenario cards"),
        ("Bindings", "50, expanded into 100 cases", f"{len(library.bindings)}, expanded into {2 * len(library.bindings)} cases"),
        ("Categories", "12", str(len({s.category for s in scenarios}))),
        ("Duration horizon", "8, 10, 15, 20 or 25 virtual minutes", f"{_or(horizons)} virtual minutes"),
        ("Ages", "not said", f"from {min(ages)} to {max(ages)} years"),
        ("Memories", "not said", f"{len(library.memories)}, for {len(pairs & set(library.memories))} of the {len(pairs)} directed pairs"),
        ("Series", "not said", f"{len(library.series)}, of {sum(len(s.sessions) for s in library.series.values())} sessions"),
    ]
    return pl.DataFrame(rows, schema=["Item", PAPER_SOURCE, "Ours"], orient="row")


def _pairs(library: Library) -> set[tuple[str, str]]:
    """Who may remember whom in some binding: owner and partner."""
    return {p for b in library.bindings.values() for p in ((b.persona_a, b.persona_b), (b.persona_b, b.persona_a))}


def holes(library: Library) -> pl.DataFrame:
    """What is missing: part, value, have, want, missing. Empty bands want 1; categories, cards and memories their numbers."""
    bound = [library.scenarios[b.scenario].category for b in library.bindings.values()]
    rows: list[tuple[str, str, int, int]] = [
        *(("cards", kind, len(getattr(library, kind)), want) for kind, want in PAPER_COUNTS.items()),
        ("memories", "directed pairs", len(_pairs(library) & set(library.memories)), MEMORY_PAIRS),
        *(("bindings of a category", category, bound.count(category), want) for category, want in QUOTA.items()),
        *((part, value, n, 1) for part, value, n in corpus_counts(library).iter_rows() if part != "cards" and value != OTHER),
        *_cells(persona_frame(library), "age band", "gender"),
        ("personas", "in no binding", persona_frame(library).filter(pl.col("bindings") == 0).height, 0),
        ("scenarios", "in no binding", len(library.scenarios.keys() - {b.scenario for b in library.bindings.values()}), 0),
    ]
    frame = pl.DataFrame(rows, schema={"part": pl.String, "value": pl.String, "have": pl.Int64, "want": pl.Int64}, orient="row")
    unused = pl.col("value") == "in no binding"
    missing = pl.when(unused).then(pl.col("have")).otherwise(pl.col("want") - pl.col("have"))
    return frame.with_columns(missing.alias("missing")).filter(pl.col("missing") > 0)


def _cells(frame: pl.DataFrame, rows: str, columns: str) -> list[tuple[str, str, int, int]]:
    wide = crossed(frame, rows, columns)
    return [(f"{rows} x {columns}", f"{row[rows]}, {c}", row[c], 1) for row in wide.iter_rows(named=True) for c in wide.columns[1:]]


def _first_group(text: str, groups: Mapping[str, str]) -> str:
    for clause in re.split("[，；。,;]", text):
        for group, words in groups.items():
            if re.search(words, clause):
                return group
    return OTHER


def _home(persona: Persona) -> str:
    """The texts that say where a person lives, the card's city first."""
    return "，".join([re.split("[（(]", persona.city)[0], *persona.hard_facts.city, persona.city])


def _or(numbers: Sequence[int]) -> str:
    words = [str(n) for n in numbers]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
