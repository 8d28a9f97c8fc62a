"""A headless Chromium for tests, with everything that a page logs and asks for."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@dataclass
class Log:
    """Console messages of kind error or warning, uncaught errors, requested addresses, and dialogs opened."""

    console: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


def find_chromium() -> str:
    """The browser's path; the test is skipped where there is none."""
    fixed = Path("/usr/bin/chromium")
    path = str(fixed) if fixed.exists() else shutil.which("chromium")
    if path is None:
        pytest.skip("Chromium is not installed, so nothing was opened in a browser; install the package chromium")
    return path


@contextmanager
def open_page(path: Path, *, width: int = 1280, height: int = 900) -> Iterator[tuple[Any, Log]]:
    """A file opened in Chromium at a width in CSS pixels: the playwright page and its log."""
    from playwright.sync_api import sync_playwright

    executable = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        try:
            page = browser.new_page(viewport={"width": width, "height": height})
            log = Log()
            page.on("console", lambda m: log.console.append(m.text) if m.type in ("error", "warning") else None)
            page.on("pageerror", lambda e: log.errors.append(str(e)))
            page.on("request", lambda r: log.requests.append(r.url))
            page.on("dialog", lambda d: _dismiss(d, log))
            page.goto(path.resolve().as_uri())
            page.wait_for_load_state("networkidle")
            yield page, log
        finally:
            browser.close()


def _dismiss(dialog: Any, log: Log) -> None:
    log.dialogs.append(dialog.message)
    dialog.dismiss()
