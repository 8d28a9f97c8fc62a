"""The endpoint client against a real HTTP server that fails in every way."""

import asyncio
import gc
import logging
import socket
import threading
import time

import pytest

from anthrolab.models.budget import Budget
from anthrolab.models.client import ModelError, Request
from anthrolab.models.endpoint import Endpoint
from anthrolab.models.faults import public_url, retry_after
from anthrolab.models.scripted import Answer, reply_body, serve

CHAT = Request("m", messages=[{"role": "user", "content": "在吗"}], params={"temperature": 0.5, "min_p": 0.04})
PLAIN = Request("m", prompt="[20:31:00] 小雨:", params={"grammar": "root ::= [a-z]", "max_tokens": 8})
QUICK = Budget(attempts=3, seconds=20, attempt_seconds=10, first_wait=0.01)
HTML = "<html><head><title>Welcome to nginx!</title></head></html>"
KEY = "sk-0123456789abcdef"


def ask(url, request=CHAT, budget=QUICK, **options):
    async def work():
        async with Endpoint(url, budget=budget, **options) as client:
            return await client.ask(request)

    return asyncio.run(work())


def fault_of(handler, request=CHAT, budget=QUICK, **options):
    with serve(handler) as server, pytest.raises(ModelError) as caught:
        ask(server.url, request, budget, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert server.url in message
    assert "model 'm'" in message
    return caught.value.fault, message, len(server.calls)


def script(*answers):
    """The answers in order; the last one stays."""
    return lambda call: answers[min(call.number, len(answers)) - 1]


def test_chat_request_and_reply():
    with serve(lambda call: "在呢") as server:
        reply = ask(server.url)
    assert (reply.text, reply.finish_reason, reply.completion_tokens) == ("在呢", "stop", 2)
    (call,) = server.calls
    assert call.path == "/v1/chat/completions"
    assert call.body == {"model": "m", "messages": CHAT.messages, "temperature": 0.5, "min_p": 0.04}


def test_completion_request_and_reply_keep_leading_blanks_and_may_be_empty():
    with serve(script(" ok", "")) as server:
        assert ask(server.url, PLAIN).text == " ok"
        assert ask(server.url, PLAIN).text == ""
    assert server.calls[0].path == "/v1/completions"
    assert server.calls[0].body == {"model": "m", "prompt": PLAIN.prompt, **PLAIN.params}


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_stays_out_of_the_text(field):
    with serve(lambda call: Answer(reply_body(call, "<think>一</think>睡吧", message={field: "二"}))) as server:
        reply = ask(server.url)
    assert (reply.text, reply.reasoning) == ("睡吧", "二\n一")


def test_a_reply_cut_by_the_length_cap_says_so():
    with serve(lambda call: Answer(reply_body(call, "我觉", finish_reason="length"))) as server:
        assert ask(server.url).truncated


def test_html_with_200_is_not_json_and_is_not_asked_again():
    fault, message, calls = fault_of(lambda call: Answer(HTML))
    assert (fault, calls) == ("not_json", 1)
    assert "Welcome to nginx!" in message
    assert "/v1" in message


def test_html_with_502_is_a_server_error_after_all_attempts():
    fault, message, calls = fault_of(lambda call: Answer("<html><title>502 Bad Gateway</title>", status=502))
    assert (fault, calls) == ("server_error", 3)
    assert "502" in message
    assert "3 attempts" in message


def test_a_server_error_that_passes_is_only_a_delay():
    with serve(script(Answer({"error": "loading"}, status=503), "好了")) as server:
        assert ask(server.url).text == "好了"
    assert len(server.calls) == 2


def test_429_is_waited_out_as_long_as_the_server_asks():
    busy = Answer({"error": "slow down"}, status=429, headers={"Retry-After": "0.3"})

    async def work(url):
        clock = asyncio.get_running_loop().time
        async with Endpoint(url, budget=QUICK) as client:
            start = clock()
            reply = await client.ask(CHAT)
            return reply.text, clock() - start

    with serve(script(busy, "好了")) as server:
        text, seconds = asyncio.run(work(server.url))
    assert text == "好了"
    assert seconds >= 0.3  # the backoff alone would be 0.01 s


def test_429_that_asks_for_more_than_the_budget_ends_at_once():
    busy = Answer({"error": {"message": "quota"}}, status=429, headers={"Retry-After": "3600"})
    fault, message, calls = fault_of(lambda call: busy)
    assert (fault, calls) == ("quota", 1)
    assert "3600 s" in message


def test_429_to_the_end():
    fault, message, calls = fault_of(lambda call: Answer({"error": {"message": "quota"}}, status=429))
    assert (fault, calls) == ("rate_limited", 3)
    assert "'quota'" in message


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_other_4xx_are_rejections_in_the_servers_words(status):
    fault, message, calls = fault_of(lambda call: Answer({"error": {"message": "no model m here"}}, status=status))
    assert (fault, calls) == ("rejected", 1)
    assert "no model m here" in message
    assert str(status) in message


def test_a_server_that_hangs_is_a_timeout():
    budget = Budget(attempts=2, seconds=20, attempt_seconds=0.3, first_wait=0.01)
    fault, message, calls = fault_of(lambda call: Answer(hang=True), budget=budget)
    assert (fault, calls) == ("timeout", 2)
    assert "0.3 s" in message


def test_the_total_budget_ends_the_attempts_too():
    budget = Budget(attempts=100, seconds=0.8, attempt_seconds=0.3, first_wait=0.01)
    fault, _, calls = fault_of(lambda call: Answer(hang=True), budget=budget)
    assert fault == "timeout"
    assert 2 <= calls <= 4


def test_connection_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(ModelError, match=r"refused.*is the server running") as caught:
            ask(url)
    assert caught.value.fault == "unreachable"


def test_unknown_host():
    with pytest.raises(ModelError, match=r"no-such-host\.invalid/v1") as caught:
        ask("http://no-such-host.invalid/v1", budget=Budget(attempts=1))
    assert caught.value.fault == "unreachable"


def test_a_connection_broken_in_mid_body_is_unreachable_not_a_short_reply():
    fault, message, calls = fault_of(lambda call: Answer(reply_body(call, "很长的回答"), cut=40))
    assert (fault, calls) == ("unreachable", 3)
    assert "broke" in message


def test_a_connection_closed_without_an_answer_is_unreachable():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        async def work():
            def hang_up():
                for _ in range(2):
                    connection, _ = listener.accept()
                    connection.recv(65536)
                    connection.close()

            hanging_up = asyncio.create_task(asyncio.to_thread(hang_up))
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
            async with Endpoint(url, budget=Budget(attempts=2, first_wait=0.01)) as client:
                with pytest.raises(ModelError) as caught:
                    await client.ask(CHAT)
            await hanging_up
            return caught.value

        assert asyncio.run(work()).fault == "unreachable"


def test_an_empty_chat_reply_and_a_reply_without_choices():
    assert fault_of(lambda call: "")[0] == "empty"
    fault, message, calls = fault_of(lambda call: Answer({"choices": []}))
    assert (fault, calls) == ("empty", 3), "asked anew within the budget"
    assert "without any choice" in message


def test_an_empty_reply_is_asked_for_again_and_an_unreadable_one_is_not():
    with serve(lambda call: "" if call.number == 1 else "在呢") as served:
        assert ask(served.url).text == "在呢"
        assert len(served.calls) == 2
    assert fault_of(lambda call: Answer("<html></html>"))[::2] == ("not_json", 1)


def test_the_key_is_sent_and_stands_in_no_message_repr_or_log(caplog):
    caplog.set_level(logging.DEBUG)
    echo = Answer({"error": {"message": f"Incorrect API key provided: {KEY}"}}, status=401)
    fault, message, _ = fault_of(lambda call: echo, api_key=KEY)
    assert fault == "rejected"
    assert "***" in message
    with serve(lambda call: "好") as server:
        client = Endpoint(server.url, api_key=KEY)
        asyncio.run(_ask_and_close(client))
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in message + repr(client) + client.identity + caplog.text


def test_no_key_of_the_environment_is_sent_unasked(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    with serve(lambda call: "好") as server:
        ask(server.url)
    sent = " ".join(server.calls[0].headers.values())
    assert KEY not in sent
    assert "org-secret" not in sent


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serve(lambda call: "好") as server:
        assert ask(server.url).text == "好"


def test_secrets_of_a_url_are_not_shown():
    assert public_url("https://me:pw@host.example:8000/v1/?token=x#y") == "https://host.example:8000/v1"
    with pytest.raises(ModelError, match="holds a user, a password or a query") as caught:
        ask("http://me:pw@127.0.0.1:9/v1?token=x")
    assert "pw" not in str(caught.value)
    assert "token" not in str(caught.value)


def test_no_more_requests_in_flight_than_allowed():
    lock, running, most = threading.Lock(), 0, 0

    def handler(call):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return "好"

    async def work(url):
        async with Endpoint(url, concurrency=2) as client:
            return await asyncio.gather(*(client.ask(CHAT) for _ in range(8)))

    with serve(handler) as server:
        assert len(asyncio.run(work(server.url))) == 8
    assert most == 2


def test_the_list_of_models():
    async def work(url):
        async with Endpoint(url, budget=QUICK) as client:
            return await client.models()

    with serve(lambda call: "", models=["a", "b"]) as server:
        assert asyncio.run(work(server.url)) == ["a", "b"]
    with serve(lambda call: Answer(HTML), models=[]) as server, pytest.raises(ModelError) as caught:
        asyncio.run(work(server.url))
    assert caught.value.fault == "not_json"


def test_waits_double_up_to_the_longest():
    budget = Budget(first_wait=0.5, longest_wait=3.0)
    assert [budget.wait(n) for n in (1, 2, 3, 4, 9)] == [0.5, 1.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers, seconds):
    assert retry_after(headers, now=10.0) == seconds


def test_closing_leaves_no_connection_open(recwarn):
    with serve(lambda call: "好") as server:
        ask(server.url)
    gc.collect()
    assert [w for w in recwarn if issubclass(w.category, ResourceWarning)] == []


async def _ask_and_close(client):
    async with client:
        await client.ask(CHAT)
