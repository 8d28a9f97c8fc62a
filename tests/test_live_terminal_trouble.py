"""What goes wrong around a chat in the terminal: kills, dead servers, full disks, hostile text, odd terminals, bad options."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from anthrolab.bench.store import Run
from anthrolab.models.scripted import Answer, Call, serve
from tests.terminal_for_tests import (
    CTRL_D,
    CTRL_U,
    NAME,
    Terminal,
    answered,
    answers,
    chat_command,
    chatting,
    decision,
    events,
    in_terminal,
    last_said,
    saved,
    sent,
    systems_file,
)


def one_line_error(command: list[str], **environment: str) -> str:
    """What a command in a terminal says when it ends at once with exit code 2."""
    with Terminal(command, **environment) as terminal:
        assert terminal.ends() == 2
        assert terminal.text.startswith("error: ")
        return terminal.text


@pytest.mark.parametrize("when", ["waiting", "deciding"])
def test_kill_9_loses_nothing_and_nothing_is_asked_twice(tmp_path: Path, when: str) -> None:
    asked: list[str] = []

    def slow(call: Call) -> str | Answer:
        asked.append(last_said(call))
        return decision(call, "" if asked[-1].startswith(NAME) else "在忙", 590)

    with serve(slow) as server:
        with in_terminal(*saved(tmp_path, server), "--speed", "1") as terminal:
            terminal.line("在吗")
            answered(tmp_path / "聊天 一", 1)
            if when == "deciding":
                server_waits = len(server.calls)
                terminal.line("人呢")
                while len(server.calls) == server_waits:
                    time.sleep(0.01)
            terminal.kill()
        before = len(sent(tmp_path / "聊天 一"))
        with in_terminal(*saved(tmp_path, server), "--chat", "chat01", "--speed", "100000") as terminal:
            terminal.wait_for("网友: 在吗", f"{NAME}: 在忙")
            answered(tmp_path / "聊天 一", before + 1)
            terminal.type(CTRL_D)
            assert terminal.ends() == 0
    texts = sent(tmp_path / "聊天 一")
    assert texts == ["在吗", *(["人呢"] if when == "deciding" else []), "在忙"]
    assert len(texts) == before + 1
    kept = [line for line in (tmp_path / "聊天 一" / "calls" / "chat01.jsonl").read_text(encoding="utf-8").splitlines() if line]
    assert len(kept) == len(texts)
    if when == "waiting":
        assert asked == ["网友: 在吗", f"{NAME}: 在忙"]


def test_what_a_model_says_cannot_steer_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[31m红\x9b7m\u202e反\x08\x08"

    def steer(call: Call) -> str:
        return decision(call, "" if last_said(call).startswith(NAME) else evil)

    with chatting(tmp_path, steer) as (terminal, _server):
        terminal.line("在吗")
        terminal.wait_for("\\u001b]0;owned\\u0007\\u001b[31m红\\u009b7m\\u202e反\\u0008\\u0008")
        answered(tmp_path / "聊天 一", 2)
        for command in ("/shown 1", "/draft", "/back 1"):
            terminal.line(command)
            terminal.wait_for(f"> {command}")
        terminal.type(CTRL_D)
        assert terminal.ends() == 0
        for part in ("\x1b]0;owned", "\x1b[31m红", "\x9b", "\u202e"):
            assert part.encode() not in terminal.raw
    assert sent(tmp_path / "聊天 一")[1] == evil


def test_another_size_of_the_window_breaks_nothing(tmp_path: Path) -> None:
    with chatting(tmp_path, answers) as (terminal, _server):
        terminal.line("在吗")
        terminal.wait_for("收到在吗了")
        terminal.type("改了大小")
        terminal.resize(8, 30)
        terminal.resize(50, 200)
        terminal.line("也在")
        terminal.wait_for("网友: 改了大小也在", "收到改了大小也在了")


def test_a_server_that_dies_is_an_error_and_go_asks_again(tmp_path: Path) -> None:
    dead = [True]
    with chatting(tmp_path, lambda call: Answer(b"{", cut=0) if dead[0] else answers(call)) as (terminal, _server):
        terminal.line("在吗")
        terminal.wait_for("error: ", "/go asks again")
        terminal.line("喂")
        terminal.wait_for("kept and comes back after /go")
        dead[0] = False
        terminal.line("/go")
        terminal.wait_for(f"{NAME}: 收到在吗了")
        terminal.type("\r")
        terminal.wait_for("网友: 喂", "收到喂了")
    assert [e["fault"] for e in events(tmp_path / "聊天 一") if e["event"] == "failed"] == ["unreachable"]


def test_a_log_that_cannot_be_written_is_an_error_and_the_message_stays_in_the_line(tmp_path: Path) -> None:
    log = tmp_path / "聊天 一" / "chats" / "chat01.jsonl"
    with chatting(tmp_path, lambda call: decision(call, "等会儿回你", 590), "--speed", "1") as (terminal, _server):
        terminal.line("在吗")
        answered(tmp_path / "聊天 一", 1)
        log.rename(log.with_suffix(".kept"))
        log.mkdir()
        terminal.line("喂")
        since = terminal.wait_for("error: ", "cannot be written")
        log.rmdir()
        log.with_suffix(".kept").rename(log)
        terminal.type("\r")
        terminal.wait_for("[2] ", "网友: 喂", since=since)
        log.rename(log.with_suffix(".kept"))
        log.mkdir()
        terminal.line("/speed 100000")
        assert terminal.ends() == 2
        assert "cannot be written" in terminal.text[since:]
        assert "Traceback" not in terminal.text


def test_a_closed_window_leaves_an_up_to_date_record_that_the_judge_takes(tmp_path: Path) -> None:
    with chatting(tmp_path, answers) as (terminal, _server):
        terminal.line("在吗")
        terminal.wait_for("收到在吗了")
        terminal.hang_up()
        terminal.ends()
    assert not any(e["event"] == "over" for e in events(tmp_path / "聊天 一"))
    folder = tmp_path / "聊天 一"
    assert len(Run(folder).dialogues()["聊天 一-chat01-a-0"].messages) == 2
    judged = subprocess.run([*chat_command()[:3], "judge", str(folder), "--judge", "rules"], capture_output=True, text=True, timeout=120)
    assert judged.returncode == 0, judged.stderr
    assert (folder / "verdicts.jsonl").read_text(encoding="utf-8").count("\n") == 1


def test_without_a_folder_nothing_is_written_anywhere(tmp_path: Path) -> None:
    with serve(lambda call: decision(call, "嗯嗯")) as server:
        systems = systems_file(tmp_path / "systems.yaml", server.url)
        before = sorted(tmp_path.rglob("*"))
        home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        with in_terminal("--case", "b01-a", "--system", "toy", "--systems", systems, "--speed", "1000", **home) as terminal:
            terminal.wait_for("You take this part: ", "[1] ", "[2] ")
            terminal.type(CTRL_D)
            assert terminal.ends() == 0
            assert "Nothing was saved" in terminal.text
        assert sorted(tmp_path.rglob("*")) == before


def test_the_posix_locale_works_and_bytes_that_are_not_utf_8_stay_in_the_line(tmp_path: Path) -> None:
    # In a checkout under a Chinese path Python itself does not start under LC_ALL=C.
    locale = "C" if str(Path(__file__).resolve()).isascii() else "C.UTF-8"
    with chatting(tmp_path, answers, LC_ALL=locale) as (terminal, server):
        terminal.type("你好".encode("gbk") + b"\r")
        terminal.wait_for("bytes that are not UTF-8")
        assert not server.calls
        terminal.type(CTRL_U + "你好\r")
        terminal.wait_for("网友: 你好", "收到你好了")


def test_a_terminal_that_does_not_say_where_its_cursor_is_has_the_header_too(tmp_path: Path) -> None:
    with chatting(tmp_path, answers, PROMPT_TOOLKIT_NO_CPR="1") as (terminal, _server):
        terminal.wait_for("toy", "Write the first message")
        terminal.line("在吗")
        terminal.wait_for("收到在吗了")


def test_what_cannot_begin_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    systems = systems_file(tmp_path / "systems.yaml", "http://127.0.0.1:9/v1")
    toy = ["--system", "toy", "--systems", str(systems)]
    dead = one_line_error(chat_command("--persona", "p01", *toy))
    assert "127.0.0.1:9" in dead and dead.count("\n") == 1
    assert "--persona ID" in (nobody := one_line_error(chat_command(*toy))) and NAME in nobody
    assert "there are: toy" in one_line_error(chat_command("--persona", "p01", *toy[2:]))
    assert "persona p0l" in one_line_error(chat_command("--persona", "p0l", "--system", "gemma-3-270m"))
    assert "UTF-8" in one_line_error(chat_command("--persona", "p01", *toy), PYTHONIOENCODING="gbk")
    assert "TERM" in one_line_error(chat_command("--persona", "p01", *toy), TERM="dumb")
    assert "--speed 0" in one_line_error(chat_command("--persona", "p01", *toy, "--speed", "0"))
    assert "--save" in one_line_error(chat_command("--persona", "p01", *toy, "--chat", "chat01"))
    assert "there is none yet" in one_line_error(chat_command(*toy, "--chat", "chat09", "--save", str(tmp_path / "new")))
    assert not (tmp_path / "new").exists()
    piped = subprocess.run(
        chat_command("--persona", "p01", *toy), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env=os.environ | {"LC_ALL": "C.UTF-8"}
    )
    assert piped.returncode == 2
    assert piped.stderr == "error: standard input is no terminal; run `anthrolab chat` in a terminal window, without < | or >\n"
