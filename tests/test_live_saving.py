"""Saved chats: a folder that the gate, the judges, notebook 05 and judge-check take; nothing anywhere without one."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from anthrolab.bench.judge import judge_run
from anthrolab.bench.ledger import read_ledger
from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.errors import AnthrolabError
from anthrolab.judging.rubric import load_rubric
from anthrolab.live.clock import INSTANT, Clock
from anthrolab.live.opening import ChatSettings, open_chat
from anthrolab.live.scene import ChatError
from anthrolab.live.terminal_start import saved_settings
from anthrolab.models.scripted import Call, Served, serve
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.show.failure_sources import open_sources
from anthrolab.show.failures import collect
from anthrolab.show.report import write_report
from tests.live_for_tests import played

TYPED = [(0, "在吗"), (40, "我今天加班到现在"), (90, "你吃了没"), (150, "行 那我先撤了")]
SAID = ("在的", "咋又加班啊", "吃了碗面", "快回去歇着", "嗯嗯")


def decide(call: Call) -> str:
    """The next thing to say, some seconds from now; silence after an own message."""
    system, shown = (m["content"] for m in call.body["messages"])
    name = re.search(r"你就是(\S+?)。", system)
    now = re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", shown)
    assert name and now
    lines = re.findall(r"^\[\d\d:\d\d:\d\d\] (.+?): ", shown, re.M)
    own = lines[-1] == name[1]
    at = datetime.fromisoformat(now[0]) + timedelta(seconds=7)
    response = {"content": "" if own else SAID[len(lines) // 2 % len(SAID)], "timestamp": at.isoformat(), "end": own}
    return json.dumps({"role": name[1], "response": response}, ensure_ascii=False)


@pytest.fixture
def served() -> Iterator[Served]:
    with serve(decide) as server:
        yield server


def systems(folder: Path, url: str) -> Path:
    path = folder / "systems.yaml"
    path.write_text(json.dumps({"systems": [{"name": "tiny", "endpoint": url, "model": "scripted", "server": "openai", "policy": "chat", "partner": "tiny", "retries": 0}]}), encoding="utf-8")
    return path


def have(settings: ChatSettings, typed: list[tuple[int, str]] = TYPED) -> Dialogue:
    async def story() -> Dialogue:
        async with open_chat(settings, Clock(INSTANT)) as opened:
            if not typed and settings.persona:
                return opened.chat.dialogue()
            return (await played(opened.chat, typed)).dialogue()

    return asyncio.run(story())


def quiet(_line: str) -> None:
    pass


def test_a_folder_of_chats_goes_through_gate_judge_and_the_failure_explorer(tmp_path: Path, served: Served) -> None:
    folder, file = tmp_path / "我的 聊天", systems(tmp_path, served.url)
    first = have(ChatSettings("tiny", case="b01-a", folder=folder, systems_file=file))
    second = have(ChatSettings("tiny", persona="p05", name="小北", start="2026-03-06T20:31:00", folder=folder, systems_file=file))
    run = Run(folder)
    assert list(run.dialogues()) == [first.dialogue_id, second.dialogue_id]
    assert (run.manifest()["counts"], run.manifest()["settings"]["partner"]) == (
        {"planned": 2, "done": 2, "failed": 0, "missing": 0}, {"name": "a person"}
    )  # fmt: skip
    counts = judge_run(folder, progress=quiet)
    assert (counts["planned"], counts["done"], counts["judged"]) == (2, 2, counts["valid"])
    cases = read_ledger(run.ledger("rules")).cases
    assert cases["case_id"].to_list() == ["chat01-a", "chat02-a"] and cases["binding"].to_list() == ["chat01", "chat02"]
    library = load_library(default_cards_dir())
    sources = open_sources(str(folder), "rules", "", load_rubric(), library)
    assert not sources[0].playable and set(sources[0].dialogues) == {("chat01-a", 0), ("chat02-a", 0)}
    assert collect(sources).cases.height == 2


def test_the_record_marks_the_person_and_asks_only_the_persona(tmp_path: Path, served: Served) -> None:
    dialogue = have(ChatSettings("tiny", case="b01-b", folder=tmp_path / "c", systems_file=systems(tmp_path, served.url)))
    more = dialogue.model_extra or {}
    assert more["human"] == ["a"] and more["case"] == "b01-b" and dialogue.evaluated_role == "b"
    assert {a.speaker for a in dialogue.asks or []} == {"b"} and len(dialogue.asks or []) == len(dialogue.messages)
    assert dialogue.scenario and dialogue.messages[0].opener and dialogue.speakers["a"].persona
    calls = (tmp_path / "c" / "calls" / "chat01.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["key"] for line in calls} == {a.call for a in dialogue.asks or []}
    assert Dialogue.model_validate_json(dialogue.to_line()) == dialogue


def test_without_a_folder_nothing_is_written_and_only_the_endpoint_is_called(tmp_path: Path, served: Served) -> None:
    script = (
        "import sys; seen = set(); sys.addaudithook(lambda e, a: seen.add((e, str(a[1] if e == 'socket.connect' else a[0]))) "
        "if e == 'socket.connect' or (e == 'open' and isinstance(a[2], int) and a[2] & 3) else None)\n"
        "import asyncio; from pathlib import Path; from anthrolab.live.opening import ChatSettings\n"
        "from tests.test_live_saving import have, TYPED\n"
        f"d = have(ChatSettings('tiny', persona='p01', systems_file=Path({str(systems(tmp_path, served.url))!r})))\n"
        "import json; print(json.dumps([len(d.messages), sorted(seen)]))"
    )
    home = tmp_path / "home"
    home.mkdir()
    env = {**os.environ, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(Path(__file__).parents[1])}
    result = subprocess.run([sys.executable, "-c", script], cwd=home, env=env, capture_output=True, text=True, timeout=120, check=True)
    messages, seen = json.loads(result.stdout.splitlines()[-1])
    port = served.url.split(":")[-1].split("/")[0]
    connected = [where for event, where in seen if event == "socket.connect"]
    assert messages == 8 and connected and all(f"'127.0.0.1', {port}" in where for where in connected)
    assert not [where for event, where in seen if event == "open" and where != os.devnull]
    assert not list(home.iterdir())


def test_a_chat_goes_on_in_its_folder_after_kill_dash_nine_and_asks_nothing_twice(tmp_path: Path, served: Served) -> None:
    folder, file = tmp_path / "c", systems(tmp_path, served.url)
    script = (
        "import asyncio, os, signal; from pathlib import Path; from anthrolab.live.opening import ChatSettings, open_chat\n"
        "from anthrolab.live.clock import Clock, INSTANT; from tests.live_for_tests import played; from tests.test_live_saving import TYPED\n"
        "async def story():\n"
        f"    async with open_chat(ChatSettings('tiny', case='b01-a', folder=Path({str(folder)!r}), systems_file=Path({str(file)!r})), Clock(INSTANT)) as o:\n"
        "        await played(o.chat, TYPED[:2], until=lambda c: len(c.state.messages) == 4 and os.kill(os.getpid(), signal.SIGKILL))\n"
        "asyncio.run(story())"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    killed = subprocess.run([sys.executable, "-c", script], env=env, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    before = len(served.calls)
    settings = ChatSettings("tiny", case="b01-a", folder=folder, chat="chat01", systems_file=file)
    typed = [one for one in TYPED if one[1] not in (folder / "chats" / "chat01.jsonl").read_text(encoding="utf-8")]
    dialogue = have(settings, typed)
    assert len(served.calls) - before == len(dialogue.messages) - before
    whole = have(ChatSettings("tiny", case="b01-a", folder=tmp_path / "w", systems_file=file))
    assert dialogue.model_copy(update={"dialogue_id": whole.dialogue_id}) == whole


def test_going_on_keeps_the_beginning_of_an_open_chat_and_refuses_another_one(tmp_path: Path, served: Served) -> None:
    folder, file = tmp_path / "c", systems(tmp_path, served.url)
    begun = have(ChatSettings("tiny", persona="p01", name="小北", start="2026-03-06T20:31:00", folder=folder, systems_file=file), TYPED[:1])
    with pytest.raises(ChatError, match="over"):
        have(ChatSettings("tiny", persona="p01", name="小北", folder=folder, chat="chat01", systems_file=file), TYPED[1:2])
    for changed, complaint in [({"name": "阿哲"}, "person was '小北'"), ({"persona": "p02"}, "another persona|persona was")]:
        with pytest.raises(ChatError, match=complaint):
            have(ChatSettings("tiny", **{"persona": "p01", "name": "小北", "folder": folder, "chat": "chat01", "systems_file": file, **changed}), [])
    assert next(iter(Run(folder).dialogues().values())) == begun


@pytest.mark.parametrize(("given", "complaint"), [
    ({}, "either a persona"),
    ({"persona": "p01", "case": "b01-a"}, "either a persona"),
    ({"persona": "p999"}, "p999"),
    ({"case": "b99-a"}, "b99-a"),
    ({"persona": "p01", "name": "a:b"}, "name 'a:b'"),
    ({"persona": "p01", "minutes": -1}, "minutes"),
    ({"persona": "p01", "max_cost": 1.0}, "folder"),
    ({"persona": "p01", "start": "gestern"}, "--start gestern"),
    ({"persona": "p01", "analyser": "nobody"}, "nobody"),
    ({"persona": "p01", "system": "nobody"}, "nobody"),
])  # fmt: skip
def test_settings_that_do_not_fit_are_named(given: dict[str, Any], complaint: str, tmp_path: Path, served: Served) -> None:
    with pytest.raises(AnthrolabError, match=complaint):
        have(ChatSettings(**{"system": "tiny", "systems_file": systems(tmp_path, served.url), **given}))


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path, served: Served) -> None:
    file = systems(tmp_path, served.url)
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("1", encoding="utf-8")
    with pytest.raises(RunError, match="other files"):
        have(ChatSettings("tiny", persona="p01", folder=other, systems_file=file))
    assert [p.name for p in other.iterdir()] == ["thesis.txt"]
    with pytest.raises(ChatError, match="--chat"):
        have(ChatSettings("tiny", persona="p01", folder=tmp_path / "c", chat="../x", systems_file=file))


def test_what_nobody_said_and_what_failed_is_no_result(tmp_path: Path, served: Served) -> None:
    folder, file = tmp_path / "c", systems(tmp_path, served.url)
    have(ChatSettings("tiny", case="b01-b", folder=folder, systems_file=file), [])  # the opener was answered, the person said nothing
    have(ChatSettings("tiny", persona="p01", folder=folder, systems_file=file), [])
    run = Run(folder)
    assert run.manifest()["settings"]["chats"] == [] and not run.dialogues()
    (tmp_path / "dead").mkdir()
    have(ChatSettings("tiny", persona="p01", folder=tmp_path / "d", systems_file=systems(tmp_path / "dead", "http://127.0.0.1:9/v1")), TYPED[:1])
    dead = Run(tmp_path / "d")
    assert dead.manifest()["counts"] == {"planned": 1, "done": 0, "failed": 1, "missing": 0}
    assert [(r["fault"], r["side"]) for r in dead.rows("failures.jsonl")] == [("unreachable", "tested")] and not dead.dialogues()
    assert judge_run(tmp_path / "d", progress=quiet)["valid"] == 0


def test_a_folder_in_which_nothing_was_said_takes_another_system(tmp_path: Path, served: Served) -> None:
    folder = tmp_path / "c"
    (tmp_path / "dead").mkdir()
    have(ChatSettings("tiny", case="b01-a", folder=folder, systems_file=systems(tmp_path / "dead", "http://127.0.0.1:9/v1")), [])
    (folder / "chats" / "chat01.jsonl").unlink()
    assert have(ChatSettings("tiny", case="b01-b", folder=folder, systems_file=systems(tmp_path, served.url))).evaluated_role == "b"


def test_a_lost_manifest_or_lost_events_cost_no_other_chat(tmp_path: Path, served: Served) -> None:
    folder, file = tmp_path / "c", systems(tmp_path, served.url)
    for _ in range(2):
        have(ChatSettings("tiny", persona="p01", start="2026-03-06T20:31:00", folder=folder, systems_file=file), TYPED[:1])
    before = (folder / "dialogues.jsonl").read_bytes()
    (folder / "chats" / "chat02.jsonl").rename(folder / "chats" / "old")
    with pytest.raises(ChatError, match="events of chat02"):
        have(ChatSettings("tiny", persona="p01", folder=folder, chat="chat02", systems_file=file), TYPED)
    (folder / "chats" / "old").rename(folder / "chats" / "chat02.jsonl")
    manifest = (folder / "manifest.json").read_bytes()
    (folder / "manifest.json").unlink()
    with pytest.raises(RunError, match=r"no manifest\.json"):
        have(ChatSettings("tiny", persona="p01", folder=folder, systems_file=file), TYPED)
    (folder / "manifest.json").write_bytes(manifest.replace(b'"role": "a"', b'"role": "c"', 1))
    with pytest.raises(RunError, match=r"settings\.chats\[0\]"):
        have(ChatSettings("tiny", persona="p01", folder=folder, systems_file=file), TYPED)
    with pytest.raises(RunError, match=r"settings\.chats\[0\]"):
        judge_run(folder, progress=quiet)
    assert (folder / "dialogues.jsonl").read_bytes() == before


def test_other_settings_name_the_folder_and_the_analyser_is_part_of_them(tmp_path: Path, served: Served) -> None:
    folder, file = tmp_path / "c", systems(tmp_path, served.url)
    have(ChatSettings("tiny", persona="p01", folder=folder, systems_file=file), TYPED[:1])
    with pytest.raises(RunError, match="another folder"):
        have(ChatSettings("tiny", persona="p01", folder=folder, max_messages=9, systems_file=file))
    with pytest.raises(ChatError, match="analyser was None"):
        have(ChatSettings("tiny", persona="p01", folder=folder, chat="chat01", analyser="tiny", systems_file=file))
    have(ChatSettings("tiny", persona="p01", folder=folder, analyser="tiny", systems_file=file), TYPED[:1])
    assert [c["analyser"] for c in Run(folder).manifest()["settings"]["chats"]] == ["", "tiny"]


def test_a_report_says_that_a_person_took_part_and_compares_no_two_such_runs(tmp_path: Path, served: Served) -> None:
    file = systems(tmp_path, served.url)
    known = json.loads(file.read_text(encoding="utf-8"))["systems"]
    file.write_text(json.dumps({"systems": [*known, {**known[0], "name": "twin"}]}), encoding="utf-8")
    for system in ("tiny", "twin"):
        have(ChatSettings(system, case="b01-a", folder=tmp_path / system, systems_file=file))
        judge_run(tmp_path / system, progress=quiet)
    page = write_report([tmp_path / "tiny", tmp_path / "twin"], tmp_path / "report")
    text = page.read_text(encoding="utf-8")
    assert "Run tiny: chats with a person" in text and "Paired comparison" not in text and "with a person" in text


def test_a_saved_chat_knows_with_whom_and_with_which_analyser_it_was_begun(tmp_path: Path, served: Served) -> None:
    folder, file = tmp_path / "c", systems(tmp_path, served.url)
    have(ChatSettings("tiny", persona="p01", name="小北", folder=folder, analyser="tiny", analyse_every=2, systems_file=file), TYPED[:1])
    known = saved_settings(folder, "chat01")
    assert {k: known[k] for k in ("system", "persona", "name", "analyser", "analyse_every")} == {
        "system": "tiny", "persona": "p01", "name": "小北", "analyser": "tiny", "analyse_every": 2
    }  # fmt: skip
    have(ChatSettings(**known, folder=folder, chat="chat01", systems_file=file), [])
