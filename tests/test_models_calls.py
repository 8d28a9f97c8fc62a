"""The call log: on disk before used, nothing asked twice, nothing whole lost to a kill."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from anthrolab.files import FileError
from anthrolab.models.calls import CallLog, CallLogError, Recorded
from anthrolab.models.client import ModelError, Reply, Request, Usage
from anthrolab.models.scripted import ScriptedModel
from anthrolab.models.systems import Prices

REPLY = Reply("在呢", "想想", "stop", 450, 400, 7)


def request(text, **more):
    return Request("m", messages=[{"role": "user", "content": text}], params={"temperature": 1.0}, **more)


def ask(log, model, *requests):
    async def work():
        client = Recorded(model, log)
        return [await client.ask(r) for r in requests]

    return asyncio.run(work())


def test_a_reply_is_on_disk_before_it_is_returned(tmp_path):
    path = tmp_path / "calls" / "c.jsonl"
    (reply,) = ask(CallLog(path), ScriptedModel([REPLY], identity="x"), request("在吗", salt="s1"))
    row = json.loads(path.read_text(encoding="utf-8"))
    assert reply.call == row["key"] == request("在吗", salt="s1").key("x")
    assert row["identity"] == "x"
    assert row["model"] == "m"
    assert row["messages"] == [{"role": "user", "content": "在吗"}]
    assert row["params"] == {"temperature": 1.0}
    assert row["salt"] == "s1"
    assert row["reply"] == {
        "text": "在呢", "reasoning": "想想", "finish_reason": "stop",
        "prompt_tokens": 450, "cached_tokens": 400, "completion_tokens": 7,
    }  # fmt: skip
    assert row["seconds"] >= 0
    assert "在吗" in path.read_text(encoding="utf-8")


def test_what_is_logged_is_not_asked_again_also_by_a_later_process(tmp_path):
    path = tmp_path / "c.jsonl"
    log, model = CallLog(path), ScriptedModel([REPLY, "二"])
    first, again, other = ask(log, model, request("一"), request("一"), request("一", salt="x"))
    assert first == again
    assert other.text == "二"
    assert (len(model.requests), log.asked, log.answered) == (2, 2, 1)
    later, silent = CallLog(path), ScriptedModel([])
    assert ask(later, silent, request("一"), request("一", salt="x")) == [first, other]
    assert (silent.requests, later.asked, later.answered, len(later)) == ([], 0, 2, 2)


def test_another_server_or_other_parameters_are_another_call(tmp_path):
    log = CallLog(tmp_path / "c.jsonl")
    ask(log, ScriptedModel(["甲"], identity="one"), request("一"))
    assert ask(log, ScriptedModel(["乙"], identity="two"), request("一"))[0].text == "乙"
    warmer = Request("m", messages=request("一").messages, params={"temperature": 1.1})
    assert ask(log, ScriptedModel(["丙"], identity="one"), warmer)[0].text == "丙"


def test_equal_requests_at_the_same_time_share_one_call(tmp_path):
    log = CallLog(tmp_path / "c.jsonl")
    model = Slow()

    async def work():
        clients = [Recorded(model, log), Recorded(model, log)]
        return await asyncio.gather(*(clients[i % 2].ask(request("一")) for i in range(6)))

    replies = asyncio.run(work())
    assert model.asked == 1
    assert {r.text for r in replies} == {"慢"}
    assert len(log.path.read_text(encoding="utf-8").splitlines()) == 1


def test_a_cancelled_caller_neither_stops_the_others_nor_loses_the_reply(tmp_path):
    log, model = CallLog(tmp_path / "c.jsonl"), Slow()

    async def work():
        client = Recorded(model, log)
        first, second = (asyncio.create_task(client.ask(request("一"))) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        return await second, first.cancelled()

    reply, cancelled = asyncio.run(work())
    assert (reply.text, cancelled, model.asked, len(log)) == ("慢", True, 1, 1)


def test_an_error_is_not_logged_and_the_next_ask_asks_anew(tmp_path):
    log = CallLog(tmp_path / "c.jsonl")
    model = ScriptedModel([ModelError("timeout", "slow"), "好"])
    with pytest.raises(ModelError, match="slow"):
        ask(log, model, request("一"))
    assert not log.path.exists()
    assert ask(log, model, request("一"))[0].text == "好"


def test_a_torn_last_line_is_cut_off_and_asked_again(tmp_path):
    path = tmp_path / "c.jsonl"
    ask(CallLog(path), ScriptedModel(["甲", "乙"]), request("一"), request("二"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    log, model = CallLog(path), ScriptedModel(["乙"])
    assert [r.text for r in ask(log, model, request("一"), request("二"))] == ["甲", "乙"]
    assert len(model.requests) == 1
    assert len(CallLog(path)) == 2


def test_damage_elsewhere_is_named_by_line(tmp_path):
    path = tmp_path / "c.jsonl"
    ask(CallLog(path), ScriptedModel(["甲"]), request("一"))
    path.write_text(path.read_text(encoding="utf-8") + '{"key": 1}\n', encoding="utf-8")
    with pytest.raises(CallLogError, match=r"c\.jsonl: line 2: no call record"):
        CallLog(path)


def test_a_log_that_cannot_be_written_is_an_error_and_no_reply(tmp_path):
    (tmp_path / "calls").write_text("a file where the folder should be", encoding="utf-8")
    log = CallLog(tmp_path / "calls" / "c.jsonl")
    with pytest.raises(FileError, match="cannot be written"):
        ask(log, ScriptedModel(["甲"]), request("一"))
    assert len(log) == 0


def test_a_line_half_written_on_a_full_disk_is_cut_before_the_next(tmp_path, monkeypatch):
    log = CallLog(tmp_path / "c.jsonl")
    ask(log, ScriptedModel(["甲"]), request("一"))
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:20]))
    with pytest.raises(FileError):
        ask(log, ScriptedModel(["乙"]), request("二"))
    monkeypatch.undo()
    assert log.path.read_bytes().endswith(b"\n"), "every kind of line is cut back, and not only a call's"
    ask(log, ScriptedModel(["丙"]), request("三"))
    assert len(CallLog(log.path)) == 2


def test_usage_sums_by_server_and_model_and_prices(tmp_path):
    path = tmp_path / "c.jsonl"
    log = CallLog(path)
    ask(log, ScriptedModel([REPLY, REPLY], identity="one"), request("一"), request("二"))
    ask(log, ScriptedModel(["没有计数"], identity="two"), request("三"))
    assert log.usage("one") == Usage(2, 0, 900, 800, 14)
    assert log.usage() == Usage(3, 1, 900, 800, 14) == CallLog(path).usage()
    assert log.usage("one", "other model") == Usage()
    assert Prices(input=0.4, output=1.6).cost(log.usage()) == pytest.approx((900 * 0.4 + 14 * 1.6) / 1e6)


WRITER = """
    import asyncio, sys
    from pathlib import Path
    from anthrolab.models.calls import CallLog, Recorded
    from anthrolab.models.client import Reply, Request
    from anthrolab.models.scripted import ScriptedModel

    async def work():
        client = Recorded(ScriptedModel(lambda r: "回" * 2000), CallLog(Path(sys.argv[1])))
        for i in range(100000):
            reply = await client.ask(Request("m", prompt=f"第{i}句"))
            print(reply.call, flush=True)

    asyncio.run(work())
"""


def test_after_kill_9_every_reply_that_was_returned_is_there(tmp_path):
    path = tmp_path / "c.jsonl"
    for round_ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), str(path)],
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        assert writer.stdout is not None
        returned = [writer.stdout.readline().strip() for _ in range(50 * (round_ + 1))]
        writer.send_signal(signal.SIGKILL)
        returned += [line.strip() for line in writer.stdout.read().split("\n")[:-1]]
        writer.wait()
        log = CallLog(path)
        assert len(returned) >= 50
        assert all(log.get(key) is not None for key in returned)
        model = ScriptedModel([])
        requests = [Request("m", prompt=f"第{i}句") for i in range(len(returned))]
        assert [r.call for r in ask(log, model, *requests)] == returned
        assert model.requests == []


class Slow:
    identity = "slow"

    def __init__(self):
        self.asked = 0

    async def ask(self, request):
        self.asked += 1
        await asyncio.sleep(0.02)
        return Reply("慢")
