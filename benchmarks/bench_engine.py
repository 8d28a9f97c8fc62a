"""What the engine costs and how busy it keeps a server, as ratios in one run.

    python -m benchmarks.bench_engine [--quick]

1. Calls a second and CPU per call of the engine, of the bare `openai` client on aiohttp, and of Inspect AI
   (`python -m benchmarks.setup_inspect`), with the same chats against the same server that answers after 20 ms. A chat is
   a chain of events; in each, both speakers are asked at the same time, with the benchmark's own prompts. The engine's
   run is that of `anthrolab run`: it reads cards, builds prompts, checks decisions, writes call logs, cache, dialogues.
2. The busy share of a server with 32 slots and noisy times, against schedules that know every time beforehand.
3. The memory of a run with 5,000 dialogues under way.

Every measured client is a process of its own, and so is the server; start-up, imports and a first chat that opens
connections are not counted. Beside other work on the machine, trust the CPU time and not the calls a second.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from anthrolab.bench.effort import Effort
from anthrolab.bench.run import generate
from anthrolab.bench.store import Run
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.models import flow
from benchmarks import setup_inspect
from benchmarks.bare_client import cpu_seconds
from benchmarks.ideal import busy_share, least_makespan, listed_makespan, when_fewer_are_left, work
from benchmarks.mock_server import NAME, Mock, allow_many_connections, mock

ROOT = Path(__file__).parent.parent
MOST_AT_ONCE = 4096
SLOTS, SLOT_LATENCY, NOISE = 32, 0.2, 0.5
BENCHMARK_CALLS = 100 * 49 * 2
"""Of a run of all cases with 50 messages each."""

Row = dict[str, float]


@dataclass(frozen=True)
class Size:
    """How much is measured. A run has `cases` x `samples` chats of `messages` messages."""

    cases: int = 70
    samples: int = 2
    messages: int = 8
    concurrent: tuple[int, ...] = (64, 256)
    rounds: int = 3
    inspect_rounds: int = 2
    busy_samples: int = 4
    in_flight: int = 5000


QUICK = Size(cases=24, messages=5, concurrent=(64,), rounds=1, inspect_rounds=1, busy_samples=2, in_flight=500)


def prepare(folder: Path, concurrency: int, *servers: Mock) -> Path:
    """A systems file (the first server's system, the last server's as its partner), once tried with a short chat."""
    common = {"model": "scripted", "server": "openai", "policy": "chat", "timeout_s": 600, "concurrency": concurrency}
    both = (("first", servers[0]), ("last", servers[-1]))
    entries = [{"name": name, "endpoint": server.url, "partner": "last", **common} for name, server in both]
    folder.mkdir()
    systems = folder / "systems.yaml"
    systems.write_text(json.dumps({"systems": entries}), encoding="utf-8")  # JSON is YAML
    generate(folder / "warm", "first", cases=1, max_messages=3, systems_file=systems, progress=quiet)
    return systems


def quiet(_line: str) -> None:
    pass


def generate_here(folder: Path, server: Mock, concurrency: int, cases: int, samples: int, messages: int) -> Row:
    """In a process of its own: a run in `folder`/run, and what it cost."""
    systems = prepare(folder, concurrency, server)
    server.reset()
    before = cpu_seconds()
    load_library(default_cards_dir())
    begun, used = time.perf_counter(), cpu_seconds()
    generate(
        folder / "run", "first", cases=cases, samples=samples, max_messages=messages, systems_file=systems,
        effort=Effort(cache=folder / "replies.sqlite"), progress=quiet,  # the command line's default
    )  # fmt: skip
    seconds, cpu = time.perf_counter() - begun, cpu_seconds() - used
    return {"calls": server.stats()["requests"], "seconds": seconds, "cpu": cpu, "cards": used - before}


def fill_here(folder: Path, servers: list[Mock], dialogues: int) -> None:
    """In a process of its own: begin a run, print its memory once so many dialogues have had an answer, and end."""
    allow_many_connections()
    systems = prepare(folder, MOST_AT_ONCE, *servers)
    flow.BEGIN = MOST_AT_ONCE  # at once what a server that holds its latency is given after some minutes
    before = memory_mib()

    def watch() -> None:
        while len(list((folder / "run" / "calls").glob("*.jsonl"))) < dialogues:
            time.sleep(0.5)
        assert not Run(folder / "run").has_dialogues, "some dialogues are finished already"
        requests = sum(server.stats()["largest_in_flight"] for server in servers)
        row = {"dialogues": dialogues, "requests": requests, "before": before, "now": memory_mib()}
        print(json.dumps(row), flush=True)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    effort = Effort(cache=folder / "replies.sqlite")
    generate(folder / "run", "first", samples=-(-dialogues // 100), systems_file=systems, effort=effort, progress=quiet)


def memory_mib() -> float:
    """What this process holds now; its peak where that cannot be had (a peak may be that of the process that began it)."""
    if (now := Path("/proc/self/statm")).exists():
        return int(now.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def measured(*command: object, **variables: str) -> Row:
    """What a client in a process of its own prints in its last line."""
    words = [str(word) for word in command]
    env = {**os.environ, "NO_PROXY": "127.0.0.1", **variables}
    done = subprocess.run(words, cwd=ROOT, env=env, stdout=subprocess.PIPE, encoding="utf-8")
    if done.returncode:
        raise SystemExit(f"failed, see above: {' '.join(words)}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def engine(what: str, folder: Path, *rest: object) -> Row:
    """`generate_here` or `fill_here`."""
    return measured(sys.executable, "-m", "benchmarks.bench_engine", "--alone", what, folder, *rest)


def asked_pairs(run: Path) -> list[list[tuple[str, str]]]:
    """The names of the two answers of each event of each dialogue."""
    decisions = [[ask.decision for ask in d.asks or []] for d in Run(run).dialogues().values()]
    names = [[NAME.search(d.content)[1] for d in chat] for chat in decisions]  # type: ignore[index,union-attr]
    return [list(zip(chat[::2], chat[1::2], strict=True)) for chat in names]


def record(scratch: Path, size: Size) -> Path:
    """The chats of one run of the engine, as the requests that the server got."""
    with mock(keep=True) as server:
        engine("generate", scratch / "recorded", server.url, 64, size.cases, size.samples, size.messages)
        bodies = server.bodies()
    chats = [[[bodies[name] for name in event] for event in chat] for chat in asked_pairs(scratch / "recorded" / "run")]
    path = scratch / "chats.json"
    path.write_text(json.dumps(chats, ensure_ascii=False), encoding="utf-8")
    said = [body["messages"] for chat in chats for event in chat for body in event]
    system, user = (sum(len(messages[i]["content"]) for messages in said) / len(said) for i in (0, 1))
    print(f"{len(chats)} chats, {len(said)} calls, with {system:.0f} + {user:.0f} characters (system, user) in the mean")
    return path


def print_costs(scratch: Path, size: Size) -> None:
    chats = record(scratch, size)
    table: dict[tuple[int, str], list[Row]] = {}
    with mock(latency=0.02) as server:

        def keep(concurrent: int, client: str, row: Row) -> None:
            table.setdefault((concurrent, client), []).append({**row, "server": server.stats()["cpu_seconds"]})
            server.reset()

        for number in range(size.rounds):
            for at in size.concurrent:
                for client, more in (("openai, create()", []), ("openai, bare post()", ["raw"])):
                    command = (sys.executable, "-m", "benchmarks.bare_client", chats, server.url, at, *more)
                    keep(at, client, measured(*command))
                folder = scratch / f"{number}-{at}"
                keep(at, "engine", engine("generate", folder, server.url, at, size.cases, size.samples, size.messages))
                if setup_inspect.is_there() and number < size.inspect_rounds:
                    home = str(scratch / "inspect")  # it writes traces there
                    command = (setup_inspect.PYTHON, "benchmarks/inspect_chats.py", chats, server.url, at)
                    keep(at, "Inspect AI", measured(*command, XDG_DATA_HOME=home, XDG_CACHE_HOME=home))
    print_table(table)
    print(f"  best of {size.rounds} runs, of Inspect AI the best of {size.inspect_rounds}")
    if not setup_inspect.is_there():
        print("  Inspect AI is not here; to have it: python -m benchmarks.setup_inspect")


def print_table(table: dict[tuple[int, str], list[Row]]) -> None:
    rate = {key: max(row["calls"] / row["seconds"] for row in rows) for key, rows in table.items()}
    cpu = {key: min(1000 * row["cpu"] / row["calls"] for row in rows) for key, rows in table.items()}
    ours = [row for (_, client), rows in table.items() if client == "engine" for row in rows]
    cards = min(row["cards"] for row in ours)
    apart = 1000 * cards * (1 / ours[0]["calls"] - 1 / BENCHMARK_CALLS)
    print(f"  {'at once':>7}  {'client':20} {'calls/s':>8} {'CPU ms/call':>12}   engine: calls/s of it, CPU of it (of a long run)")
    for at, client in sorted(table, key=lambda key: key[0]):
        key, engine_key = (at, client), (at, "engine")
        ratios = "" if client == "engine" else (
            f"   {rate[engine_key] / rate[key]:15.2f} {cpu[engine_key] / cpu[key]:11.2f} {(cpu[engine_key] - apart) / cpu[key]:10.2f}"
        )  # fmt: skip
        print(f"  {at:7}  {client:20} {rate[key]:8.0f} {cpu[key]:12.2f}{ratios}")
    print(f"  reading the cards takes {cards:.2f} s CPU a run; of a long run: as if it had {BENCHMARK_CALLS:,} calls to share them")
    top = max(row["server"] / row["seconds"] for rows in table.values() for row in rows)
    print(f"  the server used at most {top:.0%} of a core")


def print_busy(scratch: Path, size: Size) -> None:
    with mock(SLOT_LATENCY, NOISE, SLOTS) as server:
        engine("generate", scratch / "busy", server.url, 256, size.cases, size.busy_samples, size.messages)
        spans, largest = server.spans(), server.stats()["largest_in_flight"]
    pairs = asked_pairs(scratch / "busy" / "run")
    chats = [[[spans[name][1] - spans[name][0] for name in event] for event in chat] for chat in pairs]
    ends = [max(spans[name][1] for name in chat[-1]) for chat in pairs]
    begin, end, few = min(begun for begun, _ in spans.values()), max(ends), SLOTS // 2
    print(f"\n{len(spans)} calls in {len(chats)} chats, {SLOTS} slots, {SLOT_LATENCY} s a call, lognormal with sigma {NOISE}")
    print(f"  {'':33} {'seconds':>8} {'busy':>7}   engine takes ... of it")
    print(f"  {'engine':33} {end - begin:8.2f} {busy_share(spans.values(), SLOTS, begin, end):7.1%}")
    for name, makespan in (("longest chat first, times known", listed_makespan), ("no schedule is shorter", least_makespan)):
        seconds = makespan(chats, SLOTS)
        print(f"  {name:33} {seconds:8.2f} {work(chats) / SLOTS / seconds:7.1%}   {(end - begin) / seconds:.3f}")
    full = busy_share(spans.values(), SLOTS, begin, when_fewer_are_left(ends, few))
    print(f"  {full:.1%} busy until fewer than {few} chats were left; at most {largest:.0f} requests there at once")


def print_memory(scratch: Path, size: Size) -> None:
    with mock(3.0) as first, mock(3.0) as second:
        row = engine("fill", scratch / "many", first.url, second.url, size.in_flight)
    print(f"\n{row['dialogues']:,.0f} dialogues under way, none finished, {row['requests']:,.0f} requests at once")
    grown = row["now"] - row["before"]
    print(f"  {grown:.0f} MiB more than {row['before']:.0f} MiB before, {1024 * grown / row['dialogues']:.0f} KiB a dialogue")


PARTS = {"costs": print_costs, "busy": print_busy, "memory": print_memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter chats, one round, only 64 requests at once")
    parser.add_argument("--only", choices=PARTS, help="one of the three parts")
    parser.add_argument("--alone", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        what, folder, *rest = options.alone
        if what == "generate":
            return print(json.dumps(generate_here(Path(folder), Mock(rest[0]), *map(int, rest[1:]))))
        return fill_here(Path(folder), [Mock(url) for url in rest[:-1]], int(rest[-1]))
    with tempfile.TemporaryDirectory() as scratch:
        for name, part in PARTS.items():
            if options.only in (None, name):
                part(Path(scratch), QUICK if options.quick else Size())


if __name__ == "__main__":
    main()
