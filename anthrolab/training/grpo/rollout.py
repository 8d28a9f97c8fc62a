"""Rollouts: dialogues that a policy played, with the tokens of the moment of sampling. No torch."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from anthrolab.bench.cases import Case
from anthrolab.runtime.dialogue import Dialogue

Whose = Literal["policy", "initial"]
"""Whose tokens are sampled: the policy as it is now, or as it was when the training began."""


@dataclass(frozen=True)
class Prompt:
    """Token ids that a reply is sampled after. Prompts of one `group` begin alike, which a sampler may use."""

    ids: tuple[int, ...]
    group: str = ""
    whose: Whose = "policy"


@dataclass(frozen=True)
class Sampled:
    """A reply in tokens; `stopped`: it ends with a stop token, and was not cut at the length cap. `logprobs`: log p of each
    token as the sampler drew it, where it says so."""

    ids: tuple[int, ...]
    stopped: bool
    logprobs: tuple[float, ...] | None = None

    @classmethod
    def of(cls, ids: Sequence[int], stops: Collection[int], logprobs: Sequence[float] | None = None) -> "Sampled":
        """What was drawn, up to and with the first stop token."""
        end = next((i + 1 for i, token in enumerate(ids) if token in stops), None)
        return cls(tuple(ids[:end]), end is not None, None if logprobs is None else tuple(logprobs[:end]))


class Sampler(Protocol):
    """Anything that draws replies for a batch of prompts."""

    def sample(self, prompts: Sequence[Prompt], seed: int) -> list[Sampled]:
        """One reply a prompt, in order. The same prompts and seed under the same weights give the same replies."""
        ...


@dataclass(frozen=True)
class Decision:
    """One call of the policy, and so one row of the training batch: what it was asked and what it drew."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    logprobs: tuple[float, ...] | None = None


@dataclass
class Rollout:
    """One dialogue of a group. `dialogue` is None where it could not be had (`fault` says why: the partner's server failed);
    then there is no reward. `number` counts through the step's rollouts from 0."""

    number: int
    group: str
    case: Case
    dialogue: Dialogue | None = None
    fault: str | None = None
    decisions: list[Decision] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Tokens that the loss is over."""
        return sum(len(d.completion) for d in self.decisions)
