"""A real vLLM server (CPU build) and what our users rely on with it: form, prefix reuse, and what happens when it dies.

The server is started once for the module, and once more after it was killed on purpose. Its log stands in the
report of a test that fails.
"""

import asyncio
import json
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from anthrolab.bench.run import generate
from anthrolab.bench.store import Run
from anthrolab.models.client import ModelError, Reply, Request
from anthrolab.models.opening import open_model
from anthrolab.models.systems import System
from anthrolab.runtime.policies import Player
from anthrolab.runtime.policy import Answer
from anthrolab.runtime.schedule import Asked, Sent
from anthrolab.runtime.seat import seats
from tests.cards_for_tests import make_persona, make_scenario
from tests.real_contract import (
    Observed,
    answer_in_turn,
    check_contract,
    check_reuse,
    logged_calls,
    small_skills,
    system_text,
    write_systems,
)
from tests.real_servers import BLOCK, ROOT, Vllm, answers, count_tokens, free_port


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vllm]:
    server = Vllm(tmp_path_factory.mktemp("vllm") / "log")
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def vllm(started: Vllm) -> Vllm:
    """The server, running."""
    started.start()
    return started


def entry(server: Vllm, policy: str, **changes: Any) -> dict[str, Any]:
    """The server's model as an entry of systems.yaml, named after its policy."""
    return {
        "name": policy, "endpoint": f"{server.url}/v1", "model": "gemma", "server": "vllm", "policy": policy,
        "partner": "transcript", "sampling": {"temperature": 1.0}, "max_tokens": 120, "retries": 1, "timeout_s": 300.0,
        **changes,
    }  # fmt: skip


async def in_turn(system: System, name: str = "林晓雯") -> tuple[list[Answer], list[tuple[Request, Reply]]]:
    async with open_model(system) as client:
        return await answer_in_turn(system, client, name)


def test_every_chat_reply_keeps_the_contract(vllm: Vllm) -> None:
    check_contract(*asyncio.run(in_turn(System.model_validate(entry(vllm, "chat")))))


def test_the_system_text_is_read_once(vllm: Vllm) -> None:
    _, seen = asyncio.run(in_turn(System.model_validate(entry(vllm, "chat", max_tokens=8, retries=0)), name="只在这里的人"))  # cut, and not drawn again
    tokens = count_tokens(vllm.url, system_text(seen[0][0]))
    assert tokens >= 3 * BLOCK
    check_reuse(seen, tokens // BLOCK * BLOCK)


@pytest.mark.parametrize(
    ("name", "partner", "start"),
    [
        ("林晓雯", "周子航", datetime(2026, 3, 6, 20, 31)),
        ("A.J.(小)", "[小]{2}^$", datetime(2026, 3, 6, 20, 31)),
        ("小-鱼 #1", "A.J.(小)", datetime(2026, 3, 6, 23, 55)),
    ],
)
def test_every_transcript_line_can_be_read(vllm: Vllm, name: str, partner: str, start: datetime) -> None:
    people = make_persona(name=name), make_persona("p91", name=partner)
    table = seats(*people, make_scenario(start=start))
    system = System.model_validate(entry(vllm, "transcript", max_tokens=400))  # more than 60 characters can take
    ask = Asked("a", 25, (Sent("b", "周末有空没", 0), Sent("a", "有啊 咋了", 25)), None)

    async def work() -> tuple[list[Answer], list[tuple[Request, Reply]]]:
        async with open_model(system) as client:
            observed = Observed(client)
            policies = [Player(system, 600, 12).sit(table["a"], observed, f"0/b90-a/{i}") for i in range(6)]
            return list(await asyncio.gather(*(p.decide(ask) for p in policies))), observed.seen

    found, seen = asyncio.run(work())
    assert all("structured_outputs" in request.params for request, _ in seen)
    assert len(seen) == len(found), "no line had to be asked for twice"
    assert [answer.error or answer.recovered for answer in found if answer.error or answer.recovered] == []


@pytest.fixture(scope="module")
def finished(started: Vllm, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, int], int]:
    """A run of the chat policy against the transcript policy: its folder, systems, counts, and requests served."""
    started.start()
    folder = tmp_path_factory.mktemp("whole")
    systems = write_systems(folder / "systems.yaml", entry(started, "chat"), entry(started, "transcript"))
    before = started.served()
    skills = small_skills(folder / "skills")
    counts = generate(folder / "r", "chat", cases=2, max_messages=4, seed=5, systems_file=systems, skills_dir=skills, progress=print)
    return folder / "r", systems, counts, started.served() - before


def test_a_whole_run_is_made_once(vllm: Vllm, finished: tuple[Path, Path, dict[str, int], int]) -> None:
    run, systems, counts, served = finished
    assert counts == {"planned": 2, "done": 2, "failed": 0, "missing": 0}
    calls = logged_calls(run)
    redrawn = sum(row.get("failed", []).count(trouble) for row in calls for trouble in ("length", "thought_only"))
    assert len(calls) + redrawn == served
    for dialogue in Run(run).dialogues().values():
        assert dialogue.asks
        assert any(ask.decision for ask in dialogue.asks)
        assert {ask.call for ask in dialogue.asks} <= {row["key"] for row in calls}
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    asked = vllm.served()
    skills = run.parent / "skills"
    again = generate(run, "chat", cases=2, max_messages=4, seed=5, systems_file=systems, skills_dir=skills, progress=print)
    assert again == counts
    assert vllm.served() == asked
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before


def test_no_request_carries_a_seed(finished: tuple[Path, Path, dict[str, int], int]) -> None:
    """vLLM's CPU build may die of one (see the last test)."""
    calls = logged_calls(finished[0])
    assert {"messages" in row for row in calls} == {True, False}, "both policies were asked"
    assert [row for row in calls if "seed" in row["params"]] == []


def test_a_run_survives_the_death_of_its_server(vllm: Vllm, tmp_path: Path) -> None:
    """Three dialogues, one at a time: whatever the model says, two have not begun after the first two replies."""
    systems = write_systems(tmp_path / "systems.yaml", entry(vllm, "transcript", concurrency=1))
    run, counts = tmp_path / "r", {}

    def work() -> None:
        counts.update(generate(run, "transcript", cases=3, max_messages=3, systems_file=systems, progress=print))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive() and sum(p.read_bytes().count(b"\n") for p in run.glob("calls/*")) < 2:
        time.sleep(0.05)
    vllm.kill()
    thread.join(timeout=300)
    assert not thread.is_alive(), "the run did not end by itself"
    assert counts["planned"] == 3
    assert counts["failed"] >= 1
    failures = [json.loads(line) for line in (run / "failures.jsonl").read_text("utf-8").splitlines()]
    assert {row["fault"] for row in failures} == {"unreachable"}
    assert all(vllm.url in row["error"] for row in failures)
    done = Run(run).dialogues()
    assert len(done) == counts["done"] == counts["planned"] - counts["failed"] - counts["missing"]
    assert not {row["dialogue_id"] for row in failures} & set(done)

    on_disk = {p: p.read_bytes() for p in (run / "calls").iterdir()}
    paid = len(logged_calls(run))
    assert paid >= 2
    vllm.start()
    again = generate(run, "transcript", cases=3, max_messages=3, systems_file=systems, progress=print)
    assert again == {"planned": 3, "done": 3, "failed": 0, "missing": 0}
    assert all(p.read_bytes().startswith(content) for p, content in on_disk.items())
    calls = logged_calls(run)
    assert len({row["key"] for row in calls}) == len(calls) == paid + vllm.served(), "a reply on disk was asked for again"
    assert (run / "failures.jsonl").read_text("utf-8") == ""


HOLDER = """
    import sys, time
    from pathlib import Path
    from tests.real_servers import guarded

    guarded([sys.executable, "-m", "http.server", sys.argv[1], "--bind", "127.0.0.1"], Path(sys.argv[2]))
    time.sleep(120)
"""


def test_a_killed_test_run_leaves_no_server_behind(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    command = [sys.executable, "-c", textwrap.dedent(HOLDER), url.rstrip("/").split(":")[2], str(tmp_path / "log")]
    holder = subprocess.Popen(command, cwd=ROOT)
    while not answers(url):
        assert holder.poll() is None
        time.sleep(0.05)
    holder.kill()
    holder.wait()
    end = time.monotonic() + 60
    while answers(url):
        assert time.monotonic() < end, "the server outlived the tests"
        time.sleep(0.05)


def test_an_engine_that_a_seed_killed_is_a_typed_error(vllm: Vllm) -> None:
    """Last, since the server does not outlive it: vLLM's CPU build dies of a seed once it reads a prompt in parts.

    If it survives this one day, vLLM may be sent seeds as llama.cpp is.
    """
    system = System.model_validate(entry(vllm, "transcript"))

    async def work() -> list[ModelError]:
        errors = []
        async with open_model(system) as client:
            for prompt, params in (("今天吃啥？" * 900, {"seed": 1}), ("你好", {})):
                with pytest.raises(ModelError) as caught:
                    await client.ask(system.request(prompt=prompt, params={**params, "max_tokens": 4}))
                errors.append(caught.value)
        return errors

    for error in asyncio.run(work()):
        assert error.fault in ("server_error", "unreachable")
        assert vllm.url in str(error)
        assert "\n" not in str(error)
