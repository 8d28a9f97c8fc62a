"""A tuned model as a system: one entry of a systems file, written by one call."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue, ValidationError

from anthrolab.cards.yaml_edit import scalar
from anthrolab.files import read_text, write_atomic
from anthrolab.models.local import find_model
from anthrolab.models.systems import System, SystemsError, default_systems_path, load_systems
from anthrolab.yaml_files import explain

SAMPLING: Mapping[str, JsonValue] = {"temperature": 0.8, "top_p": 0.95}
"""A tuned model's replies are short and their form is fixed: plain sampling does, without penalties that would fall on the
marks of the JSON."""

CONTEXT, SLOTS, MAX_TOKENS = 4096, 4, 256


def add_system(
    systems_file: Path,
    name: str,
    *,
    partner: str,
    gguf: Path | None = None,
    endpoint: str | None = None,
    model: str | None = None,
    server: Literal["vllm", "openai"] = "vllm",
    sampling: Mapping[str, JsonValue] = SAMPLING,
    max_tokens: int = MAX_TOKENS,
    context: int = CONTEXT,
    concurrency: int | None = None,
    comment: str | None = None,
) -> System:
    """Append a chat system to a systems file, and return it. A file that is not there begins as a copy of our own.

    Either `gguf`, a file for the embedded server (4096 tokens a request and 4 at once unless said otherwise), or `endpoint`
    and `model`: a server of your own and its name for the checkpoint (`server`: "vllm", or "openai" for `transformers serve`).
    partner: the system on the other side, one of the file or `name` itself. comment: a line above the entry.
    Everything else in the file stays as it was, comments too. The same entry again changes nothing; another entry of that
    name, or one that the file would not take, is a SystemsError, and nothing is written.
    """
    if (gguf is None) == (endpoint is None) or (endpoint is None) != (model is None):
        raise SystemsError(f"{name}: give either gguf, or endpoint and model")
    fields: dict[str, Any] = {"name": name}
    if gguf is not None:
        path, _ = find_model(str(gguf))
        fields |= {"endpoint": "embedded", "model": str(path), "server": "llama.cpp"}
    else:
        fields |= {"endpoint": endpoint, "model": model, "server": server}
    fields |= {"policy": "chat", "system_role": True, "sampling": dict(sampling), "max_tokens": max_tokens, "partner": partner}
    if gguf is not None:
        fields["context"] = context
    if gguf is not None or concurrency is not None:
        fields["concurrency"] = concurrency or SLOTS
    try:
        wanted = System.model_validate(fields)
    except ValidationError as e:
        raise SystemsError("\n".join(f"{name}: {line}" for line in explain(e, System))) from None
    source = systems_file if systems_file.exists() else default_systems_path()
    before = load_systems(source)
    if name in before:
        if before[name] != wanted:
            raise SystemsError(f"{source}: {name}: is there already, with other fields; take another name, or remove that entry")
        if source == systems_file:
            return wanted
    text = read_text(source) if source != systems_file else systems_file.read_bytes().decode("utf-8")
    _write(systems_file, text if name in before else _with_entry(text, fields, comment), {**before, name: wanted})
    return wanted


def _with_entry(text: str, fields: Mapping[str, Any], comment: str | None) -> str:
    """The text with the entry behind its last line, as far to the right as the entries before it."""
    from ruamel.yaml import YAML

    systems = YAML(typ="safe", pure=True).compose(text).value[0][1]
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = " " * systems.start_mark.column
    lines = [*(["# " + " ".join(comment.split())] if comment else []), *_lines(fields)]
    joint = "" if text.endswith(newline) else newline
    return text + joint + newline + "".join(indent + line + newline for line in lines)


def _lines(fields: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for field, value in fields.items():
        if isinstance(value, dict) and value:
            lines += [f"{field}:", *(f"  {scalar(name)}: {_value(part)}" for name, part in value.items())]
        else:
            lines.append(f"{field}: {_value(value)}")
    return ["- " + lines[0], *("  " + line for line in lines[1:])]


def _value(value: Any) -> str:
    return scalar(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _write(file: Path, text: str, meant: Mapping[str, System]) -> None:
    """Replace the file, but only by one that reads as what was meant."""
    trial = file.with_name(f".{file.name}.new")
    write_atomic(trial, text)
    try:
        found = load_systems(trial)
        if list(found.items()) != list(meant.items()):
            raise SystemsError(f"{file}: the entry cannot be added in this layout; write the systems as a list of '- name: ...', or add it in an editor")
        write_atomic(file, text)
    except SystemsError as e:
        raise SystemsError(str(e).replace(str(trial), str(file))) from None
    finally:
        trial.unlink(missing_ok=True)
