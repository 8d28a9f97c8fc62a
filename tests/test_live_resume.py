"""A live chat that holds everything: killed inside every line of its log it goes on as if nothing had been; and what a person does
at the worst moment."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from anthrolab.live.analyser import Analysis
from anthrolab.live.chat import LiveChat
from anthrolab.live.clock import INSTANT, Clock
from anthrolab.live.context import Context, Inferred, corrected
from anthrolab.live.scene import ChatError
from anthrolab.live.session_log import SessionLog
from anthrolab.live.table import Parts
from anthrolab.models.client import ModelError
from anthrolab.runtime.dialogue import Speaker, Summary
from anthrolab.runtime.history import History, Notes, Said
from anthrolab.runtime.policy import Answer, Policy
from anthrolab.runtime.schedule import SILENCE, Asked, Plan, Rules, Sent
from anthrolab.runtime.scripted import ScriptedPolicy
from anthrolab.runtime.seat import Seat
from tests.live_for_tests import SIDES, live, play_out, played, setting

SAID = ["在吗", "我今年25", "周末去不去打球", "我不想活了", "没事 开玩笑的", "那说定了", "几点呢", "好嘞", "带上水", "我先睡啦"]
TYPED = [(30 * i, text) for i, text in enumerate(SAID)]


def decide(ask: Asked) -> Plan:
    """A reply now and then, once what was said before (which a guard drops), and silence after an own message."""
    if ask.messages[-1].speaker == "a":
        return SILENCE
    number = len(ask.messages)
    return Plan("周末打球去不去呀" if number in (3, 7, 11) else f"第{number}句话", 5)


class Quoting:
    """An analyser that takes every message of the person as said."""

    async def analyse(self, known: Context, messages: Sequence[Sent], seat: Seat, person: Speaker) -> Analysis:
        new = [Inferred(kind="said", value=m.content, quote=m.content, message=i) for i, m in enumerate(messages) if m.speaker == person]
        return Analysis(context=known.model_copy(update={"entries": new, "upto": len(messages)}))


class Noting:
    """A summariser that may fail the first time."""

    def __init__(self, fails: int = 0) -> None:
        self.fails, self.asked = fails, 0

    async def note(self, known: Summary | None, said: Sequence[Said]) -> Notes:
        self.asked += 1
        if self.asked <= self.fails:
            raise ModelError("unreachable", "no summary to be had")
        return Notes(facts=tuple(s.content for s in said[:2]))


def rich(log: SessionLog | None = None, *, summariser: Noting | None = None, most: int = 16) -> LiveChat:
    noting, policy = summariser or Noting(), ScriptedPolicy(decide)

    def sit(_seat: Seat, _salt: str, past: History) -> Policy:
        class Recalling:
            async def decide(self, ask: Asked) -> Answer:
                await past.recall(ask.messages)
                return await policy.decide(ask)

        return Recalling()

    parts = Parts(
        sit, lambda summaries: History(SIDES["a"], 4, noting, summaries), Rules(10**6, max_messages=most, person="b"), "0/chat01", Quoting(), 2
    )
    return LiveChat("test-chat01-a-0", "chat01", setting(), parts, Clock(INSTANT), log, {"chat": "chat01"})


async def to_the_end(chat: LiveChat) -> LiveChat:
    """The story: what is not typed yet is typed, notices are read, once the person corrects by hand and once they go back."""
    done = chat.state.rewinds
    texts = {m.content for m in chat.state.messages} | {t.content for t in chat.state.typed}
    first = [one for one in TYPED[:6] if one[1] not in texts]
    if not done:
        await played(chat, first, until=lambda c: c.phase == "held" or rested(c))
        if chat.phase == "held":
            chat.go_on()
            await played(chat, until=rested)
        if not any(e.by == "hand" for e in chat.state.context.entries):
            chat.correct(corrected(chat.state.context, "city", "成都"))
        chat.rewind(6)
    texts = {m.content for m in chat.state.messages} | {t.content for t in chat.state.typed}
    rest = [one for one in [*TYPED[4:], (300, "还有")] if one[1] not in texts]
    if chat.phase == "held":
        chat.go_on()
    if chat.state.stop is None:
        await played(chat, rest, until=lambda c: c.phase == "held" or c.state.stop is not None or rested(c))
    while chat.phase == "held":
        chat.go_on()
        await played(chat, until=lambda c: c.phase == "held" or c.state.stop is not None or rested(c))
    return chat


def rested(chat: LiveChat) -> bool:
    return chat.phase == "resting" and not chat.state.typed


def test_a_chat_with_everything_killed_inside_every_line_ends_as_undisturbed(tmp_path: Path) -> None:
    whole = asyncio.run(to_the_end(rich(SessionLog(tmp_path / "whole.jsonl"))))
    events = (tmp_path / "whole.jsonl").read_text(encoding="utf-8")
    kinds = {line.split('"event":"')[1].split('"')[0] for line in events.splitlines()}
    assert kinds == {"begun", "typed", "message", "answer", "summary", "context", "notice", "went_on", "dropped", "rewound", "over"}
    dialogue = whole.dialogue()
    assert dialogue.stop == "max_messages" and dialogue.guards and dialogue.summaries
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    for n in range(len(lines)):
        path = tmp_path / f"{n}.jsonl"
        path.write_bytes(b"".join(lines[:n]) + lines[n][: len(lines[n]) // 2])
        again = asyncio.run(to_the_end(rich(SessionLog(path))))
        assert again.dialogue() == dialogue, f"killed in line {n + 1}: {lines[n].decode()}"
        assert rich(SessionLog(path)).dialogue() == dialogue, f"opened again after line {n + 1}"


def test_the_record_is_the_same_however_often_the_chat_is_opened_to_look(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    chat = play_out(live([Plan("在吗在吗在吗", 5), SILENCE, Plan("在吗在吗在吗", 5), SILENCE], log=SessionLog(path)), [(0, "喂"), (20, "人呢")])
    assert chat.dialogue().guards and chat.state.stop == "closed"
    before = path.read_bytes()
    again = live([], log=SessionLog(path))
    assert again.dialogue() == chat.dialogue() and again.phase == "over" and path.read_bytes() == before


def test_going_back_takes_summaries_notices_and_drops_with_it() -> None:
    async def story() -> LiveChat:
        chat = rich(most=60)
        await played(chat, TYPED[:4], until=lambda c: c.phase == "held")
        chat.go_on()
        await played(chat, TYPED[4:], until=rested)
        assert chat.state.summaries and chat.state.notices and chat.state.dropped
        chat.rewind(1)
        return chat

    state = asyncio.run(story()).state
    assert (state.summaries, state.notices, state.dropped, len(state.messages)) == ([], [], [], 2)


def test_going_back_to_words_of_danger_shows_the_notice_again() -> None:
    async def story() -> None:
        chat = live([])
        await played(chat, [(0, "在吗"), (5, "我不想活了")], until=lambda c: c.phase == "held")
        chat.go_on()
        await played(chat, [(9, "算了")], until=rested)
        chat.rewind(1)
        assert chat.phase == "held" and chat.state.answers[1:] == []
        chat.rewind(0)
        assert chat.phase == "deciding"

    asyncio.run(story())


def test_a_kill_between_words_of_danger_and_their_notice_does_not_pass_the_rules_by(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    play_out(live([], log=SessionLog(path)), [(0, "我不想活了")])
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"notice"' not in line), encoding="utf-8")
    assert live([], log=SessionLog(path)).phase == "held"


@pytest.mark.parametrize("does", ["leave", "pause"])
def test_what_the_person_does_in_the_tick_in_which_a_draft_is_due_comes_first(does: str) -> None:
    async def story() -> LiveChat:
        chat = live([Plan("在的", 3)], speed=100)
        chat.say("在吗")
        running = asyncio.create_task(chat.run())
        while chat.draft is None or chat.clock.stopped:
            await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        loop.call_later(0.010, time.sleep, 0.05)  # a busy kernel: what is due meanwhile comes up in one tick
        loop.call_later(0.045, getattr(chat, does))
        await asyncio.sleep(0.2)
        running.cancel()
        await asyncio.wait({running})
        return chat

    assert [m.content for m in asyncio.run(story()).state.messages] == ["在吗"]


def test_a_summariser_that_failed_is_asked_again_when_the_person_goes_on() -> None:
    noting = Noting(fails=1)

    async def story() -> LiveChat:
        chat = rich(summariser=noting, most=60)
        await played(chat, [(30 * i, f"第{i}件事") for i in range(9)], until=lambda c: c.phase == "trouble")
        assert "no summary" in (chat.state.trouble or "")
        chat.go_on()
        return await played(chat, until=rested)

    assert asyncio.run(story()).state.summaries and noting.asked > 1


def test_time_stands_still_while_the_model_decides_also_for_what_is_typed_meanwhile() -> None:
    class Slow:
        async def decide(self, ask: Asked) -> Answer:
            await asyncio.sleep(0.2)
            if len(ask.messages) == 2:
                chat.say("喂喂")
            return Answer(SILENCE)

    chat = live([], speed=50, policy=Slow())
    play_out(chat, [(0, "在吗"), (4, "人呢")], until=lambda c: len(c.state.answers) == 3)
    assert [m.at_s for m in chat.state.messages] == [0, 4, 4]


def test_what_is_said_in_the_second_of_a_dropped_draft_comes_after_it(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    script = [Plan("在吗在吗在吗", 5), Plan("在吗在吗在吗", 5)]
    chat = live(script, log=SessionLog(path))

    async def story() -> None:
        await played(chat, [(0, "喂")], until=lambda c: bool(c.state.dropped) and rested(c))
        chat.say("咋了")
        await played(chat, until=lambda c: rested(c) and len(c.state.answers) == 3)

    asyncio.run(story())
    assert [m.at_s for m in chat.state.messages] == [0, 5, 11] and chat.state.dropped[0][1].at_s == 10
    assert live([], log=SessionLog(path)).dialogue() == chat.dialogue()


def test_what_the_person_corrects_while_the_analyser_reads_is_kept() -> None:
    class Slow(Quoting):
        async def analyse(self, known: Context, messages: Sequence[Sent], seat: Seat, person: Speaker) -> Analysis:
            await asyncio.sleep(0.05)
            chat.correct(corrected(chat.state.context, "city", "成都"))
            return await super().analyse(known, messages, seat, person)

    chat = live([], analyser=Slow())
    play_out(chat, [(0, "在吗")])
    assert [(e.kind, e.by) for e in chat.state.context.entries] == [("city", "hand")]


def test_a_dead_analyser_is_asked_again_only_after_as_many_messages_and_adds_nothing() -> None:
    class Dead(Quoting):
        asked = 0

        async def analyse(self, known: Context, messages: Sequence[Sent], seat: Seat, person: Speaker) -> Analysis:
            self.asked += 1
            raise ModelError("unreachable", "nobody there")

    dead = Dead()
    chat = play_out(live([], analyser=dead, every=3), [(i, f"第{i}句") for i in range(9)])
    assert dead.asked == 3 and chat.state.contexts == []
    assert [a.error for a in chat.state.analyses] == ["nobody there"] * 3


def test_going_back_to_an_ask_that_is_open_asks_nothing_twice() -> None:
    class Counting:
        asked = 0

        async def decide(self, ask: Asked) -> Answer:
            self.asked += 1
            await asyncio.sleep(0.1)
            return Answer(SILENCE)

    counting = Counting()

    async def story() -> None:
        chat = live([], policy=counting)
        chat.say("在吗")
        running = asyncio.create_task(chat.run())
        while not counting.asked:
            await asyncio.sleep(0.001)
        for _ in range(3):
            chat.rewind(0)
        while not chat.state.answers:
            await asyncio.sleep(0.001)
        assert (counting.asked, chat.state.rewinds) == (1, 0)
        chat.leave()
        await running

    asyncio.run(story())


def test_a_full_disk_takes_nothing_back_and_loses_no_draft(tmp_path: Path) -> None:
    class Full(SessionLog):
        full = False

        def add(self, event: object) -> None:
            if self.full:
                from anthrolab.files import FileError

                raise FileError("disk full; free some space")
            super().add(event)  # type: ignore[arg-type]

    log = Full(tmp_path / "c.jsonl")
    chat = live([Plan("在的", 5)], speed=50, log=log)

    async def story() -> None:
        chat.say("在吗")
        await played(chat, until=lambda c: c.draft is not None)
        object.__setattr__(log, "full", True)
        with pytest.raises(Exception, match="disk full"):
            await chat.run()
        object.__setattr__(log, "full", False)
        await played(chat, [(30, "嗯")])

    asyncio.run(story())
    assert [m.content for m in chat.state.messages] == ["在吗", "在的", "嗯"]
    assert live([], log=SessionLog(log.path)).dialogue() == chat.dialogue()


def test_a_policy_that_is_cancelled_from_outside_is_an_error_and_no_endless_loop() -> None:
    class Cancelled:
        async def decide(self, ask: Asked) -> Answer:
            raise asyncio.CancelledError

    chat = live([], policy=Cancelled())
    chat.say("在吗")
    with pytest.raises(RuntimeError, match="cancelled"):
        asyncio.run(asyncio.wait_for(chat.run(), 5))


def test_half_a_character_is_refused_and_a_torn_beginning_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(b'{"event":"beg')
    chat = live([], log=SessionLog(path))
    with pytest.raises(ChatError, match="half a character"):
        chat.say("好\ud83d")
    play_out(chat, [(0, "在吗")])
    assert live([], log=SessionLog(path)).dialogue() == chat.dialogue()


def test_a_message_that_waited_when_the_chat_was_killed_goes_out_at_once(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    play_out(live([], log=SessionLog(path)), [(0, "在吗"), (1800, "还在吗")])
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    cut = next(i for i, line in enumerate(lines) if '"message"' in line and "还在吗" in line)
    path.write_text("".join(lines[:cut]), encoding="utf-8")
    chat = live([], speed=1, log=SessionLog(path))
    assert chat.clock.now() == 1800
    play_out(chat, until=lambda c: len(c.state.messages) == 2)
