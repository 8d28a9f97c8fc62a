"""The acceptance filter: exactly its definition, and nothing unassessed ever counts as passed."""

from datetime import datetime
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.judging.l0 import L0Result
from anthrolab.judging.l0.result import SEVERITY, Violation
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.judging.verdict import BoxVerdict, L0Answer, TurnVerdict, Verdict
from anthrolab.loop.filter import PAPER, Filtered, FilterResult, Lineage, Thresholds, filter_dialogue
from anthrolab.loop.filtering import FilteredError, counted, filter_run, read_filtered, write_filtered
from anthrolab.runtime.dialogue import Dialogue, Message, Participant
from anthrolab.show.acceptance import acceptance_table
from anthrolab.show.measured import load_measured
from tests.runs_for_tests import make_run

RUBRIC = load_rubric()
CLEAN = L0Result(True, None, (), (), ("L0-01", "L0-02", "L0-03", "L0-04", "L0-05", "L0-06", "L0-08"))
LOCAL, WHOLE = [b.id for b in RUBRIC.boxes("turn")], [b.id for b in RUBRIC.boxes("dialogue")]


def box(i: str, passed: bool | None) -> BoxVerdict:
    return BoxVerdict(id=i, passed=passed, unassessed="no_rule" if passed is None else None)


def verdict(turns: list[dict[str, bool | None]], whole: dict[str, bool | None], l0: list[L0Answer] | None = None) -> Verdict:
    return Verdict(
        dialogue_id="d", judge="strict", judge_identity="1" * 16, rubric=RUBRIC.hash, l0=l0 or [],
        turns=[
            TurnVerdict(turn_index=n, message_index=2 * n, boxes=[box(i, t.get(i, True)) for i in LOCAL])
            for n, t in enumerate(turns, 1)
        ],
        dialogue=[box(i, whole.get(i, True)) for i in WHOLE],
    )  # fmt: skip


def chat(turns: int) -> Dialogue:
    """The evaluated turns are messages 2, 4, 6, ..."""
    at = datetime(2026, 3, 6, 20, 31)
    said = [Message(speaker="a" if i and i % 2 == 0 else "b", content=f"第{i}句", at=at, opener=i == 0) for i in range(2 * turns + 1)]
    return Dialogue(dialogue_id="d", evaluated_role="a", speakers={"a": Participant(name="甲"), "b": Participant(name="乙")}, messages=said)


def filtered(gate: L0Result, v: Verdict | None, thresholds: Thresholds = PAPER) -> FilterResult:
    return filter_dialogue(chat(len(v.turns) if v else 1), gate, v, RUBRIC, thresholds)


def literal(gate: L0Result, v: Verdict, rubric: Rubric, t: Thresholds) -> str:
    """The paper's definition, word by word: g, then the two means with plain loops."""
    if not gate.valid or any(a.violated and SEVERITY[a.id] == "fatal" for a in v.l0):  # type: ignore[index]
        return "invalid"
    cards = [turn.boxes for turn in v.turns] + [v.dialogue]
    if not v.turns or any(b.passed is None for card in cards for b in card):
        return "undecided"

    def score(boxes: list[BoxVerdict], scope: str) -> Fraction:
        total = weights = Fraction(0)
        for d in rubric.dimensions:
            if d.scope == scope:
                own = [b for b in boxes if b.id.split(".")[0] == d.id]
                total += Fraction(d.weight) * sum(b.passed is True for b in own) / len(own)
                weights += Fraction(d.weight)
        return total / weights

    local = sum((score(turn.boxes, "turn") for turn in v.turns), Fraction(0)) / len(v.turns)
    # thresholds are decimal numbers: 0.9 means nine tenths
    good = score(v.dialogue, "dialogue") >= Fraction(str(t.dialogue)) and local > Fraction(str(t.turn))
    return "accepted" if good else "rejected"


ANSWERS = st.sampled_from([True] * 30 + [False, False, None])
CARDS = st.lists(st.dictionaries(st.sampled_from(LOCAL), ANSWERS, max_size=6), max_size=5)
FATAL = Violation("L0-02", 2, "[图片]")


@settings(max_examples=300, deadline=None)
@given(
    turns=CARDS, whole=st.dictionaries(st.sampled_from(WHOLE), ANSWERS, max_size=3), fatal=st.booleans(),
    by_judge=st.sampled_from([None, "L0-07", "L0-09"]), dialogue=st.sampled_from([1.0, 0.9, 0.5]), turn=st.sampled_from([0.9, 0.95, 0.0]),
)  # fmt: skip
def test_accepted_is_exactly_the_definition(
    turns: list[dict[str, bool | None]], whole: dict[str, bool | None], fatal: bool, by_judge: str | None, dialogue: float, turn: float
) -> None:
    gate = L0Result(False, "fatal", (FATAL,), (), CLEAN.executed) if fatal else CLEAN
    l0 = [L0Answer(id=by_judge, violated=True, message_index=2, reason="x")] if by_judge else []
    v, limits = verdict(turns, whole, l0), Thresholds(dialogue=dialogue, turn=turn)
    result = filtered(gate, v, limits)
    assert result.status == literal(gate, v, RUBRIC, limits)
    assert (result.final_score is None) == (result.status == "undecided")
    assert result.final_score == 0 if result.status == "invalid" else True
    assert len(result.failed) == sum(b.passed is False for b in v.boxes())


def test_s_turn_of_exactly_nine_tenths_is_not_above_it() -> None:
    # the five weights add up to 52: five turns that each lose another whole dimension lose 52/52 together, one turn of ten
    dims = {d: [b for b in LOCAL if b.startswith(d)] for d in ("D1", "D2", "D3", "D4", "D5")}
    turns: list[dict[str, bool | None]] = [dict.fromkeys(dims[d], False) for d in dims]
    exactly = verdict(turns + [{}] * 5, {})
    result = filtered(CLEAN, exactly)
    assert result.turn_score == 0.9 and result.status == "rejected" and result.why == "S_turn 0.9000 is not above 0.9"
    assert filtered(CLEAN, verdict(turns + [{}] * 6, {})).status == "accepted"


def test_one_unanswered_box_makes_a_perfect_dialogue_undecided_and_says_why() -> None:
    result = filtered(CLEAN, verdict([{}, {"D3.1": None}], {}))
    assert result.status == "undecided" and result.grade is None and result.final_score is None
    assert result.why == "64 of 65 checkboxes have an answer (no_rule 1)"
    assert filtered(CLEAN, None).why == "not judged"


def test_one_failed_box_of_the_whole_dialogue_rejects_it() -> None:
    result = filtered(CLEAN, verdict([{}], {"E4.2": False}))
    assert result.status == "rejected" and [f.id for f in result.failed] == ["E4.2"]
    assert result.dimensions["E4"] == 0.8 and result.dimensions["D1"] == 1.0
    assert result.unexecuted == ["L0-07", "L0-09", "L0-10"]


def test_who_says_nothing_is_invalid_and_major_violations_are_kept_for_diagnosis_only() -> None:
    assert filtered(L0Result(False, "no_turns", (), (), ()), None).why == "the evaluated role said nothing"
    major = L0Result(True, None, (Violation("L0-08", 4, "洗好了"),), (), CLEAN.executed)
    result = filtered(major, verdict([{}], {}))
    assert result.status == "accepted" and [(b.id, b.severity, b.by) for b in result.violations] == [("L0-08", "major", "rules")]


@pytest.mark.parametrize("fatal", ["L0-06", "L0-09"])
def test_a_fatal_constraint_that_the_judge_was_asked_about_and_did_not_answer_leaves_it_undecided(fatal: str) -> None:
    v = verdict([{}], {}, [L0Answer(id=fatal, unassessed="bad_message"), L0Answer(id="L0-10", unassessed="parse_error")])
    result = filtered(CLEAN, v)
    assert result.status == "undecided" and result.why == f"the judge gave no usable answer about {fatal}"
    major = verdict([{}], {}, [L0Answer(id="L0-10", unassessed="parse_error")])
    assert filtered(CLEAN, major).status == "accepted"


def test_a_verdict_without_a_card_or_a_box_accepts_nothing() -> None:
    v = verdict([{}, {}], {})
    assert filter_dialogue(chat(3), CLEAN, v, RUBRIC).why == "2 cards for 3 evaluated turns"
    bare = v.model_copy(update={"turns": [t.model_copy(update={"boxes": t.boxes[:1]}) for t in v.turns], "dialogue": v.dialogue[:1]})
    result = filter_dialogue(chat(2), CLEAN, bare, RUBRIC)
    assert result.status == "undecided" and "has not the rubric's checkboxes" in result.why
    assert filter_dialogue(chat(2), CLEAN, v.model_copy(update={"rubric": "0" * 16}), RUBRIC).status == "undecided"


def test_fields_that_somebody_added_stay_where_they_are() -> None:
    dialogue = Dialogue.model_validate({**chat(1).model_dump(mode="json"), "my_extra": 1})
    one = Filtered.of(dialogue, filtered(CLEAN, verdict([{}], {})))
    assert Filtered.model_validate_json(one.to_line()) == one and one.bare().to_line() == dialogue.to_line() and '"my_extra":1' in one.to_line()


@pytest.mark.parametrize("bad", [{"turn": 1.0}, {"turn": -0.1}, {"dialogue": 1.1}, {"dialogue": float("nan")}, {"dialog": 1.0}])
def test_thresholds_that_make_no_sense_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Thresholds(**bad)


def test_a_run_is_filtered_by_the_judge_that_judged_it(tmp_path: Path) -> None:
    library = load_library(default_cards_dir())
    run = Run(make_run(tmp_path / "r", answers_all=True))
    found = filter_run(run, "rules", library, RUBRIC)
    # made by hand: 12 cases, the last one failed; a box of the whole dialogue fails in every valid one; the gate here is the real one
    assert len(found) == 11 and counted(found)["accepted"] == 0
    assert {f.filter_result.status for f in found} <= {"rejected", "invalid", "undecided"} and counted(found)["rejected"] > 0
    path = tmp_path / "filtered.jsonl"
    write_filtered(path, found)
    assert read_filtered(path) == found
    assert [f.bare().to_line() for f in read_filtered(path)] == [d.to_line() for d in run.dialogues().values()]
    path.write_text(path.read_text(encoding="utf-8") + '{"dialogue_id": 3}\n', encoding="utf-8")
    with pytest.raises(FilteredError, match="line 12"):
        read_filtered(path)
    with pytest.raises(RunError, match="is not judged by toy"):
        filter_run(run, "toy", library, RUBRIC)


def test_a_verdict_on_another_text_counts_for_nothing(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path / "r", answers_all=True))
    lines = (run.path / "dialogues.jsonl").read_text(encoding="utf-8").split("\n")
    (run.path / "dialogues.jsonl").write_text("\n".join([lines[0].replace("在呢在呢", "在的在的"), *lines[1:]]), encoding="utf-8")
    first = filter_run(run, "rules", load_library(default_cards_dir()), RUBRIC)[0]
    assert first.filter_result.why == "not judged"


def test_lineage_is_written_only_where_there_is_one(tmp_path: Path) -> None:
    run = Run(make_run(tmp_path / "r", answers_all=True))
    one = filter_run(run, "rules", load_library(default_cards_dir()), RUBRIC)[0]
    assert '"lineage"' not in one.to_line()
    lineage = Lineage(parent="d", parent_hash="0" * 16, changed=[3], records=["d/D1.3/3"], writer="w", attempt=1)
    assert Filtered.model_validate_json(Filtered.of(one.bare(), one.filter_result, lineage).to_line()).lineage == lineage


def test_the_report_says_how_many_are_accepted_and_why_the_others_are_not(tmp_path: Path) -> None:
    measured = [load_measured(make_run(tmp_path / name, answers_all=all_), "rules") for name, all_ in (("full", True), ("part", False))]
    rows = acceptance_table(measured).frame.to_dicts()
    assert (rows[0]["Rejected"], rows[0]["Invalid"], rows[0]["Not done"], rows[0]["Undecided"]) == ("10", "1", "1", "0")
    assert rows[0]["Why not"] == "rejected: S_dialogue is below 1 (10); invalid: breaks L0-05 (1)"
    assert rows[0]["Why not"].count("0.9") == 0, "no score of one case stands there"
    assert rows[1]["Undecided"] == "10" and "undecided: not every checkbox has an answer (10)" in rows[1]["Why not"]
