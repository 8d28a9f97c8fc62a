"""`anthrolab cards draft` as it is typed, against a scripted writer behind a real server: clean folders, rejections that are told, kills,
dead servers, limits on money, and the paper's scale."""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.cards.lint import lint
from anthrolab.cards.statistics import persona_frame, scenario_frame
from anthrolab.files import canonical_json
from anthrolab.loop.drafting.drafting import draft_cards
from anthrolab.loop.drafting.folder import DraftingError
from anthrolab.loop.drafting.quotas import largest_remainder, load_quotas
from anthrolab.loop.drafting.report import Counts
from anthrolab.models.scripted import Answer, Call, Served, serve
from tests.drafting_for_tests import (
    REJECTED,
    asked,
    clumsy,
    command,
    compose,
    field,
    good,
    is_persona,
    mistake_of,
    mistaken,
    write_systems,
)

SMALL = ("--personas", "12", "--scenarios", "14", "--bindings", "17")


def draft(out: Path, systems: Path, *more: str) -> tuple[int, str]:
    """The command in a process of its own: exit code and what it said."""
    done = subprocess.run(command(out, systems, *(more or SMALL)), capture_output=True, encoding="utf-8", check=False)
    return done.returncode, done.stderr


def report_of(out: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((out / ".drafting" / "report.json").read_text("utf-8"))
    return report


def tree(out: Path) -> dict[str, bytes]:
    """The folder without the call log, whose lines come in the order of the replies and say how long each took."""
    files = {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    return {name: data for name, data in files.items() if "/calls/" not in name and not name.endswith(".lock")}


def check(out: Path) -> None:
    done = subprocess.run([*command(out, out)[:3], "cards", "check", str(out)], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr


def requests_for(served: Served, key: str) -> list[str]:
    """What was asked for one card: a persona by its name, a scenario by its time, in the order of asking."""
    return [asked(c.body) for c in served.calls if key == field(asked(c.body), "姓名" if is_persona(c.body) else "开头")]


def test_a_clumsy_writer_is_told_every_reason_and_the_folder_is_clean(tmp_path: Path) -> None:
    out = tmp_path / "卡片"
    with serve(clumsy) as served:
        code, said = draft(out, write_systems(tmp_path / "systems.yaml", served.url), "--personas", "36", "--scenarios", "40", "--bindings", "48")
    assert code == 0, said
    check(out)
    library = load_library(out)
    assert lint(library) == []
    assert (len(library.personas), len(library.scenarios), len(library.bindings)) == (36, 40, 48)
    assert len({(b.persona_a, b.persona_b) for b in library.bindings.values()}) == 48
    quotas = load_quotas()
    people, scenes = persona_frame(library), scenario_frame(library)
    for part in ("age band", "gender", "relationship status", "occupation group", "region", "setting"):
        planned = {v: n["planned"] for v, n in report_of(out)["quotas"]["personas"][part].items()}
        assert Counter(people[part].to_list()) == planned and sum(planned.values()) == 36
    for part in ("category", "horizon", "opener", "remote"):
        counts = largest_remainder(quotas.scenarios[part], 40)
        assert Counter(scenes[part].to_list()) == {v: n for v, n in counts.items() if n}

    made = Counter(mistake_of(c.body) for c in served.calls if REJECTED not in asked(c.body))
    assert set(made) >= {"alike", "placeholder", "copied", "province", "occupation", "broken", "cut", "missing", "secret"}, made
    rows = [json.loads(line) for line in (out / ".drafting" / "rounds.jsonl").read_text("utf-8").splitlines()]
    drafts = [o for row in rows for o in row]
    plan = json.loads((out / ".drafting" / "plan.json").read_text("utf-8"))
    keys = {p["id"]: p["name"] for p in plan["personas"]} | {
        s["id"]: next(asked(c.body) for c in served.calls if not is_persona(c.body) and f"开头：{s['start'][:10]} {s['start'][11:16]}" in asked(c.body))
        for s in plan["scenarios"]
    }
    rejected = [o for o in drafts if o["card"] is None]
    assert rejected and all(o["reasons"] for o in rejected) and not any(o["reasons"] for o in drafts if o["card"])
    for o in rejected:
        key = keys[o["slot"]] if o["slot"].startswith("p") else field(keys[o["slot"]], "开头")
        again = requests_for(served, key)[o["attempt"]]
        assert REJECTED in again
        for reason in o["reasons"]:
            assert reason["said"].replace("<", "＜").replace(">", "＞") in again, "a reason was not told"


@pytest.mark.parametrize(
    ("mistake", "sort"),
    [
        ("placeholder", "copies: interests"), ("alike", "copies: card"), ("province", "quota: city"), ("occupation", "quota: occupation"),
        ("broken", "reply: "), ("cut", "reply: "), ("missing", "fields: weak_topics"),
    ],
)  # fmt: skip
def test_a_slot_that_stays_wrong_is_a_typed_row_and_more_attempts_go_on(tmp_path: Path, mistake: str, sort: str) -> None:
    """A writer that never mends its ways with personas; then one that does."""
    wrong, out, said = [True], tmp_path / "pool", list[str]()

    def handler(call: Call) -> str | Answer:
        return mistaken(call, mistake) if wrong[0] and is_persona(call.body) else good(call)

    with serve(handler) as served:
        systems = write_systems(tmp_path / "systems.yaml", served.url)

        def once(attempts: int) -> Counts:
            return draft_cards(out, "toy", personas=4, scenarios=3, bindings=3, attempts=attempts, systems_file=systems, progress=said.append)

        there = 1 if mistake == "alike" else 0
        assert (counts := once(2)) == once(2), "a slot whose attempts are used up is not asked again"
        report, count = report_of(out), len(served.calls)
        assert not counts.complete and (counts.accepted, counts.open, counts.waiting) == (there, 4 - there, 3)
        assert count == 2 * (4 - there) + there
        assert report["accepted"]["personas"] == there and len(report["waiting"]) == 3
        assert all(row["attempts"] == 2 and row["reasons"] for row in report["open"])
        assert any(key.startswith(sort) for key in report["rejected"]), report["rejected"]
        assert any("open after 2 attempts" in line for line in said) and any(f": {sort}" in line for line in said)
        wrong[0] = False
        assert once(3).complete and len(served.calls) == count + 4 - there + 3
    check(out)


def test_open_slots_are_exit_code_one(tmp_path: Path) -> None:
    with serve(lambda call: mistaken(call, "cut")) as served:
        systems = write_systems(tmp_path / "systems.yaml", served.url)
        code, said = draft(tmp_path / "pool", systems, "--personas", "2", "--scenarios", "1", "--bindings", "1", "--attempts", "1")
    assert code == 1 and "open after 1 attempts: the reply's JSON is cut off" in said and "error" not in said


def test_an_edited_card_stays_and_other_settings_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "pool"
    numbers: dict[str, Any] = {"personas": 4, "scenarios": 3, "bindings": 3}
    with serve(good) as served:
        options: dict[str, Any] = {"systems_file": write_systems(tmp_path / "systems.yaml", served.url), "progress": lambda line: None}
        assert draft_cards(out, "toy", **numbers, **options).complete
        count, path = len(served.calls), out / "personas" / "p01.yaml"
        edited = path.read_text("utf-8").replace("education: ", "education: 自考，")
        path.write_text(edited, "utf-8")
        (out / "scenarios" / "s02.yaml").unlink()
        (out / "bindings.yaml").unlink()
        assert draft_cards(out, "toy", **numbers, **options).complete and len(served.calls) == count
        assert path.read_text("utf-8") == edited
        check(out)
        for more, said in (({"personas": 5}, "personas 4, now 5"), ({"seed": 4}, "seed 0, now 4")):
            with pytest.raises(DraftingError, match=f"was begun with {said}"):
                draft_cards(out, "toy", **{**numbers, **more}, **options)
        (tmp_path / "q.yaml").write_text("scenarios:\n  category: {Game: 1}\n", "utf-8")
        with pytest.raises(DraftingError, match="was begun with other quotas"):
            draft_cards(out, "toy", **numbers, **options, quotas_file=tmp_path / "q.yaml")
        (out / "personas" / "p03.yaml").write_text(path.read_text("utf-8"), "utf-8")
        with pytest.raises(DraftingError, match=r"p03.yaml: id: is 'p01'"):
            draft_cards(out, "toy", **numbers, **options)
        assert len(served.calls) == count


@pytest.mark.parametrize(("line", "said"), [("{}", "line 1: no round"), ('[{"slot": "p01"}]', "line 1: no round")])
def test_a_damaged_round_is_named(tmp_path: Path, line: str, said: str) -> None:
    with serve(good) as served:
        options: dict[str, Any] = {"systems_file": write_systems(tmp_path / "systems.yaml", served.url), "progress": lambda line: None}
        draft_cards(tmp_path / "pool", "toy", personas=2, scenarios=1, bindings=1, **options)
        rounds = tmp_path / "pool" / ".drafting" / "rounds.jsonl"
        rounds.write_text(line + "\n" + rounds.read_text("utf-8"), "utf-8")
        with pytest.raises(DraftingError, match=said):
            draft_cards(tmp_path / "pool", "toy", personas=2, scenarios=1, bindings=1, **options)


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    (out / "personas").mkdir(parents=True)
    systems = write_systems(tmp_path / "systems.yaml", "http://127.0.0.1:9/v1")
    code, said = draft(out, systems)
    assert code == 2 and "holds other files (personas)" in said and [p.name for p in out.iterdir()] == ["personas"]
    base = write_systems(tmp_path / "base.yaml", "embedded", server="llama.cpp", policy="transcript", retries=0)
    code, said = draft(tmp_path / "new", base)
    assert code == 2 and "--writer toy: is a base model" in said and not (tmp_path / "new").exists()
    code, said = draft(tmp_path / "new", systems, "--personas", "3", "--scenarios", "9", "--bindings", "9")
    assert code == 2 and "only 6 directed pairs" in said and not (tmp_path / "new").exists()


def stored(out: Path) -> set[str]:
    """Requests whose replies are on disk."""
    path = out / ".drafting" / "calls" / "writer.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []  # the last line may be torn
    return {request_of({"messages": row["messages"], **row["params"]}) for row in map(json.loads, lines)}


def request_of(body: Mapping[str, Any]) -> str:
    return canonical_json({key: value for key, value in body.items() if key != "model"})


@pytest.mark.parametrize("seed", range(2))
def test_kill_dash_nine_changes_nothing_and_asks_nothing_twice(tmp_path: Path, seed: int) -> None:
    numbers = ("--personas", "34", "--scenarios", "36", "--bindings", "40", "--cache", "none")
    draw = random.Random(seed)

    def slow(call: Call) -> Answer | str:
        time.sleep(0.03 + 0.001 * (len(asked(call.body)) % 40))  # replies come in another order than they were asked for
        return clumsy(call)

    with serve(slow) as served:
        systems = write_systems(tmp_path / "systems.yaml", served.url, concurrency=6)
        whole = tmp_path / "whole"
        assert draft(whole, systems, *numbers)[0] == 0
        out, killed, marks = tmp_path / "killed", 0, []
        for _ in range(4):
            before = len(served.calls)
            process = subprocess.Popen(command(out, systems, *numbers), stderr=subprocess.DEVNULL, start_new_session=True)
            wanted = before + draw.randint(2, 30)
            while process.poll() is None and len(served.calls) < wanted:
                time.sleep(0.005)
            time.sleep(draw.random() * 0.1)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                killed += 1
            process.wait()
            marks.append((len(served.calls), stored(out)))
        code, said = draft(out, systems, *numbers)
        assert code == 0, said
    assert killed == 4, "the command was over before it could be killed"
    for number, there in marks:
        assert not there & {request_of(c.body) for c in served.calls[number:]}, "what was on disk was asked for again"
    assert tree(out) == tree(whole)
    check(out)


def test_a_kill_in_the_middle_of_any_round_needs_no_server_to_go_on(tmp_path: Path) -> None:
    """rounds.jsonl cut inside each of its lines: all replies are in the call log, so the same folder comes out without one question."""
    out, numbers = tmp_path / "pool", {"personas": 34, "scenarios": 36, "bindings": 40}
    with serve(clumsy) as served:
        options: dict[str, Any] = {"systems_file": write_systems(tmp_path / "systems.yaml", served.url, retries=0), "progress": lambda line: None, **numbers}
        assert draft_cards(out, "toy", **options).complete
    whole, rounds = tree(out), (out / ".drafting" / "rounds.jsonl").read_bytes().splitlines(keepends=True)
    assert len(rounds) >= 4 and len(list(out.glob("*/*.yaml"))) == 34 + 36
    for i, line in enumerate(rounds):
        (out / ".drafting" / "rounds.jsonl").write_bytes(b"".join(rounds[:i]) + line[: len(line) // 2])
        for path in (*out.glob("*/*.yaml"), out / "bindings.yaml", out / ".drafting" / "report.json"):
            path.unlink()
        assert draft_cards(out, "toy", **options).complete
        assert tree(out) == whole


def test_a_server_that_closes_or_dies_is_one_line_and_nothing_is_lost(tmp_path: Path) -> None:
    out, most = tmp_path / "pool", [15]

    def closes(call: Call) -> str | Answer:
        return good(call) if call.number <= most[0] else Answer({"error": {"message": "wait"}}, 429, {"retry-after": "999999"})

    with serve(closes) as served:
        systems = write_systems(tmp_path / "systems.yaml", served.url, concurrency=1)
        code, said = draft(out, systems)
        assert code == 2 and said.splitlines()[-1].startswith("error: ") and "Traceback" not in said, said
        assert report_of(out)["accepted"] == {"personas": 12, "scenarios": 0, "bindings": 0}
        assert {row["fault"] for row in report_of(out)["unanswered"]} == {"quota"}
        there, count = stored(out), len(served.calls)
        assert len(there) == 15
        most[0] = 10**6
        assert draft(out, systems)[0] == 0
        assert len(served.calls) == count + 11, "three of the fourteen scenarios were there"
        check(out)
        assert draft(tmp_path / "next", systems, *SMALL, "--seed", "1", "--personas", "3", "--scenarios", "2", "--bindings", "2")[0] == 0
    code, said = draft(tmp_path / "late", systems, *SMALL, "--seed", "2")
    assert code == 2 and said.splitlines()[-1].startswith("error: ") and "Traceback" not in said
    assert report_of(tmp_path / "late")["accepted"]["personas"] == 0


def test_what_gets_no_answer_is_left_to_the_next_command(tmp_path: Path) -> None:
    sick = [True]

    def handler(call: Call) -> str | Answer:
        if sick[0] and is_persona(call.body) and len(field(asked(call.body), "姓名")) == 2:
            return Answer({"error": {"message": "no"}}, 500)
        return good(call)

    with serve(handler) as served:
        systems, out = write_systems(tmp_path / "systems.yaml", served.url, retries=0), tmp_path / "pool"
        code, said = draft(out, systems)
        report = report_of(out)
        lost = len(report["unanswered"])
        assert code == 1 and lost and report["accepted"]["personas"] == 12 - lost and "not answered (server_error" in said
        assert {row["fault"] for row in report["unanswered"]} == {"server_error"} and report["open"] == []
        sick[0] = False
        assert draft(out, systems)[0] == 0
    check(out)


def test_a_server_that_refuses_everything_is_asked_for_one_round_only(tmp_path: Path) -> None:
    with serve(lambda call: Answer({"error": {"message": "no such model"}}, 404)) as served:
        code, said = draft(tmp_path / "pool", write_systems(tmp_path / "systems.yaml", served.url, retries=0))
    assert code == 2 and "no such model" in said.splitlines()[-1] and len(served.calls) <= 3 * 12


def test_no_money_is_spent_beyond_the_limit(tmp_path: Path) -> None:
    prices = {"input": 10.0, "output": 10.0}
    with serve(good) as served:
        systems, out = write_systems(tmp_path / "systems.yaml", served.url, prices=prices, concurrency=1, judge_max_tokens=2000), tmp_path / "pool"
        code, said = draft(out, systems, *SMALL, "--max-cost", "0.2")
        few = len(served.calls)
        assert code == 2 and "--max-cost 0.2" in said.splitlines()[-1] and 0 < few < 12
        report = report_of(out)
        assert report["accepted"]["personas"] == 0 and 0 < report["spend"][0]["usd"] <= 0.2
        code, said = draft(out, systems, *SMALL, "--max-cost", "50")
        assert code == 0 and len(served.calls) == 26, "what was bought is not bought again"
        assert "USD" in said
    check(out)


def test_a_second_folder_has_its_replies_from_the_cache(tmp_path: Path) -> None:
    with serve(good) as served:
        systems = write_systems(tmp_path / "systems.yaml", served.url)
        assert draft(tmp_path / "one", systems)[0] == 0
        count = len(served.calls)
        code, said = draft(tmp_path / "two", systems)
        assert code == 0 and len(served.calls) == count and "26 replies came from" in said
    assert {n: d for n, d in tree(tmp_path / "one").items() if "report" not in n} == {n: d for n, d in tree(tmp_path / "two").items() if "report" not in n}


def test_the_papers_scale_is_one_command(tmp_path: Path) -> None:
    out = tmp_path / "pool"
    with serve(good) as served:
        code, said = draft(out, write_systems(tmp_path / "systems.yaml", served.url), "--cache", "none")
    assert code == 0, said
    library = load_library(out)
    assert (len(library.personas), len(library.scenarios), len(library.bindings)) == (261, 334, 400)
    assert lint(library) == []
    quotas = load_quotas()
    assert Counter(s.category for s in library.scenarios.values()) == dict(quotas.scenarios["category"])
    report = report_of(out)
    assert report["findings"] == report["open"] == report["waiting"] == []
    for parts in report["quotas"].values():
        for part, values in parts.items():
            assert all(n["planned"] == n["accepted"] for n in values.values()), part
    assert len(served.calls) == report["drafts"]["accepted"] + report["drafts"]["rejected"] == report["spend"][0]["calls"]


def test_the_composed_cards_are_a_function_of_the_request() -> None:
    """What the kill tests rest on."""
    body = {"messages": [{"role": "user", "content": "这个人：\n姓名：王安\n年龄：30岁（）\n婚恋状况：单身\n行当：医疗护理（医生、护士、护工、药店、康复、保健之类）\n住处：四川，住城里或镇上"}]}
    assert compose(body) == compose(body)


def test_what_copies_the_benchmark_is_refused(tmp_path: Path) -> None:
    """Training data must not hold the cards that models are measured on."""
    line = next(t for p in load_library(default_cards_dir()).personas.values() for t in p.knowledge_boundaries if len(t) > 20)

    def copies(call: Call) -> str:
        card = compose(call.body)
        if is_persona(call.body) and REJECTED not in asked(call.body):
            card["knowledge_boundaries"][0] = line
        return json.dumps(card, ensure_ascii=False)

    with serve(copies) as served:
        systems = write_systems(tmp_path / "systems.yaml", served.url)
        assert draft_cards(tmp_path / "pool", "toy", personas=2, scenarios=1, bindings=1, systems_file=systems, progress=lambda line: None).complete
    assert report_of(tmp_path / "pool")["rejected"] == {"copies: card": 2}
