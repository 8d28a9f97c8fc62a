"""Opening a live chat from plain settings: cards, a system, and where it is saved, if anywhere."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from anthrolab.bench.effort import Effort
from anthrolab.bench.settings import Limits, Pace, State, chat_system_for
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.live.analyser import Analyser, analyser_hash
from anthrolab.live.chat import LiveChat
from anthrolab.live.clock import Clock
from anthrolab.live.heard import Heard
from anthrolab.live.saving import begun_chat, next_name, saved_chat
from anthrolab.live.scene import ChatError, Setting, case_setting, now_rounded, open_setting
from anthrolab.live.table import Parts
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.client import ModelClient
from anthrolab.models.engine import Engine, open_engine
from anthrolab.models.opening import Models, open_models
from anthrolab.models.systems import System, default_systems_path, find_system, load_systems
from anthrolab.runtime.auxiliary import Auxiliary
from anthrolab.runtime.dialogue import STAMP, Summary, parse_stamp
from anthrolab.runtime.history import History
from anthrolab.runtime.policies import Player
from anthrolab.runtime.policy import Policy
from anthrolab.runtime.schedule import Rules
from anthrolab.runtime.seat import Seat
from anthrolab.runtime.summary_model import ModelSummariser
from anthrolab.runtime.summary_rules import RulesSummariser

TYPING_SPEED = 180
"""Characters a minute that a persona is seen to type."""


@dataclass(frozen=True)
class ChatSettings:
    """How a chat is to be. Exactly one of `persona` (an open chat) and `case` (a case of the benchmark, whose other part the
    person takes). `name`: the person's in an open chat.

    `start`: local time YYYY-MM-DDTHH:MM:SS at which an open chat begins (empty: now). `minutes`: virtual minutes until the
    chat ends, 0 for no end. `typing_speed`: characters a minute; an interrupted draft then counts as being typed or as
    waiting (0: as in the benchmark, which makes no difference between the two).
    `analyser`: a chat system that infers who the person is, every `analyse_every` messages of theirs; empty: nobody does.
    `folder`: where the chat is saved, as the chat named `chat` (empty: a new one); None: nowhere.
    """

    system: str
    persona: str = ""
    case: str = ""
    name: str = "网友"
    start: str = ""
    minutes: int = 0
    max_messages: int = 200
    window: int = 24
    typing_speed: int = TYPING_SPEED
    summary: str = "rules"
    analyser: str = ""
    analyse_every: int = 3
    seed: int = 0
    folder: Path | None = None
    chat: str = ""
    max_cost: float | None = None
    skills: Mapping[str, str] = field(default_factory=dict)
    systems_file: Path | None = None
    cards_dir: Path | None = None
    skills_dir: Path | None = None

    def __post_init__(self) -> None:
        if bool(self.persona) == bool(self.case):
            raise ChatError("give either a persona (an open chat) or a case (you take its other part)")
        if self.minutes < 0 or self.analyse_every < 1 or self.typing_speed < 0:
            raise ChatError("minutes and typing_speed are at least 0, analyse_every is at least 1")
        if self.max_cost is not None and self.folder is None:
            raise ChatError("--max-cost: counts what a saved chat has cost; name a folder to save it in")


@dataclass(frozen=True)
class OpenChat:
    """A chat that can be gone on with, and what is behind it. `heard` knows what the model was shown."""

    chat: LiveChat
    system: System
    heard: Heard
    folder: Path | None
    name: str


@asynccontextmanager
async def open_chat(settings: ChatSettings, clock: Clock | None = None) -> AsyncIterator[OpenChat]:
    """The chat, with its models open and its folder locked; nothing is asked before `LiveChat.run`. At the end, however it
    comes, a saved chat's record is brought up to date.

    AnthrolabError (of the part that is wrong) for settings that do not fit the cards, the systems, or the folder.
    """
    library = load_library(settings.cards_dir or default_cards_dir())
    known = load_systems(settings.systems_file or default_systems_path())
    tested = find_system(known, settings.system)
    analyst = chat_system_for("--analyser", settings.analyser, known) if settings.analyser else None
    if analyst is not None and tested.policy == "transcript":
        raise ChatError(f"--analyser {analyst.name}: {tested.name} is a base model (policy transcript), whose short prompt has no room for it; leave it out")
    limits = Limits(settings.max_messages, window=settings.window, pace=Pace(typing_chars_per_minute=settings.typing_speed))
    state = State.of(settings.skills_dir, settings.cards_dir, settings.skills, settings.summary, known)
    name = settings.chat or (next_name(settings.folder) if settings.folder else "chat01")
    start = _start(settings, name)
    setting = _setting(settings, library, state, start)
    rules = setting.rules(limits.max_messages, settings.typing_speed)
    with ExitStack() as stack:
        saved = None
        if settings.folder is not None:
            saved = stack.enter_context(saved_chat(settings.folder, name, setting, tested, library, limits, state, settings.seed, settings.analyser))
        paid = Effort(max_cost=settings.max_cost).engine(saved.run, *known.values()) if saved else open_engine()
        async with open_models() as models, paid as engine:
            log = CallLog(saved.calls, engine) if saved else None
            client = _paid(await models.client(tested), log, engine, tested, "tested")
            heard, player = Heard(client), Player(tested, limits.max_delay_s, limits.window)
            salt = f"{settings.seed}/{name}"
            summariser = await _summariser(models, log, engine, state, salt)

            def sit(seat: Seat, take: str, history: History) -> Policy:
                return player.sit(seat, heard, take, history)

            def history(summaries: Sequence[Summary]) -> History:
                return History(setting.seat, limits.window, summariser, summaries)

            analyser = None
            if analyst is not None:
                asked = _paid(await models.client(analyst), log, engine, analyst, "analyser")
                analyser = Analyser(Auxiliary(asked, analyst), salt)
            chat = LiveChat(
                saved.dialogue_id if saved else f"{name}-{setting.seat.speaker}-0", name, setting,
                Parts(sit, history, rules, salt, analyser, settings.analyse_every), clock or Clock(),
                saved.log if saved else None, _about(settings, setting, rules, name, analyst),
            )  # fmt: skip
            try:
                yield OpenChat(chat, tested, heard, settings.folder, name)
            finally:
                if saved is not None:
                    saved.keep(chat)


def _about(settings: ChatSettings, setting: Setting, rules: Rules, name: str, analyst: System | None) -> dict[str, Any]:
    """What must be the same when a saved chat is gone on with."""
    return {
        "chat": name, "persona": setting.seat.persona.id, "case": settings.case or None, "person": setting.person,
        "side": setting.side, "start": setting.seat.scene.start.strftime(STAMP), "minutes": settings.minutes,
        "max_messages": rules.max_messages, "typing_speed": settings.typing_speed,
        "analyser": {**analyst.said_by(), "every": settings.analyse_every, "hash": analyser_hash()} if analyst else None,
    }  # fmt: skip


def _start(settings: ChatSettings, name: str) -> datetime:
    """When the chat begins: as it is said, as its log says if it began already, or now."""
    if settings.start:
        try:
            return parse_stamp(settings.start)
        except ValueError as e:
            raise ChatError(f"--start {settings.start}: {e}") from e
    begun = begun_chat(settings.folder, name) if settings.folder is not None else None
    if begun is not None:
        try:
            return parse_stamp(begun.setting.get("start"))
        except ValueError as e:
            raise ChatError(f"{settings.folder}/chats/{name}.jsonl: line 1: setting.start: {e}; restore the line, or begin another chat") from e
    return now_rounded()


def _setting(settings: ChatSettings, library: Library, state: State, start: datetime) -> Setting:
    if settings.case:
        return case_setting(library, settings.case, skills=state.skills, minutes=settings.minutes)
    return open_setting(library, settings.persona, settings.name, start, skills=state.skills, minutes=settings.minutes)


def _paid(client: ModelClient, log: CallLog | None, engine: Engine, system: System, side: str) -> ModelClient:
    """The client, recorded where the chat is saved."""
    return client if log is None else Recorded(client, log, engine.meter.toll(system, side))


async def _summariser(models: Models, log: CallLog | None, engine: Engine, state: State, salt: str) -> Any:
    if isinstance(state.summary, System):
        client = _paid(await models.client(state.summary), log, engine, state.summary, "summary")
        return ModelSummariser(Auxiliary(client, state.summary), salt)
    return RulesSummariser() if state.summary == "rules" else None
