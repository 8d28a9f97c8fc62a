"""Naming what went wrong with a call: from the HTTP client's exceptions to a fault and a line with the fix."""

import math
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit, urlunsplit

from anthrolab.models.answers import describe_body
from anthrolab.models.client import Fault

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Failure:
    """One failed attempt: which fault, what was seen, whether trying again can help, and after how many seconds.

    billed: the server may have worked on it, and may charge for it; busy: it says or shows that it has too much to do.
    """

    fault: Fault
    seen: str
    again: bool
    wait: float | None = None
    billed: bool = False
    busy: bool = False


FIXES: dict[Fault, str] = {
    "unreachable": "is the server running, and is endpoint right?",
    "timeout": "is the server overloaded? raise timeout_s or lower concurrency",
    "rate_limited": "lower concurrency, raise retries, or try later",
    "server_error": "look into the server's own log",
    "rejected": "check the model's name, the key and the parameters; `anthrolab doctor --system NAME` finds what it takes",
    "not_json": "endpoint should be the API's root, which mostly ends in /v1",
    "empty": "check max_tokens and the server's filters, or use another model",
    "refusal": "the model's provider declined; change the scenario or use another model",
    "no_reply": "try again",
    "quota": "go on with the same command when it lets you, or with another key",
    "over_budget": "raise --max-cost",
    "deadline": "raise --deadline, or look why the server is slow",
}


def public_url(url: str) -> str:
    """The URL without what could be secret: no user, no password, no query, no fragment.

    >>> public_url("https://me:pw@host.example:8000/v1/?token=x")
    'https://host.example:8000/v1'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def is_loopback(url: str) -> bool:
    """True if the URL names this machine."""
    host = urlsplit(url).hostname or ""
    return host in LOOPBACK or host.startswith("127.")


def status_failure(status: int, headers: Mapping[str, str], body: bytes, now: float) -> Failure:
    """The failure behind an answer that is not 200. `now` is the time (seconds since 1970) for a dated Retry-After."""
    seen = f"answered {status} with {describe_body(body)}"
    wait = retry_after(headers, now)
    if status == 429:
        return Failure("rate_limited", seen, True, wait, busy=True)
    if status >= 500:
        return Failure("server_error", seen, True, wait, busy=status == 503)
    return Failure("rejected", seen, status in (408, 409), wait)


def connection_failure(error: BaseException, seconds: float) -> Failure:
    """The failure behind a connection that did not come about, broke, or stayed silent for `seconds`.

    Read from the chain of causes: the system's own error stands inside aiohttp's.
    """
    import aiohttp

    chain = list(_causes(error))

    def has(*kinds: type[BaseException]) -> bool:
        return any(isinstance(link, kinds) for link in chain)

    if has(aiohttp.ConnectionTimeoutError):
        return Failure("unreachable", "cannot be reached: no connection came about in time", True)
    if has(TimeoutError):
        return Failure("timeout", f"gave no answer within {seconds:g} s", True, billed=True, busy=True)
    if has(aiohttp.ClientConnectorDNSError, socket.gaierror):
        return Failure("unreachable", "cannot be reached: its host name is not known", True)
    if has(aiohttp.ClientSSLError):
        return Failure(
            "unreachable", "cannot be reached: the TLS handshake failed (https where it speaks http?)", False
        )
    if has(ConnectionRefusedError):
        return Failure("unreachable", "cannot be reached: the connection was refused", True)
    if has(aiohttp.ClientConnectorError):
        return Failure("unreachable", "cannot be reached", True)
    if has(aiohttp.InvalidURL):
        return Failure("unreachable", "is no address that can be called", False)
    return Failure("unreachable", "broke the connection off before its answer was whole", True, billed=True)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the server asks to wait (Retry-After-Ms, Retry-After in seconds or as a date), or None."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - now
            except ValueError:
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from, and the system error inside an aiohttp connector error."""
    link: BaseException | None = error
    while link is not None:
        yield link
        inner = getattr(link, "os_error", None)
        if isinstance(inner, OSError):
            yield inner
        link = link.__cause__
