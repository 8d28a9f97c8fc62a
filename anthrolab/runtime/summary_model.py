"""The model summariser: a chat model notes what is worth keeping (paper section 4.4, F with parameters psi)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from anthrolab.models.client import ModelClient, ModelError, Reply, Request
from anthrolab.models.fence import fenced, quoted
from anthrolab.models.json_text import read_object
from anthrolab.models.reask import Read, ask_for
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import System
from anthrolab.runtime.dialogue import Summary, SummaryKind
from anthrolab.runtime.history import KINDS, Notes, Said
from anthrolab.runtime.prompt import template

LETTERS: dict[SummaryKind, str] = {"facts": "F", "emotions": "E", "commitments": "C", "open_topics": "T"}
CAN_SETTLE = {"C": "commitments", "T": "open_topics"}
MAX_NOTES = 12
"""Lines of one kind that one folding may add."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **{kind: {"type": "array", "items": {"type": "string"}, "maxItems": MAX_NOTES} for kind in KINDS},
        "settled": {"type": "array", "items": {"type": "string"}},
    },
    "required": [*KINDS, "settled"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class ModelSummariser:
    """Asks `system` for the notes; `salt` names the dialogue."""

    client: ModelClient
    system: System
    salt: str
    ladder: Ladder = field(default_factory=Ladder)

    async def note(self, known: Summary | None, said: Sequence[Said]) -> Notes:
        """The notes. ModelError `not_json` after a second reply that breaks the contract."""
        asked = template("summarise_ask").substitute(known=_known(known), chat=chat_lines(said))
        upto = known.upto if known else 0

        def make(number: int, error: str | None) -> Request:
            user = asked if error is None else f"{asked}\n\n{template('blocks/again').substitute(error=error)}"
            messages = [{"role": "system", "content": template("summarise").template}, {"role": "user", "content": user}]
            return self.system.request(messages=messages, salt=f"{self.salt}/summary{upto}/{number}")

        async def ask(request: Request) -> Reply:
            return (await self.ladder.ask(self.client, request, SCHEMA))[0]

        outcome, _reply = await ask_for(ask, make, lambda reply: read_notes(reply, known))
        if outcome.value is None:
            raise ModelError(
                "not_json",
                f"{self.system.name}: summary after message {upto}: {outcome.error}, twice; "
                "take another system for --summary, or rules",
            )
        return outcome.value


def read_notes(reply: Reply, known: Summary | None) -> Read[Notes]:
    """The notes in a reply. All four lists and `settled` must be there; ids that name nothing are refused."""
    found = read_object(reply)
    if found.value is None:
        return Read(None, found.error)
    value, lists = found.value, {}
    for field_name in (*KINDS, "settled"):
        entries = value.get(field_name)
        if not isinstance(entries, list) or not all(isinstance(e, str) for e in entries):
            return Read(None, f"{field_name} is missing or no list of texts")
        lists[field_name] = tuple(e for e in entries if e.strip())
    settled: set[tuple[SummaryKind, int]] = set()
    for written in lists.pop("settled"):
        match = re.fullmatch(r"([FECT])(\d{1,3})", written.strip())
        if match is None:
            return Read(None, f"settled holds {written!r:.20}, which is no number like C1 or T2")
        kind = next(k for k, letter in LETTERS.items() if letter == match[1])
        if not 1 <= int(match[2]) <= len(getattr(known, kind) if known else []):
            return Read(None, f"settled holds {written!r:.20}, and there is no such line")
        if match[1] in CAN_SETTLE:  # facts and feelings stay until the bounds push them out
            settled.add((kind, int(match[2]) - 1))
    return Read(Notes(**lists, settled=frozenset(settled), call=reply.call), None, found.recovered)


def chat_lines(said: Sequence[Said]) -> str:
    """Messages as inert lines, one each, in their fence."""
    return fenced("CHAT", [f"{s.at:%Y-%m-%d %H:%M:%S} {quoted(s.name)}：{quoted(s.content)}" for s in said])


def _known(known: Summary | None) -> str:
    lines = [
        f"{LETTERS[kind]}{i}：{quoted(line)}"
        for kind in KINDS
        for i, line in enumerate(getattr(known, kind) if known else [], 1)
    ]
    return fenced("NOTES", lines or ["（还没有）"])
