"""The one client for every OpenAI-compatible server: vLLM, llama.cpp, hosted services.

It speaks the two calls of the protocol by aiohttp. The official client, on the same transport, takes several times the CPU a
call for conveniences that are not wanted here (its own retries, its own types); `make bench` has it beside the engine.
"""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from anthrolab import __version__
from anthrolab.models.answers import UnreadableAnswerError, read_answer, read_models
from anthrolab.models.budget import Budget
from anthrolab.models.client import ModelError, Payer, Reply, Request, Spent, Trouble, Usage
from anthrolab.models.faults import (
    FIXES,
    Failure,
    connection_failure,
    is_loopback,
    public_url,
    status_failure,
)
from anthrolab.models.flow import Flow, Outcome
from anthrolab.models.proxies import proxy_for

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

NO_KEY = "none"
"""Sent where a server asks for no key; a key of the environment is never sent unasked."""

CONNECT_S = 10.0
"""Longest wait for a connection, in seconds; beyond it the server counts as unreachable."""


class Endpoint:
    """A `ModelClient` for one server. Use it inside one event loop, best as `async with Endpoint(url) as client`.

    `identity` defaults to the base URL without its secrets. `concurrency` is the most requests in flight; how many there
    are follows the server (`Flow`). A request that waits for its turn spends none of its budget. `api_key` is the key itself
    (from an environment variable, see systems.py); it stands in no message, repr or log.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        identity: str | None = None,
        budget: Budget | None = None,
        concurrency: int = 16,
    ) -> None:
        self.url = public_url(base_url)
        if self.url != base_url.rstrip("/"):
            raise ModelError(
                "rejected",
                f"{self.url}: the base URL holds a user, a password or a query; give it without, and the key by itself",
            )
        self.identity = identity or self.url
        self.budget = budget or Budget()
        self._secret = api_key
        self.flow = Flow(concurrency, time.monotonic)
        self._habits: set[tuple[str, Trouble | None]] = set()
        self._proxy = None if is_loopback(base_url) else proxy_for(base_url)
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def ask(self, request: Request) -> Reply:
        """The reply to a request; ModelError once its retry budget is spent, or at once if retrying cannot help.

        A chat reply that the length cap cut, or that is nothing but reasoning, is drawn once more within the budget, unless
        the request has a seed (the same would come back) or this model has shown that it answers so.
        """
        is_chat = request.messages is not None
        body: dict[str, Any] = {"model": request.model, **request.params}
        if is_chat:
            body["messages"] = request.messages
        else:
            body["prompt"] = request.prompt
        path = "/chat/completions" if is_chat else "/completions"
        spent = request.spent or Spent()
        failed: list[Trouble] = []
        read = partial(read_answer, is_chat=is_chat)
        reply = await self._within_budget(path, body, spent, read, failed, request.toll)
        trouble: Trouble | None = "length" if reply.truncated else "thought_only" if reply.thought_only else None
        way = (request.model, trouble)
        if trouble is not None and is_chat and "seed" not in body and way not in self._habits and self._has_left(spent):
            failed.append(trouble)
            try:
                again = await self._within_budget(path, body, spent, read, failed, request.toll)
            except ModelError:
                return replace(reply, failed=tuple(failed))
            if again.truncated or again.thought_only:
                self._habits.add(way)
            reply = replace(again, redrawn=(reply.prompt_tokens or 0, reply.completion_tokens or 0))
        return replace(reply, failed=tuple(failed)) if failed else reply

    def _has_left(self, spent: Spent) -> bool:
        return spent.attempts < self.budget.attempts and spent.seconds < self.budget.seconds

    async def models(self) -> list[str]:
        """Names of the models the server offers; ModelError as in `ask`."""
        return await self._within_budget("/models", None, Spent(), read_models, [], None)

    async def _within_budget(
        self, path: str, body: dict[str, Any] | None, spent: Spent, read: Callable[[bytes], T], failed: list[Trouble],
        toll: Payer | None,
    ) -> T:  # fmt: skip
        """What `read` makes of a 200 answer; attempts follow one another until one succeeds or the budget is spent.

        `spent` says what is used up of it already, and is kept up to date; waiting for a turn uses nothing up. The faults
        of failed attempts are added to `failed`.
        """
        model = None if body is None else body["model"]
        clock = asyncio.get_running_loop().time
        attempts = max(1, self.budget.attempts - spent.attempts)
        for attempt in range(1, attempts + 1):
            left = self.budget.seconds - spent.seconds
            if left <= 0:
                seen = f"had its {self.budget.seconds:g} s used up by the ask before it"
                raise self._error(Failure("timeout", seen, False), model)
            turn = await self.flow.enter(first=attempt > 1)
            ended: Outcome = "other"
            try:
                pays = toll if body is not None else None
                reserved = await pays.reserve(body) if pays is not None and body is not None else 0.0
                if reserved:
                    turn = replace(turn, begun=time.monotonic())  # waiting for money says nothing of the server
                begun = clock()
                got: T | Failure = Failure("no_reply", "was stopped", False, billed=True)
                try:
                    spent.attempts += 1
                    got = await self._attempt(path, body, min(self.budget.attempt_seconds, left), read)
                finally:
                    spent.seconds += clock() - begun
                    if pays is not None:
                        pays.settle(reserved, _used(got))
                ended = "answered" if not isinstance(got, Failure) else "overloaded" if got.busy else "other"
            finally:
                self.flow.leave(turn, ended)
            if not isinstance(got, Failure):
                return got
            wait = self.budget.wait(attempt) if got.wait is None else got.wait
            if got.wait and got.wait < self.budget.seconds:  # with a longer one the command ends, and nobody should wait
                self.flow.close_for(got.wait)
            if not got.again or attempt == attempts:
                raise self._error(got, model, attempt)
            if spent.seconds + wait >= self.budget.seconds:
                asked = "" if got.wait is None else f" and asks to wait {wait:g} s, longer than the request may take"
                fault = "quota" if wait >= self.budget.seconds and got.fault == "rate_limited" else got.fault
                raise self._error(Failure(fault, got.seen + asked, False), model, attempt)
            failed.append(got.fault)
            self.flow.pausing += 1
            try:
                await (asyncio.sleep(wait) if toll is None else toll.wait(wait))
            finally:
                self.flow.pausing -= 1
            spent.seconds += wait
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(
        self, path: str, body: dict[str, Any] | None, seconds: float, read: Callable[[bytes], T]
    ) -> "T | Failure":
        import aiohttp

        data = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        try:
            async with (
                asyncio.timeout(seconds),
                self._open().request("GET" if data is None else "POST", self.url + path, data=data, proxy=self._proxy) as answer,
            ):
                content = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            return connection_failure(e, seconds)
        if answer.status != 200:
            return status_failure(answer.status, answer.headers, content, time.time())
        try:
            return read(content)
        except UnreadableAnswerError as e:
            return Failure(e.fault, str(e), e.again, billed=True)

    def _open(self) -> "aiohttp.ClientSession":
        """The session with its connections, opened in the loop that first asks."""
        import aiohttp

        from anthrolab.models.connections import Connections

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=Connections(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
                headers={
                    "Authorization": f"Bearer {self._secret or NO_KEY}",
                    "Content-Type": "application/json",
                    "User-Agent": f"anthrolab/{__version__}",
                },
            )
        return self._session

    def _error(self, failure: Failure, model: str | None, attempts: int = 1) -> ModelError:
        asked = f", model '{model}'" if model else ""
        tried = f" ({attempts} attempts)" if attempts > 1 else ""
        line = f"{self.url}{asked}: {failure.seen}{tried}; {FIXES[failure.fault]}"
        if self._secret:
            line = line.replace(self._secret, "***")
        return ModelError(failure.fault, line)


def _used(got: object) -> Usage | None:
    """What an attempt is charged: nothing for a failure that cost the server nothing, None where nobody knows."""
    if isinstance(got, Reply):
        return Usage.of(got)
    return None if isinstance(got, Failure) and got.billed else Usage()
