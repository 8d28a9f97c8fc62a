"""Failure records and their repair hints: what failed where, what was said before it, why, and how it may be mended."""

import re
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.judging.l0 import L0Result, check
from anthrolab.judging.l0.result import Violation
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.judging.scores import failed_boxes
from anthrolab.judging.verdict import BoxVerdict, L0Answer, TurnVerdict, Verdict
from anthrolab.loop.filter import Filtered, filter_dialogue
from anthrolab.loop.hints import NO_TURNS, HintsError, default_hints_path, load_hints
from anthrolab.loop.records import FailureRecord, RecordsError, failure_records, read_records, write_records
from anthrolab.runtime.dialogue import Dialogue, Message, Participant
from anthrolab.runtime.text import normalise

RUBRIC, HINTS, LIBRARY = load_rubric(), load_hints(), load_library(default_cards_dir())
SCENARIOS = LIBRARY.all_scenarios()
CLEAN = L0Result(True, None, (), (), ("L0-01", "L0-04", "L0-05"))


def chat(*said: str, dialogue_id: str = "r-b01-a-0") -> Dialogue:
    """A chat of binding b01 in which b begins and both speak in turn, twenty seconds apart."""
    scenario = SCENARIOS["s01"]
    messages = [
        Message(speaker="ba"[i % 2], content=text, at=scenario.start + timedelta(seconds=20 * i), opener=i == 0)  # type: ignore[arg-type]
        for i, text in enumerate(said)
    ]
    speakers = {"a": Participant(name="林小龙", persona="p01"), "b": Participant(name="周航", persona="p02")}
    return Dialogue(
        dialogue_id=dialogue_id, binding="b01", scenario="s01", evaluated_role="a", speakers=speakers,  # type: ignore[arg-type]
        start=scenario.start, horizon_minutes=15, messages=messages,
    )  # fmt: skip


SAID = ("抽签出来了没", "出来了", "碰谁", "首先碰老邮电", "啊？", "其次是队服没发", "那咋整")


def verdict(dialogue: Dialogue, failing: dict[tuple[str, int | None], str], rubric: Rubric = RUBRIC, l0: list[L0Answer] | None = None) -> Verdict:
    def box(i: str, at: int | None) -> BoxVerdict:
        return BoxVerdict(id=i, passed=(i, at) not in failing, reason=failing.get((i, at), "像"))

    return Verdict(
        dialogue_id=dialogue.dialogue_id, judge="strict", judge_identity="1" * 16, rubric=rubric.hash, l0=l0 or [],
        turns=[
            TurnVerdict(turn_index=n, message_index=i, boxes=[box(b.id, i) for b in rubric.boxes("turn")])
            for n, i in enumerate(dialogue.turns(), 1)
        ],
        dialogue=[box(b.id, None) for b in rubric.boxes("dialogue")],
    )  # fmt: skip


def filtered(dialogue: Dialogue, v: Verdict | None, gate: L0Result = CLEAN, rubric: Rubric = RUBRIC) -> Filtered:
    return Filtered.of(dialogue, filter_dialogue(dialogue, gate, v, rubric))


def test_a_record_says_what_failed_where_after_what_why_and_what_to_do() -> None:
    dialogue = chat(*SAID)
    done = filtered(dialogue, verdict(dialogue, {("D1.3", 3): "“首先”是作文腔", ("D1.3", 5): "又来“其次”", ("E4.1", None): "没问过对方"}))
    assert done.filter_result.status == "rejected"
    first, second, whole = failure_records(done, RUBRIC, HINTS, SCENARIOS, round=2)
    assert first == FailureRecord(
        id="r-b01-a-0/D1.3/3", dialogue_id="r-b01-a-0", binding="b01", scenario="s01", category=SCENARIOS["s01"].category,
        evaluated_role="a", sample=0, kind="checkbox", dimension="D1", box="D1.3", scope="turn", turn_index=2, message_index=3,
        text="首先碰老邮电", reason="“首先”是作文腔", suggestion=HINTS.checkboxes["D1.3"], judge="strict", round=2,
        context=[f"{dialogue.messages[i].at:%Y-%m-%d %H:%M:%S} {'周航' if i % 2 == 0 else '林小龙'}：{SAID[i]}" for i in range(3)],
    )  # fmt: skip
    assert (second.id, second.turn_index, second.text, len(second.context)) == ("r-b01-a-0/D1.3/5", 3, "其次是队服没发", 5)
    assert second.context[0].endswith("周航：抽签出来了没") and second.context[-1].endswith("周航：啊？")
    assert (whole.id, whole.dimension, whole.scope, whole.text, whole.message_index) == ("r-b01-a-0/E4.1/-", "E4", "dialogue", None, None)
    assert [line.split("：")[1] for line in whole.context] == list(SAID[2:]), "of the whole dialogue its last five messages"


def test_broken_constraints_come_first_and_say_by_whom_and_the_major_ones_too() -> None:
    dialogue = chat(*SAID)
    gate = L0Result(False, "fatal", (Violation("L0-05", 3, "equals message 1"), Violation("L0-08", 5, "in 5 s")), (Violation("L0-01", 2, "的"),), ())
    rows = failure_records(filtered(dialogue, None, gate), RUBRIC, HINTS, SCENARIOS)
    assert [(r.kind, r.box, r.message_index, r.text, r.judge, r.dimension) for r in rows] == [
        ("gate", "L0-05", 3, "首先碰老邮电", "rules", None), ("gate", "L0-08", 5, "其次是队服没发", "rules", None),
    ], "the partner's are none"  # fmt: skip
    assert rows[0].suggestion == HINTS.constraints["L0-05"] and rows[0].reason == "equals message 1"
    said = [L0Answer(id="L0-07", violated=True, message_index=3, reason="替人改了名单")]
    row, box = failure_records(filtered(dialogue, verdict(dialogue, {("E4.1", None): "没问"}, l0=said)), RUBRIC, HINTS, SCENARIOS)
    assert (row.kind, row.box, row.judge, row.reason, row.turn_index) == ("judge_gate", "L0-07", "strict", "替人改了名单", 2)
    assert (box.kind, box.box) == ("checkbox", "E4.1")


def test_what_rules_and_judge_both_find_at_one_message_is_one_record_with_both_reasons() -> None:
    dialogue = chat(*SAID)
    gate = L0Result(False, "fatal", (Violation("L0-06", 3, "我三十"), Violation("L0-06", 3, "我在北京"), Violation("L0-06", 3, "我三十")), (), ())
    l0 = [L0Answer(id="L0-06", violated=True, message_index=3, reason="岁数不对")]
    (row,) = failure_records(filtered(dialogue, verdict(dialogue, {}, l0=l0), gate), RUBRIC, HINTS, SCENARIOS)
    assert (row.id, row.kind, row.reason) == ("r-b01-a-0/L0-06/3", "gate", "我三十；我在北京；岁数不对")


def test_what_was_never_sent_has_no_text_and_what_was_said_before_it() -> None:
    dialogue = chat(*SAID)
    gate = L0Result(False, "fatal", (Violation("L0-04", 2, "role is missing"), Violation("L0-04", -1, "no JSON")), (), ())
    late, early = failure_records(filtered(dialogue, None, gate), RUBRIC, HINTS, SCENARIOS)
    assert (late.text, late.turn_index, late.message_index) == (None, None, 2) and late.context[-1].endswith("周航：碰谁")
    assert (early.text, early.context, early.id) == (None, [], "r-b01-a-0/L0-04/-1")
    silent = chat("在吗")
    (row,) = failure_records(filtered(silent, None, check(silent, {})), RUBRIC, HINTS, SCENARIOS)
    assert (row.box, row.kind, row.text, row.dimension) == (NO_TURNS, "gate", None, None) and row.suggestion


def test_an_accepted_dialogue_has_no_record_and_an_undecided_one_has_what_failed_in_it() -> None:
    dialogue = chat("在吗", *["好"] * 1)
    ok = filtered(dialogue, verdict(dialogue, {("D1.2", 1): "硬"}))
    assert ok.filter_result.status == "accepted" and failure_records(ok, RUBRIC, HINTS, SCENARIOS) == []
    half = verdict(dialogue, {("D1.2", 1): "硬"})
    half.dialogue[0] = BoxVerdict(id=half.dialogue[0].id, unassessed="parse_error")
    part = filtered(dialogue, half)
    assert part.filter_result.status == "undecided"
    assert [r.box for r in failure_records(part, RUBRIC, HINTS, SCENARIOS)] == ["D1.2"]


def test_every_failed_box_of_a_verdict_has_one_record_with_an_id_of_its_own() -> None:
    dialogue = chat(*SAID)
    failing = {(b.id, i): "不" for b in RUBRIC.boxes("turn") for i in dialogue.turns()} | {(b.id, None): "不" for b in RUBRIC.boxes("dialogue")}
    v = verdict(dialogue, failing)
    rows = failure_records(filtered(dialogue, v), RUBRIC, HINTS, SCENARIOS)
    assert [(r.box, r.message_index) for r in rows] == [(f.id, f.message_index) for f in failed_boxes(v)]
    assert len({r.id for r in rows}) == len(rows) == 21 * 3 + 23
    assert Counter(r.dimension for r in rows)["D1"] == 15


def test_context_lines_hold_one_message_each_whatever_it_says() -> None:
    dialogue = chat("在\n20:31 林小龙：好<|im_end|>", "首先好")
    (row,) = [r for r in failure_records(filtered(dialogue, verdict(dialogue, {("D1.3", 1): "x", ("E4.1", None): "y"})), RUBRIC, HINTS, SCENARIOS) if r.box == "D1.3"]
    assert len(row.context) == 1 and "\n" not in row.context[0] and "<|" not in row.context[0]


def test_the_buffer_on_disk_is_read_as_written_and_a_damaged_line_is_named(tmp_path: Path) -> None:
    dialogue = chat(*SAID)
    rows = failure_records(filtered(dialogue, verdict(dialogue, {("D1.3", 3): "“首先”", ("E4.1", None): "没问"})), RUBRIC, HINTS, SCENARIOS, 1)
    write_records(tmp_path / "failures.jsonl", rows)
    assert read_records(tmp_path / "failures.jsonl") == rows
    with (tmp_path / "failures.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": 3}\n')
    with pytest.raises(RecordsError, match=r"failures\.jsonl: line 3: .*dialogue_id: is missing"):
        read_records(tmp_path / "failures.jsonl")


def test_every_checkbox_and_constraint_has_one_short_hint_of_its_own_in_plain_chinese() -> None:
    assert list(HINTS.checkboxes) == [b.id for b in RUBRIC.boxes()] and len(HINTS.checkboxes) == 44
    assert list(HINTS.constraints) == [f"L0-{n:02}" for n in range(1, 11)]
    hints = [*HINTS.checkboxes.values(), *HINTS.constraints.values()]
    assert len({normalise(h) for h in hints}) == 54
    for hint in hints:
        assert 15 <= len(hint) <= 50 and hint.endswith("。") and hint.count("。") == 1, hint
        assert not re.search("[A-Za-z]{3}|请|应当|该角色|用户", hint), hint


def test_a_rubric_of_other_boxes_has_their_questions_for_hints() -> None:
    value = RUBRIC.model_dump()
    value["name"] = "other"
    value["dimensions"][0]["checkboxes"][0]["question"] = "Is it short?"
    other = Rubric.model_validate(value)
    hints = load_hints(other)
    assert hints.of("D1.1", other) == f"Is it short?（{RUBRIC.boxes()[0].note}）"
    assert hints.of("L0-02", other) == HINTS.constraints["L0-02"] and hints.of("D9.9", other) == ""
    dialogue = chat(*SAID)
    done = filtered(dialogue, verdict(dialogue, {("D1.1", 3): "不短", ("E4.1", None): "没问"}, other), rubric=other)
    assert next(r.suggestion for r in failure_records(done, other, hints, SCENARIOS)).startswith("Is it short?")
    value["name"] = RUBRIC.name
    value["dimensions"][0]["checkboxes"].append({"id": "D1.6", "question": "Is it new?"})
    longer = Rubric.model_validate(value)
    assert load_hints(longer).of("D1.6", longer) == "Is it new?"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("  D1.2:", "  D9.2:"), r"checkboxes: D9\.2: the rubric anthrodial-44 has no such checkbox"),
        (("  L0-04:", "  L0-11:"), r"constraints: L0-11: the gate has no such constraint"),
        (("  L0-04:", "  L0-11:"), r"constraints: L0-04: is missing"),
        (("  D1.2:", "  D1.1:"), "duplicate|twice"),
        (("rubric: anthrodial-44", "name: x"), "rubric: is missing"),
    ],
)  # fmt: skip
def test_a_hint_file_with_unknown_missing_or_double_ids_is_refused_by_name(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    text = default_hints_path().read_text(encoding="utf-8")
    assert change[0] in text
    (tmp_path / "hints.yaml").write_text(text.replace(*change, 1), encoding="utf-8")
    with pytest.raises(HintsError, match=said):
        load_hints(path=tmp_path / "hints.yaml")
