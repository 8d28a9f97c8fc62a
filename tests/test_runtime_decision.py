"""The decision contract: what is read, what is recovered under a label, and what is an error.

`data/decisions/` holds replies as models write them, each with its outcome (its README says how to read them).
"""

import ast
import inspect
import json
import re
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from anthrolab.models import json_text
from anthrolab.models.answers import read_answer
from anthrolab.models.client import Reply
from anthrolab.models.reask import Read
from anthrolab.runtime import decision
from anthrolab.runtime.decision import decision_schema, parse_decision
from anthrolab.runtime.schedule import Plan
from anthrolab.yaml_files import read_yaml

NOW = datetime(2026, 3, 6, 20, 31, 0)
GOOD = {"role": "甲", "response": {"content": "有啊 咋了", "timestamp": "2026-03-06T20:31:12", "end": False}}
FILES = sorted((Path(__file__).parent / "data" / "decisions").glob("*.yaml"))
CASES: list[dict[str, Any]] = [case for path in FILES for case in read_yaml(path)]  # type: ignore[attr-defined]
OUTCOMES = [text for case in CASES for text in (case.get("recovered"), case.get("error")) if text]


def parse(text: str, finish_reason: str = "stop") -> Read[Plan]:
    return parse_decision(Reply(text, finish_reason=finish_reason), "甲", NOW, 600)


def changed(**response: object) -> str:
    return json.dumps({**GOOD, "response": {**GOOD["response"], **response}}, ensure_ascii=False)  # type: ignore[dict-item]


def grown(text: str | None, case: dict[str, Any]) -> str | None:
    for part, times in case.get("grow", {}).items():
        text = text.replace(part, part * times) if text else text
    return text


def answered(case: dict[str, Any]) -> Reply:
    """The reply of a case, read out of a chat completion as the endpoint reads it."""
    message = {field: case[field] for field in ("reasoning", "reasoning_content") if field in case}
    message["content"] = grown(case["text"], case)
    choice = {"message": message, "finish_reason": case.get("finish_reason", "stop")}
    return read_answer(json.dumps({"choices": [choice]}).encode(), is_chat=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_replies_as_models_write_them(case: dict[str, Any]) -> None:
    parsed = parse_decision(answered(case), case.get("role", "林晓雯"), NOW, 600)
    plan = case.get("plan")
    if plan:
        expected = Read(Plan(**{**plan, "content": grown(plan["content"], case)}), None, case.get("recovered"))
    else:
        expected = Read(None, case["error"])
    assert parsed == expected


def test_the_replies_are_many_distinct_and_described() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert all(case["seen"] and ("plan" in case) != ("error" in case) for case in CASES)
    assert sum("error" in case or "recovered" in case for case in CASES) >= 60


def texts_of(module: ModuleType) -> set[str]:
    """Every text with a blank in it that a module can build, as a pattern; docstrings and regexes left out."""
    tree = ast.parse(inspect.getsource(module))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = set()
    for node in ast.walk(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node] if isinstance(node, ast.Constant) else []
        known = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
        if " " in known and "\\" not in known and id(node) not in docs:
            texts.add("".join(re.escape(str(p.value)) if isinstance(p, ast.Constant) else ".+" for p in parts))
    return texts


def test_every_label_and_every_error_has_its_reply() -> None:
    texts = texts_of(json_text) | texts_of(decision)
    assert {r"trailing\ comma\ dropped", r"role\ is\ .+,\ not\ .+"} < texts and len(texts) > 25
    assert [text for text in sorted(texts) if not re.search(text, "\n".join(OUTCOMES))] == []


def test_a_good_decision() -> None:
    parsed = parse(json.dumps(GOOD, ensure_ascii=False))
    assert parsed.value == Plan("有啊 咋了", 12, False)
    assert parsed.error is None and parsed.recovered is None


@pytest.mark.parametrize(("content", "end"), [("", False), ("  ", False), ("说到一半", True)])
def test_silence(content: str, end: bool) -> None:
    plan = parse(changed(content=content, end=end)).value
    assert plan is not None and plan.silent


def test_a_code_fence_is_recovered_with_a_label() -> None:
    parsed = parse(f"```json\n{json.dumps(GOOD)}\n```")
    assert parsed.value == Plan("有啊 咋了", 12, False)
    assert parsed.recovered == "JSON taken out of a code fence"


@pytest.mark.parametrize(("stamp", "delay"), [("2026-03-06T20:30:00", -60), ("2026-03-07T20:31:00", 86400)])
def test_times_outside_the_limits_are_labelled(stamp: str, delay: int) -> None:
    parsed = parse(changed(timestamp=stamp))
    assert parsed.value is not None and parsed.value.delay_s == delay
    assert parsed.recovered == f"timestamp {stamp} clipped"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "empty"),
        ("好的，我来回复", "no JSON"),
        ("[]", "not an object"),
        (json.dumps({"response": GOOD["response"]}), "role is missing"),
        (json.dumps({**GOOD, "role": "乙"}), "role is"),
        (json.dumps({"role": "甲"}), "response is missing"),
        (json.dumps({"role": "甲", "response": "好"}), "response is missing or no object"),
        ("[" * 3000, "nested more than 100 deep"),
        ("1" * 5000, "no JSON"),
        (changed(timestamp="2026-W10-5T20:31:00"), "timestamp"),
        (changed(timestamp="2026-03-06T203105.1"), "timestamp"),
        (changed(end="false"), "response.end is 'false'"),
        (changed(end=0), "response.end is 0"),
        (changed(content=None), "response.content is None"),
        (changed(timestamp="20:31:12"), "timestamp is '20:31:12'"),
        (changed(timestamp="2026-03-06 20:31:12"), "timestamp"),
        (changed(timestamp="2026-03-06T20:31:12Z"), "timestamp"),
        (json.dumps({"role": "甲", "response": {"content": "好", "end": False}}), "response.timestamp is missing"),
    ],
)
def test_broken_replies_are_typed_errors(text: str, error: str) -> None:
    parsed = parse(text)
    assert parsed.value is None and parsed.error is not None and error in parsed.error


def test_a_reply_cut_at_the_cap_is_an_error_even_if_it_parses() -> None:
    assert parse(json.dumps(GOOD), "length").error == "the reply was cut off at the length cap"


def test_half_an_emoji_is_replaced_with_a_label() -> None:
    half = json.dumps(GOOD).replace("\\u6709", "\\ud83d")
    assert half != json.dumps(GOOD)
    parsed = parse(half)
    assert parsed.value is not None
    assert parsed.value.content == "\ufffd啊 咋了"
    assert parsed.recovered == "half characters replaced"
    parsed.value.content.encode("utf-8")


def test_the_schema_names_the_role() -> None:
    assert decision_schema("林晓雯")["properties"]["role"]["enum"] == ["林晓雯"]
