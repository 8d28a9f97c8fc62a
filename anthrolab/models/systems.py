"""Systems: which model on which server, how it is asked, and what it costs. Declared in one YAML file."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)

from anthrolab.errors import AnthrolabError
from anthrolab.files import data_dir
from anthrolab.models.client import Request, Usage
from anthrolab.yaml_files import YamlError, explain, read_yaml, suggest

RESERVED = ("model", "messages", "prompt", "stream", "n", "max_tokens", "max_completion_tokens")
"""Body fields that a system's `sampling` may not set: they have a field of their own or would break reading."""

SAMPLERS = (
    "temperature", "top_", "min_p", "typical_p", "presence_penalty", "frequency_penalty", "repeat", "repetition",
    "dry_", "xtc_", "mirostat", "dynatemp", "samplers", "seed",
)  # fmt: skip
"""What the names of body fields that shape the draw begin with (OpenAI, vLLM, llama.cpp)."""

NO_EFFORTS = ("none", "minimal", "low")
"""Values of `reasoning_effort` that may stand for no thinking: not every model that has the field can be told "none"."""

MOST_AT_ONCE, EMBEDDED_SLOTS = 256, 4
"""Requests at once where a system does not say."""

OPERATION = ("prices", "api_key_env", "timeout_s", "retries", "concurrency")
"""Fields that change how a system is reached and what it costs, and nothing of what it says."""

SystemName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class SystemsError(AnthrolabError):
    """A systems file with problems (a line for each), or a system that is not in it."""


class Prices(BaseModel):
    """USD per million tokens."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)

    def cost(self, usage: Usage) -> float:
        """USD for the counted tokens. Cached tokens are charged like others, so this is an upper bound."""
        return (usage.prompt_tokens * self.input + usage.completion_tokens * self.output) / 1e6


class System(BaseModel):
    """One entry of systems.yaml."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: SystemName = Field(description="how it is called on the command line and in the tables")
    endpoint: str = Field(description="'embedded', or the http(s) base URL of an OpenAI-compatible server")
    model: str = Field(min_length=1, description="the server's name for it; embedded: 'gemma3-270m' or a .gguf path")
    server: Literal["llama.cpp", "vllm", "openai"] = Field(description="decides how constraints on the form are sent")
    policy: Literal["chat", "transcript"] = Field(
        description="an instruct model in JSON, or a base model in plain lines"
    )
    thinking: bool | None = Field(
        default=None, description="true or false is sent as thinking_style says; null: not sent"
    )
    thinking_style: Literal["none", "enable_thinking", "reasoning_effort", "no_think_suffix"] = Field(
        default="none",
        description="enable_thinking: chat_template_kwargs; reasoning_effort: 'medium' or 'none', or the word in "
        "sampling.reasoning_effort; no_think_suffix: /think or /no_think after the last user message",
    )
    system_role: bool = Field(
        default=True,
        description="false: the server takes no system message; its text goes before the first user message",
    )
    sampling: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="sent in the body of every request; null: never sent, even where anthrolab would (temperature)",
    )
    max_tokens: int | None = Field(default=512, gt=0, description="length cap of a reply; null sends none")
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="what the server calls the length cap of a chat reply"
    )
    judge_max_tokens: int = Field(default=4096, gt=0, description="length cap of an answer about a chat: a judge's, a summary, a memory")
    partner: str | None = Field(default=None, description="the system that plays the other side; null is not itself")
    prices: Prices | None = Field(default=None, description="USD per million tokens")
    api_key_env: str | None = Field(default=None, description="the environment variable that holds the key")
    timeout_s: float = Field(default=120.0, gt=0, allow_inf_nan=False, description="seconds of one attempt")
    retries: int = Field(default=3, ge=0, le=20, description="further attempts after the first")
    concurrency: int | None = Field(
        default=None, ge=1, le=4096,
        description="most requests at once, to which their number grows while the server keeps up; embedded: the slots of its server; null: 256, embedded 4",
    )
    context: int = Field(default=4096, ge=256, description="embedded only: tokens that one request may have")

    @property
    def embedded(self) -> bool:
        """True if its server runs inside this process."""
        return self.endpoint == "embedded"

    @property
    def most_at_once(self) -> int:
        """The most requests at once; the slots of the embedded server."""
        return self.concurrency or (EMBEDDED_SLOTS if self.embedded else MOST_AT_ONCE)

    def request(
        self,
        *,
        messages: Sequence[Mapping[str, str]] | None = None,
        prompt: str | None = None,
        params: Mapping[str, Any] | None = None,
        salt: str = "",
    ) -> Request:
        """A request to this system: its sampling, length cap and thinking, then `params` over them.

        The one place where a request takes the form that the server wants, for speakers and judges alike.
        """
        if messages is not None:
            messages = messages if self.system_role else _without_system_role(messages)
            if self.thinking is not None and self.thinking_style == "no_think_suffix":
                messages = _with_suffix(messages, " /think" if self.thinking else " /no_think")
        return Request(self.model, messages=messages, prompt=prompt, params=self.body(params), salt=salt)

    def body(self, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What goes into the body of every request: sampling, length cap, thinking, and `params` over them."""
        body: dict[str, Any] = dict(self.sampling)
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        if self.thinking is not None and self.thinking_style == "enable_thinking":
            template = body.get("chat_template_kwargs")
            given = template if isinstance(template, dict) else {}
            body["chat_template_kwargs"] = {**given, "enable_thinking": self.thinking}
        if self.thinking is not None and self.thinking_style == "reasoning_effort":
            body.setdefault("reasoning_effort", "medium" if self.thinking else "none")
        body.update(params or {})
        if "max_tokens" in body:
            body[self.max_tokens_field] = body.pop("max_tokens")
        return {field: value for field, value in body.items() if self.sampling.get(field, value) is not None}

    def said_by(self) -> dict[str, Any]:
        """What decides what it says: all fields but where it is, how it is reached and what it costs, as JSON values."""
        return self.model_dump(mode="json", exclude={*OPERATION, "endpoint"})

    def as_judge(self) -> "System":
        """This system as a judge: greedy, with room for reasons, and nothing of its sampling that would make the
        same dialogue judged otherwise twice."""
        temperature = None if self.sampling.get("temperature", 0) is None else 0
        sampling = {**without_samplers(self.sampling), "temperature": temperature}
        return self.model_copy(update={"sampling": sampling, "max_tokens": self.judge_max_tokens})

    @model_validator(mode="after")
    def _fits_together(self) -> "System":
        # No message here repeats a value that could be a key: people paste keys into the wrong field.
        if not self.embedded:
            parts = urlsplit(self.endpoint)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError(
                    "endpoint: is neither 'embedded' nor a URL like http://localhost:8000/v1; write one of them"
                )
            if "@" in parts.netloc or parts.query or parts.fragment:
                raise ValueError(
                    "endpoint: holds a user, password or query; leave them out and name the key's variable in api_key_env"
                )
        elif self.server != "llama.cpp":
            raise ValueError("server: the embedded server is llama.cpp; write 'llama.cpp'")
        if self.api_key_env is not None:
            if self.embedded:
                raise ValueError("api_key_env: the embedded server needs no key; remove it")
            if not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,63}", self.api_key_env):
                raise ValueError(
                    "api_key_env: is no name of an environment variable (capitals, digits, _); "
                    "write the name, such as OPENAI_API_KEY, and never the key itself"
                )
        reserved = [field for field in self.sampling if field in RESERVED]
        if reserved:
            raise ValueError(
                f"sampling.{reserved[0]}: is set by anthrolab; remove it here (the length cap is max_tokens)"
            )
        if not _all_finite(self.sampling):
            raise ValueError("sampling: holds a number that is not finite; write a plain number")
        if self.thinking is not None and self.policy == "transcript":
            raise ValueError("thinking: a base model that continues a transcript has none; leave it null")
        if self.thinking is not None and self.thinking_style == "none":
            raise ValueError(
                "thinking: is set but thinking_style says not how to send it; "
                "write enable_thinking (vLLM, SGLang, llama.cpp), reasoning_effort (OpenAI) or no_think_suffix (Qwen3)"
            )
        effort = self.sampling.get("reasoning_effort")
        said = effort if self.thinking_style == "reasoning_effort" else None
        if (self.thinking is True and said == "none") or (self.thinking is False and said not in (None, *NO_EFFORTS)):
            raise ValueError(
                f"thinking: is {str(self.thinking).lower()} and sampling.reasoning_effort says otherwise; keep one "
                f"(no thinking can be sent as {', '.join(NO_EFFORTS)})"
            )
        if self.max_tokens_field == "max_completion_tokens" and self.policy == "transcript":
            raise ValueError("max_tokens_field: only chats have max_completion_tokens; leave it out for a transcript")
        return self


def default_systems_path() -> Path:
    """The systems file that comes with anthrolab."""
    return data_dir() / "systems.yaml"


def load_systems(path: Path) -> dict[str, System]:
    """All systems of a file, in its order, by name; SystemsError has a line `file: field: problem; fix` for each fault."""
    try:
        content = read_yaml(path)
    except YamlError as e:
        raise SystemsError(str(e)) from None
    content = content if isinstance(content, dict) else {}
    entries = content.get("systems")
    if not isinstance(entries, list) or not entries or list(content) != ["systems"]:
        raise SystemsError(
            f"{path}: has not the one field 'systems' with a list under it; write 'systems:' and '- name: ...' below"
        )
    systems: dict[str, System] = {}
    problems: list[str] = []
    for i, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, dict) else None
        where = f"{path}: systems[{i}]" + (f" ({name})" if isinstance(name, str) else "")
        if not isinstance(entry, dict):
            problems.append(f"{where}: is no mapping; write '- name: ...' with the other fields below it")
            continue
        try:
            system = System.model_validate(entry)
        except ValidationError as e:
            problems += [f"{where}: {line}" for line in explain(e, System)]
            continue
        if system.name in systems:
            problems.append(f"{where}: name: stands twice; give every system its own name")
        systems[system.name] = system
    if not problems:
        for system in systems.values():
            if system.partner is not None and system.partner not in systems:
                close = suggest(system.partner, systems)
                problems.append(
                    f"{path}: {system.name}: partner: no system '{system.partner}'{close}; name one of this file"
                )
    if problems:
        raise SystemsError("\n".join(problems))
    return systems


def find_system(systems: Mapping[str, System], name: str) -> System:
    """The system of that name; SystemsError with the likely spelling and the list."""
    if name not in systems:
        raise SystemsError(f"no system '{name}'{suggest(name, systems)}; there are: {', '.join(systems)}")
    return systems[name]


def find_partner(systems: Mapping[str, System], system: System, partner: str | None = None) -> System:
    """Who plays the other side: `partner` if given, else the system's own `partner`. SystemsError if neither is."""
    name = partner or system.partner
    if name is None:
        raise SystemsError(
            f"{system.name}: partner: names nobody; name the system that plays the other side "
            f"(the same one for all systems that are to be compared; there are: {', '.join(systems)})"
        )
    return find_system(systems, name)


def without_samplers(sampling: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """What of a system's `sampling` does not shape the draw."""
    return {field: value for field, value in sampling.items() if not field.startswith(SAMPLERS)}


def _without_system_role(messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """The messages with the text of the system's before the first user message, a blank line between."""
    system = [m["content"] for m in messages if m.get("role") == "system"]
    others = [dict(m) for m in messages if m.get("role") != "system"]
    first = next((m for m in others if m.get("role") == "user"), None)
    if first is None:
        return [{"role": "user", "content": "\n\n".join(system)}, *others] if system else others
    first["content"] = "\n\n".join([*system, first["content"]])
    return others


def _with_suffix(messages: Sequence[Mapping[str, str]], suffix: str) -> list[dict[str, str]]:
    copied = [dict(m) for m in messages]
    for message in reversed(copied):
        if message.get("role") == "user":
            message["content"] += suffix
            break
    return copied


def _all_finite(value: object) -> bool:
    if isinstance(value, dict):
        return all(_all_finite(v) for v in value.values())
    if isinstance(value, list):
        return all(_all_finite(v) for v in value)
    return not isinstance(value, float) or math.isfinite(value)
