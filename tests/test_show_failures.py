"""Failures as rows: known answers from runs made by hand, and filters against a slow literal version of themselves."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.bench.ledger import Ledger
from anthrolab.bench.store import RunError
from anthrolab.cards.scenario import CATEGORIES
from anthrolab.judging.verdict import L0Answer
from anthrolab.show.failure_sources import FailuresError, open_sources, published_source, run_source
from anthrolab.show.failures import (
    FACETS,
    Failures,
    chosen,
    collect,
    counted_cases,
    facet_counts,
    failing_cases,
    failures_by_system,
)
from anthrolab.show.measured import Measured, load_measured
from tests.runs_for_tests import make_run

ONE, TWO = "one · rules judge", "two · big"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Measured, Measured]:
    """Two systems on the same twelve cases, each by its own judge."""
    folder = tmp_path_factory.mktemp("runs")
    one = make_run(folder / "one")
    two = make_run(folder / "two", system="Other-Model", judge="big", said=("好呀 几点", "首先我想说", "OK 就这样"), answers_all=True)
    return load_measured(one, "rules"), load_measured(two, "big")


@pytest.fixture(scope="module")
def failures(runs: tuple[Measured, Measured]) -> Failures:
    return collect([run_source(m) for m in runs])


def test_every_failed_checkbox_and_broken_constraint_is_a_row_with_its_message_and_reason(failures: Failures) -> None:
    rows = chosen(failures.rows, source=ONE)
    assert Counter(rows["id"]) == {"D1.3": 20, "E1.1": 10, "L0-05": 1}
    case = rows.filter(pl.col("case_id") == "b01-a")
    assert case.select("kind", "dimension", "id", "turn_index", "message_index", "text", "reason").rows() == [
        ("checkbox", "D1", "D1.3", 2, 3, "刚看到 手上有点事", "“首先”是作文腔"),
        ("checkbox", "D1", "D1.3", 4, 7, "行吧 先这样", "“首先”是作文腔"),
        ("checkbox", "E1", "E1.1", None, None, None, "“首先”是作文腔"),
    ]
    first = case.row(0, named=True)
    assert {k: first[k] for k in ("source", "run", "system", "judge", "case_id", "sample", "binding", "role", "category", "valid", "dialogue_id")} == {
        "source": ONE, "run": "one", "system": "tiny-model", "judge": "rules", "case_id": "b01-a", "sample": 0, "binding": "b01",
        "role": "a", "category": "Sport", "valid": True, "dialogue_id": "one-b01-a-0",
    }  # fmt: skip
    assert first["names"] == "谭国祥 龙佳颖"


def test_an_invalid_case_has_what_made_it_invalid_and_a_case_that_was_not_done_has_nothing(failures: Failures) -> None:
    (row,) = chosen(failures.rows, source=ONE, gate="L0-05").iter_rows(named=True)
    invalid = failures.cases.filter((pl.col("source") == ONE) & (pl.col("valid") == False))  # noqa: E712
    assert invalid["case"].to_list() == [row["case"]]
    assert (row["kind"], row["dimension"], row["message_index"], row["text"], row["reason"]) == ("gate", None, 3, "刚看到 手上有点事", "equals message 2")
    assert failures.rows.filter(pl.col("case") == row["case"]).height == 1
    missing = failures.cases.filter(pl.col("valid").is_null())
    assert missing.height == 2 and missing["failures"].to_list() == [0, 0]
    assert not set(missing["case"]) & set(failures.rows["case"])


def test_what_the_judge_finds_against_the_gate_is_told_from_what_rules_find(runs: tuple[Measured, Measured]) -> None:
    m = runs[0]
    key = "one-b01-a-0"
    found = L0Answer(id="L0-07", violated=True, message_index=5, reason="说要发文件")
    gate = {**m.gate, "one-b03-a-0": {**m.gate["one-b03-a-0"], "reason": "no_turns"}}
    changed = replace(m, verdicts={**m.verdicts, key: m.verdicts[key].model_copy(update={"l0": [found, L0Answer(id="L0-09", violated=False)]})}, gate=gate)
    rows = collect([run_source(changed)]).rows
    assert chosen(rows, gate="L0-07").select("kind", "turn_index", "message_index", "text", "reason").rows() == [
        ("judge_gate", 3, 5, "那你说咋整", "说要发文件")
    ]
    assert not chosen(rows, gate="L0-09").height
    assert chosen(rows, gate="no turns").select("case_id", "kind", "message_index").rows() == [("b03-a", "gate", None)]


def test_a_case_that_the_judge_made_invalid_has_no_checkbox_rows_as_in_the_ledger(runs: tuple[Measured, Measured]) -> None:
    m, key = runs[0], "one-b01-a-0"
    found = L0Answer(id="L0-09", violated=True, message_index=3, reason="危险")
    cases = m.ledger.cases.with_columns(valid=pl.when(pl.col("case_id") == "b01-a").then(False).otherwise("valid"))
    ledger = Ledger(cases, m.ledger.checkboxes.filter(pl.col("case_id") != "b01-a"))
    changed = replace(m, ledger=ledger, verdicts={**m.verdicts, key: m.verdicts[key].model_copy(update={"l0": [found]})})
    rows = collect([run_source(changed)]).rows.filter(pl.col("case_id") == "b01-a")
    assert rows.select("kind", "id", "valid").rows() == [("judge_gate", "L0-09", False)]


def test_a_constraint_that_points_at_no_message_has_none(runs: tuple[Measured, Measured]) -> None:
    m, key = runs[0], "one-b01-a-0"
    broken = {"id": "L0-04", "severity": "fatal", "message_index": -1, "evidence": "no line"}
    rows = collect([run_source(replace(m, gate={**m.gate, key: {**m.gate[key], "violations": [broken]}}))]).rows
    assert chosen(rows, gate="L0-04").select("message_index", "text", "reason").rows() == [(None, None, "no line")]


def test_partner_faults_are_no_failures(runs: tuple[Measured, Measured]) -> None:
    m, key = runs[0], "one-b01-a-0"
    partner = {"id": "L0-02", "severity": "fatal", "message_index": 2, "evidence": "发你照片"}
    rows = collect([run_source(replace(m, gate={**m.gate, key: {**m.gate[key], "partner_violations": [partner]}}))]).rows
    assert not chosen(rows, gate="L0-02").height


def test_the_rows_of_checkboxes_are_the_ledgers_failed_boxes(failures: Failures, runs: tuple[Measured, Measured]) -> None:
    sources = [*failures.sources, published_source()]
    together = collect(sources)
    for source in sources:
        boxes = source.ledger.checkboxes.filter(pl.col("passed") == False)  # noqa: E712
        wanted = Counter(boxes.select("system", "case_id", "turn_index", "dimension", "checkbox").rows())
        own = chosen(together.rows, source=source.name).filter(pl.col("kind") == "checkbox")
        split = own.select("system", "case_id", "turn_index", "dimension", pl.col("id").str.split(".").list.last().cast(pl.UInt16))
        assert Counter(split.rows()) == wanted
    assert together.rows["case"].is_sorted()


def test_the_published_ledger_has_all_its_failures_and_says_that_it_has_no_chats() -> None:
    source = published_source()
    found = collect([source])
    assert (found.cases.height, found.rows.height) == (1600, 22811 + 26)
    assert chosen(found.rows, gate="L0").height == 26
    assert found.rows.select("text", "reason", "names", "dialogue_id", "message_index").null_count().row(0) == (22837,) * 5
    assert source.note == "reconstructed ledger: no chats, not the authors' data"
    assert list(facet_counts(found.rows)["system"])[:2] == ["Gemini-3.5-Flash", "GPT-5.5"]


def literal(row: Mapping[str, Any], asked: Mapping[str, str | None], search: str) -> bool:
    """One row against what is asked, said out loud."""
    for name in ("source", "system", "category", "role", "dimension"):
        if asked.get(name) and row[name] != asked[name]:
            return False
    if asked.get("checkbox") and not (row["kind"] == "checkbox" and row["id"] == asked["checkbox"]):
        return False
    if asked.get("gate") and not (row["kind"] != "checkbox" and row["id"] == asked["gate"]):
        return False
    fields = [str(row[name] or "").lower() for name in ("text", "reason", "names", "system", "case_id")]
    return all(any(word.lower() in field for field in fields) for word in search.split())


ASKED = st.fixed_dictionaries(
    {},
    optional={
        "source": st.sampled_from([None, ONE, TWO, "none such"]), "system": st.sampled_from(["tiny-model", "Other-Model"]),
        "category": st.sampled_from(["Sport", "Work", "Daily", "Game"]), "role": st.sampled_from(["a", "b"]),
        "dimension": st.sampled_from(["D1", "E2", "E3", "D5"]), "checkbox": st.sampled_from(["D1.3", "E3.1", "L0-05"]),
        "gate": st.sampled_from(["L0-05", "D1.3"]),
    },
)  # fmt: skip
SEARCH = st.lists(st.sampled_from(["手上", "作文腔", "OK", "ok", "首先", "谭国祥", "other-", "b01", "equals", "没有这话", ".*", "(", "好呀 几点"]), max_size=3).map(" ".join)


@given(asked=ASKED, search=SEARCH)
@settings(max_examples=150, deadline=None)
def test_filters_equal_a_slow_literal_version(failures: Failures, asked: dict[str, str | None], search: str) -> None:
    wanted = [r["case"] for r in failures.rows.iter_rows(named=True) if literal(r, asked, search)]
    assert chosen(failures.rows, search=search, **asked)["case"].to_list() == wanted  # type: ignore[arg-type]


@given(asked=ASKED, search=SEARCH)
@settings(max_examples=60, deadline=None)
def test_a_pickers_count_is_what_picking_it_shows(failures: Failures, asked: dict[str, str | None], search: str) -> None:
    counts = facet_counts(failures.rows, search=search, **asked)
    assert set(counts) == set(FACETS)
    blind = {"dimension": ("checkbox", "gate"), "checkbox": ("gate",), "gate": ("checkbox", "dimension")}
    for facet, values in counts.items():
        others = {k: v for k, v in asked.items() if k not in (facet, *blind.get(facet, ()))}
        for value, count in values.items():
            assert chosen(failures.rows, search=search, **{**others, facet: value}).height == count > 0  # type: ignore[arg-type]
        everything = chosen(failures.rows, search=search, **others)  # type: ignore[arg-type]
        if facet in ("source", "system", "category", "role"):
            assert sum(values.values()) == everything.height, "no value is missing"


def test_search_finds_chinese_substrings_in_messages_reasons_and_names_whatever_the_case(failures: Failures) -> None:
    def found(search: str) -> set[tuple[str, str]]:
        return set(chosen(failures.rows, search=search).select("source", "id").rows())

    assert found("手上有点") == {(ONE, "D1.3"), (ONE, "L0-05")}
    assert found("作文腔 手上") == {(ONE, "D1.3")}
    assert {source for source, _ in found("OTHER-model")} == {TWO}
    assert {i for _, i in found("equals")} == {"L0-05"}
    assert set(chosen(failures.rows, search="龙佳颖")["case_id"]) == {"b01-a"}
    assert found("手上没有") == set() and found("  ") == set(failures.rows.select("source", "id").rows())


def test_a_picked_checkbox_leaves_the_gate_and_its_dimension_to_pick_from(failures: Failures) -> None:
    counts = facet_counts(failures.rows, source=ONE, dimension="D1", checkbox="D1.3")
    assert (counts["gate"], counts["dimension"], counts["checkbox"]) == ({"L0-05": 1}, {"D1": 20, "E1": 10}, {"D1.3": 20})
    assert facet_counts(failures.rows, source=ONE, gate="L0-05")["checkbox"] == {"D1.3": 20, "E1.1": 10}


def test_ids_stand_in_the_order_of_the_rubric_and_categories_in_the_papers(failures: Failures) -> None:
    counts = facet_counts(failures.rows)
    assert list(counts["category"]) == [c for c in CATEGORIES if c in counts["category"]]
    boxes = pl.concat([failures.rows.head(2).with_columns(id=pl.Series([i, i])) for i in ("D1.10", "D1.9", "D1.2")])
    assert list(facet_counts(boxes)["checkbox"]) == ["D1.2", "D1.9", "D1.10"]


def test_failing_cases_name_each_id_once(failures: Failures) -> None:
    cases = failing_cases(failures.rows)
    assert cases.height == 22
    first = cases.row(0, named=True)
    assert (first["case_id"], first["failures"], first["ids"][0], len(first["ids"])) == ("b01-a", 3, "D1.3", 2)
    only = failing_cases(chosen(failures.rows, checkbox="D1.3", source=ONE)).row(0, named=True)
    assert (only["failures"], only["ids"]) == (2, ["D1.3"])


def test_the_summary_counts_every_planned_case(failures: Failures) -> None:
    assert failures_by_system(failures).select("system", "planned", "not done", "not judged", "invalid", "failing", "failures", "most often").rows() == [
        ("tiny-model", 12, 1, 0, 1, 11, 31, "D1.3 (20)"), ("Other-Model", 12, 1, 0, 1, 11, 21, "D1.3 (10)"),
    ]  # fmt: skip


def test_a_chat_that_nobody_judged_is_not_judged_and_only_a_case_without_one_is_not_done(runs: tuple[Measured, Measured]) -> None:
    m, key = runs[0], "one-b01-a-0"
    major = {"id": "L0-08", "severity": "major", "message_index": 3, "evidence": "说错时间"}
    ledger = Ledger(
        m.ledger.cases.with_columns(valid=pl.when(pl.col("case_id") == "b01-a").then(None).otherwise("valid")),
        m.ledger.checkboxes.filter(pl.col("case_id") != "b01-a"),
    )
    verdicts = {k: v for k, v in m.verdicts.items() if k != key}
    found = collect([run_source(replace(m, ledger=ledger, verdicts=verdicts, gate={**m.gate, key: {**m.gate[key], "violations": [major]}}))])
    states = dict(found.cases.select("case_id", pl.col("state").cast(pl.String)).rows())
    assert states["b01-a"] == "not judged" and Counter(states.values()) == {"valid": 9, "not judged": 1, "invalid": 1, "not done": 1}
    assert failures_by_system(found).select("not done", "not judged", "invalid").rows() == [(1, 1, 1)]
    assert counted_cases(found.cases) == "12 planned cases (1 invalid, 1 not judged, 1 not done)"
    # a constraint broken is a failure whether a judge came or not
    assert found.rows.filter(pl.col("case_id") == "b01-a").select("kind", "id").rows() == [("gate", "L0-08")]


def test_a_major_violation_is_a_failure_of_valid_and_invalid_cases_alike(runs: tuple[Measured, Measured]) -> None:
    m = runs[0]
    major = {"id": "L0-08", "severity": "major", "message_index": 3, "evidence": "说错时间"}
    (invalid,) = (k for k, row in m.gate.items() if not row["valid"])
    gate = {k: {**row, "violations": [*row["violations"], major]} if k in (invalid, "one-b01-a-0") else row for k, row in m.gate.items()}
    rows = collect([run_source(replace(m, gate=gate))]).rows
    assert rows.filter(pl.col("dialogue_id") == invalid)["id"].to_list() == ["L0-05", "L0-08"]
    assert rows.filter(pl.col("dialogue_id") == "one-b01-a-0")["id"].to_list() == ["L0-08", "D1.3", "D1.3", "E1.1"]


def test_sources_are_opened_by_name_and_refused_with_a_fix(tmp_path: Path) -> None:
    one, two = make_run(tmp_path / "one"), make_run(tmp_path / "two")
    assert [s.name for s in open_sources(f" {one}, {two},,{one}", "", "published")] == [ONE, "two · rules judge", "published (reconstructed)"]
    (alone,) = open_sources("", "", str(one / "ledgers" / "rules"))
    assert (alone.name, alone.measured, alone.note) == ("rules", None, "a ledger alone: no chats and no reasons")
    with pytest.raises(FailuresError, match="nothing to show: name a judged run folder"):
        open_sources(" , ", "rules", "")
    with pytest.raises(RunError, match="not judged by big; do: anthrolab judge"):
        open_sources(str(one), "big", "")
    with pytest.raises(FailuresError, match="two sources have the same name"):
        collect(open_sources(f"{one},{make_run(tmp_path / 'again' / 'one')}", "", ""))


def test_no_source_at_all_gives_empty_frames_of_the_same_shape(failures: Failures) -> None:
    empty = collect([])
    assert (empty.rows.height, empty.cases.height) == (0, 0)
    assert empty.rows.columns == failures.rows.columns and empty.cases.columns == failures.cases.columns
    assert facet_counts(empty.rows) == {facet: {} for facet in FACETS}
