"""A report of a run that is not finished, while its folder is locked by the command that works in it."""

import json
import shutil
from pathlib import Path

from typer.testing import CliRunner

from anthrolab.bench.store import Run
from anthrolab.cli import app
from anthrolab.show.partial import write_partial_report
from tests.browser import open_page
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
    assert (row["Planned"], row["Valid"]) == ("12", "3"), "a case without a verdict is not judged"
    assert json.loads((run.path / "manifest.json").read_text("utf-8")) == manifest


def test_a_judge_that_is_asked_anew_is_shown_as_it_answers_now(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path / "r", answers_all=True, judge="strict-judge"))
    old = list(run.verdicts("strict-judge").values())
    for verdict in old[:3]:
        run.add_verdict(verdict.model_copy(update={"judge_identity": "9" * 16}))
    write_partial_report([run.path], tmp_path / "out")
    assert "3 judged by strict-judge" in (tmp_path / "out" / "index.html").read_text("utf-8")


def test_the_retests_of_a_run_come_along(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path / "r", answers_all=True, judge="strict-judge"))
    (run.path / "retests.jsonl").write_text((run.path / "verdicts.jsonl").read_text("utf-8"), encoding="utf-8")
    write_partial_report([run.path], tmp_path / "out")
    assert (tmp_path / "out" / "tables" / "retest-r-strict-judge.md").exists()


def test_a_run_that_has_nothing_yet_can_be_reported(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path / "r"))
    for name in ("dialogues.jsonl", "verdicts.jsonl", "gate.jsonl"):
        (run.path / name).unlink()
    run.write_manifest({**run.manifest(), "judges": {}, "counts": {}})
    write_partial_report([run.path], tmp_path / "out")
    assert "0 of 12 dialogues" in (tmp_path / "out" / "index.html").read_text("utf-8")


def test_what_failed_and_what_was_not_judged_yet_add_up_and_no_judge_is_blamed(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path / "r", answers_all=True, judge="strict-judge", partner_breaks=False))
    for name, kept in (("dialogues.jsonl", 9), ("verdicts.jsonl", 3)):
        lines = (run.path / name).read_text("utf-8").splitlines()
        (run.path / name).write_text("\n".join(lines[:kept]) + "\n", encoding="utf-8")
    # the last command's failures: one of them was had after all
    had = json.dumps({"dialogue_id": next(iter(run.dialogues())), "fault": "timeout", "error": "x"})
    with (run.path / "failures.jsonl").open("a", encoding="utf-8") as file:
        file.write(had + "\n")
    page = write_partial_report([run.path], tmp_path / "out")
    stops = (page.parent / "tables" / "stops-by-reason.csv").read_text("utf-8")
    assert "Never finished: failed,r,1," in stops and "Never finished: not tried,r,2," in stops
    faults = (page.parent / "tables" / "faults.csv").read_text("utf-8")
    assert "Nobody's: not judged,\"r, strict-judge\",\"Valid by the gate, not judged yet\",6," in faults
    assert "Judge," not in faults and "gave no usable answer" not in page.read_text("utf-8")
    with open_page(page) as (opened, _):
        table = opened.locator("section#coverage #denominators")
        names = table.locator("thead th").all_text_contents()
        rows = [dict(zip(names, r.locator("th, td").all_text_contents(), strict=True)) for r in table.locator("tbody tr").all()]
    by_judge = {r["Run, judge"]: [r[n] for n in ("Planned", "Done", "Failed", "Missing", "Valid", "Invalid", "Not judged")] for r in rows}
    assert by_judge["r, strict-judge"] == ["12", "9", "1", "2", "3", "0", "6"]
    assert all(r["Failed"] == "1" and r["Missing"] == "2" for r in rows)
