"""Second opinions in print: the figures of two judges and of one judge twice, counted from the verdicts' files."""

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from anthrolab.bench.second_judge import ALL, OUTCOME, RETESTS
from anthrolab.bench.store import Run
from anthrolab.judging.calibration.agreement import kappa
from anthrolab.judging.rubric import load_rubric
from anthrolab.judging.verdict import BoxVerdict, Verdict
from anthrolab.show.measured import Measured, load_all
from anthrolab.show.second_judge import agreement_tables, as_lines, pair_table
from anthrolab.show.tables import NO_VALUE, PrintedTable, as_html
from tests.runs_for_tests import make_run

IDS = [box.id for box in load_rubric().boxes()]


def other_mind(verdict: Verdict, judge: str, seed: int) -> Verdict:
    """The same verdict by another judge, with one answer in seven turned round and one in nine left out."""
    draw = random.Random(f"{seed}-{verdict.dialogue_id}")

    def changed(box: BoxVerdict) -> BoxVerdict:
        if box.passed is None or draw.random() < 1 / 9:
            return BoxVerdict(id=box.id, unassessed="missing_id")
        return BoxVerdict(id=box.id, passed=box.passed != (draw.random() < 1 / 7))

    turns = [turn.model_copy(update={"boxes": [changed(b) for b in turn.boxes]}) for turn in verdict.turns]
    return verdict.model_copy(update={"judge": judge, "turns": turns, "dialogue": [changed(b) for b in verdict.dialogue]})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run judged by rules and by other, who judged five dialogues again."""
    folder = make_run(tmp_path / "r", answers_all=True)
    whole, judge = Run(folder), "other"
    first = whole.verdicts("rules")
    others = {key: other_mind(v, judge, 1) for key, v in first.items()}
    whole.settle("verdicts.jsonl", [v.to_line() for v in [*first.values(), *others.values()]])
    again = [other_mind(v, judge, 2).model_copy(update={"judge": judge}) for v in list(first.values())[:5]]
    (folder / RETESTS).write_text("".join(v.to_line() + "\n" for v in again), encoding="utf-8")
    manifest = whole.manifest()
    manifest["judges"][judge] = manifest["judges"]["rules"]
    whole.write_manifest(manifest)
    for part in ("cases.parquet", "checkboxes.parquet"):
        source = whole.ledger("rules") / part
        target = whole.ledger(judge) / part
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(source.read_bytes())
    return folder


def rows(table: PrintedTable) -> Mapping[str, Mapping[str, str]]:
    return {row["Of"]: row for row in table.frame.iter_rows(named=True)}


def tables(run: Path) -> list[PrintedTable]:
    return agreement_tables(run, load_all(run))


def answers(verdict: Verdict) -> list[tuple[str, bool | None]]:
    return [(box.id, box.passed) for box in verdict.boxes()]


def test_every_figure_of_two_judges_is_that_of_a_count_by_hand(run: Path) -> None:
    table = next(t for t in tables(run) if t.name == "agreement-r-other-rules")
    shown = rows(table)
    assert list(shown) == [OUTCOME, ALL, *IDS]
    a, b = Run(run).verdicts("other"), Run(run).verdicts("rules")
    for of in (ALL, *IDS):
        pairs = [
            (x, y) for key in a for (i, x), (_, y) in zip(answers(a[key]), answers(b[key]), strict=True) if of in (ALL, i)
        ]
        full = [(x, y) for x, y in pairs if x is not None and y is not None]
        row = shown[of]
        assert row["Both answer"] == str(len(full)) and row["One only"] == str(len(pairs) - len(full))
        assert row["Agree"] == f"{sum(x == y for x, y in full) / len(full):.4f}"
        assert row["Both passed"] == f"{sum(x and y for x, y in full) / len(full):.4f}"
        assert row["other: passed"] == f"{sum(x for x, _ in full) / len(full):.4f}"
        assert row["rules judge: passed"] == f"{sum(y for _, y in full) / len(full):.4f}"
        k = kappa(full)
        if k.one_kind == (None, None):
            assert re.fullmatch(rf"{k.value:.2f}( \[-?\d\.\d\d, -?\d\.\d\d\])?", row["Kappa"])
        else:
            assert row["Kappa"].startswith(f"{NO_VALUE} (")
    accepted = [[all(p is not False for _, p in answers(v)) for v in judge.values()] for judge in (a, b)]
    same = sum(x == y for x, y in zip(*accepted, strict=True))
    assert shown[OUTCOME]["Agree"] == f"{same / len(a):.4f}"
    assert table.title == f"Run r: other and rules judge on {len(a)} dialogues"


def test_every_figure_of_a_retest_is_that_of_a_count_by_hand(run: Path) -> None:
    table = next(t for t in tables(run) if t.name == "retest-r-other")
    first = Run(run).verdicts("other")
    second = [Verdict.model_validate_json(line) for line in (run / RETESTS).read_text(encoding="utf-8").splitlines()]
    pairs = [
        (i, x, y)
        for v in second
        for (i, x), (_, y) in zip(answers(first[v.dialogue_id]), answers(v), strict=True)
        if x is not None and y is not None
    ]
    shown = rows(table)
    for of in (ALL, *IDS):
        own = [(x, y) for i, x, y in pairs if of in (ALL, i)]
        flips = sum(x != y for x, y in own)
        assert (shown[of]["Answered twice"], shown[of]["Flips"]) == (str(len(own)), str(flips))
        assert shown[of]["Flip rate"].startswith(f"{flips / len(own):.4f} [")
    assert shown[OUTCOME]["Answered twice"] == "5"
    assert table.title == f"Run r: judge other asked twice about 5 of {len(first)} dialogues"


def test_a_judge_that_always_says_the_same_is_named_where_kappa_would_stand(run: Path) -> None:
    a, b = load_all(run)
    lenient = {
        key: v.model_copy(update={"dialogue": [BoxVerdict(id=box.id, passed=True) for box in v.dialogue]}) for key, v in a.verdicts.items()
    }
    strict = {key: v.model_copy(update={"dialogue": [mixed(box, n) for box in v.dialogue]}) for n, (key, v) in enumerate(b.verdicts.items())}
    table = pair_table(Measured(**{**vars(a), "verdicts": lenient}), Measured(**{**vars(b), "verdicts": strict}))
    assert rows(table)["E1.1"]["Kappa"] == f"{NO_VALUE} (other always says passed)"
    assert any("only one kind of answer makes it 0" in note for note in table.notes)


def mixed(box: BoxVerdict, n: int) -> BoxVerdict:
    return BoxVerdict(id=box.id, passed=n % 2 == 0)


def test_a_report_leaves_a_half_written_verdict_where_it_is(run: Path) -> None:
    path = run / RETESTS
    whole = tables(run)
    torn = path.read_bytes() + b'{"dialogue_id": "r-'  # another command is at it
    path.write_bytes(torn)
    shown = tables(run)
    assert path.read_bytes() == torn
    assert [t.frame.rows() for t in shown] == [t.frame.rows() for t in whole]


def test_one_judge_once_has_no_second_opinion(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "r")
    assert agreement_tables(folder, load_all(folder)) == []
    (folder / RETESTS).write_text("", encoding="utf-8")
    assert agreement_tables(folder, load_all(folder)) == []


def test_second_verdicts_on_a_changed_dialogue_are_not_shown(run: Path) -> None:
    lines = [json.loads(line) | {"dialogue_hash": "0" * 16} for line in (run / RETESTS).read_text(encoding="utf-8").splitlines()]
    (run / RETESTS).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert [t.name for t in tables(run)] == ["agreement-r-other-rules"]


def test_three_judges_give_three_tables(run: Path) -> None:
    measured = load_all(run)
    third = Measured(**{**vars(measured[0]), "judge": "third"})  # with the verdicts of other, and so its retest
    assert [t.name for t in agreement_tables(run, [*measured, third])] == [
        "agreement-r-other-rules", "agreement-r-other-third", "agreement-r-rules-third", "retest-r-other", "retest-r-third",
    ]  # fmt: skip


def test_print_is_inert_and_the_same_each_time(run: Path) -> None:
    a, b = load_all(run)
    hostile = pair_table(*(Measured(**{**vars(m), "run": "<img src=x onerror=alert(1)> 跑.1"}) for m in (a, b)))
    assert "<img" not in as_html(hostile) and "&lt;img src=x" in as_html(hostile)
    assert re.fullmatch(r"[A-Za-z0-9-]+", hostile.name)
    assert hostile.name != pair_table(*(Measured(**{**vars(m), "run": "<img src=x onerror=alert(1)> 跑-1"}) for m in (a, b))).name
    assert as_lines(tables(run)) == as_lines(tables(run))
    assert [as_html(t) for t in tables(run)] == [as_html(t) for t in tables(run)]
    assert pair_table(a, b, seed=1).frame["Agree"].equals(pair_table(a, b, seed=2).frame["Agree"])
