"""The log of model calls: every reply is on disk before it is used, and what is there is not asked again."""

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from anthrolab.errors import AnthrolabError
from anthrolab.files import append_line, cut_torn_line, whole_lines
from anthrolab.models.client import REPLY_FIELDS, ModelClient, ModelError, Reply, Request, Usage
from anthrolab.models.engine import Engine
from anthrolab.models.spend import Toll


class CallLogError(AnthrolabError):
    """A call log that is damaged somewhere else than in its last line."""


class CallLog:
    """An append-only JSONL file of calls, one a line:

        {"key", "identity", "model", "system", "side", "messages" | "prompt", "params", "salt",
         "reply": {"text", "reasoning", "finish_reason", "prompt_tokens", "cached_tokens", "completion_tokens"},
         "seconds", "failed": [faults of earlier attempts], "redrawn": [tokens of replies among them],
         "reused": true where the shared cache had the reply}

    The last three, and system and side (tested, partner, judge, ...), stand only where there is something to say. A last
    line without its end (the writer was killed) is cut off on opening. One process at a time may have a log open.
    `asked` and `answered` count this process's requests: put to a model, and answered from the file or the engine's cache.
    """

    def __init__(self, path: Path, engine: Engine | None = None) -> None:
        self.path = path
        self.engine = engine or Engine()
        self.asked = 0
        self.answered = 0
        self._replies: dict[str, Reply] = {}
        self._usage: dict[tuple[str, str], Usage] = {}
        self._pending: dict[str, asyncio.Task[Reply]] = {}
        if path.exists():
            cut_torn_line(path)
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

    def add(self, request: Request, identity: str, reply: Reply, seconds: float, *, reused: bool = False) -> Reply:
        """Append a call and return the reply with its key in `call`; FileError if it cannot be written."""
        return self._add(request, request.key(identity), identity, reply, seconds, reused)

    def _add(self, request: Request, key: str, identity: str, reply: Reply, seconds: float, reused: bool) -> Reply:
        kept = replace(reply, call=key)
        row: dict[str, Any] = {"key": key, "identity": identity, "model": request.model}
        if request.toll is not None:
            row |= {"system": request.toll.system, "side": request.toll.side}
        if request.messages is not None:
            row["messages"] = [dict(m) for m in request.messages]
        else:
            row["prompt"] = request.prompt
        row |= {"params": dict(request.params), "salt": request.salt, "reply": {f: getattr(kept, f) for f in REPLY_FIELDS}}
        row["seconds"] = round(seconds, 3)
        if kept.failed:
            row["failed"] = kept.failed
        if any(kept.redrawn):
            row["redrawn"] = kept.redrawn
        if reused:
            row["reused"] = True
        append_line(self.path, json.dumps(row, ensure_ascii=False))
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
            cached = self.engine.cache.get(key) if self.engine.cache else None
            if cached is not None:
                self.answered += 1
                if request.toll is not None:
                    request.toll.reused += 1
                return self._add(request, key, client.identity, cached, 0.0, True)
            task = asyncio.create_task(self._ask(client, request, key))
            self._pending[key] = task
            self.engine.watch(task)
            task.add_done_callback(lambda done: self._settle(key, done))
        return await asyncio.shield(task)

    async def _ask(self, client: ModelClient, request: Request, key: str) -> Reply:
        self.asked += 1
        start = time.perf_counter()
        reply = await client.ask(request)
        kept = self._add(request, key, client.identity, reply, time.perf_counter() - start, False)
        if self.engine.cache is not None:
            self.engine.cache.put(key, kept)
        return kept

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
            failed, redrawn = tuple(row.get("failed", ())), tuple(row.get("redrawn", (0, 0)))
            reply = Reply(**row["reply"], call=row["key"], failed=failed, redrawn=redrawn)
            self._keep(row["identity"], row["model"], reply)
        except (ValueError, KeyError, TypeError) as e:
            raise CallLogError(
                f"{self.path}: line {number}: no call record ({type(e).__name__}: {e}); "
                "remove that line, or move the file away to ask anew"
            ) from e


class Recorded:
    """A `ModelClient` that answers from a call log and asks the client behind it only for what is not there.

    toll: the account that pays for its calls, whose system they are logged under.
    """

    def __init__(self, client: ModelClient, log: CallLog, toll: Toll | None = None) -> None:
        self.client = client
        self.log = log
        self.toll = toll

    @property
    def identity(self) -> str:
        """The identity of the client behind it."""
        return self.client.identity

    async def ask(self, request: Request) -> Reply:
        """The reply, with `call` set to its key in the log."""
        if self.toll is None:
            return await self.log.ask(self.client, request)
        try:
            return await self.log.ask(self.client, replace(request, toll=self.toll))
        except ModelError as e:
            e.side, e.system = self.toll.side, self.toll.system
            raise
