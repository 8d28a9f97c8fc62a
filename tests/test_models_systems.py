"""The systems file: what it accepts, and the line that it answers to each mistake."""

import asyncio

import pytest

from anthrolab.models.client import Request, Usage
from anthrolab.models.opening import open_model, open_models
from anthrolab.models.scripted import serve
from anthrolab.models.systems import (
    Prices,
    System,
    SystemsError,
    default_systems_path,
    find_partner,
    find_system,
    load_systems,
)

KEY = "sk-proj-0123456789abcdef"
BASE = """\
systems:
  - name: qwen
    endpoint: http://localhost:8000/v1
    model: Qwen/Qwen3-8B
    server: vllm
    policy: chat
    partner: other
  - name: other
    endpoint: embedded
    model: gemma3-270m
    server: llama.cpp
    policy: transcript
"""
MESSAGES = [{"role": "system", "content": "设定"}, {"role": "user", "content": "在吗"}]


def load(tmp_path, text):
    path = tmp_path / "systems.yaml"
    path.write_text(text, encoding="utf-8")
    return load_systems(path)


def system(**fields):
    return System(
        **{"name": "x", "endpoint": "http://h/v1", "model": "m", "server": "vllm", "policy": "chat", **fields}
    )


def test_the_file_that_comes_with_anthrolab_has_the_embedded_model_as_a_whole_system():
    systems = load_systems(default_systems_path())
    gemma = systems["gemma-3-270m"]
    assert gemma.embedded
    assert gemma.policy == "transcript"
    assert find_partner(systems, gemma) is gemma


def test_the_commented_examples_of_that_file_are_valid_when_uncommented(tmp_path):
    lines = []
    for line in default_systems_path().read_text(encoding="utf-8").splitlines():
        is_example = line.startswith("  # - ") or line.startswith("  #   ")
        lines.append(line.replace("  # ", "  ", 1) if is_example else line)
    systems = load(tmp_path, "\n".join(lines))
    assert list(systems) == ["gemma-3-270m", "qwen3-8b", "hosted", "my-gguf"]
    assert systems["hosted"].prices == Prices(input=0.40, output=1.60)
    assert systems["qwen3-8b"].thinking is False


def test_systems_keep_the_order_of_the_file(tmp_path):
    assert list(load(tmp_path, BASE)) == ["qwen", "other"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("    policy: chat\n", "", r"systems\[0\] \(qwen\): policy: is missing; add it"),
        ("    policy: chat", "    polcy: chat", r"polcy: is no field of a system \(did you mean 'policy'\?\)"),
        (
            "    policy: chat",
            "    policy: chatty",
            r"systems\[0\] \(qwen\): policy: Input should be 'chat' or 'transcript'",
        ),
        ("server: vllm", "server: sglang", r"\(qwen\): server: Input should be 'llama.cpp', 'vllm' or 'openai'"),
        ("http://localhost:8000/v1", "localhost:8000", "endpoint: is neither 'embedded' nor a URL"),
        ("http://localhost:8000/v1", f"http://me:{KEY}@h/v1", "endpoint: holds a user, password or query"),
        ("server: llama.cpp", "server: vllm", r"\(other\): server: the embedded server is llama\.cpp"),
        ("partner: other", "partner: othr", r"qwen: partner: no system 'othr' \(did you mean 'other'\?\)"),
        ("partner: other", "max_tokens: 0", "max_tokens: Input should be greater than 0"),
        ("partner: other", "retries: '3'", "retries: Input should be a valid integer"),
        ("partner: other", "sampling: {stream: true}", "sampling.stream: is set by anthrolab"),
        ("partner: other", "sampling: {temperature: .nan}", "sampling: holds a number that is not finite"),
        ("partner: other", "sampling: {max_completion_tokens: 9}", "sampling.max_completion_tokens: is set by anthrolab"),
        ("partner: other", "thinking: false", "thinking: is set but thinking_style says not how"),
        (
            "partner: other",
            "thinking: false\n    thinking_style: reasoning_effort\n    sampling: {reasoning_effort: high}",
            "thinking: is false and sampling.reasoning_effort says otherwise",
        ),
        (
            "partner: other",
            "thinking: true\n    thinking_style: reasoning_effort\n    sampling: {reasoning_effort: none}",
            "thinking: is true and sampling.reasoning_effort says otherwise",
        ),
        ("policy: transcript", "policy: transcript\n    max_tokens_field: max_completion_tokens", "max_tokens_field: only chats"),
        ("partner: other", f"api_key: {KEY}", r"api_key: is no field of a system \(did you mean 'api_key_env'\?\)"),
        ("partner: other", f"api_key_env: {KEY}", "api_key_env: is no name of an environment variable"),
        (
            "partner: other",
            "prices: {input: -1, output: 2}",
            "prices.input: Input should be greater than or equal to 0",
        ),
        ("name: other", "name: qwen", "name: stands twice"),
        ("name: other", "name: my model", "name: String should match pattern"),
        ("name: other", "name: other\n    name: again", "not valid YAML"),
        ("systems:", "sytems:", "has not the one field 'systems'"),
        (BASE, "systems: []", "has not the one field 'systems'"),
        (BASE, "- a", "has not the one field 'systems'"),
        (BASE, "systems: [a]", r"systems\[0\]: is no mapping"),
        (BASE, "systems: {", "not valid YAML"),
    ],
)
def test_each_mistake_has_its_line_with_file_field_and_fix(tmp_path, old, new, says):
    assert old in BASE
    with pytest.raises(SystemsError, match=says) as caught:
        load(tmp_path, BASE.replace(old, new))
    assert str(tmp_path / "systems.yaml") in str(caught.value)
    assert KEY not in str(caught.value)


def test_all_mistakes_are_told_at_once(tmp_path):
    with pytest.raises(SystemsError) as caught:
        load(tmp_path, BASE.replace("server: vllm", "server: x").replace("name: other", "nam: other"))
    assert len(str(caught.value).splitlines()) == 3


def test_a_missing_file(tmp_path):
    with pytest.raises(Exception, match=r"none\.yaml: cannot be read"):
        load_systems(tmp_path / "none.yaml")


def test_an_unknown_system_gets_the_likely_name_and_the_list(tmp_path):
    systems = load(tmp_path, BASE)
    assert find_system(systems, "qwen").model == "Qwen/Qwen3-8B"
    with pytest.raises(SystemsError, match=r"no system 'qwem' \(did you mean 'qwen'\?\); there are: qwen, other"):
        find_system(systems, "qwem")


def test_no_partner_is_never_taken_for_itself(tmp_path):
    systems = load(tmp_path, BASE)
    assert find_partner(systems, systems["qwen"]).name == "other"
    assert find_partner(systems, systems["qwen"], "qwen").name == "qwen"
    with pytest.raises(SystemsError, match="other: partner: names nobody"):
        find_partner(systems, systems["other"])


def test_a_request_has_sampling_cap_and_the_callers_parameters_over_them():
    made = system(sampling={"temperature": 0.7, "top_p": 0.8}, max_tokens=64).request(
        messages=MESSAGES, params={"temperature": 0}, salt="s"
    )
    params = {"temperature": 0, "top_p": 0.8, "max_tokens": 64}
    assert made == Request("m", messages=MESSAGES, params=params, salt="s")
    assert system(max_tokens=None).body() == {}


@pytest.mark.parametrize(
    ("style", "thinking", "body"),
    [
        ("enable_thinking", False, {"chat_template_kwargs": {"enable_thinking": False}}),
        ("enable_thinking", True, {"chat_template_kwargs": {"enable_thinking": True}}),
        ("enable_thinking", None, {}),
        ("reasoning_effort", True, {"reasoning_effort": "medium"}),
        ("reasoning_effort", False, {"reasoning_effort": "none"}),
        ("no_think_suffix", False, {}),
    ],
)
def test_thinking_is_sent_in_the_servers_own_way(style, thinking, body):
    assert system(thinking_style=style, thinking=thinking, max_tokens=None).body() == body


def test_the_no_think_suffix_stands_at_the_last_user_message_and_leaves_the_callers_list_alone():
    talk = [*MESSAGES, {"role": "user", "content": "人呢"}, {"role": "assistant", "content": "在"}]
    made = system(thinking_style="no_think_suffix", thinking=False).request(messages=talk)
    assert made.messages is not None
    assert [m["content"] for m in made.messages] == ["设定", "在吗", "人呢 /no_think", "在"]
    assert talk[2]["content"] == "人呢"


def test_sampling_wins_over_what_thinking_would_send():
    given = {"reasoning_effort": "high", "chat_template_kwargs": {"a": 1}}
    assert system(sampling=given, thinking_style="reasoning_effort", thinking=True).body()["reasoning_effort"] == "high"
    merged = system(sampling=given, thinking_style="enable_thinking", thinking=False).body()["chat_template_kwargs"]
    assert merged == {"a": 1, "enable_thinking": False}


def test_a_judge_is_greedy_and_keeps_what_is_no_sampling():
    noisy = {"temperature": 1.0, "top_p": 0.9, "dry_multiplier": 0.8, "presence_penalty": 0.6, "provider": {"only": ["x"]}}
    judge = system(sampling=noisy, thinking_style="enable_thinking", thinking=True, max_tokens=64)
    assert judge.as_judge().body() == {
        "temperature": 0, "max_tokens": 4096, "provider": {"only": ["x"]}, "chat_template_kwargs": {"enable_thinking": True},
    }  # fmt: skip
    assert judge.as_judge() == judge.as_judge().as_judge()


def test_what_sampling_sets_to_null_is_never_sent():
    silent = system(sampling={"temperature": None, "top_p": 0.8}, max_tokens=64)
    assert silent.body() == {"top_p": 0.8, "max_tokens": 64}
    assert silent.request(messages=MESSAGES, params={"temperature": 0}).params == silent.body()
    assert silent.as_judge().body() == {"max_tokens": 4096}


def test_the_length_cap_goes_under_the_name_that_the_server_wants():
    renamed = system(max_tokens_field="max_completion_tokens", max_tokens=64)
    assert renamed.body() == {"max_completion_tokens": 64}
    assert renamed.request(messages=MESSAGES, params={"max_tokens": 9}).params == {"max_completion_tokens": 9}
    assert renamed.as_judge().body() == {"temperature": 0, "max_completion_tokens": 4096}


def test_no_system_role_puts_its_text_before_the_first_user_message():
    folding = system(system_role=False)
    talk = [*MESSAGES, {"role": "assistant", "content": "在"}, {"role": "user", "content": "下班没"}]
    assert folding.request(messages=talk).messages == [{"role": "user", "content": "设定\n\n在吗"}, *talk[2:]]
    assert folding.request(messages=talk[1:]).messages == talk[1:]
    assert folding.request(messages=MESSAGES[:1]).messages == [{"role": "user", "content": "设定"}]
    assert folding.request(messages=[*talk, MESSAGES[0]]).messages[0]["content"] == "设定\n\n设定\n\n在吗"
    assert [m["content"] for m in talk] == ["设定", "在吗", "在", "下班没"]
    both = system(system_role=False, thinking_style="no_think_suffix", thinking=False).request(messages=MESSAGES)
    assert both.messages == [{"role": "user", "content": "设定\n\n在吗 /no_think"}]


SWITCHES = ("chat_template_kwargs", "reasoning_effort")


@pytest.mark.parametrize("as_judge", [False, True])
@pytest.mark.parametrize(
    ("style", "thinking", "sampling", "switch", "ends"),
    [
        ("enable_thinking", True, {}, {"chat_template_kwargs": {"enable_thinking": True}}, ""),
        ("enable_thinking", False, {}, {"chat_template_kwargs": {"enable_thinking": False}}, ""),
        ("reasoning_effort", True, {}, {"reasoning_effort": "medium"}, ""),
        ("reasoning_effort", True, {"reasoning_effort": "high"}, {"reasoning_effort": "high"}, ""),
        ("reasoning_effort", False, {}, {"reasoning_effort": "none"}, ""),
        ("reasoning_effort", False, {"reasoning_effort": "minimal"}, {"reasoning_effort": "minimal"}, ""),
        ("no_think_suffix", True, {}, {}, " /think"),
        ("no_think_suffix", False, {}, {}, " /no_think"),
        ("none", None, {}, {}, ""),
        ("enable_thinking", None, {}, {}, ""),
        ("no_think_suffix", None, {}, {}, ""),
    ],
)
def test_each_thinking_dialect_arrives_at_the_server(style, thinking, sampling, switch, ends, as_judge):
    async def work(url):
        asked = system(endpoint=url, thinking_style=style, thinking=thinking, sampling=sampling)
        asked = asked.as_judge() if as_judge else asked
        async with open_model(asked) as client:
            return await client.ask(asked.request(messages=MESSAGES))

    with serve(lambda call: "在") as server:
        asyncio.run(work(server.url))
    body = server.calls[0].body
    assert {field: body[field] for field in SWITCHES if field in body} == switch
    assert [m["content"] for m in body["messages"]] == ["设定", f"在吗{ends}"]
    assert body["max_tokens"] == (4096 if as_judge else 512)


def test_cost_of_a_million_tokens_each_way():
    assert Prices(input=0.4, output=1.6).cost(Usage(2, 0, 1_000_000, 0, 1_000_000)) == pytest.approx(2.0)


def test_the_key_comes_from_the_environment(monkeypatch):
    async def work(url):
        async with open_model(system(endpoint=url, api_key_env="MY_KEY")) as client:
            return await client.ask(Request("m", messages=MESSAGES))

    with serve(lambda call: "在") as server:
        monkeypatch.delenv("MY_KEY", raising=False)
        with pytest.raises(
            SystemsError, match="x: api_key_env: the environment variable MY_KEY is not set; run: export"
        ):
            asyncio.run(work(server.url))
        assert server.calls == []
        monkeypatch.setenv("MY_KEY", KEY)
        assert asyncio.run(work(server.url)).text == "在"
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"


def test_systems_reached_in_the_same_way_share_a_client(monkeypatch):
    monkeypatch.setenv("KEY_ONE", "1")

    async def work():
        async with open_models() as models:
            one = await models.client(system())
            assert await models.client(system(name="y", sampling={"temperature": 0.1})) is one
            assert await models.client(system(api_key_env="KEY_ONE")) is not one
            assert await models.client(system(endpoint="http://other/v1")) is not one
            return one.identity

    assert asyncio.run(work()) == "http://h/v1"
