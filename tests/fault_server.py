"""An OpenAI-compatible server in a process of its own that fails on a seeded plan and counts what it was asked.

    python -m tests.fault_server --seed 1 --share 0.3 --latency 0.02 --log requests.jsonl

The first line on stdout is its base URL. What it answers stands in fault_plan.py; here is only how that goes over the
wire, in HTTP/1.1 by hand, since most faults are about single bytes.

    GET /counts   {"keys": {key: {"attempts", "good"}}, "requests", "good", "faults": {kind: n}, "in_flight", "most_in_flight"}
    POST /mark    {"n": number of the latest request}

`--log` gets a line for each request when it is over:
{"n", "path", "key", "attempt", "fault": null | kind, "sent": true if a good answer went out whole}.
"""

import argparse
import asyncio
import contextlib
import json
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.fault_plan import AT_ONCE, CONTENT, GOOD, KINDS, Kind, Move, http, moves, plan, request_key

ROOT = Path(__file__).parent.parent
PATHS = ("/v1/chat/completions", "/v1/completions")


@dataclass
class Asked:
    """A request under way; `moves` are those of its answer that are still to come."""

    n: int
    path: str
    key: str
    attempt: int
    fault: Kind | None
    moves: Iterator[Move]
    in_slot: bool = False
    over: bool = False


@dataclass
class Ledger:
    """Who gets what answer, who has a slot, and the counts."""

    options: argparse.Namespace
    log: int | None
    attempts: Counter[str] = field(default_factory=Counter)
    good: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    n: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    busy: int = 0
    queue: "deque[tuple[Connection, Asked]]" = field(default_factory=deque)

    def come(self, path: str, body: dict[str, Any]) -> Asked:
        """A request has come in whole."""
        o, key = self.options, request_key(path, body)
        self.n += 1
        self.attempts[key] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        attempt = self.attempts[key]
        faults = plan(key, o.seed, o.share, o.kinds, o.most) if attempt <= o.most else ()
        fault = faults[attempt - 1] if attempt <= len(faults) else None
        if fault in CONTENT and "messages" not in body:
            fault = "500"  # an empty completion is a legitimate one
        if fault:
            self.faults[fault] += 1
        return Asked(self.n, path, key, attempt, fault, moves(fault, body, key, attempt, o.salt))

    def begin(self, connection: "Connection", asked: Asked) -> None:
        """Answer now, after the latency, or once there is a slot."""
        if asked.fault in AT_ONCE:
            connection.play(asked)
        elif self.options.slots and self.busy >= self.options.slots:
            self.queue.append((connection, asked))
        else:
            self.busy += 1
            asked.in_slot = True
            asyncio.get_running_loop().call_later(self.options.latency, connection.play, asked)

    def end(self, asked: Asked, sent: bool) -> None:
        """A request is over: answered, broken off, or left alone by the client."""
        asked.over = True
        self.in_flight -= 1
        self.good[asked.key] += sent
        if self.log is not None:
            row = {name: getattr(asked, name) for name in ("n", "path", "key", "attempt", "fault")}
            os.write(self.log, (json.dumps({**row, "sent": sent}) + "\n").encode())
        if asked.in_slot:
            self.busy -= 1
            while self.queue and self.busy < self.options.slots:
                connection, waiting = self.queue.popleft()
                if not waiting.over:
                    self.begin(connection, waiting)

    def counts(self) -> dict[str, Any]:
        """The body of /counts."""
        return {
            "keys": {key: {"attempts": n, "good": self.good[key]} for key, n in self.attempts.items()},
            "requests": self.n,
            "good": self.good.total(),
            "faults": dict(self.faults),
            "in_flight": self.in_flight,
            "most_in_flight": self.most_in_flight,
        }


class Connection(asyncio.Protocol):
    """A client's connection: one request at a time, the next one when the answer is out."""

    transport: asyncio.Transport

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.unread = bytearray()
        self.asked: Asked | None = None
        self.paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=0)  # paused as long as anything is still to go out
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.unread += data
        if self.asked is None:
            self.read()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.asked is not None and not self.asked.over:
            self.ledger.end(self.asked, sent=False)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        if self.asked is not None:
            self.play(self.asked)

    def read(self) -> None:
        """Take the next request out of what came in, if it is there whole."""
        end = self.unread.find(b"\r\n\r\n")
        if end < 0 or self.transport.is_closing():
            return
        first, *lines = self.unread[:end].decode("latin-1").split("\r\n")
        length = next((int(line[15:]) for line in lines if line[:15].lower() == "content-length:"), 0)
        if len(self.unread) < end + 4 + length:
            return
        content = bytes(self.unread[end + 4 : end + 4 + length])
        del self.unread[: end + 4 + length]
        method, path, _ = first.split(" ", 2)
        if method == "POST" and path in PATHS:
            self.asked = self.ledger.come(path, json.loads(content))  # a body that is no JSON ends the connection
            self.ledger.begin(self, self.asked)
            return
        answers: dict[str, Callable[[], object]] = {
            "GET /counts": self.ledger.counts,
            "POST /mark": lambda: {"n": self.ledger.n},
            "GET /v1/models": lambda: {"object": "list", "data": [{"id": "faulty", "object": "model"}]},
        }
        answer = answers.get(f"{method} {path}")
        said = answer() if answer else {"error": {"message": f"there is no {method} {path} here"}}
        self.transport.write(http(json.dumps(said).encode(), "200 OK" if answer else "404 Not Found"))
        self.read()

    def play(self, asked: Asked) -> None:
        """Make the moves of an answer, as far as they go now."""
        while not (self.paused or asked.over or self.transport.is_closing()):
            move = next(asked.moves, None)
            if isinstance(move, bytes):
                self.transport.write(move)
            elif isinstance(move, float):
                if move < math.inf:
                    asyncio.get_running_loop().call_later(move, self.play, asked)
                return
            else:
                self.ledger.end(asked, sent=asked.fault is None or asked.fault in GOOD)
                if move is not None:
                    self.break_off(move)
                    return
                self.asked = None
                self.read()

    def break_off(self, how: str) -> None:
        """End the connection, with a FIN ("close") or a RST ("reset")."""
        if how == "reset":
            at_once = struct.pack("ii", 1, 0)
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        self.transport.close()


async def run(options: argparse.Namespace) -> None:
    """Serve until killed."""
    log = None if options.log is None else os.open(options.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    ledger = Ledger(options, log)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(ledger), "127.0.0.1", options.port, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="draws the faults")
    parser.add_argument("--share", type=float, default=0.3, help="of attempts that fail, 0 to 1")
    parser.add_argument("--kinds", type=lambda text: tuple(text.split(",")), default=KINDS, help="faults, with commas")
    parser.add_argument("--most", type=int, default=3, help="faults that one request meets at most")
    parser.add_argument("--latency", type=float, default=0.005, help="seconds that a model takes")
    parser.add_argument("--slots", type=int, default=0, help="answers made at once, others queue; 0: all")
    parser.add_argument("--salt", default="", help="another salt, other good answers")
    parser.add_argument("--log", type=Path, help="file that gets a line for each request")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--until-stdin-ends", action="store_true", help="do not outlive whoever started it")
    options = parser.parse_args(arguments)
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"--kinds: {', '.join(sorted(unknown))} is no fault; there are {', '.join(KINDS)}")
    if options.until_stdin_ends:
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    asyncio.run(run(options))


@dataclass(frozen=True)
class Faulty:
    """A running server: its base URL for a client, and what it says about itself."""

    url: str

    def counts(self) -> dict[str, Any]:
        """Its /counts."""
        return self._said("GET", "/counts")

    def mark(self) -> int:
        """The number of the latest request; whatever comes later has a greater one."""
        return int(self._said("POST", "/mark")["n"])

    def _said(self, method: str, path: str) -> dict[str, Any]:
        with contextlib.closing(HTTPConnection(urlsplit(self.url).netloc, timeout=60)) as connection:
            connection.request(method, path)
            said: dict[str, Any] = json.loads(connection.getresponse().read())
            return said


@contextmanager
def faulty(
    seed: int = 0,
    share: float = 0.3,
    kinds: Sequence[Kind] = KINDS,
    latency: float = 0.005,
    log: Path | None = None,
    *,
    most: int = 3,
    slots: int = 0,
    salt: str = "",
    port: int = 0,
) -> Iterator[Faulty]:
    """A fault server in a process group of its own, killed at the end.

    The address of a server is part of what a run remembers of it: runs that are to be compared to the byte ask servers
    on one `port`, one after the other (0: any free one).
    """
    command = [sys.executable, "-m", "tests.fault_server", "--until-stdin-ends", "--kinds", ",".join(kinds)]
    numbers = {"seed": seed, "share": share, "latency": latency, "most": most, "slots": slots, "port": port}
    command += [f"--{name}={value}" for name, value in {**numbers, "salt": salt}.items()]
    command += [] if log is None else ["--log", str(log.absolute())]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError("the fault server did not start; its error stands above")
            yield Faulty(url)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
