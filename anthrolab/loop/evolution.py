"""Rewriting a skill from its failures: s_k^{r+1} = E(s_k^r, F_r^k) (paper section 4.5).

A chat model writes the new text; code bounds it. A skill stands unfenced in every prompt of every speaker, so its text may
hold no markup, nothing that ends a turn, no person of the cards and no run of a failing chat.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from anthrolab.cards.library import Library
from anthrolab.cards.skill import SKILL_CHARS, Skill, load_skill, load_skills
from anthrolab.files import content_hash
from anthrolab.judging.rubric import Rubric
from anthrolab.loop.attribution import LIMIT, attribute, by_box, examples, failures_of, recent_failures
from anthrolab.loop.folder import Loop
from anthrolab.loop.records import RECORDS, FailureRecord, read_records
from anthrolab.loop.skill_files import (
    Evidence,
    Evolution,
    keep_evolution,
    mend_skills,
    next_version,
    read_evolution,
    round_pins,
)
from anthrolab.models.client import Reply
from anthrolab.models.fence import fenced, neutralise, quoted
from anthrolab.models.json_text import read_object
from anthrolab.models.reask import Read
from anthrolab.runtime.auxiliary import Auxiliary

LEAST_CHARS = 60
"""A rewrite has at least so many characters, and at least half of those of the old text: what works is to be kept."""

COPIED = 10
"""Letters in a row (marks and blanks do not count) that a rewrite may not share with a failing chat."""

SHOWN_BOXES, SHOWN_EXAMPLES, SHOWN_CHARS = 8, 3, 160
"""Checkboxes with examples in a prompt, examples of each, and characters of a text in one."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "changes": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 6},
    },
    "required": ["text", "changes"],
    "additionalProperties": False,
}

_MARKS = (
    ("bold or italic marks", re.compile(r"\*\*|__|(?<!\*)\*[^*\s]")),
    ("code marks", re.compile("`")),
    ("a link", re.compile(r"https?:|\]\(")),
    ("the brackets 【】, which head the blocks of a prompt", re.compile("[【】]")),
    ("a heading that is not the first line, a quote, a table or a numbered list",
     re.compile(r"^\s*(?:#|>|\||\d+\s*[.、)）]|[（(]?[一二三四五六七八九十]+[、)）])", re.MULTILINE)),
    ("ids of checkboxes", re.compile(r"[A-Z]\d+\.\d|L0-\d", re.ASCII)),
    ("words about judging", re.compile("评审|评委|评分|checkbox")),
)  # fmt: skip


@dataclass(frozen=True)
class Rewrite:
    """A new text of a skill, and what the writer says it changed."""

    text: str
    changes: list[str]


async def evolve_skills(
    loop: Loop, number: int, writer: Auxiliary, rubric: Rubric, library: Library, *, limit: int = LIMIT
) -> Evolution:
    """Have the target skill of a round rewritten, and its new version written; the settings of the loop say how far back the
    failures go and which bindings teach nothing.

    What the round has decided already is not asked again. A writer that breaks the contract twice leaves the skills as they
    are (`outcome` refused). ModelError if no reply could be had: then nothing is decided. `writer` has its calls logged.
    """
    mend_skills(loop)
    if (done := read_evolution(loop, number)) is not None:
        return done
    settings = loop.settings()
    records = [r for n in loop.rounds() if n <= number for r in _records_of(loop, n)]
    buffer = recent_failures(records, number, rounds=settings.buffer_rounds, limit=limit, held_back=settings.held_back)
    skills = load_skills(loop.skills_dir)
    found = attribute(buffer)
    evolution = Evolution(
        round=number, outcome="no_target", skills={s.name: s.version for s in skills}, counts=dict(found.counts),
        unattributed=found.unattributed, buffer=len(buffer),
    )  # fmt: skip
    played = round_pins(loop, number)
    if found.target is not None:
        old = next(s for s in skills if s.name == found.target)
        if load_skill(loop.skills_dir, old.name, played[old.name]).text != old.text:
            evolution = Evolution.model_validate({**dict(evolution), "outcome": "superseded", "skill": old.name, "before": old.version})
            keep_evolution(loop, evolution)
            return evolution
        names = names_in(library)
        own = failures_of(found.target, buffer)
        salt = f"{settings.seed}/round-{number}/skill-{found.target}"
        outcome, reply = await rewrite(writer, old, own, rubric, names, salt)
        told: dict[str, Any] = {
            "skill": old.name, "before": old.version, "before_hash": content_hash(old.text), "evidence": evidence_of(own),
            "error": outcome.error, "recovered": outcome.recovered, "outcome": "refused",
            "writer": writer.system.name, "writer_identity": writer.client.identity, "call": reply.call,
        }  # fmt: skip
        if outcome.value is not None:
            told |= {
                "outcome": "rewritten", "after": next_version(loop.skills_dir, old.name), "text": outcome.value.text,
                "after_hash": content_hash(outcome.value.text), "changes": outcome.value.changes,
            }  # fmt: skip
        evolution = Evolution.model_validate({**dict(evolution), **told})
    keep_evolution(loop, evolution)
    return evolution


async def rewrite(
    writer: Auxiliary, old: Skill, failures: Sequence[FailureRecord], rubric: Rubric, names: Collection[str], salt: str
) -> tuple[Read[Rewrite], Reply]:
    """E: the new text of a skill from its old one and its failures, and the reply that gave it. See `refusal`."""
    heading = heading_of(old.text)
    form = f"第一行是标题，照抄原来的：{heading}\n" if heading else "没有标题。\n"
    instructions = _template("skill").substitute(form=form, least=least_chars(old), most=SKILL_CHARS)
    question = _template("skill_ask").substitute(
        skill=fenced("SKILL", old.text.split("\n")), count=len(failures), dialogues=len({f.dialogue_id for f in failures}),
        failures=fenced("FAILURES", failure_lines(failures, rubric)),
    )  # fmt: skip
    return await writer.ask(instructions, question, SCHEMA, salt, lambda reply: read_rewrite(reply, old, failures, names))


def read_rewrite(reply: Reply, old: Skill, failures: Sequence[FailureRecord], names: Collection[str]) -> Read[Rewrite]:
    """The rewrite in a reply, if it may take the place of the old text."""
    found = read_object(reply)
    if found.value is None:
        return Read(None, found.error)
    text, changes = found.value.get("text"), found.value.get("changes")
    if not isinstance(text, str):
        return Read(None, "text is missing or no text")
    if not isinstance(changes, list) or not all(isinstance(c, str) for c in changes) or not any(c.strip() for c in changes):
        return Read(None, "changes is missing, empty or no list of texts")
    text = tidied(text)
    error = refusal(text, old, failures, names)
    if error is not None:
        return Read(None, error)
    said = [" ".join(neutralise(c).split())[:200] for c in changes if c.strip()]
    return Read(Rewrite(text, said[:6]), None, found.recovered)


def refusal(text: str, old: Skill, failures: Iterable[FailureRecord], names: Collection[str]) -> str | None:
    """Why a text may not become the next version of a skill; None if it may. No text of a chat stands in the answer."""
    least = least_chars(old)
    if not least <= len(text) <= SKILL_CHARS:
        return f"text has {len(text)} characters; at least {least} and at most {SKILL_CHARS}"
    if _letters(text) == _letters(old.text):
        return "text says the same as before; mend what failed"
    heading, lines = heading_of(old.text), [line for line in text.split("\n") if line.strip()]
    if heading and lines[:1] != [heading]:
        return f"the first line of text must be its heading, {heading}"
    body = lines[1:] if heading else lines
    if any(neutralise(line) != line for line in lines):
        return "text holds angle brackets, control tokens or characters that are not seen"
    for name, pattern in _MARKS:
        if pattern.search("\n".join(body)):
            return f"text holds {name}"
    if _is_list(old.text) and not all(line.startswith("- ") for line in body):
        return "every line of text after the heading begins with '- '"
    if len(set(map(_letters, body))) < len(body):
        return "a line of text stands there twice"
    known = sorted((n for n in names if n in text and n not in old.text), key=len)
    if known:
        return f"text names a person ({quoted(known[-1])}); a skill is for everybody"
    if (_runs(text) - _runs(old.text)) & _runs_of(failures):
        return f"text copies {COPIED} characters or more of a failing chat; say it as a general rule"
    return None


def least_chars(old: Skill) -> int:
    """Characters that a rewrite of a skill must have."""
    return max(LEAST_CHARS, len(old.text) // 2)


def heading_of(text: str) -> str | None:
    """The first line of a skill, if it is a heading."""
    first = text.split("\n", 1)[0].rstrip()
    return first if first.startswith("# ") else None


def names_in(library: Library) -> frozenset[str]:
    """The names of all personas of the cards, and the given names of those whose name has three or four letters."""
    names = {p.name for p in library.personas.values()}
    return frozenset(names | {n[-2:] for n in names if len(n) in (3, 4)})


def tidied(text: str) -> str:
    """The text without blanks at line ends and without more than one empty line in a row."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").strip().split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def evidence_of(failures: Sequence[FailureRecord]) -> list[Evidence]:
    """The failures by checkbox, the most frequent first, with the examples that the writer is shown."""
    return [
        Evidence(
            box=box, dimension=own[0].dimension, count=len(own), dialogues=len({f.dialogue_id for f in own}),
            examples=[f.id for f in _shown(place, own)],
        )
        for place, (box, own) in enumerate(by_box(failures))
    ]  # fmt: skip


def failure_lines(failures: Sequence[FailureRecord], rubric: Rubric) -> list[str]:
    """The failures as the writer reads them, for a fence: by checkbox, the most frequent first. Whatever comes from chats,
    judges, cards or the rubric is quoted."""
    asked = {box.id: f"{box.question}{f'（{box.note}）' if box.note else ''}" for box in rubric.boxes()}
    lines = []
    for place, (box, own) in enumerate(by_box(failures)):
        head = [f"{quoted(box)[1:-1]}，{len(own)}处，{len({f.dialogue_id for f in own})}段聊天"]
        head += [f"问的是{quoted(asked[box])}"] if box in asked else []
        head += [f"改法{_short(own[0].suggestion)}"] if own[0].suggestion else []
        lines.append("；".join(head))
        for number, f in enumerate(_shown(place, own), 1):
            around = f.context[-2:] if f.text else f.context  # of the whole dialogue: how it ended
            parts = [f"{'前面' if f.text else '最后几句'}{' '.join(map(_short, around))}"] if around else []
            parts += [f"这一条{_short(f.text)}"] if f.text else []
            parts += [f"毛病{_short(f.reason)}"] if f.reason else []
            lines.append(f"- 例{number}：{'；'.join(parts)}")
    return lines


@cache
def _template(name: str) -> Template:
    return Template((files("anthrolab.loop") / "prompts" / f"{name}.md").read_text(encoding="utf-8").rstrip("\n"))


def _records_of(loop: Loop, number: int) -> list[FailureRecord]:
    path = loop.round_dir(number) / RECORDS
    return read_records(path) if path.exists() else []


def _shown(place: int, own: Sequence[FailureRecord]) -> list[FailureRecord]:
    return examples(own, SHOWN_EXAMPLES) if place < SHOWN_BOXES else []


def _short(text: str) -> str:
    return quoted(text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "……")


def _is_list(text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    return all(line.startswith("- ") for line in (lines[1:] if heading_of(text) else lines))


def _letters(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


def _runs(text: str) -> set[str]:
    letters = _letters(text)
    return {letters[i : i + COPIED] for i in range(len(letters) - COPIED + 1)}


def _runs_of(failures: Iterable[FailureRecord]) -> set[str]:
    return set().union(*(_runs(str(t)) for f in failures for t in (f.text or "", *f.context)))
