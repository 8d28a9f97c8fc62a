"""Facts of a person from labelled text and fields: `年龄：27岁`, `Age: 27`, `age: 27`. What has no label is not guessed."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from anthrolab.cards.exchange.foreign import safe_name
from anthrolab.cards.exchange.outcome import Notes

LABELS: dict[str, tuple[str, ...]] = {
    "name": ("姓名", "名字", "昵称", "name", "nickname"),
    "gender": ("性别", "gender", "sex"),
    "age": ("年龄", "年纪", "age"),
    "occupation": ("职业", "工作", "occupation", "job", "profession"),
    "education": ("学历", "教育", "文化程度", "education"),
    "city": ("现居城市", "城市", "现居地", "居住地", "所在城市", "city", "location", "residence"),
    "relationship_status": ("感情状态", "情感状态", "婚姻状况", "婚恋状况", "relationship_status", "relationship status", "marital status"),
    "personality": ("性格关键词", "性格", "personality_keywords", "personality", "personality traits", "traits"),
    "interests": ("兴趣爱好", "兴趣", "爱好", "hobbies", "interests"),
    "weak_topics": ("不擅长的话题", "不太懂的话题", "weak_topics", "weak topics"),
    "catchphrases": ("口头禅/常用语气词", "口头禅", "catchphrases", "catchphrase"),
    "punctuation": ("标点符号习惯", "标点习惯", "punctuation_style", "punctuation"),
    "emoji": ("表情习惯", "表情符号习惯", "emoji"),
    "typical_length": ("回复习惯", "消息长度", "reply_habit", "message length"),
    "knowledge_boundaries": ("知识边界", "knowledge_boundaries", "knowledge boundaries"),
}
"""The fields that a label stands for. The English names with _ are those of AnthroDial's cards; the first Chinese one
is what an export writes."""

FIELD_OF = {label.casefold(): field for field, labels in LABELS.items() for label in labels}

LISTS = ("personality", "interests", "weak_topics", "catchphrases", "knowledge_boundaries")
HABITS = ("catchphrases", "punctuation", "emoji", "typical_length")

GENDERS = {
    **dict.fromkeys(("女", "女性", "女生", "女士", "female", "woman", "girl", "f"), "女"),
    **dict.fromkeys(("男", "男性", "男生", "男士", "male", "man", "boy", "m"), "男"),
}
STATUSES = {
    **dict.fromkeys(("单身", "未婚单身", "single"), "单身"),
    **dict.fromkeys(("恋爱", "恋爱中", "dating", "in a relationship"), "恋爱"),
    **dict.fromkeys(("已婚", "结婚", "married"), "已婚"),
    **dict.fromkeys(("离异", "离婚", "已离婚", "divorced"), "离异"),
    **dict.fromkeys(("丧偶", "widowed"), "丧偶"),
}
AGE = re.compile(r"(\d{1,3})\s*(?:岁|周岁|years? old|years?|y/?o)?[。.]?", re.IGNORECASE)
CLAUSE_END = re.compile(r"[，,。；;、（(]")
SHORT = 12
"""Characters of a bare place or job; a longer text says more than one thing."""


def labelled_lines(text: str) -> Iterator[tuple[str, str, str]]:
    """Field, value and the line itself for every line `label: value` whose label is known."""
    for line in map(str.strip, text.splitlines()):
        inner = line[1:-1] if line[:1] in ("[", "【") and line[-1] in "]】" else line
        at = min((i for i in (inner.find(":"), inner.find("：")) if i > 0), default=-1)
        field = FIELD_OF.get(inner[:at].strip(" \t\u3000*-•·#").casefold()) if at > 0 else None
        value = inner[at + 1 :].strip(" \t\u3000*")
        if field and value:
            yield field, value, line


def read_text(text: str, where: str, found: dict[str, JsonValue], notes: Notes) -> None:
    """Add the labelled lines of a text to `found`; a field that is there already stays."""
    for field, value, line in labelled_lines(text):
        if field not in found:
            found[field] = value
            notes.add("read_from_text", field, f"read from the line '{line[:60]}' of {where}")
        elif found[field] != value:
            notes.add("label_twice", field, f"the line '{line[:60]}' of {where} says something else than what was read before; not used")


def read_fields(raw: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The values of `raw` whose keys are known labels, by our field; the first label of a field counts."""
    found: dict[str, JsonValue] = {}
    for key, value in raw.items():
        field = FIELD_OF.get(key.strip().casefold())
        if field and field not in found and value not in (None, "", []):
            found[field] = value
    return found


def person_fields(found: Mapping[str, JsonValue], notes: Notes) -> dict[str, Any]:
    """Values by our field as the fields of a persona card; what cannot be understood stays out, with a warning."""
    fields: dict[str, Any] = {}
    for field, value in found.items():
        read = understood(field, value, notes)
        if read in (None, "", []):
            notes.add("not_understood", field, f"'{str(value)[:60]}' could not be read; write it into the card")
        else:
            fields[field] = read
    habits = {name: fields.pop(name) for name in HABITS if name in fields}
    if habits:
        fields["expression_habits"] = habits
    facts = _hard_facts(fields, notes)
    if facts:
        fields["hard_facts"] = facts
    return fields


def understood(field: str, value: JsonValue, notes: Notes) -> Any:
    """One value as the card has it; None or empty if it cannot be read."""
    if field == "age":
        return _age(value)
    if field == "gender":
        return GENDERS.get(str(value).strip().casefold())
    if field == "name":
        return safe_name(as_line(value), notes)
    return as_list(value, field, notes) if field in LISTS else as_line(value)


def _age(value: JsonValue) -> int | None:
    if isinstance(value, bool):
        return None
    match = AGE.fullmatch(str(value).strip())
    return int(match[1]) if match and 6 <= int(match[1]) <= 110 else None


def as_line(value: JsonValue) -> str:
    """A value as one line of text; empty if it is an object."""
    if isinstance(value, list):
        return "、".join(as_line(v) for v in value)
    return "" if isinstance(value, dict) else " ".join(str(value).split())


def as_list(value: JsonValue, field: str, notes: Notes) -> list[str]:
    """A value as a list of lines: a text is split at its line ends, else at ；, else at 、, else at commas."""
    if isinstance(value, list):
        return [line for v in value if (line := as_line(v))]
    if isinstance(value, dict):
        return []
    text, parts = str(value).strip(), [as_line(value)]
    # What somebody knows and where it ends is a sentence, with commas of its own.
    for marks in ("\n", "；;") if field == "knowledge_boundaries" else ("\n", "；;", "、", "，,"):
        parts = [line for part in re.split(f"[{marks}]", text) if (line := as_line(part.strip(" -•·*\t")))]
        if len(parts) > 1:
            notes.add("split", field, f"a text became a list of {len(parts)}")
            return parts
    return [part for part in parts if part]


def _hard_facts(fields: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    """The facts that the gate compares with, where the card's own words say them plainly."""
    facts: dict[str, Any] = {name: fields[name] for name in ("age", "gender") if name in fields}
    for name in ("city", "occupation"):
        text = fields.get(name, "")
        if text and len(text) <= SHORT and not CLAUSE_END.search(text) and " " not in text:
            facts[name] = [text]
            notes.add("derived", f"hard_facts.{name}", f"is '{text}', as {name} says no more than that")
    status = STATUSES.get(CLAUSE_END.split(fields.get("relationship_status", ""))[0].strip().casefold())
    if status:
        facts["relationship_status"] = status
        notes.add("derived", "hard_facts.relationship_status", f"is {status}, after relationship_status")
    return facts
