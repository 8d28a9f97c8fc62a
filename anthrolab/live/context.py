"""What is inferred of the person and the scene in a live chat, with its evidence, and how the persona is told (paper section 4.2).

Pure: what a model claims comes in through `grounding`, what the person sets or takes away by hand through `corrected` and
`without`. `refreshed` puts it into a seat; the persona's own blocks (`runtime.prompt.PERSONA`) never change.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from anthrolab.live.meaning import meaning, speaks_of, told_again
from anthrolab.models.fence import inert
from anthrolab.runtime.dialogue import Record
from anthrolab.runtime.seat import Seat
from anthrolab.runtime.text import line_key

Fact = Literal["name", "age", "gender", "city", "occupation", "relationship_status"]
Kind = Literal[Fact, "said", "relationship", "topic", "place", "mood"]
"""Facts of the person; anything else that they said; what the two are to each other, what the talk is about, where the person
is and how they feel just now. Of `said` and `topic` there may be several, of all others one."""

MANY: dict[Kind, int] = {"said": 12, "topic": 3}
"""Kinds that may stand several times, and how many of the analyser's are kept: the oldest goes first."""

PASSING: tuple[Kind, ...] = ("place", "mood")
PASSES_AFTER = 12
"""Messages after which the analyser's entries of these kinds are no longer true enough to be told."""

EARLIER = 20
"""Replaced entries that are kept for the record."""

HAND_CHARS = 60
"""Characters of a value set by hand."""

FACTS: dict[Fact, str] = {
    "name": "名字", "age": "年龄", "gender": "性别", "city": "住的地方或老家", "occupation": "职业", "relationship_status": "感情状况",
}  # fmt: skip
"""How the facts are labelled where the persona is told of them; city: people say alike where they live and where they are from."""

_LABELS: dict[Kind, str] = {"said": "对方说过", "relationship": "对方说你俩的关系", "place": "对方先前说自己在哪", "mood": "对方先前说自己的心情"}
_BRACKETS = str.maketrans("“”\"＂〝〞〟„‟❝❞«»「」『』【】〖〗", "‘’’’‘’’‘’‘’‘’‘’‘’［］［］")
"""Marks of quotation, and those that stand around the heads of the prompt, as ones that close nothing."""


class Inferred(Record):
    """One thing inferred of the person or the scene.

    `value` is in the person's words. `quote` stands literally in their message at position `message` (from 0); both are
    empty for what was set by hand. `call` is the id of the model call that claimed it.
    """

    kind: Kind
    value: str
    quote: str = ""
    message: int | None = None
    by: Literal["analyser", "hand"] = "analyser"
    call: str | None = None


class Context(Record):
    """All that is inferred. `removed`: what was taken away by hand and does not come back
    (`merged`); `earlier`: what something newer
    has replaced, oldest first; `upto`: how many messages the analyser has looked at."""

    entries: list[Inferred] = Field(default=[])
    removed: list[Inferred] = Field(default=[])
    earlier: list[Inferred] = Field(default=[])
    upto: int = Field(default=0, ge=0)

    def of(self, kind: Kind) -> list[Inferred]:
        """The entries of one kind, oldest first."""
        return [e for e in self.entries if e.kind == kind]


EMPTY = Context()
"""Nothing is known."""

Reason = Literal[
    "no such quote", "not the person's words", "the value is not in the quote", "no value of this kind", "not stated of themselves",
    "about somebody else", "a question", "supposed", "quoted from others", "negated", "past or planned", "not exact", "signs that are not seen", "a joke", "role play",
    "tells the persona what to be", "too long", "says too little", "known already", "set by hand", "taken away by hand",
]  # fmt: skip


class Claim(Record):
    """What a model says it found: `quote` from the message at position `message` (from 0)."""

    kind: Kind
    value: str
    quote: str
    message: int


class Refused(Claim):
    """A claim that does not stand, and why."""

    reason: Reason


def same(one: Inferred | Claim, two: Inferred | Claim) -> bool:
    """Two entries say the same, whichever way it is written."""
    return one.kind == two.kind and meaning(one.kind, one.value) == meaning(two.kind, two.value)


def merged(known: Context, found: Sequence[Inferred], upto: int) -> tuple[Context, list[Refused]]:
    """The context with what the analyser found, and what of it does not stand.

    Of each kind that stands once, what came later in the chat replaces what came before; what says the same as an entry
    changes nothing; where somebody is and how they feel passes. What was set by hand is never changed, and what was taken away does not come
    back: not the value, whichever way it is written, nor words that hold it. Other words for the same thing may.
    """
    entries, earlier, refused = list(known.entries), list(known.earlier), list[Refused]()
    for new in sorted(found, key=_position):
        rivals = [e for e in entries if (same(e, new) if new.kind in MANY else e.kind == new.kind)]
        if reason := _barred(new, rivals, known):
            refused.append(Refused(kind=new.kind, value=new.value, quote=new.quote, message=_position(new), reason=reason))
            continue
        entries = [*_not_in(entries, rivals), new]
        earlier += rivals
    for kind, most in MANY.items():
        by_model = [e for e in entries if e.kind == kind and e.by == "analyser"]
        entries = _not_in(entries, by_model[: max(0, len(by_model) - most)])
    entries = [e for e in entries if e.kind not in PASSING or e.by == "hand" or upto - _position(e) <= PASSES_AFTER]
    context = known.model_copy(update={"entries": entries, "earlier": earlier[-EARLIER:], "upto": max(upto, known.upto)})
    return context, refused


def _barred(new: Inferred, rivals: Sequence[Inferred], known: Context) -> Reason | None:
    """Why something found may not stand beside or in place of its rivals."""
    for gone in known.removed:
        if same(gone, new) or _tells(new, gone) or (gone.message is not None and gone.message == new.message):
            return "taken away by hand"
    if any(e.by == "hand" for e in rivals) or any(_gainsays(new, e, known.earlier) for e in known.entries if e.by == "hand"):
        return "set by hand"
    return "known already" if any(same(e, new) or _position(e) > _position(new) for e in rivals) else None


def _tells(new: Inferred, gone: Inferred) -> bool:
    """What is new tells again what was taken away, as another kind or in a piece of it."""
    if line_key(new.value) == line_key(gone.value):
        return True
    if new.kind in MANY:
        return told_again(gone.kind, gone.value, new.quote if new.kind == "said" else new.value) or line_key(new.value) in line_key(gone.value)
    return gone.kind in MANY and (line_key(new.value) in line_key(gone.value) or told_again(new.kind, new.value, gone.value))


def _gainsays(new: Inferred, by_hand: Inferred, earlier: Sequence[Inferred]) -> bool:
    """Words that may hold the very value which a hand has set right."""
    if new.kind not in MANY or by_hand.kind in MANY:
        return False
    replaced = [e for e in earlier if e.kind == by_hand.kind]
    if any(e.message == new.message or told_again(e.kind, e.value, new.quote) for e in replaced):
        return True
    return speaks_of(by_hand.kind, new.quote)


def corrected(context: Context, kind: Kind, value: str) -> Context:
    """The context with a value set by hand, which the analyser never changes: in place of the one of this kind, or, for
    `said` and `topic`, beside the others. ValueError if it is blank or longer than `HAND_CHARS`."""
    value = " ".join(value.split())
    if not value or len(value) > HAND_CHARS:
        raise ValueError(f"{kind}: has {len(value)} characters; write 1 to {HAND_CHARS}")
    entry = Inferred(kind=kind, value=value, by="hand")
    rivals = [e for e in context.entries if (same(e, entry) if kind in MANY else e.kind == kind)]
    return context.model_copy(
        update={
            "entries": [*_not_in(context.entries, rivals), entry],
            "removed": [e for e in context.removed if not same(e, entry)],
            "earlier": [*context.earlier, *rivals][-EARLIER:],
        }
    )


def without(context: Context, entry: Inferred) -> Context:
    """The context without an entry, which never comes back: not this value, and nothing else out of the same words.

    ValueError if there is no such entry.
    """
    if entry not in context.entries:
        raise ValueError(f"{entry.kind}: there is no entry {entry.value!r}")
    return context.model_copy(
        update={"entries": _not_in(context.entries, [entry]), "removed": [*context.removed, entry]}
    )


def rewound(context: Context, length: int) -> Context:
    """The context of a chat that is taken back to its first `length` messages: what was inferred from later ones goes, what
    it had replaced is there again. What was set or taken away by hand stays; the message that something taken away stood in
    may be gone, and what is written in its place is another one."""
    entries = [e for e in context.entries if e.message is None or e.message < length]
    earlier = [e for e in context.earlier if e.message is None or e.message < length]
    for e in reversed(earlier):
        if e.by == "analyser" and e.kind not in MANY and all(e.kind != kept.kind for kept in [*entries, *context.removed]):
            entries.append(e)
    earlier = [e for e in earlier if e not in entries]
    removed = [e if e.message is None or e.message < length else e.model_copy(update={"message": None}) for e in context.removed]
    return context.model_copy(update={"entries": entries, "earlier": earlier, "removed": removed, "upto": min(context.upto, length)})


def refreshed(seat: Seat, context: Context) -> Seat:
    """The seat with what is inferred: facts under the partner's name, all else as lines of what this speaker knows of them,
    topics after the goal of the scene, always as reported speech, what was set by hand too. A quotation that holds what was
    taken away is left out. `seat` is the one the chat began with, not one refreshed before. The name shown in the chat stays:
    it stands before every message and in the record.
    """
    facts = [f"{label}{_told(e, context)}" for kind, label in FACTS.items() for e in context.of(kind)]
    knows = [f"{_LABELS[kind]}：{_cited(_quote(e, context) or e.value)}" for kind in _LABELS for e in context.of(kind)]
    topics = [_cited(e.value) for e in context.of("topic")]
    partner = replace(seat.partner, known=(*seat.partner.known, *facts)) if facts else seat.partner
    side = seat.side.model_copy(update={"knows": [*seat.side.knows, *knows]}) if knows else seat.side
    scene = replace(seat.scene, goal=f"{seat.scene.goal}；对方提起过：{'、'.join(topics)}") if topics else seat.scene
    return replace(seat, partner=partner, side=side, scene=scene)


def _told(e: Inferred, context: Context) -> str:
    """A fact as it stands behind its label: the value, and the words it was taken from."""
    if e.by == "hand":
        return _cited(e.value)
    value = f"{e.value}岁" if e.kind == "age" and e.value.isdigit() else e.value
    quote = _quote(e, context)
    return _safe(value) + (f"（说过{_cited(quote)}）" if quote else "")


def _quote(e: Inferred, context: Context) -> str:
    """The words of an entry, unless they hold something that was taken away since."""
    return "" if any(told_again(gone.kind, gone.value, e.quote) for gone in context.removed) else e.quote


def _cited(text: str) -> str:
    """Somebody's words in quotation marks that they cannot close."""
    return f"“{_safe(text)}”"


def _safe(text: str) -> str:
    return inert(text).translate(_BRACKETS)


def _not_in(entries: Sequence[Inferred], gone: Sequence[Inferred]) -> list[Inferred]:
    return [e for e in entries if e not in gone]


def _position(e: Inferred) -> int:
    return -1 if e.message is None else e.message
