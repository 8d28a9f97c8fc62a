"""The main job, small: the real embedded model chats, is gated and judged, and stands in the report."""

import json
from pathlib import Path

import pytest

from anthrolab.bench.store import Run
from anthrolab.show.notebooks import run_notebooks
from tests.browser import open_page

CASES = 2


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[str], list[str]]:
    """Notebooks 02, 03 and 04 run twice on the real embedded model, in a folder with a Chinese name."""
    folder = tmp_path_factory.mktemp("主线")
    run, report = folder / "快跑", folder / "报告"
    parameters = [f"cases={CASES}", "max_messages=6", f"report_dir={report}"]
    printed: list[list[str]] = []
    for _ in range(2):
        lines: list[str] = []
        run_notebooks(["02", "03", "04"], run, parameters, progress=lines.append)
        printed.append(lines)
    return run, report, printed[0], printed[1]


def test_the_real_model_chatted(job: tuple[Path, Path, list[str], list[str]]) -> None:
    run = Run(job[0])
    assert run.manifest()["counts"] == {"planned": CASES, "done": CASES, "failed": 0, "missing": 0}
    dialogues = run.dialogues()
    generated = [m for d in dialogues.values() for m in d.messages if not m.opener]
    assert len(generated) >= 2
    for dialogue in dialogues.values():
        assert dialogue.asks
        assert not [a.error for a in dialogue.asks if a.error], "the grammar lets no line break the contract"
    rows = [json.loads(line) for p in run.calls.iterdir() for line in p.read_text(encoding="utf-8").splitlines()]
    assert {row["identity"].split(":")[0] for row in rows} == {"embedded"}
    assert all(row["reply"]["completion_tokens"] > 0 for row in rows)
    assert sum(row["reply"]["cached_tokens"] or 0 for row in rows) > 0, "the prefix cache never hit"


def test_the_second_time_nothing_is_asked_again(job: tuple[Path, Path, list[str], list[str]]) -> None:
    _run, _report, first, second = job
    assert any(f"{CASES} of {CASES} dialogues to have" in line for line in first)
    assert not any("dialogues to have" in line for line in second)


def test_published_and_measured_blocks_are_printed(job: tuple[Path, Path, list[str], list[str]]) -> None:
    text = "\n".join(job[3])
    assert text.count("Qwen3.6-27B-SFT+RL (think)") == 1
    assert "39.00%" in text
    assert "\ngemma-3-270m " in text
    assert f"report: {job[1] / 'index.html'}" in text


def test_the_report_opens_offline(job: tuple[Path, Path, list[str], list[str]]) -> None:
    with open_page(job[1] / "index.html") as (page, log):
        assert not log.console
        assert not log.errors
        assert len(log.requests) == 1
        text = page.text_content("body")
    assert "gemma-3-270m" in text
    for dialogue in Run(job[0]).dialogues().values():
        assert dialogue.messages[0].content in text
