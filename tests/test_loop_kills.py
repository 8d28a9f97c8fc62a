"""`kill -9` at every step of a round, against a server that fails three times in ten: nothing lost, nothing twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from anthrolab.bench.cases import select_cases
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.loop.folder import Loop
from tests.cards_for_tests import small_cards
from tests.fault_plan import request_key
from tests.fault_server import Faulty, faulty

CASES, ROUNDS = 5, 2

MOMENTS: dict[str, Callable[[Loop], bool]] = {
    "the settings are written": lambda loop: (loop.path / "loop.json").exists(),
    "the skills are copied": lambda loop: loop.skills_dir.is_dir(),
    "the round has begun": lambda loop: (loop.round_dir(1) / "skills.json").exists(),
    "a dialogue is there": lambda loop: lines(loop.run(1).path / "dialogues.jsonl") >= 1,
    "all dialogues are there": lambda loop: lines(loop.run(1).path / "dialogues.jsonl") >= CASES,
    "a verdict is there": lambda loop: lines(loop.run(1).path / "verdicts.jsonl") >= 1,
    "the ledger is there": lambda loop: loop.run(1).ledger("judge").is_dir(),
    "it is filtered": lambda loop: (loop.round_dir(1) / "filtered.jsonl").exists(),
    "the writer is asked": lambda loop: (loop.round_dir(1) / "calls" / "repair.jsonl").exists(),
    "a repair is there": lambda loop: lines(loop.round_dir(1) / "repairs.jsonl") >= 1,
    "the writer has a new skill": lambda loop: (loop.round_dir(1) / "calls" / "skills.jsonl").exists(),
    "the new skill is decided": lambda loop: (loop.round_dir(1) / "evolution.json").exists(),
    "training data is begun": lambda loop: (loop.sft_dir / "train.jsonl").exists(),
    "the data card is there": lambda loop: (loop.sft_dir / "data_card.json").exists(),
    "the round is over": lambda loop: (loop.round_dir(1) / "round.json").exists(),
    "the next round has dialogues": lambda loop: lines(loop.run(2).path / "dialogues.jsonl") >= 2,
    "the next round is judged": lambda loop: lines(loop.run(2).path / "verdicts.jsonl") >= 2,
}
"""When the command is killed: as soon as this is seen on disk."""


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


class Begun:
    """A loop with its cards and systems file, and the command that goes on with it."""

    def __init__(self, folder: Path, url: str, cards: Path, cache: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.loop = Loop(folder / "圈")
        entry = {
            "name": "toy", "endpoint": url, "model": "scripted", "server": "openai", "policy": "chat", "partner": "toy",
            "timeout_s": 1.0, "retries": 8, "concurrency": 6,
        }  # fmt: skip
        systems = folder / "systems.yaml"
        systems.write_text(json.dumps({"systems": [entry | {"name": name} for name in ("toy", "judge", "writer")]}), encoding="utf-8")
        self.command = [
            sys.executable, "-m", "anthrolab", "loop", "run", str(self.loop.path), "--system", "toy", "--judge", "judge", "--writer", "writer",
            "--rounds", str(ROUNDS), "--cases", str(CASES), "--max-messages", "10", "--held-back", "0.2", "--systems", str(systems),
            "--cards", str(cards), *([] if cache else ["--cache", "none"]),
        ]  # fmt: skip

    def finish(self) -> None:
        done = subprocess.run(self.command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]

    def killed_when(self, seen: Callable[[Loop], bool]) -> bool:
        """Start the command and kill it as soon as something is seen; False if it was over before."""
        process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        while process.poll() is None and not seen(self.loop):
            time.sleep(0.001)
        alive = process.poll() is None
        if alive:
            os.killpg(process.pid, signal.SIGKILL)
        assert process.stderr is not None
        said = process.stderr.read().decode("utf-8", "replace")
        process.wait()
        process.stderr.close()
        assert alive or process.returncode == 0, said[-2000:]
        return alive

    def results(self) -> dict[str, bytes]:
        """Every file of the loop but call logs, manifests (which hold hashes of when), locks, and what a killed writer left in a run."""
        files = (p for p in sorted(self.loop.path.rglob("*")) if p.is_file() and p.name not in (".lock", "manifest.json") and p.suffix != ".tmp")
        return {str(p.relative_to(self.loop.path)): p.read_bytes() for p in files if p.parent.name != "calls"}

    def stored(self) -> list[str]:
        """The server's keys of all requests whose replies are on disk and did not come from the cache."""
        keys = []
        for path in self.loop.path.rglob("calls/*.jsonl"):
            for line in path.read_bytes().split(b"\n")[:-1]:  # the last line may be torn
                row = json.loads(line)
                if not row.get("reused"):
                    keys.append(request_key("/v1/chat/completions", {"model": row["model"], **row["params"], "messages": row["messages"]}))
        return keys


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = load_library(default_cards_dir())
    return small_cards(tmp_path_factory.mktemp("cards") / "cards", library, [c.binding for c in select_cases(library, CASES)])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, cards: Path) -> tuple[dict[str, bytes], int]:
    """The results of a loop without faults and kills, and the port of its server (an address is part of what a run remembers)."""
    with faulty(share=0.0) as server:
        begun = Begun(tmp_path_factory.mktemp("undisturbed"), server.url, cards, True)
        begun.finish()
        results = begun.results()
        return results, int(server.url.split(":")[2].split("/")[0])


def asked_after(log: Path, number: int) -> Iterator[str]:
    for line in log.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["n"] > number:
            yield row["key"]


@pytest.mark.parametrize("cache", [True, False], ids=["cache, odd steps", "logs only, even steps"])
def test_a_loop_that_is_killed_at_every_second_step_ends_as_if_nothing_had_been(
    cache: bool, tmp_path: Path, cards: Path, undisturbed: tuple[dict[str, bytes], int]
) -> None:
    expected, port = undisturbed
    log = tmp_path / "server.jsonl"
    stored: list[tuple[int, set[str]]] = []
    with faulty(seed=7, share=0.3, latency=0.01, log=log, port=port) as server:
        begun = Begun(tmp_path, server.url, cards, cache)
        over = [moment for moment, seen in MOMENTS.items() if not remembered(begun, server, seen, stored)]
        begun.finish()
        counts = server.counts()
        twice = begun.stored()
        quiet = server.mark()
        begun.finish()
        assert server.mark() == quiet, "a finished loop asked something"
    assert len(over) <= 1, f"it was over before it could be killed: {over}"
    assert sum(counts["faults"].values()) >= 10, "hardly a fault came up"
    for number, keys in stored:
        assert not keys.intersection(asked_after(log, number)), "what was answered and stored was asked for again"
    assert len(twice) == len(set(twice)), "a call stands in the logs twice"
    got = begun.results()
    assert sorted(got) == sorted(expected)
    for name, content in expected.items():
        assert got[name] == content, f"{name} is not as in an undisturbed loop"
    assert any(name.endswith("v2.md") for name in expected) and len(expected["sft/train.jsonl"].splitlines()) > 20


def remembered(begun: Begun, server: Faulty, seen: Callable[[Loop], bool], stored: list[tuple[int, set[str]]]) -> bool:
    """Kill the command at a moment and note what is on disk then."""
    killed = begun.killed_when(seen)
    stored.append((server.mark(), set(begun.stored())))
    return killed
