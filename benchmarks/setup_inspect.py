"""Inspect AI in an environment of its own, .servers/inspect, for `benchmarks.bench_engine`.

    python -m benchmarks.setup_inspect

It wants other versions of some libraries than anthrolab, so it never goes into the project's environment. The mark
is written last: the command may be killed and given again.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
INSPECT = ROOT / ".servers" / "inspect"
PYTHON = str(INSPECT / "bin" / "python")
MARK = INSPECT / "complete"
PINS = ("inspect-ai==0.3.285", "openai[aiohttp]==3.57.0")


def is_there() -> bool:
    """True if the whole environment is there, with these pins."""
    return MARK.exists() and MARK.read_text(encoding="utf-8") == "\n".join(PINS)


def main() -> None:
    """Make the environment, anew if it was left unfinished or has other pins."""
    if is_there():
        return
    print(f"{INSPECT.name}: {' '.join(PINS)} into an environment of its own (some minutes, 0.4 GB)", flush=True)
    shutil.rmtree(INSPECT, ignore_errors=True)
    INSPECT.parent.mkdir(exist_ok=True)
    must(sys.executable, "-m", "venv", str(INSPECT))
    must(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PINS)
    MARK.write_text("\n".join(PINS), encoding="utf-8")


def must(*command: str) -> None:
    """Run a command in the checkout; SystemExit in one line, below what the command said, if it fails."""
    if subprocess.run(command, cwd=ROOT).returncode:
        raise SystemExit(f"failed, see above: {' '.join(command)}\n`python -m benchmarks.setup_inspect` begins it anew")


if __name__ == "__main__":
    main()
