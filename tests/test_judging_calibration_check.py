"""Checking judges: the rules judge in process, and a model judge with known errors over real HTTP, killed and resumed."""

import csv
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from anthrolab.cards.library import load_library
from anthrolab.files import whole_lines
from anthrolab.intervals import Rate
from anthrolab.judging.calibration.check import Checked, check_judge, labelled_set, spread
from anthrolab.judging.calibration.judged import CheckError, Repeated, locked
from anthrolab.judging.labelled.items import Labelled, LabelledError, save_labelled, untouched
from anthrolab.judging.rubric import load_rubric
from anthrolab.judging.verdict import JUDGED_L0
from anthrolab.models.client import ModelError
from anthrolab.models.scripted import Answer, Call, serve
from anthrolab.models.systems import SystemsError
from anthrolab.runtime.dialogue import other
from tests.cards_for_tests import copy_cards
from tests.labelled_for_tests import GOLD, LIBRARY, SMALL, chat, item

ALL = ["L0-07", "D1.1", "D1.2", "E1.1"]
ESSAY, HIDDEN, LOUD = "首先我想说行，其次没了，综上所述就这样", "综上 我带水", "几点见嘛！！！"

ITEMS = [
    *untouched(GOLD, ALL),
    item("e1", ("D1.1", 2), holds=["D1.2"], edit="essay", say={3: ESSAY}),
    item("e2", ("D1.1", 3), holds=["D1.2"], edit="essay", say={5: HIDDEN}),
    item("l1", holds=["D1.1"], edit="loud", say={7: LOUD}),
    item("p1", ("L0-07", 5), edit="power", say={5: "我把你订单在后台改了"}),
]
"""The judge below knows an essay by 首先 (and so misses e2), takes loud messages for essays, and finds what is done 在后台."""


def quiet(_line: str) -> None:
    pass


def target(call: Call) -> str:
    """The message that a local call asks about; "" in a call about the dialogue."""
    marked = re.search(r"（待评）：(.*)", call.body["messages"][-1]["content"])
    return marked[1] if marked else ""


def decide(call: Call, i: str) -> dict[str, Any]:
    text = target(call)
    if i in JUDGED_L0:
        position = re.search(r"#(\d+) [^#]*在后台", call.body["messages"][-1]["content"])
        violated = i == "L0-07" and position is not None
        return {"reason": "看了", "violated": violated, "message": int(position[1]) if violated and position else None}
    return {"reason": "看了", "passed": not (i == "D1.1" and ("首先" in text or "！！！" in text))}


def judge_with(decision: Callable[[Call, str], dict[str, Any]]) -> Callable[[Call], str | Answer]:
    def handler(call: Call) -> str:
        ids = call.body["response_format"]["json_schema"]["schema"]["properties"]
        return json.dumps({i: decision(call, i) for i in ids}, ensure_ascii=False)

    return handler


def systems_at(tmp_path: Path, url: str, **fields: Any) -> Path:
    path = tmp_path / "systems.yaml"
    entry = {"name": "oracle", "endpoint": url, "model": "m", "server": "openai", "policy": "chat", "retries": 0, "timeout_s": 5.0}
    path.write_text(json.dumps({"systems": [entry | fields]}), encoding="utf-8")
    return path


def checked(tmp_path: Path, url: str, items: list[Labelled] = ITEMS, **options: Any) -> Checked:
    out = options.pop("out", tmp_path / "out")
    return check_judge("oracle", items, GOLD, LIBRARY, SMALL, out=out, systems_file=systems_at(tmp_path, url), progress=quiet, **options)


def test_a_model_judge_with_known_errors(tmp_path: Path) -> None:
    with serve(judge_with(decide)) as served:
        result = checked(tmp_path, served.url)
    m = {(x.id, x.source): x for x in result.measures}
    assert result.items == len(ITEMS) == 6
    assert result.sources == 2, "a's side of the one gold dialogue, and b's"
    essay = m["D1.1", "judge"]
    assert (essay.recall, essay.false_alarms, essay.held) == (Rate(1, 2), 1, 3)
    assert essay.precision == Rate(1, 2)
    assert m["D1.2", "judge"].false_alarms == 0
    assert m["L0-07", "judge"].recall == Rate(1, 1)
    assert m["L0-07", "gate"].recall == Rate(0, 1)
    # a has four turns, b three, in six dialogues of which one is b's
    assert (essay.asked, essay.answered) == (5 * 4 + 3, 5 * 4 + 3)
    assert result.gold == Rate(2, 2)
    assert [b.recall for b in result.position] == [Rate(0, 0), Rate(2, 3), Rate(0, 0)]
    assert not result.fitness.fit
    written = {p.name for p in (tmp_path / "out").iterdir()}
    assert {"verdicts.jsonl", "calls", "measures.csv", "fitness.json", "fitness.md"} <= written
    assert not {"people.csv", "fails.csv"} & written
    with (tmp_path / "out" / "measures.csv").open(encoding="utf-8", newline="") as file:
        row = next(r for r in csv.DictReader(file) if (r["id"], r["source"]) == ("D1.1", "judge"))
    assert (row["positives"], row["found"], row["missed"], row["false_alarms"], row["recall"]) == ("2", "1", "1", "1", "0.500000")
    assert row["recall_low"] < "0.1" and row["recall_high"] > "0.9"
    assert json.loads((tmp_path / "out" / "fitness.json").read_text(encoding="utf-8"))["fit"] is False


def test_known_flips_over_repeats_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()

    def fickle(call: Call, i: str) -> dict[str, Any]:
        """D1.2 of message 7 of the evaluated a fails the second time it is asked about, where nothing else differs."""
        if i == "D1.2" and "好嘞" in target(call):
            key = json.dumps(call.body["messages"])
            seen[key] += 1
            return {"reason": "看了", "passed": seen[key] != 2}
        return decide(call, i)

    with serve(judge_with(fickle)) as served:
        once = checked(tmp_path, served.url)
        after_one = len(served.calls)
        result = checked(tmp_path, served.url, repeats=2)
        after_two = len(served.calls)
        again = checked(tmp_path, served.url, repeats=2)
        assert len(served.calls) == after_two, "what is on disk was asked again"
    assert once.flips["D1.2"] == Rate(0, 0)
    # equal prompts of a repeat share a call, so every body came once a repeat
    assert set(Counter(json.dumps(c.body) for c in served.calls).values()) == {2}
    assert after_two == 2 * after_one
    assert result.flips["D1.2"] == Rate(len(seen), 23)
    assert seen and result.flips["D1.1"] == Rate(0, 23)
    assert result.outcome_flips == Rate(1, 2), "of the two untouched dialogues the one where a says it"
    assert next(m for m in result.measures if m.id == "D1.2").false_alarms == 0, "measures are of the first judging"
    assert again == result


def test_more_repeats_keep_the_first_ones(tmp_path: Path) -> None:
    with serve(judge_with(decide)) as served:
        checked(tmp_path, served.url)
        kept = (tmp_path / "out" / "verdicts.jsonl").read_bytes()
        checked(tmp_path, served.url, repeats=3)
    content = (tmp_path / "out" / "verdicts.jsonl").read_bytes()
    assert content.startswith(kept)
    repeats = Counter(Repeated.model_validate_json(line).repeat for line in content.decode("utf-8").splitlines())
    assert repeats == {1: 6, 2: 6, 3: 6}


def test_a_server_that_fails_is_asked_again_and_only_for_what_is_missing(tmp_path: Path) -> None:
    broken = True

    def failing(call: Call) -> str | Answer:
        return Answer("<html>502</html>", status=502) if broken and "首先" in target(call) else judge_with(decide)(call)

    with serve(failing) as served:
        first = checked(tmp_path, served.url)
        broken, before = False, len(served.calls)
        result = checked(tmp_path, served.url)
        assert len(served.calls) == before + 1
    essay, mended = (next(m for m in c.measures if m.id == "D1.1") for c in (first, result))
    assert (essay.found, essay.unanswered, mended.found, mended.unanswered) == (0, 1, 1, 0)


def test_an_unreachable_judge_ends_the_command_with_its_error(tmp_path: Path) -> None:
    with serve(judge_with(decide)) as served:
        pass
    with pytest.raises(ModelError, match="is the server running"):
        checked(tmp_path, served.url)
    assert not (tmp_path / "out" / "fitness.json").exists()


def there(tmp_path: Path, url: str) -> None:
    """What the process to be killed does."""
    checked(tmp_path, url, repeats=2)


def test_checking_survives_kill_dash_nine(tmp_path: Path) -> None:
    with serve(judge_with(decide)) as served:
        result = checked(tmp_path, served.url, repeats=2, out=tmp_path / "whole")
        whole = len(served.calls)
        command = [
            sys.executable, "-c",
            "import sys; from pathlib import Path; from tests.test_judging_calibration_check import there; "
            "there(Path(sys.argv[1]), sys.argv[2])",
            str(tmp_path), served.url,
        ]  # fmt: skip
        for enough in (3, 20):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while process.poll() is None and len(served.calls) - whole < enough:
                time.sleep(0.002)
            process.kill()
            process.wait()
        subprocess.run(command, check=True, capture_output=True)
        logged = [json.loads(line)["key"] for line in whole_lines(tmp_path / "out" / "calls" / "judge-oracle.jsonl")]
        assert len(logged) == len(set(logged)) == whole
        before = len(served.calls)
        assert checked(tmp_path, served.url, repeats=2) == result
        assert len(served.calls) == before
    for name in ("measures.csv", "fitness.md"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_torn_last_line_is_judged_anew_and_a_broken_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "out" / "verdicts.jsonl"
    with serve(judge_with(decide)) as served:
        result = checked(tmp_path, served.url)
        path.write_bytes(path.read_bytes()[:-20])
        assert checked(tmp_path, served.url) == result
        assert checked(tmp_path, served.url) == result, "the verdict after the torn one stands on a line of its own"
        path.write_text("{}\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
        with pytest.raises(CheckError, match=r"verdicts.jsonl: line 1: dialogue_id: .*remove that line"):
            checked(tmp_path, served.url)


def test_a_changed_item_is_judged_again(tmp_path: Path) -> None:
    with serve(judge_with(decide)) as served:
        checked(tmp_path, served.url)
        changed = [*ITEMS[:-4], item("e1", ("D1.1", 2), holds=["D1.2"], edit="essay", say={3: "我想说 没了"}), *ITEMS[-3:]]
        result = checked(tmp_path, served.url, changed)
    assert next(m for m in result.measures if (m.id, m.source) == ("D1.1", "judge")).found == 0


@pytest.mark.parametrize("changed", ["own", "partner", "scenario"])
def test_a_changed_card_is_judged_again(tmp_path: Path, changed: str) -> None:
    cards = {"own": ("personas", "p90", {"age": 44}), "partner": ("personas", "p91", {"age": 44}), "scenario": ("scenarios", "s90", {"goal": "约周末打球"})}
    part, key, update = cards[changed]
    there = getattr(LIBRARY, part)
    library = replace(LIBRARY, **{part: there | {key: there[key].model_copy(update=update)}})
    with serve(judge_with(decide)) as served:
        checked(tmp_path, served.url)
        before = len(served.calls)
        check_judge(
            "oracle", ITEMS, GOLD, library, SMALL, out=tmp_path / "out", systems_file=systems_at(tmp_path, served.url), progress=quiet
        )
        assert len(served.calls) > before, "the verdicts by the old cards were taken"
        again = len(served.calls)
        checked(tmp_path, served.url)
        assert len(served.calls) == again, "the old cards' verdicts are still there"


def test_an_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="the id e1 stands twice"):
        rules(tmp_path, [*ITEMS, ITEMS[2]])


def test_one_command_at_a_time(tmp_path: Path) -> None:
    with locked(tmp_path / "out"), pytest.raises(CheckError, match="another anthrolab command works here"):
        checked(tmp_path, "http://localhost:1/v1")


def test_a_base_model_cannot_judge(tmp_path: Path) -> None:
    systems = systems_at(tmp_path, "http://localhost:1/v1", policy="transcript")
    with pytest.raises(SystemsError, match="a judge is a chat model"):
        check_judge("oracle", ITEMS, GOLD, LIBRARY, SMALL, out=tmp_path / "out", systems_file=systems, progress=quiet)


def rules(tmp_path: Path, items: list[Labelled], **options: Any) -> Checked:
    return check_judge("rules", items, GOLD, LIBRARY, load_rubric(), out=tmp_path / "out", progress=quiet, **options)


def test_the_rules_judge_is_steady_silent_on_much_and_unfit(tmp_path: Path) -> None:
    items = [item("e", ("D1.3", 2), edit="essay", say={3: "首先我觉得行 其次 综上所述就这样"}), item("n", holds=["D1.3", "L0-01"], edit="loud")]
    result = rules(tmp_path, items, repeats=2)
    m = {(x.id, x.source): x for x in result.measures}
    assert (m["D1.3", "judge"].recall, m["D1.3", "judge"].false_alarms) == (Rate(1, 1), 0)
    assert m["D1.1", "judge"].coverage.part == 0
    assert m["L0-01", "gate"].held == 1
    assert sum(result.flips.values(), Rate(0, 0)).part == 0 < sum(result.flips.values(), Rate(0, 0)).of
    assert not result.fitness.fit
    assert "never answered: L0-06, L0-07, L0-08, L0-09, L0-10, D1.1," in "\n".join(result.fitness.reasons)
    assert not (tmp_path / "out" / "calls").exists()
    assert rules(tmp_path, items, repeats=2) == result


def test_human_labels_and_real_chats(tmp_path: Path) -> None:
    real = chat("h01", ["在吗", ESSAY, "你说", "我是一个AI语言模型", "嗯", "好"])
    (tmp_path / "h.jsonl").write_text("\ufeff" + real.to_line() + "\n\n", encoding="utf-8")
    rows = ["dialogue,turn,box,rater,value", "h01,1,D1.3,ann,false", "h01,1,D1.3,bob,false", "h01,2,D1.3,ann,true", "e,2,D1.3,ann,true"]
    (tmp_path / "l.csv").write_text("\n".join(rows), encoding="utf-8")
    items = [item("e", ("D1.3", 2), edit="essay", say={3: ESSAY}), item("n", holds=["D1.3"], edit="loud")]
    result = rules(tmp_path, items, labels_file=tmp_path / "l.csv", dialogues_file=tmp_path / "h.jsonl", limit=0)
    assert result.items == 1, "a labelled dialogue that people answered about is judged whatever the limit"
    whole = result.agreement[0]
    assert whole.judge.agree == Rate(2, 3)
    assert result.real is not None
    assert result.real.dialogues == 1
    assert result.real.constraints["L0-01"] == Rate(1, 1)
    assert result.real.by_judge["D1.3"] == Rate(1, 3)
    assert result.real.by_people == {"D1.3": Rate(1, 2)}
    assert next(m for m in result.measures if m.id == "D1.3").asked == 4, "real chats are in no measure"
    with (tmp_path / "out" / "people.csv").open(encoding="utf-8", newline="") as file:
        assert [(r["box"], r["rater"]) for r in csv.DictReader(file)][:3] == [("all", "majority"), ("all", "ann"), ("all", "bob")]
    with (tmp_path / "out" / "fails.csv").open(encoding="utf-8", newline="") as file:
        assert {(r["by"], r["id"], r["failed"]) for r in csv.DictReader(file)} >= {("gate", "L0-01", "1.000000"), ("people", "D1.3", "0.500000")}


def test_real_chats_are_judged_once_whatever_the_repeats(tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text(chat("h01").to_line() + "\n", encoding="utf-8")
    with serve(judge_with(decide)) as served:
        checked(tmp_path, served.url, repeats=2, limit=1, dialogues_file=tmp_path / "h.jsonl")
    said = [Repeated.model_validate_json(line) for line in whole_lines(tmp_path / "out" / "verdicts.jsonl")]
    assert sorted((v.dialogue_id, v.repeat) for v in said) == [("gold-b90-a", 1), ("gold-b90-a", 2), ("h01", 1)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([chat("h01").to_line(), "{}"], r"h\.jsonl: line 2: dialogue_id: is missing; add it; mend that line"),
        ([chat("h01").to_line()] * 2, r"line 2: the dialogue h01 stands twice"),
        ([chat("e1").to_line()], r"dialogue e1 is called like one of the labelled set; rename it"),
    ],
)
def test_bad_dialogues_are_named(tmp_path: Path, lines: list[str], message: str) -> None:
    (tmp_path / "h.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(CheckError, match=message):
        rules(tmp_path, ITEMS[2:3], dialogues_file=tmp_path / "h.jsonl")


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="judge at least once"):
        rules(tmp_path, ITEMS[2:], repeats=0)
    with pytest.raises(CheckError, match="nothing to judge"):
        rules(tmp_path, [])


def test_the_set_beside_the_cards_is_untouched_gold_and_the_labelled_files(tmp_path: Path) -> None:
    library = load_library(copy_cards(tmp_path))
    rubric = load_rubric()
    assert labelled_set(tmp_path, library, rubric) == ([], {})
    scene = library.scenarios[library.bindings["b01"].scenario]
    speaker = scene.opener.speaker
    lines = [f"{scene.start:%H:%M:%S} {speaker} {scene.opener.content}", f"{scene.start + timedelta(minutes=1):%H:%M:%S} {other(speaker)} 在呢"]
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "b01.yaml").write_text(json.dumps({"binding": "b01", "lines": lines}), encoding="utf-8")
    save_labelled([item("x", ("D1.3", 1)), item("y")], tmp_path / "labelled" / "set.jsonl")
    items, gold = labelled_set(tmp_path, library, rubric)
    assert [i.id for i in items] == ["gold-b01-a", "gold-b01-b", "x", "y"]
    assert [m.content for m in gold["b01"].messages] == [scene.opener.content, "在呢"]
    assert len(items[0].holds) == 10 + len(rubric.boxes())
    save_labelled([item("y")], tmp_path / "labelled" / "more.jsonl")
    with pytest.raises(LabelledError, match=r"set.jsonl: the id y stands in .*more.jsonl too; take one of the two out"):
        labelled_set(tmp_path, library, rubric)


def test_a_limit_takes_of_every_id_by_turns() -> None:
    many = [item(f"{i}-{n}", (i, 1)) for i, count in (("D1.3", 3), ("D1.4", 1), ("D1.5", 2)) for n in range(count)] + [item("h0"), item("h1")]
    assert [i.id for i in spread(many, 5)] == ["D1.3-0", "D1.3-1", "D1.4-0", "D1.5-0", "h0"]
    assert [i.id for i in spread(many, None)] == [i.id for i in many]
    assert spread(many, 0) == []
