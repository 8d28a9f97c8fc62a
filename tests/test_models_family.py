"""Families of models by their names, and the warning where a judge is of the tested system's."""

import json
from typing import Any

import pytest

from anthrolab.models.family import families, family_warnings, same_family
from anthrolab.models.systems import System, default_systems_path, load_systems

NAMES = {
    "qwen3-8b": "qwen", "Qwen/Qwen2.5-72B-Instruct-AWQ": "qwen", "Qwen/QwQ-32B": "qwen", "codeqwen1.5-7b-chat": "qwen",
    "qwen-max-latest": "qwen", "Qwen3.5-397B": "qwen", "meta-llama/Llama-3.1-8B-Instruct": "llama", "codellama-34b": "llama",
    "TinyLlama-1.1B-Chat": "llama", "lmsys/vicuna-13b-v1.5": "llama", "gemma3-270m": "gemma", "google/gemma-3-27b-it": "gemma",
    "medgemma-4b-it": "gemma", "gemini-2.5-pro": "gemini", "gpt-4.1-mini": "gpt", "openai/gpt-oss-120b": "gpt",
    "chatgpt-4o-latest": "gpt", "gpt2-xl": "gpt", "o3-mini": "gpt", "o1": "gpt", "openai/o4-mini": "gpt",
    "claude-sonnet-4-5": "claude", "anthropic/claude-3.5-haiku": "claude", "deepseek-chat": "deepseek",
    "deepseek-ai/DeepSeek-V3.1": "deepseek", "THUDM/chatglm3-6b": "glm", "zai-org/GLM-4.6": "glm", "glm-4-flash": "glm",
    "mistralai/Mixtral-8x7B-Instruct-v0.1": "mistral", "open-mistral-nemo": "mistral", "codestral-latest": "mistral",
    "Ministral-8B": "mistral", "01-ai/Yi-1.5-34B-Chat": "yi", "yi-large": "yi", "internlm/internlm3-8b-instruct": "internlm",
    "OpenGVLab/InternVL3-8B": "internlm", "microsoft/phi-4": "phi", "Phi-3.5-mini-instruct": "phi", "phi4-mini": "phi",
    "HuggingFaceTB/SmolLM2-135M-Instruct": "smollm", "moonshotai/Kimi-K2-Instruct": "kimi", "moonshot-v1-8k": "kimi",
    "tencent/Hunyuan-A13B-Instruct": "hunyuan", "doubao-seed-1-6": "doubao", "ByteDance-Seed/Seed-OSS-36B-Instruct": "doubao",
    "baichuan-inc/Baichuan2-13B-Chat": "baichuan", "openbmb/MiniCPM3-4B": "minicpm", "MiniMaxAI/MiniMax-M2": "minimax",
    "baidu/ERNIE-4.5-21B-A3B": "ernie", "x-ai/grok-4": "grok", "c4ai-command-r-plus": "command", "XiaomiMiMo/MiMo-7B-RL": "mimo",
}  # fmt: skip


@pytest.mark.parametrize(("name", "family"), NAMES.items())
def test_a_name_tells_its_family(name: str, family: str) -> None:
    assert families(name) == {family}


@pytest.mark.parametrize(
    ("name", "both"),
    [
        ("deepseek-r1-distill-qwen-7b", {"deepseek", "qwen"}),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", {"deepseek", "llama"}),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", {"deepseek", "qwen"}),
        ("nvidia/Llama-3.1-Nemotron-70B-Instruct", {"llama", "nemotron"}),
    ],
)
def test_a_distillation_is_of_both_families(name: str, both: set[str]) -> None:
    assert families(name) == both


@pytest.mark.parametrize(
    "name",
    [
        "", "m", "scripted", "my-model", "dolphin-2.9", "sapphire-7b", "philosopher", "yita-7b", "bayiling", "ollama",
        "llama.cpp", "/opt/llama.cpp/models/ours-q4_k_m.gguf", "/home/yi/phi/model.gguf", "models/ours.gguf", "./qwen/ours",
        "gpt-neo-1.3b", "EleutherAI/gpt-j-6b", "bloomberg-50b", "austral-7b", "foo1", "demo3-mini",
    ],
)  # fmt: skip
def test_a_name_that_says_nothing_is_of_no_family(name: str) -> None:
    assert families(name) == frozenset()


@pytest.mark.parametrize(
    ("path", "family"),
    [
        ("models/Qwen3-8B-Q4_K_M.gguf", "qwen"),
        ("/data/llama.cpp/gemma-3-270m-it-Q8_0.gguf", "gemma"),
        ("C:\\Users\\yi\\Mistral-7B.gguf", "mistral"),
        ("/srv/models/Qwen3-8B/", "qwen"),
        ("/home/someone/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/9c925d64d72725edaf899c6cb9c377fd0709d9c5", "qwen"),
        ("moonshotai/base-v2", "kimi"),
    ],
)
def test_of_a_path_the_last_part_counts_and_an_organisation_where_the_model_says_nothing(path: str, family: str) -> None:
    assert families(path) == {family}


def system(name: str, model: str, endpoint: str = "http://h/v1") -> System:
    return System(name=name, endpoint=endpoint, model=model, server="vllm", policy="chat")


def test_a_judge_of_the_tested_family_is_warned_about_in_one_line() -> None:
    line = same_family(system("oracle", "Qwen/Qwen3-235B"), system("toy", "deepseek-r1-distill-qwen-7b", "http://g/v1"))
    assert line is not None and "\n" not in line
    assert "judge oracle and tested system toy are of one family (qwen)" in line
    assert same_family(system("oracle", "gpt-4.1"), system("toy", "Qwen/Qwen3-8B")) is None
    assert same_family(system("oracle", "gemini-2.5-pro"), system("toy", "gemma3-270m")) is None


def test_a_model_under_a_name_that_says_nothing_goes_by_the_systems_file() -> None:
    assert "(qwen)" in (same_family(system("qwen3-judge", "default"), system("toy", "Qwen/Qwen3-8B", "http://g/v1")) or "")
    assert same_family(system("qwen-beater", "gpt-4.1"), system("toy", "Qwen/Qwen3-8B")) is None


def test_a_model_that_judges_itself_is_warned_about_whatever_its_family() -> None:
    assert "are the same model (m)" in (same_family(system("oracle", "m"), system("toy", "m")) or "")
    assert same_family(system("oracle", "m"), system("toy", "m", "http://other/v1")) is None


def test_a_manifest_gives_the_warnings_of_its_model_judges() -> None:
    def judge(name: str, model: str) -> dict[str, Any]:
        return {"kind": "model", "system": system(name, model).model_dump(mode="json")}

    manifest = {
        "settings": {"system": system("toy", "Qwen/Qwen3-8B", "http://g/v1").model_dump(mode="json")},
        "judges": {"rules": {"kind": "rules"}, "own": judge("own", "qwen-max"), "other": judge("other", "gpt-4.1")},
    }
    warnings = family_warnings(manifest)
    assert [w.split(" and ")[0] for w in warnings] == ["judge own"]
    assert family_warnings(json.loads(json.dumps(manifest))) == warnings
    old = {"settings": {"system": {"name": "toy", "policy": "chat"}}, "judges": {"own": judge("own", "qwen-max"), "old": {}}}
    assert family_warnings(old) == []


def test_the_systems_that_come_with_anthrolab_are_of_a_known_family() -> None:
    assert {families(s.model) for s in load_systems(default_systems_path()).values()} == {frozenset({"gemma"})}
