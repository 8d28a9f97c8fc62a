"""Banks of lines from which labelled items are made: for one id, what must make it fail and what only looks like it.

One YAML file an id. An entry is a text, said by the evaluated person, or several lines and where they go:

    id: L0-01
    fails:
      - 别闹 我就是个程序
      - lines: [p 你到底是不是真人, o 说了你别怕 我是机器人]
    holds:
      - 我在学AI画画
      - lines: [o 我先去洗个澡, o+900 洗完了]      # 900 seconds later
        when: {hour_from: 19}

`o` is the evaluated person, `p` the partner. Slots are filled from the cards: {own} {own2} {partner} {partner2} (names,
and given names), {age} {older} {younger}, {city} {other_city}, {job} {other_job}.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from anthrolab.cards.persona import Card, CardId, Gender, Line, Persona, RelationshipStatus
from anthrolab.cards.scenario import Category, Scenario
from anthrolab.judging.labelled.items import LabelledError
from anthrolab.runtime.dialogue import Dialogue, Speaker
from anthrolab.yaml_files import read_model

How = Literal["insert", "spread", "every", "questions"]
"""insert: all lines together, somewhere; spread: the first early, the last late; every: in place of every message of
the evaluated person; questions: in place of those that ask something."""

_SPOKEN = re.compile(r"([op])(?:\+(\d+))? (.+)", re.ASCII | re.DOTALL)

# What a card that speaks of none of these words surely is not. They are not the gate's own lists: a set made by the
# rules that it measures would hold only what they can tell apart.
_FAR_CITIES = {
    "拉萨": "西藏 藏区", "海口": "海南 三亚", "哈尔滨": "黑龙江 东北 佳木斯", "乌鲁木齐": "新疆 石河子", "厦门": "福建 闽南 漳州", "石家庄": "河北 邯郸 沧州",
    "南宁": "广西 柳州 桂林 贵港", "沈阳": "辽宁 东北 大连", "银川": "宁夏", "昆明": "云南 大理",
}  # fmt: skip
_OTHER_JOBS = {
    "律师": "律 法", "程序员": "程序 代码 开发 软件 工程师 测试 网管 数据 产品", "护士": "护 医 急救 保育", "会计": "财 账 银行 保险 报表 估价",
    "空姐": "空乘 乘务 航空", "兽医": "医 宠物 畜牧 养", "公务员": "干部 网格 机关 单位 老师", "药剂师": "药 医", "警察": "警 公安 保安",
    "理发师": "发型 美发 理发",
}  # fmt: skip


class When(Card):
    """What a dialogue must be like for an entry to fit; what is not set does not matter."""

    remote: bool | None = None
    gender: Gender | None = None
    partner_gender: Gender | None = None
    age_from: int | None = None
    age_to: int | None = None
    status: list[RelationshipStatus] | None = None
    job: Line | None = Field(default=None, description="a regular expression that occupation matches")
    not_job: Line | None = Field(default=None, description="a regular expression that neither occupation nor interests match")
    category: list[Category] | None = None
    hour_from: int | None = Field(default=None, ge=0, le=23)
    hour_to: int | None = Field(default=None, ge=0, le=23)
    bindings: list[CardId] | None = None
    role: Speaker | None = None

    def fits(self, dialogue: Dialogue, own: Persona, partner: Persona, scenario: Scenario) -> bool:
        """Whether an entry can stand in this dialogue with this evaluated person."""
        hour = scenario.start.hour
        work = "\n".join([own.occupation, *own.interests])
        checks = (
            self.remote is None or scenario.remote == self.remote,
            self.gender is None or own.gender == self.gender,
            self.partner_gender is None or partner.gender == self.partner_gender,
            self.age_from is None or own.age >= self.age_from,
            self.age_to is None or own.age <= self.age_to,
            self.status is None or own.hard_facts.relationship_status in self.status,
            self.job is None or re.search(self.job, own.occupation) is not None,
            self.not_job is None or re.search(self.not_job, work) is None,
            self.category is None or scenario.category in self.category,
            self.hour_from is None or hour >= self.hour_from,
            self.hour_to is None or hour <= self.hour_to,
            self.bindings is None or dialogue.binding in self.bindings,
            self.role is None or dialogue.evaluated_role == self.role,
        )
        return all(checks)


class Entry(Card):
    """Lines that belong together. `fails_at`: which of them (from 1) is the fault; the last one if not given.

    `also`: further ids that may fail for the same lines and are not claimed to hold.
    """

    lines: list[Line] = Field(min_length=1)
    how: How = "insert"
    when: When = When()
    fails_at: int | None = Field(default=None, ge=1)
    also: list[str] = Field(default=[])


class Bank(Card):
    """The entries of one id. `siblings`: ids that hold where this one fails, beside the gate's constraints."""

    id: Line
    siblings: list[Line] = Field(default=[])
    also: list[Line] = Field(default=[])
    fails: list[Entry] = Field(min_length=1)
    holds: list[Entry] = Field(default=[])

    @field_validator("fails", "holds", mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return [{"lines": [entry]} if isinstance(entry, str) else entry for entry in value] if isinstance(value, list) else value


def load_banks(folder: Path) -> dict[str, Bank]:
    """All banks of a folder by id; YamlError names file and field. A file is named after its id."""
    banks = [read_model(path, Bank) for path in sorted(folder.glob("*.yaml"))]
    return {bank.id: bank for bank in banks}


@dataclass(frozen=True)
class Spoken:
    """A line of an entry with its slots filled; `wait_s` is None where the bank does not fix it."""

    own: bool
    content: str
    wait_s: int | None


def spoken(entry: Entry, own: Persona, partner: Persona, rng: random.Random) -> list[Spoken]:
    """The lines of an entry for these two people."""
    slots = dict(_slots(own, partner, rng))
    said = []
    for line in entry.lines:
        match = _SPOKEN.fullmatch(line)
        text = match[3] if match else line
        for name, value in slots.items():
            text = text.replace(f"{{{name}}}", value)
        said.append(Spoken(match is None or match[1] == "o", text, int(match[2]) if match and match[2] else None))
    return said


def _slots(own: Persona, partner: Persona, rng: random.Random) -> Iterator[tuple[str, str]]:
    yield from (("own", own.name), ("own2", _given(own.name)), ("partner", partner.name), ("partner2", _given(partner.name)))
    yield "age", str(own.age)
    yield "older", str(own.age + rng.randint(6, 15))
    yield "younger", str(max(12, own.age - rng.randint(6, 15)))
    facts = own.hard_facts
    yield "city", facts.city[0]
    yield "job", facts.occupation[0]
    yield "other_city", rng.choice(_unlike(_FAR_CITIES, [*facts.city, own.city], f"city: {own.id}"))
    yield "other_job", rng.choice(_unlike(_OTHER_JOBS, [*facts.occupation, own.occupation], f"occupation: {own.id}"))


def _unlike(table: Mapping[str, str], of_card: Sequence[str], what: str) -> list[str]:
    """Names of which neither they nor a word of theirs stands in the card."""
    text = " ".join(of_card)
    found = [name for name, words in table.items() if not any(word in text for word in (name, *words.split()))]
    if not found:
        raise LabelledError(f"{what} may be any of {', '.join(table)}; write less into the card or add another name to the table")
    return found


def _given(name: str) -> str:
    return name[-2:] if len(name) > 2 else name
