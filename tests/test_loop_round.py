"""Whole rounds of the loop through the command line, over real HTTP: scripted speakers, a judge that answers every box, a writer."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from anthrolab.bench.store import Run
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.judging.rubric import load_rubric
from anthrolab.loop.filtering import read_filtered
from anthrolab.loop.folder import Loop, LoopError, LoopSettings
from anthrolab.loop.held_back import held_back_bindings
from anthrolab.loop.round import read_report
from anthrolab.models.scripted import Answer, Call, serve
from tests.cards_for_tests import small_cards
from tests.fault_plan import good_text, request_key
from tests.fault_server import Faulty, faulty

BINDINGS = ("b01", "b02", "b05", "b09", "b14", "b20")
HELD = "b01"


@dataclass
class Laboratory:
    """A folder with cards, three systems on one server, and loops."""

    folder: Path
    server: Faulty

    def __post_init__(self) -> None:
        self.cards = small_cards(self.folder / "卡片", load_library(default_cards_dir()), BINDINGS)
        entry = {
            "name": "toy", "endpoint": self.server.url, "model": "scripted", "server": "openai", "policy": "chat", "partner": "toy",
            "timeout_s": 5.0, "retries": 8, "concurrency": 6,
        }  # fmt: skip
        names = ("toy", "judge", "writer")
        systems: list[dict[str, Any]] = [entry | {"name": name} for name in names]
        systems.append({"name": "gemma-3-270m", "endpoint": "embedded", "model": "gemma3-270m", "server": "llama.cpp",
                        "policy": "transcript", "partner": "gemma-3-270m", "max_tokens": 64, "concurrency": 4})  # fmt: skip
        (self.folder / "systems.yaml").write_text(json.dumps({"systems": systems}), encoding="utf-8")

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "anthrolab", "loop", *words]

    def files(self) -> list[str]:
        return ["--systems", str(self.folder / "systems.yaml"), "--cards", str(self.cards)]

    def rounds(self, name: str, count: int, *more: str, system: str = "toy", code: int = 0) -> str:
        words = [
            "run", str(self.folder / name), "--system", system, "--rounds", str(count), "--max-messages", "10", "--held-back", HELD,
            *self.files(), *more,
        ]  # fmt: skip
        done = subprocess.run(self.command(*words), capture_output=True, encoding="utf-8")
        assert done.returncode == code, done.stderr[-3000:]
        return done.stderr

    def loop(self, name: str) -> Loop:
        return Loop(self.folder / name)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    with faulty(share=0.0) as server:
        yield Laboratory(tmp_path_factory.mktemp("实验室"), server)


@pytest.fixture(scope="module")
def first(lab: Laboratory) -> Loop:
    """Two rounds by one command."""
    lab.rounds("first", 2, "--judge", "judge", "--writer", "writer")
    return lab.loop("first")


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_one_command_runs_rounds_of_every_step(first: Loop) -> None:
    one, two = read_report(first, 1), read_report(first, 2)
    assert one is not None and two is not None
    assert (one.planned, one.done) == (12, 12) and sum(one.statuses.values()) == 12 and one.held_back == 2
    assert one.statuses["accepted"] > 0 and one.statuses["rejected"] > 0 and sum(one.repairs.values()) > 0
    assert one.samples["train"] > 0 and one.samples["held out"] > 0 and two.samples["train"] > one.samples["train"]
    filtered = read_filtered(first.round_dir(1) / "filtered.jsonl")
    assert len(filtered) == 12 and all(f.filter_result.assessed == f.filter_result.boxes for f in filtered if f.filter_result.boxes)


def test_the_second_round_is_played_with_the_skill_of_the_first(first: Loop) -> None:
    one = read_report(first, 1)
    assert one is not None and " v1 -> v2" in one.evolution
    name = one.evolution.split(" ")[0]
    label = next(x for x in first.run(2).manifest()["hashes"]["skills"] if x.startswith(name))
    assert label.split(" ")[1] == "v2" and not any(" v2 " in x for x in first.run(1).manifest()["hashes"]["skills"])
    old, new = ((first.skills_dir / name / f"{v}.md").read_text(encoding="utf-8").strip() for v in ("v1", "v2"))
    asked = {n: [json.loads(line) for p in first.run(n).calls.glob("b*.jsonl") for line in p.open(encoding="utf-8")] for n in (1, 2)}
    assert asked[1] and all(old in row["messages"][0]["content"] for row in asked[1])
    assert asked[2] and all(new in row["messages"][0]["content"] for row in asked[2])


def test_the_same_command_again_changes_no_byte_and_asks_nothing(lab: Laboratory, first: Loop) -> None:
    before, asked = tree(first.path), lab.server.counts()["requests"]
    lab.rounds("first", 2, "--judge", "judge", "--writer", "writer")
    assert tree(first.path) == before and lab.server.counts()["requests"] == asked


def test_a_third_round_goes_on_from_two(lab: Laboratory, first: Loop) -> None:
    report = (first.round_dir(2) / "round.json").read_bytes()
    said = lab.rounds("first", 3, "--judge", "judge", "--writer", "writer")
    assert "round 3: skills" in said and "round 1: skills" not in said and "round 2: skills" not in said and (first.round_dir(2) / "round.json").read_bytes() == report


def test_what_a_sample_holds_is_what_the_runtime_asked_and_what_was_decided(first: Loop) -> None:
    """Accepted dialogues: prompts byte for byte as in the call log, completions as in the record, nobody of a held-back pair."""
    samples = [json.loads(line) for line in (first.sft_dir / "train.jsonl").open(encoding="utf-8")]
    held = {json.loads(line)["pair"] for line in (first.sft_dir / "held_out.jsonl").open(encoding="utf-8")}
    assert samples and held and not held & {s["pair"] for s in samples}
    checked = 0
    for number in first.rounds():
        dialogues = first.run(number).dialogues()
        for sample in samples:
            if sample["source"] != "accepted" or sample["dialogue_id"] not in dialogues:
                continue
            dialogue = dialogues[sample["dialogue_id"]]
            assert dialogue.asks is not None
            ask = dialogue.asks[sample["ask"]]
            log = first.run(number).calls / f"{dialogue.binding}-{dialogue.evaluated_role}-0.jsonl"
            rows = {r["key"]: r for r in map(json.loads, log.open(encoding="utf-8"))}
            assert rows[ask.call]["messages"] == sample["prompt"] and ask.speaker == dialogue.evaluated_role
            said = json.loads(sample["completion"][0]["content"])["response"]
            assert ask.decision is not None
            assert (said["content"], said["end"]) == (ask.decision.content, ask.decision.end)
            checked += 1
    assert checked > 50


def test_held_back_dialogues_are_neither_repaired_nor_learnt_from(first: Loop) -> None:
    for number in first.rounds():
        for line in (first.round_dir(number) / "repairs.jsonl").open(encoding="utf-8"):
            assert f"-{HELD}-" not in json.loads(line)["dialogue_id"]
        evidence = json.loads((first.round_dir(number) / "evolution.json").read_text(encoding="utf-8"))["evidence"]
        assert not any(f"-{HELD}-" in example for e in evidence for example in e["examples"])


def test_the_rules_judge_alone_accepts_nothing(lab: Laboratory) -> None:
    said = lab.rounds("rules", 1, "--cases", "4")
    report = read_report(lab.loop("rules"), 1)
    assert report is not None and report.statuses["accepted"] == 0 and report.statuses["undecided"] >= 3
    assert report.evolution == "no writer" and report.samples == {"train": 0, "held out": 0} and "0 accepted" in said
    done = subprocess.run(lab.command("filter", str(lab.loop("rules").run(1).path), "--cards", str(lab.cards)), capture_output=True, encoding="utf-8")
    assert done.returncode == 0 and "checkboxes have an answer (no_rule" in done.stdout


def test_a_round_with_the_embedded_model(lab: Laboratory) -> None:
    lab.rounds("wire", 1, "--judge", "judge", "--writer", "writer", "--cases", "3", system="gemma-3-270m")
    report = read_report(lab.loop("wire"), 1)
    assert report is not None and report.done == 3
    assert report.samples["train"] + report.samples["held out"] > 0 or report.statuses["accepted"] == 0


def test_a_wrong_name_is_said_before_anything_is_asked_and_fixes_nothing(lab: Laboratory) -> None:
    asked = lab.server.counts()["requests"]
    for wrong, said in (
        (("--judge", "judgee"), "no system 'judgee' (did you mean 'judge'"), (("--writer", "gemma-3-270m"), "is a base model"),
        (("--partner", "nobody"), "no system 'nobody'"), (("--summary", "nobody"), "no system 'nobody'"), (("--skills", "none"), "a loop rewrites skills"),
        (("--held-back", "b99"), "no binding 'b99'"),
    ):  # fmt: skip
        assert said in lab.rounds("typo", 1, *wrong, "--cases", "2", code=2), wrong
    assert lab.server.counts()["requests"] == asked
    lab.rounds("typo", 1, "--judge", "judge", "--cases", "2")
    assert lab.loop("typo").settings().judge == "judge"


def test_a_loop_does_not_go_on_with_other_cards_rubric_or_systems(lab: Laboratory, tmp_path: Path) -> None:
    lab.rounds("fixed", 1, "--judge", "judge", "--cases", "2")
    asked = lab.server.counts()["requests"]
    cards = tmp_path / "cards"
    shutil.copytree(lab.cards, cards)
    persona = next((cards / "personas").glob("*.yaml"))
    persona.write_text(persona.read_text(encoding="utf-8") + "\n", encoding="utf-8")  # the same card: nothing has changed
    lab.rounds("fixed", 1, "--judge", "judge", "--cases", "2", "--cards", str(cards))
    text = persona.read_text(encoding="utf-8")
    persona.write_text(text.replace("interests:\n", "interests:\n  - 看人下棋\n", 1), encoding="utf-8")
    assert "its cards are not those that it was begun with" in lab.rounds("fixed", 2, "--judge", "judge", "--cases", "2", "--cards", str(cards), code=2)
    rubric = tmp_path / "rubric.yaml"
    rubric.write_text((default_cards_dir() / "rubric.yaml").read_text(encoding="utf-8").replace("weight: 13", "weight: 12", 1), encoding="utf-8")
    assert "its rubric are not" in lab.rounds("fixed", 2, "--judge", "judge", "--cases", "2", "--rubric", str(rubric), code=2)
    systems = json.loads((lab.folder / "systems.yaml").read_text(encoding="utf-8"))["systems"]
    path = tmp_path / "systems.yaml"
    path.write_text(json.dumps({"systems": [s | ({"model": "another"} if s["name"] == "toy" else {}) for s in systems]}), encoding="utf-8")
    assert "settings of toy are not" in lab.rounds("fixed", 2, "--judge", "judge", "--cases", "2", "--systems", str(path), code=2)
    assert lab.server.counts()["requests"] == asked


def test_a_renamed_loop_goes_on(lab: Laboratory) -> None:
    lab.rounds("before", 1, "--judge", "judge", "--cases", "2")
    (lab.folder / "before").rename(lab.folder / "after")
    asked = lab.server.counts()["requests"]
    said = lab.rounds("after", 1, "--judge", "judge", "--cases", "2")
    assert "finished before" in said and lab.server.counts()["requests"] == asked
    lab.rounds("after", 2, "--judge", "judge", "--cases", "2")
    assert {p.name for p in (lab.folder / "after" / "runs").iterdir()} == {"before-r1", "before-r2"}


def test_skills_beside_the_cards_are_those_that_a_loop_begins_with(lab: Laboratory, tmp_path: Path) -> None:
    cards = tmp_path / "cards"
    shutil.copytree(lab.cards, cards)
    shutil.copytree(default_cards_dir() / "skills", cards / "skills")
    (cards / "skills" / "message_style" / "v1.md").write_text("# 怎么打字\n\n- 短一点", encoding="utf-8")
    lab.rounds("beside", 1, "--cases", "2", "--cards", str(cards))
    assert (lab.loop("beside").skills_dir / "message_style" / "v1.md").read_text(encoding="utf-8").strip().endswith("- 短一点")


def test_a_skill_that_was_rolled_back_in_the_middle_of_a_round_is_not_rewritten_by_that_rounds_failures(lab: Laboratory, tmp_path: Path) -> None:
    systems = json.loads((lab.folder / "systems.yaml").read_text(encoding="utf-8"))["systems"]
    dead = [s | {"endpoint": "http://127.0.0.1:9/v1", "retries": 0} if s["name"] == "writer" else s for s in systems]
    path = tmp_path / "dead.yaml"
    path.write_text(json.dumps({"systems": dead}), encoding="utf-8")
    words = ("--judge", "judge", "--writer", "writer")
    lab.rounds("back", 1, *words)
    one = read_report(lab.loop("back"), 1)
    assert one is not None and " v1 -> v2" in one.evolution
    name = one.evolution.split(" ")[0]
    lab.rounds("back", 2, *words, "--systems", str(path), code=2)
    done = subprocess.run(lab.command("rollback", str(lab.loop("back").path), "--skill", name), capture_output=True, encoding="utf-8")
    assert done.returncode == 0 and f"{name}: v3 has the text of v1" in done.stdout
    lab.rounds("back", 2, *words)
    two = json.loads((lab.loop("back").round_dir(2) / "evolution.json").read_text(encoding="utf-8"))
    assert two["outcome"] in ("superseded", "no_target") or two["skill"] != name, two


def test_what_a_model_will_not_do_is_counted_and_a_server_that_fails_stops_the_round(lab: Laboratory, tmp_path: Path) -> None:
    """Of six cases one is refused for good by the speaker's server; the judge's server times out for another until it is told to go on."""
    refused = load_library(default_cards_dir()).personas["p01"].name

    def speak(call: Call) -> str | Answer:
        text = json.dumps(call.body, ensure_ascii=False)
        if f"你就是{refused}" in text:
            return Answer({"error": {"message": "content policy"}}, status=400)
        return good_text(call.body, request_key(call.path, call.body))

    with serve(speak) as served:
        systems = json.loads((lab.folder / "systems.yaml").read_text(encoding="utf-8"))["systems"]
        path = tmp_path / "systems.yaml"
        path.write_text(json.dumps({"systems": [s | ({"endpoint": served.url} if s["name"] == "toy" else {}) for s in systems]}), encoding="utf-8")
        said = lab.rounds("refused", 1, "--judge", "judge", "--cases", "6", "--systems", str(path))
        report = read_report(lab.loop("refused"), 1)
        assert report is not None and report.planned == 6 and report.done == 5 and report.missing == {"rejected": 1}
        assert "1 not had (rejected)" in said
        gone = tmp_path / "gone.yaml"
        hurt = [s | ({"endpoint": "http://127.0.0.1:9/v1", "retries": 0} if s["name"] == "toy" else {}) for s in systems]
        gone.write_text(json.dumps({"systems": hurt}), encoding="utf-8")
        assert "--go-on" in lab.rounds("gone", 1, "--judge", "judge", "--cases", "2", "--systems", str(gone), code=2)
        assert "not one dialogue could be had" in lab.rounds("gone", 1, "--judge", "judge", "--cases", "2", "--systems", str(gone), "--go-on", code=2)
        assert read_report(lab.loop("gone"), 1) is None
        lab.rounds("gone", 1, "--judge", "judge", "--cases", "2", "--systems", str(path))


def test_a_finished_round_whose_files_are_gone_or_damaged_is_made_again_and_asks_nothing(lab: Laboratory, first: Loop) -> None:
    before, asked = tree(first.path), lab.server.counts()["requests"]
    files = [first.round_dir(1) / name for name in ("filtered.jsonl", "repairs.jsonl", "failures.jsonl")]
    repairs = files[1].read_text(encoding="utf-8").splitlines(keepends=True)
    assert repairs, "nothing was repaired, so nothing can be lost"
    for hurt in (lambda: files[0].unlink(), lambda: files[1].write_text("".join(repairs[1:]), encoding="utf-8"), lambda: files[2].unlink()):
        hurt()
        done = subprocess.run(lab.command("sft", str(first.path), "--cards", str(lab.cards)), capture_output=True, encoding="utf-8")
        assert done.returncode == 2 and "its files are not what round.json counts" in done.stderr
        said = lab.rounds("first", len(first.rounds()), "--judge", "judge", "--writer", "writer")
        assert "made again from what is on disk" in said
        after = tree(first.path)
        assert {k: v for k, v in after.items() if "manifest" not in k} == {k: v for k, v in before.items() if "manifest" not in k}
    assert lab.server.counts()["requests"] == asked


def test_a_loop_keeps_its_settings(lab: Laboratory, first: Loop) -> None:
    said = lab.rounds("first", 2, "--judge", "judge", "--writer", "writer", "--s-turn", "0.8", code=2)
    assert "thresholds" in said and "begin another loop" in said
    with pytest.raises(LoopError, match="system"):
        first.begin(LoopSettings(system="other"))
    for wrong, code, words in (("1.5", 2, "--s-turn 1.5: a score from 0 to 1, below 1"), ("1", 2, "below 1")):
        done = subprocess.run(
            lab.command("filter", str(first.run(1).path), "--judge", "judge", "--cards", str(lab.cards), "--s-turn", wrong), capture_output=True, encoding="utf-8"
        )
        assert done.returncode == code and words in done.stderr
    done = subprocess.run(lab.command("rollback", str(lab.folder / "nowhere"), "--skill", "message_style"), capture_output=True, encoding="utf-8")
    assert done.returncode == 2 and "is no loop" in done.stderr and not (lab.folder / "nowhere").exists()


def test_somebody_elses_folder_is_left_alone(lab: Laboratory) -> None:
    other = lab.folder / "notes"
    other.mkdir()
    (other / "todo.txt").write_text("x", encoding="utf-8")
    assert "holds other files (todo.txt)" in lab.rounds("notes", 1, code=2)
    assert [p.name for p in other.iterdir()] == ["todo.txt"]


def test_a_dead_server_stops_the_round_and_the_same_command_goes_on(lab: Laboratory, tmp_path: Path) -> None:
    systems = json.loads((lab.folder / "systems.yaml").read_text(encoding="utf-8"))["systems"]
    dead = [s | {"endpoint": "http://127.0.0.1:9/v1", "retries": 0} if s["name"] == "writer" else s for s in systems]
    path = tmp_path / "dead.yaml"
    path.write_text(json.dumps({"systems": dead}), encoding="utf-8")
    said = lab.rounds("dead", 1, "--judge", "judge", "--writer", "writer", "--systems", str(path), code=2)
    assert "error:" in said and said.strip().count("\n") < 60 and "Traceback" not in said
    loop = lab.loop("dead")
    assert read_report(loop, 1) is None and len(loop.run(1).dialogues()) == 12
    dialogues = (loop.run(1).path / "dialogues.jsonl").read_bytes()
    lab.rounds("dead", 1, "--judge", "judge", "--writer", "writer")
    assert read_report(loop, 1) is not None and (loop.run(1).path / "dialogues.jsonl").read_bytes() == dialogues


def test_money_is_counted_over_the_whole_loop(lab: Laboratory, tmp_path: Path) -> None:
    systems = json.loads((lab.folder / "systems.yaml").read_text(encoding="utf-8"))["systems"]
    priced = [s if s["endpoint"] == "embedded" else s | {"prices": {"input": 1.0, "output": 1.0}} for s in systems]
    path = tmp_path / "priced.yaml"
    path.write_text(json.dumps({"systems": priced}), encoding="utf-8")
    words = ("--judge", "judge", "--writer", "writer", "--systems", str(path), "--max-cost")
    lab.rounds("money", 1, *words, "100")
    spent = sum(row["reply"]["prompt_tokens"] + row["reply"]["completion_tokens"]
                for p in lab.loop("money").path.rglob("calls/*.jsonl") for row in map(json.loads, p.open(encoding="utf-8")) if not row.get("reused")) / 1e6  # fmt: skip
    said = lab.rounds("money", 2, *words, str(spent + 0.02), code=2)
    assert "max-cost" in said or "could not be had" in said
    assert read_report(lab.loop("money"), 2) is None
    lab.rounds("money", 2, *words, "100")


def test_whole_pairs_are_held_back() -> None:
    library = load_library(default_cards_dir())
    held = held_back_bindings(library, "0.2", 0)
    pairs = {b: frozenset((x.persona_a, x.persona_b)) for b, x in library.bindings.items()}
    assert {pairs[b] for b in held}.isdisjoint(pairs[b] for b in library.bindings if b not in held)
    assert len({pairs[b] for b in held}) == round(0.2 * len(set(pairs.values()))) and held == held_back_bindings(library, "0.2", 0)
    assert held != held_back_bindings(library, "0.2", 1) and held_back_bindings(library, "0", 0) == []
    assert set(held_back_bindings(library, "b03, b07", 0)) >= {"b03", "b07"}
    with pytest.raises(LoopError, match="every pair"):
        held_back_bindings(library, ",".join(library.bindings), 0)
    with pytest.raises(LoopError, match="below 1"):
        held_back_bindings(library, "1.5", 0)


def test_a_run_of_a_loop_is_an_ordinary_run(first: Loop) -> None:
    run = Run(first.run(1).path)
    assert run.manifest()["judges"]["judge"]["boxes"] == len(load_rubric().boxes())
