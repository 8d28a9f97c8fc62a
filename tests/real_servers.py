"""The real servers of the contract tests: found where `make servers` puts them, started, and ended without orphans."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import IO

import pytest

from tests.setup_servers import GEMMA, ROOT, SMOLLM2, VLLM_MARK, VLLM_PYTHON, has_vllm_build

BLOCK = 128
"""Tokens in a block of vLLM's cache: a shared prefix is reused in whole blocks."""

CONTEXT = 8192
"""Tokens that a request to a real server may have."""

SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # threads tied to cores wait there for whatever else runs on them
    "OMP_NUM_THREADS": "2",
}


def find_smollm2() -> str:
    """The path of the GGUF file; the test is skipped where there is none."""
    if not SMOLLM2.exists():
        pytest.skip(f"{SMOLLM2.name} is not here, so the chat policy met no real instruct model; run: make servers")
    return str(SMOLLM2)


class Vllm:
    """A vLLM server on a port of its own, which stays the same when it is started again. `log` is its output."""

    def __init__(self, log: Path, deadline: float = 600.0) -> None:
        if not has_vllm_build():
            pytest.skip("vLLM's CPU build is for Linux on x86-64, so nothing was asked of a real vLLM")
        if not (VLLM_MARK.exists() and GEMMA.exists()):
            pytest.skip("vLLM is not here, so nothing was asked of a real one; run: make servers")
        self.log = log
        self.deadline = deadline
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._broken = ""
        self._guard: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it unless it runs, and wait until it answers."""
        if self._guard is not None and answers(f"{self.url}/health"):
            return
        self.kill()
        if self._broken:
            pytest.fail(self._broken)
        self._guard = guarded(
            [
                # what `vllm serve` runs; that command itself looks for a distribution called vllm, which vllm-cpu is not
                VLLM_PYTHON, "-m", "vllm.entrypoints.openai.api_server",
                "--model", str(GEMMA), "--served-model-name", "gemma", "--host", "127.0.0.1", "--port", str(self.port),
                "--dtype", "bfloat16", "--max-model-len", str(CONTEXT), "--block-size", str(BLOCK), "--enforce-eager",
                "--enable-prefix-caching", "--enable-prompt-tokens-details",
            ],
            self.log,
        )  # fmt: skip
        end = time.monotonic() + self.deadline
        while not answers(f"{self.url}/health"):
            if self._guard.poll() is not None or time.monotonic() > end:
                self.kill()
                self._broken = f"vLLM did not start; the end of its log:\n{self.tail()}"
                pytest.fail(self._broken)
            time.sleep(0.2)

    def kill(self) -> None:
        """SIGKILL to all its processes at once; returns when they are gone."""
        if self._guard is not None:
            assert self._guard.stdin is not None
            self._guard.stdin.close()
            self._guard.wait()

    def tail(self, lines: int = 60) -> str:
        """The end of its log."""
        said = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return "\n".join([line for line in said.splitlines() if "Route: " not in line][-lines:])

    def served(self) -> int:
        """Requests that it has answered since its last start, by its own count."""
        with direct().open(f"{self.url}/metrics") as answer:
            text = answer.read().decode()
        return int(sum(float(n) for n in re.findall(r"^vllm:request_success_total\{.*\} (\S+)$", text, re.MULTILINE)))


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def direct() -> urllib.request.OpenerDirector:
    """Opens URLs without the proxy of the environment."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def answers(url: str) -> bool:
    """True if a GET is answered with 200."""
    try:
        with direct().open(url, timeout=5):
            return True
    except OSError:
        return False


def count_tokens(url: str, text: str, key: str = "") -> int:
    """How many tokens a text has, by the server's own count (llama.cpp reads `content`, vLLM `prompt`)."""
    body = json.dumps({"model": "gemma", "content": text, "prompt": text, "add_special_tokens": False}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    with direct().open(urllib.request.Request(f"{url}/tokenize", body, headers)) as answer:
        return len(json.load(answer)["tokens"])


def guarded(command: list[str], log: Path) -> "subprocess.Popen[bytes]":
    """Run a server under a guard, which kills it when this process closes the guard's standard input or dies.

    So not even SIGKILL to pytest leaves a server behind.
    """
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.real_servers", *command],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip


def guard(command: list[str], held: IO[bytes]) -> None:
    """Run a server until it ends or `held` does; then kill its process group and clear away what it leaves."""
    with tempfile.TemporaryDirectory(prefix="vllm") as folder:
        environment = {**os.environ, **SETTINGS, "TMPDIR": folder}
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
        over = threading.Event()
        for ended in (server.wait, held.read):
            threading.Thread(target=lambda ended=ended: (ended(), over.set()), daemon=True).start()
        shared: set[Path] = set()
        try:
            while not over.wait(1):
                shared |= shared_memory(server.pid)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()
            for path in shared:
                path.unlink(missing_ok=True)


def shared_memory(group: int) -> set[Path]:
    """The files in shared memory that the processes of a group use: a killed vLLM would leave 400 MB there."""
    used: set[int] = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(maps.parent.name)) == group:
                used |= {int(n) for n in re.findall(r" (\d+) +/dev/shm/", maps.read_text(encoding="utf-8"))}
    return {Path(file.path) for file in os.scandir("/dev/shm") if file.inode() in used} if used else set()


if __name__ == "__main__":
    guard(sys.argv[1:], sys.stdin.buffer)
