"""The policy's voice: requests of a chat or transcript policy as tokens, and drawn tokens as replies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from anthrolab.models.client import Reply, Request
from anthrolab.models.systems import System
from anthrolab.training.chat_template import stop_ids
from anthrolab.training.grpo.rollout import Decision, Prompt, Sampled, Whose
from anthrolab.training.grpo.settings import GRPOSettings
from anthrolab.training.grpo.waves import Waves
from anthrolab.training.settings import TrainingError
from anthrolab.training.tokens import ids_of, render


def policy_system(settings: GRPOSettings) -> System:
    """The policy as a system, so that the runtime asks it as it asks any other. It is on no server."""
    return System(
        name="policy", endpoint="http://policy.invalid/v1", model="policy", server="openai", policy=settings.kind,
        sampling={"temperature": settings.temperature}, max_tokens=settings.max_new_tokens,
    )  # fmt: skip


@dataclass(frozen=True)
class Voice:
    """A tokenizer that speaks for a policy. Stop tokens: the chat template's ends of turn, or every token that holds a line
    break for transcripts."""

    tokenizer: Any
    settings: GRPOSettings

    @cached_property
    def stops(self) -> list[int]:
        """The tokens after which a reply is over."""
        if self.settings.kind == "chat":
            return stop_ids(self.tokenizer)
        breaks = [i for i in range(len(self.tokenizer)) if "\n" in self.tokenizer.decode([i], skip_special_tokens=False)]
        ends = [self.tokenizer.eos_token_id, *breaks]
        return list(dict.fromkeys(i for i in ends if i is not None))

    def encode(self, request: Request) -> tuple[int, ...]:
        """What the model is asked with; TrainingError if it is too long."""
        if request.messages is not None:
            ids = ids_of(self.tokenizer, render(self.tokenizer, [dict(m) for m in request.messages], ask=True))
        else:
            ids = list(self.tokenizer(request.prompt)["input_ids"])
        if len(ids) + self.settings.max_new_tokens > self.settings.max_length:
            raise TrainingError(f"a prompt has {len(ids)} tokens and a decision {self.settings.max_new_tokens} more, above max_length {self.settings.max_length}; raise it, or shorten window or skills")
        return tuple(ids)

    def decode(self, prompt: Sequence[int], drawn: Sampled) -> Reply:
        """The reply in words, without its stop token."""
        said = drawn.ids[:-1] if drawn.stopped else drawn.ids
        text = self.tokenizer.decode(list(said), skip_special_tokens=True)
        if self.settings.kind == "transcript" and drawn.stopped:  # the stop token may hold the line's last characters
            text = self.tokenizer.decode(list(drawn.ids), skip_special_tokens=True).split("\n")[0]
        return Reply(text, finish_reason="stop" if drawn.stopped else "length", prompt_tokens=len(prompt), completion_tokens=len(drawn.ids))


@dataclass
class InWavesClient:
    """A `ModelClient` for one seat of one dialogue: its requests are drawn in waves. `decisions` collects what was drawn."""

    voice: Voice
    waves: Waves
    number: int
    group: str
    whose: Whose = "policy"
    decisions: list[Decision] = field(default_factory=list)

    @property
    def identity(self) -> str:
        """Whose tokens they are."""
        return self.whose

    async def ask(self, request: Request) -> Reply:
        """The drawn reply, in words."""
        ids = self.voice.encode(request)
        drawn = await self.waves.sample(self.number, Prompt(ids, f"{self.whose}/{self.group}", self.whose))
        self.decisions.append(Decision(ids, drawn.ids, drawn.logprobs))
        return self.voice.decode(ids, drawn)
