"""A tiny random Gemma 3 with a tokenizer of bytes, and small samples for it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from anthrolab.loop.sft.samples import Sample
from anthrolab.training.settings import SFTSettings

SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
NAMES = {"a": "林晓雯", "b": "周子航"}
LINES = ["咋了", "在吃饭", "哈哈哈", "等会儿说", "好", "明天行不", "嗯", "我刚到家"]


@cache
def tiny_vocabulary() -> int:
    """How many tokens the tiny tokenizer has."""
    return len(tiny_tokenizer())


def tiny_tokenizer() -> Any:
    """One token a byte, and Gemma's special tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
    from tokenizers.models import BPE
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *alphabet])}
    tokenizer = Tokenizer(BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>", unk_token="<unk>", padding_side="left"
    )


def tiny_model(window: int = 24, layers: int = 3, seed: int = 0) -> Any:
    """Random weights; two sliding layers of `window` tokens and a full one."""
    import torch
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    torch.manual_seed(seed)
    config = Gemma3TextConfig(
        vocab_size=tiny_vocabulary(), hidden_size=32, intermediate_size=64, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=1, head_dim=16, sliding_window=window, query_pre_attn_scalar=16, max_position_embeddings=4096,
        layer_types=["sliding_attention"] * (layers - 1) + ["full_attention"], pad_token_id=0, eos_token_id=1, bos_token_id=2,
    )  # fmt: skip
    return Gemma3ForCausalLM(config)


def tiny_base(folder: Path, **options: Any) -> Path:
    """Model and tokenizer in a folder, as transformers keeps them."""
    tiny_model(**options).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def sample(number: int, ask: int, pair: str = "p01+p02", system: str = "", completion: str | None = None) -> Sample:
    """The `ask`-th decision of speaker a in dialogue `number`: the history grows with the asks, every other is a silence."""
    history = "\n".join(f"[20:31:{i:02d}] {NAMES['ab'[i % 2]]}: {LINES[(number + i) % len(LINES)]}" for i in range(1 + ask))
    now = f"2026-03-06T20:31:{10 + ask:02d}"
    content = "" if ask % 2 else LINES[(number + ask) % len(LINES)]
    answer = json.dumps(
        {"role": NAMES["a"], "response": {"content": content, "timestamp": now, "end": not content}}, ensure_ascii=False
    )
    return Sample(
        id=f"d{number}/{ask}", system=system or f"你是{NAMES['a']}，第{number}场。", user=f"{history}\n现在是{now}。",
        completion=answer if completion is None else completion, dialogue_id=f"d{number}", ask=ask, speaker="a", binding="b01",
        scenario="s01", category="Sport", pair=pair, directed=pair.replace("+", ">"), source="gold", round=None,
    )  # fmt: skip


def write_data(folder: Path, dialogues: int = 4, asks: int = 4) -> Path:
    """train.jsonl and held_out.jsonl with one dialogue more, of another pair."""
    train = [sample(n, k) for n in range(dialogues) for k in range(asks)]
    held_out = [sample(dialogues, k, pair="p03+p04") for k in range(asks)]
    folder.mkdir(parents=True, exist_ok=True)
    for name, samples in (("train", train), ("held_out", held_out)):
        text = "".join(json.dumps(s.row(), ensure_ascii=False) + "\n" for s in samples)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


def settings(tmp: Path, **changes: Any) -> SFTSettings:
    """A training of some steps on the tiny base in `tmp`, which is made if it is not there."""
    if not (tmp / "base" / "config.json").exists():
        tiny_base(tmp / "base")
    if not (tmp / "data" / "train.jsonl").exists():
        write_data(tmp / "data")
    values: dict[str, Any] = {
        "base": str(tmp / "base"), "data": tmp / "data", "out": tmp / "out", "dtype": "float32", "threads": 1, "lora_rank": 4,
        "lora_alpha": 16, "learning_rate": 1e-2, "token_budget": 900, "accumulation": 2, "save_steps": 2, "overfit_steps": 12,
        "overfit_share": 0.95, "max_steps": 6, "epochs": 6.0,
    }  # fmt: skip
    return SFTSettings.of(**{**values, **changes})
