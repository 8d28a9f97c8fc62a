"""Human labels: alpha and kappa against published answers and slow literal versions, the judge beside raters, and hostile files."""

import codecs
from collections import Counter
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.files import FileError
from anthrolab.intervals import Interval, Rate
from anthrolab.judging.calibration.agreement import alpha, alpha_by_dialogue, kappa, majority
from anthrolab.judging.calibration.labels import HumanLabel, LabelsError, read_labels
from anthrolab.judging.calibration.people import agreement, failed_by_judge, failed_by_people
from tests.labelled_for_tests import SMALL, verdict

KRIPPENDORFF_2011 = """
1 2 3 3 2 1 4 1 2 * * *
1 2 3 3 2 2 4 1 2 5 * 3
* 3 3 3 2 3 4 2 2 5 1 *
1 2 3 3 2 4 4 1 2 5 1 *
"""
"""Krippendorff, Computing Krippendorff's alpha-reliability (2011), section C: four observers, twelve units; 0.743."""

WIKIPEDIA = """
* * * * * 3 4 1 2 1 1 3 3 * 3
1 * 2 1 3 3 4 3 * * * * * * *
* * 2 1 3 4 4 * 2 1 1 3 3 * 4
"""
"""The example of Wikipedia's article on alpha: three coders, fifteen units; 0.691."""


def columns(table: str) -> list[list[str]]:
    return [[v for v in unit if v != "*"] for unit in zip(*(line.split() for line in table.strip().splitlines()), strict=True)]


def literal_alpha(units: list[list[str]]) -> Fraction | None:
    """The coincidence matrix, cell by cell, as the definition has it: 1 - observed over expected disagreement."""
    cells: Counter[tuple[str, str]] = Counter()
    for values in units:
        for a, b in permutations(values, 2):
            cells[a, b] += Fraction(1, len(values) - 1)  # type: ignore[assignment]
    margins: Counter[str] = Counter()
    for (a, _), n in cells.items():
        margins[a] += n
    n = sum(margins.values())
    observed = sum((Fraction(v) for (a, b), v in cells.items() if a != b), Fraction(0))
    expected = sum((Fraction(margins[a] * margins[b]) for a in margins for b in margins if a != b), Fraction(0))
    return 1 - (n - 1) * observed / expected if expected else None


def test_alpha_of_the_published_examples() -> None:
    assert alpha(columns(KRIPPENDORFF_2011)) == pytest.approx(0.743, abs=0.0005)
    assert alpha(columns(WIKIPEDIA)) == pytest.approx(0.691, abs=0.0005)


def test_alpha_by_hand() -> None:
    # two raters, three units: aa bb ab. Of 6 ratings 3 are a; observed 2 of 6, expected 2 * 3 * 3 / 5 = 3.6 of 6: 1 - 2 / 3.6
    assert alpha(["aa", "bb", "ab"]) == pytest.approx(1 - 2 / 3.6)


def test_alpha_where_it_is_not_defined() -> None:
    assert alpha([]) is None
    assert alpha(["a", "b"]) is None, "nothing is rated twice"
    assert alpha(["aa", "aaa"]) is None, "without variation there is nothing to agree on"
    assert alpha(["ab", "ba"]) == pytest.approx(-0.5)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=4), max_size=8))
def test_alpha_is_the_literal_one(units: list[list[str]]) -> None:
    slow, fast = literal_alpha(units), alpha(units)
    assert (slow is None) == (fast is None)
    if slow is not None:
        assert fast == pytest.approx(float(slow), abs=1e-12)


def test_alpha_by_dialogue_pools_units_and_resamples_dialogues() -> None:
    units = columns(KRIPPENDORFF_2011)
    whole = alpha_by_dialogue([units[:4], units[4:8], units[8:]], seed=1)
    assert whole.value == pytest.approx(0.743, abs=0.0005)
    assert (whole.units, whole.ratings) == (11, 40), "the unit that one observer rated counts for nothing"
    assert whole.interval is not None
    assert whole.interval.low < whole.value < whole.interval.high
    assert whole == alpha_by_dialogue([units[:4], units[4:8], units[8:]], seed=1)
    assert alpha_by_dialogue([units], seed=1).interval is None, "one dialogue says nothing of how dialogues vary"


def test_equal_dialogues_give_an_interval_without_width() -> None:
    units = columns(WIKIPEDIA)
    many = alpha_by_dialogue([units] * 5, seed=0)
    assert many.interval is not None
    assert many.interval.high - many.interval.low < 1e-9


def table(both: int, only_a: int, only_b: int, neither: int) -> list[tuple[bool, bool]]:
    return [(True, True)] * both + [(True, False)] * only_a + [(False, True)] * only_b + [(False, False)] * neither


@pytest.mark.parametrize(
    ("cells", "agree", "value"),
    [
        ((20, 5, 10, 15), 0.70, 0.40),  # Wikipedia, "Cohen's kappa"
        ((45, 15, 25, 15), 0.60, 0.1304),  # the same article: equal agreement, other margins
        ((25, 35, 5, 35), 0.60, 0.2593),
        ((40, 9, 6, 45), 0.85, 0.70),  # Feinstein and Cicchetti 1990: the first paradox,
        ((80, 10, 5, 5), 0.85, 0.32),  # the same agreement where almost everything passes
    ],
)  # fmt: skip
def test_kappa_of_published_tables(cells: tuple[int, int, int, int], agree: float, value: float) -> None:
    k = kappa(table(*cells))
    assert k.agree.value == pytest.approx(agree)
    assert k.value == pytest.approx(value, abs=0.005)
    assert (k.failed_a.part, k.failed_b.part) == (cells[2] + cells[3], cells[1] + cells[3])


def test_an_alpha_that_hangs_on_one_dialogue_has_no_interval() -> None:
    agreed, failed = [(True, True), (True, True)], [(False, False), (True, True)]
    assert alpha_by_dialogue([agreed] * 20 + [failed], seed=0).value == 1.0
    assert alpha_by_dialogue([agreed] * 20 + [failed], seed=0).interval is None, "without that one there is no alpha"
    assert alpha_by_dialogue([agreed] * 20 + [failed] * 8, seed=0).interval == Interval(1.0, 1.0)


def test_kappa_where_it_is_not_defined() -> None:
    assert kappa([]).value is None
    assert kappa([(True, True)] * 9).value is None
    assert kappa([(True, True)] * 9).agree == Rate(9, 9)


def test_majority() -> None:
    assert majority([True]) is True
    assert majority([True, False, False]) is False
    assert majority([True, False]) is majority([]) is None


def label(dialogue: str, turn: int | None, box: str, **said: bool | None) -> list[HumanLabel]:
    return [HumanLabel(dialogue, turn, box, rater, passed) for rater, passed in said.items()]


def test_the_judge_beside_raters_by_hand() -> None:
    labels = [
        *label("x", 1, "D1.1", ann=True, bob=True, eve=False),  # majority passed; judge passed
        *label("x", 2, "D1.1", ann=False, bob=False),  # failed; judge passed
        *label("x", 3, "D1.1", ann=False, bob=True),  # a tie
        *label("x", 4, "D1.1", ann=False, bob=None),  # failed; judge unassessed
        *label("x", None, "E1.1", ann=False),  # failed; judge failed
        *label("elsewhere", 1, "D1.1", ann=True),  # not judged
    ]
    verdicts = {"x": verdict("x", {"D1.1": "+++?", "D1.2": "++++"}, "-")}
    whole, turns, dialogue = agreement(labels, verdicts, SMALL)
    assert [whole.box, turns.box, dialogue.box] == ["all", "D1.1", "E1.1"]
    assert (turns.ties, turns.unanswered, turns.failed) == (1, 2, Rate(5, 9))
    assert (turns.judge.agree, turns.judge.failed_a, turns.judge.failed_b) == (Rate(1, 2), Rate(0, 2), Rate(1, 2))
    assert turns.judge.value == 0
    assert turns.by_rater["ann"].agree == Rate(1, 3)
    assert turns.by_rater["bob"].agree == Rate(2, 3)
    assert turns.by_rater["eve"].agree == Rate(0, 1)
    # rated twice: {+,+,-}, {-,-}, {+,-}: 7 ratings, 3 passed and 4 failed; observed 2 + 0 + 2, expected 24 / 6
    assert (turns.among.units, turns.among.ratings, turns.among.value) == (3, 7, pytest.approx(0.0))
    assert (whole.judge.agree, whole.judge.failed_a, whole.unanswered) == (Rate(2, 3), Rate(1, 3), 2)
    assert (dialogue.judge.agree, dialogue.judge.value, dialogue.among.value) == (Rate(1, 1), None, None)


def test_without_an_answer_there_is_no_agreement() -> None:
    assert agreement(label("x", 1, "D1.1", ann=None), {}, SMALL) == []


def test_what_fails_most_comes_first() -> None:
    verdicts = [verdict("x", {"D1.1": "-+++", "D1.2": "--?+"}, "+"), verdict("y", {"D1.1": "++++", "D1.2": "++++"}, "?")]
    assert list(failed_by_judge(verdicts, SMALL).items()) == [("D1.2", Rate(2, 7)), ("D1.1", Rate(1, 8)), ("E1.1", Rate(0, 1))]
    labels = [*label("x", 1, "D1.1", ann=False, bob=False), *label("x", 2, "D1.1", ann=False, bob=True), *label("x", None, "E1.1", ann=True)]
    assert failed_by_people(labels, SMALL) == {"D1.1": Rate(1, 1), "E1.1": Rate(0, 1)}


TURNS = {"h01": 4, "h02": 2}
HEADER = "dialogue,turn,box,rater,value\n"
GOOD = [HumanLabel("h01", 3, "D1.1", "王老师", False), HumanLabel("h01", None, "E1.1", "王老师", True), HumanLabel("h02", 1, "D1.2", "bob", None)]
ROWS = "h01,3,D1.1,王老师,false\nh01,,E1.1,王老师,TRUE\nh02,1,D1.2,bob,\n"


def read(path: Path, content: str | bytes) -> list[HumanLabel]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return read_labels(path, SMALL, TURNS)


@pytest.mark.parametrize(
    "content",
    [
        HEADER + ROWS,
        codecs.BOM_UTF8 + (HEADER + ROWS).replace("\n", "\r\n").encode("utf-8"),
        "对话,轮次,检查项,评审,结论\n" + ROWS.replace("false", "否").replace("TRUE", "是"),
        "备注,Rater,Value,Box,Turn,Dialogue\n\"差, 一点\",王老师,0,D1.1,3,h01\n,王老师,1,E1.1,,h01\n,bob,,D1.2,1,h02\n",
        HEADER + "\n" + ROWS.replace("\n", ",,\n") + ",,,,\n",
    ],
    ids=["plain", "excel", "chinese", "other order and notes", "empty cells and lines"],
)
def test_csv_as_people_save_it(tmp_path: Path, content: str | bytes) -> None:
    assert read(tmp_path / "l.CSV", content) == GOOD


def test_jsonl(tmp_path: Path) -> None:
    lines = [
        '{"dialogue": "h01", "turn": 3, "box": "D1.1", "rater": "王老师", "value": false, "note": "x"}',
        '{"对话": "h01", "轮次": null, "检查项": "E1.1", "评审": "王老师", "结论": true}',
        "",
        '{"dialogue": "h02", "turn": 1, "box": "D1.2", "rater": "bob", "value": null}',
    ]
    assert read(tmp_path / "l.jsonl", "\n".join(lines)) == GOOD


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEADER + "h01,3,D1.1,ann,maybe\n", r"l\.csv: line 2: value: 'maybe' is neither true nor false; write true"),
        (HEADER + ROWS + "h03,1,D1.1,ann,true\n", r"line 5: dialogue: none of the judged dialogues is called 'h03' \(did you mean 'h0"),
        (HEADER + "h01,3,D1.7,ann,true\n", r"line 2: box: 'D1.7' is no checkbox of the rubric small \(did you mean 'D1"),
        (HEADER + "h01,5,D1.1,ann,true\n", r"line 2: turn: is 5, but D1.1 is asked of each turn; write 1 to 4"),
        (HEADER + "h01,0,D1.1,ann,true\n", r"line 2: turn: is 0, but D1.1"),
        (HEADER + "h01,,D1.1,ann,true\n", r"line 2: turn: is missing, but D1.1"),
        (HEADER + "h01,1,E1.1,ann,true\n", r"line 2: turn: E1.1 is asked of the whole dialogue; leave the turn blank"),
        (HEADER + "h01,1.0,D1.1,ann,true\n", r"line 2: turn: '1.0' is no whole number"),
        (HEADER + "h01,１,D1.1,ann,true\n", r"line 2: turn: '１' is no whole number"),
        (HEADER + "h01,1,D1.1,,true\n", r"line 2: rater: is missing; write it"),
        (HEADER + "h01,1\n", r"line 2: box: is missing; write it"),
        (HEADER + "h01,3,D1.1,ann,true\nh01,3,D1.1,ann,true\n", r"line 3: rater ann answered this already in line 2"),
        (HEADER + "h01,3,D1.1,ann,true,extra\n", r"line 2: has more cells than the header"),
        (HEADER + '"h01,3,D1.1,ann,true\n', r"not valid CSV"),
        (HEADER + "h01\0,3,D1.1,ann,true\n", r"line 2: "),
        (HEADER, r"l\.csv: holds no label"),
        ("", r"line 1: the header lacks dialogue \(对话\), turn \(轮次\)"),
        ("dialogue;turn;box;rater;value\n", r"line 1: its cells are parted by semicolons; save it with commas"),
        ("dialogue\tturn\tbox\trater\tvalue\n", r"parted by tabs"),
        ("dialogue,turn,box,rater,valeu\n", r"the header lacks value \(结论\)"),
        ("dialogue,turn,box,rater,value,ratr\n", r"unknown column 'ratr' \(did you mean 'rater'\?\)"),
        ("dialogue,对话,turn,box,rater,value\n", r"the column dialogue stands twice"),
    ],
)
def test_bad_csv_is_named_by_line_with_the_fix(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(LabelsError, match=message):
        read(tmp_path / "l.csv", content)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"dialogue": "h01"', r"l\.jsonl: line 1: not valid JSON"),
        ("[1]", r"line 1: holds no object"),
        ("[" * 100_000, r"line 1: not valid JSON"),
        ('{"dialogue": "h01", "对话": "h02", "turn": 1, "box": "D1.1", "rater": "ann", "value": true}', r"line 1: the field dialogue stands twice \(as 对话, too\)"),
        ('{"dialogue": "h01", "trun": 1, "box": "D1.1", "rater": "a", "value": true}', r"unknown field 'trun' \(did you mean 'turn'\?\)"),
        ('{"dialogue": "h01", "turn": true, "box": "D1.1", "rater": "a", "value": true}', r"turn: True is no whole number"),
        ('{"dialogue": "h01", "turn": 1, "box": "D1.1", "rater": 7, "value": true}', r"rater: is no text"),
        ('{"dialogue": "h01", "turn": 1, "box": "D1.1", "rater": "a", "value": 1}', r"value: 1 is neither true nor false"),
    ],
)
def test_bad_jsonl_is_named_by_line_with_the_fix(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(LabelsError, match=message):
        read(tmp_path / "l.jsonl", line)


def test_all_problems_are_listed_up_to_twenty(tmp_path: Path) -> None:
    with pytest.raises(LabelsError) as caught:
        read(tmp_path / "l.csv", HEADER + "h01,3,D1.1,ann,maybe\n" * 30)
    lines = str(caught.value).splitlines()
    assert len(lines) == 21
    assert lines[-1].endswith("and 10 more")


def test_other_encodings_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"not UTF-8 but, it seems, GBK \(byte 41\); save it as UTF-8 \(in Excel: save as 'CSV UTF-8'\)"):
        read(tmp_path / "l.csv", (HEADER + ROWS).encode("gbk"))
    with pytest.raises(FileError, match="is UTF-16"):
        read(tmp_path / "l.csv", (HEADER + ROWS).encode("utf-16"))
    with pytest.raises(FileError, match=r"not UTF-8 \(byte 0\)"):
        read(tmp_path / "l.csv", b"\xff\x00\xff")
    with pytest.raises(FileError, match="cannot be read"):
        read_labels(tmp_path / "none.csv", SMALL, TURNS)
    with pytest.raises(LabelsError, match=r"is neither \.csv nor \.jsonl"):
        read(tmp_path / "l.xlsx", b"PK")


def test_a_folder_gives_the_labels_of_every_file_by_name(tmp_path: Path) -> None:
    (tmp_path / "li.jsonl").write_text('{"dialogue": "h01", "turn": 1, "box": "D1.1", "rater": "li", "value": false}', encoding="utf-8")
    (tmp_path / "王.csv").write_text(HEADER + "h01,1,D1.1,王,true\n", encoding="utf-8")
    (tmp_path / "an.CSV").write_text(HEADER + "h01,1,D1.1,an,true\n", encoding="utf-8")
    (tmp_path / "empty.csv").write_text(HEADER, encoding="utf-8")
    for other in ("._li.csv", ".an.csv.12.tmp", "readme.txt"):
        (tmp_path / other).write_text("no labels", encoding="utf-8")
    (tmp_path / "guesses.csv").mkdir()
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "x.csv").write_text("no labels", encoding="utf-8")
    assert [label.rater for label in read_labels(tmp_path, SMALL, TURNS)] == ["an", "li", "王"]


def test_an_answer_in_two_files_of_a_folder_is_an_error_that_names_both(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / f"{name}.csv").write_text(HEADER + "\n" * (name == "old") + "h01,1,D1.1,王,true\n", encoding="utf-8")
    with pytest.raises(LabelsError) as caught:
        read_labels(tmp_path, SMALL, TURNS)
    assert str(caught.value) == f"{tmp_path / 'old.csv'}: line 3: rater 王 answered this already in line 2 of {tmp_path / 'new.csv'}; keep one of the two"


def test_a_folder_without_labels_is_said(tmp_path: Path) -> None:
    with pytest.raises(LabelsError, match=r"holds no \.csv or \.jsonl; name a file of labels"):
        read_labels(tmp_path, SMALL, TURNS)
    (tmp_path / "x.csv").write_text(HEADER, encoding="utf-8")
    with pytest.raises(LabelsError, match="holds no label"):
        read_labels(tmp_path, SMALL, TURNS)
