"""Fakes for tests and demonstrations: a model that answers from a script, and a small real server that speaks
the OpenAI protocol and fails in every way on request."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from anthrolab.models.client import ModelError, Reply, Request

Scripted = str | Reply | ModelError
"""What a script may hold: the text of a reply, a whole reply, or the error to raise."""


class ScriptedModel:
    """A `ModelClient` that answers from a list, in order, or from a function of the request.

    `requests` holds what it was asked. A list that has run out raises ModelError `no_reply`.

    >>> model = ScriptedModel(["在呢", "咋了"])
    """

    def __init__(self, script: Sequence[Scripted] | Callable[[Request], Scripted], identity: str = "scripted") -> None:
        self.identity = identity
        self.requests: list[Request] = []
        self._script = script

    async def ask(self, request: Request) -> Reply:
        """The next answer of the script."""
        number = len(self.requests)
        self.requests.append(request)
        if callable(self._script):
            answer = self._script(request)
        elif number < len(self._script):
            answer = self._script[number]
        else:
            raise ModelError("no_reply", f"the script has only {number} answers; add one for this request")
        if isinstance(answer, ModelError):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(answer, finish_reason="stop")


@dataclass(frozen=True)
class Call:
    """A request as the server got it. `number` counts from 1; header names are in lower case."""

    number: int
    path: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """What the server does: `delay` seconds of silence, then the status, headers and body.

    A body that is a mapping is sent as JSON. `cut` closes the connection after that many bytes of it; `hang`
    keeps it open without ever answering.
    """

    body: Mapping[str, Any] | str | bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None
    hang: bool = False


Handler = Callable[[Call], str | Answer]
"""Answers a call: a text becomes a regular reply with that text."""


@dataclass
class Served:
    """A running server: where it is, and what it was asked so far."""

    url: str
    calls: list[Call] = field(default_factory=list)


@contextmanager
def serve(handler: Handler, models: Sequence[str] = ("scripted",)) -> Iterator[Served]:
    """An HTTP server on a free loopback port that answers /v1/chat/completions and /v1/completions by `handler`
    and /v1/models with `models` (by `handler` too if there are none)."""
    over = threading.Event()
    lock = threading.Lock()
    served = Served("")

    class Connection(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            if self.path == "/v1/models" and models:
                data = [{"id": name, "object": "model"} for name in models]
                self._send(Answer({"object": "list", "data": data}))
            else:
                self._answer({})

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0)))))

        def _answer(self, body: Mapping[str, Any]) -> None:
            with lock:
                call = Call(len(served.calls) + 1, self.path, body, {k.lower(): v for k, v in self.headers.items()})
                served.calls.append(call)
            answer = handler(call)
            self._send(answer if isinstance(answer, Answer) else Answer(reply_body(call, answer)))

        def _send(self, answer: Answer) -> None:
            over.wait(None if answer.hang else answer.delay)
            if answer.hang:
                self.close_connection = True
                return
            kind = "text/html" if isinstance(answer.body, str) else "application/json"
            if isinstance(answer.body, bytes):
                content = answer.body
            else:
                body = answer.body
                content = (body if isinstance(body, str) else json.dumps(body)).encode("utf-8")
            self.send_response(answer.status)
            for name, value in {"Content-Type": kind, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: answer.cut])
            if answer.cut is not None:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on stderr."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that went away is part of the tests, not an error to print."""

    server = Server(("127.0.0.1", 0), Connection)
    served.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def reply_body(
    call: Call, text: str | None, *, finish_reason: str = "stop", message: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The body of a regular reply to a chat or completion call; `message` adds fields to a chat message."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish_reason}
    if "messages" in call.body:
        choice["message"] = {"role": "assistant", "content": text, **(message or {})}
    else:
        choice["text"] = text
    prompt = json.dumps(call.body.get("messages") or call.body.get("prompt"), ensure_ascii=False)
    usage = {"prompt_tokens": len(prompt), "completion_tokens": len(text or "")}
    usage["total_tokens"] = sum(usage.values())
    return {
        "id": f"call-{call.number}",
        "object": "chat.completion" if "messages" in call.body else "text_completion",
        "created": 0,
        "model": call.body.get("model"),
        "choices": [choice],
        "usage": usage,
    }
