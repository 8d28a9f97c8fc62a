"""A report of a run that is not finished, while its folder is locked by the command that works in it."""

import json
import shutil
from pathlib import Path

from typer.testing import CliRunner

from anthrolab.bench.store import Run
from anthrolab.cli import app
from tests.runs_for_tests import make_run


def test_a_report_of_what_is_there_so_far_touches_nothing(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path / "半途", answers_all=True, judge="strict-judge"))
    lines = (run.path / "dialogues.jsonl").read_text("utf-8").splitlines()
    verdicts = (run.path / "verdicts.jsonl").read_text("utf-8").splitlines()
    # as a command leaves them that is in the middle of its work: seven dialogues and half a line, three verdicts
    (run.path / "dialogues.jsonl").write_text("\n".join(lines[:7]) + "\n" + lines[7][:50], encoding="utf-8")
    (run.path / "verdicts.jsonl").write_text("\n".join(verdicts[:3]) + "\n", encoding="utf-8")
    for name in ("ledgers", "gate.jsonl"):
        path = run.path / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    manifest = {**run.manifest(), "judges": {}, "counts": {}}
    run.write_manifest(manifest)
    before = {p: p.read_bytes() for p in run.path.rglob("*") if p.is_file()}
    with run.locked():
        result = CliRunner().invoke(app, ["report", str(run.path), "--partial", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    (run.path / ".lock").unlink()
    assert {p: p.read_bytes() for p in run.path.rglob("*") if p.is_file()} == before
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert "Partial report: 半途: 7 of 12 dialogues" in page
    assert "3 judged by strict-judge" in page
    folder = tmp_path / "out" / "tables" / "半途-strict-judge"
    coverage = (folder / "coverage.csv").read_text("utf-8").splitlines()
    row = dict(zip(coverage[0].split(","), coverage[1].split(","), strict=True))
    assert (row["Planned"], row["Valid"]) == ("12", "3"), "a case without a verdict is not done"
    assert json.loads((run.path / "manifest.json").read_text("utf-8")) == manifest
