"""What every model looks like to the rest of anthrolab: a request goes in, a reply or a typed error comes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from anthrolab.errors import AnthrolabError
from anthrolab.files import content_hash

Fault = Literal[
    "unreachable", "timeout", "rate_limited", "server_error", "rejected", "not_json", "empty", "refusal", "no_reply",
    "quota", "over_budget", "deadline",
]  # fmt: skip
"""`quota`: the server asks to wait longer than a request may take; `over_budget`: the command may spend no more money; `deadline`: a whole dialogue or verdict took longer than it may."""

FINAL_FAULTS: tuple[Fault, ...] = ("unreachable", "quota", "over_budget")
"""Faults after which asking on is no use: the next request would fail in the same way."""

Trouble = Literal[Fault, "length", "thought_only"]
"""What was wrong with an attempt that another one followed: a fault, a reply that the length cap cut, or one that is
nothing but reasoning."""


class ModelError(AnthrolabError):
    """No usable reply came back within the request's retry budget; `fault` says which kind of failure it was.

    This is nobody's answer: the case or the judgement stays to be done, and nothing is scored. `side` and `system` say
    whose model it was, where that is known.
    """

    def __init__(self, fault: Fault, message: str, side: str | None = None, system: str | None = None) -> None:
        self.fault = fault
        self.side = side
        self.system = system
        super().__init__(message)


@dataclass
class Spent:
    """What requests that share one retry budget have used up of it: attempts, and seconds."""

    attempts: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Request:
    """One call to a model: chat `messages` or a plain `prompt` (exactly one of the two).

    `params` go into the request body as they are (temperature, max_tokens, response_format, grammar, ...).
    `salt` tells apart calls whose content is equal but which must be drawn anew (sample index, re-ask number).
    `spent` is shared by requests that have one retry budget together, such as an ask and its re-ask; the first
    attempt of a request is made as long as there are seconds left. `toll` is the account that pays for it. Both are no part of its content.
    """

    model: str
    messages: Sequence[Mapping[str, str]] | None = None
    prompt: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    salt: str = ""
    spent: Spent | None = field(default=None, compare=False, repr=False)
    toll: "Payer | None" = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if (self.messages is None) == (self.prompt is None):
            raise ValueError("a request has either messages or a prompt")

    def key(self, identity: str) -> str:
        """The content hash under which the reply is kept; `identity` names the server (not its port)."""
        return content_hash(
            {
                "identity": identity,
                "model": self.model,
                "messages": None if self.messages is None else [dict(m) for m in self.messages],
                "prompt": self.prompt,
                "params": dict(self.params),
                "salt": self.salt,
            }
        )


@dataclass(frozen=True)
class Reply:
    """What came back. `text` has no reasoning in it; token counts are None where the server does not say.

    `failed`: what was wrong with the attempts before the one that gave this reply; `redrawn`: prompt and completion
    tokens of replies among them.
    """

    text: str
    reasoning: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    call: str | None = None
    failed: tuple[Trouble, ...] = ()
    redrawn: tuple[int, int] = (0, 0)

    @property
    def truncated(self) -> bool:
        """True if the server stopped at the length cap."""
        return self.finish_reason == "length"

    @property
    def thought_only(self) -> bool:
        """True if nothing was said and something was thought."""
        return not self.text.strip() and self.reasoning is not None


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


class Payer(Protocol):
    """The account that pays for the attempts of a request (`spend.Toll`)."""

    system: str
    side: str
    reused: int

    async def reserve(self, body: Mapping[str, Any]) -> float:
        """Set money aside for an attempt, in USD; ModelError if it may not be made."""
        ...

    def settle(self, reserved: float, usage: Usage | None) -> None:
        """The attempt is over; None: nobody knows what it used."""
        ...

    async def wait(self, seconds: float) -> None:
        """Wait before a further attempt, as long as the command goes on."""
        ...


REPLY_FIELDS = ("text", "reasoning", "finish_reason", "prompt_tokens", "cached_tokens", "completion_tokens")
"""What is kept of a reply, in call logs and in the cache."""


class ModelClient(Protocol):
    """Anything that answers requests: an endpoint, a recorded endpoint, a scripted model."""

    @property
    def identity(self) -> str:
        """Names the server and model file for cache keys and manifests; stable across runs and ports."""
        ...

    async def ask(self, request: Request) -> Reply:
        """The reply, or ModelError."""
        ...
