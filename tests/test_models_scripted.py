"""The scripted model and the scripted server that users test their pipelines with."""

import asyncio
import json
import urllib.request

import pytest

from anthrolab.models.client import ModelError, Reply, Request
from anthrolab.models.scripted import ScriptedModel, serve


def ask(model, *prompts):
    return asyncio.run(_ask(model, prompts))


async def _ask(model, prompts):
    return [await model.ask(Request("m", prompt=p)) for p in prompts]


def test_a_list_answers_in_order_and_then_says_that_it_ran_out():
    model = ScriptedModel(["在呢", Reply("咋", finish_reason="length")])
    assert ask(model, "一", "二") == [Reply("在呢", finish_reason="stop"), Reply("咋", finish_reason="length")]
    assert [r.prompt for r in model.requests] == ["一", "二"]
    with pytest.raises(ModelError, match="only 2 answers") as caught:
        ask(model, "三")
    assert caught.value.fault == "no_reply"


def test_a_function_answers_by_the_request():
    model = ScriptedModel(lambda r: f"{r.prompt}？", identity="echo")
    assert [r.text for r in ask(model, "一", "二")] == ["一？", "二？"]
    assert model.identity == "echo"


def test_an_error_in_the_script_is_raised():
    with pytest.raises(ModelError, match="too slow"):
        ask(ScriptedModel([ModelError("timeout", "too slow")]), "一")


def test_the_server_speaks_plain_http_and_counts_its_calls():
    with serve(lambda call: f"第{call.number}", models=["m1"]) as server:
        with urllib.request.urlopen(f"{server.url}/models") as answer:
            assert [m["id"] for m in json.load(answer)["data"]] == ["m1"]
        for number in (1, 2):
            data = json.dumps({"model": "m1", "prompt": "好"}).encode()
            with urllib.request.urlopen(f"{server.url}/completions", data=data) as answer:
                assert json.load(answer)["choices"][0]["text"] == f"第{number}"
    assert [call.number for call in server.calls] == [1, 2]
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{server.url}/models")
