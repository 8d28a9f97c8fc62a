"""What the writer is asked when a dialogue is repaired, and the reading of its answer."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.files import content_hash
from anthrolab.judging import materials
from anthrolab.judging.rubric import Rubric
from anthrolab.loop.changes import Refusal
from anthrolab.loop.records import FailureRecord
from anthrolab.models.client import Reply
from anthrolab.models.fence import fenced, quoted
from anthrolab.models.json_text import read_object
from anthrolab.models.reask import Read
from anthrolab.runtime.dialogue import Dialogue, Speaker
from anthrolab.runtime.seat import shown

SOURCES = ("loop/repair_prompt.py", "loop/rewrite.py", "loop/changes.py", "judging/materials.py", "models/fence.py")
"""The code that fills the prompts and reads the answers."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "changes": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"message": {"type": "integer"}, "content": {"type": "string"}},
                "required": ["message", "content"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["changes"],
    "additionalProperties": False,
}


_REFUSED: dict[Refusal, str] = {
    "no_such_message": "没有这个序号",
    "partner": "改了对方的话",
    "opener": "改了开场白",
    "empty": "新内容是空的",
    "no_change": "没有改动，或者交的跟原来一样",
    "two_texts": "同一条交了两个内容",
    "too_long": "太长了",
    "unseen": "新内容里有换行，或者有看不见的字符",
    "not_failing": "改了不该改的那条",
    "too_many": "改得太多了",
    "log": "这段聊天没法重放",
    "guard": "跟自己说过的话重样，或者一改后面的话就发不出去了",
    "other_changes": "动了别的地方",
}


@cache
def template(name: str) -> Template:
    """A prompt file of this room, e.g. `repair`."""
    return Template((files("anthrolab.loop") / "prompts" / f"{name}.md").read_text(encoding="utf-8").rstrip("\n"))


def prompts_hash() -> str:
    """Changes when the prompts of a repair do, or the code around them."""
    texts = [template(name).template for name in ("repair", "repair_ask")]
    return content_hash([texts, [(files("anthrolab") / name).read_text(encoding="utf-8") for name in SOURCES]])


def instructions(longest: int) -> str:
    """What is the same for every dialogue; `longest`: characters of a new text."""
    return template("repair").substitute(longest=longest)


def question(
    dialogue: Dialogue, personas: Mapping[Speaker, Persona], scenario: Scenario | None, records: Sequence[FailureRecord],
    rubric: Rubric, must: Collection[int], free: int, last: Sequence[str] = (),
) -> str:  # fmt: skip
    """The evaluated role's card and situation, the whole chat numbered, the records, and which messages may be changed.

    must: positions of failing messages; free: how many other own messages may be chosen besides. last: lines about the
    attempt before this one.
    """
    own = [i for i in dialogue.turns() if i not in must] if free else []
    said = f"准许改的是：{_numbers(must)}。" if must else ""
    said += "整段的毛病也在这几条里改。" if must and free and not own else ""
    said += f"{'整段的毛病也可以在这几条里改，或者另外' if must else '整段的毛病，你'}从这些里挑来改，最多{free}条：{_numbers(own)}。" if own else ""
    return template("repair_ask").substitute(
        persona=materials.person(personas.get(dialogue.evaluated_role)),
        scenario=materials.situation(scenario, dialogue),
        memory=materials.memory(dialogue),
        chat=materials.whole(dialogue),
        records=fenced("RECORDS", [_line(r, rubric) for r in records]),
        last="\n" + fenced("LAST", last) + "\n" if last else "",
        allowed=said,
    )


def last_lines(
    changes: Sequence[tuple[int, str]], refused: Refusal | None, records: Sequence[FailureRecord], rubric: Rubric
) -> list[str]:
    """What the next attempt is told of this one: its changes, why they were refused, and what still fails after them."""
    lines = [f"上一回把 #{i} 改成：{quoted(shown(text))}" for i, text in changes]
    lines.append(f"没用上：{_REFUSED[refused]}" if refused else "改是改了，评审还是没通过")
    return lines + [f"还不行：{_line(r, rubric)}" for r in records]


def read_changes(reply: Reply) -> Read[list[tuple[int, str]]]:
    """The changes in a reply, in its order: position and new text. Whether they may be made is another question."""
    found = read_object(reply)
    if found.value is None:
        return Read(None, found.error)
    entries = found.value.get("changes")
    if not isinstance(entries, list):
        return Read(None, "changes is missing or no list")
    changes = []
    for entry in entries:
        fits = isinstance(entry, dict) and type(entry.get("message")) is int and isinstance(entry.get("content"), str)
        if not fits:
            return Read(None, "an entry of changes has not a whole number 'message' and a text 'content'")
        changes.append((entry["message"], entry["content"]))
    return Read(changes, None, found.recovered)


def _line(record: FailureRecord, rubric: Rubric) -> str:
    box = next((b for b in rubric.boxes() if b.id == record.box), None)
    asked = "" if box is None else f"问的是 {quoted(box.question + (f'（{box.note}）' if box.note else ''))}；"
    where = "整段" if record.message_index is None else f"#{record.message_index} {quoted(record.text or '')}"
    return f"{record.box} {where}：{asked}评审说 {quoted(record.reason or '')}；可以这样改 {quoted(record.suggestion)}"


def _numbers(positions: Collection[int]) -> str:
    return "、".join(f"#{i}" for i in sorted(positions))
