"""The model summariser: a chat model notes what is worth keeping (paper section 4.4, F with parameters psi)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anthrolab.models.client import Reply
from anthrolab.models.reask import Read
from anthrolab.runtime.auxiliary import Auxiliary, chat_lines, known_lines, read_lists
from anthrolab.runtime.dialogue import Summary, SummaryKind
from anthrolab.runtime.history import KINDS, Notes, Said
from anthrolab.runtime.prompt import template

LETTERS: dict[SummaryKind, str] = {"facts": "F", "emotions": "E", "commitments": "C", "open_topics": "T"}
CAN_SETTLE = "CT"
MAX_NOTES = 12
"""Lines of one kind that one folding may add."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **{kind: {"type": "array", "items": {"type": "string"}, "maxItems": MAX_NOTES} for kind in KINDS},
        "settled": {"type": "array", "items": {"type": "string"}, "maxItems": 2 * MAX_NOTES},
    },
    "required": [*KINDS, "settled"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class ModelSummariser:
    """Has `auxiliary` write the notes; `salt` names the dialogue."""

    auxiliary: Auxiliary
    salt: str

    async def note(self, known: Summary | None, said: Sequence[Said]) -> Notes:
        """The notes; after a second reply that breaks the contract none, with the error. ModelError if none came."""
        question = template("summarise_ask").substitute(known=known_lines("NOTES", LETTERS, _lines(known)), chat=chat_lines(said))
        upto = known.upto if known else 0
        outcome, reply = await self.auxiliary.ask(
            template("summarise").template, question, SCHEMA, f"{self.salt}/summary{upto}", lambda reply: read_notes(reply, known)
        )
        return outcome.value or Notes(call=reply.call, error=outcome.error)


def read_notes(reply: Reply, known: Summary | None) -> Read[Notes]:
    """The notes in a reply. All four lists and `settled` must be there; ids that name nothing are refused, and so is
    a reply that notes too much (it would push out what is known)."""
    found = read_lists(reply, (*KINDS, "settled"))
    if found.value is None:
        return Read(None, found.error)
    for kind in KINDS:
        if len(found.value[kind]) > MAX_NOTES:
            return Read(None, f"{kind} has {len(found.value[kind])} entries; at most {MAX_NOTES}")
    lists = {name: tuple(e for e in entries if e.strip()) for name, entries in found.value.items()}
    settled: set[tuple[SummaryKind, int]] = set()
    for written in lists.pop("settled"):
        match = re.fullmatch(r"([FECT])(\d{1,3})", written.strip())
        if match is None:
            return Read(None, f"settled holds {written!r:.20}, which is no number like C1 or T2")
        kind = next(k for k, letter in LETTERS.items() if letter == match[1])
        if not 1 <= int(match[2]) <= len(_lines(known).get(kind, [])):
            return Read(None, f"settled holds {written!r:.20}, and there is no such line")
        if match[1] in CAN_SETTLE:  # facts and feelings stay until the bounds push them out
            settled.add((kind, int(match[2]) - 1))
    notes = Notes(
        facts=lists["facts"], emotions=lists["emotions"], commitments=lists["commitments"],
        open_topics=lists["open_topics"], settled=frozenset(settled), call=reply.call,
    )  # fmt: skip
    return Read(notes, None, found.recovered)


def _lines(known: Summary | None) -> dict[SummaryKind, list[str]]:
    return {kind: getattr(known, kind) for kind in KINDS} if known else {}
