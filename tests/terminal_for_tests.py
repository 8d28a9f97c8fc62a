"""`anthrolab chat` in a real pseudo-terminal, and a scripted server whose model plays the persona."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.models.scripted import Answer, Call, Served, serve
from anthrolab.runtime.dialogue import STAMP

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[=>78]|\x1b\][^\x07]*\x07")
LIMIT_S = 60.0
"""How long a test waits for something that never comes."""

NAME = load_library(default_cards_dir()).personas["p01"].name
"""The persona of most tests, p01."""

ENTER, CTRL_C, CTRL_D, CTRL_U = "\r", "\x03", "\x04", "\x15"


class Terminal:
    """A process in a terminal of its own. All that it wrote is in `raw`; as a terminal does, it says where the cursor is."""

    def __init__(self, command: Sequence[str], rows: int = 30, columns: int = 100, **environment: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        own = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environment}
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=os.environ | own, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that a new size and a hang-up are signalled
        )  # fmt: skip
        os.close(slave)
        self.raw = b""
        self._news = threading.Condition()
        self._closed = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        if not self._closed.is_set():
            os.close(self.master)

    @property
    def text(self) -> str:
        """All that was written so far, without what moves the cursor."""
        return ESCAPES.sub("", self.raw.decode("utf-8", "replace")).replace("\r", "")

    def type(self, text: str | bytes) -> None:
        """Keys."""
        os.write(self.master, text if isinstance(text, bytes) else text.encode())

    def line(self, text: str) -> None:
        """A line and Enter."""
        self.type(text + ENTER)

    def wait_for(self, *texts: str, since: int = 0) -> int:
        """Until each of these was written after the position `since`; the length of all that was written then."""
        self._until(lambda: all(t in self.text[since:] for t in texts), f"{texts} after {since}")
        return len(self.text)

    def wait_for_raw(self, code: bytes) -> None:
        """Until this was written, as it is."""
        self._until(lambda: code in self.raw, repr(code))

    def ends(self) -> int:
        """The exit status, once all that was written is read."""
        try:
            status = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired as e:
            raise AssertionError(f"it never ended\n--- the terminal:\n{self.text[-3000:]}") from e
        self._reader.join(LIMIT_S)
        return status

    def resize(self, rows: int, columns: int) -> None:
        """Another size, as when a window is pulled."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def kill(self) -> None:
        """kill -9."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def hang_up(self) -> None:
        """The window is closed: the terminal is no more."""
        self._closed.set()
        self._reader.join()
        os.close(self.master)

    def cursor(self) -> bytes:
        """The report of where the cursor is."""
        return b"\x1b[1;1R"

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + LIMIT_S
        with self._news:
            while not holds():
                left = end - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self._reader.is_alive() and not holds()):
                    raise AssertionError(f"never came: {what}\n--- the terminal:\n{self.text[-3000:]}")
                self._news.wait(min(left, 1))

    def _read(self) -> None:
        asked = 0
        while not self._closed.is_set():
            if not select.select([self.master], [], [], 0.05)[0]:
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            with self._news:
                self.raw += data
                self._news.notify_all()
            if not data:
                return
            for _ in range(self.raw.count(b"\x1b[6n") - asked):
                asked += 1
                with contextlib.suppress(OSError):
                    os.write(self.master, self.cursor())


def chat_command(*options: object) -> list[str]:
    """The command line."""
    return [sys.executable, "-m", "anthrolab", "chat", *map(str, options)]


def systems_file(path: Path, url: str) -> Path:
    """A systems file with the system `toy` at this address."""
    entry = {
        "name": "toy", "endpoint": url, "model": "scripted", "server": "openai", "policy": "chat", "partner": "toy",
        "retries": 0, "timeout_s": 20.0,
    }  # fmt: skip
    path.write_text(json.dumps({"systems": [entry]}), encoding="utf-8")  # JSON is YAML
    return path


def last_said(call: Call) -> str:
    """The last line of the chat that the model is shown, without the time."""
    shown = call.body["messages"][-1]["content"]
    return re.findall(r"^\[[\d\- :]+\] (.*)$", shown, re.M)[-1]


def decision(call: Call, content: str, delay_s: int = 5) -> str:
    """A decision within the contract: to send this so many seconds from now; nothing: silence."""
    system, user = (m["content"] for m in call.body["messages"])
    name, now = re.search(r"你就是(.+?)。\n", system), re.search(r"现在是 (\S+)（", user)
    assert name and now
    at = datetime.fromisoformat(now[1]) + timedelta(seconds=delay_s)
    response = {"content": content, "timestamp": at.strftime(STAMP), "end": not content}
    return json.dumps({"role": name[1], "response": response}, ensure_ascii=False)


def events(folder: Path, chat: str = "chat01") -> list[dict[str, Any]]:
    """The events of a saved chat; a line that is being written is left out."""
    lines = (folder / "chats" / f"{chat}.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines]


def sent(folder: Path, chat: str = "chat01") -> list[str]:
    """The messages that ever went out in a saved chat, also those that were taken back."""
    return [e["content"] for e in events(folder, chat) if e["event"] == "message"]


def answered(folder: Path, times: int, chat: str = "chat01") -> None:
    """Until the persona was asked and its answer taken so many times. The toolbar would not do: only what is new of it is written."""
    end = time.monotonic() + LIMIT_S
    while sum(e["event"] == "answer" for e in events(folder, chat)) < times:
        assert time.monotonic() < end, f"there never were {times} answers: {events(folder, chat)}"
        time.sleep(0.02)


@contextmanager
def in_terminal(*options: object, rows: int = 30, columns: int = 100, **environment: str) -> Iterator[Terminal]:
    """A chat in a terminal that is ready for the first message."""
    with Terminal(chat_command(*options), rows, columns, **environment) as terminal:
        terminal.wait_for_raw(b"\x1b[?2004h")  # the input is open: it wants pasted text marked
        yield terminal


def answers(call: Call) -> str:
    """Answers every message of the person after five seconds, and says nothing after its own."""
    said = last_said(call)
    return decision(call, "" if said.startswith(NAME) else f"收到{said.partition(': ')[2]}了")


@contextmanager
def chatting(folder: Path, handler: Callable[[Call], str | Answer], *options: object, **environment: str) -> Iterator[tuple[Terminal, Served]]:
    """A chat with p01 that is saved in `folder`/聊天 一, a hundred times faster than real time."""
    with serve(handler) as server, in_terminal(*saved(folder, server), *options, **environment) as terminal:
        yield terminal, server


def saved(folder: Path, server: Served) -> list[object]:
    systems = systems_file(folder / "systems.yaml", server.url)
    return [
        "--persona", "p01", "--system", "toy", "--systems", systems, "--start", "2026-03-06T20:31:00", "--speed", "100",
        "--save", folder / "聊天 一",
    ]  # fmt: skip
