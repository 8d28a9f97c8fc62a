"""The context analyser: an auxiliary model call that reads who the person is and what the scene is (paper section 4.2).

The model only points at words; what stands is decided by `grounding`, and what becomes of it by `context`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template
from typing import Any, get_args

from pydantic import Field, ValidationError

from anthrolab.files import content_hash
from anthrolab.live.context import Claim, Context, Kind, Refused, merged
from anthrolab.live.grounding import grounded, still_said
from anthrolab.models.client import Reply
from anthrolab.models.fence import fenced, quoted
from anthrolab.models.json_text import read_object
from anthrolab.models.reask import Read
from anthrolab.runtime.auxiliary import Auxiliary
from anthrolab.runtime.dialogue import Record, Speaker
from anthrolab.runtime.schedule import Sent
from anthrolab.runtime.seat import Seat, shown

BEFORE = 4
"""Messages that were looked at already and are shown once more, since an answer needs its question."""

MOST_NEW = 40
"""New messages that one call is shown; of more the first, and the next call goes on from there."""

MAX_CLAIMS = 8
"""Claims that one reply may hold."""

SOURCES = (
    *(f"live/{name}.py" for name in ("analyser", "context", "earnest", "grounding", "meaning", "moment", "names", "statements", "utterance")),
    *("judging/l0/facts", "judging/l0/framing.py", "models/fence.py", "models/json_text.py", "runtime/text.py"),
)
"""The code (files, and folders of files) that decides what stands and how it is told."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "found": {
            "type": "array",
            "maxItems": MAX_CLAIMS,
            "items": {
                "type": "object",
                "properties": {
                    "kind": {"type": "string", "enum": list(get_args(Kind))},
                    "value": {"type": "string"},
                    "quote": {"type": "string"},
                    "message": {"type": "integer"},
                },
                "required": ["kind", "value", "quote", "message"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["found"],
    "additionalProperties": False,
}


class Analysis(Record):
    """What one call made of the context. `refused`: the claims that do not stand; `call`: the id of the model call, None
    if there was nothing to ask; `error`: why its reply was of no use (then the context is what it was)."""

    context: Context
    refused: list[Refused] = Field(default=[])
    call: str | None = None
    error: str | None = None
    recovered: str | None = None


@dataclass(frozen=True)
class Analyser:
    """Has `auxiliary`, a chat model, read the chat; `salt` names it."""

    auxiliary: Auxiliary
    salt: str

    async def analyse(self, known: Context, messages: Sequence[Sent], seat: Seat, person: Speaker) -> Analysis:
        """The context after these messages, of which the first `known.upto` were looked at before. `seat` is the persona's,
        `person` the side that a person plays.

        After a second reply that breaks the contract the context stays as it was, with `error`, and the same messages are
        read again next time. ModelError if no reply could be had.
        """
        kept = still_said(known, messages, person)
        upto = min(len(messages), known.upto + MOST_NEW)
        if all(m.speaker != person for m in messages[known.upto : upto]):
            return Analysis(context=kept.model_copy(update={"upto": upto}))
        instructions = template("analyse").substitute(name=seat.name, most=MAX_CLAIMS)
        question = template("analyse_ask").substitute({
            "known": _known(kept), "chat": _chat(messages, max(0, known.upto - BEFORE), upto, seat, person), "from": known.upto + 1,
        })  # fmt: skip
        outcome, reply = await self.auxiliary.ask(instructions, question, SCHEMA, f"{self.salt}/context{known.upto}", read_claims)
        if outcome.value is None:
            return Analysis(context=kept, call=reply.call, error=outcome.error)
        found, refused = grounded(outcome.value, messages[:upto], person, year=seat.scene.start.year, call=reply.call, name=seat.name)
        context, more = merged(kept, found, upto)
        return Analysis(context=context, refused=refused + more, call=reply.call, recovered=outcome.recovered)


def read_claims(reply: Reply) -> Read[list[Claim]]:
    """The claims in a reply, which counts messages from 1; one that is not formed as asked breaks the whole reply."""
    found = read_object(reply)
    if found.value is None:
        return Read(None, found.error)
    rows = found.value.get("found")
    if not isinstance(rows, list):
        return Read(None, "found is missing or no list")
    if len(rows) > MAX_CLAIMS:
        return Read(None, f"found has {len(rows)} entries; at most {MAX_CLAIMS}")
    claims = []
    for i, row in enumerate(rows, 1):
        try:
            claim = Claim.model_validate(row)
        except ValidationError as e:
            where = ".".join(map(str, e.errors()[0]["loc"])) or "it"
            return Read(None, f"entry {i} of found: {where}: {e.errors()[0]['msg']}")
        claims.append(Claim(kind=claim.kind, value=claim.value, quote=claim.quote, message=claim.message - 1))
    return Read(claims, None, found.recovered)


@cache
def template(name: str) -> Template:
    """A prompt file of this package: `analyse` or `analyse_ask`."""
    return Template((files("anthrolab.live") / "prompts" / f"{name}.md").read_text(encoding="utf-8").rstrip("\n"))


def analyser_hash(package: Traversable | None = None) -> str:
    """Changes when the analyser's prompts change, or the code that decides what stands. `package`: where anthrolab lies."""
    root = package or files("anthrolab")
    prompts = [root / "live" / "prompts" / f"{name}.md" for name in ("analyse", "analyse_ask")]
    return content_hash([f.read_text(encoding="utf-8") for f in [*prompts, *(f for name in SOURCES for f in _code(root / name))]])


def _code(place: Traversable) -> list[Traversable]:
    if place.is_file():
        return [place]
    return sorted((f for f in place.iterdir() if f.name.endswith(".py")), key=lambda f: f.name)


def _chat(messages: Sequence[Sent], begin: int, end: int, seat: Seat, person: Speaker) -> str:
    """Messages as inert numbered lines in their fence."""
    names: Mapping[bool, str] = {True: "对方", False: quoted(seat.name)}
    return fenced("CHAT", [f"{i + 1} {names[m.speaker == person]}：{quoted(shown(m.content))}" for i, m in enumerate(messages[:end]) if i >= begin])


def _known(context: Context) -> str:
    return fenced("KNOWN", [f"{e.kind}：{quoted(e.value)}" for e in context.entries] or ["（还没有）"])
