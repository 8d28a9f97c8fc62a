"""`anthrolab judge-check` against any endpoint, over real HTTP: a judge that knows every answer is fit, with 1.0 everywhere, and
one that tosses a coin is rejected."""

import csv
import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.cli import app
from anthrolab.files import whole_lines
from anthrolab.judging import materials
from anthrolab.judging.calibration.check import labelled_set, spread
from anthrolab.judging.calibration.fitness import GOLD_CASES, LABELS
from anthrolab.judging.l0 import check as gate
from anthrolab.judging.labelled.items import UNTOUCHED, Fails, Labelled, Replace, applied, save_labelled
from anthrolab.judging.rubric import load_rubric
from anthrolab.judging.verdict import JUDGED_L0
from anthrolab.models.client import ModelError
from anthrolab.models.scripted import Answer, Call, Served, reply_body, serve
from anthrolab.runtime.dialogue import Dialogue
from tests.cards_for_tests import copy_cards
from tests.test_judging_calibration_check import systems_at

CARDS, RUBRIC = default_cards_dir(), load_rubric()
LIBRARY = load_library(CARDS)
ITEMS, GOLD = labelled_set(CARDS, LIBRARY, RUBRIC)
GATE = ("L0-01", "L0-02", "L0-03", "L0-04", "L0-05")
"""What the rules of the gate decide alone."""

Judge = Callable[[Call, Sequence[str]], dict[str, Any]]


# --- the servers --------------------------------------------------------------------------------------------------------


def ids_asked(call: Call) -> list[str]:
    question = call.body["messages"][-1]["content"].rpartition("材料到此为止。")[2]
    return re.findall(r"[A-Z]\d\.\d|L0-\d\d", question)


def said(block: str) -> str:
    """The lines of a chat as they are shown, without the fence's own."""
    return re.sub(r"^<<<CHAT \S+\n|\nCHAT \S+>>>$", "", block)


def entry(i: str, failed: bool, message: int | None) -> dict[str, Any]:
    verdict = {"violated": failed, "message": message} if i in JUDGED_L0 else {"passed": not failed}
    return {"reason": "看过了", **verdict}


def all_knowing(items: Sequence[Labelled], gold: dict[str, Dialogue]) -> Judge:
    """A judge that knows the labels: it finds the dialogue, and the turn, by the messages that it is shown."""
    fails: dict[str, dict[str, int | None]] = {}
    holds: dict[str, set[str]] = {}
    for item in items:
        dialogue = applied(item, gold)
        shown = [*enumerate(map(said, materials.windows(dialogue)), 1), (None, said(materials.whole(dialogue)))]
        for turn, chat in shown:
            fails.setdefault(chat, {}).update({f.id: f.message for f in item.fails if f.turn == turn})
            holds.setdefault(chat, set()).update(item.holds)
    torn = {i for chat, ids in fails.items() for i in ids if i in holds[chat] and i not in GATE}
    assert not torn, "the same messages cannot both hold and fail: no judge could know"

    def judge(call: Call, ids: Sequence[str]) -> dict[str, Any]:
        found = re.search(r"<<<CHAT .*\nCHAT \S+>>>", call.body["messages"][-1]["content"], re.DOTALL)
        assert found
        own = fails[said(found[0])]
        return {i: entry(i, i in own, own.get(i)) for i in ids}

    return judge


def coin(call: Call, ids: Sequence[str]) -> dict[str, Any]:
    """A judge that tosses a coin for every answer, and another one the next time."""
    draw = random.Random(call.number)
    own = [int(n) for n in re.findall(r"^#(\d+) \S+ \S+ 被评者(?!（开场白)", call.body["messages"][-1]["content"], re.MULTILINE)]
    tossed = {i: draw.random() < 0.5 for i in ids}
    return {i: entry(i, failed, own[0] if failed else None) for i, failed in tossed.items()}


def with_schema(judge: Judge) -> Callable[[Call], str | Answer]:
    """A server that takes a JSON schema, as vLLM does."""

    def handler(call: Call) -> str | Answer:
        assert ids_asked(call) == call.body["response_format"]["json_schema"]["schema"]["required"]
        return json.dumps(judge(call, ids_asked(call)), ensure_ascii=False)

    return handler


def without_formats(judge: Judge) -> Callable[[Call], str | Answer]:
    """A server that knows no response_format, and a model that wraps its JSON in words."""

    def handler(call: Call) -> str | Answer:
        if "response_format" in call.body:
            return Answer({"error": {"message": "response_format is not supported"}}, status=400)
        return f"好的，结论如下：\n```json\n{json.dumps(judge(call, ids_asked(call)), ensure_ascii=False)}\n```"

    return handler


def check(tmp_path: Path, handler: Callable[[Call], str | Answer], *options: str) -> tuple[int, str, int]:
    """The verb's exit code, what it printed, and how often the judge was asked."""
    with serve(handler) as served:
        systems = systems_at(tmp_path, served.url, timeout_s=60.0, concurrency=16)
        command = ["judge-check", "--judge", "oracle", "--systems", str(systems), "--out", str(tmp_path / "out"), *options]
        result = CliRunner().invoke(app, command)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stdout, len(served.calls)


def measures(tmp_path: Path) -> list[dict[str, str]]:
    with (tmp_path / "out" / "measures.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# --- a small set that shows all there is to show ----------------------------------------------------------------------------


def planted(item: Labelled, number: int) -> Labelled:
    """A gold dialogue in which one message of the evaluated side fails all that a judge is asked about."""
    dialogue = applied(item, GOLD)
    turn = len(dialogue.turns()) // 2
    message = dialogue.turns()[turn]
    fails = [Fails(id=i, message=message) for i in JUDGED_L0]
    fails += [Fails(id=b.id, turn=turn + 1) for b in RUBRIC.boxes("turn")] + [Fails(id=b.id) for b in RUBRIC.boxes("dialogue")]
    text = f"说真的这一条哪哪都不对 第{number}回"
    return Labelled(
        id=f"planted-{number}", gold=item.gold, role=item.role, edit="planted", seed=0, fails=fails, ops=[Replace(at=message, content=text)]
    )


def seen_by_the_gate(item: Labelled) -> bool:
    dialogue = applied(item, GOLD)
    result = gate(dialogue, dialogue.cards_of(LIBRARY.personas), LIBRARY.scenarios[dialogue.scenario or ""])
    return {v.id for v in result.violations} == {f.id for f in item.fails}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Labelled]]:
    """A folder of cards with the shortest gold dialogues, enough labels for every id and no more; and its items.

    What the gate alone decides comes from the labelled set, as far as the gate sees it: the check is of the judge.
    """
    folder = copy_cards(tmp_path_factory.mktemp("cards"))
    kept = sorted(GOLD, key=lambda b: len(GOLD[b].messages))[: GOLD_CASES // 2]
    (folder / "gold").mkdir()
    for binding in kept:
        shutil.copy(CARDS / "gold" / f"{binding}.yaml", folder / "gold")
    untouched = [i for i in ITEMS if i.edit == UNTOUCHED and i.gold in kept]
    by_gate: list[Labelled] = []
    for constraint in GATE:
        own = [i for i in ITEMS if [f.id for f in i.fails] == [constraint] and i.gold in kept and seen_by_the_gate(i)]
        by_gate += own[:LABELS]
    own = [*by_gate, *(planted(item, n) for n, item in enumerate(untouched[:LABELS], 1))]
    save_labelled(own, folder / "labelled" / "set.jsonl")
    assert len(untouched) == GOLD_CASES
    assert Counter(f.id for i in own for f in i.fails) == Counter([*GATE, *JUDGED_L0, *(b.id for b in RUBRIC.boxes())] * LABELS)
    return folder, [*untouched, *own]


def test_a_judge_that_knows_every_answer_is_fit_with_one_everywhere(tmp_path: Path, small: tuple[Path, list[Labelled]]) -> None:
    folder, items = small
    code, text, asked = check(tmp_path, with_schema(all_knowing(items, GOLD)), "--cards", str(folder))
    assert "judge oracle: fit for strict ACC" in text
    assert code == 0
    assert "not met" not in text and "not measured" not in text
    rows = measures(tmp_path)
    assert {r["id"] for r in rows if r["source"] != "gate"} == {*JUDGED_L0, *(b.id for b in RUBRIC.boxes())}
    for row in rows:
        if row["source"] == "gate" and row["id"] in JUDGED_L0:
            continue  # the gate finds by its words what is planted without any
        assert (row["recall"], row["precision"], row["coverage"]) == ("1.000000", "1.000000", "1.000000"), row
        assert (row["missed"], row["unanswered"], row["false_alarms"], row["found"]) == ("0", "0", "0", str(LABELS))
        if row["source"] == "judge":
            assert row["flips"] == "0.000000"
    printed = [line for line in text.splitlines() if re.match(r"[DEL]\d[.-]\d+ +(judge|gate or judge) ", line)]
    assert len(printed) == 2 + len(JUDGED_L0) + 44
    assert all(line.count(" 1.00 of 8 [") == 2 for line in printed), "recall and precision"
    fitness = json.loads((tmp_path / "out" / "fitness.json").read_text(encoding="utf-8"))
    assert fitness["fit"] is True and fitness["reasons"] == []
    assert {c["name"]: c["met"] for c in fitness["criteria"]} == dict.fromkeys(
        ("gold cases passed", "coverage", "labels", "recall", "precision", "repeats"), True
    )
    assert asked > 1000


def test_a_judge_that_tosses_a_coin_is_rejected_for_what_it_gets_wrong(tmp_path: Path, small: tuple[Path, list[Labelled]]) -> None:
    folder, _ = small
    code, text, _ = check(tmp_path, without_formats(coin), "--cards", str(folder))
    assert code == 1
    assert "judge oracle: not fit for strict ACC" in text
    fitness = json.loads((tmp_path / "out" / "fitness.json").read_text(encoding="utf-8"))
    met = {c["name"]: c["met"] for c in fitness["criteria"]}
    # it answers all and everything is measured: what speaks against it is that it is wrong (it passes no gold case either
    # time, so the outcomes do not even change)
    assert met == {"gold cases passed": False, "coverage": True, "labels": True, "recall": False, "precision": False, "repeats": True}
    assert len(fitness["reasons"]) == 3 and all(reason in (tmp_path / "out" / "fitness.md").read_text(encoding="utf-8") for reason in fitness["reasons"])
    assert "gold cases passed: 0 (0 of 50)" in fitness["reasons"][0]
    own = [r for r in measures(tmp_path) if r["source"] == "judge"]
    flips = [float(r["flips"]) for r in own if int(r["flips_of"]) > 200]
    assert flips and all(0.3 < f < 0.7 for f in flips), "half of its answers come out otherwise the next time"


def test_on_the_set_that_comes_with_anthrolab_it_is_never_wrong(tmp_path: Path) -> None:
    """A few labels of every id, once: too few for a verdict, so the judge is not fit, but not for anything that it said."""
    limit = 120
    code, text, _ = check(tmp_path, with_schema(all_knowing(ITEMS, GOLD)), "--limit", str(limit), "--repeats", "1")
    assert code == 1
    rows = [r for r in measures(tmp_path) if r["source"] != "gate"]
    wanted = Counter(i for item in spread(ITEMS, limit) for i in {f.id for f in item.fails})
    assert {r["id"] for r in rows} == {*JUDGED_L0, *(b.id for b in RUBRIC.boxes())}
    for row in rows:
        assert row["positives"] == row["found"] == str(wanted[row["id"]])
        assert (row["recall"], row["precision"], row["coverage"]) == ("1.000000", "1.000000", "1.000000")
        assert (row["false_alarms"], row["held_unanswered"]) == ("0", "0")
    fitness = json.loads((tmp_path / "out" / "fitness.json").read_text(encoding="utf-8"))
    assert {c["name"]: c["met"] for c in fitness["criteria"]} == {
        "gold cases passed": None, "coverage": True, "labels": None, "recall": None, "precision": None, "repeats": None,
    }  # fmt: skip
    assert "not measured" in text


# --- what it may cost and take ----------------------------------------------------------------------------------------------


def passing(call: Call) -> str:
    return json.dumps({i: entry(i, False, None) for i in ids_asked(call)}, ensure_ascii=False)


def priced(call: Call) -> Answer:
    body = reply_body(call, passing(call))
    body["usage"] = {"prompt_tokens": 1000, "completion_tokens": 100}
    return Answer(body)


def two_dialogues(served: Served, tmp_path: Path, *options: str, out: str = "out", **fields: Any) -> tuple[int, BaseException | None]:
    """The verb on two dialogues, once: its exit code and its error."""
    systems = systems_at(tmp_path, served.url, timeout_s=60.0, **fields)
    command = ["judge-check", "--judge", "oracle", "--systems", str(systems), "--out", str(tmp_path / out), "--limit", "2", "--repeats", "1"]
    result = CliRunner().invoke(app, [*command, *options])
    return result.exit_code, result.exception


def test_a_limit_on_money_holds_over_commands_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    # 0.0012 USD a call; before it is answered at most about 0.03
    prices = {"input": 1.0, "output": 2.0}
    with serve(priced) as served:
        for limit in (0.035, 0.04):
            _, error = two_dialogues(served, tmp_path, "--max-cost", str(limit), "--cache", "none", prices=prices, concurrency=2)
            assert isinstance(error, ModelError) and error.fault == "over_budget"
            assert 0 < 0.0012 * len(served.calls) <= limit
        assert not (tmp_path / "out" / "fitness.json").exists()
        begun = len(served.calls)
        code, _ = two_dialogues(served, tmp_path, "--cache", "none", prices=prices, concurrency=2)
        assert code == 1 and (tmp_path / "out" / "fitness.json").exists(), "two dialogues are too few to be fit"
        assert len(served.calls) > begun
        logged = [json.loads(line)["key"] for line in whole_lines(tmp_path / "out" / "calls" / "judge-oracle.jsonl")]
        assert len(set(logged)) == len(logged) == len(served.calls), "a call was paid for twice"


def test_a_judge_without_prices_is_not_asked_under_a_limit(tmp_path: Path) -> None:
    with serve(passing) as served:
        _, error = two_dialogues(served, tmp_path, "--max-cost", "1")
        assert "oracle has no prices" in str(error) and served.calls == []


def test_checks_beside_each_other_share_replies_unless_they_are_told_not_to(tmp_path: Path) -> None:
    with serve(passing) as served:
        two_dialogues(served, tmp_path, out="one")
        asked = len(served.calls)
        assert asked > 0 and (tmp_path / "replies.sqlite").exists()
        two_dialogues(served, tmp_path, out="two")
        assert len(served.calls) == asked
        two_dialogues(served, tmp_path, "--cache", "none", out="three")
        assert len(served.calls) == 2 * asked
    measured = [(tmp_path / out / "measures.csv").read_bytes() for out in ("one", "two", "three")]
    assert measured[0] == measured[1] == measured[2]


def test_a_dialogue_that_takes_too_long_is_unassessed_and_the_next_command_has_its_replies(tmp_path: Path) -> None:
    def slow(call: Call) -> Answer:
        return Answer(reply_body(call, passing(call)), delay=2.0)

    path = tmp_path / "out" / "verdicts.jsonl"
    with serve(slow) as served:
        code, _ = two_dialogues(served, tmp_path, "--deadline", "0.01", concurrency=64)
        assert code == 1
        faults = [[e["fault"] for e in json.loads(line)["errors"]] for line in whole_lines(path)]
        assert faults == [["model_error:deadline"]] * 2
        two_dialogues(served, tmp_path, concurrency=64)
        logged = [json.loads(line)["key"] for line in whole_lines(tmp_path / "out" / "calls" / "judge-oracle.jsonl")]
        assert len(set(logged)) == len(served.calls), "a reply that came in after the deadline is asked for again"
    late = [json.loads(line) for line in whole_lines(path)][2:]
    assert [(v["complete"], v["errors"]) for v in late] == [(True, [])] * 2
