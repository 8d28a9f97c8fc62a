"""Why chats stopped, whose fault a failure is, and how many replies of each side came out whole.

Pure counts over dialogue records, failure rows, what the gate and the judge said, and (if known) the failed attempts of
model calls. Denominators are fixed by the plan. No score is made here; `flags` are the reasons not to trust one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal

from anthrolab.runtime.dialogue import Ask, Dialogue, Speaker, other

Ending = Literal[
    "silence", "horizon", "max_messages", "tested_never_spoke", "partner_never_spoke",
    "tested_broke", "partner_broke", "both_broke", "guard", "closed", "not_said",
]  # fmt: skip
"""Why a dialogue stopped, by the first that fits of:

horizon, max_messages: as the scheduler says. not_said: a record from elsewhere says none of the scheduler's reasons.
tested_broke, partner_broke, both_broke: closed, and the last reply of this side broke its contract: its silence was no
    decision. guard: closed, since a guard dropped the last draft.
tested_never_spoke, partner_never_spoke: closed, and this side never wrote (the given opener is nobody's own).
silence: closed by both deciding to send nothing. closed: no log of asks says how.
"""

Judged = Literal["fatal", "no_turns", "not_judged", "incomplete", "unreadable"]
"""What keeps a dialogue that is there from being scored as it should: a fatal violation of the tested side, a tested
side that said nothing, no verdict (the judge was not asked yet), no answer of the judge to some call, one of no use."""

Fate = Literal[
    "scored", "fatal", "said_nothing", "unanswered", "not_judged", "incomplete", "unreadable",
    "tested_reply", "partner_reply", "other_reply", "unknown_reply",
    "tested_endpoint", "partner_endpoint", "other_endpoint", "unknown_endpoint", "limit", "missing",
]  # fmt: skip
"""What became of a planned dialogue. unanswered: invalid, since the tested side gave the opener and the partner never
wrote. `<side>_reply`: failed, since this side's model answered with nothing usable; `<side>_endpoint`: failed, since its
server was dead, slow or refused; other is a model that plays neither side. limit: the command may not spend or last more.
not_judged: valid by the gate, and nobody has asked the judge yet, which is no fault of the judge."""

EMPTY_FAULTS = frozenset({"empty", "length", "thought_only"})
MODEL_FAULTS = EMPTY_FAULTS | {"refusal"}
"""Faults of a call that the model itself answered: with nothing, a cut text, reasoning alone, or a refusal."""
LIMIT_FAULTS = frozenset({"over_budget", "deadline"})
"""All other faults are an endpoint's, so nobody's in the chat."""

MAX_BROKEN_SHARE = Fraction(5, 100)
MAX_RECOVERED_SHARE = Fraction(20, 100)
MAX_EMPTY_SHARE = Fraction(10, 100)
MAX_MUTE_SHARE = Fraction(10, 100)
MAX_NOT_DONE_SHARE = Fraction(10, 100)
MAX_UNJUDGED_SHARE = Fraction(10, 100)
"""A share above (not at) one of these raises a flag."""

FlagKind = Literal["not_done", "broken", "recovered", "empty", "mute", "unjudged"]
FlagSide = Literal["tested", "partner", "judge", "run"]


@dataclass(frozen=True)
class Replies:
    """What one side was asked and how its replies came out, over dialogues with a log of asks.

    asks: questions to the side. broken: of these, replies that broke the contract even after the re-ask. recovered: of
    these, replies read only after bending them back or asking twice; kinds: how often for which reason (a reply can
    have several). silent: decisions to send nothing; empty: of these, without text and without `end`.
    dialogues: all, with a log or not; mute: of these, those in which the other side wrote and this side never did (an
    opener is given, and answers nothing). failed: attempts of its model calls that failed before, by fault.
    """

    asks: int = 0
    broken: int = 0
    recovered: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    silent: int = 0
    empty: int = 0
    dialogues: int = 0
    mute: int = 0
    failed: Counter[str] = field(default_factory=Counter)

    @property
    def empty_attempts(self) -> int:
        """Earlier attempts that came back empty, cut off, or with reasoning alone."""
        return sum(n for fault, n in self.failed.items() if fault in EMPTY_FAULTS)


@dataclass(frozen=True)
class Flag:
    """A reason not to read a row as it stands: `part` of `of` is more than the threshold of its kind. `detail`: the
    commonest kind of recovery, where there is one."""

    kind: FlagKind
    side: FlagSide
    part: int
    of: int
    detail: str | None = None


@dataclass(frozen=True)
class Audit:
    """How the planned dialogues of one run ended.

    endings: finished dialogues by reason. fates: planned dialogues by what became of them; they add up to `planned`.
    """

    planned: int
    endings: Counter[Ending]
    fates: Counter[Fate]
    tested: Replies
    partner: Replies

    def flags(self) -> list[Flag]:
        """Every reason not to read the row as it stands, the gravest first; none if all is well."""
        unjudged = self.fates["incomplete"] + self.fates["unreadable"]
        found = [
            _flag("not_done", "run", self.planned - self.endings.total(), self.planned, MAX_NOT_DONE_SHARE),
            *_side_flags("tested", self.tested),
            *_side_flags("partner", self.partner),
            _flag("unjudged", "judge", unjudged, self.fates["scored"] + unjudged, MAX_UNJUDGED_SHARE),
        ]
        return [flag for flag in found if flag is not None]


def audit(
    dialogues: Iterable[Dialogue],
    failures: Iterable[Mapping[str, Any]],
    planned: int,
    *,
    judged: Mapping[str, Judged] | None = None,
    call_trouble: Mapping[str, Counter[str]] | None = None,
) -> Audit:
    """The audit of one run's `planned` dialogues.

    failures: rows with dialogue_id and fault, and side (tested, partner, or another model's; unknown if absent); one whose
    dialogue is there after all does not count. judged: by dialogue id, what keeps one from being scored (those left
    out are scored). call_trouble: by side, the faults of earlier attempts of its calls.
    """
    there = {d.dialogue_id: d for d in dialogues}
    fates: Counter[Fate] = Counter(_fate_of(d, (judged or {}).get(key)) for key, d in there.items())
    failed = {row["dialogue_id"]: row for row in failures if row["dialogue_id"] not in there}
    fates.update(failure_fate(row) for row in failed.values())
    fates["missing"] = max(0, planned - len(there) - len(failed))
    trouble = call_trouble or {}
    return Audit(
        planned=planned,
        endings=Counter(ending(d) for d in there.values()),
        fates=fates,
        tested=_replies([(d, d.evaluated_role) for d in there.values()], trouble.get("tested")),
        partner=_replies([(d, other(d.evaluated_role)) for d in there.values()], trouble.get("partner")),
    )


def ending(dialogue: Dialogue) -> Ending:
    """Why a dialogue stopped."""
    if dialogue.stop == "horizon" or dialogue.stop == "max_messages":
        return dialogue.stop  # type: ignore[return-value]
    if dialogue.stop != "closed":
        return "not_said"
    tested, partner = dialogue.evaluated_role, other(dialogue.evaluated_role)
    last = _last_asks(dialogue)
    broke = {speaker for speaker, ask in last.items() if ask.error is not None}
    if broke:
        return "both_broke" if len(broke) == 2 else "tested_broke" if tested in broke else "partner_broke"
    writers = {speaker for speaker, ask in last.items() if not _silent(ask)}
    if any(g.speaker in writers and g.at >= _ended(dialogue) for g in dialogue.guards or []):
        return "guard"
    if mute(dialogue, tested):
        return "tested_never_spoke"
    if mute(dialogue, partner):
        return "partner_never_spoke"
    return "silence" if len(last) == 2 and not writers else "closed"


def mute(dialogue: Dialogue, speaker: Speaker) -> bool:
    """True if the other side wrote, or gave the opener, and this side wrote nothing (an opener is not its own)."""
    return any(m.speaker != speaker for m in dialogue.messages) and not any(
        m.speaker == speaker and not m.opener for m in dialogue.messages
    )


def failure_fate(row: Mapping[str, Any]) -> Fate:
    """What a failure row says of its dialogue."""
    side, fault = row.get("side"), row.get("fault")
    if fault in LIMIT_FAULTS:
        return "limit"
    whose = "unknown" if side is None else side if side in ("tested", "partner") else "other"
    return f"{whose}_{'reply' if fault in MODEL_FAULTS else 'endpoint'}"  # type: ignore[return-value]


def kinds_of(recovered: str) -> list[str]:
    """The labels of a recovered reply, without the values in them.

    >>> kinds_of("trailing comma dropped; timestamp 2026-03-06T20:31:00 clipped; asked twice")
    ['trailing comma dropped', 'time clipped', 'asked twice']
    """
    return [re.sub(r"^time(stamp)? .* clipped$", "time clipped", label) for label in recovered.split("; ")]


def _last_asks(dialogue: Dialogue) -> dict[Speaker, Ask]:
    """Of each side the ask after the last message: the scheduler asks both after every one. Logs from elsewhere may lack it."""
    return {ask.speaker: ask for ask in dialogue.asks or [] if ask.now >= _ended(dialogue)}


def _ended(dialogue: Dialogue) -> datetime:
    """The time of the last message; before all times where there is none."""
    return dialogue.messages[-1].at if dialogue.messages else datetime.min


def _fate_of(dialogue: Dialogue, judged: Judged | None) -> Fate:
    if judged == "no_turns":
        return "said_nothing" if mute(dialogue, dialogue.evaluated_role) else "unanswered"
    return judged or "scored"


def _replies(seats: Sequence[tuple[Dialogue, Speaker]], failed: Counter[str] | None) -> Replies:
    asks = [ask for dialogue, speaker in seats for ask in dialogue.asks or [] if ask.speaker == speaker]
    silent = [ask for ask in asks if ask.error is None and ask.decision is not None and _silent(ask)]
    recovered = [ask.recovered for ask in asks if ask.error is None and ask.recovered]
    return Replies(
        asks=len(asks),
        broken=sum(ask.error is not None for ask in asks),
        recovered=len(recovered),
        kinds=Counter(kind for text in recovered for kind in kinds_of(text)),
        silent=len(silent),
        empty=sum(ask.decision is not None and not ask.decision.end for ask in silent),
        dialogues=len(seats),
        mute=sum(mute(dialogue, speaker) for dialogue, speaker in seats),
        failed=Counter(failed or {}),
    )


def _silent(ask: Ask) -> bool:
    return ask.decision is None or ask.decision.end or not ask.decision.content.strip()


def _side_flags(side: FlagSide, r: Replies) -> list[Flag | None]:
    empty = r.empty + r.empty_attempts
    commonest = r.kinds.most_common(1)
    return [
        _flag("mute", side, r.mute, r.dialogues, MAX_MUTE_SHARE),
        _flag("broken", side, r.broken, r.asks, MAX_BROKEN_SHARE),
        _flag("empty", side, empty, r.asks + r.empty_attempts, MAX_EMPTY_SHARE),
        # the partner's bent replies are still what it said, and only the tested side's are scored
        _flag("recovered", side, r.recovered, r.asks, MAX_RECOVERED_SHARE, commonest[0][0] if commonest else None)
        if side == "tested"
        else None,
    ]


def _flag(kind: FlagKind, side: FlagSide, part: int, of: int, most: Fraction, detail: str | None = None) -> Flag | None:
    return Flag(kind, side, part, of, detail) if of and Fraction(part, of) > most else None
