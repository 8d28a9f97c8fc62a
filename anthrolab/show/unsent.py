"""Drafts that were not sent as they stood: revised, replaced, withdrawn, lost, dropped by a guard, or overtaken by the end."""

from dataclasses import dataclass
from datetime import datetime

from anthrolab.metrics.asks import last_seen
from anthrolab.runtime.dialogue import Ask, Dialogue, Guarded, Speaker
from anthrolab.runtime.drafts import action_of

_GUARDS = {
    "self_repetition": "repeats an earlier message",
    "too_many_in_a_row": "too many in a row",
    "goodbye_loop": "goodbye loop",
}
STILL_UNSENT = "draft still unsent when the chat stopped"
"""The fate of a draft that neither went out nor was dropped."""

_FATES = {"revise": "draft revised", "replace": "draft replaced", "withdraw": "draft withdrawn"}


@dataclass(frozen=True)
class Unsent:
    """A draft that was not sent as it stood.

    after: position of the last message before its fate was decided (-1: none); at: the time of that decision, or the
    time at which the draft would have gone out where nobody decided; fate: what became of it, in words; became: the
    text that took its place.
    """

    speaker: Speaker
    content: str
    after: int
    at: datetime
    fate: str
    became: str | None = None


def unsent_drafts(dialogue: Dialogue) -> list[Unsent]:
    """Every draft that was not sent as it stood; those after one message in the order of time."""
    asks = list(zip(dialogue.asks or [], last_seen(dialogue), strict=True))
    drafts = [u for ask, seen in asks if (u := _reconsidered(ask, seen)) is not None]
    drafts += [_guarded(dialogue, g) for g in dialogue.guards or []]
    for speaker in ("a", "b"):
        last = next(((ask, seen) for ask, seen in reversed(asks) if ask.speaker == speaker), None)
        if last is not None and _overtaken(dialogue, *last):
            ask, decision = last[0], last[0].decision
            assert decision is not None
            drafts.append(
                Unsent(ask.speaker, decision.content, len(dialogue.messages) - 1, decision.at, STILL_UNSENT)
            )
    return sorted(drafts, key=lambda u: (u.after, u.at))


def times_kept(dialogue: Dialogue) -> list[int]:
    """For every message, through how many messages of the partner its draft had been kept."""
    asks = list(zip(dialogue.asks or [], last_seen(dialogue), strict=True))
    kept, held, done = [], {"a": 0, "b": 0}, 0
    for position, message in enumerate(dialogue.messages):
        while done < len(asks) and asks[done][1] < position:
            ask = asks[done][0]
            held[ask.speaker] = held[ask.speaker] + 1 if _action(ask) == "keep" else 0
            done += 1
        kept.append(0 if message.opener else held[message.speaker])
    return kept


def _action(ask: Ask) -> str | None:
    """What the ask's decision made of its unsent draft; None where there is no decision or no draft."""
    if ask.previous_draft is None or ask.decision is None or ask.error is not None:
        return None
    if ask.action in _FATES or ask.action == "keep":
        return ask.action
    return action_of(ask.previous_draft.content, ask.decision.content, not _writes(ask))


def _writes(ask: Ask) -> bool:
    decision = ask.decision if ask.error is None else None
    return decision is not None and not decision.end and bool(decision.content.strip())


def _reconsidered(ask: Ask, seen: int) -> Unsent | None:
    """The draft that an ask showed to its speaker, unless it was kept."""
    draft, action = ask.previous_draft, _action(ask)
    if draft is None or action == "keep":
        return None
    if action is None:
        return Unsent(ask.speaker, draft.content, seen, ask.now, "draft lost: the reply broke the contract")
    became = ask.decision.content if ask.decision and action != "withdraw" else None
    return Unsent(ask.speaker, draft.content, seen, ask.now, _FATES[action], became)


def _guarded(dialogue: Dialogue, g: Guarded) -> Unsent:
    later = next((i for i, m in enumerate(dialogue.messages) if m.at > g.at), len(dialogue.messages))
    return Unsent(g.speaker, g.content, later - 1, g.at, f"draft dropped: {_GUARDS[g.guard]}")


def _overtaken(dialogue: Dialogue, ask: Ask, seen: int) -> bool:
    """Whether the message of a speaker's last ask neither went out nor was dropped."""
    if not _writes(ask) or ask.decision is None:
        return False
    sent = any(m.speaker == ask.speaker for m in dialogue.messages[seen + 1 :])
    text, now = ask.decision.content, ask.now
    return not sent and not any(
        g.speaker == ask.speaker and g.content == text and g.at >= now for g in dialogue.guards or []
    )
