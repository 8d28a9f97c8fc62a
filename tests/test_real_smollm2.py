"""A real instruct model, SmolLM2-135M in the embedded server, plays the chat policy: the wire and the contract.

What it says is poor; that every reply keeps to the form, and that z is not read anew at every ask, is the point.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from anthrolab.bench.run import generate
from anthrolab.bench.store import Run
from anthrolab.models.bundled import GEMMA
from anthrolab.models.client import Reply, Request
from anthrolab.models.local import EmbeddedServer
from anthrolab.models.opening import open_model
from anthrolab.models.systems import System
from anthrolab.runtime.policy import Answer
from tests.real_contract import (
    answer_in_turn,
    check_contract,
    check_reuse,
    logged_calls,
    small_skills,
    system_text,
    write_systems,
)
from tests.real_servers import CONTEXT, count_tokens, find_smollm2


@pytest.fixture
def entry() -> dict[str, Any]:
    """SmolLM2 as an entry of systems.yaml."""
    return {
        "name": "smollm2", "endpoint": "embedded", "model": find_smollm2(), "server": "llama.cpp", "policy": "chat",
        "partner": "gemma", "context": CONTEXT, "concurrency": 2, "max_tokens": 120, "timeout_s": 600.0,
    }  # fmt: skip


def test_every_reply_keeps_the_contract(entry: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    system = System.model_validate(entry)

    async def work() -> tuple[list[Answer], list[tuple[Request, Reply]]]:
        async with open_model(system) as client:
            return await answer_in_turn(system, client)

    check_contract(*asyncio.run(work()))
    assert capfd.readouterr().err == "", "llama.cpp says so where it drops a part of the schema"


def test_the_system_text_is_read_once(entry: dict[str, Any]) -> None:
    system = System.model_validate({**entry, "max_tokens": 16})

    async def work() -> tuple[list[tuple[Request, Reply]], int]:
        async with EmbeddedServer(system.model, context=CONTEXT, slots=1) as server, server.client() as client:
            _, seen = await answer_in_turn(system, client)
            root = server.url.removesuffix("/v1")
            return seen, count_tokens(root, system_text(seen[0][0]), server.api_key)

    seen, tokens = asyncio.run(work())
    assert tokens > 300
    check_reuse(seen, tokens)


def test_a_whole_run_is_made_once(entry: dict[str, Any], tmp_path: Path) -> None:
    """Against the bundled base model: two embedded servers and both policies in one run."""
    gemma = {**entry, "name": "gemma", "model": GEMMA, "policy": "transcript"}
    systems, run, said = write_systems(tmp_path / "systems.yaml", entry, gemma), tmp_path / "r", []
    options: dict[str, Any] = {"cases": 2, "max_messages": 4, "systems_file": systems, "skills_dir": small_skills(tmp_path / "skills")}
    counts = generate(run, "smollm2", **options, progress=said.append)
    assert counts == {"planned": 2, "done": 2, "failed": 0, "missing": 0}
    calls = logged_calls(run)
    for dialogue in Run(run).dialogues().values():
        assert dialogue.asks
        assert any(ask.decision for ask in dialogue.asks)
        assert {ask.call for ask in dialogue.asks} <= {row["key"] for row in calls}
    chats = [row for row in calls if row["model"] == entry["model"]]
    assert 0 < len(chats) < len(calls)
    assert {row["identity"].split(":")[1] for row in chats} == {Path(entry["model"]).name}
    assert {row["params"]["response_format"]["type"] for row in chats} == {"json_schema"}

    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    said.clear()
    assert generate(run, "smollm2", **options, progress=said.append) == counts
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before
    assert not [line for line in said if "dialogues to have" in line]
