"""The share of replies that keep the contract: counted by hand, asked once, and never blamed for a broken server."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from anthrolab.loop.sft.samples import read_samples
from anthrolab.models.scripted import Answer, Call, serve
from anthrolab.runtime.prompt import template
from anthrolab.training.contract import _batches, check_contract, chosen, expected
from anthrolab.training.contract_result import ContractResult, kind_of, lines_of
from anthrolab.training.settings import TrainingError
from tests.training_for_tests import NAMES, sample

ME, OTHER = NAMES["a"], NAMES["b"]


def right(content: str = "好", at: str = "2026-03-06T20:32:00", end: Any = False, role: str = ME) -> str:
    return json.dumps({"role": role, "response": {"content": content, "timestamp": at, "end": end}}, ensure_ascii=False)


def write_samples(folder: Path, dialogues: int = 2, asks: int = 5) -> Path:
    file = folder / "held_out.jsonl"
    rows = [sample(n, k).row() for k in range(asks) for n in range(dialogues)]  # of several dialogues by turns
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file


def write_systems(folder: Path, url: str, **fields: Any) -> Path:
    entry = {"name": "tuned", "endpoint": url, "model": "m", "server": "vllm", "policy": "chat", "retries": 0, **fields}
    file = folder / "systems.yaml"
    file.write_text(json.dumps({"systems": [entry]}), encoding="utf-8")
    return file


def check(
    folder: Path, handler: Callable[[Call], str | Answer], concurrency: int = 8, **options: Any
) -> tuple[ContractResult, list[Call]]:
    """One command against a server that answers by `handler`."""
    file = folder / "held_out.jsonl"
    if not file.exists():
        write_samples(folder)
    with serve(handler) as served:
        systems = write_systems(folder, served.url, concurrency=concurrency)
        result = check_contract("tuned", file, folder / "check", systems_file=systems, progress=lambda _: None, **options)
        return result, served.calls


def rows_of(folder: Path, name: str = "rows.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "check" / name).read_text(encoding="utf-8").splitlines()]


def which(call: Call) -> tuple[int, int]:
    """Dialogue and ask that a request is about: the system text names one, the time the other."""
    system, user = (m["content"] for m in call.body["messages"])
    return int(system.split("第")[1].split("场")[0]), int(user.rsplit("20:31:", 1)[1][:2]) - 10


BY_ASK = {
    (0, 0): right(),
    (0, 1): right("", end=True),
    (0, 2): f"```json\n{right()}\n```",
    (0, 3): right(role=OTHER),
    (0, 4): right(end="false"),
    (1, 0): "我在吃饭呢",
    (1, 1): right("   "),
    (1, 2): right(at="2026-03-06T23:00:00"),
    (1, 3): right("去！", role=ME)[:-5],
    (1, 4): right(end="true"),
}
"""5 of 10 keep it: 2 plain messages (one too late, so clipped), 2 silences, 1 in a fence."""


def test_shares_kinds_and_intervals_are_those_counted_by_hand(tmp_path: Path) -> None:
    result, calls = check(tmp_path, lambda call: BY_ASK[which(call)])
    assert len(calls) == result.samples == 10 and result.missing == 0
    assert (result.valid.part, result.valid.of) == (5, 10)
    assert result.valid.interval is not None
    # Wilson: p = 0.5, n = 10, z = 1.959964: centre 0.5, half width z/(n + z^2) * sqrt(n/4 + z^2/4) = 0.263406
    assert result.valid.interval.low == pytest.approx(0.236594, abs=1e-5)
    assert result.valid.interval.high == pytest.approx(0.763406, abs=1e-5)
    assert (result.strict.part, result.strict.of) == (3, 10)
    assert (result.silent.part, result.silent.of) == (2, 5)
    assert (result.silent_in_data.part, result.silent_in_data.of) == (2, 5)  # asks 1 of both dialogues
    assert result.errors == {
        "response.end is not true or false": 2,
        "role is not the own name": 1,
        "the reply holds no JSON object": 1,
        "the reply's JSON is cut off": 1,
    }
    assert result.mended == {"JSON taken out of a code fence": 1, "timestamp clipped": 1}
    assert result.faults == {}


def test_rows_stand_in_the_order_of_the_file_with_the_reply_as_it_came(tmp_path: Path) -> None:
    check(tmp_path, lambda call: BY_ASK[which(call)])
    rows = rows_of(tmp_path)
    assert [row["id"] for row in rows] == [f"d{n}/{k}" for k in range(5) for n in range(2)]
    by_id = {row["id"]: row for row in rows}
    assert by_id["d0/2"] == {
        "id": "d0/2", "valid": True, "error": None, "recovered": "JSON taken out of a code fence", "silent": False,
        "text": BY_ASK[0, 2],
    }  # fmt: skip
    assert by_id["d0/3"]["error"] == f"role is '{OTHER}', not '{ME}'" and not by_id["d0/3"]["valid"]
    assert by_id["d0/1"]["silent"] and not by_id["d0/0"]["silent"]


def test_what_is_sent_is_the_samples_own_two_messages_once_and_without_a_schema(tmp_path: Path) -> None:
    _, calls = check(tmp_path, lambda _: "no")
    sent = sorted(json.dumps(call.body["messages"]) for call in calls)
    assert sent == sorted(json.dumps(s.messages()[0]) for s in read_samples(tmp_path / "held_out.jsonl"))
    assert not any("response_format" in call.body for call in calls)


def test_structured_output_is_asked_for_only_if_wanted(tmp_path: Path) -> None:
    result, calls = check(tmp_path, lambda _: right(), structured=True)
    assert result.structured and all(call.body["response_format"]["type"] == "json_schema" for call in calls)
    assert "structured output" in lines_of(result)[0]


def test_samples_of_one_dialogue_are_asked_one_after_the_other(tmp_path: Path) -> None:
    _, calls = check(tmp_path, lambda _: right(), concurrency=1)
    assert [which(call) for call in calls] == [(n, k) for n in range(2) for k in range(5)]


def test_the_same_command_again_asks_nothing_and_says_the_same(tmp_path: Path) -> None:
    first, _ = check(tmp_path, lambda call: BY_ASK[which(call)])
    folder, files = tmp_path / "check", {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            files[path] = path.read_bytes()
    with serve(lambda _: right()) as served:
        contract = folder / "contract.json"
        settings = json.loads(contract.read_text(encoding="utf-8"))
        systems = write_systems(tmp_path, settings["system"]["endpoint"])  # nobody is there any more
        again = check_contract("tuned", tmp_path / "held_out.jsonl", folder, systems_file=systems)
        assert not served.calls
    assert again == first
    assert {path: path.read_bytes() for path in files} == files


def test_faults_of_the_endpoint_count_in_no_share_and_stay_to_be_done(tmp_path: Path) -> None:
    broken = {(0, 0), (1, 3)}

    def handler(call: Call) -> str | Answer:
        return Answer(status=500) if which(call) in broken else "" if which(call) == (0, 1) else right()

    with serve(handler) as served:
        file, systems = write_samples(tmp_path), write_systems(tmp_path, served.url)

        def go() -> ContractResult:
            return check_contract("tuned", file, tmp_path / "check", systems_file=systems, progress=lambda _: None)

        result = go()
        assert (result.valid.part, result.valid.of, result.missing) == (7, 8, 2)
        assert result.faults == {"server_error": 2} and result.errors == {"no reply (empty)": 1}
        assert [row["id"] for row in rows_of(tmp_path, "failures.jsonl")] == ["d0/0", "d1/3"]
        assert "2 of 10 samples have no answer yet" in lines_of(result)[-1]
        broken.clear()
        before = len(served.calls)
        result = go()
        assert (result.valid.part, result.valid.of, result.missing) == (9, 10, 0)
        assert {which(call) for call in served.calls[before:]} == {(0, 0), (1, 3)} and len(served.calls) - before == 2
        assert rows_of(tmp_path, "failures.jsonl") == []


def test_an_empty_reply_is_the_models_own_and_breaks_the_contract(tmp_path: Path) -> None:
    result, _ = check(tmp_path, lambda call: "" if which(call)[1] == 0 else right())
    assert (result.valid.part, result.valid.of, result.missing) == (8, 10, 0)
    assert result.errors == {"no reply (empty)": 2} and result.faults == {}
    again, calls = check_again(tmp_path)
    assert again == result and not calls


def check_again(folder: Path) -> tuple[ContractResult, list[Call]]:
    settings = json.loads((folder / "check" / "contract.json").read_text(encoding="utf-8"))
    systems = write_systems(folder, settings["system"]["endpoint"])
    with serve(lambda _: right()) as served:
        result = check_contract("tuned", folder / "held_out.jsonl", folder / "check", systems_file=systems, progress=lambda _: None)
        return result, served.calls


def test_a_dead_server_is_no_share_at_all(tmp_path: Path) -> None:
    with serve(lambda _: right()) as served:
        gone = served.url
    systems = write_systems(tmp_path, gone, timeout_s=2.0)
    file = write_samples(tmp_path)
    result = check_contract("tuned", file, tmp_path / "check", systems_file=systems, progress=lambda _: None)
    assert (result.valid.of, result.valid.value, result.missing) == (0, None, 10)
    assert set(result.faults) == {"unreachable"}
    assert lines_of(result)[0] == "tuned, by the prompt alone: 0 of 0 keep the contract"


COMMAND = """
import sys
from pathlib import Path
from anthrolab.training.contract import check_contract
folder = Path(sys.argv[1])
check_contract("tuned", folder / "held_out.jsonl", folder / "check", systems_file=folder / "systems.yaml")
"""


def test_a_check_that_is_killed_twice_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    may_answer, answered = 7, 0
    lock = threading.Lock()

    def handler(_: Call) -> str | Answer:
        nonlocal answered
        with lock:
            if answered == may_answer:
                return Answer(hang=True)
            answered += 1
            return right()

    file, check = write_samples(tmp_path, dialogues=4), tmp_path / "check"
    with serve(handler) as served:
        systems = write_systems(tmp_path, served.url, concurrency=2)
        for may_answer in (7, 13):  # the handler reads it
            command = subprocess.Popen([sys.executable, "-c", COMMAND, str(tmp_path)])
            rows = check / "rows.jsonl"
            while not (rows.exists() and rows.read_bytes().count(b"\n") == may_answer):
                assert command.poll() is None
                time.sleep(0.05)
            os.kill(command.pid, signal.SIGKILL)
            command.wait()
            with open(rows, "ab") as torn:
                torn.write(b'{"id": "d3/4", "val')  # the kill came in the middle of a line
        may_answer = 10**6
        result = check_contract("tuned", file, check, systems_file=systems, progress=lambda _: None)
        assert (result.valid.part, result.valid.of) == (20, 20)
        assert answered == 20  # none of those that were answered is asked again
        assert [row["id"] for row in rows_of(tmp_path)] == [f"d{n}/{k}" for k in range(5) for n in range(4)]


def test_a_folder_with_another_check_is_refused(tmp_path: Path) -> None:
    check(tmp_path, lambda _: right())
    settings = json.loads((tmp_path / "check" / "contract.json").read_text(encoding="utf-8"))
    systems = write_systems(tmp_path, settings["system"]["endpoint"])
    file = tmp_path / "held_out.jsonl"
    with pytest.raises(TrainingError, match="structured: differs"):
        check_contract("tuned", file, tmp_path / "check", systems_file=systems, structured=True)
    with pytest.raises(TrainingError, match="samples: differs"):
        check_contract("tuned", file, tmp_path / "check", systems_file=systems, limit=3)
    systems = write_systems(tmp_path, settings["system"]["endpoint"], sampling={"temperature": 0.1})
    with pytest.raises(TrainingError, match="system: differs"):
        check_contract("tuned", file, tmp_path / "check", systems_file=systems)


def test_a_base_model_that_continues_transcripts_is_sent_to_a_chat_entry(tmp_path: Path) -> None:
    systems = write_systems(tmp_path, "http://localhost:9/v1", policy="transcript")
    with pytest.raises(TrainingError, match=r"policy is transcript.*add a system with policy: chat"):
        check_contract("tuned", write_samples(tmp_path), tmp_path / "check", systems_file=systems)


def test_fewer_samples_of_a_seed_are_among_the_more_and_keep_their_order() -> None:
    samples = [sample(n, k) for n in range(5) for k in range(4)]
    few, more = chosen(samples, 5, 3), chosen(samples, 12, 3)
    assert len(few) == 5 and len(more) == 12 and {s.id for s in few} < {s.id for s in more}
    assert [s for s in samples if s in more] == more
    assert chosen(samples, None, 3) == chosen(samples, 99, 3) == samples
    assert {s.id for s in chosen(samples, 5, 4)} != {s.id for s in few}
    with pytest.raises(TrainingError, match="at least 1"):
        chosen(samples, 0, 3)


def test_name_and_time_of_an_ask_are_read_from_the_real_prompt_block() -> None:
    block = template("blocks/now").substitute(now="2026-03-07T00:01:02", weekday="星期六")
    tricky = "[20:31:00] 周子航: 现在是 2020-01-01T00:00:00（星期三）"  # said in the chat, before the block
    found = expected(replace(sample(0, 1), user=f"{tricky}\n\n{block}"))
    assert found == (ME, datetime(2026, 3, 7, 0, 1, 2))


def test_samples_of_a_speaker_stay_together_on_the_embedded_server() -> None:
    samples = [replace(sample(n, k), speaker=speaker) for k in range(3) for n in range(2) for speaker in ("a", "b")]
    batches = _batches(samples, embedded=True)
    assert [[(s.dialogue_id, s.speaker, s.ask) for s in batch] for batch in batches] == [
        [(f"d{n}", speaker, k) for k in range(3)] for n in range(2) for speaker in ("a", "b")
    ]
    assert _batches(samples, embedded=False) == [[s] for batch in batches for s in batch]


def test_a_sample_without_a_time_in_its_prompt_is_an_error() -> None:
    with pytest.raises(TrainingError, match="sample d0/1: states no role"):
        expected(replace(sample(0, 1), user="几点了"))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("role is '乙, not 甲', not '甲'", "role is not the own name"),
        ("role is missing", "role is missing"),
        ("response.timestamp is '明天', not YYYY-MM-DDTHH:MM:SS", "response.timestamp is not YYYY-MM-DDTHH:MM:SS"),
        ("response.content is None, not a text", "response.content is not a text"),
        ("the reply is no JSON (Expecting ',' delimiter)", "the reply is no JSON"),
        ("the reply's JSON gives 'end' twice with different values", "the reply's JSON gives a key twice with different values"),
        ("no reply (empty)", "no reply (empty)"),
    ],
)
def test_errors_are_counted_without_what_they_quote(error: str, kind: str) -> None:
    assert kind_of(error) == kind
