"""Families of models, read from their names: a judge is kind to its own family, so a run where both are of one says so.

Self-preference is known of model judges (Zheng et al. 2023, Panickssery et al. 2024). A name is all that there is to go
by: a model served under a name that says nothing is of no known family, and nothing is said of it.
"""

import re
from collections.abc import Mapping
from typing import Any

from anthrolab.models.systems import System

FAMILIES: Mapping[str, str] = {
    "qwen": r"qwen|qwq|qvq|tongyi|通义|千问",
    "llama": r"(?<!o)llama(?!\W?cpp)|vicuna|alpaca",
    "gemma": r"gemma",
    "gemini": r"gemini",
    "gpt": r"(?<![a-z])(?:chat)?gpt(?!-?neo|-?j\b|4all)|^o[1345](?![a-z])|davinci",
    "claude": r"claude",
    "deepseek": r"deepseek",
    "glm": r"glm|zhipu|codegeex|智谱",
    "mistral": r"mi[sx]tral|(?:code|mini|magi|dev|math)stral|(?:pi|vo)xtral",
    "yi": r"(?<![a-z])yi(?![a-z])|零一万物",
    "internlm": r"intern(?:lm|vl)|书生",
    "phi": r"(?<![a-z])phi(?![a-z])",
    "smollm": r"smol(?:lm|vlm)",
    "kimi": r"kimi|moonshot",
    "hunyuan": r"hunyuan|混元",
    "doubao": r"doubao|豆包|seed-oss|skylark",
    "baichuan": r"baichuan|百川",
    "minicpm": r"minicpm",
    "minimax": r"minimax|(?<![a-z])abab\d",
    "ernie": r"ernie|文心",
    "grok": r"grok",
    "command": r"(?<![a-z])command-(?:r|a|light|nightly)|(?<![a-z])aya(?![a-z])",
    "nemotron": r"nemotron",
    "granite": r"granite",
    "falcon": r"falcon",
    "olmo": r"olmo",
    "bloom": r"bloom(?!berg)",
    "mimo": r"(?<![a-z])mimo(?![a-z])",
    "step": r"(?<![a-z])step-\d|stepfun",
    "spark": r"sparkdesk|(?<![a-z])spark-|讯飞",
}
"""By family what a name of it holds, in lower case."""


def families(model: str) -> frozenset[str]:
    """The families that a model's name speaks of; two for a distillation, none if it says nothing.

    Of a path only the file's own name counts (folders are called after users and programs), of `org/model` the model
    and, where that says nothing, the organisation.

    >>> sorted(families("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"))
    ['deepseek', 'qwen']
    >>> families("/home/yi/llama.cpp/models/my-model-q4_k_m.gguf")
    frozenset()
    """
    name = model.strip().lower().replace("\\", "/").rstrip("/")
    cached = re.search(r"models--(.+?)--([^/]+)", name)  # a folder of the Hugging Face cache, whose last part is a hash
    parts = list(cached.groups()) if cached else name.split("/")
    organisation = len(parts) == 2 and parts[0] not in ("", ".", "..", "~") and not parts[1].endswith(".gguf")
    for part in (parts[-1], parts[0]) if organisation else (parts[-1],):
        if found := _spoken_of(part):
            return found
    return frozenset()


def same_family(judge: System | Mapping[str, Any], tested: System | Mapping[str, Any]) -> str | None:
    """One line that warns of a judge that is the tested model itself or of its family; None if it is of neither.

    Either may be a system's entry in a manifest. A model whose name at the server says nothing goes by what the systems
    file calls it.
    """
    one, two = (s.model_dump(mode="json") if isinstance(s, System) else s for s in (judge, tested))
    who = f"judge {one['name']} and tested system {two['name']}"
    harm = "a judge may favour its own kind, so read its scores beside another judge's"
    if one.get("model") and all(one.get(field) == two.get(field) for field in ("model", "endpoint")):
        return f"{who} are the same model ({one['model']}): {harm}"
    shared = sorted(_of(one) & _of(two))
    return f"{who} are of one family ({', '.join(shared)}): {harm}" if shared else None


def family_warnings(manifest: Mapping[str, Any]) -> list[str]:
    """The warnings about all model judges of a run, by its manifest, in the order of judging."""
    tested = manifest["settings"]["system"]
    judges = [j["system"] for j in manifest["judges"].values() if j.get("kind") == "model"]
    return [line for judge in judges if (line := same_family(judge, tested))]


def _of(system: Mapping[str, Any]) -> frozenset[str]:
    return families(str(system.get("model", ""))) or families(str(system["name"]))


def _spoken_of(name: str) -> frozenset[str]:
    return frozenset(family for family, pattern in FAMILIES.items() if re.search(pattern, name))
