"""The reply cache: shared by runs and processes, never in the way of one."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from anthrolab.models.cache import BATCH, CacheError, ReplyCache
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.client import Reply, Request
from anthrolab.models.engine import open_engine
from anthrolab.models.scripted import ScriptedModel
from anthrolab.sync import run_async

REPLY = Reply("在呢 👀", "想了想", "stop", 12, 3, 4)


def test_a_reply_is_there_at_once_and_after_closing(tmp_path: Path) -> None:
    path = tmp_path / "回复" / "replies.sqlite"
    with ReplyCache(path) as cache:
        assert cache.get("k") is None
        cache.put("k", REPLY)
        assert cache.get("k") == Reply("在呢 👀", "想了想", "stop", 12, 3, 4, call="k")
    with ReplyCache(path) as cache:
        assert cache.get("k") == Reply("在呢 👀", "想了想", "stop", 12, 3, 4, call="k")


def test_the_first_reply_stays(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "c") as two:
        with ReplyCache(tmp_path / "c") as one:
            one.put("k", Reply("一"))
        two.put("k", Reply("二"))
    with ReplyCache(tmp_path / "c") as later:
        kept = later.get("k")
    assert kept is not None and kept.text == "一"


def test_a_file_held_by_another_process_costs_no_waiting_and_no_reply(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with ReplyCache(path) as cache:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for i in range(BATCH):
            cache.put(f"k{i}", REPLY)
        assert cache.get("k0") is not None
        other.execute("ROLLBACK")
        other.close()
    with ReplyCache(path) as cache:
        assert cache.get(f"k{BATCH - 1}") is not None


def test_two_runs_share_replies_and_each_has_its_own_log(tmp_path: Path) -> None:
    model = ScriptedModel(["甲", "乙"], identity="m")

    async def one(name: str) -> str:
        async with open_engine(tmp_path / "c") as engine:
            log = CallLog(tmp_path / name, engine)
            reply = await Recorded(model, log).ask(Request("m", messages=[{"role": "user", "content": "在吗"}], salt="0"))
            return reply.text

    assert [run_async(one("a.jsonl")), run_async(one("b.jsonl"))] == ["甲", "甲"]
    assert len(model.requests) == 1
    assert '"reused": true' in (tmp_path / "b.jsonl").read_text("utf-8")
    assert "reused" not in (tmp_path / "a.jsonl").read_text("utf-8")
    assert len(CallLog(tmp_path / "b.jsonl")) == 1


def test_other_draws_are_other_replies(tmp_path: Path) -> None:
    model = ScriptedModel(["甲", "乙"], identity="m")

    async def one(salt: str) -> str:
        async with open_engine(tmp_path / "c") as engine:
            ask = Recorded(model, CallLog(tmp_path / f"{salt}.jsonl", engine)).ask
            return (await ask(Request("m", prompt="x", salt=salt))).text

    assert [run_async(one("0")), run_async(one("1"))] == ["甲", "乙"]


@pytest.mark.parametrize("content", [b"this is no database, and long enough to be seen as none" * 4, b"SQLite format 3\x00" + b"\xff" * 200])
def test_a_file_that_is_no_cache_is_named_with_the_fix(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c"
    path.write_bytes(content)
    with pytest.raises(CacheError, match=r"c: cannot be used as the reply cache .*remove it .*--cache"):
        ReplyCache(path)


def test_a_cache_of_another_version_is_refused(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "c")
    db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(CacheError, match="another version"):
        ReplyCache(tmp_path / "c")


def test_a_row_that_is_no_reply_is_named(tmp_path: Path) -> None:
    ReplyCache(tmp_path / "c").close()
    db = sqlite3.connect(tmp_path / "c")
    db.execute("INSERT INTO replies VALUES ('k', '[1, 2]')")
    db.commit()
    db.close()
    with ReplyCache(tmp_path / "c") as cache, pytest.raises(CacheError, match="key k"):
        cache.get("k")


KILLED = """
import os, sys
from pathlib import Path
from anthrolab.models.cache import ReplyCache
from anthrolab.models.client import Reply
cache = ReplyCache(Path(sys.argv[1]))
for i in range(1000):
    cache.put(f"k{i}", Reply("话" * 50))
os.kill(os.getpid(), 9)
"""


def test_after_kill_9_it_opens_and_holds_whole_replies(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "c")], check=False)
    with ReplyCache(tmp_path / "c") as cache:
        there = [r for i in range(1000) if (r := cache.get(f"k{i}"))]
    assert len(there) >= 1000 - BATCH
    assert {r.text for r in there} == {"话" * 50}


def test_a_full_disk_ends_the_cache_and_not_the_run(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "c") as cache:
        cache.put("first", REPLY)
        cache._db.execute("PRAGMA max_page_count=4")
        for i in range(5 * BATCH):
            cache.put(f"k{i}", Reply("话" * 300))
        assert cache.trouble is not None and "not used any more" in cache.trouble
    with ReplyCache(tmp_path / "c") as cache:
        assert cache.get("k1") is None
