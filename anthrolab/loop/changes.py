"""New texts for messages of a finished dialogue, with the decisions behind them; and what differs between two records. Pure.

A message goes out because of its speaker's decision after the message before it. Where that decision only kept a draft,
the ones before it held the same text. All of these get the new text; times stay.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from anthrolab.errors import AnthrolabError
from anthrolab.models.fence import inert
from anthrolab.runtime.dialogue import Ask, Dialogue, Draft
from anthrolab.runtime.drafts import action_of
from anthrolab.runtime.schedule import Rules
from anthrolab.runtime.session import replay
from anthrolab.runtime.text import normalise

Refusal = Literal[
    "no_such_message", "partner", "opener", "empty", "no_change", "two_texts", "too_long", "not_failing", "too_many",
    "unseen", "log", "guard", "other_changes",
]  # fmt: skip
"""Why a change is not made. no_such_message, partner, opener, not_failing: it is at a message that is not to be changed;
empty, no_change, two_texts, too_long, unseen (a line break, or characters that are not seen or act in a prompt): the text; too_many: more free choices than allowed; log: the record's asks do not give
its messages; guard: with the new text the scheduler would send other messages; other_changes: the diff check."""

class ChangeError(AnthrolabError):
    """A change that is not made; `reason` says which kind."""

    def __init__(self, reason: Refusal, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class Difference(NamedTuple):
    """One place of two records: the keys and positions that lead there, and both values (None where it is missing)."""

    place: tuple[str | int, ...]
    before: Any
    after: Any

    def __str__(self) -> str:
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in self.place).removeprefix(".")
        return f"{where}: {self.before!r:.60} -> {self.after!r:.60}"


def apply(dialogue: Dialogue, texts: Mapping[int, str], rules: Rules | None = None) -> Dialogue:
    """The dialogue with new texts for some own messages (by position, from 0) of its evaluated role.

    The asks behind them follow, so that `session.replay` of the result under the same `rules` gives exactly the new
    messages; without asks only the messages change. ChangeError for another side's message, the opener, a blank or
    unchanged text, a log that does not fit, or a text with which a guard would let other messages through.
    """
    for position, text in texts.items():
        check_text(dialogue, position, text)
    if not dialogue.asks:
        return _follow(dialogue, texts)
    if rules is None:
        raise ValueError(f"{dialogue.dialogue_id}: has asks, so its rules are needed to change it")
    try:
        replay(dialogue, rules)
    except ValueError as e:
        raise ChangeError("log", f"{e}; a dialogue whose log cannot be played again is not changed") from e
    changed = _follow(dialogue, texts)
    try:
        course = replay(changed, rules)
    except ValueError as e:
        raise ChangeError("guard", f"{dialogue.dialogue_id}: with the new text the scheduler would send other messages") from e
    dropped = [(g.speaker, g.content, g.guard) for g in course.guards]
    if dropped != [(g.speaker, g.content, g.guard) for g in changed.guards or []]:
        raise ChangeError("guard", f"{dialogue.dialogue_id}: with the new text the scheduler would drop other drafts")
    asks = [
        ask if ask.interrupted == asked.interrupted else ask.model_copy(update={"interrupted": asked.interrupted})
        for ask, asked in zip(changed.asks or [], course.asks, strict=True)
    ]
    return changed.model_copy(update={"asks": asks})


def check_text(dialogue: Dialogue, position: int, text: str) -> None:
    """ChangeError unless this is a new text for an own message of the evaluated role, and no opener."""
    where = f"{dialogue.dialogue_id}: message {position}"
    if not 0 <= position < len(dialogue.messages):
        raise ChangeError("no_such_message", f"{where}: there is no such message; it has {len(dialogue.messages)}, from 0 on")
    message = dialogue.messages[position]
    if message.opener:
        raise ChangeError("opener", f"{where}: is the opener, which is given")
    if message.speaker != dialogue.evaluated_role:
        raise ChangeError("partner", f"{where}: is the partner's")
    if not text.strip():
        raise ChangeError("empty", f"{where}: the new text is blank; a message cannot be taken away")
    if "\n" in text.strip() or inert(text) != " ".join(text.split()):
        raise ChangeError("unseen", f"{where}: the new text has a line break, or characters that are not seen or act in a prompt")
    if text.strip() == message.content.strip():
        raise ChangeError("no_change", f"{where}: the new text is the old one")


def differences(before: Dialogue, after: Dialogue) -> list[str]:
    """Everything that differs between two records, a line for each place, such as `messages[3].content: '好' -> '行'`."""
    return [str(d) for d in _differences(before, after)]


def unasked_changes(before: Dialogue, after: Dialogue, allowed: Collection[int], rules: Rules | None = None) -> list[str]:
    """What differs besides new texts of the messages at `allowed` (positions) and what follows from them in the log;
    nothing if all is well. `rules` as in `apply`."""
    texts = {
        i: after.messages[i].content
        for i in sorted(allowed)
        if 0 <= i < min(len(before.messages), len(after.messages)) and after.messages[i].content != before.messages[i].content
    }
    try:
        expected = apply(before, texts, rules)
    except ChangeError as e:
        return [str(e)]
    strange = [d for d in _differences(before, after) if not _may_differ(before, d.place, allowed)]
    return list(dict.fromkeys(map(str, [*_differences(expected, after), *strange])))


def _follow(dialogue: Dialogue, texts: Mapping[int, str]) -> Dialogue:
    """The new texts in the messages, the decisions behind them, and the drafts that these left."""
    messages = [m.model_copy(update={"content": texts[i]}) if i in texts else m for i, m in enumerate(dialogue.messages)]
    if not dialogue.asks:
        return dialogue.model_copy(update={"messages": messages})
    asks = list(dialogue.asks)
    new = {n: text for i, text in texts.items() for n in _behind(dialogue, asks, i)}
    for n, text in new.items():
        decision = asks[n].decision
        assert decision is not None
        asks[n] = asks[n].model_copy(update={"decision": decision.model_copy(update={"content": text})})
    for n, text in new.items():
        later = _next(asks, n)
        if later is not None and (draft := asks[later].previous_draft) is not None:
            asks[later] = asks[later].model_copy(update={"previous_draft": Draft(content=text, at=draft.at)})
    touched = set(new) | {later for n in new if (later := _next(asks, n)) is not None}
    for n in touched:
        asks[n] = _with_action(asks[n])
    return dialogue.model_copy(update={"messages": messages, "asks": asks})


def _behind(dialogue: Dialogue, asks: Sequence[Ask], position: int) -> list[int]:
    """The asks that wrote a message, latest first: asks 2k and 2k+1 followed message k, and the speaker's one after the
    message before this one is its origin; before it come those whose draft it only kept."""
    message, found = dialogue.messages[position], list[int]()
    for event in range(position - 1, -1, -1):
        n = next((n for n in (2 * event, 2 * event + 1) if n < len(asks) and asks[n].speaker == message.speaker), None)
        decision = asks[n].decision if n is not None else None
        if n is None or decision is None or decision.end or (not found and decision.content != message.content):
            raise ChangeError("log", f"{dialogue.dialogue_id}: message {position}: the log has no decision behind it")
        found.append(n)
        draft = asks[n].previous_draft
        if draft is None or action_of(draft.content, decision.content, False) != "keep":
            break
    return found


def _next(asks: Sequence[Ask], n: int) -> int | None:
    """The same speaker's ask of the next event."""
    after = range(2 * (n // 2) + 2, min(2 * (n // 2) + 4, len(asks)))
    return next((m for m in after if asks[m].speaker == asks[n].speaker), None)


def _with_action(ask: Ask) -> Ask:
    """The ask with the action that its texts make; a record without actions stays without."""
    if ask.action is None or ask.decision is None:
        return ask
    silent = ask.decision.end or not ask.decision.content.strip()
    action = action_of(ask.previous_draft.content if ask.previous_draft else None, ask.decision.content, silent)
    return ask if action == ask.action else ask.model_copy(update={"action": action})


def _may_differ(before: Dialogue, place: tuple[str | int, ...], allowed: Collection[int]) -> bool:
    """Whether a change of the allowed messages can reach this place at all: it is such a message, or an ask of the evaluated
    role whose decision or unsent draft had that message's text, or what such an ask says of these two."""
    if place[0] == "messages":
        return len(place) == 3 and place[1] in allowed and place[2] == "content"
    if place[0] != "asks" or not isinstance(place[1], int) or before.asks is None or place[1] >= len(before.asks):
        return False
    ask, field = before.asks[place[1]], tuple(map(str, place[2:]))
    if ask.speaker != before.evaluated_role:
        return False
    old = {_core(before.messages[i].content) for i in allowed if 0 <= i < len(before.messages)}
    decided = ask.decision is not None and _core(ask.decision.content) in old
    drafted = ask.previous_draft is not None and _core(ask.previous_draft.content) in old
    return {
        ("decision", "content"): decided, ("previous_draft", "content"): drafted,
        ("action",): decided or drafted, ("interrupted",): decided or drafted,
    }.get(field, False)  # fmt: skip


def _core(text: str) -> str:
    return normalise(text) or text


def _differences(before: Dialogue, after: Dialogue) -> list[Difference]:
    return list(_walk((), before.model_dump(mode="json"), after.model_dump(mode="json")))


def _walk(place: tuple[str | int, ...], before: Any, after: Any) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(k for k in after if k not in before)]:
            if key in before and key in after:
                yield from _walk((*place, key), before[key], after[key])
            else:
                yield Difference((*place, key), before.get(key), after.get(key))
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield Difference((*place, "length"), len(before), len(after))
        for i, (one, other) in enumerate(zip(before, after, strict=False)):
            yield from _walk((*place, i), one, other)
    elif type(before) is not type(after) or before != after:
        yield Difference(place, before, after)
