"""The reward service against a real server: what becomes of dialogues, failing calls and bad answers, and who is asked what."""

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anthrolab.bench.effort import Effort
from anthrolab.bench.judge import judge_run
from anthrolab.bench.run import generate
from anthrolab.bench.store import Run
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.judging.l0 import check
from anthrolab.judging.rubric import load_rubric
from anthrolab.judging.rules import RulesJudge
from anthrolab.judging.scores import case_score
from anthrolab.judging.verdict import RULES
from anthrolab.models.client import ModelError
from anthrolab.models.engine import open_engine
from anthrolab.models.scripted import Answer, Call, Served, serve
from anthrolab.models.systems import SystemsError
from anthrolab.runtime.dialogue import Ask, Dialogue, Message, Participant, Speaker
from anthrolab.training.reward.batch import Dimensions
from anthrolab.training.reward.capability import Capability
from anthrolab.training.reward.reward import rewards
from anthrolab.training.reward.scores import scores_of
from anthrolab.training.reward.service import Judged, RewardService, batch_of, open_reward_service
from tests.test_bench_run import decide, quiet

RUBRIC = load_rubric()
DIMENSIONS = Dimensions.of(RUBRIC)
K = len(DIMENSIONS.ids)
LIBRARY = load_library(default_cards_dir())
Box = Callable[[str], dict[str, Any]]


def fine(box: str) -> dict[str, Any]:
    if box.startswith("L0"):
        return {"reason": "没有", "violated": False, "message": None}
    return {"reason": "像", "passed": True}


def asked_for(call: Call) -> list[str]:
    """The ids that a judge's call asks about; none for a call that asks for a decision."""
    schema = call.body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return [] if "role" in schema.get("properties", {}) else list(schema.get("properties", {}))


def is_whole(call: Call) -> bool:
    return any(i.startswith("E") for i in asked_for(call))


def answers(call: Call, box: Box = fine) -> str:
    return json.dumps({i: box(i) for i in asked_for(call)}, ensure_ascii=False)


def chat(number: int, said: tuple[str, ...] = ("刚下班 累死", "那周六下午吧"), scenario: str = "s01") -> Dialogue:
    """b opens, then a (evaluated) and b by turns; the number makes it a chat of its own."""
    at = datetime(2026, 3, 6, 20, 31)
    texts: list[tuple[Speaker, str]] = [("b", f"周末有空没 想找你打球 场地{number}号")]
    for i, text in enumerate(said):
        texts += [("a", text), ("b", f"行 第{i}场 {number}号见")]
    messages = [
        Message(speaker=s, content=t, at=at + timedelta(seconds=40 * i), opener=i == 0) for i, (s, t) in enumerate(texts)
    ]
    people: dict[Speaker, Participant] = {"a": Participant(name="林晓雯", persona="p01"), "b": Participant(name="周子航", persona="p02")}
    return Dialogue(
        dialogue_id=f"d{number}", scenario=scenario, evaluated_role="a", speakers=people, start=at, horizon_minutes=15,
        messages=messages, asks=[], guards=[],
    )  # fmt: skip


def systems_file(folder: Path, url: str, **more: Any) -> Path:
    common = {
        "endpoint": url, "model": "m", "server": "openai", "policy": "chat", "retries": 0, "timeout_s": 20.0, "concurrency": 64, **more,
    }  # fmt: skip
    path = folder / "systems.yaml"
    entries = [{"name": "toy", "partner": "toy", **common}, {"name": "oracle", **common}]
    path.write_text(json.dumps({"systems": entries}), encoding="utf-8")
    return path


def judged_by(folder: Path, handler: Callable[[Call], str | Answer], dialogues: list[Dialogue | None], **more: Any) -> tuple[list[Judged | None], Served]:
    """All dialogues judged by a model judge that `handler` answers for."""
    with serve(handler) as served:
        systems = systems_file(folder, served.url, **more.pop("system", {}))

        async def work() -> list[Judged | None]:
            async with open_reward_service(
                "oracle", RUBRIC, LIBRARY, DIMENSIONS, folder / "calls" / "judge-oracle.jsonl", systems_file=systems, **more
            ) as service:
                return await service.judge_all(dialogues)

        return asyncio.run(work()), served


def one(folder: Path, handler: Callable[[Call], str | Answer], dialogue: Dialogue, **more: Any) -> tuple[Judged, Served]:
    (found,), served = judged_by(folder, handler, [dialogue], **more)
    assert found is not None
    return found, served


def reward(judged: Judged | None) -> float:
    found = rewards(batch_of([judged], DIMENSIONS), np.full(K, 0.5), DIMENSIONS)
    return float(found.reward[0])


def test_a_judged_dialogue_has_a_score_in_every_dimension(tmp_path: Path) -> None:
    def box(i: str) -> dict[str, Any]:
        return {"reason": "太像客服", "passed": False} if i in ("D1.4", "E3.1", "E3.2") else fine(i)

    found, served = one(tmp_path, lambda call: answers(call, box), chat(1))
    assert (found.status, found.fault) == ("scored", None)
    assert len(served.calls) == 3, "one for each of two turns, one for the whole"
    scores = dict(zip(DIMENSIONS.ids, found.scores, strict=True))
    assert scores.pop("D1") == pytest.approx(0.8)
    assert scores.pop("E3") == pytest.approx(0.6)
    assert set(scores.values()) == {1.0}
    assert {i for i, a in zip(DIMENSIONS.ids, found.passed, strict=True) if a == 0.0} == {"D1", "E3"}
    assert found.assessed == 1.0
    assert 0 < reward(found) < 1


def test_a_turn_that_was_not_assessed_leaves_the_mean(tmp_path: Path) -> None:
    turns: list[Call] = []

    def handler(call: Call) -> str:
        if is_whole(call):
            return answers(call)
        turns.append(call)
        # of the first turn only D1.1 and D1.2 are answered, one of them no; of the second everything, with all of D1 passed
        if "那周六下午吧" in json.dumps(call.body["messages"][-1], ensure_ascii=False):
            return answers(call)
        return json.dumps({"D1.1": {"reason": "像", "passed": True}, "D1.2": {"reason": "不像", "passed": False}})

    found, _ = one(tmp_path, handler, chat(1))
    scores = dict(zip(DIMENSIONS.ids, found.scores, strict=True))
    assert found.status == "scored"
    assert scores["D1"] == pytest.approx((0.5 + 1.0) / 2), "each turn counts the same, over its own assessed boxes"
    assert scores["D2"] == 1.0, "only the second turn has a box of it"
    assert found.assessed is not None and 0 < found.assessed < 1


@pytest.mark.parametrize(
    ("answer", "fault"),
    [(Answer("oops", status=500), "server_error"), (Answer(status=429), "rate_limited"), (Answer("<html>", status=200), "not_json"), (Answer({"choices": []}), "empty")],
)
def test_a_judge_that_fails_gives_no_reward_and_never_0(answer: Answer, fault: str, tmp_path: Path) -> None:
    found, _ = one(tmp_path, lambda _call: answer, chat(1))
    assert (found.status, found.fault) == ("judge_failed", fault)
    assert np.isnan(found.scores).all()
    assert np.isnan(reward(found))
    batch = batch_of([found], DIMENSIONS)
    before = Capability.initial(DIMENSIONS, dict.fromkeys(DIMENSIONS.ids, 0.5))
    assert before.observe(batch)[0].to_json() == before.to_json(), "the filter learns nothing from it"


@pytest.mark.parametrize("whole", [True, False])
def test_one_failing_call_of_many_is_enough(whole: bool, tmp_path: Path) -> None:
    found, _ = one(tmp_path, lambda call: Answer("oops", status=500) if is_whole(call) == whole else answers(call), chat(1))
    assert (found.status, found.fault) == ("judge_failed", "server_error")
    assert found.verdict is not None and not found.verdict.complete
    assert np.isnan(reward(found))


def test_other_dialogues_are_judged_all_the_same(tmp_path: Path) -> None:
    def handler(call: Call) -> str | Answer:
        return Answer("oops", status=500) if "场地2号" in json.dumps(call.body, ensure_ascii=False) else answers(call)

    found, _ = judged_by(tmp_path, handler, [chat(1), None, chat(2), chat(3)])
    assert [f and f.status for f in found] == ["scored", None, "judge_failed", "scored"]
    batch = batch_of(found, DIMENSIONS)
    assert batch.judged.tolist() == [True, False, False, True]
    given = rewards(batch, np.full(K, 0.5), DIMENSIONS).reward
    assert np.isnan(given).tolist() == [False, True, True, False]


def test_answers_that_cannot_be_read_stay_unassessed_and_are_no_fail(tmp_path: Path) -> None:
    found, served = one(tmp_path, lambda _call: "我觉得挺好的", chat(1))
    assert found.status == "scored", "the judge answered, but said nothing of use"
    assert found.assessed == 0.0
    assert len(served.calls) == 6, "each call is asked once more"
    assert np.isnan(found.scores).all() and np.isnan(found.passed).all()
    assert np.isnan(reward(found))


def test_a_box_without_a_plain_yes_or_no_leaves_its_dimension(tmp_path: Path) -> None:
    def box(i: str) -> dict[str, Any]:
        return {"reason": "像", "passed": "true"} if i.startswith("E2") else fine(i)

    found, _ = one(tmp_path, lambda call: answers(call, box), chat(1))
    assert [i for i, s in zip(DIMENSIONS.ids, found.scores, strict=True) if np.isnan(s)] == ["E2"]
    assert reward(found) == pytest.approx(1.0), "the others carry the weight"


def test_a_dialogue_that_the_gate_refuses_is_not_judged(tmp_path: Path) -> None:
    copied = chat(1, ("刚下班 累死我了", "刚下班 累死我了"))
    nothing_said = chat(2, ())
    broken = chat(3).model_copy(update={"asks": [Ask(speaker="a", now=datetime(2026, 3, 6, 20, 31), error="no JSON in the reply")]})
    found, served = judged_by(tmp_path, answers, [copied, nothing_said, broken])
    assert served.calls == []
    assert [(f.status, f.fault) for f in found if f] == [("invalid", "L0-05"), ("invalid", "no_turns"), ("invalid", "L0-04")]
    assert [reward(f) for f in found] == [0.0, 0.0, 0.0]
    assert all(f and f.rules_score is None for f in found)


def test_the_partner_s_fault_costs_the_policy_nothing(tmp_path: Path) -> None:
    dialogue = chat(1).model_copy(update={"asks": [Ask(speaker="b", now=datetime(2026, 3, 6, 20, 31), error="no JSON in the reply")]})
    found, _ = one(tmp_path, answers, dialogue)
    assert found.status == "scored"
    assert len(found.gate.partner_violations) == 1


@pytest.mark.parametrize(("constraint", "status"), [("L0-09", "invalid"), ("L0-06", "invalid"), ("L0-10", "scored"), ("L0-07", "scored")])
def test_a_fatal_violation_found_by_the_judge_makes_it_invalid_and_a_major_one_does_not(constraint: str, status: str, tmp_path: Path) -> None:
    def box(i: str) -> dict[str, Any]:
        return {"reason": "教人干违法的事", "violated": True, "message": 1} if i == constraint else fine(i)

    found, _ = one(tmp_path, lambda call: answers(call, box), chat(1))
    assert found.status == status
    assert found.fault == (f"judge {constraint}" if status == "invalid" else None)
    assert reward(found) == (0.0 if status == "invalid" else pytest.approx(1.0))
    assert np.isnan(found.scores).all() == (status == "invalid")


def test_a_judge_that_takes_too_long_has_failed(tmp_path: Path) -> None:
    found, _ = one(tmp_path, lambda _call: Answer(hang=True), chat(1), deadline_s=0.3, system={"timeout_s": 1.0})
    assert (found.status, found.fault, found.verdict) == ("judge_failed", "deadline", None)
    assert np.isnan(reward(found))


def test_a_judge_that_is_not_there_ends_it(tmp_path: Path) -> None:
    with serve(answers) as served:
        systems = systems_file(tmp_path, served.url)

    async def work() -> list[Judged | None]:
        async with open_reward_service("oracle", RUBRIC, LIBRARY, DIMENSIONS, tmp_path / "c.jsonl", systems_file=systems) as service:
            return await service.judge_all([chat(1), chat(2)])

    with pytest.raises(ModelError) as failed:
        asyncio.run(work())
    assert failed.value.fault == "unreachable"


def test_many_dialogues_are_judged_at_the_same_time(tmp_path: Path) -> None:
    """Nobody is answered before 15 requests are there at once: 5 dialogues of 3 requests each."""
    together = threading.Barrier(15)

    def handler(call: Call) -> str:
        together.wait(timeout=30)
        return answers(call)

    found, served = judged_by(tmp_path, handler, [chat(i) for i in range(5)])
    assert [f and f.status for f in found] == ["scored"] * 5
    assert len(served.calls) == 15


def test_dialogues_given_one_by_one_run_at_the_same_time_too(tmp_path: Path) -> None:
    together = threading.Barrier(6)

    def handler(call: Call) -> str:
        together.wait(timeout=30)
        return answers(call)

    with serve(handler) as served:
        systems = systems_file(tmp_path, served.url)

        async def work() -> list[Judged]:
            async with open_reward_service("oracle", RUBRIC, LIBRARY, DIMENSIONS, tmp_path / "c.jsonl", systems_file=systems) as service:
                first = asyncio.create_task(service.judge(chat(1)))
                await asyncio.sleep(0.05)  # a second dialogue ends while the first is being judged
                return [await asyncio.create_task(service.judge(chat(2))), await first]

        assert [j.dialogue_id for j in asyncio.run(work())] == ["d2", "d1"]


def test_the_same_chat_twice_in_a_group_is_asked_once(tmp_path: Path) -> None:
    found, served = judged_by(tmp_path, answers, [chat(1), chat(1).model_copy(update={"dialogue_id": "again", "sample": 1})])
    assert len(served.calls) == 3
    assert found[0] is not None and found[1] is not None
    assert np.array_equal(found[0].scores, found[1].scores)


# the bench's replies


def bench(call: Call) -> str:
    return answers(call) if asked_for(call) else decide(call)


async def _through(systems: Path, calls: Path, cache: Path, dialogues: list[Dialogue]) -> list[Judged | None]:
    async with open_reward_service(
        "oracle", RUBRIC, LIBRARY, DIMENSIONS, calls, systems_file=systems, engine_for=lambda _known: open_engine(cache)
    ) as service:
        return await service.judge_all(dialogues)


def test_what_the_bench_has_judged_is_not_asked_again(tmp_path: Path) -> None:
    cache = tmp_path / "replies.sqlite"
    with serve(bench) as served:
        systems = systems_file(tmp_path, served.url)
        generate(tmp_path / "r", "toy", cases=3, max_messages=8, systems_file=systems, progress=quiet)
        judge_run(tmp_path / "r", "oracle", systems_file=systems, effort=Effort(cache), progress=quiet)
        asked = len(served.calls)
        run = Run(tmp_path / "r")
        dialogues = list(run.dialogues().values())
        found = asyncio.run(_through(systems, tmp_path / "calls" / "judge-oracle.jsonl", cache, dialogues))
        assert len(served.calls) == asked, "the service asked what the bench had asked"
    verdicts = run.verdicts("oracle")
    for judged in found:
        assert judged is not None and judged.verdict is not None
        there = verdicts[judged.dialogue_id]
        assert list(judged.verdict.boxes()) == list(there.boxes())
        assert judged.verdict.judge_identity == there.judge_identity
        assert np.array_equal(judged.scores, scores_of(there, RUBRIC, DIMENSIONS)[0], equal_nan=True)


def test_what_the_service_has_judged_the_bench_does_not_ask_again(tmp_path: Path) -> None:
    cache = tmp_path / "replies.sqlite"
    with serve(bench) as served:
        systems = systems_file(tmp_path, served.url)
        generate(tmp_path / "r", "toy", cases=3, max_messages=8, systems_file=systems, progress=quiet)
        asyncio.run(_through(systems, tmp_path / "calls.jsonl", cache, list(Run(tmp_path / "r").dialogues().values())))
        asked = len(served.calls)
        counts = judge_run(tmp_path / "r", "oracle", systems_file=systems, effort=Effort(cache), progress=quiet)
        assert len(served.calls) == asked
    assert counts["judged"] == 3


def test_a_command_that_was_killed_goes_on_from_its_own_log(tmp_path: Path) -> None:
    with serve(answers) as served:
        systems = systems_file(tmp_path, served.url)
        for _ in range(2):
            async def work() -> list[Judged | None]:
                async with open_reward_service("oracle", RUBRIC, LIBRARY, DIMENSIONS, tmp_path / "c.jsonl", systems_file=systems) as service:
                    return await service.judge_all([chat(1)])

            asyncio.run(work())
        assert len(served.calls) == 3


def test_an_engine_that_is_open_already_can_be_shared(tmp_path: Path) -> None:
    with serve(answers) as served:
        systems = systems_file(tmp_path, served.url)

        async def work() -> dict[tuple[str, str], int]:
            async with open_engine() as engine:
                async with open_reward_service(
                    "oracle", RUBRIC, LIBRARY, DIMENSIONS, tmp_path / "c.jsonl", systems_file=systems, engine_for=lambda _known: nullcontext(engine)
                ) as service:
                    await service.judge_all([chat(1)])
                    assert service.opened is not None and service.opened.engine is engine
                return {key: toll.usage.calls for key, toll in engine.meter.tolls.items()}

        assert asyncio.run(work()) == {("oracle", "judge"): 3}


# the rules judge


def judge_by_rules(library: Library, dialogues: list[Dialogue | None], folder: Path) -> list[Judged | None]:
    async def work() -> list[Judged | None]:
        async with open_reward_service(RULES, RUBRIC, library, DIMENSIONS, folder / "none.jsonl") as service:
            return await service.judge_all(dialogues)

    return asyncio.run(work())


def test_the_rules_judge_needs_no_server_and_leaves_open_what_rules_cannot_decide(tmp_path: Path) -> None:
    (found,) = judge_by_rules(LIBRARY, [chat(1)], tmp_path)
    assert found is not None and found.verdict is not None
    expected = RulesJudge(RUBRIC).verdict(chat(1), chat(1).cards_of(LIBRARY.personas), LIBRARY.scenarios["s01"])
    assert found.verdict == expected
    assert found.rules_score == case_score(expected, RUBRIC)
    assert found.assessed is not None and 0 < found.assessed < 1
    assert not (tmp_path / "none.jsonl").exists()


def test_the_rules_are_watched_beside_a_model_judge(tmp_path: Path) -> None:
    found, _ = one(tmp_path, answers, chat(1))
    (by_rules,) = judge_by_rules(LIBRARY, [chat(1)], tmp_path)
    assert by_rules is not None
    assert found.rules_score == by_rules.rules_score is not None
    assert not np.array_equal(found.scores, by_rules.scores, equal_nan=True)


def test_a_service_without_a_rules_judge_watches_nothing(tmp_path: Path) -> None:
    with serve(answers) as served:
        systems = systems_file(tmp_path, served.url)

        async def work() -> Judged:
            async with open_reward_service("oracle", RUBRIC, LIBRARY, DIMENSIONS, tmp_path / "c.jsonl", systems_file=systems) as service:
                return await RewardService(service.asked, RUBRIC, LIBRARY, DIMENSIONS).judge(chat(1))

        assert asyncio.run(work()).rules_score is None


def test_an_unknown_judge_is_refused(tmp_path: Path) -> None:
    async def work() -> None:
        async with open_reward_service("nobody", RUBRIC, LIBRARY, DIMENSIONS, tmp_path / "c.jsonl"):
            pass

    with pytest.raises(SystemsError, match="nobody"):
        asyncio.run(work())


# rows


def test_what_was_judged_comes_back_from_its_row_to_the_last_bit(tmp_path: Path) -> None:
    def box(i: str) -> dict[str, Any]:
        return {"reason": "不像", "passed": False} if i in ("D2.1", "E1.1") else fine(i)

    dialogues: list[Dialogue | None] = [chat(1, ("刚下班", "那周六吧", "两点行不")), chat(2, ("哈喽哈喽哈喽", "哈喽哈喽哈喽"))]
    found, _ = judged_by(tmp_path, lambda call: answers(call, box), dialogues)
    for judged in found:
        assert judged is not None
        back = Judged.of_row(json.loads(json.dumps(judged.as_row(DIMENSIONS))), DIMENSIONS)
        assert back.scores.tobytes() == judged.scores.tobytes()
        assert back.passed.tobytes() == judged.passed.tobytes()
        empty = np.empty(0)
        assert replace(back, scores=empty, passed=empty) == replace(judged, scores=empty, passed=empty)


def test_an_empty_batch_has_the_rubric_s_width() -> None:
    assert batch_of([], DIMENSIONS).scores.shape == (0, K)


def test_the_chats_of_these_tests_pass_the_gate() -> None:
    for number in range(3):
        dialogue = chat(number)
        assert check(dialogue, dialogue.cards_of(LIBRARY.personas), LIBRARY.scenarios["s01"]).valid
