"""`anthrolab chat` in a real pseudo-terminal, with a scripted server as the model, and once with the embedded model."""

import threading
import time
from pathlib import Path

from anthrolab.bench.store import Run
from anthrolab.live.notices import AI_NOTICE
from anthrolab.models.scripted import Call, serve
from anthrolab.show.unsent import unsent_drafts
from tests.terminal_for_tests import (
    CTRL_C,
    CTRL_D,
    NAME,
    answered,
    answers,
    chatting,
    decision,
    events,
    in_terminal,
    last_said,
    saved,
    sent,
)


def test_the_ai_notice_comes_before_the_first_message_and_the_header_stays(tmp_path: Path) -> None:
    with chatting(tmp_path, answers) as (terminal, _server):
        first = AI_NOTICE[:8]
        since = terminal.wait_for(first, "AI", "toy", NAME)
        terminal.line("在吗")
        terminal.wait_for("[1] 20:31:00 网友: 在吗", f"[2] 20:31:05 {NAME}: 收到在吗了")
        assert terminal.text.index(first) < terminal.text.index("[1]")
        terminal.resize(30, 99)
        terminal.wait_for("toy", since=since)


def test_an_answer_comes_after_its_delay_and_what_is_typed_meanwhile_stays(tmp_path: Path) -> None:
    with chatting(tmp_path, answers) as (terminal, _server):
        terminal.line("在吗")
        terminal.type("我还没打")
        terminal.wait_for(f"{NAME}: 收到在吗了")
        terminal.line("完呢")
        terminal.wait_for("网友: 我还没打完呢", "收到我还没打完呢了")
        terminal.line("/end")
        assert terminal.ends() == 0
        assert "anthrolab judge '" in terminal.text
        assert "/back N" not in terminal.text
    assert [e["at_s"] for e in events(tmp_path / "聊天 一") if e["event"] == "message"][:2] == [0, 5]


def test_an_interrupted_draft_is_replaced_and_the_record_and_the_draft_command_show_it(tmp_path: Path) -> None:
    def interrupted(call: Call) -> str:
        said = last_said(call)
        return decision(call, "", 0) if said.startswith(NAME) else decision(call, "我在做饭", 590) if said.endswith("在吗") else decision(call, "刚做完饭", 3)

    with chatting(tmp_path, interrupted) as (terminal, _server):
        terminal.line("在吗")
        answered(tmp_path / "聊天 一", 1)
        terminal.line("/draft")
        terminal.wait_for("unsent now, due at 20:40:50: 我在做饭")
        terminal.line("人呢")
        since = terminal.wait_for("刚做完饭")
        answered(tmp_path / "聊天 一", 3)
        terminal.line("/draft")
        terminal.wait_for("nothing is unsent now", "draft re", "我在做饭 -> 刚做完饭", since=since)
        terminal.line("/end")
        assert terminal.ends() == 0
    dialogue = Run(tmp_path / "聊天 一").dialogues()["聊天 一-chat01-a-0"]
    assert [(u.content, u.became) for u in unsent_drafts(dialogue)] == [("我在做饭", "刚做完饭")]
    assert [m.content for m in dialogue.messages] == ["在吗", "人呢", "刚做完饭"]
    assert dialogue.model_extra is not None and dialogue.model_extra["human"] == ["b"]


def test_going_back_brings_another_answer(tmp_path: Path) -> None:
    count = iter(range(1, 100))

    def another(call: Call) -> str:
        return decision(call, "" if last_said(call).startswith(NAME) else f"第{next(count)}次回答")

    with chatting(tmp_path, another) as (terminal, _server):
        terminal.line("在吗")
        terminal.wait_for(f"[2] 20:31:05 {NAME}: 第1次回答")
        terminal.line("/back 1")
        terminal.wait_for("back at [1]", f"[2] 20:31:05 {NAME}: 第2次回答")
        terminal.line("/back 7")
        terminal.wait_for("/back 7: give the number of a message, 1 to 2")
        terminal.type(CTRL_D)
        assert terminal.ends() == 0
    dialogue = Run(tmp_path / "聊天 一").dialogues()["聊天 一-chat01-a-0"]
    assert [m.content for m in dialogue.messages] == ["在吗", "第2次回答"]
    assert dialogue.model_extra is not None and dialogue.model_extra["rewinds"] == 1


def test_a_pause_stands_still_and_what_is_typed_in_it_comes_back(tmp_path: Path) -> None:
    with chatting(tmp_path, lambda call: decision(call, "" if last_said(call).startswith(NAME) else "来了", 590)) as (terminal, _server):
        terminal.line("在吗")
        answered(tmp_path / "聊天 一", 1)
        terminal.line("/pause")
        terminal.line("/speed 1000000")
        terminal.line("等等我")
        since = terminal.wait_for("comes back after /go")
        time.sleep(1.5)
        assert sent(tmp_path / "聊天 一") == ["在吗"]
        terminal.line("/go")
        terminal.wait_for(f"20:40:50 {NAME}: 来了", since=since)
        terminal.type("\r")
        terminal.wait_for("网友: 等等我", since=since)


def test_words_of_care_stop_the_chat_before_anybody_is_asked(tmp_path: Path) -> None:
    with chatting(tmp_path, lambda call: decision(call, "" if last_said(call).startswith(NAME) else "我在呢")) as (terminal, server):
        terminal.line("我不想活了")
        terminal.wait_for("+---", "go on (继续) or end (结束)?")
        terminal.line("你在吗")
        since = terminal.wait_for("Nothing was sent (what you typed is kept)")
        assert not server.calls
        assert sent(tmp_path / "聊天 一") == ["我不想活了"]
        terminal.line("继续")
        terminal.wait_for(f"{NAME}: 我在呢", since=since)
        terminal.type("\r")
        terminal.wait_for("网友: 你在吗", since=since)


def test_a_chat_that_is_held_can_be_ended_in_plain_words(tmp_path: Path) -> None:
    with chatting(tmp_path, answers) as (terminal, server):
        terminal.line("我不想活了")
        terminal.wait_for("go on (继续) or end (结束)?")
        terminal.line("结束")
        assert terminal.ends() == 0
        assert not server.calls
    assert events(tmp_path / "聊天 一")[-1]["event"] == "over"


def test_ctrl_c_pauses_and_keeps_the_line_and_ctrl_d_leaves_a_chat_that_goes_on_later(tmp_path: Path) -> None:
    with serve(answers) as server:
        with in_terminal(*saved(tmp_path, server)) as terminal:
            terminal.line("在吗")
            terminal.wait_for("收到在吗了")
            terminal.type("没打")
            terminal.type(CTRL_C)
            since = terminal.wait_for("Paused: /go goes on. To leave: Ctrl-D")
            terminal.line("完")
            terminal.wait_for("kept and comes back after /go", since=since)
            assert "没打完" not in sent(tmp_path / "聊天 一")
            terminal.line("/go")
            terminal.wait_for("> /go", since=since)
            terminal.type("\r")
            terminal.wait_for("网友: 没打完", "收到没打完了", since=since)
            terminal.type(CTRL_D)
            assert terminal.ends() == 0
            assert "the same command with --chat chat01" in terminal.text
        assert not any(e["event"] == "over" for e in events(tmp_path / "聊天 一"))
        with in_terminal("--save", tmp_path / "聊天 一", "--chat", "chat01", "--systems", tmp_path / "systems.yaml", "--speed", "100") as terminal:
            terminal.wait_for("[1] 20:31:00 网友: 在吗", "[2] 20:31:05")
            terminal.line("/shown 1")
            terminal.wait_for("你就是", "--- replied")
            terminal.line("又来了")
            terminal.wait_for("收到又来了了")


def test_a_message_typed_while_the_model_decides_is_seen_waiting(tmp_path: Path) -> None:
    go = threading.Event()

    def slow(call: Call) -> str:
        go.wait(30)
        return answers(call)

    with chatting(tmp_path, slow) as (terminal, _server):
        terminal.line("在吗")
        terminal.wait_for("[1]")
        terminal.line("急事")
        terminal.wait_for("to go out: 急事")
        assert sent(tmp_path / "聊天 一") == ["在吗"]
        go.set()
        terminal.wait_for("网友: 急事", "收到急事了")
        log = tmp_path / "聊天 一" / "chats" / "chat01.jsonl"
        for _ in range(600):  # until the ask after its message is answered, too
            if log.read_text(encoding="utf-8").count('"event":"answer"') == 3:
                break
            time.sleep(0.05)
        go.clear()
        terminal.line("还有")
        terminal.wait_for("网友: 还有")
        terminal.line("/end")
        terminal.wait_for("its reply is waited for a moment")
        go.set()
        assert terminal.ends() == 0


def test_a_chat_whose_minutes_are_up_can_be_gone_back_in(tmp_path: Path) -> None:
    with chatting(tmp_path, lambda call: decision(call, f"第{call.number}次", 120 if call.number == 1 else 5), "--minutes", "1") as (terminal, _server):
        terminal.line("在吗")
        terminal.wait_for("The chat is over: its minutes are up")
        terminal.line("还在吗")
        since = terminal.wait_for("kept and comes back after /back N")
        terminal.line("/back 1")
        terminal.wait_for(f"[2] 20:31:05 {NAME}: 第2次", since=since)
        terminal.type("\r")
        terminal.wait_for("网友: 还在吗", since=since)


def test_what_is_known_is_set_and_taken_away_by_hand_and_two_slashes_are_one(tmp_path: Path) -> None:
    with chatting(tmp_path, answers) as (terminal, server):
        terminal.line("/tell city 成都")
        terminal.line("/context")
        terminal.wait_for("1. city: 成都 (set by hand)")
        terminal.line("//好的")
        terminal.wait_for("网友: /好的", "收到/好的了")
        assert "成都" in server.calls[0].body["messages"][0]["content"]
        terminal.line("/forget 1")
        since = terminal.wait_for("taken away: city")
        terminal.line("/context")
        terminal.wait_for("nothing is taken to be known", since=since)
        terminal.line("/tell mood")
        terminal.line("/nonsense")
        terminal.line("/speed 0")
        terminal.wait_for("kinds: name, age", "/nonsense: is no command", "/speed 0: give a number above 0")


def test_the_embedded_model_chats_in_the_terminal(tmp_path: Path) -> None:
    options = ["--persona", "p01", "--system", "gemma-3-270m", "--speed", "1000", "--save", tmp_path / "真模型"]
    with in_terminal(*options) as terminal:
        terminal.line("在吗")
        terminal.wait_for("[1] ", "网友: 在吗")
        answered(tmp_path / "真模型", 1)
        terminal.line("今天忙不忙呀")
        terminal.wait_for("网友: 今天忙不忙呀")
        terminal.line("/shown 1")
        terminal.wait_for("--- shown", "--- replied")
        terminal.line("/end")
        assert terminal.ends() == 0
    dialogue = Run(tmp_path / "真模型").dialogues()["真模型-chat01-a-0"]
    assert dialogue.asks
    assert not [a.error for a in dialogue.asks if a.error]
