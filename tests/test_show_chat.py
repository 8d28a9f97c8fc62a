"""The live chat in a notebook: its HTML, its widget driven without a browser, and the whole of it in JupyterLab."""

import asyncio
import json
import os
import re
import signal
import threading
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import wraps
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import ipywidgets as w
import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.errors import AnthrolabError
from anthrolab.live.analyser import Analysis
from anthrolab.live.chat import LiveChat
from anthrolab.live.clock import INSTANT, Clock
from anthrolab.live.context import Context, Inferred, Kind, Refused
from anthrolab.live.heard import Heard
from anthrolab.live.notices import AI_NOTICE, header
from anthrolab.live.opening import ChatSettings, OpenChat
from anthrolab.live.scene import case_setting, open_setting
from anthrolab.live.session_log import SessionLog
from anthrolab.live.table import Parts
from anthrolab.live.view import Line, View
from anthrolab.models.client import ModelError
from anthrolab.models.scripted import Call, ScriptedModel, serve
from anthrolab.models.systems import default_systems_path, load_systems
from anthrolab.runtime.dialogue import Ask, Decision, Dialogue, Draft, Message, Participant
from anthrolab.runtime.drafts import action_of
from anthrolab.runtime.history import History
from anthrolab.runtime.policies import Player
from anthrolab.runtime.policy import Answer, Policy
from anthrolab.runtime.schedule import SILENCE, Asked, Plan
from anthrolab.runtime.scripted import ScriptedPolicy
from anthrolab.show.chat_page import TYPING, chat_fragment, line_html, lines_html, scene_html
from anthrolab.show.chat_widget import ChatWidget, chat_widget
from anthrolab.show.notebooks import run_notebooks
from anthrolab.show.unsent import STILL_UNSENT, unsent_drafts
from tests.jupyter_for_tests import jupyter_lab, open_notebook

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "11_chat.ipynb"
START = datetime(2026, 3, 6, 20, 31, 0)
LIBRARY = load_library(default_cards_dir())
SYSTEM = load_systems(default_systems_path())["gemma-3-270m"]
NAME = LIBRARY.personas["p01"].name
TEXT = st.text(min_size=1, max_size=40)


def line(text: str, *, mine: bool = False, index: int | None = 0, read: bool = False, at: datetime = START, name: str = "小雨") -> Line:
    return Line(index, mine, name, at, text, read)


class Seen(HTMLParser):
    """The elements of a fragment and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"class", "role", "open"}

    def handle_data(self, data: str) -> None:
        self.text += data


# HTML


def test_a_bubble_of_the_persona_is_left_with_its_time_and_no_mark() -> None:
    assert line_html(line("刚到家")) == (
        '<div class="line"><span class="name">小雨</span><div class="bubble">刚到家</div><span class="meta">20:31:00</span></div>'
    )


@pytest.mark.parametrize(
    ("index", "read", "mark"), [(None, False, "waits to go out"), (3, False, "sent"), (3, True, "read")]
)
def test_a_bubble_of_the_person_says_whether_it_is_out_and_read(index: int | None, read: bool, mark: str) -> None:
    html = line_html(line("在吗", mine=True, index=index, read=read))
    assert 'class="line mine"' in html
    assert f'<span class="meta">20:31:00 <span class="mark">{mark}</span></span>' in html


def test_a_new_day_and_a_new_speaker_are_named_and_nothing_else_is() -> None:
    night = datetime(2026, 3, 6, 23, 59, 58)
    lines = [line("还没睡", at=night), line("睡不着", at=night + timedelta(seconds=1)), line("都几点了", at=night + timedelta(seconds=4)),
             line("嗯", mine=True, name="阿明", at=night + timedelta(seconds=9))]  # fmt: skip
    html = lines_html(lines)
    assert ['class="day"' in one for one in html] == [False, False, True, False]
    assert "2026-03-07" in html[2]
    assert ['class="name"' in one for one in html] == [True, False, True, True]


@given(TEXT, TEXT, st.booleans())
def test_names_and_texts_are_data_whatever_they_hold(text: str, name: str, mine: bool) -> None:
    html = line_html(line(text, mine=mine, name=name))
    seen = Seen(html)
    assert seen.tags <= {"div", "span"}
    assert f'<div class="bubble">{_escaped(text)}</div>' in html
    assert f'<span class="name">{_escaped(name)}</span>' in html


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace(">", "&gt;").replace("<", "&lt;").replace("'", "&#39;").replace('"', "&#34;")


def test_the_page_without_a_kernel_says_that_it_is_an_ai_and_escapes_all_that_is_shown() -> None:
    evil = "<script>alert(1)</script>"
    setting = replace(open_setting(LIBRARY, "p01", "阿明", START), person="<b>")
    view = View(header="<i>an AI", phase="held", lines=[line(evil)], typing=False, now=START, status="<u>", notice="<img src=x>", trouble="<p>")
    html = chat_fragment(view, setting, ["<hr>"])
    seen = Seen(html)
    assert AI_NOTICE.split("\n")[0] in seen.text
    for text in ("<i>an AI", evil, "<img src=x>", "<b>", "<u>", "<hr>"):
        assert text in seen.text
    assert not seen.tags & {"script", "img", "i", "u", "hr"}
    assert "Nobody has written yet" in chat_fragment(None)


def test_the_head_of_a_case_tells_the_part_that_the_person_takes_and_nothing_of_the_personas_own() -> None:
    setting = case_setting(LIBRARY, "b01-a")
    assert setting.part is not None and setting.card is not None
    text = Seen(scene_html(setting)).text
    for told in (setting.card.name, setting.part.trigger, setting.part.emotion, setting.seat.scene.goal, f"{setting.seat.scene.start:%Y-%m-%d}"):
        assert told in text
    assert setting.seat.side.trigger not in text


# the widget, without a browser


class Time:
    """A real clock that only tests move."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def opening(
    policy: Policy, clock: Clock, *, analyser: Any = None, heard: Heard | None = None, log: SessionLog | None = None,
    case: str = "", minutes: int = 0, sit: Any = None, counted: list[str] | None = None,
) -> Callable[[ChatSettings, Clock], Any]:  # fmt: skip
    """Opens a chat played by a policy of the test, on a clock of the test."""

    @asynccontextmanager
    async def opened(settings: ChatSettings, _: Clock) -> AsyncIterator[OpenChat]:
        if counted is not None:
            counted.append("open")
        setting = case_setting(LIBRARY, case) if case else open_setting(LIBRARY, "p01", "阿明", START, minutes=minutes)

        def history(summaries: Sequence[Any]) -> History:
            return History(setting.seat, 24, None, summaries)

        parts = Parts(sit or (lambda seat, take, past: policy), history, setting.rules(200, 180), "0/chat01", analyser, 1)
        chat = LiveChat(dialogue_id="chat01-a-0", name="chat01", setting=setting, parts=parts, clock=clock, log=log)
        try:
            yield OpenChat(chat, SYSTEM, heard or Heard(ScriptedModel([])), settings.folder, "chat01")
        finally:
            if counted is not None:
                counted.append("close")

    return opened


SETTINGS = ChatSettings("gemma-3-270m", persona="p01", name="阿明")


async def until(true: Callable[[], Any], what: str | Callable[[], str] = "it never came") -> None:
    """Let everything go on until something is so."""
    try:
        async with asyncio.timeout(30):
            while not true():
                await asyncio.sleep(0.001)
    except TimeoutError:
        raise AssertionError(what if isinstance(what, str) else what()) from None


async def started(policy: Policy | Sequence[Plan], clock: Clock | None = None, **more: Any) -> ChatWidget:
    made = policy if hasattr(policy, "decide") else ScriptedPolicy(policy)
    talk = ChatWidget(SETTINGS, opening=opening(made, clock or Clock(INSTANT), **more))
    talk.parts.start.click()
    await until(lambda: talk.opened is not None and talk.parts.ai.value, lambda: talk.parts.said.value)
    return talk


def enter(talk: ChatWidget, text: str | None = None) -> None:
    """Enter as a browser says it: first that it was pressed, then, in a message of its own, the text, if it is not known yet."""
    talk.parts.text._handle_custom_msg({"event": "submit"}, [])
    if text is not None:
        asyncio.get_running_loop().call_later(0.01, setattr, talk.parts.text, "value", text)


def bubbles(talk: ChatWidget) -> list[str]:
    return [re.sub(r".*<div class=\"bubble\">(.*?)</div>.*", r"\1", c.value) for c in talk.parts.lines.children]


def shown(*boxes: Any) -> list[bool]:
    return [box.layout.display != "none" for box in boxes]


async def ended(talk: ChatWidget) -> None:
    talk.parts.end.click()
    await until(lambda: not talk.running)
    await asyncio.sleep(0)


def driven(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that is a coroutine."""

    @wraps(test)
    def run(**fixtures: Any) -> None:
        async def whole() -> None:
            async with asyncio.timeout(60):
                await test(**fixtures)

        asyncio.run(whole())

    return run


@contextmanager
def served(folder: Path, said: Callable[[str, int], tuple[str, int]]) -> Iterator[Path]:
    """A systems file with one chat model, `scripted`, on a real server. `said` gives text (empty: silence) and delay by what the
    model is shown and the number of the call."""

    def handler(call: Call) -> str:
        shown = call.body["messages"][-1]["content"]
        now = datetime.fromisoformat(re.findall(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", shown)[-1])
        text, delay = said(shown, call.number)
        response = {"content": text, "timestamp": (now + timedelta(seconds=delay)).isoformat(), "end": not text}
        return json.dumps({"role": NAME, "response": response}, ensure_ascii=False)

    with serve(handler) as server:
        entry = {"name": "scripted", "endpoint": server.url, "model": "scripted", "server": "openai", "policy": "chat"}
        (folder / "systems.yaml").write_text(json.dumps({"systems": [entry]}), encoding="utf-8")
        yield folder / "systems.yaml"


@driven
async def test_nothing_is_opened_before_start_and_the_notice_stands_there() -> None:
    counted: list[str] = []
    talk = ChatWidget(SETTINGS, opening=opening(ScriptedPolicy([]), Clock(INSTANT), counted=counted))
    await asyncio.sleep(0.01)
    assert counted == [] and talk.chat is None and talk.dialogue() is None
    assert AI_NOTICE.split("\n")[0] in Seen(talk.parts.first.value).text
    assert shown(talk.parts.first, talk.parts.begin, talk.parts.talk, talk.panels) == [True, True, False, False]
    talk.parts.start.click()
    await until(lambda: talk.parts.ai.value)
    assert counted == ["open"]
    assert header(NAME, "gemma-3-270m").split("\n")[0] in Seen(talk.parts.ai.value).text
    assert shown(talk.parts.first, talk.parts.begin, talk.parts.talk, talk.parts.write, talk.parts.held, talk.parts.failed) == [
        False, False, True, True, False, False]  # fmt: skip
    await ended(talk)
    assert counted == ["open", "close"]
    assert shown(talk.parts.begin, talk.parts.talk, talk.parts.write, talk.parts.steer) == [True, True, False, False]


@driven
async def test_enter_sends_and_the_answer_comes_after_its_delay_with_marks_and_times() -> None:
    talk = await started([Plan("刚到家", 40)])
    enter(talk, "在吗")
    await until(lambda: bubbles(talk) == ["在吗", "刚到家"])
    assert talk.parts.text.value == ""
    first, second = (c.value for c in talk.parts.lines.children)
    assert "20:31:00" in first and ">read<" in first
    assert "20:31:40" in second and "mark" not in second
    assert talk.dialogue() is not None
    await ended(talk)


@driven
async def test_enter_waits_for_its_text_and_what_is_only_typed_is_never_sent() -> None:
    talk = await started([])
    talk.parts.text.value = "写到一半"  # the field lost its focus: a browser tells what stands in it
    await asyncio.sleep(0.4)
    assert bubbles(talk) == []
    enter(talk)  # the text is known already: no more is said of it
    await until(lambda: bubbles(talk) == ["写到一半"])
    enter(talk)  # Enter in an empty field, and writing later
    await asyncio.sleep(0.4)
    talk.parts.text.value = "后来写的"
    await asyncio.sleep(0.4)
    assert bubbles(talk) == ["写到一半"] and talk.parts.text.value == "后来写的"
    talk.parts.send.click()
    await until(lambda: bubbles(talk) == ["写到一半", "后来写的"])
    for count, text in enumerate(("一", "二", "三"), 3):
        enter(talk, text)
        await until(lambda n=count: len(bubbles(talk)) == n)
    assert bubbles(talk)[2:] == ["一", "二", "三"]
    await ended(talk)


@driven
async def test_what_cannot_be_sent_stays_in_the_field_and_the_reason_is_shown() -> None:
    talk = await started([])
    long = "长" * 20_001
    enter(talk, long)
    await until(lambda: "20001 characters" in talk.parts.said.value)
    assert talk.parts.text.value == long and bubbles(talk) == []
    await ended(talk)


@driven
async def test_buttons_pressed_on_another_thread_act_on_the_chat() -> None:
    """JupyterLab has widgets handled on a thread of their own."""
    talk = await started([Plan("嗯嗯", 5)])
    asyncio.get_running_loop().set_debug(True)  # then what is done on the wrong thread is an error

    def press() -> None:
        talk.parts.text.value = "在吗"
        talk.parts.send.click()

    thread = threading.Thread(target=press)
    thread.start()
    await until(lambda: bubbles(talk) == ["在吗", "嗯嗯"])
    thread.join()
    thread = threading.Thread(target=talk.parts.end.click)
    thread.start()
    await until(lambda: not talk.running)
    thread.join()


@driven
async def test_typing_pause_speed_and_the_clock_follow_time() -> None:
    real = Time()
    clock = Clock(1.0, real)
    talk = await started([Plan("刚到家刚到家", 40)], clock)  # six characters take two seconds to type
    enter(talk, "在吗")
    await until(lambda: bubbles(talk) == ["在吗"] and ">read<" in talk.parts.lines.children[0].value)
    real.at = 10
    await until(lambda: talk.parts.clock.value == "20:31:10", "the clock goes by itself")
    assert talk.parts.typing.value == ""
    talk.parts.pause.click()
    await until(lambda: talk.parts.pause.description == "Go on")
    assert clock.stopped and talk.parts.text.disabled
    real.at = 500
    talk.parts.pause.click()
    await until(lambda: talk.parts.pause.description == "Pause" and not clock.stopped)
    assert not talk.parts.text.disabled and clock.now() == 10
    talk.parts.speed.value = 20.0
    await until(lambda: clock.speed == 20)
    real.at += 1.45  # 29 virtual seconds: it has been typing for one
    talk._changed()
    await until(lambda: talk.parts.typing.value == TYPING)
    assert bubbles(talk) == ["在吗"]
    real.at += 0.05
    await until(lambda: bubbles(talk) == ["在吗", "刚到家刚到家"])
    assert "20:31:40" in talk.parts.lines.children[1].value and talk.parts.typing.value == ""
    await ended(talk)


@driven
async def test_a_care_notice_holds_the_chat_until_the_person_presses_one_of_two_buttons() -> None:
    talk = await started([Plan("咋了", 5)])
    enter(talk, "我不想活了")
    await until(lambda: shown(talk.parts.held) == [True])
    notice = Seen(talk.parts.care.value).text
    assert talk.chat is not None and talk.chat.state.notices and len(notice) > 20
    assert shown(talk.parts.write, talk.parts.steer) == [False, False]
    await asyncio.sleep(0.02)
    assert talk.chat.state.answers == [], "nobody is asked while the notice stands"
    talk.parts.go_on.click()
    await until(lambda: bubbles(talk) == ["我不想活了", "咋了"])
    assert shown(talk.parts.held, talk.parts.write, talk.parts.steer) == [False, True, True]
    enter(talk, "真的 我不想活了")
    await until(lambda: shown(talk.parts.held) == [True])
    talk.parts.end_held.click()
    await until(lambda: not talk.running)
    assert talk.chat.state.stop is not None


@driven
async def test_a_model_that_fails_is_shown_and_asked_again() -> None:
    tries: list[int] = []

    class Failing:
        async def decide(self, ask: Asked) -> Answer:
            tries.append(len(ask.messages))
            if len(tries) == 1:
                raise ModelError("unreachable", "no answer from <the server>")
            return Answer(Plan("在", 3) if len(ask.messages) == 1 else SILENCE)

    talk = await started(Failing())
    enter(talk, "在吗")
    await until(lambda: shown(talk.parts.failed) == [True])
    assert "no answer from &lt;the server&gt;" in talk.parts.trouble.value
    talk.parts.again.click()
    await until(lambda: bubbles(talk) == ["在吗", "在"])
    await until(lambda: tries == [1, 1, 2])
    assert shown(talk.parts.failed) == [False]
    await ended(talk)


@driven
async def test_going_back_takes_later_bubbles_away_and_another_answer_comes() -> None:
    takes: list[str] = []

    def sit(seat: Any, take: str, past: Any) -> Policy:
        takes.append(take)
        texts = {"0/chat01": "在家呢", "0/chat01/take1": "在外面"}
        return ScriptedPolicy(lambda ask: Plan(texts[take], 7) if len(ask.messages) == 1 else SILENCE)

    talk = await started([], sit=sit)
    enter(talk, "在哪")
    await until(lambda: bubbles(talk) == ["在哪", "在家呢"])
    enter(talk, "哦")
    await until(lambda: len(bubbles(talk)) == 3)
    assert [label.split("  ")[0] for label, _ in talk.parts.messages.options] == ["1", "2", "3"]
    assert talk.parts.messages.value == 2, "the newest, until another is picked"
    talk.parts.messages.value = 0
    talk.parts.back.click()
    await until(lambda: bubbles(talk) == ["在哪", "在外面"])
    assert talk.chat is not None and talk.chat.state.rewinds == 1
    assert talk.parts.messages.value in (0, 1)
    await ended(talk)


@driven
async def test_a_chat_that_is_over_can_be_gone_back_in_before_it_is_ended() -> None:
    talk = await started([Plan("一", 50), Plan("二", 50)], minutes=1)
    enter(talk, "在吗")
    await until(lambda: talk.chat is not None and talk.chat.phase == "over")
    await until(lambda: shown(talk.parts.write) == [False])
    assert "Go back to a message" in talk.parts.status.value
    assert talk.running and shown(talk.parts.steer) == [True] and bubbles(talk) == ["在吗", "一"]
    talk.parts.messages.value = 0
    talk.parts.back.click()
    await until(lambda: talk.chat is not None and talk.chat.phase != "over")
    await ended(talk)


@driven
async def test_an_error_in_opening_is_one_line_and_start_can_be_pressed_again() -> None:
    class NotThereError(AnthrolabError):
        pass

    @asynccontextmanager
    async def failing(settings: ChatSettings, clock: Clock) -> AsyncIterator[OpenChat]:
        raise NotThereError("systems.yaml: <no such> system; name another")
        yield

    talk = ChatWidget(SETTINGS, opening=failing)
    talk.parts.start.click()
    await until(lambda: "problem" in talk.parts.said.value)
    assert Seen(talk.parts.said.value).text == "systems.yaml: <no such> system; name another"
    assert not talk.parts.start.disabled and shown(talk.parts.begin, talk.parts.first) == [True, True]


@driven
async def test_a_fault_inside_the_chat_is_never_swallowed() -> None:
    class Broken:
        async def decide(self, ask: Asked) -> Answer:
            raise ZeroDivisionError("a fault of <ours>")

    talk = await started(Broken())
    enter(talk, "在吗")
    await until(lambda: not talk.running)
    text = Seen(talk.parts.said.value).text
    assert "ZeroDivisionError: a fault of <ours>" in text and "Traceback" in text
    assert bubbles(talk) == ["在吗"], "what was said stays to be read"


@driven
async def test_only_what_changed_is_sent() -> None:
    real = Time()
    talk = await started([Plan("嗯", 400), Plan("哦", 400)], Clock(1.0, real))
    enter(talk, "在吗")
    await until(lambda: bubbles(talk) and ">read<" in talk.parts.lines.children[0].value)
    sent: list[tuple[Any, set[str]]] = []
    before = w.Widget.send_state

    def counting(self: Any, key: Any = None) -> None:
        sent.append((self, {key} if isinstance(key, str) else set(key or ())))
        before(self, key)

    w.Widget.send_state = counting
    try:
        for _ in range(5):
            talk._changed()
            await asyncio.sleep(0.005)
        assert sent == [], "nothing changed"
        real.at = 3
        talk._changed()
        await asyncio.sleep(0.005)
        assert sent == [(talk.parts.clock, {"value"})], "only the clock"
        sent.clear()
        first = talk.parts.lines.children[0]
        enter(talk, "睡了没")
        await until(lambda: len(bubbles(talk)) == 2 and ">read<" in talk.parts.lines.children[1].value)
        assert first not in [widget for widget, _ in sent] and talk.parts.lines.children[0] is first
    finally:
        w.Widget.send_state = before
    await ended(talk)


@driven
async def test_newest_message_stays_in_view_because_the_list_is_turned_round() -> None:
    talk = await started([])
    assert talk.parts.scroll.children == (talk.parts.typing, talk.parts.lines)
    assert "al-scroll" in talk.parts.scroll._dom_classes
    css = next(c.value for c in talk.children if "<style>" in str(getattr(c, "value", "")))
    assert re.search(r"\.al-scroll \{[^}]*column-reverse", css)
    await ended(talk)


# what stands behind it


@driven
async def test_the_request_and_the_raw_reply_of_any_ask_can_be_seen() -> None:
    raw = iter([f"31:09] {NAME}: <b>在呢</b>", "31:20] 阿明:"])
    heard = Heard(ScriptedModel(lambda request: next(raw)))
    player = Player(SYSTEM, 600, 24)
    talk = await started([], heard=heard, sit=lambda seat, take, past: player.sit(seat, heard, take, past))
    enter(talk, "在吗")
    await until(lambda: talk.chat is not None and (len(talk.chat.state.answers) == 2 or talk.chat.state.trouble))
    talk.panels.selected_index = 0
    await until(lambda: "Raw reply" in talk.panels.shown.value)
    assert [label[:15] for label, _ in talk.panels.ask.options] == ["the latest", "after message 1", "after message 2"]
    requests = [request for request, _ in heard.calls.values()]
    talk.panels.ask.value = 0
    await until(lambda: "&lt;b&gt;在呢&lt;/b&gt;" in talk.panels.shown.value)
    text = Seen(talk.panels.shown.value).text
    assert requests[0].prompt is not None and requests[0].prompt in text and "temperature" in text
    assert "<b>在呢</b>" in text and "9 s later, at 20:31:09" in text
    await ended(talk)


@driven
async def test_what_was_withheld_is_told_with_its_fate_and_the_unsent_draft_with_its_time() -> None:
    real = Time()
    script = [Plan("你到家了吗", 300), Plan("你到家了没", 300), Plan("<i>算了", 300), SILENCE]
    talk = await started(script, Clock(1.0, real))
    talk.panels.selected_index = 1
    for i, text in enumerate(("在吗", "嘿", "喂", "人呢")):
        real.at += 10
        enter(talk, text)
        await until(lambda n=i: talk.chat is not None and len(talk.chat.state.answers) == n + 1)
        if i == 2:
            await until(lambda: "Unsent at this moment" in talk.panels.withheld.value and "算了" in talk.panels.withheld.value)
            assert "due at 20:36:20" in Seen(talk.panels.withheld.value).text and STILL_UNSENT not in talk.panels.withheld.value
    await until(lambda: "draft withdrawn" in talk.panels.withheld.value)
    text = Seen(talk.panels.withheld.value).text
    assert "你到家了吗 draft revised by 你到家了没" in text
    assert "你到家了没 draft replaced by <i>算了" in text and "<i>算了 draft withdrawn" in text
    assert "Unsent at this moment" not in text and STILL_UNSENT not in text
    await ended(talk)


def found(kind: Kind, value: str, quote: str, message: int) -> Inferred:
    return Inferred(kind=kind, value=value, quote=quote, message=message)


class FixedAnalyser:
    """Finds the same at every look."""

    def __init__(self, *looks: Analysis, wait: asyncio.Event | None = None) -> None:
        self.looks, self.wait = list(looks), wait

    async def analyse(self, known: Context, messages: Any, seat: Any, person: Any) -> Analysis:
        if self.wait is not None:
            await self.wait.wait()
        return self.looks.pop(0) if self.looks else Analysis(context=known)


def rows(talk: ChatWidget) -> list[str]:
    return [Seen(row.children[2].value).text for row in talk.panels.context.rows.children if len(getattr(row, "children", ())) == 3]


@driven
async def test_the_context_is_shown_with_evidence_and_refusals_and_is_corrected_by_hand() -> None:
    known = Context(entries=[found("city", "杭州", "我在杭州上班", 0), found("said", "养了只<猫>", "养了只<猫>", 0)], upto=1)
    refused = [Refused(kind="age", value="30", quote="我朋友30了", message=0, reason="about somebody else")]
    talk = await started([], analyser=FixedAnalyser(Analysis(context=known, refused=refused)))
    talk.panels.selected_index = 2
    enter(talk, "我在杭州上班 养了只<猫>")
    await until(lambda: len(rows(talk)) == 2)
    assert rows(talk) == ["city\u2002杭州message 1: “我在杭州上班”", "said\u2002养了只<猫>message 1: “养了只<猫>”"]
    assert "age\u200230 about somebody elsemessage 1: “我朋友30了”" in Seen(talk.panels.context.rest.value).text
    talk.panels.context.rows.children[0].children[0].click()  # edit the city
    assert (talk.panels.context.kind.value, talk.panels.context.value.value) == ("city", "杭州")
    talk.panels.context.value.value = "宁波"
    talk.panels.context.set.click()
    await until(lambda: any("宁波" in row for row in rows(talk)))
    assert [e.value for e in talk.chat.state.context.of("city")] == ["宁波"]  # type: ignore[union-attr]
    assert any("宁波" in one for one in talk.chat.seat.partner.known)  # type: ignore[union-attr]
    said = next(i for i, row in enumerate(rows(talk)) if row.startswith("said"))
    talk.panels.context.rows.children[said].children[1].click()  # take it away
    await until(lambda: len(rows(talk)) == 1)
    assert "said 养了只<猫>" in Seen(talk.panels.context.rest.value).text
    talk.panels.context.set.click()  # nothing typed
    await until(lambda: "write 1 to" in talk.panels.context.said.value)
    talk.panels.context.kind.value, talk.panels.context.value.value = "topic", "周末打球"
    talk.panels.context.set.click()
    await until(lambda: any("周末打球set by hand" in row for row in rows(talk)))
    assert talk.panels.context.said.value == ""
    await ended(talk)


@driven
async def test_an_entry_of_several_is_edited_in_its_place() -> None:
    known = Context(entries=[found("topic", "打球", "周末打球", 0), found("topic", "吃饭", "打完吃饭", 0)], upto=1)
    talk = await started([], analyser=FixedAnalyser(Analysis(context=known)))
    talk.panels.selected_index = 2
    enter(talk, "周末打球 打完吃饭")
    await until(lambda: len(rows(talk)) == 2)
    talk.panels.context.rows.children[0].children[0].click()
    talk.panels.context.value.value = "打羽毛球"
    talk.panels.context.set.click()
    await until(lambda: any("打羽毛球" in row for row in rows(talk)))
    assert sorted(e.value for e in talk.chat.state.context.entries) == ["吃饭", "打羽毛球"]  # type: ignore[union-attr]
    await ended(talk)


@driven
async def test_what_is_set_by_hand_while_the_analyser_reads_is_not_lost() -> None:
    wait = asyncio.Event()
    talk = await started([], analyser=FixedAnalyser(Analysis(context=Context(entries=[found("city", "杭州", "我在杭州", 0)], upto=1)), wait=wait))
    talk.panels.selected_index = 2
    enter(talk, "我在杭州")
    await until(lambda: talk.chat is not None and talk.chat.phase == "deciding")
    talk.panels.context.kind.value, talk.panels.context.value.value = "name", "老王"
    talk.panels.context.set.click()
    await until(lambda: any("老王" in row for row in rows(talk)))
    wait.set()
    await until(lambda: talk.chat is not None and talk.chat.phase == "resting")
    assert [e.value for e in talk.chat.state.context.of("name")] == ["老王"]  # type: ignore[union-attr]
    await ended(talk)


# without a kernel, and again with one


@driven
async def test_the_chat_so_far_stands_where_no_kernel_runs() -> None:
    talk = await started([Plan("<b>在", 3)])
    enter(talk, "在吗")
    await until(lambda: len(bubbles(talk)) == 2)
    html = talk._repr_mimebundle_()["text/html"]
    text = Seen(re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)).text
    assert AI_NOTICE.split("\n")[0] in text and "在吗" in text and "<b>在" in text
    assert header(NAME, "gemma-3-270m").split("\n")[0] in text
    await ended(talk)


@driven
async def test_the_cell_run_again_gives_the_same_chat_and_other_settings_end_it() -> None:
    talk = await started([Plan("在", 3)])
    enter(talk, "在吗")
    await until(lambda: len(bubbles(talk)) == 2)
    assert chat_widget(SETTINGS, 5.0, talk) is talk
    assert "shown again, with its 2 messages; it is running" in talk.told()
    other = chat_widget(replace(SETTINGS, name="小李"), 1.0, talk)
    assert other is not talk and other.chat is None
    await until(lambda: not talk.running)
    assert chat_widget(SETTINGS, 1.0, None) is not talk
    with pytest.raises(AnthrolabError, match="speed 0: give a number above 0"):
        chat_widget(SETTINGS, 0.0)


@driven
async def test_a_saved_chat_goes_on_in_another_kernel_with_nothing_lost_and_says_so(tmp_path: Path) -> None:
    answers = {1: ("刚到家", 20), 2: ("", 0), 3: ("累死了", 30), 4: ("", 0)}
    folder = tmp_path / "talk"
    with served(tmp_path, lambda _, number: answers.get(number, ("", 0))) as systems:
        settings = ChatSettings("scripted", persona="p01", name="阿明", start="2026-03-06T20:31:00", folder=folder, chat="chat01", systems_file=systems)
        talk = ChatWidget(settings, INSTANT)
        assert f"{folder}: a new chat named chat01 will be saved there" in talk.told() and talk.parts.start.description == "Start"
        talk.parts.start.click()
        await until(lambda: talk.parts.ai.value, lambda: talk.parts.said.value)
        assert not list(folder.glob("dialogues.jsonl"))
        enter(talk, "在吗")
        await until(lambda: len(bubbles(talk)) == 2 and talk.chat is not None and len(talk.chat.state.answers) == 2)
        lost = talk._talk
        assert lost is not None
        lost.cancel()  # the kernel is gone: nobody has pressed End
        await until(lambda: not talk.running)

        again = ChatWidget(settings, INSTANT)
        assert "chat01 was begun there before; press Go on, and it goes on where it stopped" in again.told()
        assert "goes on where it stopped" in Seen(again.parts.first.value).text and again.parts.start.description == "Go on"
        again.parts.start.click()
        await until(lambda: again.parts.ai.value)
        await until(lambda: bubbles(again) == ["在吗", "刚到家"])
        assert "goes on where it stopped, with the 2 messages that were there" in again.parts.said.value
        assert [c.value for c in again.parts.lines.children] == [c.value for c in talk.parts.lines.children]
        enter(again, "吃了没")
        await until(lambda: bubbles(again)[2:] == ["吃了没", "累死了"])
        again.panels.selected_index = 0
        await until(lambda: len(again.panels.ask.options) == 5)
        again.panels.ask.value = 0  # an ask of the first kernel: its call stands only in the log
        await until(lambda: "“刚到家” 20 s later" in again.panels.shown.value)
        assert "Raw reply" in again.panels.shown.value
        assert "System" in Seen(again.panels.shown.value).text
        await ended(again)
        assert f"Closed. Saved in {folder} as chat01." in Seen(again.parts.said.value).text
        (line,) = (folder / "dialogues.jsonl").read_text(encoding="utf-8").splitlines()
        assert [m["content"] for m in json.loads(line)["messages"]] == ["在吗", "刚到家", "吃了没", "累死了"]
        again.parts.start.click()  # ended, but not lost: opened again it can be gone back in
        await until(lambda: again.running and shown(again.parts.steer) == [True])
        again.parts.messages.value = 2
        again.parts.back.click()
        await until(lambda: again.chat is not None and again.chat.state.rewinds == 1)
        await ended(again)


# drafts that were not sent, of a record in which only one side is asked


def ask(now_s: int, draft: tuple[str, int] | None, content: str, due_s: int = 0, speaker: str = "a") -> Ask:
    at = [START + timedelta(seconds=s) for s in (now_s, draft[1] if draft else 0, due_s)]
    before = Draft(content=draft[0], at=at[1]) if draft else None
    return Ask(speaker=speaker, now=at[0], previous_draft=before, decision=Decision(content=content, at=at[2], end=not content))  # type: ignore[arg-type]


def record(messages: list[tuple[str, str, int]], asks: list[Ask]) -> Dialogue:
    said = [Message(speaker=s, content=c, at=START + timedelta(seconds=t), opener=i == 0) for i, (s, c, t) in enumerate(messages)]  # type: ignore[arg-type]
    people = {"a": Participant(name="小雨"), "b": Participant(name="阿明")}
    return Dialogue(dialogue_id="d", evaluated_role="a", speakers=people, start=START, messages=said, asks=asks, guards=[])  # type: ignore[arg-type]


LIVE = [("b", "在吗", 0), ("b", "嘿", 0), ("a", "在", 20), ("b", "好", 20)]
LIVE_ASKS = [ask(0, None, "咋了", 30), ask(0, ("咋了", 30), "在", 20), ask(20, None, "等我下", 90), ask(20, ("等我下", 90), "", 0)]


def test_an_ask_of_a_live_record_belongs_to_the_message_of_its_number_even_within_one_second() -> None:
    drafts = unsent_drafts(record(LIVE, LIVE_ASKS))
    assert [(u.content, u.after, u.fate, u.became) for u in drafts] == [("咋了", 1, "draft replaced", "在"), ("等我下", 3, "draft withdrawn", None)]


def test_a_record_with_asks_of_both_sides_reads_the_same() -> None:
    both = []
    for i, one in enumerate(LIVE_ASKS):
        both += [one, ask(LIVE[i][2], None, "", speaker="b")] if i % 2 else [ask(LIVE[i][2], None, "", speaker="b"), one]
    assert unsent_drafts(record(LIVE, both)) == unsent_drafts(record(LIVE, LIVE_ASKS))


def test_asks_that_do_not_fit_the_messages_are_placed_by_the_clock() -> None:
    drafts = unsent_drafts(record(LIVE, [ask(25, ("咋了", 30), "", 0)]))
    assert [(u.content, u.after) for u in drafts] == [("咋了", 3)]


# notebook 11


def test_notebook_11_runs_headless_with_nobody_writing(tmp_path: Path) -> None:
    lines: list[str] = []
    (made,) = run_notebooks(["11"], tmp_path / "run", [f"folder={tmp_path / 'talk'}", "case=b01-a"], progress=lines.append)
    text = "\n".join(lines)
    assert "No chat is open here" in text and "messages: 0" in text
    assert "a new chat named chat01 will be saved there" in text and f"anthrolab judge {tmp_path / 'talk'}" in text
    assert not (tmp_path / "talk").exists(), "nothing is opened before Start"
    (cell,) = [c for c in nbformat.read(made, as_version=4).cells if c.id == "show"]
    assert AI_NOTICE.split("\n")[0] in Seen(re.sub(r"<style>.*?</style>", "", cell.outputs[0].data["text/html"], flags=re.DOTALL)).text


# the whole of it, in JupyterLab, with the embedded model


class Page:
    """The chat in a browser, and its event log on disk."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page, self.folder = page, folder

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        log = self.folder / "talk" / "chats" / "chat01.jsonl"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [e for e in map(json.loads, lines) if kind in ("", e["event"])]

    def begin(self, label: str) -> None:
        button = self.page.wait_for_selector(f"button.al-start:has-text('{label}')", timeout=120_000)
        button.click()
        self.page.wait_for_selector(".al-text input:not([disabled])", timeout=120_000)

    def bubbles(self) -> list[tuple[str, str, bool]]:
        """Text, time and whether it is the person's, of every message that is shown."""
        found = self.page.evaluate(
            "[...document.querySelectorAll('.al-lines .line')].map(l => [l.querySelector('.bubble').textContent, l.querySelector('.meta').textContent.slice(0, 8), l.classList.contains('mine')])"
        )
        return [tuple(one) for one in found]

    def write(self, text: str, *, typed: bool = False) -> dict[str, Any]:
        """Type a message (unless it stands there already) and press Enter; the answer that was decided after it."""
        before = len(self.events("answer"))
        if not typed:
            self.page.locator(".al-text input").click()
            self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")
        self.until(lambda: len(self.events("answer")) > before)
        self.page.wait_for_function("t => [...document.querySelectorAll('.al-lines .mine .bubble')].some(b => b.textContent === t)", arg=text)
        assert self.page.locator(".al-text input").input_value() == ""
        return self.events("answer")[-1]

    def until(self, true: Callable[[], Any], seconds: int = 120) -> None:
        for _ in range(10 * seconds):
            if true():
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"it never came; the log ends with {self.events()[-5:]}")

    def speed(self, label: str) -> None:
        self.page.locator(".al-speed select").select_option(label=label)

    def run_all(self) -> None:
        self.page.click("text=Run >> nth=0")
        self.page.click("text=Run All Cells")


WRITTEN = (
    "在吗 今晚吃啥", "你那边下雨没", "我刚下班 累死了", "周末有空没 出去转转", "你昨天说的那个店在哪", "哎 跟你说个事", "我买了两张票", "你猜我看见谁了",
    "怎么不说话", "那我先去洗澡了", "明天几点见", "你吃了没", "刚刚在路上堵了半小时", "给我推荐个电影呗", "睡了没", "我妈让我问问你", *(f"第{i}次问你了" for i in range(2, 30)),
)  # fmt: skip


def chat_lab(root: Path, **values: str) -> Path:
    """A folder to start JupyterLab in, with notebook 11 set to something."""
    text = NOTEBOOK.read_text(encoding="utf-8")
    for name, value in values.items():
        text, done = re.subn(rf"(\"{name}: \w+ = )(\\\"[^\"]*\\\"|[\d.]+)", lambda m, v=value: m.group(1) + v, text)
        assert done == 1, name
    (root / "notebooks").mkdir()
    (root / "notebooks" / NOTEBOOK.name).write_text(text, encoding="utf-8")
    return root


def compose(page: Any, letters: str, text: str) -> None:
    """Type with an input method: letters, Enter that belongs to it, and then the text that it puts in their place."""
    browser = page.context.new_cdp_session(page)
    page.locator(".al-text input").click()
    browser.send("Input.imeSetComposition", {"text": letters, "selectionStart": len(letters), "selectionEnd": len(letters)})
    browser.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", "key": "Process", "code": "Enter", "windowsVirtualKeyCode": 229})
    browser.send("Input.dispatchKeyEvent", {"type": "keyUp", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13})
    page.wait_for_timeout(600)
    browser.send("Input.insertText", {"text": text})
    page.wait_for_timeout(600)


def kill_kernel(address: str) -> None:
    """kill -9 of the one kernel that this server has."""
    with urllib.request.urlopen(f"{address}/api/kernels", timeout=10) as reply:
        (kernel,) = json.load(reply)
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and f"kernel-{kernel['id']}" in (process / "cmdline").read_text(errors="replace"):
            os.kill(int(process.name), signal.SIGKILL)
            return
    raise AssertionError("no such process")


def test_in_jupyterlab_a_person_chats_interrupts_reloads_goes_on_after_a_kill_and_goes_back(tmp_path: Path) -> None:
    quoted = {name: f'\\"{value}\\"' for name, value in {"folder": "talk", "start": "2026-03-06T20:31:00", "name": "阿明", "persona": "p03"}.items()}
    folder = chat_lab(tmp_path, **quoted, speed="5.0")
    with jupyter_lab(folder) as address, open_notebook(address, f"notebooks/{NOTEBOOK.name}", height=1400) as (page, log):
        chat, texts = Page(page, folder), iter(WRITTEN)
        page.wait_for_selector("text=No chat is open here: press the button", timeout=120_000)
        assert not (folder / "talk").exists(), "nothing is opened before Start"
        assert AI_NOTICE.splitlines()[0] in page.locator(".al-first").inner_text()
        chat.begin("Start")
        assert header(LIBRARY.personas["p03"].name, "gemma-3-270m") in page.locator(".al-ai").inner_text()

        compose(page, "zai'bu", "在不在")
        assert chat.events("typed") == [] and page.locator(".al-text input").input_value() == "在不在"
        answer = chat.write("在不在", typed=True)  # until it has something to say: then that comes, at its time
        while not answer["content"]:
            answer = chat.write(next(texts))
        asked_at = chat.events("message")[-1]["at_s"]
        if answer["delay_s"] > 60:
            chat.speed("60x")
        chat.until(lambda: any(not mine for _, _, mine in chat.bubbles()))
        chat.speed("5x")
        text, at, _ = next(one for one in chat.bubbles() if not one[2])
        assert text == answer["content"]
        assert at == f"{START + timedelta(seconds=asked_at + answer['delay_s']):%H:%M:%S}"

        action, draft = None, None  # interrupted until it revises or replaces what it was about to say
        while action not in ("revise", "replace"):
            page.wait_for_timeout(300)
            answers = chat.events("answer")
            draft = answers[-1]["content"]
            answer = chat.write(next(texts))
            out = [e["content"] for e in chat.events("message") if e["speaker"] == "a"]
            action = action_of(draft, answer["content"], answer["end"]) if draft and draft not in out else None
        page.locator("button.al-pause").click()
        page.wait_for_selector("button.al-pause:has-text('Go on')")
        withheld = page.locator(".al-live .jupyter-widget-Collapse-header").nth(1)
        withheld.click()
        page.wait_for_selector(f".al-withheld >> text=draft {'revised' if action == 'revise' else 'replaced'}")
        withheld.click()

        before = chat.bubbles()
        page.keyboard.press("Control+s")
        page.wait_for_timeout(500)
        page.reload()
        page.wait_for_selector(".al-lines .line", timeout=120_000)
        chat.until(lambda: chat.bubbles() == before)
        chat.run_all()
        page.wait_for_selector(f"text=the chat of this kernel is shown again, with its {len(before)} messages; it is running", state="attached", timeout=180_000)
        chat.until(lambda: chat.bubbles() == before)
        page.locator("button.al-pause").click()
        chat.write(next(texts))

        page.wait_for_timeout(300)
        kill_kernel(address)
        page.wait_for_selector("text=appears to have died", timeout=60_000)
        page.locator(".jp-Dialog button.jp-mod-accept").click()
        page.wait_for_selector("text=| Idle", timeout=60_000)
        said = chat.events("message")
        chat.run_all()
        page.wait_for_selector("text=chat01 was begun there before; press Go on", state="attached", timeout=60_000)
        chat.begin("Go on")
        chat.until(lambda: [b[0] for b in chat.bubbles()][: len(said)] == [e["content"] for e in said])
        page.wait_for_selector(f"text=It goes on where it stopped, with the {len(said)} messages")
        chat.write(next(texts))

        there = chat.bubbles()
        to = next(i for i, (_, _, mine) in enumerate(there) if mine)
        calls = [e["call"] for e in chat.events("answer")]
        page.locator(".al-messages select").select_option(index=to)
        page.locator("button.al-back").click()
        chat.until(lambda: chat.events("rewound") and chat.events()[-1]["event"] in ("answer", "message"))
        chat.until(lambda: chat.bubbles()[: to + 1] == there[: to + 1] and len(chat.bubbles()) <= to + 2)
        assert chat.events("rewound")[0]["to"] == to
        assert chat.events("answer")[len(calls)]["call"] not in calls, "it was asked anew, under another draw"

        page.locator("button.al-end").click()
        page.wait_for_selector("text=Closed. Saved in talk as chat01.", timeout=60_000)
        assert log.errors == [] and log.dialogs == []
        assert [r for r in log.requests if not r.startswith((address, "data:", "blob:"))] == []
    (line,) = (folder / "talk" / "dialogues.jsonl").read_text(encoding="utf-8").splitlines()
    dialogue = Dialogue.model_validate_json(line)
    assert [m.content for m in dialogue.messages][: to + 1] == [text for text, _, _ in there[: to + 1]]
