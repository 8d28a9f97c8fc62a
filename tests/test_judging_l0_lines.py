"""The gate over files of dialogues from anywhere: one row a line, bad lines told apart."""

import json
from pathlib import Path
from typing import Any

import pytest

from anthrolab.errors import AnthrolabError
from anthrolab.judging.l0 import gate_file
from tests.cards_for_tests import make_scenario
from tests.test_judging_l0_rules import FACTS, card


def record(**changes: Any) -> dict[str, Any]:
    """A dialogue from outside: no asks, no guards, no cards."""
    return {
        "dialogue_id": "x1", "binding": None, "scenario": None, "evaluated_role": "a", "sample": 0,
        "speakers": {"a": {"name": "小林", "persona": None}, "b": {"name": "老周", "persona": None}},
        "start": None, "horizon_minutes": None, "stop": None,
        "messages": [
            {"speaker": "b", "content": "周末有空没", "at": "2026-03-06T20:31:00", "opener": True},
            {"speaker": "a", "content": "我就在你身后", "at": "2026-03-06T20:31:12", "opener": False},
            {"speaker": "b", "content": "[图片]", "at": "2026-03-06T20:32:12", "opener": False},
        ],
        **changes,
    }  # fmt: skip


def gate(tmp_path: Path, *lines: str | bytes, remote: bool = True) -> list[dict[str, Any]]:
    path = tmp_path / "dialogues.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode("utf-8") for line in lines))
    return list(gate_file(path, {"p01": card(FACTS["f27"])}, {"s01": make_scenario(id="s01", remote=remote)}))


def test_the_row_of_a_dialogue(tmp_path: Path) -> None:
    assert gate(tmp_path, json.dumps(record())) == [
        {
            "dialogue_id": "x1",
            "valid": False,
            "reason": "fatal",
            "violations": [{"id": "L0-03", "severity": "fatal", "message_index": 1, "evidence": "我就在你身后"}],
            "partner_violations": [{"id": "L0-02", "severity": "fatal", "message_index": 2, "evidence": "[图片]"}],
            "executed": ["L0-01", "L0-02", "L0-03", "L0-05", "L0-08"],
        }
    ]


def test_cards_are_looked_up_by_id(tmp_path: Path) -> None:
    messages = [{"speaker": "a", "content": "我今年32了", "at": "2026-03-06T20:31:00", "opener": False}]
    known = {"a": {"name": "小林", "persona": "p01"}, "b": {"name": "老周", "persona": None}}
    unknown = {"a": {"name": "小林", "persona": "nobody"}, "b": {"name": "老周"}}
    first, second = gate(
        tmp_path,
        json.dumps(record(speakers=known, messages=messages)),
        json.dumps(record(speakers=unknown, messages=messages)),
    )
    assert [v["id"] for v in first["violations"]] == ["L0-06"]
    assert "L0-06" in first["executed"]
    assert (second["violations"], "L0-06" in second["executed"]) == ([], False)


def test_a_known_scenario_in_one_place(tmp_path: Path) -> None:
    known, unknown = gate(
        tmp_path, json.dumps(record(scenario="s01")), json.dumps(record(scenario="elsewhere")), remote=False
    )
    assert (known["valid"], "L0-03" in known["executed"]) == (True, False)
    assert (unknown["valid"], "L0-03" in unknown["executed"]) == (False, True)


@pytest.mark.parametrize("field", ["speaker", "content", "at", "opener"])
def test_a_message_without_a_field(tmp_path: Path, field: str) -> None:
    broken = record(dialogue_id="x2")
    del broken["messages"][1][field]
    rows = gate(tmp_path, json.dumps(record()), json.dumps(broken), json.dumps(record(dialogue_id="x3")))
    assert [row.get("dialogue_id") for row in rows] == ["x1", "x2", "x3"]
    assert set(rows[1]) == {"dialogue_id", "error"}
    assert f"messages.1.{field}" in rows[1]["error"] and rows[1]["error"].startswith("line 2")
    assert "error" not in rows[2]


@pytest.mark.parametrize(
    "line",
    [
        "not json", '{"dialogue_id": "x9", "messages": [', "[1, 2]", "3", b"\xff\xfe", "[" * 5000,
        '{"dialogue_id": "\\ud800"}', '{"dialogue_id": 7}', '{"messages": []}',
    ],
)  # fmt: skip
def test_a_line_that_is_no_dialogue(tmp_path: Path, line: str | bytes) -> None:
    rows = gate(tmp_path, line, json.dumps(record()))
    assert set(rows[0]) == {"error"}
    assert "\n" not in rows[0]["error"]
    assert rows[1]["dialogue_id"] == "x1"
    json.dumps(rows, ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize(
    "changes",
    [
        {"evaluated_role": "c"}, {"speakers": {"a": {"name": "小林"}}}, {"messages": None},
        {"messages": [{"speaker": "a", "content": "在", "at": "20:31", "opener": False}]},
        {"messages": [{"speaker": "a", "content": 3, "at": "2026-03-06T20:31:00", "opener": False}]},
        {"messages": [{"speaker": "a", "content": "在", "at": "2026-03-06T20:31:00", "opener": "false"}]},
    ],
)  # fmt: skip
def test_a_wrong_value_is_an_error_of_its_line(tmp_path: Path, changes: dict[str, Any]) -> None:
    (row,) = gate(tmp_path, json.dumps(record(**changes)))
    assert set(row) == {"dialogue_id", "error"}


def test_blank_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    rows = gate(
        tmp_path, b"\xef\xbb\xbf" + json.dumps(record()).encode(), "", "   ", json.dumps(record(dialogue_id="x2")), ""
    )
    assert [(row["dialogue_id"], "error" in row) for row in rows] == [("x1", False), ("x2", False)]


def test_windows_line_ends(tmp_path: Path) -> None:
    rows = gate(tmp_path, json.dumps(record()) + "\r", json.dumps(record(dialogue_id="x2")) + "\r")
    assert [row["dialogue_id"] for row in rows] == ["x1", "x2"]


def test_a_dialogue_without_the_optional_fields(tmp_path: Path) -> None:
    bare = {
        key: value
        for key, value in record().items()
        if key in ("dialogue_id", "evaluated_role", "speakers", "messages")
    }
    (row,) = gate(tmp_path, json.dumps(bare))
    assert row["reason"] == "fatal"


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    assert gate(tmp_path, "") == []


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(AnthrolabError, match=r"nowhere\.jsonl"):
        list(gate_file(tmp_path / "nowhere.jsonl", {}, {}))
