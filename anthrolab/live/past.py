"""The past of a live chat, rebuilt from what was said and decided: for going on, for going back, and for checking a record."""

from collections.abc import Collection, Sequence

from anthrolab.runtime.dialogue import Speaker
from anthrolab.runtime.policy import Answer
from anthrolab.runtime.schedule import SILENCE, Asked, Floor, Plan, Rules, Sent


def ask_of(asks: tuple[Asked, Asked], side: Speaker) -> Asked:
    """The ask of one side."""
    return asks[0] if asks[0].speaker == side else asks[1]


def rebuilt(
    rules: Rules, messages: Sequence[Sent], answers: Sequence[Answer], dropped: Collection[int] = ()
) -> tuple[Floor, Asked | None]:
    """The floor after these messages and the persona's answers to the asks after them, one after each message; after the
    last message the answer may be missing: then the second value is the ask that waits for it.

    `rules.person` says which side has no asks. `dropped`: after how many messages a guard has dropped the persona's draft
    already. ValueError if these answers do not give these messages and drops.
    """
    floor, waiting = Floor(rules), None
    person = rules.person
    assert person is not None
    for i, message in enumerate(messages):
        if i:
            if message.speaker == person:
                before = messages[i - 1].at_s
                floor.plan(Asked(person, before, tuple(messages[:i]), None), Plan(message.content, message.at_s - before))
            if floor.next_out() != message:
                raise ValueError(f"message {i + 1} is not what was decided before it")
        asks = floor.put(message)
        if asks is None:
            continue
        waiting = ask_of(asks, "b" if person == "a" else "a")
        if i < len(answers):
            floor.plan(waiting, answers[i].plan or SILENCE)
            waiting = None
        elif i < len(messages) - 1:
            raise ValueError(f"the answer to message {i + 1} is missing")
        if i + 1 in dropped:
            guards = len(floor.course.guards)
            if floor.next_out() is not None or len(floor.course.guards) == guards:
                raise ValueError(f"no guard drops what was decided after message {i + 1}")
    return floor, waiting
