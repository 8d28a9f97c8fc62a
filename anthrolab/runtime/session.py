"""One session: two policies, one scheduler, one dialogue record; and the way back from the record to any event."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import zip_longest

from anthrolab.runtime.dialogue import Ask, Decision, Dialogue, Draft, Guarded, Message, Participant, Speaker
from anthrolab.runtime.drafts import action_of
from anthrolab.runtime.history import History
from anthrolab.runtime.policy import Answer, Policy
from anthrolab.runtime.schedule import SILENCE, Asked, Course, Plan, Rules, Sent, converse
from anthrolab.runtime.seat import Seat
from anthrolab.sync import both


async def play(
    dialogue_id: str,
    seats: Mapping[Speaker, Seat],
    policies: Mapping[Speaker, Policy],
    rules: Rules,
    *,
    evaluated_role: Speaker,
    binding: str | None = None,
    sample: int = 0,
    history: History | None = None,
    logged: Sequence[Ask] = (),
) -> Dialogue:
    """Let two policies chat until the scheduler stops. The two asks of an event run concurrently.

    A policy's ModelError goes to the caller and leaves no dialogue behind. A broken reply is logged as the
    ask's error; its speaker stays silent until woken again. `history`: the policies' common past, whose summaries
    are kept in the record. `logged`: the asks of an earlier dialogue with the same seats and rules (an even
    number, from its first on): they are answered as they were then, and the policies go on from there.
    """
    if len(logged) % 2:
        raise ValueError(f"{dialogue_id}: {len(logged)} logged asks; an event has two, so give an even number")
    scene = seats["a"].scene
    dance = converse(rules, Sent(scene.opener.speaker, scene.opener.content, 0))
    answers: list[Answer] = []
    try:
        asks = next(dance)
        while True:
            entries = logged[len(answers) : len(answers) + 2]
            if entries:
                pair = _as_logged(dialogue_id, asks, entries, scene.start)
            else:
                pair = await both(*(policies[ask.speaker].decide(ask) for ask in asks))
            answers.extend(pair)
            asks = dance.send((pair[0].plan or SILENCE, pair[1].plan or SILENCE))
    except StopIteration as stop:
        course: Course = stop.value
    a = seats["a"]
    memories = {s: seat.memory for s, seat in seats.items() if seat.memory is not None}
    return Dialogue(
        dialogue_id=dialogue_id,
        binding=binding,
        scenario=scene.id,
        evaluated_role=evaluated_role,
        sample=sample,
        speakers={s: Participant(name=seat.name, persona=seat.persona.id) for s, seat in seats.items()},
        start=scene.start,
        horizon_minutes=scene.horizon_minutes,
        stop=course.stop,
        messages=[
            Message(speaker=m.speaker, content=m.content, at=a.clock(m.at_s), opener=i == 0)
            for i, m in enumerate(course.messages)
        ],
        asks=[ask_record(a, ask, answer, rules) for ask, answer in zip(course.asks, answers, strict=True)],
        guards=[
            Guarded(speaker=g.speaker, content=g.content, guard=g.guard, at=a.clock(g.at_s)) for g in course.guards
        ],
        memories=memories or None,
        summaries=list(history.summaries) if history and history.summaries else None,
    )


def ask_record(seat: Seat, ask: Asked, answer: Answer, rules: Rules) -> Ask:
    """An ask and its answer as they stand in the record."""
    decision, action = None, None
    if answer.plan is not None:
        plan = answer.plan
        delay = 0 if plan.silent else min(max(plan.delay_s, 0), rules.max_delay_s)
        decision = Decision(content=plan.content, at=seat.clock(ask.now_s + delay), end=plan.end)
        action = action_of(ask.draft.content if ask.draft else None, plan.content, plan.silent)
    return Ask(
        speaker=ask.speaker,
        now=seat.clock(ask.now_s),
        previous_draft=Draft(content=ask.draft.content, at=seat.clock(ask.draft.due_s)) if ask.draft else None,
        interrupted=ask.interrupted,
        decision=decision,
        action=action,
        error=answer.error,
        recovered=answer.recovered,
        call=answer.call,
    )


def replay(dialogue: Dialogue, rules: Rules) -> Course:
    """The course again, from the logged decisions alone: every state of the session can be rebuilt from its log.

    ValueError if the dialogue has no asks, or if its log does not fit these rules or its own messages.
    """
    if not dialogue.asks or dialogue.start is None:
        raise ValueError(f"{dialogue.dialogue_id}: no asks to replay")
    opener = dialogue.messages[0]
    dance = converse(rules, Sent(opener.speaker, opener.content, 0))
    done = 0
    try:
        asks = next(dance)
        while True:
            pair = _as_logged(dialogue.dialogue_id, asks, dialogue.asks[done : done + 2], dialogue.start)
            done += 2
            asks = dance.send((pair[0].plan or SILENCE, pair[1].plan or SILENCE))
    except StopIteration as stop:
        course: Course = stop.value
    if done < len(dialogue.asks):
        raise ValueError(f"{dialogue.dialogue_id}: the log goes on after the chat is over; its rules were others")
    sent = [(m.speaker, m.content, m.at_s) for m in course.messages]
    if sent != [(m.speaker, m.content, int((m.at - dialogue.start).total_seconds())) for m in dialogue.messages]:
        raise ValueError(f"{dialogue.dialogue_id}: the log's decisions do not give its messages")
    return course


def _as_logged(
    dialogue_id: str, asks: tuple[Asked, Asked], entries: Sequence[Ask], start: datetime
) -> tuple[Answer, Answer]:
    """Both answers of an event as they stand in a log; ValueError if these are not its asks."""
    for ask, entry in zip_longest(asks, entries):
        at = None if entry is None else int((entry.now - start).total_seconds())
        unsent = entry.previous_draft.content if entry is not None and entry.previous_draft else None
        if entry is None or (entry.speaker, at, unsent) != (ask.speaker, ask.now_s, ask.draft.content if ask.draft else None):
            raise ValueError(f"{dialogue_id}: the log has no ask of {ask.speaker} at {ask.now_s} s with this unsent draft")
    return _answer(entries[0]), _answer(entries[1])


def _answer(entry: Ask) -> Answer:
    plan = None
    if entry.decision is not None:
        delay = int((entry.decision.at - entry.now).total_seconds())
        plan = Plan(entry.decision.content, delay, entry.decision.end)
    return Answer(plan, entry.error or (None if plan else "no decision in the log"), entry.recovered, entry.call)
