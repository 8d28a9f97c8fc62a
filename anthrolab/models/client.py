"""What every model looks like to the rest of anthrolab: a request goes in, a reply or a typed error comes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from anthrolab.errors import AnthrolabError
from anthrolab.files import content_hash

if TYPE_CHECKING:
    from anthrolab.models.spend import Toll

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
    toll: "Toll | None" = field(default=None, compare=False, repr=False)

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
