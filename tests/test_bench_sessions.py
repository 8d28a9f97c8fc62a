"""Five sessions of one pair, days apart, over real HTTP: what is remembered, what is not, kills, dead servers."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from anthrolab.bench.run import generate
from anthrolab.bench.sessions import play_series
from anthrolab.bench.settings import Limits, Pace
from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import CardError, default_cards_dir, load_library
from anthrolab.cards.memory import SECTIONS
from anthrolab.cli import app
from anthrolab.models.client import ModelError
from anthrolab.models.scripted import Answer, Call, Served, serve
from anthrolab.runtime.session import replay
from anthrolab.show.measured import load_all
from anthrolab.yaml_files import read_yaml
from tests.test_bench_run import quiet

LIBRARY = load_library(default_cards_dir())
SERIES = LIBRARY.find_series("r01")
SCRIPT: Any = read_yaml(Path(__file__).parent / "data" / "series" / "r01_script.yaml")
SESSIONS: dict[str, Any] = {s["id"]: s for s in SCRIPT["sessions"]}
NAMES = {"a": LIBRARY.personas[SERIES.persona_a].name, "b": LIBRARY.personas[SERIES.persona_b].name}
BY_DATE = {f"{s.start:%Y-%m-%d}": s.id for s in SERIES.sessions}


def answer(call: Call) -> str:
    """What the scripted model says: the decision at this event of this session, or the memory after it."""
    system, user = (m["content"] for m in call.body["messages"])
    if system.startswith("你替"):
        owner = next(s for s, name in NAMES.items() if system.startswith(f"你替{name}记住"))
        session = SESSIONS[BY_DATE[re.search(r"【(\S+)的聊天】", user)[1]]]  # type: ignore[index]
        return json.dumps(update_to(session["memory"][owner], user), ensure_ascii=False)
    name = re.search(r'"role": "(.+?)"', system)[1]  # type: ignore[index]
    speaker = next(s for s, n in NAMES.items() if n == name)
    now = datetime.fromisoformat(re.search(r"现在是 (\S+)（", user)[1])  # type: ignore[index]
    plans = SESSIONS[BY_DATE[f"{now:%Y-%m-%d}"]]["decisions"][speaker]
    event = len(re.findall(r"^\[\d\d:", user, re.MULTILINE)) - 1
    plan = plans[event] if event < len(plans) else {"end": True}
    stamp = now + timedelta(seconds=plan.get("delay_s", 0))
    decision = {"content": plan.get("content", ""), "timestamp": stamp.isoformat(), "end": plan.get("end", False)}
    return json.dumps({"role": name, "response": decision}, ensure_ascii=False)


def update_to(wanted: dict[str, list[str]], user: str) -> dict[str, list[str]]:
    """The reply that makes the memory in the prompt the wanted one."""
    known = dict(re.findall(r'^([FPRC]\d+)："(.*)"$', user, re.MULTILINE))
    fresh = {section: [line for line in lines if line not in known.values()] for section, lines in wanted.items()}
    every = [line for lines in wanted.values() for line in lines]
    return {**fresh, "outdated": [i for i, line in known.items() if line not in every]}


def systems_file(path: Path, url: str) -> Path:
    entry = {
        "name": "toy", "endpoint": url, "model": "scripted", "server": "openai", "policy": "chat", "partner": "toy",
        "retries": 0, "timeout_s": 5.0,
    }  # fmt: skip
    base = {**entry, "name": "base", "policy": "transcript"}
    other = {**entry, "name": "other", "max_tokens": 500}
    path.write_text(json.dumps({"systems": [entry, base, other]}), encoding="utf-8")
    return path


def five(folder: Path, served: Served, **more: Any) -> dict[str, int]:
    systems = systems_file(folder.parent / "systems.yaml", served.url)
    return play_series(folder, "toy", "r01", "toy", window=50, systems_file=systems, progress=quiet, **more)


def prompts(served: Served) -> dict[tuple[str, str], set[str]]:
    """The system texts seen in each session by each speaker."""
    seen: dict[tuple[str, str], set[str]] = {}
    for call in served.calls:
        system, user = (m["content"] for m in call.body["messages"])
        now = re.search(r"现在是 (\S+)T", user)
        if now:
            name = re.search(r'"role": "(.+?)"', system)[1]  # type: ignore[index]
            speaker = next(s for s, n in NAMES.items() if n == name)
            seen.setdefault((BY_DATE[now[1]], speaker), set()).add(system)
    return seen


def test_five_sessions_remember_as_background_and_never_as_now(tmp_path: Path) -> None:
    with serve(answer) as served:
        counts = five(tmp_path / "系列 一", served)
    assert counts == {"planned": 5, "done": 5, "updates": 10, "failed_updates": 0}
    run = Run(tmp_path / "系列 一")
    dialogues, updates = list(run.dialogues().values()), run.memory_updates()
    assert [d.scenario for d in dialogues] == [s.id for s in SERIES.sessions]
    starts = [d.start for d in dialogues if d.start]
    assert all(later - earlier >= timedelta(days=1) for earlier, later in pairwise(starts))
    assert all(d.stop == "closed" and d.guards == [] and len(d.messages) >= 8 for d in dialogues)

    # Every version is kept; what is passing is in none of them.
    for owner in (SERIES.persona_a, SERIES.persona_b):
        versions = [u.memory for u in updates if u.owner == owner]
        assert [m.version for m in versions if m] == [1, 2, 3, 4, 5]
    assert all({x.reason for x in u.left_out} <= {"outdated"} and u.error is None for u in updates)
    for update in updates:
        assert update.memory is not None
        session = SESSIONS[update.after.rsplit("-", 1)[1]]
        assert not [t for t in session["transient"] if any(t in line for line in update.memory.lines())]
        wanted = session["memory"]["a" if update.owner == SERIES.persona_a else "b"]
        assert {s: sorted(update.memory.of(s)) for s in SECTIONS} == {s: sorted(wanted[s]) for s in SECTIONS}

    # z is one text in a session, and holds the memory of the session before under the heading that says what it is.
    seen = prompts(served)
    assert len(seen) == 10 and all(len(texts) == 1 for texts in seen.values())
    for i, scenario in enumerate(SERIES.sessions):
        for speaker in ("a", "b"):
            (z,) = seen[scenario.id, speaker]
            block = re.search(r"【你记得的.+?】\n(.+?)\n\n", z, re.DOTALL)
            if i == 0:
                assert block is None
                continue
            assert block is not None and "别当成刚刚发生的事" in block[1]
            days = (scenario.start.date() - SERIES.sessions[i - 1].start.date()).days
            assert f"{days}天前" in block[1]
            before = SESSIONS[SERIES.sessions[i - 1].id]["memory"]
            assert all(line in block[1] for lines in before[speaker].values() for line in lines)
            other = before["b" if speaker == "a" else "a"]
            own = [line for lines in before[speaker].values() for line in lines]
            assert not [x for lines in other.values() for x in lines if x not in own and x in block[1]]
            snapshots = [m["content"] for c in served.calls for m in c.body["messages"][1:] if scenario.start.strftime("%Y-%m-%dT") in m["content"]]
            assert snapshots and not [s for s in snapshots if "你记得的" in s]

    # The record says what was remembered, and every state can be rebuilt from it.
    assert dialogues[0].memories is None
    assert dialogues[4].memories is not None and set(dialogues[4].memories) == {"a", "b"}
    assert dialogues[4].memories["a"].version == 4
    for dialogue in dialogues:
        course = replay(dialogue, Limits(window=50).rules(dialogue.horizon_minutes or 0))
        assert [m.content for m in course.messages] == [m.content for m in dialogue.messages]


def test_the_same_command_again_asks_nothing(tmp_path: Path) -> None:
    with serve(answer) as served:
        five(tmp_path / "r", served)
        before, asked = files_of(tmp_path / "r"), len(served.calls)
        five(tmp_path / "r", served)
        assert len(served.calls) == asked
    assert files_of(tmp_path / "r") == before


@pytest.mark.parametrize(
    "change",
    [
        {"role": "b"}, {"max_messages": 49}, {"pace": Pace(min_gap_s=1)}, {"summary": "none"}, {"seed": 1},
        {"skills": {"message_style": "v1"}}, {"memory": "other"}, {"partner": "other"}, {"series_id": "r02"},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_a_series_goes_on_only_with_the_settings_it_was_begun_with(tmp_path: Path, change: dict[str, Any]) -> None:
    cards = Path(shutil.copytree(default_cards_dir(), tmp_path / "cards"))
    (cards / "skills" / "message_style" / "v2.md").write_text("# 短", encoding="utf-8")
    other = (cards / "series" / "r01.yaml").read_text(encoding="utf-8").replace("id: r01", "id: r02")
    (cards / "series" / "r02.yaml").write_text(other, encoding="utf-8")

    def first_only(call: Call) -> Answer | str:
        return Answer(status=400) if call.number > 45 else answer(call)

    with serve(first_only) as served:
        systems = systems_file(tmp_path / "systems.yaml", served.url)
        given: dict[str, Any] = {
            "run_dir": tmp_path / "r", "system": "toy", "series_id": "r01", "memory": "toy", "window": 50,
            "systems_file": systems, "cards_dir": cards, "skills_dir": cards / "skills", "progress": quiet,
        }  # fmt: skip
        with pytest.raises(ModelError):
            play_series(**given)
        counts = Run(tmp_path / "r").manifest()["counts"]
        assert counts["planned"] == 5 and 0 < counts["done"] < 5
        with pytest.raises(RunError, match="is not what this run was begun with"):
            play_series(**{**given, **change})


def test_a_finished_series_is_left_untouched_even_with_its_server_gone(tmp_path: Path) -> None:
    with serve(answer) as served:
        five(tmp_path / "r", served)
    manifest = tmp_path / "r" / "manifest.json"
    manifest.write_text(manifest.read_text("utf-8").replace('"code": [\n  "', '"code": [\n  "0'), encoding="utf-8")
    before = files_of(tmp_path / "r")
    assert five(tmp_path / "r", served)["done"] == 5
    assert files_of(tmp_path / "r") == before


def test_a_folder_of_somebody_else_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "r" / "dialogues.jsonl").write_text('{"mine": 1}', encoding="utf-8")
    with serve(answer) as served, pytest.raises(RunError):
        five(tmp_path / "r", served)
    assert (tmp_path / "r" / "dialogues.jsonl").read_text("utf-8") == '{"mine": 1}'


def test_a_server_that_takes_no_format_is_asked_for_one_once_and_not_at_every_session(tmp_path: Path) -> None:
    refused: list[Call] = []

    def plain(call: Call) -> Answer | str:
        if "response_format" in call.body and call.body["messages"][0]["content"].startswith("你替"):
            refused.append(call)
            return Answer({"error": "response_format is not supported"}, status=400)
        return answer(call)

    with serve(plain) as served:
        assert five(tmp_path / "r", served)["failed_updates"] == 0
    assert len(refused) == 2, "json_schema, then json_object"


def files_of(run: Path) -> dict[str, str]:
    return {p.name: p.read_text(encoding="utf-8") for p in run.iterdir() if p.suffix in (".jsonl", ".json")}


def test_a_killed_series_goes_on_to_the_same_files_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    def slow(call: Call) -> Answer | str:
        time.sleep(0.01)
        return answer(call)

    with serve(slow) as served:
        (tmp_path / "whole").mkdir()
        five(tmp_path / "whole" / "r", served)
        once = len(served.calls)
        systems = systems_file(tmp_path / "systems.yaml", served.url)
        command = [
            sys.executable, "-m", "anthrolab", "sessions", "--system", "toy", "--memory", "toy", "--series", "r01",
            "--window", "50", "--systems", str(systems), "--run", str(tmp_path / "r"),
        ]  # fmt: skip
        kills = 0
        for upto in (10, 40, 75):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            while len(served.calls) < once + upto and process.poll() is None:
                time.sleep(0.005)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
            process.wait()
        assert kills == 3
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
        # Up to two requests may be under way at a kill, and are unanswered then.
        assert len(served.calls) - once <= once + 2 * kills
    assert "5 of 5 sessions" in done.stderr
    whole, again = files_of(tmp_path / "whole" / "r"), files_of(tmp_path / "r")
    assert again["memories.jsonl"] == whole["memories.jsonl"]
    assert again["dialogues.jsonl"] == whole["dialogues.jsonl"]


def test_a_memory_model_that_breaks_the_contract_is_a_row_and_the_memory_stays(tmp_path: Path) -> None:
    def forgetful(call: Call) -> str:
        is_third = "【2026-" in call.body["messages"][1]["content"] and SERIES.sessions[2].start.strftime("【%Y-%m-%d的聊天】") in call.body["messages"][1]["content"]
        return "我记住啦" if is_third else answer(call)

    with serve(forgetful) as served:
        counts = five(tmp_path / "r", served)
    assert counts["failed_updates"] == 2 and counts["done"] == 5
    failed = [u for u in Run(tmp_path / "r").memory_updates() if u.error]
    assert all(u.memory and u.memory.version == 2 and u.error and "no JSON" in u.error for u in failed)
    assert all(u.memory and u.memory.as_of == SERIES.sessions[2].start.date() for u in failed), "they talked all the same"
    assert [u.memory.version for u in Run(tmp_path / "r").memory_updates() if u.memory] == [1, 1, 2, 2, 2, 2, 3, 3, 4, 4]


def test_a_dead_server_ends_the_command_and_the_same_one_goes_on(tmp_path: Path) -> None:
    def dies(call: Call) -> Answer | str:
        return Answer(status=500) if call.number > 60 else answer(call)

    with serve(dies) as served, pytest.raises(ModelError, match="the same command goes on from here"):
        five(tmp_path / "r", served)
    had = len(Run(tmp_path / "r").dialogues())
    assert 0 < had < 5
    # Another port is another endpoint: the run was begun with the old one.
    with serve(answer) as served, pytest.raises(RunError, match="use another --run"):
        five(tmp_path / "r", served)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--memory", "base"], "--memory base: is a base model"),
        (["--memory", "toi"], "did you mean 'toy'?"),
        (["--series", "r1"], "no series 'r1' (did you mean 'r01'?)"),
        (["--role", "c"], "--role c: give a or b"),
        (["--follow-up-delays", "5,x"], "give whole seconds with commas"),
        (["--skill", "message_style"], "give NAME=VERSION"),
        (["--skill", "message_style=v99"], "no version 'v99'"),
        (["--skill", "style=v1"], "no skill 'style'"),
        (["--min-gap", "-1"], "--min-gap -1: seconds, at least 0 and at most 1500"),
        (["--summary", "base"], "--summary base: is a base model"),
    ],
)
def test_wrong_options_are_one_line(tmp_path: Path, options: list[str], message: str) -> None:
    systems = systems_file(tmp_path / "systems.yaml", "http://127.0.0.1:9/v1")
    given = {"--memory": "toy", "--system": "toy", "--run": str(tmp_path / "r"), "--systems": str(systems)}
    given |= {options[0]: options[1]}
    result = CliRunner().invoke(app, ["sessions", *[x for pair in given.items() for x in pair]])
    assert message in str(result.exception), result.output
    assert not (tmp_path / "r").exists()


def test_a_series_is_no_run_of_cases(tmp_path: Path) -> None:
    with serve(answer) as served:
        five(tmp_path / "r", served)
        systems = systems_file(tmp_path / "systems.yaml", served.url)
        with pytest.raises(RunError):
            generate(tmp_path / "r", "toy", cases=1, systems_file=systems, progress=quiet)
    from anthrolab.bench.judge import judge_run

    with pytest.raises(RunError, match="holds a series of sessions and no cases"):
        judge_run(tmp_path / "r", "rules", progress=quiet)
    with pytest.raises(RunError, match="holds a series of sessions and no cases"):
        load_all(tmp_path / "r")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda s: s.replace("persona_b: p04", "persona_b: p99"), "persona_b: no persona 'p99'"),
        (lambda s: s.replace("persona_b: p04", "persona_b: p03"), "are the same card"),
        (lambda s: s.replace("id: r01\n", "id: r02\n", 1), "is 'r02' but the file is named 'r01'"),
        (lambda s: s.replace("id: r01s2", "id: r01s1"), "two sessions have the same id"),
        (lambda s: s.replace("id: r01s2", "id: s01"), "'s01' stands in scenarios already"),
        (lambda s: re.sub(r"start: 2026-04-19", "start: 2026-03-01", s), "give it a later start"),
    ],
)
def test_a_broken_series_names_the_file_and_the_fix(tmp_path: Path, change: Callable[[str], str], problem: str) -> None:
    shutil.copytree(default_cards_dir(), tmp_path / "卡片", ignore=shutil.ignore_patterns("skills", "schemas", "*.md"))
    path = tmp_path / "卡片" / "series" / "r01.yaml"
    text = path.read_text(encoding="utf-8")
    assert change(text) != text
    path.write_text(change(text), encoding="utf-8")
    with pytest.raises(CardError) as refused:
        load_library(tmp_path / "卡片")
    (line,) = refused.value.problems
    assert line.startswith(str(path)) and problem in line
