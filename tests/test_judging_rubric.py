"""The rubric file, the verdict record, and scores worked out by hand."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from anthrolab.judging.rubric import Rubric, RubricError, box_number, load_rubric
from anthrolab.judging.scores import (
    BoxRow,
    Coverage,
    FailedBox,
    VerdictError,
    box_rows,
    card_score,
    case_pass,
    case_score,
    coverage,
    dialogue_score,
    dimension_score,
    failed_boxes,
    strict_pass,
    turn_score,
)
from anthrolab.judging.verdict import BoxVerdict, L0Answer, TurnVerdict, Verdict

DEFAULT = load_rubric()


def dimension(i: str, scope: str, weight: float, boxes: int) -> dict[str, object]:
    return {
        "id": i, "name": i, "scope": scope, "weight": weight,
        "checkboxes": [{"id": f"{i}.{n}", "question": f"{i} {n}?"} for n in range(1, boxes + 1)],
    }  # fmt: skip


SMALL = Rubric.model_validate(
    {
        "name": "small",
        "dimensions": [
            dimension("D1", "turn", 3, 2), dimension("D2", "turn", 1, 1),
            dimension("E1", "dialogue", 2, 2), dimension("E2", "dialogue", 1, 2),
        ],
    }
)  # fmt: skip


def card(**answers: bool | None) -> list[BoxVerdict]:
    """`D1_2=True` is checkbox D1.2 passed; None is unassessed."""
    return [
        BoxVerdict(id=i.replace("_", "."), passed=a, unassessed="undecided" if a is None else None)
        for i, a in answers.items()
    ]


def small_verdict(turns: list[list[BoxVerdict]], whole: list[BoxVerdict]) -> Verdict:
    return Verdict(
        dialogue_id="d", judge="j", judge_identity="i", rubric=SMALL.hash, dialogue=whole,
        turns=[TurnVerdict(turn_index=n, message_index=2 * n, boxes=boxes) for n, boxes in enumerate(turns, 1)],
    )  # fmt: skip


def test_the_default_rubric_has_the_papers_counts_and_weights() -> None:
    shape = [(d.id, d.scope, d.weight, len(d.checkboxes)) for d in DEFAULT.dimensions]
    assert shape == [
        ("D1", "turn", 13, 5), ("D2", "turn", 9, 4), ("D3", "turn", 14, 5), ("D4", "turn", 8, 4), ("D5", "turn", 8, 3),
        ("E1", "dialogue", 14, 5), ("E2", "dialogue", 10, 4), ("E3", "dialogue", 11, 5), ("E4", "dialogue", 9, 5),
        ("E5", "dialogue", 4, 4),
    ]  # fmt: skip
    assert len(DEFAULT.boxes()) == 44
    assert len(DEFAULT.boxes("turn")) == 21


def test_every_checkbox_asks_one_question_of_its_own() -> None:
    questions = [box.question for box in DEFAULT.boxes()]
    assert all(q.endswith("?") and q.count("?") == 1 for q in questions)
    assert len(set(questions)) == 44


def test_lookups() -> None:
    assert DEFAULT.dimension_of["E4.5"].name == "Proactivity"
    assert box_number("E4.5") == 5
    assert [d.id for d in SMALL.of_scope("dialogue")] == ["E1", "E2"]


def test_the_hash_follows_the_wording_and_not_the_rules() -> None:
    value = DEFAULT.model_dump()
    value["dimensions"][0]["checkboxes"][2]["rule"] = None
    assert Rubric.model_validate(value).hash == DEFAULT.hash
    for field, changed in (("weight", 12.0), ("name", "Other")):
        other = {**value, "dimensions": [{**value["dimensions"][0], field: changed}, *value["dimensions"][1:]]}
        assert Rubric.model_validate(other).hash != DEFAULT.hash
    value["dimensions"][0]["checkboxes"][2]["question"] = "Other?"
    assert Rubric.model_validate(value).hash != DEFAULT.hash


GOOD = """name: r
dimensions:
  - {id: D1, name: n, scope: turn, weight: 1, checkboxes: [{id: D1.1, question: "q?"}]}
  - {id: E1, name: n, scope: dialogue, weight: 2.5, checkboxes: [{id: E1.1, question: "q?"}]}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("weight: 1", "wieght: 1", "dimensions.0.weight: is missing"),
        ("weight: 1", "wieght: 1", "dimensions.0.wieght: is no field"),
        ("weight: 1", "weight: 0", "dimensions.0.weight: "),
        ("weight: 1", "weight: .inf", "dimensions.0.weight: "),
        ("scope: turn", "scope: message", "dimensions.0.scope: "),
        ("D1.1", "D1.2", "write 'D1.1'"),
        ("id: E1,", "id: D1,", "write 'D1.1'"),
        ("scope: turn", "scope: dialogue", "no dimension has the scope 'turn'"),
        ('question: "q?"}]}\n  - {id: E1', 'question: ""}]}\n  - {id: E1', "dimensions.0.checkboxes.0.question: "),
        ("name: r", "- x", "not valid YAML"),
    ],
)
def test_a_bad_rubric_file_is_refused_with_file_and_field(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    path = tmp_path / "rubric.yaml"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(RubricError) as e:
        load_rubric(path)
    assert said in str(e.value)
    assert all(line.startswith(str(path)) for line in str(e.value).splitlines())


def test_a_rubric_of_other_counts_loads(tmp_path: Path) -> None:
    path = tmp_path / "rubric.yaml"
    path.write_text(GOOD, encoding="utf-8")
    assert [box.id for box in load_rubric(path).boxes()] == ["D1.1", "E1.1"]


def test_a_dimension_given_twice_is_refused() -> None:
    twice = [dimension("D1", "turn", 1, 1), dimension("D1", "turn", 1, 1), dimension("E1", "dialogue", 1, 1)]
    with pytest.raises(ValidationError, match="stands twice"):
        Rubric.model_validate({"name": "x", "dimensions": twice})


def test_scores_worked_out_by_hand() -> None:
    verdict = small_verdict(
        [card(D1_1=True, D1_2=False, D2_1=True), card(D1_1=None, D1_2=None, D2_1=False)],
        card(E1_1=True, E1_2=None, E2_1=True, E2_2=False),
    )
    # turn 1: (3 * 1/2 + 1 * 1) / 4 = 5/8; turn 2: D1 unassessed, D2 0 -> 0; dialogue: (2 * 1 + 1 * 1/2) / 3 = 5/6
    assert turn_score(verdict, SMALL) == 5 / 16
    assert dialogue_score(verdict, SMALL) == 5 / 6
    assert case_score(verdict, SMALL) == pytest.approx(50 * (5 / 16 + 5 / 6), abs=1e-12)
    assert case_pass(verdict) is False
    assert coverage(verdict.boxes()) == Coverage(7, 10)
    assert verdict.unassessed() == {"undecided": 3}
    assert [(f.id, f.turn_index, f.message_index) for f in failed_boxes(verdict)] == [
        ("D1.2", 1, 2), ("D2.1", 2, 4), ("E2.2", None, None),
    ]  # fmt: skip


def test_a_turn_without_an_answer_leaves_the_mean() -> None:
    nothing = card(D1_1=None, D1_2=None, D2_1=None)
    verdict = small_verdict([nothing, card(D1_1=True, D1_2=True, D2_1=True)], card(E1_1=True, E1_2=True))
    assert turn_score(verdict, SMALL) == 1.0
    assert case_pass(verdict) is True


def test_where_nothing_is_assessed_there_is_no_score() -> None:
    verdict = small_verdict([card(D1_1=None, D1_2=None, D2_1=None)], card(E1_1=None, E1_2=None, E2_1=None, E2_2=None))
    scores = (turn_score(verdict, SMALL), dialogue_score(verdict, SMALL), case_score(verdict, SMALL), case_pass(verdict))
    assert scores == (None, None, None, None)


def test_half_a_score_is_no_score() -> None:
    verdict = small_verdict([card(D1_1=True, D1_2=True, D2_1=True)], card(E1_1=None, E1_2=None))
    assert (turn_score(verdict, SMALL), case_score(verdict, SMALL), case_pass(verdict)) == (1.0, None, True)


def test_an_all_pass_case_scores_exactly_100() -> None:
    boxes = [BoxVerdict(id=b.id, passed=True) for b in DEFAULT.boxes("turn")]
    verdict = Verdict(
        dialogue_id="d", judge="j", judge_identity="i", rubric=DEFAULT.hash,
        turns=[TurnVerdict(turn_index=n, message_index=n, boxes=boxes) for n in range(1, 8)],
        dialogue=[BoxVerdict(id=b.id, passed=True) for b in DEFAULT.boxes("dialogue")],
    )  # fmt: skip
    assert case_score(verdict, DEFAULT) == 100.0
    assert failed_boxes(verdict) == []


answers = st.lists(st.sampled_from([True, False, None]), min_size=3, max_size=3)


@given(st.lists(answers, min_size=1, max_size=6), st.integers(0, 6))
def test_turns_with_nulls_only_never_change_a_score(turns: list[list[bool | None]], where: int) -> None:
    cards = [card(D1_1=a, D1_2=b, D2_1=c) for a, b, c in turns]
    whole = card(E1_1=True, E1_2=False)
    plain = small_verdict(cards, whole)
    cards.insert(min(where, len(cards)), card(D1_1=None, D1_2=None, D2_1=None))
    padded = small_verdict(cards, whole)
    assert case_score(padded, SMALL) == case_score(plain, SMALL)
    assert case_pass(padded) == case_pass(plain)
    assert coverage(padded.boxes()).assessed == coverage(plain.boxes()).assessed


@given(st.lists(st.sampled_from([True, False, None]), min_size=21, max_size=21), st.data())
def test_a_null_touches_no_other_dimension(given_answers: list[bool | None], data: st.DataObject) -> None:
    boxes = DEFAULT.boxes("turn")
    before = [
        BoxVerdict(id=b.id, passed=a, unassessed="undecided" if a is None else None)
        for b, a in zip(boxes, given_answers, strict=True)
    ]
    gone = data.draw(st.integers(0, 20))
    after = [*before]
    after[gone] = BoxVerdict(id=boxes[gone].id, unassessed="parse_error")
    own = DEFAULT.dimension_of[boxes[gone].id]
    for d in DEFAULT.of_scope("turn"):
        q = dimension_score(before, d)
        assessed = [a for b, a in zip(boxes, given_answers, strict=True) if b in d.checkboxes and a is not None]
        assert (q is None) == (not assessed)
        assert q is None or q == sum(assessed) / len(assessed) or abs(q - sum(assessed) / len(assessed)) < 1e-12
        if d != own:
            assert dimension_score(after, d) == q


@given(st.lists(st.sampled_from([True, False, None]), min_size=3, max_size=3))
def test_the_fast_card_score_is_the_literal_formula(given_answers: list[bool | None]) -> None:
    a, b, c = given_answers
    score = card_score(card(D1_1=a, D1_2=b, D2_1=c), SMALL.of_scope("turn"))
    d1 = [x for x in (a, b) if x is not None]
    top = bottom = 0.0
    if d1:
        top, bottom = 3 * d1.count(True) / len(d1), 3.0
    if c is not None:
        top, bottom = top + c, bottom + 1
    assert (score is None) == (bottom == 0)
    assert score is None or abs(float(score) - top / bottom) < 1e-12
    assert strict_pass(card(D1_1=a, D1_2=b, D2_1=c)) is (None if bottom == 0 else False not in (a, b, c))


def test_ledger_rows() -> None:
    verdict = small_verdict([card(D1_1=True, D1_2=None, D2_1=False)], card(E1_1=True, E1_2=True, E2_1=None, E2_2=False))
    rows = box_rows(verdict, SMALL)
    assert rows[:3] == [
        BoxRow("turn", 1, "D1", 1, True), BoxRow("turn", 1, "D1", 2, None), BoxRow("turn", 1, "D2", 1, False),
    ]  # fmt: skip
    assert rows[-1] == BoxRow("dialogue", None, "E2", 2, False)
    assert len(rows) == 7


def test_ledger_rows_need_the_rubric_and_all_its_checkboxes() -> None:
    verdict = small_verdict([card(D1_1=True, D1_2=None)], card(E1_1=True, E1_2=True, E2_1=None, E2_2=False))
    with pytest.raises(VerdictError, match="turn 1"):
        box_rows(verdict, SMALL)
    with pytest.raises(VerdictError, match="rubric"):
        box_rows(verdict, DEFAULT)


def test_a_failed_checkbox_keeps_its_reason_and_place() -> None:
    boxes = [BoxVerdict(id="D1.1", passed=False, reason="首先"), BoxVerdict(id="D1.2", passed=True)]
    assert failed_boxes(small_verdict([boxes], [])) == [FailedBox("D1.1", "turn", 1, 2, "首先")]


def test_records_refuse_what_is_not_tri_state() -> None:
    bad_boxes: list[dict[str, object]] = [
        {}, {"passed": True, "unassessed": "undecided"}, {"passed": 1}, {"passed": "true"},
    ]  # fmt: skip
    for values in bad_boxes:
        with pytest.raises(ValidationError):
            BoxVerdict.model_validate({"id": "D1.1", **values})
    bad_l0: list[dict[str, object]] = [
        {"violated": True}, {"violated": False, "message_index": 3}, {"violated": True, "message_index": -1},
    ]  # fmt: skip
    for values in bad_l0:
        with pytest.raises(ValidationError):
            L0Answer.model_validate({"id": "L0-07", **values})


def test_a_verdict_survives_its_line() -> None:
    verdict = small_verdict([card(D1_1=True, D1_2=None, D2_1=False)], card(E1_1=True))
    verdict.l0.append(L0Answer(id="L0-07", violated=True, message_index=3, reason="改订单"))
    line = verdict.to_line()
    assert "\n" not in line
    assert Verdict.model_validate_json(line) == verdict
    assert verdict.l0_executed() == ["L0-07"]
