"""The prompts of a finished dialogue again, also of one that was repaired; and a run that other things were made with is refused."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from anthrolab.bench.run import generate
from anthrolab.bench.settings import Limits, Pace
from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import CardError, Library, default_cards_dir, load_library
from anthrolab.cards.skill import default_skills_dir, load_skills
from anthrolab.loop.changes import apply
from anthrolab.loop.context import Context
from anthrolab.models.client import Request
from anthrolab.models.scripted import ScriptedModel
from anthrolab.models.systems import System
from anthrolab.runtime.chat import ChatPolicy
from anthrolab.runtime.dialogue import STAMP, Dialogue
from anthrolab.runtime.history import History
from anthrolab.runtime.session import play
from anthrolab.runtime.summary_rules import RulesSummariser
from anthrolab.runtime.written import load_gold
from anthrolab.sync import run_async
from tests.cards_for_tests import small_cards
from tests.fault_server import Faulty, faulty
from tests.test_bench_run import quiet

SYSTEM = System(name="toy", endpoint="http://localhost:1/v1", model="m", server="openai", policy="chat")


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library(default_cards_dir())


@pytest.fixture(scope="module")
def server() -> Iterator[Faulty]:
    with faulty(share=0.0) as running:
        yield running


def asked_again(dialogue: Dialogue, context: Context) -> list[tuple[str, str]]:
    """What a real session with the chat policy sends when the models decide as in the log: system and user of every ask."""
    assert dialogue.asks is not None
    sent: list[tuple[str, str]] = []
    table, rules, log = context.seats(dialogue), context.rules(dialogue), list(dialogue.asks)
    history = History(table["a"], context.limits.window, RulesSummariser())

    def decide(request: Request) -> str:
        assert request.messages is not None
        ask = log[len(sent)]
        sent.append((request.messages[0]["content"], request.messages[1]["content"]))
        assert ask.decision is not None
        response = {"content": ask.decision.content, "timestamp": ask.decision.at.strftime(STAMP), "end": ask.decision.end}
        return json.dumps({"role": dialogue.speakers[ask.speaker].name, "response": response}, ensure_ascii=False)

    model = ScriptedModel(decide)
    policies = {s: ChatPolicy(seat, model, SYSTEM, "salt", history, rules.max_delay_s) for s, seat in table.items()}
    again = run_async(play(dialogue.dialogue_id, table, policies, rules, evaluated_role=dialogue.evaluated_role, history=history))
    assert [m.content for m in again.messages] == [m.content for m in dialogue.messages]
    return sent


@pytest.mark.parametrize("binding", ["b01", "b07", "b23", "b41"])
def test_the_prompts_of_a_repaired_dialogue_are_those_of_a_session_that_went_so(library: Library, binding: str) -> None:
    """Window of 4 messages, so that much stands in summaries by rules, which quote what was said."""
    context = Context(library, load_skills(default_skills_dir()), Limits(window=4))
    dialogue = load_gold(default_cards_dir(), library)[binding]
    own = dialogue.turns()
    texts = {own[1]: "我周六下午三点去接你", own[len(own) // 2]: "换了一句完全不一样的话"}
    changed = apply(dialogue, texts, context.rules(dialogue))
    for one in (dialogue, changed):
        assert [(p.system, p.user) for p in context.prompts(one)] == asked_again(one, context)
    before, after = context.prompts(dialogue), context.prompts(changed)
    assert any("周六下午三点去接你" in p.user for p in after) and not any("周六下午三点去接你" in p.user for p in before)
    assert any(p.folded > own[1] for p in after), "the repaired message never left the window"


def test_a_pace_and_a_window_of_the_run_are_those_of_its_prompts(library: Library, server: Faulty, tmp_path: Path) -> None:
    cards = small_cards(tmp_path / "cards", library, ["b01", "b02"])
    systems = tmp_path / "systems.yaml"
    entry = {"name": "toy", "endpoint": server.url, "model": "m", "server": "openai", "policy": "chat", "partner": "toy"}
    systems.write_text(json.dumps({"systems": [entry]}), encoding="utf-8")
    run = Run(tmp_path / "r")
    generate(run.path, "toy", max_messages=14, window=5, pace=Pace(3, (5, 20), 200), systems_file=systems, cards_dir=cards, progress=quiet)
    context = Context.of_run(run, load_library(cards), default_skills_dir())
    for dialogue in run.dialogues().values():
        log = run.calls / f"{dialogue.binding}-{dialogue.evaluated_role}-0.jsonl"
        rows = {r["key"]: r for r in map(json.loads, log.open(encoding="utf-8"))}
        for prompt in context.prompts(dialogue):
            if prompt.ask.recovered is None and prompt.ask.call is not None:
                assert [m["content"] for m in rows[prompt.ask.call]["messages"]] == [prompt.system, prompt.user]


def test_a_run_with_other_cards_skills_or_prompts_is_refused(library: Library, server: Faulty, tmp_path: Path) -> None:
    cards = small_cards(tmp_path / "cards", library, ["b01"])
    systems = tmp_path / "systems.yaml"
    entry = {"name": "toy", "endpoint": server.url, "model": "m", "server": "openai", "policy": "chat", "partner": "toy"}
    systems.write_text(json.dumps({"systems": [entry]}), encoding="utf-8")
    run = Run(tmp_path / "r")
    generate(run.path, "toy", cases=1, max_messages=4, systems_file=systems, cards_dir=cards, progress=quiet)
    with pytest.raises(RunError, match="its cards are not those"):
        Context.of_run(run, library, default_skills_dir())
    other = tmp_path / "skills"
    for skill in load_skills(default_skills_dir()):
        (other / skill.name).mkdir(parents=True)
        (other / skill.name / "v1.md").write_text(skill.text + "\n- 再短一点\n", encoding="utf-8")
    with pytest.raises(RunError, match="another text of message_style v1"):
        Context.of_run(run, load_library(cards), other)
    manifest = run.manifest()
    run.write_manifest({**manifest, "hashes": {**manifest["hashes"], "prompts": "0" * 16}})
    with pytest.raises(RunError, match="made with other prompts"):
        Context.of_run(run, load_library(cards), default_skills_dir())
    dialogue = next(iter(run.dialogues().values()))
    with pytest.raises(CardError, match="are not all in this folder"):
        Context(library).seats(dialogue.model_copy(update={"scenario": "s999"}))
