"""A chat server that thinks for a set time and costs almost nothing, in a process of its own.

    python -m benchmarks.mock_server [--latency 0.02] [--noise 0.5] [--slots 32] [--keep]

It prints its base URL and serves until it is stopped. A request for a decision (JSON schema with a `role`) gets one:
another text each time, due 2 to 8 virtual seconds later, so that every chat goes on to its largest number of messages.
The time of an answer depends on the request alone (and on how often it came before): `latency` times a lognormal
factor with mean 1 and sigma `noise`. With `slots` at most so many requests are worked at, the others wait in line.

    POST /v1/chat/completions
    GET  /stats      what was measured since the last reset: see `Desk.stats`
    GET  /spans      {name: [begun, ended]}, when it was worked at; the name of an answer ends its text
    GET  /bodies     {name: request}, with --keep
    POST /reset      forget all that
"""

import argparse
import asyncio
import json
import math
import re
import resource
import subprocess
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from http.client import HTTPConnection
from statistics import NormalDist
from typing import Any

NAME = re.compile(r"#(\d+-\d+)$")
"""How the text of a decision ends: the name under which its time stands in /spans and its request in /bodies."""

NOW = re.compile(r"现在是 (\S+?)（")
PHRASES = ("刚到家 累瘫了", "我妈又催我了 救命", "那周六老地方见？", "笑死 你真敢说", "先去拿个快递", "又加班", "早点睡")
FACTORS = 4096


def noise_factors(sigma: float) -> list[float]:
    """Lognormal factors with mean 1, evenly spread over the distribution."""
    normal = NormalDist(-sigma * sigma / 2, sigma) if sigma else None
    return [math.exp(normal.inv_cdf((i + 0.5) / FACTORS)) if normal else 1.0 for i in range(FACTORS)]


class Desk:
    """The slots, the line before them, and what is measured. `slots` 0: as many as there are requests."""

    def __init__(self, latency: float, noise: float, slots: int, keep: bool = False) -> None:
        self.latency, self.slots, self.keep = latency, slots or sys.maxsize, keep
        self.factors = noise_factors(noise)
        self.clock = time.monotonic
        self.line: deque[Callable[[], None]] = deque()
        self.reset()

    def reset(self) -> None:
        """Forget what was measured; not for a moment when requests are open."""
        self.spans: dict[str, tuple[float, float]] = {}
        self.seen: dict[int, int] = {}
        self.bodies: dict[str, Any] = {}
        self.working = self.open = self.largest = 0
        self.first = self.last = 0.0
        self.cpu = time.process_time()

    def stats(self) -> dict[str, float]:
        """`window_seconds` goes from the first request to the last answer; `cpu_seconds` is the server's own."""
        return {
            "requests": len(self.spans),
            "busy_slot_seconds": sum(ended - begun for begun, ended in self.spans.values()),
            "window_seconds": self.last - self.first,
            "largest_in_flight": self.largest,
            "cpu_seconds": time.process_time() - self.cpu,
        }

    def told(self, path: bytes) -> Any:
        """What stands under a path."""
        return {b"/stats": self.stats(), b"/spans": self.spans, b"/bodies": self.bodies}.get(path, {})

    def take(self, body: bytes, send: Callable[[bytes], None]) -> None:
        """Work at a request, now or when its turn comes, then `send` the answer."""
        self.first = self.first or self.clock()
        self.open += 1
        self.largest = max(self.largest, self.open)
        code = zlib.crc32(body)
        count = self.seen[code] = self.seen.get(code, -1) + 1
        seconds = self.latency * self.factors[(code + 1597 * count) % FACTORS]
        name = f"{code}-{count}"
        asked = json.loads(body)
        answer = answer_to(asked, name, code)
        if self.keep:
            self.bodies[name] = asked

        def begin() -> None:
            self.working += 1
            asyncio.get_running_loop().call_later(seconds, finish, self.clock())

        def finish(begun: float) -> None:
            self.working -= 1
            self.open -= 1
            self.last = self.clock()
            self.spans[name] = (begun, self.last)
            send(answer)
            if self.line:
                self.line.popleft()()

        if self.working < self.slots:
            begin()
        else:
            self.line.append(begin)


def answer_to(body: dict[str, Any], name: str, code: int) -> bytes:
    """The body of the answer: a decision where the schema asks for one, else a short text."""
    text = PHRASES[code % len(PHRASES)]
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    role = schema.get("properties", {}).get("role", {}).get("enum")
    prompt = body["messages"][-1]["content"]
    now = NOW.search(prompt) if role else None
    if role and now:
        at = datetime.fromisoformat(now[1]) + timedelta(seconds=2 + code // 8 % 7)
        decision = {"content": f"{text} #{name}", "timestamp": at.isoformat(), "end": False}
        text = json.dumps({"role": role[0], "response": decision}, ensure_ascii=False)
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": len(prompt), "completion_tokens": 40, "total_tokens": len(prompt) + 40}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    answer = {
        "id": name,
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [choice],
        "usage": usage,
    }
    return json.dumps(answer, ensure_ascii=False).encode()


class Connection(asyncio.Protocol):
    """One kept-alive HTTP/1.1 connection; clients send the next request after the answer."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.data = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        head = self.data.find(b"\r\n\r\n")
        if head < 0:
            return
        lines = bytes(self.data[:head]).lower()
        length = re.search(rb"\r\ncontent-length: *(\d+)", lines)
        end = head + 4 + (int(length[1]) if length else 0)
        if len(self.data) < end:
            return
        body = bytes(self.data[head + 4 : end])
        del self.data[:end]
        path = lines.split(b" ", 2)[1]
        if path == b"/v1/chat/completions":
            self.desk.take(body, self.send)
        elif path == b"/reset":
            self.desk.reset()
            self.send(b"{}")
        else:
            self.send(json.dumps(self.desk.told(path)).encode())

    def send(self, body: bytes) -> None:
        """A 200 answer, unless the client has gone."""
        if not self.transport.is_closing():
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            self.transport.write(head + body)


def allow_many_connections() -> None:
    """Let this process have as many files open as it may; many systems begin at 256 or 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def serve(desk: Desk) -> None:
    allow_many_connections()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(desk), "127.0.0.1", 0, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


class Mock:
    """A running mock server, from outside. `url` ends in /v1."""

    def __init__(self, url: str) -> None:
        self.url = url

    def reset(self) -> None:
        """Forget what was measured."""
        self._json("POST", "/reset")

    def stats(self) -> dict[str, float]:
        """See `Desk.stats`."""
        return dict(self._json("GET", "/stats"))

    def spans(self) -> dict[str, tuple[float, float]]:
        """When each answer was worked at, by its name: begun and ended, on one clock, in seconds."""
        return {name: (begun, ended) for name, (begun, ended) in self._json("GET", "/spans").items()}

    def bodies(self) -> dict[str, Any]:
        """Every request by the name of its answer, if they are kept."""
        return dict(self._json("GET", "/bodies"))

    def _json(self, method: str, path: str) -> Any:
        server = HTTPConnection(self.url.removeprefix("http://").removesuffix("/v1"))
        with closing(server):
            server.request(method, path)
            return json.load(server.getresponse())


@contextmanager
def mock(latency: float = 0.02, noise: float = 0.0, slots: int = 0, keep: bool = False) -> Iterator[Mock]:
    """A mock server in a process of its own, for as long as the context lasts."""
    options = ["--latency", str(latency), "--noise", str(noise), "--slots", str(slots), *["--keep"] * keep]
    command = [sys.executable, "-m", "benchmarks.mock_server", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    try:
        yield Mock(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.02, help="seconds of work of one request, in the mean")
    parser.add_argument("--noise", type=float, default=0.0, help="sigma of the lognormal factor; 0: none")
    parser.add_argument("--slots", type=int, default=0, help="requests that are worked at together; 0: all")
    parser.add_argument("--keep", action="store_true", help="keep the requests for /bodies")
    options = parser.parse_args()
    asyncio.run(serve(Desk(options.latency, options.noise, options.slots, options.keep)))


if __name__ == "__main__":
    main()
