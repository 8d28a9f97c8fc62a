"""Checks before money is spent: what would make a training useless or a lie is seen here, and it does not begin."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from anthrolab.loop.sft.samples import Sample
from anthrolab.training.chat_template import stop_ids
from anthrolab.training.settings import SFTSettings, TrainingError
from anthrolab.training.tokens import Encoded, ids_of, render

THINK = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
EMPTY_THINK = re.compile(r"<think>\s*</think>\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Gate:
    """One check. `seen`: what was found, in words; `fix`: what to do if it failed (empty if it passed)."""

    name: str
    passed: bool
    seen: str
    fix: str = ""


@dataclass(frozen=True)
class Shown:
    """One sample to be looked at: its tokens as text, and which of them the loss is over."""

    id: str
    tokens: list[str]
    trained: list[bool]


@dataclass(frozen=True)
class Preflight:
    """All gates that were run, two samples with their masks, and the tokens of every sample: (prompt, completion)."""

    gates: list[Gate] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    lengths: list[tuple[int, int]] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(gate.passed for gate in self.gates)

    def require(self) -> None:
        """TrainingError with a line for each failed gate."""
        failed = [f"gate '{gate.name}' failed: {gate.seen}; {gate.fix}" for gate in self.gates if not gate.passed]
        if failed:
            raise TrainingError("\n".join(failed))

    def as_rows(self) -> list[dict[str, Any]]:
        return [asdict(gate) for gate in self.gates]


def token_gates(tokenizer: Any, samples: Sequence[Sample], encoded: Sequence[Encoded], settings: SFTSettings) -> Preflight:
    """The gates that need no model, over all samples (the template's over the first three)."""
    gates = [
        _round_trip(tokenizer, samples, encoded),
        _system_role(tokenizer, samples[:3]),
        _thinking(tokenizer, samples, settings.allow_thinking),
        _stop(tokenizer, encoded),
        _mask(tokenizer, samples, encoded),
        _truncation(encoded, settings),
    ]
    lengths = [(len(e.prompt) + e.cut, len(e.completion)) for e in encoded]
    return Preflight(gates, [shown(tokenizer, e) for e in _two(encoded)], lengths)


def shown(tokenizer: Any, sample: Encoded) -> Shown:
    """A sample as pieces of text, and the loss's mask over them; pieces that are half a character are shown as such."""
    ids = [*sample.prompt, *sample.completion]
    trained = [False] * len(sample.prompt) + [True] * len(sample.completion)
    return Shown(sample.id, [tokenizer.decode([i], skip_special_tokens=False) for i in ids], trained)


def _two(encoded: Sequence[Encoded]) -> list[Encoded]:
    """The first sample, and the first whose completion is longer by half (a silence is short, a message is not)."""
    first = encoded[0]
    longer = [e for e in encoded[1:] if len(e.completion) * 2 > len(first.completion) * 3 or len(e.completion) * 3 < len(first.completion) * 2]
    return [first, *(longer[:1] or list(encoded[1:2]))]


def _round_trip(tokenizer: Any, samples: Sequence[Sample], encoded: Sequence[Encoded]) -> Gate:
    """What the model is trained on begins with exactly what it will be asked with."""
    name = "template round trip"
    for sample, e in zip(samples, encoded, strict=True):
        prompt, answer = sample.messages()
        asked = ids_of(tokenizer, render(tokenizer, prompt, ask=True))
        whole = ids_of(tokenizer, render(tokenizer, [*prompt, *answer], ask=False))
        if asked == ids_of(tokenizer, render(tokenizer, prompt, ask=False)):
            return Gate(name, False, "the template adds nothing where the model is to answer (no generation prompt)", "give the tokenizer a chat template with add_generation_prompt")
        if whole[: len(asked)] != asked:
            at = next((i for i, (a, b) in enumerate(zip(asked, whole, strict=False)) if a != b), min(len(asked), len(whole)))
            return Gate(
                name, False,
                f"{sample.id}: prompt and prompt with answer differ from token {at} on: {tokenizer.decode(asked[at : at + 8])!r} against {tokenizer.decode(whole[at : at + 8])!r}",
                "use a chat template that renders a prompt in the same way with and without its answer",
            )  # fmt: skip
        if not e.completion:
            return Gate(name, False, f"{sample.id}: nothing is left of the answer", "check the chat template")
        if sample is samples[min(2, len(samples) - 1)]:
            break
    return Gate(name, True, "prompt and answer begin with the tokens of the prompt, generation prompt included")


def _system_role(tokenizer: Any, samples: Sequence[Sample]) -> Gate:
    """The system text reaches the model."""
    name = "system role"
    for sample in samples:
        text = render(tokenizer, sample.messages()[0], ask=True)
        system, user = sample.system.strip(), sample.user.strip()
        if system not in text or user not in text:
            lost = "system" if system not in text else "user"
            return Gate(name, False, f"{sample.id}: the template drops or changes the {lost} text", "use a chat template that keeps both messages")
        if text.index(system) > text.index(user):
            return Gate(name, False, f"{sample.id}: the template puts the system text after the user text", "use a chat template that puts it first")
    return Gate(name, True, "system and user text both stand in the prompt, in this order")


def _thinking(tokenizer: Any, samples: Sequence[Sample], allowed: bool) -> Gate:
    name = "think tags"
    marked = [s.id for s in samples if THINK.search(s.completion)]
    if marked and not allowed:
        return Gate(name, False, f"{len(marked)} of {len(samples)} completions hold think tags, {marked[0]} first", "remove them from the data, or set allow_thinking")
    prompt = render(tokenizer, samples[0].messages()[0], ask=True)
    tail = prompt[-200:]
    if EMPTY_THINK.search(tail):
        seen = "the template puts an empty think block before the answer: it is part of the prompt here, so serve the model with thinking switched off (thinking: false)"
    elif THINK.search(tail):
        return Gate(name, False, "the template opens a think block before the answer and cannot be told not to", "use a model or template without thinking")
    else:
        seen = "none in the completions, none put in by the template"
    return Gate(name, True, seen)


def _stop(tokenizer: Any, encoded: Sequence[Encoded]) -> Gate:
    name = "stop token"
    stops = stop_ids(tokenizer)
    without = [e.id for e in encoded if not e.completion or e.completion[-1] not in stops]
    words = ", ".join(repr(tokenizer.decode([i])) for i in stops) or "none"
    if without:
        return Gate(
            name, False, f"{len(without)} of {len(encoded)} completions do not end with one ({words}), {without[0]} first",
            "a model trained so never stops: end the assistant's turn in the chat template with the tokenizer's end token",
        )  # fmt: skip
    return Gate(name, True, f"every completion ends with {tokenizer.decode([encoded[0].completion[-1]])!r}, and the loss is over it")


def _mask(tokenizer: Any, samples: Sequence[Sample], encoded: Sequence[Encoded]) -> Gate:
    """The trained tokens say the completion, the whole completion and nothing else (the stop token apart)."""
    name = "completion only"
    for sample, e in zip(samples, encoded, strict=True):
        said = tokenizer.decode(list(e.completion[:-1]), skip_special_tokens=False).strip()
        if said != sample.completion.strip():
            return Gate(
                name, False, f"{sample.id}: the loss would be over {said[:60]!r}, not over the completion {sample.completion[:60]!r}",
                "use a chat template that renders the answer as it is",
            )  # fmt: skip
    trained = sum(len(e.completion) for e in encoded)
    return Gate(name, True, f"{trained} of {sum(e.length for e in encoded)} tokens are trained: the completions, word for word")


def _truncation(encoded: Sequence[Encoded], settings: SFTSettings) -> Gate:
    name = "truncation"
    cut = [e for e in encoded if e.cut]
    lost = [e.id for e in encoded if e.length > settings.max_length]
    longest = max(e.length + e.cut for e in encoded)
    share = len(cut) / len(encoded)
    seen = f"{len(cut)} of {len(encoded)} samples are longer than {settings.max_length} tokens (the longest has {longest})"
    if lost:
        return Gate(name, False, f"{seen}; the completion alone is too long in {len(lost)}, {lost[0]} first", f"raise max_length to {longest}")
    if share > settings.max_truncated:
        return Gate(name, False, f"{seen}; {share:.1%} would lose the beginning of their prompt", f"raise max_length to {longest}, or allow it with max_truncated")
    return Gate(name, True, seen)
