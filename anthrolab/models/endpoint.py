"""The one client for every OpenAI-compatible server: vLLM, llama.cpp, hosted services."""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from anthrolab.models.answers import UnreadableAnswerError, describe_body, read_answer
from anthrolab.models.client import ModelError, Reply, Request, Spent
from anthrolab.models.faults import (
    FIXES,
    Failure,
    connection_failure,
    is_loopback,
    public_url,
    status_failure,
)

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

NO_KEY = "none"
"""Sent where a server asks for no key; OPENAI_API_KEY of the environment is never sent unasked."""

CONNECT_S = 10.0
"""Longest wait for a connection, in seconds; beyond it the server counts as unreachable."""


@dataclass(frozen=True)
class Budget:
    """What one request may cost: attempts in all, seconds in all (waits included), seconds of one attempt.

    Between attempts it waits `first_wait`, twice that, four times that ... up to `longest_wait` seconds, or as
    long as the server's Retry-After says, if that still fits into the total.
    """

    attempts: int = 4
    seconds: float = 600.0
    attempt_seconds: float = 120.0
    first_wait: float = 0.5
    longest_wait: float = 20.0

    def wait(self, failed: int) -> float:
        """Seconds to wait after the `failed`-th attempt (from 1). No jitter: the same failures, the same waits."""
        return float(min(self.longest_wait, self.first_wait * 2 ** (failed - 1)))


class Endpoint:
    """A `ModelClient` for one server. Use it inside one event loop, best as `async with Endpoint(url) as client`.

    `identity` defaults to the base URL without its secrets. `concurrency` caps the requests in flight; a request
    that waits for its turn spends none of its budget. `api_key` is the key itself (from an environment
    variable, see systems.py); it stands in no message, repr or log.
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
        import openai

        self.url = public_url(base_url)
        if self.url != base_url.rstrip("/"):
            raise ModelError(
                "rejected",
                f"{self.url}: the base URL holds a user, a password or a query; give it without, and the key by itself",
            )
        self.identity = identity or self.url
        self.budget = budget or Budget()
        self._secret = api_key
        self._turns = asyncio.Semaphore(concurrency)
        http = openai.DefaultAioHttpClient(
            timeout=_timeout(self.budget.attempt_seconds),
            trust_env=not is_loopback(base_url),  # a proxy of the environment must not be asked for this machine
        )
        self._client = openai.AsyncOpenAI(
            base_url=base_url, api_key=api_key or NO_KEY, max_retries=0, http_client=http, timeout=http.timeout
        )
        if not self.url.startswith("https://api.openai.com/"):
            self._client.organization = self._client.project = None  # read from the environment, meant for OpenAI

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the client cannot be used after this."""
        await self._client.close()

    async def ask(self, request: Request) -> Reply:
        """The reply to a request; ModelError once its retry budget is spent, or at once if retrying cannot help."""
        is_chat = request.messages is not None
        body: dict[str, Any] = {"model": request.model, **request.params}
        if is_chat:
            body["messages"] = request.messages
        else:
            body["prompt"] = request.prompt
        path = "/chat/completions" if is_chat else "/completions"
        async with self._turns:
            return await self._within_budget(path, body, request.spent or Spent(), lambda content: read_answer(content, is_chat))

    async def models(self) -> list[str]:
        """Names of the models the server offers; ModelError as in `ask`."""
        return await self._within_budget("/models", None, Spent(), _model_names)

    async def _within_budget(self, path: str, body: dict[str, Any] | None, spent: Spent, read: Callable[[bytes], T]) -> T:
        """What `read` makes of a 200 answer; attempts follow one another until one succeeds or the budget is spent.

        An empty answer is worth another attempt, one that cannot be read is not. `spent` says what is used up of it already, and is kept up to date.
        """
        model = None if body is None else body["model"]
        clock = asyncio.get_running_loop().time
        begun, before = clock(), spent.seconds
        end = begun + max(0.0, self.budget.seconds - before)
        attempts = max(1, self.budget.attempts - spent.attempts)
        try:
            for attempt in range(1, attempts + 1):
                if clock() >= end:
                    seen = f"had its {self.budget.seconds:g} s used up by the ask before it"
                    raise self._error(Failure("timeout", seen, False), model)
                spent.attempts += 1
                outcome = await self._attempt(path, body, min(self.budget.attempt_seconds, end - clock()))
                if not isinstance(outcome, Failure):
                    try:
                        return read(outcome)
                    except UnreadableAnswerError as e:
                        outcome = Failure(e.fault, str(e), again=e.fault == "empty")
                wait = self.budget.wait(attempt) if outcome.wait is None else outcome.wait
                if not outcome.again or attempt == attempts:
                    raise self._error(outcome, model, attempt)
                if clock() + wait >= end:
                    asked = (
                        "" if outcome.wait is None else f" and asks to wait {wait:g} s, longer than the request may take"
                    )
                    raise self._error(Failure(outcome.fault, outcome.seen + asked, False), model, attempt)
                await asyncio.sleep(wait)
        finally:
            spent.seconds = before + clock() - begun
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, path: str, body: dict[str, Any] | None, seconds: float) -> "bytes | Failure":
        import aiohttp
        import httpx2
        import openai

        try:
            async with asyncio.timeout(seconds):
                if body is None:
                    answer = await self._client.get(path, cast_to=httpx2.Response)
                else:
                    answer = await self._client.post(path, body=body, cast_to=httpx2.Response)
        except openai.APIStatusError as e:
            return status_failure(e, time.time())
        except (openai.APIConnectionError, httpx2.HTTPError, httpx2.InvalidURL, aiohttp.ClientError, TimeoutError) as e:
            return connection_failure(e, seconds)
        return answer.content

    def _error(self, failure: Failure, model: str | None, attempts: int = 1) -> ModelError:
        asked = f", model '{model}'" if model else ""
        tried = f" ({attempts} attempts)" if attempts > 1 else ""
        line = f"{self.url}{asked}: {failure.seen}{tried}; {FIXES[failure.fault]}"
        if self._secret:
            line = line.replace(self._secret, "***")
        return ModelError(failure.fault, line)


def _timeout(seconds: float) -> "httpx2.Timeout":
    import httpx2

    return httpx2.Timeout(seconds, connect=min(CONNECT_S, seconds), pool=None)


def _model_names(content: bytes) -> list[str]:
    with contextlib.suppress(ValueError):
        body = json.loads(content)
        if isinstance(body, dict) and isinstance(body.get("data"), list):
            return [str(entry.get("id")) for entry in body["data"] if isinstance(entry, dict)]
    raise UnreadableAnswerError("not_json", f"answered the list of models with {describe_body(content)}")
