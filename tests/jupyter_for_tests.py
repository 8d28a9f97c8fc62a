"""A JupyterLab of its own for tests: free port, own process group, stopped at the end; and a notebook opened in it."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser import FLAGS, Log, find_chromium

START_SECONDS = 60


@contextmanager
def jupyter_lab(folder: Path) -> Iterator[str]:
    """JupyterLab serving a folder, with settings of its own; the address."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    home = folder / ".jupyter"
    own = {name: str(home) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR")}
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--ServerApp.port_retries=0",
        "--IdentityProvider.token=", f"--notebook-dir={folder}", "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    with (folder / "jupyter.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=os.environ | own, stdout=log, stderr=log, start_new_session=True)
        try:
            _wait(f"http://127.0.0.1:{port}/api", process, folder / "jupyter.log")
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextmanager
def open_notebook(address: str, name: str, *, width: int = 1300, height: int = 1000) -> Iterator[tuple[Any, Log]]:
    """A notebook in Chromium with all its cells run: the playwright page and its log (uncaught errors, requests)."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        try:
            page = browser.new_page(viewport={"width": width, "height": height})
            log = Log()
            page.on("pageerror", lambda e: log.errors.append(str(e)))
            page.on("request", lambda r: log.requests.append(r.url))
            page.goto(f"{address}/lab/tree/{name}")
            page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
            page.wait_for_selector("text=| Idle", timeout=60_000)  # what is run before the kernel is there may be dropped
            page.click(".jp-Notebook .jp-Cell")
            page.click("text=Run >> nth=0")
            page.click("text=Run All Cells")
            yield page, log
        finally:
            browser.close()


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8', errors='replace')[-3000:]}")
