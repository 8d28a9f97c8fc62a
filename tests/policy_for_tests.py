"""A tiny policy that really chats: a random Gemma 3 that was taught, in seconds, to write transcript lines of one speaker."""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.models.scripted import Call
from anthrolab.training.heavy import load_torch
from tests.training_for_tests import tiny_model, tiny_tokenizer

CASE = "b01-a"
SAID = ("好呀", "在吃饭", "哈哈哈", "那就明天吧", "我也是这么想的", "嗯嗯 你说得对，我一会儿再看看，回头跟你讲", "")
"""What it says, as often as one another; nothing: the line is begun for the partner, which is silence."""

STAMPS = ("42:20", "43:05", "44:50")
"""Minutes and seconds that it writes, in the hour of the case."""


def names_of(case: str = CASE) -> tuple[str, str]:
    """The tested speaker of a case, and the partner."""
    library = load_library(default_cards_dir())
    binding = library.bindings[case.rsplit("-", 1)[0]]
    a, b = library.personas[binding.persona_a].name, library.personas[binding.persona_b].name
    return (a, b) if case.endswith("a") else (b, a)


def lines_of(case: str = CASE) -> list[str]:
    """Every line that it can write after `[19:`, as two or three pieces joined."""
    return [f"{stamp}] {said}" for stamp in STAMPS for said in _said(case)]


def _said(case: str) -> list[str]:
    own, other = names_of(case)
    return [f"{own}: {said}\n" if said else f"{other}:\n" for said in SAID]


def speaking_tokenizer(case: str = CASE) -> Any:
    """The tokenizer of bytes with a token for every piece of such a line."""
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([f"{stamp}] " for stamp in STAMPS] + _said(case))
    return tokenizer


def speaking_policy(folder: Path, case: str = CASE, steps: int = 120, seed: int = 0) -> Path:
    """A base model in a folder that goes on with a transcript in two tokens: a time, and what is said."""
    torch = load_torch(1)
    tokenizer = speaking_tokenizer(case)
    model = tiny_model(seed=seed)
    model.resize_token_embeddings(len(tokenizer))
    drawn = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    said = [tokenizer.convert_tokens_to_ids(text) for text in _said(case)]
    stamps = [tokenizer.convert_tokens_to_ids(f"{stamp}] ") for stamp in STAMPS]
    for step in range(steps):
        context = 20 + 90 * (step % 20)
        rows = torch.randint(6, 260, (2, context), generator=drawn)
        ends = [[stamps[int(torch.randint(3, (1,), generator=drawn))], said[int(torch.randint(len(said), (1,), generator=drawn))]] for _ in range(2)]
        ids = torch.cat([rows, torch.tensor(ends)], 1)
        labels = ids.clone()
        labels[:, :context] = -100
        model(input_ids=ids, labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        optimiser.param_groups[0]["lr"] = 1e-2 * (1 - step / steps)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def partner(call: Call) -> str:
    """A scripted chat partner that keeps the contract and answers after two minutes."""
    system, user = call.body["messages"][0]["content"], call.body["messages"][-1]["content"]
    found = re.search(r'"role": "([^"]+)"', system)
    assert found is not None
    now = re.findall(r"现在是 ?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)", user)[-1]
    at = (datetime.fromisoformat(now) + timedelta(minutes=2)).isoformat()
    lines = sum(line.startswith("[") for line in user.splitlines())
    said = f"我在听，你接着说{lines}"
    return json.dumps({"role": found[1], "response": {"content": said, "timestamp": at, "end": False}}, ensure_ascii=False)
