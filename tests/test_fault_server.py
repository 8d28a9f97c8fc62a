"""The fault server does what it says, and the endpoint gets through everything that it does."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.bench.judge import judge_run
from anthrolab.bench.run import generate
from anthrolab.bench.store import Run
from anthrolab.judging.answers import answer_schema, read_answers
from anthrolab.judging.llm import template as judge_prompt
from anthrolab.models.budget import Budget
from anthrolab.models.client import Reply, Request
from anthrolab.models.endpoint import Endpoint
from anthrolab.models.structured import with_format
from anthrolab.runtime.decision import decision_schema, parse_decision
from anthrolab.runtime.prompt import template
from tests.fault_plan import CONTENT, KINDS, Kind, good_text, http, plan, reply_body, request_key
from tests.fault_server import Faulty, faulty
from tests.test_bench_run import write_systems

CHAT = "/v1/chat/completions"
BUDGET = Budget(attempts=9, seconds=60, attempt_seconds=0.5, first_wait=0.01, longest_wait=0.05)
SLOW: tuple[Kind, ...] = ("hang", "slow_loris")
MARKER = http(json.dumps({"object": "list", "data": [{"id": "faulty", "object": "model"}]}).encode())


def body_of(text: str, **params: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **params}


def key_of(text: str) -> str:
    return request_key(CHAT, body_of(text))


# The plan


@given(st.text(), st.integers(), st.floats(0, 1), st.lists(st.sampled_from(KINDS), max_size=6), st.integers(0, 6))
def test_a_plan_is_the_same_each_time_never_too_long_and_draws_content_anew_once(
    key: str, seed: int, share: float, kinds: list[Kind], most: int
) -> None:
    faults = plan(key, seed, share, kinds, most)
    assert faults == plan(key, seed, share, kinds, most)
    assert len(faults) <= (most if kinds else 0)
    assert set(faults) <= {*kinds, "500"}
    assert sum(f in CONTENT for f in faults) <= 1
    assert plan(key, seed, share, kinds, most + 1)[: len(faults)] == faults, "the limit changed what came before it"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.8, 1.0])
def test_each_attempt_fails_with_the_share(share: float) -> None:
    plans = [plan(f"k{i}", 7, share, KINDS) for i in range(4000)]
    for attempt in range(3):
        reached = [p for p in plans if len(p) >= attempt]
        if len(reached) > 300:
            assert sum(len(p) > attempt for p in reached) / len(reached) == pytest.approx(share, abs=0.06)


def test_first_faults_are_of_all_kinds_alike_and_differ_by_seed() -> None:
    firsts = Counter(plan(f"k{i}", 0, 1.0, KINDS)[0] for i in range(100 * len(KINDS)))
    assert set(firsts) == set(KINDS)
    assert all(60 < count < 140 for count in firsts.values())
    kinds_and_runs = [[plan(f"k{i}", seed, 0.5, KINDS) for i in range(20)] for seed in (0, 1)]
    assert kinds_and_runs[0] != kinds_and_runs[1]
    assert [len(p) for p in kinds_and_runs[0]] != [len(p) for p in kinds_and_runs[1]]


# The good answers


def asked(system: str, user: str, schema: dict[str, Any] | None) -> dict[str, Any]:
    """A request body, with or without the schema."""
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    request = Request("m", messages=messages)
    if schema is not None:
        request = with_format(request, schema, "json_schema")
    return {"model": "m", "messages": messages, **request.params}


def answer_to(body: dict[str, Any], salt: str = "") -> Reply:
    return Reply(good_text(body, request_key(CHAT, body), salt), finish_reason="stop")


@pytest.mark.parametrize("schema", [decision_schema("林晓雯"), None], ids=["schema", "prompt only"])
def test_decisions_keep_the_contract_differ_and_come_to_an_end(schema: dict[str, Any] | None) -> None:
    system = template("blocks/identity").substitute(name="林晓雯", persona="- 护士")
    now, texts, ends = datetime(2026, 3, 6, 20, 31), [], Counter[int]()
    for number in range(200):
        seen = 2 if number < 100 else 12
        history = "\n".join(f"[20:30:{i:02}] 林晓雯: 第{number}回" for i in range(seen))
        user = template("blocks/tail").substitute(history=history) + "\n\n"
        user += template("blocks/now").substitute(now=now.isoformat(), weekday="星期五")
        read = parse_decision(answer_to(asked(system, user, schema)), "林晓雯", now, 600)
        assert read.value is not None and read.recovered is None, read
        if read.value.silent:
            ends[seen] += 1
        else:
            assert 5 <= read.value.delay_s <= 60
            texts.append(read.value.content)
    assert len(set(texts)) > 0.98 * len(texts)
    assert ends[2] < 15 < 30 < ends[12] < 70


@pytest.mark.parametrize("by_schema", [True, False], ids=["schema", "prompt only"])
def test_judges_answer_every_id_and_mostly_well(by_schema: bool) -> None:
    ids = ["D1.1", "D1.2", "D3.5", "E2.1", "L0-07", "L0-10"]
    passed, violated = Counter[bool | None](), Counter[bool | None]()
    for number in range(300):
        lines = f"#0 2026-03-06 20:31:00 对方（开场白，给定的，不评）：“在吗”\n#1 2026-03-06 20:31:12 被评者（待评）：“第{number}句”\n"
        user = lines + judge_prompt("question.md").substitute(ids="、".join(ids), again="")
        got = read_answers(answer_to(asked("评审", user, answer_schema(ids) if by_schema else None)).text, ids, [1])
        assert not got.missing and not got.unknown
        assert all(a.reason for a in got.boxes.values()) and all(a.reason for a in got.l0.values())
        passed.update(a.passed for a in got.boxes.values())
        violated.update(a.violated for a in got.l0.values())
    assert 0.95 < passed[True] / passed.total() < 1
    assert 0.97 < violated[False] / violated.total() < 1


def test_lists_are_filled_and_other_texts_name_their_request() -> None:
    noted = json.loads(answer_to(asked(template("summarise").template, "记", None)).text)
    assert set(noted) == {"facts", "emotions", "commitments", "open_topics", "settled"}
    assert len(noted["facts"]) == 1 and noted["settled"] == []
    assert answer_to(body_of("在吗")).text.endswith(key_of("在吗"))


def test_answers_depend_on_content_and_salt_only() -> None:
    assert answer_to(body_of("一")) == answer_to(dict(reversed(body_of("一").items())))
    assert len({answer_to(body_of(text), salt).text for text in "一二三" for salt in ("", "x")}) == 6


def test_a_run_and_its_judgement_ask_nothing_twice_and_trip_no_gate(tmp_path: Path) -> None:
    with faulty(share=0, latency=0) as server:
        systems = write_systems(tmp_path / "systems.yaml", server.url)
        generate(tmp_path / "r", "toy", cases=8, systems_file=systems, progress=lambda _: None)
        counts = judge_run(tmp_path / "r", "toy", systems_file=systems, progress=lambda _: None)
    dialogues = Run(tmp_path / "r").dialogues().values()
    assert {(a.error, a.recovered) for d in dialogues for a in d.asks or ()} == {(None, None)}
    assert all(4 <= len(d.messages) <= 25 for d in dialogues)
    gate = (tmp_path / "r" / "gate.jsonl").read_text("utf-8").splitlines()
    assert not any(json.loads(line)["violations"] for line in gate)
    assert counts["judged"] == 8 and counts["assessed"] == counts["boxes"] > 0


# The kinds on the wire


def post(text: str) -> bytes:
    body = json.dumps(body_of(text)).encode()
    return f"POST {CHAT} HTTP/1.1\r\nHost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def exchange(url: str, *texts: str, patience: float = 30.0) -> tuple[list[bytes], str]:
    """What comes back for requests sent one after the other on one connection, with a question for the models behind
    each that shows where the answer ends; and how it ended: open, closed, reset, silent (nothing within `patience`
    seconds) or slow (in more than a few pieces)."""
    got: list[bytes] = []
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port or 0)) as connection:
        connection.settimeout(patience)
        for text in texts:
            connection.sendall(post(text) + b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
            got.append(b"")
            pieces = 0
            while not got[-1].endswith(MARKER):
                pieces += 1
                if pieces > 6:
                    return got, "slow"
                try:
                    data = connection.recv(65536)
                except ConnectionResetError:
                    return got, "reset"
                except TimeoutError:
                    return got, "silent"
                if not data:
                    return got, "closed"
                got[-1] += data
            got[-1] = got[-1].removesuffix(MARKER)
    return got, "open"


def parts(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers (names in lower case) and body of a response."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), {n.lower(): v for n, v in (line.split(": ", 1) for line in lines)}, body


def first_answers(kind: Kind, count: int, patience: float = 30.0) -> list[tuple[str, bytes, str]]:
    """Text, bytes and end of the first attempts of some requests with this fault."""
    with faulty(share=1, kinds=[kind], latency=0) as server:
        rows = []
        for i in range(count):
            (answer,), end = exchange(server.url, f"第{i}句", patience=patience)
            rows.append((f"第{i}句", answer, end))
        assert server.counts()["faults"] == {kind: count}
    return rows


def good_response(text: str, attempt: int = 1) -> bytes:
    return http(reply_body(body_of(text), f"cmpl-{key_of(text)}-{attempt}", answer_to(body_of(text)).text))


@pytest.mark.parametrize(
    ("kind", "status"), [("429", 429), ("429_retry_after", 429), ("500", 500), ("502_html", 502), ("503", 503)]
)
def test_an_error_status_is_whole_and_leaves_the_connection_open(kind: Kind, status: int) -> None:
    waits = set()
    for _, answer, end in first_answers(kind, 20):
        got, headers, body = parts(answer)
        assert (got, end, len(body)) == (status, "open", int(headers["content-length"]))
        assert body.startswith(b"<html>") if kind == "502_html" else kind in json.loads(body)["error"]["message"]
        waits |= {(n, float(v)) for n, v in headers.items() if n.startswith("retry-after")}
    assert (len({n for n, _ in waits}) == 2) == (kind == "429_retry_after"), "in seconds and in milliseconds"
    assert all(v <= (1 if n == "retry-after" else 100) for n, v in waits)


def test_reset_before_sends_no_byte_and_ends_in_both_ways() -> None:
    rows = first_answers("reset_before", 12)
    assert {answer for _, answer, _ in rows} == {b""}
    assert {end for _, _, end in rows} == {"closed", "reset"}


def test_reset_inside_ends_in_the_middle_of_the_body() -> None:
    for text, answer, end in first_answers("reset_inside", 5):
        assert end in ("closed", "reset")  # a reset where the question for the models lay unread
        assert good_response(text).startswith(answer)
        assert 0 < len(parts(answer)[2]) < int(parts(answer)[1]["content-length"])


def test_reset_after_is_a_whole_answer_and_then_a_reset() -> None:
    for text, answer, end in first_answers("reset_after", 5):
        assert (answer, end) == (good_response(text), "reset")


def test_slow_loris_drips_and_hang_sends_nothing() -> None:
    for text, answer, end in first_answers("slow_loris", 2):
        assert end == "slow" and good_response(text).startswith(answer)
        assert 0 < len(parts(answer)[2]) < 10
    assert [(answer, end) for _, answer, end in first_answers("hang", 1, patience=0.5)] == [(b"", "silent")]


def test_broken_json_is_none_and_wrong_json_is_no_answer() -> None:
    for _, answer, end in first_answers("broken_json", 12):
        status, headers, body = parts(answer)
        assert (status, end, len(body)) == (200, "open", int(headers["content-length"]))
        with pytest.raises(ValueError, match="line 1 column"):
            json.loads(body)
    shapes = set()
    for _, answer, end in first_answers("wrong_json", 20):
        status, _, body = parts(answer)
        value = json.loads(body)
        assert (status, end) == (200, "open")
        assert not isinstance(value, dict) or not value.get("choices")
        shapes.add(body)
    assert len(shapes) > 3


def test_doubled_body_is_the_json_twice_and_doubled_response_the_whole_answer() -> None:
    for text, answer, _ in first_answers("doubled_body", 3):
        good = parts(good_response(text))[2]
        assert answer == http(good + good)
    for text, answer, end in first_answers("doubled_response", 8):
        assert (answer, end) == (good_response(text) * 2, "open")


def test_content_faults_are_well_formed_answers_without_the_text() -> None:
    found: dict[Kind, set[Any]] = {kind: set() for kind in CONTENT}
    for kind in CONTENT:
        for text, answer, _ in first_answers(kind, 12):
            choice = json.loads(parts(answer)[2])["choices"][0]
            message, whole = choice["message"], answer_to(body_of(text)).text
            found[kind].add(message["content"] if kind != "length" else 0)
            assert choice["finish_reason"] == ("length" if kind == "length" else "stop")
            assert bool(message.get("reasoning_content")) == (kind == "reasoning_only")
            if kind == "length":
                assert 0 < len(message["content"]) < len(whole) and whole.startswith(message["content"])
    assert found == {"length": {0}, "reasoning_only": {None, ""}, "empty": {""}}


def test_completions_meet_no_content_fault_since_they_may_be_empty() -> None:
    async def work(url: str) -> Reply:
        async with Endpoint(url, budget=BUDGET) as client:
            return await client.ask(Request("m", prompt="[20:31:00] 小雨:"))

    with faulty(share=1, kinds=CONTENT, most=2) as server:
        reply = asyncio.run(work(server.url))
        assert server.counts()["faults"] == {"500": 2}
    assert reply.text.endswith(request_key("/v1/completions", {"model": "m", "prompt": "[20:31:00] 小雨:"}))


# What it counts


def test_every_request_is_logged_at_its_end_and_counted(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    with faulty(share=1, kinds=["503"], most=2, log=log, latency=0) as server:
        exchange(server.url, "一", "一", "一", "二")
        assert server.mark() == 4
        exchange(server.url, "二")
        assert server.mark() == 5
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        one, two = key_of("一"), key_of("二")
        assert rows == [
            {"n": n, "path": CHAT, "key": key, "attempt": attempt, "fault": fault, "sent": fault is None}
            for n, key, attempt, fault in (
                (1, one, 1, "503"), (2, one, 2, "503"), (3, one, 3, None), (4, two, 1, "503"), (5, two, 2, "503")
            )
        ]  # fmt: skip
        assert server.counts() == {
            "keys": {one: {"attempts": 3, "good": 1}, two: {"attempts": 2, "good": 0}},
            "requests": 5, "good": 1, "faults": {"503": 4}, "in_flight": 0, "most_in_flight": 1,
        }  # fmt: skip


def until_in_flight(server: Faulty, number: int) -> None:
    """Wait until this many requests are under way."""
    for _ in range(1200):
        if server.counts()["in_flight"] == number:
            return
        time.sleep(0.05)
    raise AssertionError(f"there were never {number} requests in flight")


def test_a_killed_client_is_no_answer_sent_and_the_server_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    ask = f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r})\n"
    ask += "from tests.test_fault_server import exchange; exchange(sys.argv[1], '一')"
    with faulty(share=0, latency=2, log=log, slots=1) as server:
        client = subprocess.Popen([sys.executable, "-c", ask, server.url])
        until_in_flight(server, 1)
        client.kill()
        client.wait()
        until_in_flight(server, 0)
        assert exchange(server.url, "一") == ([good_response("一", attempt=2)], "open"), "its slot is free again"
        counted = server.counts()["keys"][key_of("一")]
    assert counted == {"attempts": 2, "good": 1}
    assert [(r["attempt"], r["sent"]) for r in map(json.loads, log.read_text().splitlines())] == [(1, False), (2, True)]


def test_a_client_that_left_while_it_waited_takes_no_slot() -> None:
    with faulty(share=0, latency=3, slots=1) as server, contextlib.ExitStack() as stack:
        where = urlsplit(server.url)
        clients = [stack.enter_context(socket.create_connection((where.hostname, where.port or 0))) for _ in range(2)]
        for n, client in enumerate(clients):
            client.sendall(post(f"第{n}句"))
            until_in_flight(server, n + 1)
        for n, client in reversed(list(enumerate(clients))):
            client.close()
            until_in_flight(server, n)
        assert exchange(server.url, "三") == ([good_response("三")], "open")


def test_slots_answer_one_after_the_other_and_all_in_flight_are_counted() -> None:
    async def work(url: str) -> float:
        clock = asyncio.get_running_loop().time
        begun = clock()
        got = await asyncio.gather(*(asyncio.to_thread(exchange, url, f"第{i}句") for i in range(4)))
        assert got == [([good_response(f"第{i}句")], "open") for i in range(4)]
        return clock() - begun

    with faulty(share=0, latency=0.1, slots=1) as server:
        assert asyncio.run(work(server.url)) >= 4 * 0.1
        assert server.counts()["most_in_flight"] > 1


def test_a_kind_that_there_is_not_is_refused() -> None:
    command = [sys.executable, "-m", "tests.fault_server", "--kinds", "429,tantrum"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent, timeout=60)
    assert done.returncode == 2 and "tantrum" in done.stderr


# The endpoint


def ask_all(server: Faulty, texts: Iterable[str], budget: Budget, concurrency: int = 16) -> dict[str, Reply]:
    async def work() -> dict[str, Reply]:
        async with Endpoint(server.url, budget=budget, concurrency=concurrency) as client:
            asks = {text: client.ask(Request("m", messages=[{"role": "user", "content": text}])) for text in texts}
            return dict(zip(asks, await asyncio.gather(*asks.values()), strict=True))

    return asyncio.run(work())


def whose(replies: dict[str, Reply]) -> list[str]:
    """The requests that got another text than their own good answer."""
    return [text for text, reply in replies.items() if reply.text != answer_to(body_of(text)).text]


@pytest.mark.parametrize("kind", KINDS)
def test_the_endpoint_gets_through_every_kind_alone(kind: Kind) -> None:
    texts = [f"第{i}句" for i in range(4 if kind in SLOW else 12 if kind == "429_retry_after" else 64)]
    budget = BUDGET if kind in SLOW else replace(BUDGET, attempt_seconds=20)
    with faulty(share=1, kinds=[kind]) as server:
        replies = ask_all(server, texts, budget)
        counts = server.counts()
    assert whose(replies) == []
    attempts = 1 if kind in ("reset_after", "doubled_response") else 4  # those two are answers
    assert counts["keys"] == {key_of(text): {"attempts": attempts, "good": 1} for text in texts}


@pytest.mark.parametrize("seed", [0, 1])
def test_in_a_storm_of_all_kinds_every_request_gets_its_own_answer(seed: int) -> None:
    texts = [f"第{i}句" for i in range(500)]
    with faulty(seed=seed, share=0.3) as server:
        replies = ask_all(server, texts, BUDGET, concurrency=64)
        assert set(server.counts()["faults"]) == set(KINDS)
    assert whose(replies) == []


def test_a_second_copy_of_a_response_is_never_the_answer_to_the_next_request() -> None:
    with faulty(share=1, kinds=["doubled_response"], most=1, latency=0) as server:
        replies = ask_all(server, [f"第{i}句" for i in range(50)], replace(BUDGET, attempt_seconds=20), concurrency=1)
    assert whose(replies) == []


def test_a_copy_that_comes_while_the_connection_is_idle_is_no_answer_either() -> None:
    copied = asyncio.Event()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                text = json.loads(await reader.readexactly(length))["messages"][0]["content"]
                writer.write(good_response(text))
                await asyncio.sleep(0.01)
                writer.write(good_response(text))
                copied.set()
        writer.close()

    async def work() -> dict[str, Reply]:
        async with await asyncio.start_server(served, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            replies = {}
            async with Endpoint(url, budget=BUDGET) as client:
                for text in "一二三":
                    replies[text] = await client.ask(Request("m", messages=[{"role": "user", "content": text}]))
                    with contextlib.suppress(TimeoutError):  # a client may have closed the connection before
                        await asyncio.wait_for(copied.wait(), 1)
                    copied.clear()
                    await asyncio.sleep(0.01)  # the client's side has taken the copy in
            return replies

    assert whose(asyncio.run(work())) == []


def test_the_endpoint_shows_the_fault_server_how_many_it_has_in_flight() -> None:
    with faulty(share=0, latency=0.1) as server:
        ask_all(server, [f"第{i}句" for i in range(64)], replace(BUDGET, attempt_seconds=20), concurrency=8)
        assert 1 < server.counts()["most_in_flight"] <= 8
