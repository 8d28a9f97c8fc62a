"""Samples as token ids: where the prompt ends, where the completion does, and what a template did in between."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anthrolab.loop.sft.samples import Sample
from anthrolab.training.settings import TrainingError


@dataclass(frozen=True)
class Encoded:
    """One sample in token ids. The loss is over `completion`, which ends with the stop token.

    `group`: samples of one group (a speaker in a dialogue) share the beginning of their prompts. `cut`: tokens that the
    prompt lost at its beginning to fit the longest length.
    """

    id: str
    group: str
    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    cut: int = 0

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.completion)


def render(tokenizer: Any, messages: Sequence[dict[str, str]], *, ask: bool) -> str:
    """Messages in the words of the chat template; `ask` ends it where the model begins to answer.

    Templates that can think are told not to; others ignore that. TrainingError from a template that refuses the messages, as
    some do with a system text.
    """
    from jinja2 import TemplateError

    try:
        return str(tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=ask, enable_thinking=False))
    except TemplateError as e:
        raise TrainingError(f"the chat template refuses the messages ({e}); give the tokenizer one that takes a system, a user and an assistant text") from e


def ids_of(tokenizer: Any, text: str) -> list[int]:
    """Token ids of a rendered text, which holds its own first token already."""
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def encode(tokenizer: Any, sample: Sample, stops: Sequence[int], max_length: int) -> Encoded:
    """A sample in tokens. The completion goes up to and with its last stop token (a template may write a line break after
    it, which no model is asked for); without one it goes to the end, and a gate will say so.

    A sample longer than `max_length` loses tokens at the beginning of its prompt, never of its completion.
    """
    prompt, answer = sample.messages()
    before = ids_of(tokenizer, render(tokenizer, prompt, ask=True))
    whole = ids_of(tokenizer, render(tokenizer, [*prompt, *answer], ask=False))
    shared = next((i for i, (a, b) in enumerate(zip(before, whole, strict=False)) if a != b), min(len(before), len(whole)))
    completion = whole[shared:]
    ends = [i for i, token in enumerate(completion) if token in stops]
    if ends:
        completion = completion[: ends[-1] + 1]
    cut = max(0, shared + len(completion) - max_length)
    return Encoded(sample.id, f"{sample.dialogue_id}/{sample.speaker}", tuple(whole[min(cut, shared) : shared]), tuple(completion), cut)
