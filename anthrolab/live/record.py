"""A live chat as a dialogue record: the same format as a dialogue of two models, with the person's side marked."""

from collections.abc import Sequence

from anthrolab.live.past import ask_of
from anthrolab.live.scene import OPEN, Setting
from anthrolab.live.state import State
from anthrolab.runtime.dialogue import Dialogue, Guarded, Message, Participant, Speaker
from anthrolab.runtime.schedule import Asked, Floor
from anthrolab.runtime.session import ask_record


def dialogue_of(dialogue_id: str, name: str, setting: Setting, state: State, floor: Floor) -> Dialogue:
    """The record. Only the persona's asks stand in it: nobody asks a person.

    `binding` is the chat's name: it is a case of its own. Beyond the fixed fields: `case`, the case of the benchmark whose
    cards the two play, if any; `human`, the sides that a person played; `rewinds`, how often the person went back and tried
    again (left out if never); `notices` and `contexts` where there were any: when the chat stepped out of character, and
    what was taken to be known from which number of messages on.
    """
    seat, side, rules = setting.seat, setting.side, floor.rules
    people = {seat.speaker: Participant(name=seat.name, persona=seat.persona.id)}
    people[side] = Participant(name=setting.person, persona=setting.card.id if setting.card else None)
    asked = _persona_asks(floor, seat.speaker)
    more = {
        "case": f"{setting.binding}-{seat.speaker}" if setting.binding else None,
        "human": [side], "rewinds": state.rewinds,
        "notices": [n.model_dump(mode="json", exclude={"event"}) for n in state.notices],
        "contexts": [{"after": after, **context.model_dump(mode="json")} for after, context in state.contexts],
    }  # fmt: skip
    return Dialogue(
        dialogue_id=dialogue_id,
        binding=name,
        scenario=None if seat.scene.id == OPEN else seat.scene.id,
        evaluated_role=seat.speaker,
        speakers={s: people[s] for s in ("a", "b")},
        start=seat.scene.start,
        horizon_minutes=setting.minutes or None,
        stop=state.stop,
        messages=[
            Message(speaker=m.speaker, content=m.content, at=seat.clock(m.at_s), opener=i == 0)
            for i, m in enumerate(floor.course.messages)
        ],
        asks=[ask_record(seat, ask, answer, rules) for ask, answer in zip(asked, state.answers, strict=False)],
        guards=[
            Guarded(speaker=g.speaker, content=g.content, guard=g.guard, at=seat.clock(g.at_s)) for g in floor.course.guards
        ],
        memories={seat.speaker: seat.memory} if seat.memory is not None else None,
        summaries=list(state.summaries) or None,
        **{key: value for key, value in more.items() if value},  # type: ignore[arg-type]
    )


def _persona_asks(floor: Floor, speaker: Speaker) -> Sequence[Asked]:
    asks = floor.course.asks
    return [ask_of((asks[i], asks[i + 1]), speaker) for i in range(0, len(asks), 2)]
