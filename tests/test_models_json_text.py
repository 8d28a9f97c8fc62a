"""The one object in a reply: plain JSON stays what it is, form is mended under a label, nothing is guessed."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.models.client import Reply
from anthrolab.models.json_text import MAX_DEPTH, Found, read_object

MANY = 100_000

# Texts that are likely to be taken for JSON's own marks.
marks = st.text(alphabet="\"'“”＂：，｛｝{}[]:,\\/#*`<>|. \n\t好aTrueNone\u00a0\u200b\ufeff", max_size=30)
texts = st.one_of(st.text(max_size=12), marks)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=4)


def read(text: str) -> Found:
    return read_object(Reply(text))


@settings(deadline=None)
@given(objects, st.booleans(), st.sampled_from([None, 2]))
def test_plain_json_is_read_as_it_is(value: dict[str, Any], ascii_only: bool, indent: int | None) -> None:
    assert read(json.dumps(value, ensure_ascii=ascii_only, indent=indent)) == Found(value)


@settings(deadline=None)
@given(objects, st.booleans())
def test_what_stands_around_an_object_does_not_reach_it(value: dict[str, Any], ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    for around, label in {
        "```json\n{}\n```": "JSON taken out of a code fence",
        "好的，[20:31] 我'd这样\"回：\n{}\n以上。": "words around the JSON dropped",
        "\ufeff{}\u3000": "invisible characters dropped",
        "</think>{}": "think tags dropped",
        "{}</s>": "template tokens dropped",
        "{} {}": "repeated object taken once",
    }.items():
        assert read(around.replace("{}", text)) == Found(value, None, label)
    assert read(json.dumps(text)) == Found(value, None, "JSON unpacked from a JSON string")
    thought = Reply(" \n", reasoning=text)
    assert read_object(thought) == Found(value, None, "JSON taken out of the reasoning field")


@settings(deadline=None)
@given(objects)
def test_pythons_own_spelling_of_an_object_is_read_or_refused_but_never_changed(value: dict[str, Any]) -> None:
    found = read(repr(value))
    if found.value is None:
        assert found.error and re.search(r"\\[xU]|inf|nan", repr(value))  # escapes and numbers that only Python has
    else:
        assert found.value == value


@settings(deadline=None)
@given(texts, texts)
def test_full_width_syntax_keeps_what_stands_in_its_strings(key: str, value: str) -> None:
    key, value = (t.translate(dict.fromkeys(map(ord, "“”"))) for t in (key, value))
    inner = [json.dumps(t, ensure_ascii=False)[1:-1] for t in (key, value)]
    found = read(f"｛“{inner[0]}”：“{inner[1]}”，｝")
    assert found == Found({key: value}, None, "full-width marks read as JSON; trailing comma dropped")


@settings(deadline=None)
@given(objects, st.data())
def test_what_is_cut_off_is_never_completed(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps({"a": value}, ensure_ascii=False)
    cut = data.draw(st.integers(1, len(text) - 1))
    assert read(text[:cut]) == Found(None, "the reply's JSON is cut off")


@settings(deadline=None)
@given(st.one_of(st.text(), marks, st.lists(st.sampled_from(['{"a":', "{", "}", '"', "1", ",", "“", "”", "'", "/*", "[", "]", "\\", "\ud83d", "：", "<think>"])).map("".join)))  # fmt: skip
def test_no_text_raises(text: str) -> None:
    for reply in (Reply(text), Reply("", reasoning=text), Reply(text, finish_reason="length")):
        found = read_object(reply)
        assert (found.value is None) == (found.error is not None)
        json.dumps(found.value, ensure_ascii=False).encode()
        (found.error or "").encode()
    assert read_object(Reply(text, finish_reason="length")).error == "the reply was cut off at the length cap"


@pytest.mark.parametrize(
    "text",
    [
        *(part * MANY for part in "{[\"'“”＂\\`<｛"),
        *(
            part * MANY
            for part in ('{"', "{'", "{“", '{"a":', '{"a":[', '["', "[{", "{\\", '"\\', "/*", "{//", "<|", "[ ", "{a")
        ),
        *(start + part * MANY for start in ('{"', "{'", "{“", "{＂") for part in ("a", '\\"', "“", "\\", " ", "\n")),
        *(start + part * MANY for start in ("{/*", "[", "{") for part in ("*", " ", "/", "\ufeff", ",", '"",', "“”")),
        *("{}" + part * MANY for part in ("<|", "<`", "<[", "</", "\u200b{", "<" + "|" * 50)),
        '{"a":' * MANY + "1" + "}" * MANY,
        '{"a":' + "[" * MANY + "]" * MANY + "}",
        '{"a":' + "1" * MANY + "}",
    ],
    ids=lambda text: f"{text[:8]!r}...{text[-8:]!r}",
)
def test_hostile_texts_do_not_cost_more_than_their_length(text: str) -> None:
    # 100,000 characters and more: a reader that starts again at every bracket or quote would not come back.
    found = read(text)
    assert found.recovered == "words around the JSON dropped" if text.startswith("{}<") else found.error


def test_many_small_objects_are_one_or_an_error() -> None:
    assert read("{}" * 5000).recovered == "repeated object taken once"
    assert read('{"a":1}' * 5000 + '{"a":2}').error == "the reply holds two different objects"


def test_brackets_may_nest_up_to_the_limit() -> None:
    assert read('{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH).recovered is None
    deeper = '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1)
    assert read(deeper).error == "the reply's JSON is nested more than 100 deep"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"a": 1 2}', "Expecting ',' delimiter"),
        ('{"a": "b" "c"}', "Expecting ',' delimiter"),
        ('{"a": tr ue}', "Expecting value"),
        ('{"a": 1/**/2}', "Expecting ',' delimiter"),
        ('{"a": Infinity}', "Infinity"),
        ('{"a": 1,,}', "Expecting property name enclosed in double quotes"),
        ("{'a': b'c'}", "Expecting value"),
        ("{'a', 'b'}", "Expecting ':' delimiter"),
        ('{"a": """b"""}', "Expecting ',' delimiter"),
    ],
)
def test_tokens_are_not_run_together(text: str, error: str) -> None:
    assert read(text).error == f"the reply is no JSON ({error})"


def test_equal_means_equal_json() -> None:
    assert read('{"a": true, "a": 1}').error == "the reply's JSON gives 'a' twice with different values"
    assert read('{"a": [1], "a": [1]}') == Found({"a": [1]}, None, "repeated key taken once")
    assert read('{"a": 0} {"a": false}').error == "the reply holds two different objects"


def test_the_text_wins_over_the_thought() -> None:
    assert read_object(Reply('{"a": 1}', reasoning='{"a": 2}')) == Found({"a": 1})
    assert read_object(Reply("在", reasoning='{"a": 2}')).error == "the reply holds no JSON object"
    assert read_object(Reply("", reasoning='{"a": 1} {"a": 2}')).error == "the reply is empty"
    assert read_object(Reply("", reasoning='{"a": 2}')).value == {"a": 2}


def test_every_text_of_an_object_can_be_written_to_a_file() -> None:
    found = read('{"\\ud83d": ["笑\\ude02", "\\ud83d\\ude02"]}')
    assert found == Found({"\ufffd": ["笑\ufffd", "😂"]}, None, "half characters replaced")


@given(st.dictionaries(st.text(max_size=6), st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=3), x, max_size=3), max_leaves=8), max_size=4), st.sampled_from([",", ", "]))
def test_plain_json_is_read_as_the_slow_reader_reads_it(value: dict[str, object], comma: str) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(comma, ":"))
    fast, slow = read_object(Reply(text)), read_object(Reply(f"好 {text}"))
    assert fast.value == slow.value == (value if fast.value is not None else None) or "half characters" in (fast.recovered or "")
    assert (fast.recovered or "") == (slow.recovered or "").removesuffix("words around the JSON dropped").removesuffix("; ")


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', "{" * 150 + "}" * 150, '{"a": ' + "9" * 5000 + "}", '{"a": 1}{"a": 2}', '{"a": 1'])
def test_what_is_no_plain_object_is_refused_as_before(text: str) -> None:
    assert read_object(Reply(text)).value is None
