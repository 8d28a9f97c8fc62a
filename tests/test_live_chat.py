"""A live chat: the same scheduler as in the benchmark, at any speed, with a person at one side who is never asked or cut off."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.live.analyser import Analysis
from anthrolab.live.chat import LiveChat
from anthrolab.live.clock import Clock
from anthrolab.live.context import Context
from anthrolab.live.past import rebuilt
from anthrolab.live.scene import ChatError
from anthrolab.live.session_log import SessionLog
from anthrolab.live.view import view_of
from anthrolab.models.client import ModelError
from anthrolab.runtime.dialogue import Speaker
from anthrolab.runtime.policy import Answer
from anthrolab.runtime.schedule import SILENCE, Asked, Course, Plan, Rules, Sent, converse
from anthrolab.runtime.seat import Seat
from tests.live_for_tests import live, play_out, played

TEXTS = st.sampled_from(["在吗", "嗯嗯", "哈哈哈", "晚安", "拜拜", "好的呀", "周末去不去打球", "", "我先去吃个饭"])
PLANS = st.lists(st.builds(Plan, TEXTS, st.integers(-5, 900), st.booleans()), max_size=14)
TYPED = st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["在吗", "晚安", "周末去不去打球", "周末去不去打球", "行吧"])), min_size=1, max_size=8)
LIMITS = st.builds(
    Rules, horizon_s=st.integers(0, 1500), max_delay_s=st.integers(0, 600), max_consecutive=st.integers(1, 4),
    max_messages=st.integers(2, 12), typing_chars_per_minute=st.sampled_from([0, 60]), person=st.just("b"),
)  # fmt: skip


def in_order(typed: list[tuple[int, str]]) -> list[tuple[int, str]]:
    return [(0, typed[0][1]), *sorted(typed[1:])]


def benchmark(rules: Rules, plans: list[Plan], typed: list[tuple[int, str]]) -> tuple[Course, list[Asked]]:
    """The same chat under `converse`: the person is a policy that plans its next message at every ask."""
    script, asked = iter(plans), list[Asked]()

    def answer(ask: Asked) -> Plan:
        if ask.speaker == "a":
            asked.append(ask)
            return next(script, SILENCE)
        written = sum(1 for m in ask.messages if m.speaker == "b")
        if written == len(typed):
            return SILENCE
        at_s, text = typed[written]
        return Plan(text, at_s - ask.now_s)

    dance = converse(rules, Sent("b", typed[0][1], 0))
    try:
        asks = next(dance)
        while True:
            asks = dance.send((answer(asks[0]), answer(asks[1])))
    except StopIteration as stop:
        return stop.value, asked


@settings(max_examples=300)
@given(LIMITS, PLANS, TYPED)
def test_a_live_chat_goes_as_the_benchmark_goes_with_the_person_as_a_policy(rules: Rules, plans: list[Plan], typed: list[tuple[int, str]]) -> None:
    typed = in_order(typed)
    course, asked = benchmark(rules, plans, typed)
    chat = play_out(live(plans, limits=rules), typed)
    assert chat.floor.course.messages == course.messages
    assert chat.floor.course.guards == course.guards
    assert [a for a in chat.floor.course.asks if a.speaker == "a"] == asked
    assert chat.state.stop == course.stop


@settings(max_examples=300)
@given(LIMITS, PLANS, TYPED)
def test_the_past_can_be_rebuilt_up_to_every_message(rules: Rules, plans: list[Plan], typed: list[tuple[int, str]]) -> None:
    chat = play_out(live(plans, limits=rules), in_order(typed))
    for n in range(1, len(chat.state.messages) + 1):
        floor, waiting = rebuilt(rules, chat.state.messages[:n], chat.state.answers[: n - 1])
        assert floor.course.messages == chat.state.messages[:n]
        assert (waiting is None) == (n == rules.max_messages)
        asks = [a for a in floor.course.asks if a.speaker == "a"]
        assert asks == [a for a in chat.floor.course.asks if a.speaker == "a"][: len(asks)]


def test_answers_that_do_not_give_the_messages_are_refused() -> None:
    said = [Sent("b", "在吗", 0), Sent("a", "在", 5)]
    with pytest.raises(ValueError, match="message 2"):
        rebuilt(Rules(100, person="b"), said, [Answer(Plan("不在", 5))])
    with pytest.raises(ValueError, match="missing"):
        rebuilt(Rules(100, person="b"), [*said, Sent("a", "咋了", 9)], [Answer(Plan("在", 5))])


REAL_TIME = [(0, "在吗"), (1, "周末打球不"), (3, "人呢")]
REAL_PLANS = [Plan("在的在的", 2), Plan("打呀 几点", 1), Plan("我看看场地", 2), Plan("刚在洗澡", 1)]


def lines_at(speed: float, path: Path) -> bytes:
    chat = play_out(live(list(REAL_PLANS), speed=speed, log=SessionLog(path / f"{speed}.jsonl")), REAL_TIME)
    return (path / f"{speed}.jsonl").read_bytes() + chat.dialogue().to_line().encode()


def test_accelerated_time_gives_the_byte_identical_log_of_real_time(tmp_path: Path) -> None:
    real = lines_at(1.0, tmp_path)
    assert real.count(b'"event":"message"') == 5
    assert real == lines_at(20.0, tmp_path) == lines_at(float("inf"), tmp_path)


def test_a_slow_model_is_no_slow_person(tmp_path: Path) -> None:
    class Slow:
        def __init__(self) -> None:
            self.plans = iter(REAL_PLANS)

        async def decide(self, ask: Asked) -> Answer:
            await asyncio.sleep(0.3)
            return Answer(next(self.plans, SILENCE))

    slow = live([], speed=20.0, policy=Slow(), log=SessionLog(tmp_path / "slow.jsonl"))
    play_out(slow, REAL_TIME)
    lines_at(1.0, tmp_path)
    assert (tmp_path / "slow.jsonl").read_bytes() == (tmp_path / "1.0.jsonl").read_bytes()


def test_an_incoming_message_interrupts_the_draft_which_the_persona_is_shown() -> None:
    seen: list[Asked] = []

    def decide(ask: Asked) -> Plan:
        seen.append(ask)
        return {1: Plan("周末去不去打球", 60), 2: Plan("周末还去不去打球啊", 20)}.get(len(ask.messages), SILENCE)

    chat = play_out(live(decide), [(0, "在吗"), (10, "我问个事")])
    assert seen[1].draft is not None and seen[1].draft.content == "周末去不去打球"
    asks = chat.dialogue().asks or []
    assert [a.action for a in asks] == ["new", "revise", "silent"]
    assert [m.content for m in chat.dialogue().messages] == ["在吗", "我问个事", "周末还去不去打球啊"]


def test_what_a_person_sends_is_never_dropped_and_never_put_off() -> None:
    again = [(n, "周末去不去打球") for n in range(7)]
    chat = play_out(live([], limits=Rules(10**6, max_consecutive=2, max_delay_s=1, min_gap_s=30, person="b")), again)
    assert [(m.content, m.at_s) for m in chat.floor.course.messages] == [("周末去不去打球", n) for n in range(7)]


def test_the_persona_may_come_back_first_and_send_bursts() -> None:
    script = [Plan("在", 5), Plan("刚下班", 4), Plan("你呢", 3), Plan("睡着啦", 300), SILENCE]
    chat = play_out(live(script), [(0, "在吗")])
    assert [m.at_s for m in chat.floor.course.messages] == [0, 5, 9, 12, 312]
    assert chat.state.stop == "closed"


def test_leaving_while_a_draft_is_unsent_says_so() -> None:
    chat = play_out(live([Plan("在", 500)]), [(0, "在吗")], until=lambda c: c.phase == "chatting")
    chat.leave()
    assert chat.dialogue().stop == "left"
    with pytest.raises(ChatError, match="over"):
        chat.say("喂")


def test_a_chat_with_an_end_ends_also_when_nobody_has_anything_to_say() -> None:
    chat = live([SILENCE], speed=200, limits=Rules(60, person="b"))
    chat.say("在吗")
    asyncio.run(asyncio.wait_for(chat.run(), 10))
    assert (chat.state.stop, len(chat.state.messages)) == ("horizon", 1)


def test_pause_stands_still_and_going_on_loses_nothing() -> None:
    async def story() -> tuple[float, float, LiveChat]:
        chat = live([Plan("在", 2), SILENCE], speed=10)
        chat.say("在吗")
        running = asyncio.create_task(chat.run())
        while chat.draft is None:
            await asyncio.sleep(0.005)
        chat.pause()
        await asyncio.sleep(0.01)
        before = chat.clock.now()
        await asyncio.sleep(0.5)
        after = chat.clock.now()
        with pytest.raises(ChatError, match="still"):
            chat.say("喂")
        chat.go_on()
        while len(chat.state.messages) < 2:
            await asyncio.sleep(0.005)
        chat.leave()
        await running
        return before, after, chat

    before, after, chat = asyncio.run(story())
    assert before == after < 2
    assert [(m.content, m.at_s) for m in chat.state.messages] == [("在吗", 0), ("在", 2)]


def test_going_back_takes_back_what_came_after_and_asks_anew(tmp_path: Path) -> None:
    takes: list[str] = []
    answers = iter(["在", "咋了", "在啊在啊", "说"])
    chat = live(lambda ask: SILENCE if ask.messages[-1].speaker == "a" else Plan(next(answers), 5), takes=takes, log=SessionLog(tmp_path / "c.jsonl"))

    async def story() -> None:
        await played(chat, [(0, "在吗"), (20, "问你个事")], until=lambda c: len(c.state.messages) == 4 and c.phase == "resting")
        chat.rewind(0)
        assert [m.content for m in chat.state.messages] == ["在吗"]
        await played(chat, [(30, "那我说啦")])

    asyncio.run(story())
    assert [m.content for m in chat.state.messages] == ["在吗", "在啊在啊", "那我说啦", "说"]
    assert takes == ["0/chat01", "0/chat01/take1"]
    dialogue = chat.dialogue()
    assert (dialogue.model_extra or {})["rewinds"] == 1
    assert "问你个事" in (tmp_path / "c.jsonl").read_text(encoding="utf-8")
    with pytest.raises(ChatError, match="no message 9"):
        chat.rewind(8)


def test_a_chat_goes_on_from_its_log_after_every_event(tmp_path: Path) -> None:
    whole = play_out(live(list(REAL_PLANS), log=SessionLog(tmp_path / "whole.jsonl")), REAL_TIME)
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    for n in range(1, len(lines)):
        path = tmp_path / f"{n}.jsonl"
        path.write_bytes(b"".join(lines[:n]) + lines[n][: len(lines[n]) // 2])  # killed in the middle of a line
        begun = live([], log=SessionLog(path))
        typed = [one for one in REAL_TIME if one[1] not in {m.content for m in begun.state.messages} | {t.content for t in begun.state.typed}]
        answers = [Plan(m.content) for m in begun.state.messages]
        chat = live(REAL_PLANS[len(begun.state.answers) :], log=SessionLog(path))
        assert len(answers) == len(chat.state.messages)
        play_out(chat, typed)
        assert chat.dialogue() == whole.dialogue(), n


def test_a_log_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    play_out(live([Plan("在", 5)], log=SessionLog(path)), [(0, "在吗")])
    text = path.read_text(encoding="utf-8")
    for old, new, complaint in [
        ('"content":"在","at_s":5', '"content":"在","at_s":7', "do not fit"),
        ('"event":"answer"', '"event":"answre"', "line 4"),
        ('"chat":"chat01"', '"chat":"chat02"', "chat was 'chat02'"),
        ('{"event":"begun"', '{"event":"went_on"}\n{"event":"begun"', "line 1"),
    ]:
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(ChatError, match=complaint):
            live([], log=SessionLog(path))


def test_a_model_that_fails_waits_for_the_person_and_nothing_is_decided() -> None:
    class Dead:
        tries = 0

        async def decide(self, ask: Asked) -> Answer:
            self.tries += 1
            if self.tries == 1:
                raise ModelError("unreachable", "nobody answers at http://localhost:1")
            return Answer(SILENCE if ask.messages[-1].speaker == "a" else Plan("在", 5))

    chat = live([], policy=Dead())

    async def story() -> None:
        await played(chat, [(0, "在吗")])
        assert chat.phase == "trouble" and chat.state.answers == []
        assert "nobody answers" in (view_of(chat, "m").trouble or "")
        chat.go_on()
        await played(chat)

    asyncio.run(story())
    assert [m.content for m in chat.state.messages] == ["在吗", "在"]


def test_a_broken_reply_is_an_error_in_the_record_and_a_silence() -> None:
    class Broken:
        async def decide(self, ask: Asked) -> Answer:
            return Answer(None, "no JSON object in it")

    asks = play_out(live([], policy=Broken()), [(0, "在吗")]).dialogue().asks or []
    assert [(a.error, a.decision) for a in asks] == [("no JSON object in it", None)]


def test_words_of_danger_hold_the_chat_before_anybody_is_asked() -> None:
    asked: list[Asked] = []

    def decide(ask: Asked) -> Plan:
        asked.append(ask)
        return SILENCE

    chat = live(decide)

    async def story() -> None:
        await played(chat, [(0, "我不想活了")])
        assert chat.phase == "held" and not asked
        view = view_of(chat, "m")
        assert view.notice and "12356" in view.notice
        with pytest.raises(ChatError):
            chat.say("喂")
        chat.go_on()
        await played(chat)

    asyncio.run(story())
    assert len(asked) == 1
    notice = (chat.dialogue().model_extra or {})["notices"][0]
    assert (notice["concern"], notice["speaker"], notice["message"]) == ("self_harm", "b", 0)


def test_words_of_danger_that_are_spread_over_a_burst_hold_the_chat_once() -> None:
    chat = live([])

    async def story() -> None:
        await played(chat, [(0, "我吃了"), (2, "一整瓶安眠药"), (4, "算了")], until=lambda c: c.phase == "held")
        assert chat.state.notices[0].message == 1
        chat.go_on()
        await played(chat)

    asyncio.run(story())
    assert len(chat.state.notices) == 1 and len(chat.state.messages) == 3


def test_what_the_view_shows_is_what_is_known_by_then() -> None:
    chat = live([Plan("在的呀", 60), SILENCE], limits=Rules(10**6, typing_chars_per_minute=60, person="b"))
    assert view_of(chat, "gemma").phase == "first" and "AI" in view_of(chat, "gemma").header
    seen: list[tuple[bool, int]] = []
    chat = play_out(chat, [(0, "在吗")], until=lambda c: (seen.append((c.typing, int(c.clock.now()))) or len(c.state.messages) == 2))
    assert (True, 57) in seen and not any(typing for typing, at in seen if at < 57)
    lines = view_of(chat, "gemma").lines
    assert [(line.mine, line.text, line.read) for line in lines] == [(True, "在吗", True), (False, "在的呀", False)]


def test_blank_and_endless_messages_are_refused() -> None:
    chat = live([])
    for text, why in [("  \n", "blank"), ("啊" * 20_001, "20001 characters")]:
        with pytest.raises(ChatError, match=why):
            chat.say(text)


def test_the_clock_keeps_time_when_its_speed_changes() -> None:
    real = [100.0]
    clock = Clock(1.0, lambda: real[0])
    clock.go()
    real[0] += 3
    clock.speed = 10
    real[0] += 2
    assert clock.now() == 23
    clock.stop()
    real[0] += 50
    assert clock.now() == 23
    with pytest.raises(ValueError, match="above 0"):
        clock.speed = 0


def test_the_status_says_that_a_reply_was_of_no_use_and_that_the_analyser_failed() -> None:
    class Broken:
        async def decide(self, ask: Asked) -> Answer:
            return Answer(None, "no JSON object in it")

    class Dead:
        async def analyse(self, known: Context, messages: Sequence[Sent], seat: Seat, person: Speaker) -> Analysis:
            raise ModelError("unreachable", "nobody there")

    chat = play_out(live([], policy=Broken(), analyser=Dead()), [(0, "在吗")], until=lambda c: c.phase == "resting")
    status = view_of(chat, "m").status
    assert "could not be used (no JSON object in it)" in status and "The analyser failed: nobody there" in status
