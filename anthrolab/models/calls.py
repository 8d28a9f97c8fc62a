"""The log of model calls: every reply is on disk before it is used, and what is there is not asked again."""

import asyncio
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from anthrolab.errors import AnthrolabError
from anthrolab.files import append_line, cut_torn_line, whole_lines
from anthrolab.models.client import ModelClient, Reply, Request


class CallLogError(AnthrolabError):
    """A call log that is damaged somewhere else than in its last line."""


@dataclass(frozen=True)
class Usage:
    """Tokens used by a number of calls; `uncounted` calls came without counts and stand in no sum."""

    calls: int = 0
    uncounted: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.calls + other.calls,
            self.uncounted + other.uncounted,
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
        )

    @classmethod
    def of(cls, reply: Reply) -> "Usage":
        """The usage of one call."""
        if reply.prompt_tokens is None or reply.completion_tokens is None:
            return cls(calls=1, uncounted=1)
        return cls(1, 0, reply.prompt_tokens, reply.cached_tokens or 0, reply.completion_tokens)


class CallLog:
    """An append-only JSONL file of calls, one a line:

        {"key", "identity", "model", "messages" | "prompt", "params", "salt",
         "reply": {"text", "reasoning", "finish_reason", "prompt_tokens", "cached_tokens", "completion_tokens"},
         "seconds"}

    A last line without its end (the writer was killed) is cut off on opening. One process at a time may have a
    log open. `asked` and `answered` count this process's requests: put to a model, and answered from the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked = 0
        self.answered = 0
        self._replies: dict[str, Reply] = {}
        self._usage: dict[tuple[str, str], Usage] = {}
        self._pending: dict[str, asyncio.Task[Reply]] = {}
        self._torn = False
        cut_torn_line(path)
        if path.exists():
            for number, line in enumerate(whole_lines(path), 1):
                self._read(line, number)

    def __len__(self) -> int:
        return len(self._replies)

    def get(self, key: str) -> Reply | None:
        """The logged reply to a request, by `Request.key`."""
        return self._replies.get(key)

    def usage(self, identity: str | None = None, model: str | None = None) -> Usage:
        """Tokens of all calls in the file, of one server and one model if named."""
        chosen = [
            used for (whose, which), used in self._usage.items() if identity in (None, whose) and model in (None, which)
        ]
        return sum(chosen, Usage())

    def add(self, request: Request, identity: str, reply: Reply, seconds: float) -> Reply:
        """Append a call and return the reply with its key in `call`; FileError if it cannot be written."""
        key = request.key(identity)
        kept = replace(reply, call=key)
        fields = asdict(kept)
        del fields["call"]
        row: dict[str, Any] = {"key": key, "identity": identity, "model": request.model}
        if request.messages is not None:
            row["messages"] = [dict(m) for m in request.messages]
        else:
            row["prompt"] = request.prompt
        row |= {"params": dict(request.params), "salt": request.salt, "reply": fields, "seconds": round(seconds, 3)}
        if self._torn:
            cut_torn_line(self.path)
        self._torn = True  # until the whole line is there: a full disk leaves half of one
        append_line(self.path, json.dumps(row, ensure_ascii=False))
        self._torn = False
        self._keep(identity, request.model, kept)
        return kept

    async def ask(self, client: ModelClient, request: Request) -> Reply:
        """The logged reply, or the client's, logged first. Equal requests at the same time share one call.

        A caller that is cancelled does not stop a call that is under way: its reply is still logged.
        """
        key = request.key(client.identity)
        known = self._replies.get(key)
        if known is not None:
            self.answered += 1
            return known
        task = self._pending.get(key)
        if task is None:
            task = asyncio.create_task(self._ask(client, request))
            self._pending[key] = task
            task.add_done_callback(lambda done: self._settle(key, done))
        return await asyncio.shield(task)

    async def _ask(self, client: ModelClient, request: Request) -> Reply:
        self.asked += 1
        start = time.perf_counter()
        reply = await client.ask(request)
        return self.add(request, client.identity, reply, time.perf_counter() - start)

    def _settle(self, key: str, done: asyncio.Task[Reply]) -> None:
        del self._pending[key]
        if not done.cancelled():
            done.exception()  # seen here, so that an error nobody waits for any more is not reported at exit

    def _keep(self, identity: str, model: str, reply: Reply) -> None:
        assert reply.call is not None
        self._replies[reply.call] = reply
        which = (identity, model)
        self._usage[which] = self._usage.get(which, Usage()) + Usage.of(reply)

    def _read(self, line: str, number: int) -> None:
        try:
            row = json.loads(line)
            self._keep(row["identity"], row["model"], Reply(**row["reply"], call=row["key"]))
        except (ValueError, KeyError, TypeError) as e:
            raise CallLogError(
                f"{self.path}: line {number}: no call record ({type(e).__name__}: {e}); "
                "remove that line, or move the file away to ask anew"
            ) from e


class Recorded:
    """A `ModelClient` that answers from a call log and asks the client behind it only for what is not there."""

    def __init__(self, client: ModelClient, log: CallLog) -> None:
        self.client = client
        self.log = log

    @property
    def identity(self) -> str:
        """The identity of the client behind it."""
        return self.client.identity

    async def ask(self, request: Request) -> Reply:
        """The reply, with `call` set to its key in the log."""
        return await self.log.ask(self.client, request)
