"""What a person sees of a live chat at this moment: plain data for the notebook and the terminal."""

from dataclasses import dataclass
from datetime import datetime

from anthrolab.live.chat import LiveChat, Phase
from anthrolab.live.events import Notice
from anthrolab.live.notices import care_notice, header


@dataclass(frozen=True)
class Line:
    """A message. index: its position (from 0), None while it waits to go out. read: the persona was asked after it."""

    index: int | None
    mine: bool
    name: str
    at: datetime
    text: str
    read: bool = False


@dataclass(frozen=True)
class View:
    """header: says that this is an AI. notice: what is said out of character while the chat is held. trouble: the error of
    a model that failed. typing: whether the persona is seen typing. now: virtual time. stop: why the chat is over."""

    header: str
    phase: Phase
    lines: list[Line]
    typing: bool
    now: datetime
    status: str
    notice: str | None = None
    notices: tuple[Notice, ...] = ()
    trouble: str | None = None


def view_of(chat: LiveChat, system: str) -> View:
    """The view of a chat whose persona the named system plays."""
    seat, state = chat.setting.seat, chat.state
    answered = len(state.answers)
    lines = [
        Line(i, m.speaker == state.person, chat.setting.person if m.speaker == state.person else seat.name, seat.clock(m.at_s), m.content, i < answered)
        for i, m in enumerate(state.messages)
    ]
    lines += [
        Line(None, True, chat.setting.person, seat.clock(t.at_s), t.content) for t in state.typed if t.at_s <= chat.clock.now()
    ]
    last = state.notices[-1] if state.notices else None
    return View(
        header=header(seat.name, system),
        phase=chat.phase,
        lines=lines,
        typing=chat.typing,
        now=seat.clock(int(chat.clock.now())),
        status=_status(chat),
        notice=care_notice(last.concern, last.speaker == state.person) if last and state.held else None,
        notices=tuple(state.notices),
        trouble=state.trouble,
    )


def _status(chat: LiveChat) -> str:
    name = chat.setting.seat.name
    said = {
        "first": f"Write the first message; {name} has not read anything yet.",
        "deciding": f"The model decides what {name} does; time stands still.",
        "chatting": "",
        "resting": f"{name} has nothing more to say for now; write, or end the chat.",
        "paused": "Paused; time stands still.",
        "held": "Stopped by a notice; read it, then go on or end the chat.",
        "trouble": "The model could not be asked; go on to ask again.",
        "over": "The chat is over.",
    }
    return " ".join(filter(None, [said[chat.phase], _broken(chat), _analysis(chat)]))


def _broken(chat: LiveChat) -> str:
    """A persona that is silent because its model's reply was of no use is not a persona that has nothing to say."""
    error = chat.state.answers[-1].error if chat.state.answers else None
    if error is None or chat.phase not in ("chatting", "resting"):
        return ""
    return f"The model's last reply could not be used ({error.splitlines()[0][:120]})."


def _analysis(chat: LiveChat) -> str:
    error = chat.state.analyses[-1].error if chat.state.analyses else None
    return f"The analyser failed: {error.splitlines()[0][:120]}" if error else ""
