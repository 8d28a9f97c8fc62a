"""Stops and faults in print: rows by reason and by fault over the plan, replies by side, and the warnings' words."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import polars as pl
import pytest

from anthrolab.bench.ledger import Ledger
from anthrolab.judging.verdict import Verdict
from anthrolab.metrics.stops import Ending, Fate, Flag, FlagKind
from anthrolab.show.blocks import measured_block
from anthrolab.show.coverage import denominators, failed_dialogues
from anthrolab.show.measured import Measured, load_all
from anthrolab.show.stops import (
    ENDINGS,
    FATES,
    SHORT_ENDINGS,
    audit_of,
    banners,
    faults_table,
    replies_table,
    stops_table,
    warning,
    with_warning,
)
from anthrolab.show.tables import NO_VALUE, as_html
from tests.runs_for_tests import make_run


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return load_all(make_run(tmp_path_factory.mktemp("runs") / "broken"))[0]


@pytest.fixture(scope="module")
def fine(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    run = make_run(tmp_path_factory.mktemp("runs") / "fine", partner_breaks=False, failed_side="tested")
    return load_all(run)[0]


def judged(m: Measured, **changes: Mapping[str, Any]) -> Measured:
    """The run with some verdicts changed, by the number of the dialogue in the run."""
    verdicts = dict(m.verdicts)
    for place, update in changes.items():
        key = list(m.verdicts)[int(place.removeprefix("n"))]
        verdicts[key] = Verdict.model_validate(verdicts[key].model_dump() | update)
    return replace(m, verdicts=verdicts)


def not_asked(m: Measured, *, of: int) -> Measured:
    """The run with the last `of` valid dialogues not judged: no verdict, and no validity in the ledger."""
    gone = {m.case(m.dialogues[key])["case_id"] for key in list(m.verdicts)[-of:]}
    cases, boxes = m.ledger.cases.drop("case"), m.ledger.checkboxes.drop("case")
    unknown = pl.when(pl.col("case_id").is_in(gone)).then(None).otherwise("valid")
    ledger = Ledger(cases.with_columns(valid=unknown), boxes.filter(~pl.col("case_id").is_in(gone)))
    return replace(m, verdicts=dict(list(m.verdicts.items())[:-of]), ledger=ledger)


def test_every_reason_and_every_fate_has_words() -> None:
    assert set(ENDINGS) == set(get_args(Ending))
    assert set(FATES) == set(get_args(Fate))
    assert set(SHORT_ENDINGS) == set(ENDINGS) and len(set(SHORT_ENDINGS.values())) == len(ENDINGS)
    assert len(set(ENDINGS.values())) == len(ENDINGS) and len(set(FATES.values())) == len(FATES)


def test_stops_add_up_to_the_plan(broken: Measured, fine: Measured) -> None:
    table = stops_table([(m, audit_of(m)) for m in (broken, fine)]).frame
    assert table.rows() == [
        ("The partner's last reply broke the output contract", "broken", "11", "91.7% of 12"),
        ("Never finished: failed", "broken", "1", "8.3% of 12"),
        ("Both sides decided to send nothing", "fine", "11", "91.7% of 12"),
        ("Never finished: failed", "fine", "1", "8.3% of 12"),
    ]
    # two failed rows, three not tried
    more = replace(
        fine, manifest=fine.manifest | {"counts": fine.manifest["counts"] | {"planned": 16, "failed": 2, "missing": 3}},
        failures=[*fine.failures, {"dialogue_id": "another", "fault": "empty", "error": "x", "side": "tested"}],
    )  # fmt: skip
    rows = stops_table([(more, audit_of(more))]).frame
    assert dict(rows.select("Why it stopped", "Dialogues").rows()) == {
        "Both sides decided to send nothing": "11", "Never finished: not tried": "3", "Never finished: failed": "2",
    }  # fmt: skip
    assert set(rows["Of the plan"].str.split(" of ").list.last()) == {"16"}


def test_faults_name_who_and_count_every_planned_dialogue_once(broken: Measured, fine: Measured) -> None:
    table = faults_table([(fine, audit_of(fine)), (broken, audit_of(broken))]).frame
    assert table.drop("Run, judge").rows() == [
        ("Tested system", "Invalid: it broke a fatal constraint of the gate", "1", "8.3% of 12"),
        ("Nobody's: an endpoint", "Not had: the tested system's endpoint failed", "1", "8.3% of 12"),
        ("None", "Valid and judged", "10", "83.3% of 12"),
        ("Tested system", "Invalid: it broke a fatal constraint of the gate", "1", "8.3% of 12"),
        ("Nobody's: an endpoint", "Not had: an endpoint failed; the record does not say whose", "1", "8.3% of 12"),
        ("None", "Valid and judged", "10", "83.3% of 12"),
    ]
    assert set(table["Run, judge"]) == {"fine, rules judge", "broken, rules judge"}


def test_a_judge_that_gives_no_answer_or_no_usable_one_is_at_fault_and_one_without_a_rule_is_not(fine: Measured) -> None:
    assert audit_of(fine).fates["scored"] == 10  # the rules judge leaves boxes without a rule
    box = fine.verdicts[next(iter(fine.verdicts))].dialogue[0]
    unread = {"dialogue": [{"id": box.id, "passed": None, "unassessed": "parse_error"}]}
    found = judged(fine, n0={"complete": False}, n1=unread, n2={"dialogue": [{"id": box.id, "unassessed": "undecided"}]})
    fates = audit_of(found).fates
    assert (fates["incomplete"], fates["unreadable"], fates["scored"]) == (1, 1, 8)
    assert warning(found, audit_of(found).flags()) == (
        "Do not read this row as how tiny-model chats: the judge (rules judge) gave no usable answer to some call in 2 of 10 "
        "valid dialogues that it was given (20.0%)."
    )


def test_what_the_judge_was_not_asked_yet_is_nobodys_fault_and_raises_no_warning(fine: Measured) -> None:
    part = not_asked(fine, of=7)
    a = audit_of(part)
    assert (a.fates["not_judged"], a.fates["scored"], a.fates["incomplete"], a.fates.total()) == (7, 3, 0, 12)
    assert warning(part, a.flags()) is None and banners([(part, a)]) == []
    rows = faults_table([(part, a)]).frame.drop("Run, judge").rows()
    assert ("Nobody's: not judged", "Valid by the gate, not judged yet", "7", "58.3% of 12") in rows
    assert not [row for row in rows if row[0] == "Judge"]
    # of the three that it was given it left one open
    open_one = judged(part, n0={"complete": False})
    assert "gave no usable answer to some call in 1 of 3 valid dialogues that it was given (33.3%)" in str(warning(open_one, audit_of(open_one).flags()))


def test_denominators_add_up_when_the_judge_was_not_asked_about_some_cases(fine: Measured) -> None:
    (row,) = denominators([not_asked(fine, of=7)]).frame.iter_rows(named=True)
    names = ("Planned", "Done", "Failed", "Missing", "Valid", "Invalid", "Not judged")
    planned, done, failed, missing, valid, invalid, unasked = (int(row[n]) for n in names)
    assert (planned, done, failed, missing, valid, invalid, unasked) == (12, 11, 1, 0, 3, 1, 7)
    assert planned == done + failed + missing and done == valid + invalid + unasked
    (whole,) = denominators([fine]).frame.iter_rows(named=True)
    assert (whole["Valid"], whole["Not judged"]) == ("10", "0")


def test_failed_and_missing_are_the_same_in_the_stops_and_in_the_denominators(fine: Measured) -> None:
    there = next(iter(fine.dialogues))
    # in the middle of a second command: one that failed before was had after all, one failed twice, two are still to come
    failures = [*fine.failures, *fine.failures, {"dialogue_id": there, "fault": "timeout", "error": "x"}]
    counts = fine.manifest["counts"] | {"planned": 14, "failed": 3, "missing": 0}
    cases = fine.ledger.cases.drop("case")
    more = cases.tail(1).with_columns(case_id=pl.lit("later"), valid=None)
    ledger = Ledger(pl.concat([cases, more, more.with_columns(sample=pl.lit(1, cases.schema["sample"]))]), fine.ledger.checkboxes.drop("case"))
    m = replace(fine, failures=failures, manifest=fine.manifest | {"counts": counts}, ledger=ledger)
    stops = dict(stops_table([(m, audit_of(m))]).frame.select("Why it stopped", "Dialogues").rows())
    (row,) = denominators([m]).frame.iter_rows(named=True)
    assert (row["Planned"], row["Failed"], row["Missing"]) == ("14", "1", "2")
    assert (stops["Never finished: failed"], stops["Never finished: not tried"]) == (row["Failed"], row["Missing"])
    named = failed_dialogues(m)
    assert named is not None and there not in named.frame["Dialogue"], "it could be had"


def test_a_case_that_the_judge_finds_invalid_is_the_tested_systems(fine: Measured) -> None:
    first = next(iter(fine.dialogues.values()))
    cases = fine.ledger.cases.drop("case")
    named = f"{first.binding}-{first.evaluated_role}"
    cases = cases.with_columns(valid=(cases["case_id"] != named) & cases["valid"])
    ledger = type(fine.ledger)(cases, fine.ledger.checkboxes.drop("case"))
    assert audit_of(replace(fine, ledger=ledger)).fates["fatal"] == 2


def test_replies_by_side(broken: Measured) -> None:
    table = replies_table([(broken, audit_of(broken))])
    tested, partner = table.frame.rows(named=True)
    assert (tested["System, side"], partner["System, side"]) == ("tiny-model, tested", "tiny-partner, partner")
    assert (tested["Asks"], tested["Broken"], tested["Silent"], tested["Empty"]) == ("11", "0 (0.0%)", "11 (100.0%)", "0 (0.0%)")
    assert (partner["Broken"], partner["Silent"], partner["Dialogues"], partner["Never wrote"]) == ("11 (100.0%)", "0 (0.0%)", "11", "0 (0.0%)")
    assert "Failed attempts" not in table.frame.columns
    trouble = {"tested": Counter(empty=2, rate_limited=5)}
    with_calls = replies_table([(broken, audit_of(broken, trouble))]).frame
    assert with_calls["Failed attempts"].to_list() == ["rate_limited 5, empty 2", NO_VALUE]


def test_failed_attempts_reach_the_warning(fine: Measured) -> None:
    a = audit_of(fine, {"tested": Counter(empty=1, length=1), "partner": Counter(thought_only=1)})
    # 2 of 11 asks and 2 attempts; 1 of 12 is not more than a tenth
    assert warning(fine, a.flags()) == (
        "Do not read this row as how tiny-model chats: 2 of 13 replies of tiny-model (15.4%) were empty, cut off or nothing "
        "but reasoning, failed attempts counted."
    )


def test_no_flag_no_warning(fine: Measured) -> None:
    assert warning(fine, audit_of(fine).flags()) is None
    assert banners([(fine, audit_of(fine))]) == []
    block = measured_block(fine)
    assert with_warning(block, None) is block


def test_a_warning_is_one_sentence_with_the_numbers_of_every_flag(broken: Measured) -> None:
    flags = [
        Flag("not_done", "run", 20, 100), Flag("mute", "tested", 12, 80), Flag("broken", "tested", 1, 16),
        Flag("recovered", "tested", 1, 4, "asked twice"), Flag("empty", "partner", 1, 8),
    ]  # fmt: skip
    text = warning(broken, flags)
    assert text == (
        "Do not read this row as how tiny-model chats: 20 of 100 planned dialogues (20.0%) are not there; tiny-model never "
        "wrote a message in 12 of 80 dialogues (15.0%); 1 of 16 replies of tiny-model (6.2%) broke the output contract even "
        "when asked twice; 1 of 4 replies of tiny-model (25.0%) had to be bent back or asked for twice (mostly: asked twice); "
        "1 of 8 replies of its partner tiny-partner (12.5%) were empty, cut off or nothing but reasoning, failed attempts counted."
    )
    for kind in get_args(FlagKind):
        one = warning(broken, [Flag(kind, "tested", 3, 7)])
        assert one is not None and "3 of 7" in one and one.count(".") == 2  # of 42.9% and the end


def test_banners_name_the_run_and_do_not_repeat_what_two_judges_share(broken: Measured, fine: Measured) -> None:
    other = replace(broken, judge="another")
    found = banners([(m, audit_of(m)) for m in (broken, other, fine)])
    assert found == [
        "Run broken: do not read its row as how tiny-model chats: 11 of 11 replies of its partner tiny-partner (100.0%) broke "
        "the output contract even when asked twice."
    ]


def test_the_warning_stands_in_the_heading_of_its_block_alone(broken: Measured) -> None:
    block = measured_block(broken)
    text = warning(broken, audit_of(broken).flags())
    assert with_warning(block, text).heading == f"{block.heading} · {text}"
    assert with_warning(block, text).tables is block.tables


def test_failed_dialogues_say_whose_endpoint_it_was_where_that_is_known(broken: Measured, fine: Measured) -> None:
    known, unknown = failed_dialogues(fine), failed_dialogues(broken)
    assert known is not None and unknown is not None
    assert known.frame.row(0)[1:4] == ("unreachable", "tested", "tiny-model")
    assert unknown.frame.row(0)[1:4] == ("unreachable", "not known", "not known")
    nameless = failed_dialogues(replace(fine, failures=[{"dialogue_id": "x", "fault": "deadline", "error": "", "side": None, "system": None}]))
    assert nameless is not None and nameless.frame.row(0) == ("x", "deadline", "not known", "not known", "")


def test_names_of_systems_are_escaped(broken: Measured) -> None:
    settings = broken.manifest["settings"] | {"system": {"name": "<i>x</i>"}}
    named = replace(broken, manifest=broken.manifest | {"settings": settings})
    assert "<i>x</i>" not in as_html(replies_table([(named, audit_of(named))]))
