"""Updating long-term memory after a session: m^{r+1} = U(m^r, D_r) (paper section 4.4).

A model writes the new version of what one speaker remembers of the other; code keeps out what is not durable and
what does not fit. Every version is kept by the caller; nothing here overwrites one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from anthrolab.cards.memory import MAX_CHARS, MAX_LINES, SECTIONS, Memory, Section
from anthrolab.models.client import Reply
from anthrolab.models.fence import fenced, quoted
from anthrolab.models.json_text import read_object
from anthrolab.models.reask import Read
from anthrolab.runtime.auxiliary import Auxiliary, chat_lines
from anthrolab.runtime.dialogue import Dialogue, Record, Speaker, other
from anthrolab.runtime.history import Said
from anthrolab.runtime.prompt import template
from anthrolab.runtime.text import FAREWELLS, normalise

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {s: {"type": "array", "items": {"type": "string"}, "maxItems": MAX_LINES} for s in SECTIONS},
    "required": list(SECTIONS),
    "additionalProperties": False,
}

PASSING = re.compile(
    r"刚才|刚刚|这会儿|此刻|眼下|正在|待会|一会儿?(?:就|要|去|再)|马上(?:就|要|去)|"
    r"[今明后昨]天|[今明昨]晚|今早|明早|下周|下个?月|上周|上个月|周[一二三四五六日天]见"
)
"""Words that are true only on the day of the chat: what is durable has a date, or needs none."""

PARTING = re.compile(r"晚安|拜拜|再见|道别|告别|先睡|早点睡|早点休息|互道")


class Dropped(Record):
    """A line that the model wrote and that is not kept, and why."""

    section: Section
    text: str
    reason: str


class MemoryUpdate(Record):
    """What one session did to one memory: the new version (the old one if the reply was of no use), what was
    left out of it, and the error of an update that failed. One JSON line in `memories.jsonl`.

    `after` is the dialogue's id; `owner` and `partner` are persona ids.
    """

    after: str
    owner: str
    partner: str
    memory: Memory | None
    dropped: list[Dropped] = Field(default=[])
    error: str | None = None
    recovered: str | None = None
    call: str | None = None


@dataclass(frozen=True)
class Updater:
    """U: has `auxiliary`, a chat model, write the new version; `salt` names run and series."""

    auxiliary: Auxiliary
    salt: str

    async def update(self, known: Memory | None, dialogue: Dialogue, owner: Speaker) -> MemoryUpdate:
        """The memory of speaker `owner` after a session of known personas and known start.

        A second reply that breaks the contract leaves the memory as it was, with `error` saying why.
        ModelError if no reply could be had.
        """
        side, about = dialogue.speakers[owner], dialogue.speakers[other(owner)]
        if side.persona is None or about.persona is None or dialogue.start is None:
            raise ValueError(f"{dialogue.dialogue_id}: a memory needs both persona ids and the start of the session")
        instructions = template("memory_update").substitute(
            owner=side.name, partner=about.name, max_lines=MAX_LINES, max_chars=MAX_CHARS
        )
        question = template("memory_update_ask").substitute(
            known=_known(known),
            date=f"{dialogue.start:%Y-%m-%d}",
            chat=chat_lines([Said(m.at, dialogue.speakers[m.speaker].name, m.content) for m in dialogue.messages]),
        )
        salt = f"{self.salt}/{dialogue.dialogue_id}/memory-{owner}"
        outcome, reply = await self.auxiliary.ask(instructions, question, SCHEMA, salt, read_sections)
        update = MemoryUpdate(
            after=dialogue.dialogue_id, owner=side.persona, partner=about.persona, memory=known,
            error=outcome.error, recovered=outcome.recovered, call=reply.call,
        )  # fmt: skip
        if outcome.value is None:
            return update
        kept, dropped = durable(outcome.value)
        memory = Memory(
            owner=side.persona, partner=about.persona, version=(known.version if known else 0) + 1,
            as_of=dialogue.start.date(), **kept,
        )  # fmt: skip
        return update.model_copy(update={"memory": memory, "dropped": dropped})


def read_sections(reply: Reply) -> Read[Mapping[Section, list[str]]]:
    """The four lists of an update's reply, as written."""
    found = read_object(reply)
    if found.value is None:
        return Read(None, found.error)
    lists: dict[Section, list[str]] = {}
    for section in SECTIONS:
        entries = found.value.get(section)
        if not isinstance(entries, list) or not all(isinstance(e, str) for e in entries):
            return Read(None, f"{section} is missing or no list of texts")
        lists[section] = [" ".join(e.split()) for e in entries if e.strip()]
    return Read(lists, None, found.recovered)


def durable(written: Mapping[Section, list[str]]) -> tuple[dict[Section, list[str]], list[Dropped]]:
    """The lines that may be kept, and the others with the reason: passing, a goodbye, said already, too long, too many.

    >>> durable({"facts": ["他妈妈4月2日做手术", "他刚才在坐地铁"], "preferences": [], "relationship": [], "concerns": []})[0]["facts"]
    ['他妈妈4月2日做手术']
    """
    kept: dict[Section, list[str]] = {section: [] for section in SECTIONS}
    dropped: list[Dropped] = []
    seen: set[str] = set()
    for section in SECTIONS:
        for text in written[section]:
            reason = _reason(text, seen) or ("too many" if len(kept[section]) == MAX_LINES else None)
            if reason:
                dropped.append(Dropped(section=section, text=text, reason=reason))
            else:
                kept[section].append(text)
                seen.add(normalise(text))
    return kept, dropped


def _reason(text: str, seen: set[str]) -> str | None:
    if len(text) > MAX_CHARS:
        return "too long"
    if PARTING.search(text) or normalise(text) in FAREWELLS:
        return "a goodbye"
    if PASSING.search(text):
        return "passing"
    return "said already" if normalise(text) in seen else None


def _known(memory: Memory | None) -> str:
    lines = [f"{section}：{quoted(line)}" for section in SECTIONS for line in (memory.of(section) if memory else [])]
    return fenced("MEMORY", lines or ["（还没有）"])
