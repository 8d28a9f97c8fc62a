"""The endpoint probe against servers that behave like real ones: what it finds, what it advises, what it prints."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, get_args

import pytest

from anthrolab.models.client import Fault, ModelError, Reply
from anthrolab.models.doctor import advise
from anthrolab.models.doctor import probe_endpoint as probe
from anthrolab.models.doctor import probe_lines as lines
from anthrolab.models.doctor.findings import (
    FAULTS,
    MEANINGS,
    NOT_SENT,
    SHORT,
    WORD,
    Finding,
    Way,
    find,
    read_cap,
    read_error,
    read_json,
    read_line,
)
from anthrolab.models.doctor.probe import COUNT
from anthrolab.models.doctor.text import terminal_width
from anthrolab.models.faults import FIXES
from anthrolab.models.scripted import Answer, Call, reply_body, serve
from anthrolab.models.systems import System, load_systems

KEY = "sk-0123456789abcdef"
DRINK = '{"drink": "tea", "at": "07:30", "more": false}'
ON, OFF = Way("enable_thinking", True), Way("enable_thinking", False)


def system(url: str, **fields: Any) -> System:
    base = {"name": "x", "endpoint": url, "model": "m", "server": "vllm", "policy": "chat", "retries": 0}
    return System(**{**base, **fields})


@dataclass
class Server:
    """A model server by its habits. Refusals are body fields (`a.b` inside one), message roles, or `field=value`.

    thinks: what the model does unasked. switches: the ways that it obeys. deaf: body fields that it takes and
    ignores. ponders: tokens of its thoughts. field: where reasoning goes; hidden: it is only counted;
    json_in_reasoning: JSON too, while it thinks; misparsed: all that it says.
    dumb: it never writes JSON unless it is held to a schema. dies_after: requests that it lives for.
    """

    refuses: tuple[str, ...] = ()
    thinks: bool = True
    switches: tuple[str, ...] = ("enable_thinking",)
    deaf: tuple[str, ...] = ()
    ponders: int = 0
    field: str = "reasoning"
    json_in_reasoning: bool = False
    misparsed: bool = False
    hidden: bool = False
    obeys_system: bool = True
    one_role_at_a_time: bool = False
    dumb: bool = False
    cap: str = "max_tokens"
    dies_after: int = 10_000
    echo: str = ""

    def __call__(self, call: Call) -> Answer:
        if call.number > self.dies_after:
            return Answer(b"{", cut=0)
        if problem := self._problem(call.body):
            return Answer({"error": {"message": problem}}, status=400)
        thought = "let me see, tea or coffee" if self._thinks(call.body) else ""
        said = self._said(call.body) + self.echo
        spent = self.ponders if thought else 0
        if thought and self.json_in_reasoning and said.startswith("{"):
            thought, said = f"{thought}: {said}", ""
        limit, words = call.body.get(self.cap, 10_000), said.split()
        cut = len(words) + spent > limit and self.cap not in self.deaf
        if cut:
            said = " ".join(words[: max(0, limit - spent)])
        if self.misparsed and not thought:
            thought, said = said, ""
        message = {self.field: thought} if thought and not self.hidden else {}
        body = reply_body(call, said, finish_reason="length" if cut else "stop", message=message)
        body["usage"]["completion_tokens"] = min(limit, len(words) + spent) if cut else len(words) + spent
        return Answer(body)

    def _problem(self, body: Mapping[str, Any]) -> str:
        roles = [m["role"] for m in body.get("messages", [])]
        for refused in self.refuses:
            name, _, value = refused.partition("=")
            given = body.get(name)
            kind = given.get("type") if isinstance(given, dict) else given
            if refused in roles or (name in body and value in ("", str(kind))):
                return f"{refused} is not supported here"
        if self.one_role_at_a_time and any(a == b for a, b in pairwise(roles)):
            return "roles must alternate"
        return ""

    def _thinks(self, body: Mapping[str, Any]) -> bool:
        last = str(body["messages"][-1]["content"]) if "messages" in body else ""
        if "prompt" in body:
            return False
        if "enable_thinking" in self.switches and "chat_template_kwargs" in body:
            return bool(body["chat_template_kwargs"]["enable_thinking"])
        if "reasoning_effort" in self.switches and "reasoning_effort" in body:
            return str(body["reasoning_effort"]) in ("medium", "high")
        if "no_think_suffix" in self.switches and last.endswith(("/think", "/no_think")):
            return last.endswith("/think") and not last.endswith("/no_think")
        return self.thinks

    def _said(self, body: Mapping[str, Any]) -> str:
        form = body.get("response_format", {}).get("type")
        if "structured_outputs" not in self.deaf and "structured_outputs" in body:
            return "[07:31] Zoe: good morning\n"
        if "grammar" not in self.deaf and "grammar" in body:
            return "[07:31] Zoe: good morning\n"
        if form == "json_schema" and "response_format" not in self.deaf:
            return DRINK
        if "prompt" in body:
            return " ".join(map(str, range(10, 100))) if "stop" not in body else " morning bob"
        seen = [m["content"] for m in body["messages"] if m["role"] == "user" or self.obeys_system]
        if COUNT in seen[-1]:
            return " ".join(map(str, range(1, 101)))
        if "code word?" in seen[-1]:
            return WORD if WORD in " ".join(seen) else "I know no code word."
        if "Write one JSON object" in seen[-1] and not self.dumb:
            return DRINK
        return "Tea, mostly."


FULL_VLLM = Server()
NO_FORMATS = Server(refuses=("response_format",), thinks=False, switches=())
GEMMA_LIKE = Server(refuses=("system",), one_role_at_a_time=True, thinks=False, switches=())
DROPS_SYSTEM = Server(obeys_system=False, thinks=False, switches=())
ENDLESS = Server(deaf=("max_tokens",), thinks=False, switches=())
JSON_IN_REASONING = Server(json_in_reasoning=True, field="reasoning_content")
MISPARSED = Server(thinks=False, misparsed=True, field="reasoning_content", switches=())
HOSTED = Server(
    refuses=("chat_template_kwargs", "max_tokens", "reasoning_effort=none", "temperature"), hidden=True, ponders=200,
    switches=("reasoning_effort",), cap="max_completion_tokens",
)  # fmt: skip
LONG_THINKER = Server(ponders=800)
QWEN_BEHIND_A_GATEWAY = Server(refuses=("chat_template_kwargs", "reasoning_effort"), switches=("no_think_suffix",))
DEAF = Server(deaf=("response_format", "structured_outputs"), dumb=True, thinks=False, switches=())
SERVERS = {name: server for name, server in globals().items() if isinstance(server, Server)}


def asked(server: Server, /, **fields: Any) -> tuple[System, list[Finding], list[Call]]:
    with serve(server) as served:
        entry = system(served.url, **fields)
        return entry, probe(entry), served.calls


def outcome(found: Sequence[Finding], name: str, way: Way | None = None) -> str:
    finding = find(found, name, way)
    return finding.outcome if finding else "-"


def notes(entry: System, found: Sequence[Finding]) -> str:
    return "\n".join(advise(entry, found).notes)


def test_a_full_vllm_server_needs_no_changes_and_few_short_requests() -> None:
    entry, found, calls = asked(FULL_VLLM, thinking=False, thinking_style="enable_thinking", max_tokens=2048)
    advice = advise(entry, found)
    assert advice.serves
    assert {name: value for name, value in advice.settings.items() if value != getattr(entry, name)} == {}
    assert not advice.reasons and not advice.notes
    assert len(calls) <= 20
    lengths = sorted(call.body["max_tokens"] for call in calls)
    assert lengths[-1] == entry.judge_max_tokens and lengths[-2] == entry.max_tokens and lengths[0] == SHORT
    for way in (NOT_SENT, OFF):
        assert [outcome(found, form, way) for form in ("prompt", "json_object", "json_schema", "line")] == ["ok"] * 4
    thought = {f.way: f.thought for f in found if f.asked == "prompt"}
    assert (thought[NOT_SENT], thought[ON], thought[OFF]) == ("yes", "yes", "no")
    assert thought[Way("reasoning_effort", False, "none")] == "yes"
    rest = ("system role", "two in a row", "length cap", "as a judge")
    assert [outcome(found, name) for name in rest] == ["ok"] * 4


def test_each_thinking_dialect_is_found_by_what_it_does() -> None:
    for server, style in ((FULL_VLLM, "enable_thinking"), (QWEN_BEHIND_A_GATEWAY, "no_think_suffix")):
        for want in (True, False):
            entry, found, _ = asked(server, thinking=want, thinking_style="reasoning_effort")
            settings = advise(entry, found).settings
            if want:  # it thinks unasked: nothing must be sent where the entry's own way is refused
                assert settings["thinking_style"] in ("reasoning_effort", "none")
            else:
                assert (settings["thinking_style"], settings["thinking"]) == (style, False)
                assert "reasoning_effort none" in advise(entry, found).reasons["thinking_style"]


def test_a_server_without_response_format_serves_by_the_prompt_alone() -> None:
    entry, found, _ = asked(NO_FORMATS)
    assert [outcome(found, form) for form in ("prompt", "json_object", "json_schema")] == ["ok", "refused", "refused"]
    assert advise(entry, found).serves
    assert "json_schema is refused" in notes(entry, found)
    assert "response_format is not supported here" in " ".join(" ".join(lines(entry, found)).split())


def test_a_server_that_refuses_a_system_message_gets_its_text_before_the_users() -> None:
    entry, found, calls = asked(GEMMA_LIKE)
    assert (outcome(found, "system role"), outcome(found, "system text in user")) == ("refused", "ok")
    assert outcome(found, "two in a row") == "refused"
    advice = advise(entry, found)
    assert advice.serves
    assert advice.settings["system_role"] is False
    assert "system is not supported here" in advice.reasons["system_role"]
    assert "sends none" in notes(entry, found)
    folded = [c.body["messages"] for c in calls if WORD in str(c.body["messages"]) and len(c.body["messages"]) == 1]
    assert [m["role"] for m in folded[0]] == ["user"]
    assert "\n\nWhat is the code word?" in folded[0][0]["content"]


def test_a_system_message_that_is_taken_and_dropped_is_a_result_of_its_own() -> None:
    entry, found, _ = asked(DROPS_SYSTEM)
    assert (outcome(found, "system role"), outcome(found, "system text in user")) == ("ignored", "ok")
    assert advise(entry, found).settings["system_role"] is False
    back = entry.model_copy(update={"system_role": False})
    with serve(FULL_VLLM) as served:
        again = probe(back.model_copy(update={"endpoint": served.url}))
    assert advise(back, again).settings["system_role"] is True


def test_a_length_cap_that_is_ignored_is_named() -> None:
    entry, found, _ = asked(ENDLESS)
    assert outcome(found, "length cap") == outcome(found, "other cap") == "ignored"
    assert advise(entry, found).serves
    assert "the length cap is not kept (100 tokens where 8 are" in notes(entry, found).replace("tokens are", "are")


def test_a_length_cap_that_only_the_other_name_sets() -> None:
    entry, found, _ = asked(Server(cap="max_completion_tokens", thinks=False, switches=()))
    assert (outcome(found, "length cap"), outcome(found, "other cap")) == ("ignored", "ok")
    assert advise(entry, found).settings["max_tokens_field"] == "max_completion_tokens"


def test_json_in_the_reasoning_field_is_named_and_thinking_is_advised_away_unless_wanted() -> None:
    entry, found, _ = asked(JSON_IN_REASONING)
    assert [outcome(found, form, NOT_SENT) for form in ("prompt", "json_object", "json_schema")] == ["in reasoning"] * 3
    assert [outcome(found, form, OFF) for form in ("prompt", "json_object", "json_schema")] == ["ok"] * 3
    advice = advise(entry, found)
    assert (advice.settings["thinking"], advice.settings["thinking_style"]) == (False, "enable_thinking")
    assert advice.reasons["thinking"] == "thinking not sent: the answer landed in the reasoning field"
    assert re.search(r"^not sent +yes +in reasoning +in reasoning +in reasoning", "\n".join(lines(entry, found)), re.M)
    entry, found, _ = asked(JSON_IN_REASONING, thinking=True, thinking_style="enable_thinking")
    advice = advise(entry, found)
    assert advice.serves
    assert (advice.settings["thinking"], advice.settings["thinking_style"]) == (True, "enable_thinking")
    assert "JSON taken out of the reasoning field" in notes(entry, found)


def test_a_wrong_reasoning_parser_is_no_thinking() -> None:
    """vLLM's deepseek_r1 parser with a model that does not think: all that it says is taken for reasoning."""
    entry, found, _ = asked(MISPARSED)
    for form in ("prompt", "json_object", "json_schema"):
        finding = find(found, form, NOT_SENT)
        assert finding and (finding.outcome, finding.thought) == ("in reasoning", "no")
    assert outcome(found, "system role") == "in reasoning"
    advice = advise(entry, found)
    assert advice.serves
    assert advice.settings == {"thinking": None, "thinking_style": "none", "system_role": True}
    assert "is the server's reasoning parser right?" in notes(entry, found)


def test_a_hosted_reasoning_model_is_brought_to_work_step_by_step() -> None:
    entry, found, calls = asked(HOSTED, server="openai", thinking=False, thinking_style="reasoning_effort")
    advice = advise(entry, found)
    assert advice.serves
    assert advice.settings == {
        "max_tokens_field": "max_completion_tokens", "thinking": False, "thinking_style": "reasoning_effort",
        "sampling": {"reasoning_effort": "minimal", "temperature": None}, "system_role": True,
    }  # fmt: skip
    assert "max_tokens is not supported here" in advice.reasons["max_tokens_field"]
    assert "reasoning_effort=none is not supported" in advice.reasons["sampling"]
    thought = {f.way: f.thought for f in found if f.asked == "prompt"}
    assert thought[NOT_SENT] == thought[Way("reasoning_effort", True, "medium")] == "unseen"
    assert thought[Way("reasoning_effort", False, "minimal")] == "no"
    assert outcome(found, "prompt", ON) == "refused"
    assert len(calls) <= 24
    assert System.model_validate({**entry.model_dump(), **advice.settings}).as_judge().body() == {
        "max_completion_tokens": 4096, "reasoning_effort": "minimal",
    }  # fmt: skip


def test_the_entrys_own_words_for_effort_are_the_ones_that_are_tried() -> None:
    server = Server(
        refuses=("reasoning_effort=medium", "reasoning_effort=none"), switches=("reasoning_effort",), thinks=False
    )
    for thinking, word in ((True, "high"), (False, "low")):
        own = {"thinking": thinking, "thinking_style": "reasoning_effort", "sampling": {"reasoning_effort": word}}
        entry, found, _ = asked(server, **own)
        assert outcome(found, "json_schema", Way("reasoning_effort", thinking, word)) == "ok"
        assert not advise(entry, found).reasons


def test_refused_samplers_are_taken_out() -> None:
    sampling = {"top_k": 5, "provider": "x"}
    entry, found, _ = asked(Server(refuses=("top_k",)), sampling=sampling)
    assert advise(entry, found).settings["sampling"] == {"provider": "x"}
    assert "top_k is not supported" in advise(entry, found).reasons["sampling"]


def test_a_server_that_dies_in_the_middle_leaves_what_was_found_and_cannot_serve() -> None:
    entry, found, calls = asked(Server(dies_after=9))
    assert sum(f.outcome == "gone" for f in found) in (1, 2)
    assert outcome(found, "prompt", NOT_SENT) == "ok"
    assert outcome(found, "length cap") == "not asked"
    assert len(calls) <= 9 + 2 * 2  # two under way, one retry each
    advice = advise(entry, found)
    assert not advice.serves
    text = "\n".join(lines(entry, found))
    assert "cannot serve policy chat: the connection failed: broke the connection off" in text
    assert "settings to use" not in text


def test_a_dead_server_is_one_finding() -> None:
    entry = system("http://127.0.0.1:9/v1")
    found = probe(entry)
    assert [f.outcome for f in found] == ["gone"]
    assert not advise(entry, found).serves


def test_a_server_that_refuses_everything_is_quoted() -> None:
    entry, found, calls = asked(Server(refuses=("model",)))
    assert len(calls) == 2
    assert advise(entry, found).problems == [
        "the plainest request got no text (refused): answered 400 with 'model is not supported here'"
    ]


def test_a_model_that_obeys_no_form_cannot_serve_the_chat_policy() -> None:
    entry, found, _ = asked(DEAF)
    assert {outcome(found, form) for form in ("prompt", "json_object", "json_schema", "line")} == {"ignored"}
    assert advise(entry, found).problems == ["no kind of structured output is obeyed, with thinking or without"]


def test_a_schema_at_which_the_server_fails_is_a_problem_since_a_run_steps_down_at_refusals_only() -> None:
    entry, found, _ = asked(NO_FORMATS)
    broken = [replace(f, outcome="failed", detail="answered 500") if f.asked == "json_schema" else f for f in found]
    assert advise(entry, broken).problems == ["json_schema is failed: answered 500"]


def test_a_schema_that_is_taken_and_not_enforced_leaves_it_to_the_prompt() -> None:
    entry, found, _ = asked(Server(deaf=("response_format",), thinks=False, switches=()))
    assert (outcome(found, "prompt"), outcome(found, "json_schema")) == ("ok", "ignored")
    assert advise(entry, found).serves
    assert "only the prompt asks for the form" in notes(entry, found)


def test_thinking_that_uses_the_cap_up_is_not_taken_for_disobedience() -> None:
    def handler(call: Call) -> Answer:
        if call.body.get("chat_template_kwargs", {}).get("enable_thinking", True):
            message = {"reasoning_content": "hmm " * 50}
            return Answer(reply_body(call, None, finish_reason="length", message=message))
        return FULL_VLLM(call)

    with serve(handler) as served:
        entry = system(served.url, thinking=True, thinking_style="enable_thinking")
        found = probe(entry)
    advice = advise(entry, found)
    assert outcome(found, "json_schema", ON) == "cut off"
    assert (advice.settings["thinking"], advice.serves) == (True, True)
    assert "raise max_tokens" in notes(entry, found)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("thinking", [None, True, False])
def test_long_thinking_gets_the_room_that_the_entry_gives_it(thinking: bool | None, hidden: bool) -> None:
    style = "none" if thinking is None else "enable_thinking"
    server = Server(ponders=800, hidden=hidden)
    entry, found, _ = asked(server, thinking=thinking, thinking_style=style, max_tokens=4096)
    advice = advise(entry, found)
    assert advice.serves
    assert {name for name, value in advice.settings.items() if value != getattr(entry, name)} == set()
    assert not advice.reasons
    assert advice.notes == []
    assert {f.outcome for f in found if f.asked != "prompt"} == {"ok"}
    expected = "no" if thinking is False else "unseen" if hidden else "yes"
    for asked_for in ("prompt", "json_object", "json_schema", "line"):
        finding = find(found, asked_for, Way(style, thinking))
        assert finding and finding.thought == expected


def test_thinking_that_outgrows_the_entrys_own_cap_says_nothing_about_the_system_text() -> None:
    entry, found, _ = asked(LONG_THINKER, thinking=True, thinking_style="enable_thinking", max_tokens=512)
    advice = advise(entry, found)
    assert (outcome(found, "system role"), outcome(found, "line", ON)) == ("cut off", "cut off")
    assert outcome(found, "system text in user") == "-"
    assert advice.settings == {"thinking": True, "thinking_style": "enable_thinking", "system_role": True}
    assert "raise max_tokens" in notes(entry, found)
    assert "whether it follows its system text is not known" in notes(entry, found)
    assert "poorly" not in notes(entry, found)


def test_thinking_that_nobody_asked_for_and_that_outgrows_the_cap_can_be_turned_off_or_given_room() -> None:
    entry, found, _ = asked(LONG_THINKER, max_tokens=512)
    advice = advise(entry, found)
    assert advice.settings == {"thinking": False, "thinking_style": "enable_thinking", "system_role": True}
    assert advice.reasons["thinking"] == "thinking not sent: at the length cap (max_tokens: 512; or raise it)"
    entry, found, _ = asked(Server(ponders=800, switches=()), max_tokens=512)
    assert advise(entry, found).problems == ["no answer in JSON ends before the length cap (max_tokens: 512); raise it"]


def test_what_the_probes_own_time_limit_left_open_changes_nothing() -> None:
    entry, over = system("http://h/v1", thinking=True, thinking_style="enable_thinking"), "the probe's 600 s are over"
    quick = [Finding(way, "prompt", "ok", "no") for way in (NOT_SENT, OFF)]
    late = Finding(ON, "prompt", "unanswered", "", over)
    half = [Finding(ON, "prompt", "ignored", "yes"), Finding(ON, "json_schema", "not asked", "", over)]
    for found in ([*quick, late], [*quick, *half]):
        advice = advise(entry, [*found, Finding(NOT_SENT, "json_object", "not asked", "", over)])
        assert not advice.serves and not advice.problems
        assert advice.settings == {"thinking": True, "thinking_style": "enable_thinking"}
        assert not advice.reasons
        assert advice.unknown == [
            "enable_thinking true did not get all its answers, and thinking stays as the entry has it"
        ]
        assert [note.partition(";")[0] for note in advice.notes] == [f"not everything was answered ({over})"]
    free = system("http://h/v1")
    assert advise(free, [Finding(NOT_SENT, "prompt", "ignored", "no"), replace(half[1], way=OFF)]).unknown == [
        "no usable JSON came among the answers"
    ]
    base = system("http://h/v1", policy="transcript")
    line = [Finding(NOT_SENT, "one line", "ok"), Finding(NOT_SENT, "line", "not asked", "", over)]
    assert advise(base, line).unknown == ["the form of a line got no answer"]
    assert not advise(base, line).problems


@pytest.mark.parametrize("open_outcome", ["unanswered", "not asked", "late", "busy"])
def test_no_claim_is_made_on_what_got_no_answer(open_outcome: Any) -> None:
    """Every question in turn without an answer: nothing about it is set, noted or said, and no fault is named."""
    entry, found, _ = asked(GEMMA_LIKE)
    assert len(found) > 15
    assert not advise(entry, found).unknown
    for i, finding in enumerate(found[1:], 1):
        left = replace(finding, outcome=open_outcome, thought="", detail="time")
        later = [replace(f, outcome="not asked", thought="", detail="time") for f in found[i + 1 :]]
        for rest in (found[i + 1 :], later):
            advice = advise(entry, [*found[:i], left, *rest])
            assert advice.problems == []
            assert [note for note in advice.notes if finding.asked in note]
            essential = ("real prompt size", "system role", "system text in user", "json_schema")
            assert finding.asked not in essential or (advice.unknown and not advice.serves)
            assert "system_role" not in advice.settings or finding.asked not in essential[1:3]
            assert finding.asked != "two in a row" or not [n for n in advice.notes if n.startswith("two user messages")]
    nobody = [f if f.way.on is None else replace(f, outcome=open_outcome, thought="") for f in found]
    assert "what changes that: not known" in "\n".join(lines(entry, nobody))
    eager, found, _ = asked(FULL_VLLM)
    taken = [
        replace(f, outcome="busy", thought="") if f.asked == "json_schema" and f.way == NOT_SENT else f for f in found
    ]
    assert advise(eager, taken).settings["thinking"] is None and advise(eager, taken).unknown
    want = eager.model_copy(update={"thinking": False, "thinking_style": "reasoning_effort"})
    half = [replace(f, outcome=open_outcome, thought="") if f.way == OFF else f for f in found]
    assert "no way of asking" not in notes(want, half)
    assert "no way of asking stops its thinking" in notes(want, [f for f in found if f.way != OFF])


def test_a_change_that_got_no_answer_is_not_advised() -> None:
    def handler(call: Call) -> Answer:
        return Answer(hang=True) if call.number > 1 else Answer({"error": "max_tokens is not supported"}, status=400)

    with serve(handler) as served:
        entry = system(served.url)
        found = probe(entry, limit_s=0.5)
    assert [(f.asked, f.outcome) for f in found] == [("prompt", "refused"), ("prompt", "unanswered")]
    assert "max_tokens_field" not in advise(entry, found).settings


def test_a_slow_endpoint_is_not_called_unusable() -> None:
    """Some 65 s an answer, at the usual timeout_s of 120: the same in small, within the probe's time and beyond it."""
    with serve(lambda call: replace(FULL_VLLM(call), delay=0.15)) as served:
        entry = system(served.url, timeout_s=10)
        assert advise(entry, probe(entry)).serves
        found = probe(entry, limit_s=0.5)
    advice = advise(entry, found)
    assert advice.problems == [] and advice.unknown
    assert "\nnot known whether it can serve policy chat: " in "\n".join(lines(entry, found))


@pytest.mark.parametrize("how", ["chat", "transcript"])
def test_a_context_too_small_for_a_real_prompt_is_a_verdict(how: Any) -> None:
    limit, why = {"chat": 3000, "transcript": 1000}[how], "maximum context length is 2048 tokens"

    def handler(call: Call) -> Answer:
        long = len(str(call.body.get("prompt", call.body.get("messages")))) > limit
        return Answer({"error": {"message": why}}, status=400) if long else FULL_VLLM(call)

    with serve(handler) as served:
        entry = system(served.url, policy=how)
        found = probe(entry)
    assert outcome(found, "real prompt size") == "refused"
    text = " ".join(" ".join(lines(entry, found)).split())
    assert f"cannot serve policy {how}: a prompt of real size is refused (answered 400 with '{why}'); at this" in text
    assert "what helps: a larger context of the server, a smaller `--window`, shorter skills" in text
    entry, found, calls = asked(FULL_VLLM, policy=how, thinking=None)
    assert outcome(found, "real prompt size") == "ok"
    sizes = [len(str(call.body.get("prompt", call.body.get("messages")))) for call in calls]
    assert sum(size > {"chat": 6000, "transcript": 1500}[how] for size in sizes) == 1


def test_the_size_is_asked_without_what_else_could_be_refused() -> None:
    server = replace(QWEN_BEHIND_A_GATEWAY, refuses=("chat_template_kwargs", "system"))
    _, found, _ = asked(server, thinking=False, thinking_style="enable_thinking")
    assert outcome(found, "prompt", OFF) == "refused"
    assert outcome(found, "real prompt size") == "ok"

    def cut(call: Call) -> Answer:
        return Answer(reply_body(call, None, finish_reason="length")) if len(str(call.body)) > 3000 else FULL_VLLM(call)

    with serve(cut) as served:
        assert outcome(probe(system(served.url)), "real prompt size") == "ok"


NO_TEXT = {
    "no choices": ({"choices": []}, "empty"),
    "empty content": ({"choices": [{"message": {"content": ""}}]}, "empty"),
    "tool calls": ({"choices": [{"message": {"content": None, "tool_calls": [{"id": "a"}]}}]}, "empty"),
    "a refusal": ({"choices": [{"message": {"content": None, "refusal": "I will not."}}]}, "declined"),
    "an error in a 200": ({"error": {"message": "no such model"}}, "refused"),
    "a page": ("<html><title>Log in</title></html>", "not JSON"),
}


@pytest.mark.parametrize(("body", "expected"), NO_TEXT.values(), ids=NO_TEXT)
def test_an_endpoint_that_sends_no_text_is_named_and_left_early(body: Any, expected: str) -> None:
    with serve(lambda call: Answer(body)) as served:
        entry = system(served.url)
        found = probe(entry)
        assert len(served.calls) <= 2
    assert [f.outcome for f in found] == [expected]
    text = "\n".join(lines(entry, found))
    assert (
        f"cannot serve policy chat: the plainest request got no text ({expected}): answered" in text
        or expected == "declined"
    )
    assert MEANINGS[found[0].outcome] in text
    assert "ignored" not in text and "4xx" not in text and "notes:" not in text


def test_redirects_silent_completions_and_broken_connections_are_named() -> None:
    with serve(lambda call: Answer("", status=302)) as served:
        found = probe(system(served.url))
    assert [f.outcome for f in found] == ["refused"] and "answered 302" in found[0].detail
    with serve(lambda call: "\n") as served:
        base = system(served.url, policy="transcript", server="openai")
        found = probe(base)
        assert len(served.calls) == 1
    assert [f.outcome for f in found] == ["empty"] and not advise(base, found).serves
    with serve(lambda call: Answer(b"{}", cut=1)) as served:
        entry = system(served.url)
        text = "\n".join(lines(entry, probe(entry)))
    assert "gone = no connection, or it broke off" in text and "reached" not in text


def test_the_time_of_a_probe_is_limited() -> None:
    with serve(lambda call: Answer(hang=True)) as served:
        entry = system(served.url)
        found = probe(entry, limit_s=0.5)
    assert [(f.outcome, f.detail) for f in found] == [("unanswered", "the probe's 0.5 s are over")]
    assert not advise(entry, found).serves
    with serve(lambda call: Answer(hang=True) if call.number > 4 else FULL_VLLM(call)) as served:
        entry = system(served.url)
        found = probe(entry, limit_s=3)
    assert outcome(found, "length cap") == "not asked"
    assert "not everything was answered (the probe's 3 s are over); not known: " in notes(entry, found)
    assert advise(entry, found).problems == [] and not advise(entry, found).serves


@pytest.mark.parametrize(
    ("server", "field"), [("vllm", "structured_outputs"), ("llama.cpp", "grammar"), ("openai", "")]
)
def test_a_base_model_is_asked_for_completions_a_line_and_a_cut(server: str, field: str) -> None:
    entry, found, calls = asked(Server(), server=server, policy="transcript")
    assert {call.path for call in calls} == {"/v1/completions"}
    assert [f.asked for f in found] == ["one line", "real prompt size", *(["line"] if field else []), "length cap"]
    assert {f.outcome for f in found} == {"ok"}
    assert advise(entry, found).serves
    if field:
        _, deaf, _ = asked(Server(deaf=(field,)), server=server, policy="transcript")
        assert not advise(entry, deaf).serves
        assert "the form of a line is ignored" in "\n".join(lines(entry, deaf))


def test_the_real_embedded_base_model() -> None:
    entry = system(
        "embedded", model="gemma3-270m", server="llama.cpp", policy="transcript", sampling={"temperature": 0}
    )
    found = probe(entry)
    assert [f.asked for f in found] == ["one line", "real prompt size", "line", "length cap"]
    assert {f.outcome for f in found} == {"ok"}
    assert advise(entry, found).serves


def test_no_key_is_shown_whatever_the_server_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    entry, found, calls = asked(Server(echo=f" {KEY}", refuses=("json_schema",)), api_key_env="MY_KEY")
    assert calls[0].headers["authorization"] == f"Bearer {KEY}"
    assert "***" in repr(found)
    assert KEY not in repr(found) + "\n".join(lines(entry, found))


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
@pytest.mark.parametrize("thinking", [None, True, False])
def test_every_text_fits_the_terminal_and_its_settings_can_be_copied(
    server: Server, thinking: bool | None, tmp_path: Any
) -> None:
    style = "none" if thinking is None else "enable_thinking"
    sampling: dict[str, Any] = {"temperature": 0.7, "stop": ["a stop that is long enough", "for a line", "of its own"]}
    entry, found, _ = asked(server, thinking=thinking, thinking_style=style, sampling=sampling)
    advice = advise(entry, found)
    assert advice.serves == (server is not DEAF)
    assert set(advice.reasons) == {n for n, v in advice.settings.items() if v != getattr(entry, n)}
    for width in (60, 80, 100):
        text = list(lines(entry, found, width))
        assert "" not in (text[0], text[-1]) and ("", "") not in pairwise(text)
        assert [line for line in text if len(line) > width and not re.match(r" {4}(#   )?[a-z_]+: ", line)] == []
        verdict = text[len(text) - text[::-1].index("") :]
        assert verdict[0].startswith("can serve" if advice.serves else "cannot serve")
        if advice.serves:
            below = text[next(i for i, line in enumerate(text) if line.startswith("settings to use")) + 1 :]
            copied = below[: below.index("")]
            assert len([line for line in copied if not line.startswith("    #")]) == len(advice.settings)  # none broken
            expected = entry.model_copy(update=advice.settings)
            assert load_copied(entry, advice.settings, copied, tmp_path) == expected


def load_copied(entry: System, settings: Mapping[str, Any], copied: Sequence[str], folder: Any) -> System:
    """The entry as its file gives it once the lines are put in the place of its own."""
    kept = {name: value for name, value in entry.model_dump().items() if name not in settings and name != "name"}
    path = folder / "systems.yaml"
    head = [f"    {name}: {json.dumps(value)}" for name, value in kept.items()]
    path.write_text("\n".join(["systems:", "  - name: x", *head, *copied, ""]), encoding="utf-8")
    return load_systems(path)["x"]


@pytest.mark.parametrize(
    ("server", "ways"),
    [
        (FULL_VLLM, [("enable_thinking", False, {}), ("enable_thinking", True, {})]),
        (QWEN_BEHIND_A_GATEWAY, [("no_think_suffix", False, {}), ("no_think_suffix", True, {})]),
        (
            Server(refuses=("chat_template_kwargs", "reasoning_effort=none"), switches=("reasoning_effort",)),
            [("reasoning_effort", False, {"reasoning_effort": "minimal"}), ("reasoning_effort", True, {})],
        ),
        (
            HOSTED,
            [
                ("reasoning_effort", False, {"reasoning_effort": "minimal", "temperature": None}),
                ("reasoning_effort", True, {}),
            ],
        ),
    ],
)
def test_where_it_thinks_unasked_the_lines_to_choose_from_are_printed_and_each_is_an_entry(
    server: Server, ways: Any, tmp_path: Any
) -> None:
    entry, found, _ = asked(server)
    advice = advise(entry, found)
    assert advice.serves and advice.settings["thinking"] is None
    assert [(c["thinking_style"], c["thinking"], c.get("sampling", {})) for c in advice.choices] == ways
    assert "write thinking" not in notes(entry, found)
    text = list(lines(entry, found, 60))
    shown = [line.removeprefix("    #   ") for line in text if line.startswith("    #   ")]
    for choice in advice.choices:
        copied, shown = shown[: len(choice)], shown[len(choice) :]
        loaded = load_copied(entry, choice, [f"    {line}" for line in copied], tmp_path)
        assert loaded == entry.model_copy(update=choice)
        assert loaded.thinking is choice["thinking"]
    assert shown == []
    for switches, thinks in (((), True), (("enable_thinking",), False)):
        entry, found, _ = asked(Server(switches=switches, thinks=thinks))
        assert advise(entry, found).choices == []


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("30", 60), ("200", 100)])
def test_the_width_is_the_terminals(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal_width() == width
    entry, found, _ = asked(HOSTED)
    assert list(lines(entry, found)) == list(lines(entry, found, width))
    assert list(lines(entry, found)) != list(lines(entry, found, width - 15))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(DRINK), ("ok", "no")),
        (Reply(DRINK, reasoning="tea"), ("ok", "yes")),
        (Reply(DRINK, completion_tokens=46 + 16), ("ok", "no")),
        (Reply(DRINK, completion_tokens=46 + 17), ("ok", "unseen")),
        (Reply(f"```json\n{DRINK}\n```"), ("mended", "no")),
        (Reply("", reasoning=DRINK), ("in reasoning", "no")),
        (Reply("", reasoning=f"Tea then.\n{DRINK}"), ("in reasoning", "yes")),
        (Reply("Tea.", reasoning=DRINK), ("ignored", "yes")),
        (Reply(DRINK, finish_reason="length"), ("cut off", "no")),
        (Reply(DRINK.replace("tea", "milk")), ("ignored", "no")),
        (Reply(DRINK.replace("false", '"false"')), ("ignored", "no")),
        (Reply(DRINK.replace("07:30", "7:30")), ("ignored", "no")),
        (Reply(DRINK.replace("}", ', "extra": 1}')), ("ignored", "no")),
    ],
)
def test_reading_json(reply: Reply, expected: tuple[str, str]) -> None:
    assert read_json(reply)[:2] == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply("1 2 3 4", finish_reason="length", completion_tokens=8), "ok"),
        (Reply("", reasoning="so I count", finish_reason="length", completion_tokens=8), "ok"),
        (Reply("1 2 3 4", finish_reason="length"), "ok"),
        (Reply("1 2 3 4", finish_reason="stop", completion_tokens=8), "unmarked"),
        (Reply("1 2 3 4", finish_reason=None), "unmarked"),
        (Reply("Sure!", finish_reason="stop", completion_tokens=2), "unclear"),
        (Reply("1 2 3 4 5 6 7 8 9", finish_reason="stop"), "ignored"),
        (Reply("1 2 3 4", finish_reason="length", completion_tokens=9), "ignored"),
    ],
)
def test_reading_the_cap(reply: Reply, expected: str) -> None:
    assert read_cap(reply)[0] == expected


def test_reading_a_line_and_an_error() -> None:
    assert read_line(Reply("[07:31] Zoe: hi there"))[0] == read_line(Reply("[07:31] Zoe: hi there\n"))[0] == "ok"
    assert read_line(Reply("[07:31] Ann: hi there"))[0] == "ignored"
    assert read_line(Reply("", reasoning="a greeting", finish_reason="length"))[0] == "cut off"
    url = "http://h/v1, model 'm'"
    error = ModelError("rejected", f"{url}: answered 400 with 'no: not so'; {FIXES['rejected']}")
    assert read_error(error) == ("refused", "", "answered 400 with 'no: not so'")
    empty = ModelError("empty", f"{url}: answered with an empty message (finish_reason length); check max_tokens")
    assert read_error(empty)[:2] == ("cut off", "unseen")
    assert read_error(ModelError("rate_limited", f"{url}: answered 429"))[0] == "busy"
    assert FAULTS.keys() == set(get_args(Fault))


def test_the_command_exits_by_whether_the_policy_can_be_served(tmp_path: Any) -> None:
    def run(url: str, name: str = "x") -> "subprocess.CompletedProcess[str]":
        path = tmp_path / "systems.yaml"
        path.write_text(json.dumps({"systems": [system(url).model_dump()]}), encoding="utf-8")
        command = [sys.executable, "-m", "anthrolab", "doctor", "--system", name, "--systems", str(path)]
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)

    with serve(FULL_VLLM) as served:
        good = run(served.url)
    assert (good.returncode, good.stdout.splitlines()[-1]) == (0, "can serve policy chat")
    with serve(DEAF) as served:
        assert run(served.url).returncode == 1
        unknown = run(served.url, "y")
    assert unknown.returncode == 2
    assert "no system 'y'" in unknown.stderr
    dead = run("http://127.0.0.1:9/v1")
    assert (dead.returncode, "cannot be reached" in dead.stdout) == (1, True)
