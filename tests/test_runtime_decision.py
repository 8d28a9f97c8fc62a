"""The decision contract: what is read, what is recovered under a label, and what is an error."""

import json
from datetime import datetime

import pytest

from anthrolab.runtime.decision import decision_schema, parse_decision
from anthrolab.runtime.schedule import Plan

NOW = datetime(2026, 3, 6, 20, 31, 0)
GOOD = {"role": "甲", "response": {"content": "有啊 咋了", "timestamp": "2026-03-06T20:31:12", "end": False}}


def changed(**response: object) -> str:
    return json.dumps({**GOOD, "response": {**GOOD["response"], **response}}, ensure_ascii=False)  # type: ignore[dict-item]


def test_a_good_decision() -> None:
    parsed = parse_decision(json.dumps(GOOD, ensure_ascii=False), "甲", NOW, 600)
    assert parsed.plan == Plan("有啊 咋了", 12, False)
    assert parsed.error is None and parsed.recovered is None


@pytest.mark.parametrize(("content", "end"), [("", False), ("  ", False), ("说到一半", True)])
def test_silence(content: str, end: bool) -> None:
    plan = parse_decision(changed(content=content, end=end), "甲", NOW, 600).plan
    assert plan is not None and plan.silent


def test_a_code_fence_is_recovered_with_a_label() -> None:
    parsed = parse_decision(f"```json\n{json.dumps(GOOD)}\n```", "甲", NOW, 600)
    assert parsed.plan == Plan("有啊 咋了", 12, False)
    assert parsed.recovered == "JSON taken out of a code fence"


@pytest.mark.parametrize(("stamp", "delay"), [("2026-03-06T20:30:00", -60), ("2026-03-07T20:31:00", 86400)])
def test_times_outside_the_limits_are_labelled(stamp: str, delay: int) -> None:
    parsed = parse_decision(changed(timestamp=stamp), "甲", NOW, 600)
    assert parsed.plan is not None and parsed.plan.delay_s == delay
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
        ("[" * 3000, "no JSON that can be read (RecursionError)"),
        ("1" * 5000, "no JSON that can be read (ValueError)"),
        (changed(timestamp="2026-W10-5T20:31:00"), "timestamp"),
        (changed(timestamp="2026-03-06T203105.1"), "timestamp"),
        (changed(end="false"), "response.end is 'false'"),
        (changed(end=0), "response.end is 0"),
        (changed(content=None), "response.content is None"),
        (changed(timestamp="20:31:12"), "timestamp '20:31:12'"),
        (changed(timestamp="2026-03-06 20:31:12"), "timestamp"),
        (changed(timestamp="2026-03-06T20:31:12Z"), "timestamp"),
        (json.dumps({"role": "甲", "response": {"content": "好", "end": False}}), "response.timestamp is missing"),
    ],
)
def test_broken_replies_are_typed_errors(text: str, error: str) -> None:
    parsed = parse_decision(text, "甲", NOW, 600)
    assert parsed.plan is None and parsed.error is not None and error in parsed.error


def test_a_reply_cut_at_the_cap_is_an_error_even_if_it_parses() -> None:
    assert parse_decision(json.dumps(GOOD), "甲", NOW, 600, truncated=True).error == "the reply was cut off at the length cap"


def test_half_an_emoji_is_replaced_with_a_label() -> None:
    half = json.dumps(GOOD).replace("\\u6709", "\\ud83d")
    assert half != json.dumps(GOOD)
    parsed = parse_decision(half, "甲", NOW, 600)
    assert parsed.plan is not None
    assert parsed.plan.content == "\ufffd啊 咋了"
    assert parsed.recovered == "half characters replaced"
    parsed.plan.content.encode("utf-8")


def test_the_schema_names_the_role() -> None:
    assert decision_schema("林晓雯")["properties"]["role"]["enum"] == ["林晓雯"]
