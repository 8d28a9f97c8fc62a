"""The model judge: what it is shown, and how its answers are read (tests/test_judging_injection.py: that no chat instructs it)."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.judging.answers import answer_schema, answer_text, read_answers
from anthrolab.judging.llm import LLMJudge, rubric_text
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.judging.scores import case_pass, case_score, coverage
from anthrolab.judging.verdict import JUDGED_L0, Verdict
from anthrolab.models.client import ModelError, Reply, Request
from anthrolab.models.scripted import Scripted, ScriptedModel
from anthrolab.models.systems import System
from anthrolab.runtime.dialogue import Dialogue, Message, Participant, Speaker
from tests.cards_for_tests import make_persona, make_scenario

RUBRIC = load_rubric()
PEOPLE: dict[Speaker, Persona] = {"a": make_persona(), "b": make_persona("p91", "周子航", 29)}
TEXTS = ["周末有空没", "有啊 咋了", "抢到场了", "三点到五点", "厉害啊", "我拍子断了", "啥时候的事", "就今天", "周六见"]


def chat(texts: list[str] = TEXTS, name: str = "林晓雯") -> Dialogue:
    """b and a by turns, twelve seconds apart; a is evaluated."""
    start = datetime(2026, 3, 6, 20, 31)
    speakers: dict[Speaker, Participant] = {"a": Participant(name=name), "b": Participant(name="周子航")}
    messages = [
        Message(speaker="ba"[i % 2], content=t, at=start + timedelta(seconds=12 * i), opener=i == 0)  # type: ignore[arg-type]
        for i, t in enumerate(texts)
    ]
    return Dialogue(dialogue_id="d", evaluated_role="a", speakers=speakers, messages=messages)


def question(request: Request) -> str:
    assert request.messages is not None
    return str(request.messages[-1]["content"]).rsplit("材料到此为止。", 1)[1]


def asked(request: Request) -> list[str]:
    """The ids a request asks about, read from its last paragraph as a model would."""
    return re.findall(r"[A-Z]\d+\.\d+|L0-\d\d", question(request))


def entry(i: str, good: bool = True) -> dict[str, Any]:
    if i in JUDGED_L0:
        return {"reason": "没有", "violated": not good, "message": None if good else 1}
    return {"reason": "口语", "passed": good}


def answer(request: Request, **changes: Any) -> str:
    """Everything passes; `D1_2=value` replaces an entry, `D1_2=...` leaves it out."""
    entries = {i: entry(i) for i in asked(request)}
    for key, value in changes.items():
        i = key.replace("L0_", "L0-").replace("_", ".")
        if i in entries:
            entries[i] = value
            if value is ...:
                del entries[i]
    return json.dumps(entries, ensure_ascii=False)


def system(**fields: Any) -> System:
    base = {"name": "oracle", "endpoint": "http://h/v1", "model": "m", "server": "vllm", "policy": "chat"}
    return System(**{**base, **fields})


def judged(
    script: Callable[[Request], Scripted], dialogue: Dialogue | None = None, **options: Any
) -> tuple[Verdict, ScriptedModel]:
    model = ScriptedModel(script)
    judge = LLMJudge(model, system(**options.pop("system", {})), options.pop("rubric", RUBRIC))
    people = options.pop("people", PEOPLE)
    scenario = options.pop("scenario", make_scenario())
    return asyncio.run(judge.judge(dialogue or chat(), people, scenario)), model


def test_every_checkbox_of_every_turn_and_of_the_dialogue_is_answered() -> None:
    verdict, model = judged(answer)
    assert len(model.requests) == 4 + 1
    assert [(t.turn_index, t.message_index) for t in verdict.turns] == [(1, 1), (2, 3), (3, 5), (4, 7)]
    assert coverage(verdict.boxes()) == (4 * 21 + 23, 4 * 21 + 23)
    assert (case_score(verdict, RUBRIC), case_pass(verdict), verdict.complete) == (100.0, True, True)
    assert verdict.l0_executed() == list(JUDGED_L0)
    assert verdict.judge_violations() == []
    assert verdict.rungs == {"json_schema": 5}
    assert verdict.errors == []
    assert Verdict.model_validate_json(verdict.to_line()) == verdict


def test_a_failed_checkbox_and_a_violation_keep_reason_and_place() -> None:
    def script(request: Request) -> str:
        return answer(
            request,
            D1_4={"reason": "像客服", "passed": False},
            L0_07={"reason": "改了订单", "violated": True, "message": 3},
        )

    verdict, _ = judged(script)
    assert [b.reason for t in verdict.turns for b in t.boxes if b.passed is False] == ["像客服"] * 4
    assert [(v.id, v.message_index, v.reason) for v in verdict.judge_violations()] == [("L0-07", 3, "改了订单")]


def test_requests_are_at_zero_temperature_with_the_rubric_first_and_equal_for_all_turns() -> None:
    _, model = judged(answer, system={"sampling": {"temperature": 0.7, "top_p": 0.8}, "judge_max_tokens": 900})
    for r in model.requests:
        assert {k: v for k, v in r.params.items() if k != "response_format"} == {"temperature": 0, "max_tokens": 900}
    local = [r for r in model.requests if "D1.1" in asked(r)]
    systems = {r.messages[0]["content"] for r in local if r.messages}
    assert len(systems) == 1
    system = systems.pop()
    assert rubric_text(RUBRIC, "turn") in system
    assert all(box.question in system for box in RUBRIC.boxes("turn"))


def shared(texts: Sequence[str]) -> str:
    return "".join(c[0] for c in takewhile(lambda c: len(set(c)) == 1, zip(*texts, strict=False)))


def local_prompts(model: ScriptedModel) -> list[str]:
    """The prompts of the turns as a server gets them: system, then user."""
    local = [r for r in model.requests if "D1.1" in asked(r)]
    return ["\n\n".join(str(m["content"]) for m in r.messages or []) for r in local]


@pytest.mark.parametrize("system_role", [True, False])
def test_the_turns_of_a_dialogue_share_all_up_to_the_chat(system_role: bool) -> None:
    texts = [f"第{i}句" for i in range(20)]
    _, model = judged(answer, chat(texts), system={"system_role": system_role})
    prompts = local_prompts(model)
    assert len(prompts) == 10
    common = shared(prompts)
    # rubric, card, scenario, memory; then each turn's own window with its own boundary
    positions = [common.index(text) for text in ("【清单】", "\n<<<PERSONA ", "\n<<<SCENARIO ", "\n<<<MEMORY ", "\n<<<CHAT ")]
    assert positions == sorted(positions)


def test_a_changed_message_changes_the_prompts_of_the_turns_that_see_it_and_no_others() -> None:
    texts = [f"第{i}句" for i in range(20)]
    before, after = (judged(answer, chat(said))[1] for said in (texts, [*texts[:9], "改过了", *texts[10:]]))
    same = [x == y for x, y in zip(local_prompts(before), local_prompts(after), strict=True)]
    # own turns are messages 1, 3, 5 ...; a turn sees itself and the five before it: 9, 11 and 13 see message 9
    assert same == [True] * 4 + [False] * 3 + [True] * 3


def test_what_is_asked_again_shares_all_but_the_question() -> None:
    _, model = judged(lambda r: answer(r, D1_2=...), chat(TEXTS[:2]))
    (first,) = local_prompts(model)
    again = next(r for r in model.requests if r.salt)
    text = "\n\n".join(str(m["content"]) for m in again.messages or [])
    assert shared([first, text]).endswith("材料到此为止。请逐项回答这些编号：D1.")


def test_the_prompts_of_two_dialogues_share_the_rubric_and_the_instructions() -> None:
    _, one = judged(answer)
    other = {"a": make_persona("p92", "马腾"), "b": PEOPLE["b"]}
    _, two = judged(answer, chat(["吃了没", "吃了"], "马腾"), people=other, scenario=None)
    common = shared([*local_prompts(one), *local_prompts(two)])
    assert common.startswith(str((one.requests[1].messages or [])[0]["content"]))
    assert rubric_text(RUBRIC, "turn") in common
    assert common.endswith("\n\n<<<PERSONA ")
    whole = [str((m.requests[0].messages or [])[0]["content"]) for m in (one, two)]
    assert whole[0] == whole[1] and rubric_text(RUBRIC, "dialogue") in whole[0]


def test_a_local_call_sees_the_target_and_five_messages_before_it_with_times() -> None:
    _, model = judged(answer)
    last = next(r for r in model.requests if r.messages and "#7 2026-03-06 20:32:24 被评者（待评）" in r.messages[1]["content"])
    assert last.messages is not None
    shown = re.findall(r"#(\d+) ", last.messages[1]["content"])
    assert shown == ["2", "3", "4", "5", "6", "7"]


def test_the_global_call_sees_everything_and_the_evaluated_role_marked() -> None:
    _, model = judged(answer)
    whole = next(r for r in model.requests if "E1.1" in asked(r))
    assert whole.messages is not None
    lines = [line for line in whole.messages[1]["content"].splitlines() if line.startswith("#")]
    assert len(lines) == len(TEXTS)
    assert lines[0] == "#0 2026-03-06 20:31:00 对方（开场白，给定的，不评）：\"周末有空没\""
    assert lines[1] == "#1 2026-03-06 20:31:12 被评者：\"有啊 咋了\""


BAD_ENTRIES: dict[str, Any] = {
    "text": {"reason": "x", "passed": "true"}, "number": {"reason": "x", "passed": 1}, "null": {"reason": "x", "passed": None},
    "no verdict": {"reason": "x"}, "bare": True, "list": [True], "float": {"reason": "x", "passed": 1.0},
    "word": {"reason": "x", "passed": "是"},
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD_ENTRIES.values(), ids=BAD_ENTRIES.keys())
def test_what_is_not_a_plain_boolean_is_no_answer(bad: Any) -> None:
    verdict, model = judged(lambda r: answer(r, D2_1=bad))
    boxes = [b for t in verdict.turns for b in t.boxes if b.id == "D2.1"]
    assert [(b.passed, b.unassessed) for b in boxes] == [(None, "not_boolean")] * 4
    assert sum(b.passed is None for b in verdict.boxes()) == 4
    assert case_score(verdict, RUBRIC) == 100.0
    assert len(model.requests) == 5 + 4
    assert [(e.scope, e.turn_index, e.fault) for e in verdict.errors] == [("turn", n, "not_boolean") for n in (1, 2, 3, 4)]
    assert verdict.complete


def test_missing_duplicated_and_unknown_ids() -> None:
    def script(request: Request) -> str:
        if "D1.1" not in question(request):
            return answer(request)
        entries = [(i, entry(i)) for i in asked(request) if i != "D1.2"]
        entries += [("D1.3", entry("D1.3", False)), ("D9.9", entry("D9.9"))]
        return "{" + ",".join(f'"{i}": {json.dumps(e)}' for i, e in entries) + "}"

    verdict, _ = judged(script)
    reasons = verdict.unassessed()
    # asked again by themselves, D1.2 and D1.3 are answered (that question has no D1.1)
    assert reasons == {}
    assert [e.fault for e in verdict.errors] == ["unknown_id"] * 4

    ids = ["D1.1", "D1.2", "D1.3"]
    once = '{"D1.1": {"passed": true}, "D1.3": {"passed": true}, "D1.3": {"passed": false}}'
    got = read_answers(once, ids, [])
    assert got.missing == {"D1.2": "missing_id", "D1.3": "duplicate_id"}
    assert got.boxes["D1.1"].passed is True
    twice = read_answers('{"D1.1": {"passed": true, "passed": false}}', ["D1.1"], [])
    assert twice.missing == {"D1.1": "not_boolean"}


def test_only_the_open_ids_are_asked_again_and_only_once() -> None:
    def script(request: Request) -> str:
        return answer(request, D1_2=..., E1_1=...)

    verdict, model = judged(script)
    again = [r for r in model.requests if r.salt]
    assert sorted(tuple(asked(r)) for r in again) == [("D1.2",)] * 4 + [("E1.1",)]
    assert verdict.unassessed() == {"missing_id": 5}
    assert len(model.requests) == 10
    format_of_again = again[0].params["response_format"]["json_schema"]["schema"]
    assert format_of_again["required"] in (["D1.2"], ["E1.1"])


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ('{"D1.1": {"passed": true}}', True),
        ('```json\n{"D1.1": {"passed": true}}\n```', True),
        ('好的，结论如下：\n{"D1.1": {"passed": true}}\n以上。', True),
        ('{"D1.1": {"passed": true}', False),
        ('{"D1.1": {"passed": true}} {"D1.1": {"passed": false}}', False),
        ('[{"id": "D1.1", "passed": true}, {"id": "D1.2", "passed": true}]', False),
        ("D1.1 通过", False),
        ("", False),
        ("{" * 5000 + "}" * 5000, False),
        ('{"D1.1": {"passed": True}}', False),
        ("null", False),
    ],
)
def test_reading_a_reply(text: str, readable: bool) -> None:
    got = read_answers(text, ["D1.1"], [])
    assert (got.boxes["D1.1"].passed if readable else got.missing["D1.1"]) == (True if readable else "parse_error")


@given(st.text() | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_no_reply_makes_an_answer_out_of_nothing(text: str) -> None:
    got = read_answers(text, ["D1.1", "L0-07"], [1])
    assert got.boxes == {}
    assert got.l0 == {}
    assert set(got.missing) == {"D1.1", "L0-07"}


@given(st.sampled_from([True, False, "true", 0, 1, None, {}]), st.sampled_from([1, 3, 0, 2, -1, 99, True, "1", 1.0, None]))
def test_an_l0_violation_names_a_message_of_the_evaluated_role(violated: Any, number: Any) -> None:
    got = read_answers(json.dumps({"L0-07": {"reason": "x", "violated": violated, "message": number}}), ["L0-07"], [1, 3])
    if violated is False:
        assert got.l0["L0-07"].violated is False
    elif violated is True and number in (1, 3) and type(number) is int:
        assert got.l0["L0-07"].message_index == number
    else:
        assert got.missing["L0-07"] == ("bad_message" if violated is True else "not_boolean")


def test_a_reason_with_half_a_surrogate_can_be_written() -> None:
    got = read_answers('{"D1.1": {"reason": "\\ud83d 坏", "passed": false}}', ["D1.1"], [])
    assert got.boxes["D1.1"].reason == "? 坏"


def test_unreadable_and_cut_replies_stay_unassessed_under_their_reason() -> None:
    def script(request: Request) -> Scripted:
        return Reply('{"D1.1": {"rea', finish_reason="length") if "D1.1" in asked(request) else "抱歉，我不能评价。"

    verdict, model = judged(script)
    assert verdict.unassessed() == {"truncated": 84, "parse_error": 23}
    assert {a.unassessed for a in verdict.l0} == {"parse_error"}
    assert (case_score(verdict, RUBRIC), case_pass(verdict)) == (None, None)
    assert verdict.complete
    assert len(model.requests) == 10


def test_a_reply_that_is_unreadable_once_is_mended_by_asking_again() -> None:
    verdict, _ = judged(lambda r: answer(r) if r.salt else "好的")
    assert coverage(verdict.boxes()).assessed == 107
    assert verdict.errors == []


def test_a_model_error_leaves_its_checkboxes_and_marks_the_verdict_incomplete() -> None:
    def script(request: Request) -> Scripted:
        return ModelError("timeout", "no answer in 60 s") if "#7" in str(request.messages) else answer(request)

    verdict, _ = judged(script)
    assert not verdict.complete
    assert {b.unassessed for b in verdict.turns[3].boxes} == {"model_error:timeout"}
    assert {b.passed for t in verdict.turns[:3] for b in t.boxes} == {True}
    assert [(e.scope, e.turn_index, e.fault) for e in verdict.errors] == [
        ("turn", 4, "model_error:timeout"), ("dialogue", None, "model_error:timeout"),
    ]  # fmt: skip
    assert verdict.errors[0].message == "no answer in 60 s"


@pytest.mark.parametrize(("refuses", "rung"), [(("json_schema",), "json_object"), (("json_schema", "json_object"), "prompt")])
def test_a_server_that_refuses_a_format_is_stepped_down_for_good(refuses: tuple[str, ...], rung: str) -> None:
    def script(request: Request) -> Scripted:
        kind = request.params.get("response_format", {}).get("type")
        return ModelError("rejected", "response_format") if kind in refuses else answer(request)

    model = ScriptedModel(script)
    judge = LLMJudge(model, system(), RUBRIC)
    first = asyncio.run(judge.judge(chat(), PEOPLE, make_scenario()))
    assert first.rungs == {rung: 5}
    assert coverage(first.boxes()).assessed == 107
    before = len(model.requests)
    second = asyncio.run(judge.judge(chat(), PEOPLE, make_scenario()))
    assert second == first
    assert len(model.requests) == before + 5


def test_a_server_that_refuses_everything_is_not_asked_for_ever() -> None:
    verdict, model = judged(lambda _: ModelError("rejected", "context too long"))
    assert len(model.requests) == 5 * 3
    assert not verdict.complete
    assert verdict.unassessed() == {"model_error:rejected": 107}


def test_rungs_count_every_answer_and_no_failure() -> None:
    def script(request: Request) -> Scripted:
        if "#7" in str(request.messages) and "E1.1" not in asked(request) and not request.salt:
            return answer(request, D1_2=...)  # turn 4 (message 7) is asked again about one id
        if request.salt or ("#5 " in str(request.messages) and "（待评）" in str(request.messages)):
            return ModelError("timeout", "no answer")  # as is every window with message 5, and whatever is asked again
        return answer(request)

    verdict, model = judged(script)
    got = [b for b in verdict.turns[3].boxes if b.passed is not None]
    assert len(model.requests) == 5 + 1
    assert len(got) == 20 and {b.unassessed for b in verdict.turns[3].boxes} == {None, "model_error:timeout"}
    assert verdict.rungs == {"json_schema": 4}, "turns 1, 2 and 4 and the dialogue; not turn 3, nor what failed when asked again"
    assert not verdict.complete


def test_the_rung_of_what_is_asked_again_is_counted_where_it_was_had() -> None:
    def script(request: Request) -> Scripted:
        kind = request.params.get("response_format", {}).get("type")
        if request.salt and kind == "json_schema":
            return ModelError("rejected", "too small a schema for this server")
        return answer(request) if request.salt else answer(request, D1_2=...)

    verdict, _ = judged(script)
    # the dialogue and the first turn on the first rung; from the first refusal on the second one, for all that follows
    assert verdict.rungs == {"json_schema": 2, "json_object": 3 + 4}
    assert coverage(verdict.boxes()).assessed == 107


@pytest.mark.parametrize("after", [1, 4, 5, 7])
def test_a_server_that_refuses_a_format_only_at_a_later_call_still_works(after: int) -> None:
    class Forgetful:
        """Takes json_schema for so many calls and never again."""

        identity = "forgetful"
        seen = 0

        async def ask(self, request: Request) -> Reply:
            await asyncio.sleep(0)
            if request.params.get("response_format", {}).get("type") == "json_schema":
                self.seen += 1
                if self.seen > after:
                    raise ModelError("rejected", "response_format is not supported")
            return Reply(answer(request))

    async def twice() -> list[Verdict]:
        judge = LLMJudge(Forgetful(), system(), RUBRIC)
        return [await judge.judge(chat(), PEOPLE, make_scenario()) for _ in range(2)]

    verdicts = asyncio.run(twice())
    assert [coverage(v.boxes()).assessed for v in verdicts] == [107, 107]
    first = {"json_schema": min(after, 5), "json_object": max(0, 5 - after)}
    second = {"json_schema": max(0, after - 5), "json_object": min(5, 10 - after)}
    assert [v.rungs for v in verdicts] == [{k: n for k, n in sorted(r.items()) if n} for r in (first, second)]
    assert all(v.complete and v.errors == [] for v in verdicts)


def test_a_salt_asks_everything_anew_and_is_no_part_of_the_identity() -> None:
    model = ScriptedModel(lambda r: answer(r, D1_2=...))
    judges = [LLMJudge(model, system(), RUBRIC, salt=salt) for salt in ("", "second")]
    for judge in judges:
        asyncio.run(judge.judge(chat(), PEOPLE, make_scenario()))
    keys = [r.key("s") for r in model.requests]
    assert len(set(keys)) == len(keys) == 2 * (5 + 4)
    assert {r.salt for r in model.requests} == {"", "again-1", "second", "again-1 second"}
    assert judges[0].identity == judges[1].identity


OBJECT = '{"D1.1": {"reason": "口语", "passed": true}}'


@pytest.mark.parametrize(
    ("reply", "taken"),
    [
        (Reply("", reasoning=OBJECT), True),
        (Reply(" \n", reasoning=f"\n{OBJECT}\n"), True),
        (Reply("", reasoning=f"想了想：{OBJECT}"), False),
        (Reply("", reasoning=f"{OBJECT} 就这样"), False),
        (Reply("", reasoning=f"```json\n{OBJECT}\n```"), False),
        (Reply("", reasoning=f"{OBJECT}\n{OBJECT}"), False),
        (Reply("", reasoning=f"[{OBJECT}]"), False),
        (Reply("", reasoning=OBJECT[:-1]), False),
        (Reply("", reasoning=OBJECT, finish_reason="length"), False),
        (Reply("好", reasoning=OBJECT), False),
        (Reply("{}", reasoning=OBJECT), False),
        (Reply(""), False),
        (Reply("", reasoning=" "), False),
    ],
    ids=range(13),
)
def test_an_answer_in_the_reasoning_field_is_one_only_if_nothing_is_said_and_it_is_nothing_but_the_object(reply: Reply, taken: bool) -> None:
    text, thought = answer_text(reply)
    assert thought is taken
    got = read_answers(text, ["D1.1"], [], reply.truncated)
    assert set(got.boxes) == ({"D1.1"} if taken else set())
    if not taken:
        assert got.missing["D1.1"] in ("parse_error", "truncated", "missing_id")


def test_a_judge_that_answers_in_its_reasoning_is_read_and_it_is_said() -> None:
    verdict, model = judged(lambda r: Reply("", reasoning=answer(r)))
    assert coverage(verdict.boxes()) == (107, 107)
    assert (len(model.requests), verdict.from_reasoning, verdict.errors) == (5, 5, [])
    assert judged(answer)[0].from_reasoning == 0
    drafts, model = judged(lambda r: Reply("", reasoning=f"先打个草稿：{answer(r)}"))
    assert (coverage(drafts.boxes()).assessed, drafts.from_reasoning, len(model.requests)) == (0, 0, 10)
    assert set(drafts.unassessed()) == {"parse_error"}
    assert case_score(drafts, RUBRIC) is None


def test_the_schema_wants_every_id_with_its_reason_before_its_verdict() -> None:
    schema = answer_schema(["D1.1", "L0-07"])
    assert schema["required"] == ["D1.1", "L0-07"]
    assert list(schema["properties"]["D1.1"]["properties"]) == ["reason", "passed"]
    assert list(schema["properties"]["L0-07"]["properties"]) == ["reason", "violated", "message"]
    assert schema["additionalProperties"] is False


def test_without_cards_what_needs_them_is_not_asked() -> None:
    verdict, model = judged(answer, people={}, scenario=None)
    needs_persona = [b.id for b in RUBRIC.boxes() if "persona" in b.needs]
    assert all(i not in asked(r) for r in model.requests for i in [*needs_persona, "L0-06", "E2.1"])
    local = len([b for b in RUBRIC.boxes("turn") if b.needs])
    assert verdict.unassessed() == {"no_persona": 4 * local, "no_scenario": 4}
    assert {a.id: a.unassessed for a in verdict.l0}["L0-06"] == "no_persona"
    assert case_score(verdict, RUBRIC) == 100.0
    assert verdict.complete


def test_a_silent_role_costs_no_call() -> None:
    verdict, model = judged(answer, chat(["在吗"]))
    assert model.requests == []
    assert set(verdict.unassessed()) == {"no_turns"}
    assert verdict.complete


def test_a_rubric_of_other_counts() -> None:
    def part(i: str, scope: str, boxes: int) -> dict[str, Any]:
        questions = [{"id": f"{i}.{n}", "question": f"{i} {n}?"} for n in range(1, boxes + 1)]
        return {"id": i, "name": i, "scope": scope, "weight": 1, "checkboxes": questions}

    rubric = Rubric.model_validate({"name": "x", "dimensions": [part("D1", "turn", 7), part("E1", "dialogue", 1)]})
    verdict, _ = judged(answer, rubric=rubric)
    assert [len(t.boxes) for t in verdict.turns] == [7] * 4
    assert len(verdict.dialogue) == 1
    assert coverage(verdict.boxes()) == (29, 29)


@pytest.mark.parametrize("cards", [True, False])
def test_a_dialogue_that_was_given_up_has_the_whole_card_of_a_judged_one_and_says_why(cards: bool) -> None:
    people, scenario = (PEOPLE, make_scenario()) if cards else ({}, None)
    model = ScriptedModel(answer)
    judge = LLMJudge(model, system(), RUBRIC)
    verdict = judge.unanswered(chat(), people, scenario, "deadline", "took longer than 5 s")
    assert model.requests == []
    answered = asyncio.run(judge.judge(chat(), people, scenario))
    same = ("dialogue_id", "judge", "judge_identity", "rubric")
    assert [getattr(verdict, name) for name in same] == [getattr(answered, name) for name in same]
    assert [(t.turn_index, t.message_index) for t in verdict.turns] == [(t.turn_index, t.message_index) for t in answered.turns]
    # a card that is missing is missing in both; all else was to be asked
    for box, other in zip(verdict.boxes(), answered.boxes(), strict=True):
        assert (box.id, box.passed, box.unassessed) == (other.id, None, other.unassessed or "model_error:deadline")
    for said, other in zip(verdict.l0, answered.l0, strict=True):
        assert (said.id, said.violated, said.unassessed) == (other.id, None, other.unassessed or "model_error:deadline")
    (error,) = verdict.errors
    assert (error.scope, error.turn_index, error.fault, error.message) == ("dialogue", None, "model_error:deadline", "took longer than 5 s")
    assert not verdict.complete and answered.complete
    assert (verdict.rungs, verdict.from_reasoning) == ({}, 0)
    assert verdict.unassessed()["no_persona"] == (0 if cards else answered.unassessed()["no_persona"])


def test_a_judge_whose_server_takes_no_temperature_is_sent_none() -> None:
    _, model = judged(answer, system={"sampling": {"temperature": None}})
    assert model.requests and not any("temperature" in r.params for r in model.requests)


@pytest.mark.parametrize(("thinking", "suffix"), [(True, " /think"), (False, " /no_think")])
def test_a_judge_thinks_or_not_by_the_suffix_after_its_question(thinking: bool, suffix: str) -> None:
    verdict, model = judged(answer, system={"thinking": thinking, "thinking_style": "no_think_suffix"})
    assert verdict.unassessed() == {}
    assert {question(r)[-len(suffix):] for r in model.requests} == {suffix}


def test_a_judge_without_a_system_role_gets_the_rubric_before_the_materials() -> None:
    verdict, model = judged(answer, system={"system_role": False})
    assert verdict.unassessed() == {}
    _, usual = judged(answer)
    joined = ["\n\n".join(m["content"] for m in r.messages or []) for r in usual.requests]
    assert [list(r.messages or []) for r in model.requests] == [[{"role": "user", "content": text}] for text in joined]


def test_the_identity_follows_how_the_model_is_asked() -> None:
    def identity(server: str = "s", **fields: Any) -> str:
        return LLMJudge(ScriptedModel([], server), system(**fields), RUBRIC).identity

    suffix = {"thinking_style": "no_think_suffix"}
    different = [
        identity(), identity(server="t"), identity(model="n"), identity(judge_max_tokens=9), identity(system_role=False),
        identity(thinking=True, **suffix), identity(thinking=False, **suffix),
    ]  # fmt: skip
    assert len(set(different)) == len(different)
    assert identity() == identity() == identity(name="other", max_tokens=9, sampling={"temperature": 1.0})


MEMORY = Memory(owner="p90", partner="p91", as_of=date(2026, 2, 20), facts=["他二月搬了家"], concerns=["怕狗"])


def test_the_judge_sees_the_memory_of_the_evaluated_role_with_its_day_and_not_the_partners() -> None:
    dialogue = chat(TEXTS)
    dialogue.memories = {"a": MEMORY, "b": MEMORY.model_copy(update={"facts": ["她是左撇子"], "owner": "p91", "partner": "p90"})}
    _, model = judged(answer, dialogue)
    for request in model.requests:
        user = str((request.messages or [])[1]["content"])
        shown = user.partition("<<<MEMORY ")[2].partition("MEMORY ")[0]
        assert "截至：2026-02-20" in shown and "他二月搬了家" in shown and "怕狗" in shown
        assert "左撇子" not in user
    _, model = judged(answer, chat(TEXTS))
    assert "（没有以前的记忆）" in str((model.requests[0].messages or [])[1]["content"])
