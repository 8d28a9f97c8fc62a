"""ShareGPT export, the format that LLaMA-Factory, Axolotl and others read.

    [{"id": "gold-b01/4", "conversations": [{"from": "system", "value": "<z>"}, {"from": "human", "value": "<snapshot>"},
                                            {"from": "gpt", "value": "<decision>"}]}]

One conversation a sample. A whole chat as one conversation is not exported: it could hold neither the times, nor the
silences, nor the unsent drafts, and both prompts of an ask are rendered anew each time.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from anthrolab.loop.sft.samples import Sample

_FROM = {"system": "system", "user": "human", "assistant": "gpt"}


def sharegpt(samples: Iterable[Sample]) -> str:
    """The samples as one JSON list, a conversation a line."""
    lines = [json.dumps({"id": s.id, "conversations": _turns(s)}, ensure_ascii=False) for s in samples]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def messages_of(conversation: Mapping[str, Any]) -> list[dict[str, str]]:
    """A conversation as role and content again."""
    roles = {name: role for role, name in _FROM.items()}
    turns: Sequence[Mapping[str, str]] = conversation["conversations"]
    return [{"role": roles[turn["from"]], "content": turn["value"]} for turn in turns]


def _turns(sample: Sample) -> list[dict[str, str]]:
    prompt, completion = sample.messages()
    return [{"from": _FROM[m["role"]], "value": m["content"]} for m in (*prompt, *completion)]
