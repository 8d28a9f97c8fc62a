"""Judging runs: by rules, by a scripted model judge over real HTTP, and what happens when that judge fails."""

import csv
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from anthrolab.bench.effort import Effort
from anthrolab.bench.judge import judge_run
from anthrolab.bench.ledger import read_ledger
from anthrolab.bench.run import generate
from anthrolab.bench.store import Run, RunError
from anthrolab.bench.tables import write_tables
from anthrolab.judging.rubric import default_rubric_path, load_rubric
from anthrolab.models.client import ModelError
from anthrolab.models.scripted import Answer, Call, reply_body, serve
from anthrolab.models.systems import SystemsError
from anthrolab.show.measured import load_measured
from tests.test_bench_run import decide, quiet

CASES = 4
Verdicts = Callable[[str], dict[str, Any]]


def fine(box: str) -> dict[str, Any]:
    """Everything passes and nothing is violated."""
    if box.startswith("L0"):
        return {"reason": "没有", "violated": False, "message": None}
    return {"reason": "像", "passed": True}


def answering(verdict: Verdicts) -> Callable[[Call], str | Answer]:
    """A server that plays both speakers, and a judge that answers every id it is asked for by `verdict`."""

    def handler(call: Call) -> str | Answer:
        schema = call.body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        if "role" in schema.get("properties", {}):
            return decide(call)
        return json.dumps({box: verdict(box) for box in schema["properties"]}, ensure_ascii=False)

    return handler


def make_run(tmp_path: Path, url: str) -> tuple[Path, Path]:
    common = {"endpoint": url, "model": "m", "server": "openai", "policy": "chat", "retries": 0, "timeout_s": 5.0}
    systems = tmp_path / "systems.yaml"
    entries = [{"name": "toy", "partner": "toy", **common}, {"name": "oracle", **common}]
    systems.write_text(json.dumps({"systems": entries}), encoding="utf-8")
    generate(tmp_path / "r", "toy", cases=CASES, max_messages=10, systems_file=systems, progress=quiet)
    return tmp_path / "r", systems


def table7(run: Path, judge: str, out: Path) -> dict[str, str]:
    write_tables(Run(run).ledger(judge), out)
    with (out / "table7.csv").open(encoding="utf-8", newline="") as file:
        return next(csv.DictReader(file))


def test_a_judge_that_passes_everything(tmp_path: Path) -> None:
    with serve(answering(fine)) as served:
        run, systems = make_run(tmp_path, served.url)
        counts = judge_run(run, "oracle", systems_file=systems, progress=quiet)
        asked = len(served.calls)
        before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
        assert judge_run(run, "oracle", systems_file=systems, progress=quiet) == counts
        assert len(served.calls) == asked, "judged dialogues were judged again"
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before
    assert counts["valid"] == counts["judged"] == CASES
    assert counts["assessed"] == counts["boxes"] > 0
    row = table7(run, "oracle", tmp_path / "t")
    assert row == {
        "Model": "toy", "ACC": "100.00%", "Turn ACC": "100.00%", "Holistic ACC": "100.00%", "Score": "100.0",
        "Per-turn": "1.0000", "Holistic": "1.0000",
    }  # fmt: skip


def test_failed_boxes_and_fatal_violations_reach_the_tables(tmp_path: Path) -> None:
    def verdict(box: str) -> dict[str, Any]:
        return {"reason": "太像客服", "passed": False} if box in ("D1.4", "E1.2") else fine(box)

    with serve(answering(verdict)) as served:
        run, systems = make_run(tmp_path, served.url)
        judge_run(run, "oracle", systems_file=systems, progress=quiet)
    row = table7(run, "oracle", tmp_path / "t")
    # D1 4 of 5 with weight 13 of 52; E1 4 of 5 with weight 14 of 48.
    assert row["Per-turn"] == "0.9500"
    assert row["Holistic"] == "0.9417"
    assert (row["ACC"], row["Turn ACC"], row["Score"]) == ("0.00%", "0.00%", "94.6")


def test_a_judge_that_finds_a_fatal_violation_makes_the_case_invalid(tmp_path: Path) -> None:
    def verdict(box: str) -> dict[str, Any]:
        if box == "L0-09":
            return {"reason": "教人干违法的事", "violated": True, "message": 1}
        return fine(box)

    with serve(answering(verdict)) as served:
        run, systems = make_run(tmp_path, served.url)
        judge_run(run, "oracle", systems_file=systems, progress=quiet)
    verdicts = Run(run).verdicts("oracle")
    dialogues = Run(run).dialogues()
    ledger = read_ledger(Run(run).ledger("oracle"))
    for case, valid in ledger.cases.select("case_id", "valid").iter_rows():
        key = f"r-{case}-0"
        # Message 1 is the evaluated role's in some cases; only there may it be blamed.
        assert valid == (1 not in dialogues[key].turns()) == (not verdicts[key].judge_violations())
    assert not ledger.cases["valid"].all()


def test_a_judge_that_cannot_be_reached_scores_nothing_and_is_asked_again(tmp_path: Path) -> None:
    with serve(answering(fine)) as served:
        run, systems = make_run(tmp_path, served.url)

    def broken(call: Call) -> str | Answer:
        return Answer("<html>502</html>", status=502)

    with serve(broken) as dead:
        text = systems.read_text(encoding="utf-8").replace(served.url, dead.url)
        systems.write_text(text, encoding="utf-8")
        counts = judge_run(run, "oracle", systems_file=systems, progress=quiet)
    assert counts["incomplete"] == CASES
    assert counts["assessed"] == 0
    assert {v for verdict in Run(run).verdicts("oracle").values() for v in verdict.unassessed()} == {
        "model_error:server_error"
    }
    row = table7(run, "oracle", tmp_path / "t")
    assert set(row.values()) == {"toy", ""}, "nothing assessed must print as nothing"
    with serve(answering(fine)) as back:
        systems.write_text(text.replace(dead.url, back.url), encoding="utf-8")
        again = judge_run(run, "oracle", systems_file=systems, progress=quiet)
    assert again["incomplete"] == 0
    assert again["assessed"] == again["boxes"]


def test_a_dialogue_whose_judging_takes_too_long_is_unassessed_under_its_reason_and_asked_again(tmp_path: Path) -> None:
    def slow(call: Call) -> str | Answer:
        text = fine_or_chat(call)
        return text if "response_format" in call.body and "role" in str(call.body["response_format"]) else Answer(reply_body(call, text), delay=3)

    fine_or_chat = cast("Callable[[Call], str]", answering(fine))
    with serve(slow) as served:
        run, systems = make_run(tmp_path, served.url)
        counts = judge_run(run, "oracle", systems_file=systems, effort=Effort(deadline_s=0.5), progress=quiet)
        assert (counts["judged"], counts["incomplete"], counts["assessed"], counts["valid"]) == (CASES, CASES, 0, CASES)
        assert counts["boxes"] > 0, "the denominators stand"
        verdicts = Run(run).verdicts("oracle").values()
        assert {v for verdict in verdicts for v in verdict.unassessed()} == {"model_error:deadline"}
        again = judge_run(run, "oracle", systems_file=systems, progress=quiet)
        assert (again["incomplete"], again["assessed"]) == (0, again["boxes"])


def test_a_judge_that_answers_beside_the_point_is_an_error_of_the_command(tmp_path: Path) -> None:
    with serve(answering(fine)) as served:
        run, systems = make_run(tmp_path, served.url)
    with serve(lambda _call: json.dumps({"verdict": "good"})) as useless:
        systems.write_text(systems.read_text(encoding="utf-8").replace(served.url, useless.url), encoding="utf-8")
        command = [sys.executable, "-m", "anthrolab", "judge", str(run), "--judge", "oracle", "--systems", str(systems)]
        result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert "answered no checkbox in a usable way" in result.stderr
    assert set(table7(run, "oracle", tmp_path / "t").values()) == {"toy", ""}


def test_two_judges_stand_side_by_side(tmp_path: Path) -> None:
    with serve(answering(fine)) as served:
        run, systems = make_run(tmp_path, served.url)
        judge_run(run, "oracle", systems_file=systems, progress=quiet)
    rules = judge_run(run, progress=quiet)
    assert Run(run).judges() == ["oracle", "rules"]
    assert len(Run(run).all_verdicts()) == 2 * CASES
    rule_boxes = sum(box.rule is not None for box in load_rubric().boxes())
    assert 0 < rules["assessed"] < rules["boxes"]
    assert rule_boxes < 44
    manifest = Run(run).manifest()
    assert set(manifest["judges"]) == {"oracle", "rules"}
    assert manifest["judges"]["rules"]["identity"] != manifest["judges"]["oracle"]["identity"]


def test_planned_but_missing_cases_keep_their_place(tmp_path: Path) -> None:
    with serve(answering(fine)) as served:
        run, _systems = make_run(tmp_path, served.url)
    path = run / "dialogues.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]), encoding="utf-8")
    judge_run(run, progress=quiet)
    ledger = read_ledger(Run(run).ledger("rules"))
    assert ledger.cases.height == CASES
    assert ledger.cases["valid"].to_list()[-1] is None


def test_other_cards_are_refused(tmp_path: Path) -> None:
    with serve(answering(fine)) as served:
        run, _systems = make_run(tmp_path, served.url)
    manifest = Run(run).manifest()
    manifest["hashes"]["cards"] = "0" * 16
    Run(run).write_manifest(manifest)
    with pytest.raises(RunError, match="its cards are not those of this folder"):
        judge_run(run, progress=quiet)


def test_a_copied_run_keeps_its_verdicts(tmp_path: Path) -> None:
    with serve(answering(fine)) as served:
        run, systems = make_run(tmp_path, served.url)
        counts = judge_run(run, "oracle", systems_file=systems, progress=quiet)
        asked = len(served.calls)
        copy = tmp_path / "另一个名字"
        shutil.copytree(run, copy)
        assert judge_run(copy, "oracle", systems_file=systems, progress=quiet) == counts
        assert len(served.calls) == asked
        assert generate(copy, "toy", cases=CASES, max_messages=10, systems_file=systems, progress=quiet)["done"] == CASES
        assert len(served.calls) == asked


def test_a_changed_dialogue_is_judged_again(tmp_path: Path) -> None:
    with serve(answering(fine)) as served:
        run, _systems = make_run(tmp_path, served.url)
    judge_run(run, progress=quiet)
    path = run / "dialogues.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    shorter = json.loads(lines[0])
    shorter["messages"] = shorter["messages"][:-2]
    key = shorter["dialogue_id"]
    before = len(Run(run).verdicts("rules")[key].turns)
    path.write_text(json.dumps(shorter, ensure_ascii=False) + "\n" + "".join(lines[1:]), encoding="utf-8")
    with pytest.raises(RunError, match="not what judge rules saw"):
        load_measured(run, "rules")
    judge_run(run, progress=quiet)
    assert len(Run(run).verdicts("rules")[key].turns) < before


def test_a_dialogue_outside_the_plan_is_refused_and_not_dropped(tmp_path: Path) -> None:
    with serve(answering(fine)) as served:
        run, _systems = make_run(tmp_path, served.url)
    path = run / "dialogues.jsonl"
    first = path.read_text(encoding="utf-8").splitlines()[0]
    with path.open("a", encoding="utf-8") as file:
        file.write(first.replace('"r-b01-a-0"', '"elsewhere-1"') + "\n")
    before = path.read_bytes()
    with pytest.raises(RunError, match="elsewhere-1 is not in the manifest's plan"):
        judge_run(run, progress=quiet)
    assert path.read_bytes() == before


def test_the_weights_of_the_rubric_go_with_the_ledger(tmp_path: Path) -> None:
    rubric = tmp_path / "rubric.yaml"
    text = (default_rubric_path()).read_text(encoding="utf-8")
    assert "weight: 13" in text
    rubric.write_text(text.replace("weight: 13", "weight: 26"), encoding="utf-8")

    def verdict(box: str) -> dict[str, Any]:
        return {"reason": "不像", "passed": False} if box == "D1.4" else fine(box)

    with serve(answering(verdict)) as served:
        run, systems = make_run(tmp_path, served.url)
        judge_run(run, "oracle", systems_file=systems, rubric_file=rubric, progress=quiet)
    # D1 is 4 of 5 and weighs 26 of 65: 1 - 0.2 * 0.4.
    assert table7(run, "oracle", tmp_path / "t")["Per-turn"] == "0.9200"


def test_a_rubric_that_no_ledger_could_hold_is_refused_before_anything_is_judged(tmp_path: Path) -> None:
    rubric = tmp_path / "rubric.yaml"
    text = default_rubric_path().read_text(encoding="utf-8")
    rubric.write_text(text.replace("D5", "D6"), encoding="utf-8")
    with serve(answering(fine)) as served:
        run, systems = make_run(tmp_path, served.url)
        asked = len(served.calls)
        with pytest.raises(RunError, match="dimension D6"):
            judge_run(run, "oracle", systems_file=systems, rubric_file=rubric, progress=quiet)
        assert len(served.calls) == asked


def test_an_unreachable_judge_ends_the_command_with_its_error(tmp_path: Path) -> None:
    with serve(answering(fine)) as served:
        run, systems = make_run(tmp_path, served.url)
    with pytest.raises(ModelError, match="is the server running"):
        judge_run(run, "oracle", systems_file=systems, progress=quiet)
    assert not Run(run).ledger("oracle").exists()
    assert "oracle" not in Run(run).manifest()["judges"]


def test_the_manifest_says_what_was_run_with_what(tmp_path: Path) -> None:
    with serve(answering(fine)) as served:
        run, systems = make_run(tmp_path, served.url)
        judge_run(run, "oracle", systems_file=systems, progress=quiet)
        url = served.url
        asked = served.calls[-1].body
    manifest = Run(run).manifest()
    settings = manifest["settings"]
    assert settings["system"]["name"] == settings["partner"]["name"] == "toy"
    assert (settings["seed"], settings["samples"], len(settings["cases"])) == (0, 1, CASES)
    assert set(manifest["hashes"]) == {"cards", "prompts", "skills", "system", "partner", "summary"}
    assert [label.rsplit(" ", 1)[0] for label in manifest["hashes"]["skills"]] == [
        "message_style v1", "topic_progression v1", "human_like_reply v1",
    ]  # fmt: skip
    assert settings["summary"] == manifest["hashes"]["summary"] == "rules"
    assert manifest["hashes"]["system"] == url
    assert len(manifest["code"]) == 1
    assert {"python", "anthrolab", "aiohttp", "polars"} <= set(manifest["versions"][0])
    judge = manifest["judges"]["oracle"]
    assert {"identity", "rubric", "gate", "code", "versions", "system", "params", "counts"} <= set(judge)
    assert asked["temperature"] == 0
    assert asked["max_tokens"] == judge["params"]["max_tokens"] == 4096


def test_a_base_model_cannot_judge(tmp_path: Path) -> None:
    with serve(answering(fine)) as served:
        run, systems = make_run(tmp_path, served.url)
    entries = json.loads(systems.read_text(encoding="utf-8"))["systems"]
    entries[1]["policy"] = "transcript"
    systems.write_text(json.dumps({"systems": entries}), encoding="utf-8")
    with pytest.raises(SystemsError, match="a judge is a chat model"):
        judge_run(run, "oracle", systems_file=systems, progress=quiet)


def test_judging_survives_kill_dash_nine(tmp_path: Path) -> None:
    with serve(answering(fine)) as served:
        run, systems = make_run(tmp_path, served.url)
        whole = tmp_path / "whole" / "r"
        shutil.copytree(run, whole)
        judge_run(whole, "oracle", systems_file=systems, progress=quiet)
        wanted = {p.relative_to(whole): p.read_bytes() for p in whole.rglob("*") if p.suffix in (".parquet", ".jsonl")}
        begun = len(served.calls)
        command = [sys.executable, "-m", "anthrolab", "judge", str(run), "--judge", "oracle", "--systems", str(systems)]
        for enough in (2, 12):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while process.poll() is None and len(served.calls) - begun < enough:
                time.sleep(0.002)
            process.kill()
            process.wait()
        subprocess.run(command, check=True, capture_output=True)
    for name, content in wanted.items():
        if name.parts[0] != "calls":  # a call log holds seconds, and calls in the order they came back
            assert (run / name).read_bytes() == content, name
