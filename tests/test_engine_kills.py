"""Sixty `kill -9` at drawn moments of generating and judging, against a server that fails three times in ten.

Every run that was killed and gone on with must end with the files of a run that nothing disturbed, to the byte; and
nothing that was answered and stored may be asked for again: the server says what it was asked.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from anthrolab.bench.cases import select_cases
from anthrolab.cards.library import Library, default_cards_dir, load_library
from tests.cards_for_tests import small_cards
from tests.fault_plan import request_key
from tests.fault_server import Faulty, faulty

CASES = 5
SEEDS = range(10)
KILLS = {"run": 4, "judge": 2}
"""Of each seed; sixty in all."""

RESULTS = ("dialogues.jsonl", "verdicts.jsonl", "gate.jsonl", "failures.jsonl", "ledgers/toy/cases.parquet",
           "ledgers/toy/checkboxes.parquet", *(f"tables/table{n}.csv" for n in range(7, 12)), "tables/coverage.csv")  # fmt: skip


class Bench:
    """A folder with cards, a systems file and one run."""

    def __init__(self, folder: Path, url: str, cards: Path, cache: bool = True) -> None:
        self.cache = [] if cache else ["--cache", "none"]
        self.run = folder / "运行"
        self.cards, self.systems = cards, folder / "systems.yaml"
        folder.mkdir(parents=True, exist_ok=True)
        entry = {
            "name": "toy", "endpoint": url, "model": "scripted", "server": "openai", "policy": "chat", "partner": "toy",
            "timeout_s": 1.0, "retries": 8, "concurrency": 6,
        }  # fmt: skip
        self.systems.write_text(json.dumps({"systems": [entry]}), encoding="utf-8")

    def command(self, verb: str) -> list[str]:
        own = ["--systems", str(self.systems), "--cards", str(self.cards), *self.cache]
        if verb == "run":
            own += ["--system", "toy", "--cases", str(CASES), "--max-messages", "10", "--run", str(self.run)]
        else:
            own += [str(self.run), "--judge", "toy"]
        return [sys.executable, "-m", "anthrolab", verb, *own]

    def start(self, verb: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(verb), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )

    def finish(self, verb: str) -> None:
        done = subprocess.run(self.command(verb), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]

    def results(self) -> dict[str, bytes]:
        out = [sys.executable, "-m", "anthrolab", "tables", str(self.run / "ledgers" / "toy"), "--out", str(self.run / "tables")]
        subprocess.run(out, check=True, capture_output=True)
        return {name: (self.run / name).read_bytes() for name in RESULTS}

    def stored(self) -> set[str]:
        """The server's keys of all requests whose replies are on disk."""
        keys = set()
        for path in self.run.glob("calls/*.jsonl"):
            for line in path.read_bytes().split(b"\n")[:-1]:  # the last line may be torn
                row = json.loads(line)
                body = {"model": row["model"], **row["params"], "messages": row["messages"]}
                keys.add(request_key("/v1/chat/completions", body))
        return keys


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cards of as many bindings as there are cases: they are read in no time."""
    library: Library = load_library(default_cards_dir())
    return small_cards(tmp_path_factory.mktemp("cards") / "cards", library, [c.binding for c in select_cases(library, CASES)])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, cards: Path) -> tuple[dict[str, bytes], int]:
    """The results of a run without faults and kills, and the port of its server (an address is part of what a run remembers)."""
    with faulty(share=0.0) as server:
        bench = Bench(tmp_path_factory.mktemp("undisturbed"), server.url, cards)
        bench.finish("run")
        bench.finish("judge")
        return bench.results(), int(server.url.split(":")[2].split("/")[0])


def kill_somewhere(bench: Bench, verb: str, server: Faulty, draw: random.Random) -> bool:
    """Start the command and kill it some requests and some milliseconds later; False if it was over before."""
    before, process = server.mark(), bench.start(verb)
    wanted = before + draw.randint(1, 20 if verb == "run" else 6)
    while process.poll() is None and server.mark() < wanted:
        time.sleep(0.005)
    time.sleep(draw.random() * 0.02)
    alive = process.poll() is None
    if alive:
        os.killpg(process.pid, signal.SIGKILL)
    assert process.stderr is not None
    said = process.stderr.read().decode("utf-8", "replace")
    process.wait()
    process.stderr.close()
    assert alive or process.returncode == 0, said[-2000:]
    return alive


def asked_after(log: Path, number: int) -> Iterator[str]:
    """Keys of the requests that came in after the `number`-th."""
    for line in log.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["n"] > number:
            yield row["key"]


@pytest.mark.parametrize("seed", SEEDS)
def test_kill_dash_nine_among_faults_changes_nothing(
    seed: int, tmp_path: Path, cards: Path, undisturbed: tuple[dict[str, bytes], int]
) -> None:
    expected, port = undisturbed
    draw, log = random.Random(seed), tmp_path / "server.jsonl"
    stored: list[tuple[int, set[str]]] = []
    with faulty(seed=seed, share=0.3, latency=0.02, log=log, port=port) as server:
        bench = Bench(tmp_path, server.url, cards, cache=seed % 2 == 0)  # without it only the call logs can answer
        killed = 0
        for verb, times in KILLS.items():
            for _ in range(times):
                killed += kill_somewhere(bench, verb, server, draw)
                stored.append((server.mark(), bench.stored()))
            bench.finish(verb)
        counts = server.counts()
    assert killed == sum(KILLS.values()), "the command was over before it could be killed: give it more to do"
    assert sum(counts["faults"].values()) >= 10, "hardly a fault came up"
    for number, keys in stored:
        assert not keys.intersection(asked_after(log, number)), "what was answered and stored was asked for again"
    got = bench.results()
    for name, content in expected.items():
        assert got[name] == content, f"{name} is not as in an undisturbed run"
    assert len(expected["dialogues.jsonl"].splitlines()) == CASES
