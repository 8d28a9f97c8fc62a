"""Updating long-term memory after a session: m^{r+1} = U(m^r, D_r) (paper section 4.4).

A model writes the new version of what one speaker remembers of the other; code keeps out what is not durable and
what does not fit. Every version is kept by the caller; nothing here overwrites one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from anthrolab.cards.memory import LINE_CHARS, MAX_LINES, SECTIONS, Memory, Section
from anthrolab.models.client import Reply
from anthrolab.models.fence import fenced, inert
from anthrolab.models.reask import Read
from anthrolab.runtime.auxiliary import Auxiliary, chat_lines, known_lines, read_lists
from anthrolab.runtime.dialogue import Dialogue, Record, Speaker, other
from anthrolab.runtime.history import Said
from anthrolab.runtime.prompt import summary_lines, template
from anthrolab.runtime.text import FAREWELLS, line_key, normalise

SHOWN_MESSAGES = 120
"""Messages of a session that an update is shown; of a longer one the summary and the latest."""

LETTERS: dict[Section, str] = {"facts": "F", "preferences": "P", "relationship": "R", "concerns": "C"}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **{s: {"type": "array", "items": {"type": "string"}, "maxItems": MAX_LINES} for s in SECTIONS},
        "outdated": {"type": "array", "items": {"type": "string"}, "maxItems": 4 * MAX_LINES},
    },
    "required": [*SECTIONS, "outdated"],
    "additionalProperties": False,
}

PASSING = re.compile(
    r"刚才|刚刚|这会儿|此刻|待会儿?|"
    r"正在(?:吃|喝|坐|等|上班|下班|开会|加班|洗|做饭|排队|赶|刷|打游戏|回家|睡|堵|路上|看(?!病|中医|心理))|"
    r"马上(?:就)?(?:要)?(?:到|走|下班|睡|吃|出门|回|开会|上课)|一会儿?(?:就|要|去|再)|"
    r"(?<![每逢整])[今明昨]天|(?<!先)后天(?!性|[养练])|(?<!面)前天|[今明昨]晚|今早|明早|下周|下个?月(?!子)|上周|上个月|(?<!每)周[一二三四五六日天]见"
)
"""Words that are true only on the day of the chat: what is durable has a date, or needs none."""

PARTING = re.compile(r"(?:说|道|互道|发)(?:了|过|声|一声|句)*(?:晚安|拜拜|再见)(?!面)|^(?:晚安|拜拜|再见(?!面))|互相?道别")


class LeftOut(Record):
    """A line that does not stand in the new version, and why."""

    section: Section
    text: str
    reason: Literal["passing", "a goodbye", "said already", "too long", "no room", "outdated"]


class MemoryUpdate(Record):
    """What one session did to one memory: the new version (the lines of the old one if the reply was of no use), every
    line that was left out of it or taken away, and the error of an update that failed. One JSON line in
    `memories.jsonl`. `after` is the dialogue's id; `owner` and `partner` are persona ids."""

    after: str
    owner: str
    partner: str
    memory: Memory | None
    left_out: list[LeftOut] = Field(default=[])
    error: str | None = None
    recovered: str | None = None
    call: str | None = None


@dataclass(frozen=True)
class Written:
    """What a model wrote: new lines by section, and the known lines that are no longer true, by section and position."""

    lines: Mapping[Section, list[str]]
    outdated: frozenset[tuple[Section, int]] = frozenset()


@dataclass(frozen=True)
class Updater:
    """U: has `auxiliary`, a chat model, write the new version; `salt` names run and series."""

    auxiliary: Auxiliary
    salt: str

    async def update(self, known: Memory | None, dialogue: Dialogue, owner: Speaker) -> MemoryUpdate:
        """The memory of speaker `owner` after a session of known personas and known start.

        A second reply that breaks the contract leaves the lines as they were, with `error` saying why. ModelError if
        no reply could be had.
        """
        side, about = dialogue.speakers[owner], dialogue.speakers[other(owner)]
        if side.persona is None or about.persona is None or dialogue.start is None:
            raise ValueError(f"{dialogue.dialogue_id}: a memory needs both persona ids and the start of the session")
        instructions = template("memory_update").substitute(
            owner=side.name, partner=about.name, max_lines=MAX_LINES, max_chars=LINE_CHARS
        )
        question = template("memory_update_ask").substitute(
            known=known_lines("MEMORY", LETTERS, _lines(known)), date=f"{dialogue.start:%Y-%m-%d}", chat=_chat(dialogue)
        )
        salt = f"{self.salt}/{dialogue.dialogue_id}/memory-{owner}"
        outcome, reply = await self.auxiliary.ask(instructions, question, SCHEMA, salt, lambda reply: read_written(reply, known))
        today = dialogue.start.date()
        update = MemoryUpdate(
            after=dialogue.dialogue_id, owner=side.persona, partner=about.persona,
            memory=known and known.model_copy(update={"as_of": today}),
            error=outcome.error, recovered=outcome.recovered, call=reply.call,
        )  # fmt: skip
        if outcome.value is None:
            return update
        lines, left_out = renew(known, outcome.value)
        memory = Memory(
            owner=side.persona,
            partner=about.persona,
            version=(known.version if known else 0) + 1,
            as_of=today,
            extensions=known.extensions if known else {},
            facts=lines["facts"],
            preferences=lines["preferences"],
            relationship=lines["relationship"],
            concerns=lines["concerns"],
        )
        return update.model_copy(update={"memory": memory, "left_out": left_out})


def read_written(reply: Reply, known: Memory | None) -> Read[Written]:
    """The new lines in an update's reply, and the known ones that it calls outdated."""
    found = read_lists(reply, (*SECTIONS, "outdated"))
    if found.value is None:
        return Read(None, found.error)
    lists = {name: [inert(e) for e in entries if e.strip()] for name, entries in found.value.items()}
    outdated: set[tuple[Section, int]] = set()
    for written in lists.pop("outdated"):
        section = next((s for s, letter in LETTERS.items() if re.fullmatch(rf"{letter}[1-9]\d?", written)), None)
        if section is None or int(written[1:]) > len(_lines(known).get(section, [])):
            return Read(None, f"outdated holds {written!r:.20}, and there is no such line")
        outdated.add((section, int(written[1:]) - 1))
    return Read(Written({s: lists[s] for s in SECTIONS}, frozenset(outdated)), None, found.recovered)


def renew(known: Memory | None, written: Written) -> tuple[dict[Section, list[str]], list[LeftOut]]:
    """The next version's lines, and every line that is left out of it.

    Code and not a model carries the known lines over. Where a section is full, its oldest line makes room.
    """
    lines: dict[Section, list[str]] = {section: [] for section in SECTIONS}
    left_out: list[LeftOut] = []
    seen: set[str] = set()
    for section in SECTIONS:
        for i, text in enumerate(_lines(known).get(section, [])):
            if (section, i) in written.outdated:
                left_out.append(LeftOut(section=section, text=text, reason="outdated"))
            else:
                lines[section].append(text)
                seen.add(line_key(text))
    for section in SECTIONS:
        for text in written.lines[section]:
            reason = _reason(text, seen)
            if reason:
                left_out.append(LeftOut(section=section, text=text, reason=reason))
                continue
            lines[section].append(text)
            seen.add(line_key(text))
            if len(lines[section]) > MAX_LINES:
                left_out.append(LeftOut(section=section, text=lines[section].pop(0), reason="no room"))
    return lines, left_out


def _reason(text: str, seen: set[str]) -> Literal["passing", "a goodbye", "said already", "too long"] | None:
    """Why a new line is not durable, or None."""
    if len(text) > LINE_CHARS:
        return "too long"
    if PARTING.search(text) or normalise(text) in FAREWELLS:
        return "a goodbye"
    if PASSING.search(text):
        return "passing"
    return "said already" if line_key(text) in seen else None


def _chat(dialogue: Dialogue) -> str:
    """The session as the model reads it: whole, or what is summarised of it and the latest messages."""
    said = [Said(m.at, dialogue.speakers[m.speaker].name, m.content) for m in dialogue.messages]
    parts = [chat_lines(said[-SHOWN_MESSAGES:])]
    if len(said) > SHOWN_MESSAGES:
        noted = summary_lines(dialogue.summaries[-1]) if dialogue.summaries else ["（没有记录）"]
        parts.insert(0, fenced("EARLIER", noted))
    return "\n\n".join(parts)


def _lines(known: Memory | None) -> dict[Section, list[str]]:
    return {section: known.of(section) for section in SECTIONS} if known else {}
