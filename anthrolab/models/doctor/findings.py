"""What an answer to a probe says about the endpoint: pure, from a reply or an error to an outcome."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from anthrolab.models.client import Fault, ModelError, Reply
from anthrolab.models.faults import FIXES
from anthrolab.models.json_text import read_object
from anthrolab.models.systems import System

Outcome = Literal[
    "ok", "mended", "in reasoning", "cut off", "unmarked", "unclear", "ignored", "refused", "declined", "empty",
    "not JSON", "failed", "late", "busy", "gone", "unanswered", "not asked",
]  # fmt: skip
"""What came of a request; MEANINGS says what each is."""

MEANINGS: dict[Outcome, str] = {
    "mended": "obeyed, but the JSON had to be mended to be read",
    "in reasoning": "the answer landed in the reasoning field",
    "cut off": "at the length cap",
    "unmarked": "kept, but finish_reason does not say so",
    "unclear": "the reply was too short to tell",
    "ignored": "accepted, not obeyed",
    "refused": "the server rejected the request",
    "declined": "the answer is a refusal of the model or its provider",
    "empty": "the answer holds no text",
    "not JSON": "the answer is not of the API",
    "failed": "the server failed at the request",
    "late": "no answer within the entry's timeout_s",
    "busy": "the server limits the rate of requests",
    "gone": "no connection, or it broke off",
    "unanswered": "the probe was over before an answer came",
}
"""The outcomes that are not `ok` (accepted and obeyed) or `not asked` (the probe was over)."""

FAULTS: dict[Fault, Outcome] = {
    "rejected": "refused", "refusal": "declined", "empty": "empty", "not_json": "not JSON", "server_error": "failed",
    "no_reply": "failed", "timeout": "late", "rate_limited": "busy", "unreachable": "gone",
    "quota": "busy", "over_budget": "not asked", "deadline": "late",
}  # fmt: skip
"""What an error is called in a probe: every fault by itself, since each asks for another fix."""

UNSETTLED: tuple[Outcome, ...] = ("busy", "unanswered", "not asked")
"""What the probe's own time limit or the server's limit on the rate left open: it says nothing about the request."""

OPEN: tuple[Outcome, ...] = ("late", "gone", *UNSETTLED)
"""No answer that would say whether what was asked for is taken: nothing is concluded about that (a run would be late
too, so that a way of thinking that is late is no good one)."""

DENIED: tuple[Outcome, ...] = ("refused", "declined", "empty", "not JSON", "failed")
"""An answer to the request, and no text in it."""

NO_REPLY: tuple[Outcome, ...] = (*DENIED, *OPEN)

Thought = Literal["yes", "unseen", "no", ""]
"""Whether reasoning came with a reply; unseen: more tokens were counted than were sent; empty: there is no reply."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "drink": {"type": "string", "enum": ["tea", "coffee"]},
        "at": {"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}$"},
        "more": {"type": "boolean"},
    },
    "required": ["drink", "at", "more"],
    "additionalProperties": False,
}
"""A small schema with all that the schema of a decision has: enum, pattern, boolean, nothing else allowed."""

WORD = "QUARTZ"
"""The code word whose return proves that a message was read."""

LINE_REGEX = r"\[07:[0-5]\d\] Zoe: [a-z ]{1,20}\n"
LINE_GRAMMAR = 'root ::= "[07:" [0-5] [0-9] "] Zoe: " [a-z ]{1,20} "\\n"\n'
"""A transcript line of a person whom no prompt names: without a constraint it does not come about."""

SHORT = 8
"""The length cap, in tokens, whose keeping is tested."""

HIDDEN = 16
"""Tokens beyond the bytes of a reply that count as thinking unseen (a few are control tokens)."""


@dataclass(frozen=True)
class Way:
    """One way to ask for thinking or against it; `effort` is the word of reasoning_effort. The default sends nothing."""

    style: Literal["none", "enable_thinking", "reasoning_effort", "no_think_suffix"] = "none"
    on: bool | None = None
    effort: str | None = None

    def __str__(self) -> str:
        if self.style == "none":
            return "not sent"
        if self.style == "no_think_suffix":
            return f"suffix {'/think' if self.on else '/no_think'}"
        return f"{self.style} {self.effort or str(self.on).lower()}"

    def settings(self, system: System) -> dict[str, Any]:
        """The fields of a system that is asked in this way."""
        fields: dict[str, Any] = {"thinking": self.on, "thinking_style": self.style}
        usual = {True: "medium", False: "none"}.get(bool(self.on))
        if self.effort and self.effort != system.sampling.get("reasoning_effort", usual):
            fields["sampling"] = {**system.sampling, "reasoning_effort": self.effort}
        return fields


NOT_SENT = Way()


@dataclass(frozen=True)
class Finding:
    """One request of a probe: how thinking was asked for, what was tried, what came of it; `detail` is one line."""

    way: Way
    asked: str
    outcome: Outcome
    thought: Thought = ""
    detail: str = ""


def own_way(system: System) -> Way:
    """How the entry asks for thinking."""
    if system.thinking is None:
        return NOT_SENT
    effort = system.body().get("reasoning_effort") if system.thinking_style == "reasoning_effort" else None
    return Way(system.thinking_style, system.thinking, effort if isinstance(effort, str) else None)


def find(findings: Sequence[Finding], asked: str, way: Way | None = None) -> Finding | None:
    """The finding about what was tried, in a way if one is named; None if it was not tried."""
    return next((f for f in findings if f.asked == asked and way in (None, f.way)), None)


Reading = tuple[Outcome, Thought, str]
"""Outcome, thought, detail."""

Reader = Callable[[Reply], Reading]
"""What is read out of a reply, depending on what was asked for."""


def read_json(reply: Reply) -> Reading:
    """Whether a reply is an object of SCHEMA, read as a speaker's decision is read."""
    thought, found = _thought(reply), read_object(reply)
    if reply.truncated:
        return "cut off", thought, f"after {reply.completion_tokens or 'unknown'} tokens: {_short(reply.text)}"
    if found.value is None or not _fits(found.value):
        return "ignored", thought, _came(reply)
    if found.recovered is None:
        return "ok", thought, ""
    if "reasoning field" in found.recovered:
        return "in reasoning", thought if "words around" in found.recovered else "no", found.recovered
    return "mended", thought, found.recovered


def read_word(reply: Reply) -> Reading:
    """Whether the code word came back."""
    thought, back = _thought(reply), "the code word given there came back"
    if WORD.lower() in reply.text.lower():
        return "ok", thought, back
    if reply.truncated:
        return "cut off", thought, _came(reply)
    if not reply.text.strip() and WORD.lower() in (reply.reasoning or "").lower():
        return "in reasoning", thought, back
    return "ignored", thought, _came(reply)


def read_line(reply: Reply) -> Reading:
    """Whether a reply is the line that the constraint allows (the stop sequence may have taken its end)."""
    if re.fullmatch(LINE_REGEX.replace(r"\n", r"\n?"), reply.text):
        return "ok", _thought(reply), ""
    return ("cut off" if reply.truncated else "ignored"), _thought(reply), _came(reply)


def read_stop(reply: Reply) -> Reading:
    """Whether a completion ended at the stop sequence, the end of its line."""
    if not reply.text.strip():
        return "empty", "", "came: an empty message"
    held = "\n" not in reply.text
    return ("ok" if held else "ignored"), "", f"{'ends with its line' if held else 'came'}: {_short(reply.text)}"


def read_size(reply: Reply) -> Reading:
    """A prompt of the real size was read; what the reply says does not matter."""
    return "ok", "", "" if reply.prompt_tokens is None else f"{reply.prompt_tokens} tokens, by the server's count"


def read_cap(reply: Reply) -> Reading:
    """Whether the length cap of SHORT tokens was kept and finish_reason says so; asked for were a hundred numbers."""
    tokens, said = reply.completion_tokens, f"finish_reason {reply.finish_reason}"
    words = len(f"{reply.reasoning or ''} {reply.text}".split())
    count = f"{words} words" if tokens is None else f"{tokens} tokens"
    if (words if tokens is None else tokens) > SHORT:
        return "ignored", "", f"{count} where {SHORT} tokens are allowed, {said}"
    if reply.truncated:
        return "ok", "", f"{count}, {said}"
    if tokens is not None and tokens < SHORT:
        return "unclear", "", f"the reply ended by itself after {count}"
    return "unmarked", "", f"{count}, {said}"


def read_error(error: ModelError) -> Reading:
    """What an error says, by its fault; an empty message at the length cap is thinking that was cut."""
    detail = str(error).partition(": ")[2].removesuffix(f"; {FIXES[error.fault]}")
    if error.fault == "empty" and "finish_reason length" in detail:
        return "cut off", "unseen", detail
    return FAULTS[error.fault], "", detail


def _thought(reply: Reply) -> Thought:
    if reply.reasoning:
        return "yes"
    return "unseen" if (reply.completion_tokens or 0) > len(reply.text.encode()) + HIDDEN else "no"


def _fits(value: dict[str, Any]) -> bool:
    fields, at = SCHEMA["properties"], value.get("at")
    return (
        value.keys() == fields.keys()
        and value["drink"] in fields["drink"]["enum"]
        and isinstance(at, str)
        and re.search(fields["at"]["pattern"], at) is not None
        and isinstance(value["more"], bool)
    )


def _came(reply: Reply) -> str:
    """What came instead of what was asked for."""
    if reply.reasoning and not reply.text.strip():
        return f"came: nothing but reasoning, {_short(reply.reasoning)}"
    return f"came: {_short(reply.text)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 50 else line[:47] + "...") if line else "an empty message"
