"""Whole episodes with a sampler of canned replies: the real session, scheduler, prompts, partner over HTTP and judge."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from anthrolab.bench.cases import Case, select_cases
from anthrolab.bench.settings import Limits, State
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.judging.rubric import load_rubric
from anthrolab.loop.context import Context
from anthrolab.models.client import ModelError
from anthrolab.models.engine import Engine
from anthrolab.models.opening import open_models
from anthrolab.models.scripted import Answer, Call, Served, serve
from anthrolab.models.systems import System
from anthrolab.runtime.session import replay
from anthrolab.sync import run_async
from anthrolab.training.grpo.episodes import Episodes
from anthrolab.training.grpo.files import read_rollouts, write_rollouts
from anthrolab.training.grpo.rollout import Prompt, Sampled
from anthrolab.training.grpo.settings import GRPOSettings
from anthrolab.training.grpo.timeline import Timeline, busy, overlap
from anthrolab.training.grpo.voice import Voice
from anthrolab.training.reward.batch import Dimensions
from anthrolab.training.reward.service import open_reward_service
from anthrolab.training.tokens import render
from tests.policy_for_tests import partner

pytest.importorskip("transformers")
from anthrolab.training.chat_template import with_chat_template
from tests.training_for_tests import tiny_tokenizer

LIBRARY, RUBRIC = load_library(default_cards_dir()), load_rubric()
DIMENSIONS = Dimensions.of(RUBRIC)
CASES = select_cases(LIBRARY, 3)


class Canned:
    """Answers every prompt with a decision that keeps the contract; remembers each wave."""

    def __init__(self, voice: Voice, reply: Any = None) -> None:
        self.voice, self.reply, self.waves = voice, reply, []  # type: ignore[var-annotated]

    def sample(self, prompts: Sequence[Prompt], seed: int) -> list[Sampled]:
        self.waves.append([(p.group, p.whose) for p in prompts])
        return [self.one(i, p, seed) for i, p in enumerate(prompts)]

    def one(self, place: int, prompt: Prompt, seed: int) -> Sampled:
        text = self.voice.tokenizer.decode(list(prompt.ids))
        said = self.reply(place, text, len(self.waves)) if self.reply else decision(text, f"第{len(self.waves)}句{place}")
        ids = self.voice.tokenizer(said + "<end_of_turn>")["input_ids"]
        return Sampled(tuple(ids), True)


def decision(prompt: str, content: str, after: str | None = None) -> str:
    """A decision by the speaker that a prompt is for, at the time that it states."""
    import re

    name = re.findall(r'"role": "([^"]+)"', prompt)[-1]
    now = re.findall(r"现在是 ?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)", prompt)[-1]
    return json.dumps({"role": name, "response": {"content": content, "timestamp": after or now, "end": not content}}, ensure_ascii=False)


@pytest.fixture(scope="module")
def voice_tokenizer() -> Any:
    tokenizer = tiny_tokenizer()
    with_chat_template(tokenizer, "tiny")
    return tokenizer


@pytest.fixture
def toy() -> Iterator[Served]:
    with serve(partner) as served:
        yield served


def settings_of(tmp_path: Path, **changes: Any) -> GRPOSettings:
    return GRPOSettings.of(**{"policy": "tiny", "out": tmp_path, "max_messages": 6, "max_length": 100_000, "partner": "toy", **changes})


@asynccontextmanager
async def episodes(settings: GRPOSettings, sampler: Any, tokenizer: Any, system: System | None, judge: str = "rules", systems: Path | None = None) -> AsyncIterator[Episodes]:
    async with AsyncExitStack() as stack:
        models = await stack.enter_async_context(open_models())
        service = await stack.enter_async_context(
            open_reward_service(judge, RUBRIC, LIBRARY, DIMENSIONS, settings.out / "calls" / "judge.jsonl", models=models, systems_file=systems)
        )
        limits = Limits(max_messages=settings.max_messages, window=settings.window)
        voice = Voice(tokenizer, settings)
        yield Episodes(settings, LIBRARY, limits, State(()), voice, sampler, service, models, Engine(), settings.out / "calls", system)


def toy_system(served: Served, **changes: Any) -> System:
    return System(**{"name": "toy", "endpoint": served.url, "model": "scripted", "server": "openai", "policy": "chat", "retries": 0, **changes})


def have(settings: GRPOSettings, sampler: Any, tokenizer: Any, system: System | None, cases: Sequence[Case], timeline: Timeline | None = None, **more: Any) -> Any:
    async def all_of_it() -> Any:
        async with episodes(settings, sampler, tokenizer, system, **more) as table:
            return await table.have("step-0001", cases, timeline or Timeline())

    return run_async(all_of_it())


def test_all_live_dialogues_are_asked_in_one_wave(tmp_path: Path, toy: Served, voice_tokenizer: Any) -> None:
    settings = settings_of(tmp_path)
    sampler = Canned(Voice(voice_tokenizer, settings))
    had = have(settings, sampler, voice_tokenizer, toy_system(toy), [CASES[0]] * 2 + [CASES[1]] * 2)
    events = max(len(r.decisions) for r, _ in had)
    assert len(sampler.waves) == events and all(len(wave) <= 4 for wave in sampler.waves)
    assert len(sampler.waves[0]) == 4
    assert sum(map(len, sampler.waves)) == sum(len(r.decisions) for r, _ in had)
    assert [j.status for _, j in had if j] and len(had) == 4


def test_a_rollout_is_a_dialogue_of_the_benchmarks_own_scheduler_and_prompts(tmp_path: Path, toy: Served, voice_tokenizer: Any) -> None:
    settings = settings_of(tmp_path)
    sampler = Canned(Voice(voice_tokenizer, settings))
    ((rollout, _),) = have(settings, sampler, voice_tokenizer, toy_system(toy), CASES[:1])
    dialogue = rollout.dialogue
    context = Context(LIBRARY, (), Limits(max_messages=6))
    replay(dialogue, context.rules(dialogue))
    prompts = [p for p in context.prompts(dialogue) if p.ask.speaker == dialogue.evaluated_role]
    asked = [tuple(voice_tokenizer(render(voice_tokenizer, [{"role": "system", "content": p.system}, {"role": "user", "content": p.user}], ask=True))["input_ids"]) for p in prompts]
    assert asked == [d.prompt for d in rollout.decisions]


def test_a_broken_reply_is_asked_for_once_more_and_both_are_trained_on(tmp_path: Path, toy: Served, voice_tokenizer: Any) -> None:
    settings = settings_of(tmp_path, max_messages=3)
    broken = lambda place, text, wave: "不是JSON" if wave == 1 else decision(text, "好")  # noqa: E731
    sampler = Canned(Voice(voice_tokenizer, settings), broken)
    had = have(settings, sampler, voice_tokenizer, toy_system(toy), [CASES[0]] * 2)
    for rollout, _ in had:
        own = [a for a in rollout.dialogue.asks if a.speaker == rollout.dialogue.evaluated_role]
        assert "asked twice" in own[0].recovered
        assert len(rollout.decisions) == len(own) + 1


def test_the_initial_policy_as_partner_is_drawn_in_the_same_waves(tmp_path: Path, voice_tokenizer: Any) -> None:
    settings = settings_of(tmp_path, partner="initial")
    sampler = Canned(Voice(voice_tokenizer, settings))
    had = have(settings, sampler, voice_tokenizer, None, [CASES[0]] * 3)
    assert sorted(whose for _, whose in sampler.waves[0]) == ["initial"] * 3 + ["policy"] * 3
    policy = sum(whose == "policy" for wave in sampler.waves for _, whose in wave)
    assert policy == sum(len(r.decisions) for r, _ in had), "the partner's decisions are not trained on"


def test_a_dialogue_whose_partner_fails_holds_nobody_up(tmp_path: Path, voice_tokenizer: Any) -> None:
    def some_fail(call: Call) -> str | Answer:
        name = LIBRARY.personas[LIBRARY.bindings[CASES[1].binding].persona_a].name
        other = LIBRARY.personas[LIBRARY.bindings[CASES[1].binding].persona_b].name
        if {name, other} & set(call.body["messages"][0]["content"].split('"')):
            return Answer({"error": "no"}, status=500)
        return partner(call)

    settings = settings_of(tmp_path)
    with serve(some_fail) as served:
        sampler = Canned(Voice(voice_tokenizer, settings))
        had = have(settings, sampler, voice_tokenizer, toy_system(served), [CASES[0], CASES[1], CASES[0]])
    assert [r.fault for r, _ in had] == [None, "server_error", None]
    assert had[1][1] is None and had[1][0].dialogue is None
    assert all(r.dialogue is not None and len(r.dialogue.messages) > 1 for r, _ in (had[0], had[2]))


def test_a_dead_partner_ends_the_step(tmp_path: Path, voice_tokenizer: Any) -> None:
    settings = settings_of(tmp_path)
    system = System(name="toy", endpoint="http://127.0.0.1:9/v1", model="m", server="openai", policy="chat", retries=0)
    with pytest.raises(ModelError) as error:
        have(settings, Canned(Voice(voice_tokenizer, settings)), voice_tokenizer, system, [CASES[0]] * 2)
    assert error.value.fault == "unreachable"


def test_generation_goes_on_while_finished_dialogues_are_judged(tmp_path: Path, toy: Served, voice_tokenizer: Any) -> None:
    """The sampler of the third wave waits for a judge's request: it would wait for ever if judging came after generation."""
    judged = threading.Event()

    def judge(call: Call) -> str:
        judged.set()
        return "{}"

    class Waits(Canned):
        def sample(self, prompts: Sequence[Prompt], seed: int) -> list[Sampled]:
            if len(self.waves) == 2:
                assert judged.wait(60), "no judge was asked while the others still chatted"
            return super().sample(prompts, seed)

    def some_close(place: int, text: str, wave: int) -> str:
        return decision(text, "" if place == 0 and wave == 2 else f"第{wave}句{place}")

    def quiet_for_one(call: Call) -> str:
        user = call.body["messages"][-1]["content"]
        return partner(call) if "句1" in user else json.dumps({**json.loads(partner(call)), "response": {**json.loads(partner(call))["response"], "content": "", "end": True}}, ensure_ascii=False)

    settings = settings_of(tmp_path, max_messages=8)
    timeline = Timeline()
    with serve(quiet_for_one) as served, serve(judge) as bench:
        systems = tmp_path / "systems.yaml"
        systems.write_text(f"systems:\n- name: oracle\n  endpoint: {bench.url}\n  model: m\n  server: openai\n  policy: chat\n  retries: 0\n", encoding="utf-8")
        sampler = Waits(Voice(voice_tokenizer, settings), some_close)
        had = have(settings, sampler, voice_tokenizer, toy_system(served), [CASES[0]] * 2, timeline, judge="oracle", systems=systems)
    assert judged.is_set() and len(sampler.waves) > 2 and all(j is not None for _, j in had)
    assert overlap(timeline.spans, "generate", "judge") > 0
    assert busy(timeline.spans, "partner")


def test_rollouts_come_back_from_disk_as_they_were(tmp_path: Path, toy: Served, voice_tokenizer: Any) -> None:
    settings = settings_of(tmp_path)
    had = have(settings, Canned(Voice(voice_tokenizer, settings)), voice_tokenizer, toy_system(toy), [CASES[0]] * 2)
    write_rollouts(tmp_path / "1.jsonl", had, DIMENSIONS)
    again = read_rollouts(tmp_path / "1.jsonl", DIMENSIONS)
    assert [r for r, _ in again] == [r for r, _ in had]
    assert [(j.status, j.verdict) for _, j in again] == [(j.status, j.verdict) for _, j in had]
    write_rollouts(tmp_path / "2.jsonl", again, DIMENSIONS)
    assert (tmp_path / "2.jsonl").read_bytes() == (tmp_path / "1.jsonl").read_bytes()


def test_asyncio_is_not_held_up_by_the_sampler(tmp_path: Path, toy: Served, voice_tokenizer: Any) -> None:
    """Sampling runs in a thread: the loop's own clock goes on."""
    ticks = 0
    waited = threading.Event()

    class Slow(Canned):
        def sample(self, prompts: Sequence[Prompt], seed: int) -> list[Sampled]:
            assert waited.wait(60)
            return super().sample(prompts, seed)

    async def ticking(table: Episodes) -> Any:
        nonlocal ticks
        step = asyncio.create_task(table.have("s", CASES[:1], Timeline()))
        while not step.done():
            await asyncio.sleep(0.01)
            ticks += 1
            if ticks == 5:
                waited.set()
        return step.result()

    async def all_of_it() -> Any:
        async with episodes(settings, Slow(Voice(voice_tokenizer, settings)), voice_tokenizer, toy_system(toy)) as table:
            return await ticking(table)

    settings = settings_of(tmp_path, max_messages=3)
    assert run_async(all_of_it()) and ticks >= 5


def test_a_case_that_stands_twice_in_a_step_makes_two_groups(tmp_path: Path, toy: Served, voice_tokenizer: Any) -> None:
    async def both() -> Any:
        settings = settings_of(tmp_path, max_messages=3)
        async with episodes(settings, Canned(Voice(voice_tokenizer, settings)), voice_tokenizer, toy_system(toy)) as table:
            return await table.have("s", [CASES[0]] * 4, Timeline(), group=2)

    assert len({r.group for r, _ in run_async(both())}) == 2


@pytest.mark.parametrize("fails", ["raises", "too few"])
def test_a_sampler_that_fails_ends_the_step(fails: str, tmp_path: Path, toy: Served, voice_tokenizer: Any) -> None:
    class Broken(Canned):
        def sample(self, prompts: Sequence[Prompt], seed: int) -> list[Sampled]:
            if fails == "raises":
                raise RuntimeError("out of memory")
            return super().sample(prompts, seed)[:-1]

    settings = settings_of(tmp_path)
    with pytest.raises((RuntimeError, ValueError), match=r"out of memory|shorter"):
        have(settings, Broken(Voice(voice_tokenizer, settings)), voice_tokenizer, toy_system(toy), [CASES[0]] * 2)
