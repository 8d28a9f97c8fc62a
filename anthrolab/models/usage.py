"""Token counts of model calls."""

from dataclasses import dataclass

from anthrolab.models.client import Reply


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
