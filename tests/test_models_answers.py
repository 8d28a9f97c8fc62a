"""Reading a server's answer: what is said, what was thought, what is no answer."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.models.answers import UnreadableAnswerError, describe_body, read_answer, split_reasoning
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.client import Request
from anthrolab.models.endpoint import Endpoint
from anthrolab.models.scripted import Answer, reply_body, serve


def chat(message, finish_reason="stop", **more):
    return json.dumps({"choices": [{"message": message, "finish_reason": finish_reason}], **more}).encode()


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_fields_of_both_names_stay_out_of_the_text(field):
    reply = read_answer(chat({"content": "早点睡", field: "他累了"}), is_chat=True)
    assert (reply.text, reply.reasoning) == ("早点睡", "他累了")


@pytest.mark.parametrize(
    "message",
    [
        {"content": "早点睡", "reasoning": "他累了"},
        {"content": "早点睡", "reasoning_content": "他累了"},
        {"content": "早点睡", "reasoning": "他累了", "reasoning_content": "他累了"},
        {"content": "<think>他累了</think>早点睡"},
        {"content": "他累了</think>\n早点睡", "reasoning": None},
        {"content": [{"type": "text", "text": "<think>他累了</think>早点睡"}]},
    ],
)
def test_reasoning_is_kept_in_the_call_log_and_never_in_what_is_said(tmp_path, message):
    async def work(url):
        async with Endpoint(url) as client:
            return await Recorded(client, CallLog(tmp_path / "calls.jsonl")).ask(Request("m", messages=[]))

    with serve(lambda call: Answer(reply_body(call, None, message=message))) as server:
        reply = asyncio.run(work(server.url))
    (row,) = map(json.loads, (tmp_path / "calls.jsonl").read_text(encoding="utf-8").splitlines())
    for kept in (reply, CallLog(tmp_path / "calls.jsonl").get(reply.call)):
        assert (kept.text, kept.reasoning) == ("早点睡", "他累了")
    assert (row["reply"]["text"], row["reply"]["reasoning"]) == ("早点睡", "他累了")


@pytest.mark.parametrize(
    ("content", "said", "thought"),
    [
        ("<think>他累了</think>\n\n早点睡", "早点睡", "他累了"),
        ("<think>他累", "", "他累"),
        ("他累了</think>早点睡", "早点睡", "他累了"),
        ("<think></think>早点睡", "早点睡", None),
        ("<think>一</think>早点<THINK>二</THINK>睡", "早点睡", "一\n二"),
        ("<thinking>他累了</thinking>早点睡", "早点睡", "他累了"),
        (" 在呢", " 在呢", None),
        ("1<2 吧", "1<2 吧", None),
    ],
)
def test_think_blocks(content, said, thought):
    assert split_reasoning(content) == (said, thought)


@given(st.lists(st.sampled_from(["<think>", "</think>", "好的", "\n", "1<2"]), max_size=12).map("".join))
def test_no_think_tag_survives_in_what_is_said(content):
    said, thought = split_reasoning(content)
    assert "<think>" not in said
    assert "</think>" not in said
    if "think>" not in content:
        assert (said, thought) == (content, None)


@given(st.text(alphabet="好的呢 \n", max_size=20), st.text(alphabet="他累了 \n", max_size=20))
def test_a_thought_before_the_answer_never_reaches_it(said, thought):
    assert split_reasoning(f"<think>{thought}</think>{said}") == (said.strip(), thought.strip() or None)


def test_a_thought_cut_by_the_length_cap_is_a_reply_without_text():
    reply = read_answer(chat({"content": "<think>让我想想"}, "length"), is_chat=True)
    assert reply.text == ""
    assert reply.reasoning == "让我想想"
    assert reply.truncated


def test_usage_with_cached_tokens():
    usage = {"prompt_tokens": 450, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 400}}
    reply = read_answer(chat({"content": "嗯"}, usage=usage), is_chat=True)
    assert (reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens) == (450, 400, 7)


def test_cached_tokens_of_llama_cpp_timings_and_absent_usage():
    assert read_answer(chat({"content": "嗯"}, timings={"cache_n": 33}), is_chat=True).cached_tokens == 33
    bare = read_answer(chat({"content": "嗯"}), is_chat=True)
    assert (bare.prompt_tokens, bare.cached_tokens, bare.completion_tokens) == (None, None, None)


def test_an_empty_completion_is_a_reply_and_an_empty_chat_message_is_none():
    completion = json.dumps({"choices": [{"text": "", "finish_reason": "stop"}]}).encode()
    assert read_answer(completion, is_chat=False).text == ""
    for message in ({"content": ""}, {"content": None}, {"content": " \n"}, {}):
        with pytest.raises(UnreadableAnswerError, match="empty message") as caught:
            read_answer(chat(message), is_chat=True)
        assert caught.value.fault == "empty"


@pytest.mark.parametrize("body", [{"choices": []}, {"choices": None}, {}, {"choices": ["x"]}])
def test_no_choices_is_empty(body):
    with pytest.raises(UnreadableAnswerError) as caught:
        read_answer(json.dumps(body).encode(), is_chat=True)
    assert caught.value.fault == "empty"


def test_a_refusal_is_no_chat_text():
    with pytest.raises(UnreadableAnswerError, match="这个我不能说") as caught:
        read_answer(chat({"content": None, "refusal": "这个我不能说"}), is_chat=True)
    assert caught.value.fault == "refusal"


def test_an_error_inside_a_200_is_no_answer():
    with pytest.raises(UnreadableAnswerError, match="quota") as caught:
        read_answer(b'{"error": {"message": "quota used up", "code": 402}}', is_chat=True)
    assert caught.value.fault == "rejected"


@pytest.mark.parametrize("body", [b"", b"<!doctype html><html>", b"ok", b"[1]", b'{"choices": [', b"\xff\xfe"])
def test_what_is_no_json_object_is_not_json(body):
    with pytest.raises(UnreadableAnswerError) as caught:
        read_answer(body, is_chat=True)
    assert caught.value.fault == "not_json"


def test_half_an_emoji_can_be_written_to_a_file():
    reply = read_answer(rb'{"choices": [{"message": {"content": "\u597d\ud83d"}}]}', is_chat=True)
    assert reply.text == "好\ufffd"
    assert reply.text.encode("utf-8").decode("utf-8") == reply.text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "no such\\nmodel"}}', "'no such model'"),
        (b'{"error": "no such model"}', "'no such model'"),
        (b'{"detail": [{"msg": "bad"}]}', '\'[{"msg": "bad"}]\''),
        (b"<html><head><title>502 Bad\nGateway</title>", "an HTML page ('502 Bad Gateway')"),
        (b"<!DOCTYPE html><p>hi", "an HTML page"),
        (b"", "an empty body"),
        (b"upstream died", "text that is no JSON ('upstream died')"),
    ],
)
def test_the_servers_words_in_one_line(body, said):
    assert describe_body(body) == said


def test_long_words_are_shortened():
    assert len(describe_body(json.dumps({"error": "x" * 5000}).encode())) <= 202
