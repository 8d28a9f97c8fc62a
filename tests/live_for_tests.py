"""Live chats with scripted parts: what the person types when, what the persona decides, no model and no waiting."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from anthrolab.cards.scenario import Opener
from anthrolab.live.chat import LiveChat
from anthrolab.live.clock import INSTANT, Clock
from anthrolab.live.scene import Setting
from anthrolab.live.session_log import SessionLog
from anthrolab.live.table import AnalyserLike, Parts
from anthrolab.runtime.history import History
from anthrolab.runtime.policy import Policy
from anthrolab.runtime.schedule import Asked, Plan, Rules
from anthrolab.runtime.scripted import ScriptedPolicy
from anthrolab.runtime.seat import Seat
from tests.cards_for_tests import make_seats

Script = Sequence[Plan] | Callable[[Asked], Plan]
SIDES = make_seats()


def setting(opener: bool = False) -> Setting:
    """The persona 林晓雯 at side a; the person plays side b as 周子航; the opener is the person's own unless it is given."""
    given = Opener(speaker="b", content="周末有空没") if opener else None
    return Setting(SIDES["a"], SIDES["b"].name, "b", "Sport", given)


def live(
    script: Script, *, speed: float = INSTANT, limits: Rules | None = None, log: SessionLog | None = None, opener: bool = False,
    analyser: AnalyserLike | None = None, every: int = 1, policy: Policy | None = None, takes: list[str] | None = None,
) -> LiveChat:  # fmt: skip
    """A live chat whose persona follows a script (from its beginning on, also after going back, unless it is a function)."""
    played = policy or ScriptedPolicy(script)

    def sit(_seat: Seat, salt: str, _past: History) -> Policy:
        if takes is not None:
            takes.append(salt)
        return played

    rules = limits or Rules(10**6, max_messages=200, person="b")
    parts = Parts(sit, lambda summaries: History(SIDES["a"], 24, None, summaries), rules, "0/chat01", analyser, every)
    about: dict[str, Any] = {"chat": "chat01"}
    return LiveChat("test-chat01-a-0", "chat01", setting(opener), parts, Clock(speed), log, about)


async def played(chat: LiveChat, typed: Sequence[tuple[int, str]] = (), until: Callable[[LiveChat], bool] | None = None) -> LiveChat:
    """The chat when the person has typed all this and the persona has nothing more to say: then the person ends it. With
    `until` it is stopped there and not ended."""
    for at_s, text in typed:
        chat.say(text, at_s)
    done = asyncio.Event()

    def look() -> None:
        if until(chat) if until else chat.phase in ("resting", "held", "trouble") and not chat.state.typed:
            done.set()

    chat.changed = look
    look()
    running = asyncio.create_task(chat.run())
    waiting = asyncio.create_task(done.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if not waiting.done():
        waiting.cancel()
        await running
        return chat
    if until is None and chat.phase == "resting":
        chat.leave()
        await running
    else:
        running.cancel()
        await asyncio.wait({running})
    return chat


def play_out(chat: LiveChat, typed: Sequence[tuple[int, str]] = (), until: Callable[[LiveChat], bool] | None = None) -> LiveChat:
    """`played` from plain code."""
    return asyncio.run(played(chat, typed, until))
