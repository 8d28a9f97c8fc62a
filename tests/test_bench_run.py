"""Runs: planned, generated, failed, killed and gone on with. The model behind them is scripted, over real HTTP."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anthrolab.bench.cases import select_cases
from anthrolab.bench.run import generate
from anthrolab.bench.settings import NO_SKILLS
from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.cli import app
from anthrolab.models.scripted import Answer, Call, Served, reply_body, serve

LIBRARY = load_library(default_cards_dir())


def decide(call: Call) -> str:
    """A model that always answers within the contract, and differently at every state."""
    system, user = (m["content"] for m in call.body["messages"])
    name = re.search(r"你就是(.+?)。\n", system)
    now = re.search(r"现在是 (\S+)（", user)
    assert name and now
    lines = user.count("\n[")
    stamp = now[1][:-2] + "59"
    decision = {"role": name[1], "response": {"content": f"第{lines}句 {len(user)}", "timestamp": stamp, "end": lines > 9}}
    return json.dumps(decision, ensure_ascii=False)


@pytest.fixture
def server() -> Iterator[Served]:
    with serve(decide) as served:
        yield served


def write_systems(path: Path, url: str, **more: object) -> Path:
    entry = {
        "name": "toy", "endpoint": url, "model": "scripted", "server": "openai", "policy": "chat",
        "partner": "toy", "retries": 0, "timeout_s": 5.0, "concurrency": 4, **more,
    }  # fmt: skip
    path.write_text(json.dumps({"systems": [entry]}), encoding="utf-8")  # JSON is YAML
    return path


def quiet(_line: str) -> None:
    pass


def test_cases_are_one_per_binding_first_with_roles_in_turn() -> None:
    twelve = select_cases(LIBRARY, 12)
    assert len({c.binding for c in twelve}) == len({c.category for c in twelve}) == 12
    assert [c.role for c in twelve] == ["a", "b"] * 6
    everything = select_cases(LIBRARY, None)
    assert everything[:12] == twelve
    assert len({c.id for c in everything}) == 2 * len(LIBRARY.bindings) == len(everything)


def test_a_run_is_made_once(tmp_path: Path, server: Served) -> None:
    systems = write_systems(tmp_path / "systems.yaml", server.url)
    run = tmp_path / "运行 一"
    counts = generate(run, "toy", cases=3, samples=2, max_messages=12, systems_file=systems, progress=quiet)
    assert counts == {"planned": 6, "done": 6, "failed": 0, "missing": 0}
    calls = len(server.calls)
    assert calls > 0
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    assert generate(run, "toy", cases=3, samples=2, max_messages=12, systems_file=systems, progress=quiet) == counts
    assert len(server.calls) == calls, "the model was asked again"
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before
    dialogues = Run(run).dialogues()
    assert list(dialogues) == [f"运行 一-{c.id}-{s}" for c in select_cases(LIBRARY, 3) for s in (0, 1)]
    for dialogue in dialogues.values():
        assert dialogue.asks is not None
        logged = {json.loads(line)["key"] for p in (run / "calls").iterdir() for line in p.read_text("utf-8").splitlines()}
        assert {a.call for a in dialogue.asks} <= logged


def test_a_run_may_grow_but_not_change(tmp_path: Path, server: Served) -> None:
    systems = write_systems(tmp_path / "systems.yaml", server.url)
    run = tmp_path / "r"
    generate(run, "toy", cases=1, max_messages=6, systems_file=systems, progress=quiet)
    assert generate(run, "toy", cases=2, max_messages=6, systems_file=systems, progress=quiet)["planned"] == 2
    for changed in ({"max_messages": 7}, {"seed": 1, "max_messages": 6}):
        with pytest.raises(RunError, match=r"settings\.(limits|seed) is not what this run was begun with"):
            generate(run, "toy", cases=2, systems_file=systems, progress=quiet, **changed)  # type: ignore[arg-type]


def test_lost_dialogues_come_back_from_the_call_log(tmp_path: Path, server: Served) -> None:
    systems = write_systems(tmp_path / "systems.yaml", server.url)
    run = tmp_path / "r"
    generate(run, "toy", cases=2, max_messages=8, systems_file=systems, progress=quiet)
    whole, calls = (run / "dialogues.jsonl").read_bytes(), len(server.calls)
    (run / "dialogues.jsonl").write_bytes(whole[: len(whole) // 2])  # torn in the middle of a line
    generate(run, "toy", cases=2, max_messages=8, systems_file=systems, progress=quiet)
    assert (run / "dialogues.jsonl").read_bytes() == whole
    assert len(server.calls) == calls


def test_a_dead_endpoint_fails_the_cases_and_judges_nobody(tmp_path: Path, server: Served) -> None:
    systems = write_systems(tmp_path / "systems.yaml", "http://127.0.0.1:9/v1")
    run = tmp_path / "r"
    result = CliRunner().invoke(
        app, ["run", "--system", "toy", "--cases", "4", "--run", str(run), "--systems", str(systems)]
    )
    assert result.exit_code == 1
    assert "127.0.0.1:9" in result.stderr
    assert "Traceback" not in result.output
    manifest = Run(run).manifest()
    assert manifest["counts"]["done"] == 0 and manifest["counts"]["failed"] >= 1
    assert sum(manifest["counts"][k] for k in ("done", "failed", "missing")) == manifest["counts"]["planned"] == 4
    rows = [json.loads(line) for line in (run / "failures.jsonl").read_text("utf-8").splitlines()]
    assert {row["fault"] for row in rows} == {"unreachable"}
    assert {row["system"] for row in rows} == {"toy"} and {row["side"] for row in rows} <= {"tested", "partner"}
    assert Run(run).dialogues() == {}
    # With the endpoint mended the same command goes on: nothing was had under the old settings.
    write_systems(tmp_path / "systems.yaml", server.url)
    assert generate(run, "toy", cases=4, max_messages=4, systems_file=systems, progress=quiet)["done"] == 4
    write_systems(tmp_path / "systems.yaml", server.url, retries=1, concurrency=9, timeout_s=9.0)  # nothing of what it says
    assert generate(run, "toy", cases=4, max_messages=4, systems_file=systems, progress=quiet)["done"] == 4
    write_systems(tmp_path / "systems.yaml", server.url, max_tokens=99)
    with pytest.raises(RunError, match=r"settings\.system"):
        generate(run, "toy", cases=4, max_messages=4, systems_file=systems, progress=quiet)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [(Answer("<html>login</html>", headers={"content-type": "text/html"}), "not_json"), ("", "empty")],
)
def test_a_useless_endpoint_is_a_typed_failure(tmp_path: Path, answer: Answer | str, fault: str) -> None:
    with serve(lambda _call: answer) as served:
        systems = write_systems(tmp_path / "systems.yaml", served.url)
        counts = generate(tmp_path / "r", "toy", cases=1, systems_file=systems, progress=quiet)
    assert counts == {"planned": 1, "done": 0, "failed": 1, "missing": 0}
    row = json.loads((tmp_path / "r" / "failures.jsonl").read_text("utf-8"))
    assert row["fault"] == fault


def test_broken_replies_are_the_systems_own(tmp_path: Path) -> None:
    with serve(lambda _call: "好的，我来回复你") as served:
        systems = write_systems(tmp_path / "systems.yaml", served.url)
        said: list[str] = []
        counts = generate(tmp_path / "r", "toy", cases=1, systems_file=systems, progress=said.append)
        assert counts["done"] == 1
        assert len(served.calls) == 4, "two asks, each asked for once more"
    assert "broken replies: 1 of the tested side, 1 of the partner" in "\n".join(said)
    (dialogue,) = Run(tmp_path / "r").dialogues().values()
    assert dialogue.asks is not None
    assert [a.error is not None and "no JSON" in a.error for a in dialogue.asks] == [True, True]
    assert len(dialogue.messages) == 1


def test_kill_dash_nine_loses_nothing(tmp_path: Path, server: Served) -> None:
    """Killed at several moments, the run ends as an undisturbed one, and no call is made twice."""
    systems = write_systems(tmp_path / "systems.yaml", server.url, concurrency=2)
    args = ["--system", "toy", "--cases", "4", "--max-messages", "12", "--systems", str(systems)]
    command = [sys.executable, "-m", "anthrolab", "run", *args, "--run"]
    undisturbed = tmp_path / "a" / "r"
    subprocess.run([*command, str(undisturbed)], check=True, capture_output=True)
    wanted = (undisturbed / "dialogues.jsonl").read_bytes()
    paid = len(server.calls)

    disturbed = tmp_path / "b" / "r"
    kills = 0
    for enough in (1, 9, 30):
        process = subprocess.Popen([*command, str(disturbed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and len(server.calls) - paid < enough:
            time.sleep(0.002)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
    subprocess.run([*command, str(disturbed)], check=True, capture_output=True)
    assert kills >= 2
    assert (disturbed / "dialogues.jsonl").read_bytes() == wanted
    keys = [json.loads(line)["key"] for p in (disturbed / "calls").iterdir() for line in p.read_text("utf-8").splitlines()]
    assert len(keys) == len(set(keys)) == paid
    lost_in_flight = 2 * kills * 2  # requests under way when the process died
    assert len(server.calls) - 2 * paid <= lost_in_flight


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    """The cards with a memory of p01 about p02 (binding b01), and with a second version of a skill."""
    folder = Path(shutil.copytree(default_cards_dir(), tmp_path / "卡片"))
    (folder / "memories").mkdir(exist_ok=True)
    memory = "owner: p01\npartner: p02\nas_of: 2026-06-01\nfacts:\n  - 她妈妈在怀化开粉店\n"
    (folder / "memories" / "p01-p02.yaml").write_text(memory, encoding="utf-8")
    (folder / "skills" / "message_style" / "v2.md").write_text("# 第二版\n\n- 再短一点", encoding="utf-8")
    return folder


def systems_of(served: Served, name: str) -> set[str]:
    texts = {call.body["messages"][0]["content"] for call in served.calls}
    return {text for text in texts if f'"role": "{name}"' in text}


def test_skills_and_memories_reach_the_prompts(tmp_path: Path, server: Served, cards: Path) -> None:
    systems = write_systems(tmp_path / "systems.yaml", server.url)
    options = {"cases": 1, "max_messages": 4, "systems_file": systems, "cards_dir": cards}  # skills lie beside the cards
    said: list[str] = []
    generate(tmp_path / "r", "toy", progress=said.append, **options)  # type: ignore[arg-type]
    assert "skills message_style v2, topic_progression v1, human_like_reply v1; older messages: rules" in said[0]
    (a,), (b,) = (systems_of(server, LIBRARY.personas[p].name) for p in ("p01", "p02"))
    assert "- 再短一点" in a and "- 再短一点" in b and "# 怎么把话聊下去" in a
    assert "她妈妈在怀化开粉店" in a and "10天前" in a and "她妈妈在怀化开粉店" not in b
    (dialogue,) = Run(tmp_path / "r").dialogues().values()
    assert dialogue.memories is not None and list(dialogue.memories) == ["a"]
    labels = Run(tmp_path / "r").manifest()["hashes"]["skills"]
    assert labels[0].startswith("message_style v2 ")
    # A pinned version is another run, and says so.
    with pytest.raises(RunError, match=r"hashes\.skills"):
        generate(tmp_path / "r", "toy", skills={"message_style": "v1"}, progress=quiet, **options)  # type: ignore[arg-type]
    server.calls.clear()
    generate(tmp_path / "r1", "toy", skills={"message_style": "v1"}, progress=quiet, **options)  # type: ignore[arg-type]
    assert all("再短一点" not in text for text in systems_of(server, LIBRARY.personas["p01"].name))
    server.calls.clear()
    generate(tmp_path / "r2", "toy", skills_dir=NO_SKILLS, progress=quiet, **options)  # type: ignore[arg-type]
    assert Run(tmp_path / "r2").manifest()["hashes"]["skills"] == []
    assert server.calls and all("怎么把话聊下去" not in text for text in systems_of(server, LIBRARY.personas["p01"].name))
    with pytest.raises(RunError, match="--skill message_style"):
        generate(tmp_path / "r3", "toy", skills_dir=NO_SKILLS, skills={"message_style": "v1"}, progress=quiet, **options)  # type: ignore[arg-type]


def summing_up(call: Call) -> str:
    """Always has something new to say, and writes a summary where one is asked for."""
    system, user = (m["content"] for m in call.body["messages"])
    if "要压缩的聊天" not in user:
        name, now = re.search(r"你就是(.+?)。\n", system), re.search(r"现在是 (\S+)（", user)
        assert name and now
        at = datetime.fromisoformat(now[1])
        response = {"content": f"{at:%M分%S秒}想到的", "timestamp": (at + timedelta(seconds=7)).isoformat(), "end": False}
        return json.dumps({"role": name[1], "response": response}, ensure_ascii=False)
    notes = {"facts": ["聊过了"], "emotions": [], "commitments": ["周六见"], "open_topics": [], "settled": []}
    return json.dumps(notes, ensure_ascii=False)


@pytest.mark.parametrize("summary", ["toy", "rules", "none"])
def test_who_summarises_is_a_setting_of_the_run(tmp_path: Path, summary: str) -> None:
    with serve(summing_up) as served:
        systems = write_systems(tmp_path / "systems.yaml", served.url)
        command = ["run", "--system", "toy", "--cases", "1", "--max-messages", "20", "--window", "4", "--summary", summary]
        result = CliRunner().invoke(app, [*command, "--systems", str(systems), "--run", str(tmp_path / "r")])
        assert result.exit_code == 0, result.output
        folded = [c for c in served.calls if "要压缩的聊天" in c.body["messages"][1]["content"]]
        shown = [c for c in served.calls if "答应过：周六见" in c.body["messages"][1]["content"]]
    (dialogue,) = Run(tmp_path / "r").dialogues().values()
    upto = [s.upto for s in dialogue.summaries or []]
    assert len(dialogue.messages) == 20
    assert upto == ([] if summary == "none" else [8])
    assert len(folded) == (len(upto) if summary == "toy" else 0) and bool(shown) == (summary == "toy")
    manifest = Run(tmp_path / "r").manifest()
    assert manifest["settings"]["summary"] == summary or manifest["settings"]["summary"]["name"] == "toy"
    assert manifest["hashes"]["summary"] == (summary if summary != "toy" else served.url)


def test_the_pace_is_a_setting_of_the_run(tmp_path: Path, server: Served) -> None:
    systems = write_systems(tmp_path / "systems.yaml", server.url)
    command = ["run", "--system", "toy", "--cases", "1", "--max-messages", "9", "--systems", str(systems)]
    pace = ["--min-gap", "45", "--follow-up-delays", "50, 90", "--typing-speed", "60"]
    result = CliRunner().invoke(app, [*command, *pace, "--run", str(tmp_path / "r")])
    assert result.exit_code == 0, result.output
    (dialogue,) = Run(tmp_path / "r").dialogues().values()
    for speaker in ("a", "b"):
        own = [m.at for m in dialogue.messages if m.speaker == speaker]
        assert all((later - earlier).total_seconds() >= 45 for earlier, later in pairwise(own))
    assert dialogue.asks is not None
    assert {a.interrupted for a in dialogue.asks if a.previous_draft} <= {"typing", "waiting"}
    limits = Run(tmp_path / "r").manifest()["settings"]["limits"]
    assert (limits["min_gap_s"], limits["follow_up_delays"], limits["typing_chars_per_minute"]) == (45, [50, 90], 60)
    # The same command again: the settings on disk are read as the same ones.
    assert CliRunner().invoke(app, [*command, *pace, "--run", str(tmp_path / "r")]).exit_code == 0
    refused = CliRunner().invoke(app, [*command, "--run", str(tmp_path / "r")])
    assert isinstance(refused.exception, RunError) and "settings.limits" in str(refused.exception)


def test_two_commands_in_one_folder(tmp_path: Path, server: Served) -> None:
    systems = write_systems(tmp_path / "systems.yaml", server.url)
    run = Run(tmp_path / "r")
    with run.locked(), pytest.raises(RunError, match="another anthrolab command"):
        generate(run.path, "toy", cases=1, systems_file=systems, progress=quiet)


def test_a_full_disk_is_one_clear_line(tmp_path: Path, server: Served) -> None:
    """A file size limit of 8 kB stands for the full disk: the kernel refuses the write in the same way."""
    systems = write_systems(tmp_path / "systems.yaml", server.url)
    command = f"ulimit -f 8; trap '' XFSZ; exec '{sys.executable}' -m anthrolab run --system toy --cases 4 "
    command += f"--run '{tmp_path / 'r'}' --systems '{systems}'"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert result.returncode == 2 and "cannot be used as the reply cache" in result.stderr and "Traceback" not in result.stderr
    result = subprocess.run(["bash", "-c", f"{command} --cache none"], capture_output=True, text=True)
    assert result.returncode == 2, result.stderr
    assert "cannot be written (" in result.stderr
    assert "free some space" in result.stderr
    assert "Traceback" not in result.stderr
    counts = Run(tmp_path / "r").manifest()["counts"]
    assert counts.get("done", 0) < 4
    again = generate(tmp_path / "r", "toy", cases=4, systems_file=systems, progress=quiet)
    assert again["done"] == 4


def test_a_refused_folder_keeps_no_lock(tmp_path: Path, server: Served) -> None:
    systems = write_systems(tmp_path / "systems.yaml", server.url)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x", encoding="utf-8")
    with pytest.raises(RunError, match=r"holds other files \(thesis\.tex\)"):
        generate(tmp_path / "mine", "toy", cases=1, systems_file=systems, progress=quiet)
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_a_folder_in_the_way(tmp_path: Path, server: Served) -> None:
    systems = write_systems(tmp_path / "systems.yaml", server.url)
    (tmp_path / "file").write_text("x", encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-m", "anthrolab", "run", "--system", "toy", "--cases", "1", "--run", str(tmp_path / "file" / "r"),
         "--systems", str(systems)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 2
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert "choose a folder that you may write to" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "--system", "toi", "--run", "r"], "no system 'toi' (did you mean 'toy'?)"),
        (["run", "--system", "toy", "--run", "r", "--cases", "101"], "these cards make 100 cases"),
        (["run", "--system", "toy", "--run", "r", "--cases", "many"], "give a number, all, or a selection"),
        (["run", "--system", "toy", "--run", "r", "--samples", "0"], "--samples 0: at least 1"),
        (["run", "--system", "toy", "--run", "r", "--cases", "²"], "give a number, all, or a selection"),
        (["run", "--system", "toy", "--run", "r", "--max-messages", "1"], "--max-messages 1: at least 2"),
        (["run", "--system", "toy", "--run", "r", "--window", "0"], "--window 0: at least 1"),
        (["run", "--system", "toy", "--run", "r", "--min-gap", "9999"], "--min-gap 9999: seconds, at least 0 and at most 1500"),
        (["run", "--system", "toy", "--run", "r", "--follow-up-delays", "60,20"], "give each at least as long as the one before"),
        (["run", "--system", "toy", "--run", "r", "--summary", "Rules"], "is neither rules nor none nor a system; there are: toy"),
        (["run", "--system", "toy", "--run", ".", "--cases", "1"], "holds other files (systems.yaml)"),
        (["run", "--system", "toy", "--run", "/", "--cases", "1"], "give a folder of its own"),
        (["judge", "nowhere"], "no manifest.json here"),
        (["tables", "nowhere", "--out", "t"], "no such file"),
        (["cards", "check", "nowhere"], "no such folder"),
        (["l0", "nowhere.jsonl"], "cannot be read"),
        (["report", "nowhere", "--out", "t"], "no manifest.json here"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, args: list[str], message: str) -> None:
    systems = write_systems(tmp_path / "systems.yaml", "http://127.0.0.1:9/v1")
    more = ["--systems", str(systems)] if args[0] == "run" else []
    result = subprocess.run(
        [sys.executable, "-m", "anthrolab", *args, *more], capture_output=True, text=True, cwd=tmp_path
    )
    assert result.returncode == 2, result.stderr
    assert message in result.stderr and "Traceback" not in result.stderr
    left = [p.name for p in tmp_path.iterdir() if p.name != ".lock"]
    assert left == ["systems.yaml"], "something half-made was left behind"


def test_ctrl_c_says_how_to_go_on(tmp_path: Path, server: Served) -> None:
    systems = write_systems(tmp_path / "systems.yaml", server.url, concurrency=1)
    command = [sys.executable, "-m", "anthrolab", "run", "--system", "toy", "--cases", "all", "--systems", str(systems)]
    process = subprocess.Popen([*command, "--run", str(tmp_path / "r")], stderr=subprocess.PIPE, text=True)
    while len(server.calls) < 3:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.endswith("stopped; the same command goes on from here\n")
    assert "Traceback" not in said
    assert set(Run(tmp_path / "r").manifest()["counts"]) == {"planned", "done", "failed", "missing"}


@pytest.mark.parametrize("again", [False, True])
def test_ctrl_c_keeps_the_replies_that_are_on_their_way_and_a_second_one_does_not_wait(tmp_path: Path, again: bool) -> None:
    slow = 30.0 if again else 2.0
    with serve(lambda call: Answer(reply_body(call, decide(call)), delay=slow if call.number > 4 else 0.0)) as server:
        systems = write_systems(tmp_path / "systems.yaml", server.url, concurrency=8, timeout_s=60.0)
        command = [sys.executable, "-m", "anthrolab", "run", "--system", "toy", "--cases", "12", "--systems", str(systems)]
        process = subprocess.Popen([*command, "--run", str(tmp_path / "r")], stderr=subprocess.PIPE, text=True)
        while len(server.calls) < 10:
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        at_the_stop = len(server.calls)
        if again:
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
        asked = len(server.calls)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    logged = [line for path in (tmp_path / "r" / "calls").glob("*.jsonl") for line in path.read_text("utf-8").splitlines()]
    assert asked == at_the_stop, "what waited for its turn went out after the stop"
    assert len(logged) == (4 if again else asked), "a reply that was paid for is lost" if not again else said


def test_a_full_standard_output_and_a_closed_pipe(tmp_path: Path) -> None:
    line = json.dumps({"dialogue_id": "x"}) + "\n"
    (tmp_path / "d.jsonl").write_text(line * 5000, encoding="utf-8")
    tool = f"'{sys.executable}' -m anthrolab l0 '{tmp_path / 'd.jsonl'}'"
    full = subprocess.run(["bash", "-c", f"{tool} > /dev/full"], capture_output=True, text=True)
    assert full.returncode == 2
    assert full.stderr == "error: standard output cannot be written (No space left on device); free some space or write elsewhere\n"
    closed = subprocess.run(["bash", "-c", f"set -o pipefail; {tool} | head -1"], capture_output=True, text=True)
    assert closed.returncode == 1
    assert "Traceback" not in closed.stderr


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"run": "r"}'])
def test_a_manifest_that_is_none_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(RunError, match=r"manifest\.json: .*(not valid JSON|is missing)"):
        Run(tmp_path / "r").manifest()


def test_a_plan_does_not_shrink_silently(tmp_path: Path, server: Served) -> None:
    systems = write_systems(tmp_path / "systems.yaml", server.url)
    said: list[str] = []
    generate(tmp_path / "r", "toy", cases=3, max_messages=4, systems_file=systems, progress=quiet)
    counts = generate(tmp_path / "r", "toy", cases=2, max_messages=4, systems_file=systems, progress=said.append)
    assert counts["planned"] == 3
    assert any("a plan does not shrink" in line for line in said)
