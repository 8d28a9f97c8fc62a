"""Samples: the prompt is the one that the runtime sent, and the completion parses to the decision in the log."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.bench.run import generate
from anthrolab.bench.store import Run
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.cards.scenario import Category
from anthrolab.cards.skill import default_skills_dir, load_skills
from anthrolab.files import content_hash
from anthrolab.loop.context import Context
from anthrolab.loop.sft.control_tokens import KNOWN
from anthrolab.loop.sft.entries import gold_entries
from anthrolab.loop.sft.sample_files import SCHEMA, as_jsonl
from anthrolab.loop.sft.samples import Sample, SftError, completion_of, pair_of, read_samples, samples_of
from anthrolab.models.client import Reply
from anthrolab.models.fence import without_control_tokens
from anthrolab.models.scripted import Call, serve
from anthrolab.runtime.asked import AskedPrompt
from anthrolab.runtime.decision import parse_decision
from anthrolab.runtime.dialogue import Ask, Decision, Dialogue, Draft, Message, Participant
from anthrolab.runtime.schedule import Plan
from anthrolab.runtime.written import as_lines

AT = datetime(2026, 3, 6, 20, 31)
ROW_KEYS = [
    "id", "prompt", "completion", "dialogue_id", "ask", "speaker", "binding", "scenario", "category", "pair", "directed",
    "source", "round", "neutralised", "recovered",
]  # fmt: skip


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library(default_cards_dir())


def make_sample(number: int = 0, **more: Any) -> Sample:
    """A sample by hand: the speaker p01 says a sentence of its own to p02, or is silent (with `unsent` as its text)."""
    content, silent = more.pop("content", f"第{number}句话说的是{number * 7919}"), more.pop("silent", False)
    unsent = more.pop("unsent", "")
    completion, _ = completion_of("林晓雯", Decision(content=unsent if silent else content, at=AT, end=silent))
    plain: dict[str, Any] = {
        "id": f"d{number}/0", "system": "z", "user": f"x{number}", "completion": completion, "dialogue_id": f"d{number}", "ask": 0,
        "speaker": "a", "binding": "b01", "scenario": "s01", "category": "Sport", "pair": "p01+p02", "directed": "p01>p02",
        "source": "gold", "round": None, "recent": (f"问{number * 31}的事",),
    }  # fmt: skip
    return Sample(**{**plain, **more})


def decided(sample: Sample, name: str, now: datetime) -> Plan:
    read = parse_decision(Reply(sample.completion), name, now, 600)
    assert read.value is not None and read.recovered in (None, "end is true, so its text is not sent")
    return read.value


def test_all_decisions_of_the_gold_dialogues_parse_back_from_their_samples(library: Library) -> None:
    entries = gold_entries(library, default_cards_dir())
    total = 0
    for entry in entries:
        dialogue, prompts = entry.dialogue, entry.context.prompts(entry.dialogue)
        taken = samples_of(dialogue, prompts, category="Sport", source="gold", sides="both")
        assert dialogue.asks is not None and not taken.left_out
        assert [s.ask for s in taken.samples] == list(range(len(dialogue.asks)))
        for sample, ask, prompt in zip(taken.samples, dialogue.asks, prompts, strict=True):
            assert ask.decision is not None
            plan = decided(sample, dialogue.speakers[ask.speaker].name, ask.now)
            assert Decision(content=plan.content, at=ask.now + timedelta(seconds=plan.delay_s), end=plan.end) == ask.decision
            assert (sample.system, sample.user) == (prompt.system, prompt.user)
            assert dialogue.messages[prompt.index // 2].content == sample.recent[-1]
            total += 1
    assert total == 2506 and len(entries) == 50


def test_a_sample_in_a_file_has_the_documented_form(library: Library) -> None:
    entry = gold_entries(library, default_cards_dir(), load_skills(default_skills_dir()))[0]
    prompts = entry.context.prompts(entry.dialogue)
    sample = samples_of(entry.dialogue, prompts, category="Sport", source="gold", round=None, sides="both").samples[3]
    row = json.loads(as_jsonl([sample]))
    assert list(row) == ROW_KEYS == list(SCHEMA)
    assert row["prompt"] == [{"role": "system", "content": prompts[3].system}, {"role": "user", "content": prompts[3].user}]
    assert "【聊天的门道】" in prompts[3].system
    assert row["completion"] == [{"role": "assistant", "content": sample.completion}]
    assert row["pair"] == pair_of(*row["directed"].split(">")) == pair_of(*reversed(row["directed"].split(">")))
    assert entry.dialogue.speakers[row["speaker"]].persona == row["directed"].split(">")[0]


def test_the_completion_is_written_as_the_contract_in_the_prompt_writes_it(library: Library) -> None:
    entry = gold_entries(library, default_cards_dir())[0]
    z = entry.context.prompts(entry.dialogue)[0].system
    name = entry.dialogue.speakers["b"].name if f"你就是{entry.dialogue.speakers['b'].name}" in z else entry.dialogue.speakers["a"].name
    silence = completion_of(name, Decision(content="", at=AT, end=True))[0]
    assert silence == f'{{"role": "{name}", "response": {{"content": "", "timestamp": "2026-03-06T20:31:00", "end": true}}}}'
    assert silence.replace("2026-03-06T20:31:00", "YYYY-MM-DDTHH:MM:SS") in z


@settings(deadline=None)
@given(st.text(max_size=40), st.integers(0, 600), st.booleans())
def test_any_decision_parses_back_with_its_content_neutralised(content: str, delay: int, end: bool) -> None:
    decision = Decision(content=content, at=AT + timedelta(seconds=delay), end=end)
    completion, neutralised = completion_of("林晓雯", decision)
    read = parse_decision(Reply(completion), "林晓雯", AT, 600)
    assert read.value == Plan(without_control_tokens(content), delay, end)
    assert neutralised == (without_control_tokens(content) != content)


def by_hand(*asks: Ask) -> tuple[Dialogue, list[AskedPrompt]]:
    dialogue = Dialogue(
        dialogue_id="d1", binding="b01", scenario="s01", evaluated_role="b", start=AT,
        speakers={"a": Participant(name="甲", persona="p09"), "b": Participant(name="乙", persona="p10")},
        messages=[Message(speaker="a", content="在不", at=AT, opener=True)], asks=list(asks),
    )  # fmt: skip
    return dialogue, [AskedPrompt(i, ask, "z", f"x{i}") for i, ask in enumerate(asks)]


def taken(*asks: Ask, category: Category = "Sport", **more: Any) -> tuple[list[Sample], Counter[str]]:
    dialogue, prompts = by_hand(*asks)
    found = samples_of(dialogue, prompts, **{"category": category, "source": "accepted", "round": 2, **more})
    return found.samples, found.left_out


SAID = Decision(content="在", at=AT + timedelta(seconds=9), end=False)


def test_only_decisions_of_the_wanted_side_are_taken_and_the_rest_is_counted_by_reason() -> None:
    asks = (
        Ask(speaker="a", now=AT, decision=SAID), Ask(speaker="b", now=AT, error="the reply is empty"),
        Ask(speaker="b", now=AT, decision=SAID, recovered="asked twice"), Ask(speaker="b", now=AT),
        Ask(speaker="a", now=AT, error="role is missing"), Ask(speaker="b", now=AT, decision=SAID, previous_draft=Draft(content="等", at=AT)),
    )  # fmt: skip
    samples, left_out = taken(*asks)
    assert [(s.id, s.directed, s.pair, s.round, s.recovered, s.draft) for s in samples] == [
        ("d1/2", "p10>p09", "p09+p10", 2, "asked twice", None), ("d1/5", "p10>p09", "p09+p10", 2, None, "等"),
    ]  # fmt: skip
    assert left_out == {"not the evaluated side": 2, "broken reply": 1, "no decision in the log": 1}
    samples, left_out = taken(*asks, sides="both")
    assert [s.id for s in samples] == ["d1/0", "d1/2", "d1/5"]
    assert left_out == {"broken reply": 2, "no decision in the log": 1}


@pytest.mark.parametrize("token", KNOWN)
def test_a_decision_with_a_control_token_is_neutralised_and_marked(token: str) -> None:
    said = SAID.model_copy(update={"content": f"看{token}这个"})
    (sample,), _ = taken(Ask(speaker="b", now=AT, decision=said))
    assert sample.neutralised and token not in json.dumps(sample.row(), ensure_ascii=False)
    assert decided(sample, "乙", AT) == Plan(without_control_tokens(said.content), 9, False)


def test_a_prompt_that_spells_a_control_token_is_left_out_and_says_which() -> None:
    dialogue, prompts = by_hand(Ask(speaker="b", now=AT, decision=SAID), Ask(speaker="b", now=AT, decision=SAID))
    spelled = [replace(prompts[0], system="z <|im_end|> z"), replace(prompts[1], user="x<b>粗</b>")]
    found = samples_of(dialogue, spelled, category="Sport", source="accepted")
    assert [s.id for s in found.samples] == ["d1/1"]
    assert found.left_out == {"the prompt spells the control token <|im_end|>": 1}


def test_a_silence_keeps_a_text_that_came_with_it_and_is_a_silence() -> None:
    waving = Ask(speaker="b", now=AT, decision=Decision(content="拜拜", at=AT, end=True))
    assert taken(waving) == ([], Counter({"a silence that carries a text, which nobody judged": 1}))
    (sample,), _ = taken(waving, source="gold")  # by hand
    assert sample.silent and decided(sample, "乙", AT) == Plan("拜拜", 0, True)
    (blank,), _ = taken(Ask(speaker="b", now=AT, decision=Decision(content=" ", at=AT, end=False)))
    assert blank.silent and not taken(Ask(speaker="b", now=AT, decision=SAID))[0][0].silent


def test_a_summary_of_texts_from_before_a_repair_leaves_its_prompts_out() -> None:
    silent = Decision(content="", at=AT, end=True)
    dialogue, prompts = by_hand(*(Ask(speaker="b", now=AT, decision=silent) for _ in range(3)))
    folded = [replace(p, folded=8 * i) for i, p in enumerate(prompts)]
    found = samples_of(dialogue, folded, category="Sport", source="repaired", stale_from=8)
    assert [s.ask for s in found.samples] == [0, 1]
    assert found.left_out == {"its summary is of a text that was repaired": 1}


def test_a_speaker_without_a_card_is_an_error_that_names_the_dialogue() -> None:
    dialogue, prompts = by_hand(Ask(speaker="b", now=AT, decision=SAID))
    nobody = dialogue.model_copy(update={"speakers": {"a": Participant(name="甲"), "b": Participant(name="乙", persona="p10")}})
    with pytest.raises(SftError, match=r"^d1: "):
        samples_of(nobody, prompts, category="Sport", source="accepted")


def test_samples_are_read_back_and_a_line_that_is_none_is_named(tmp_path: Path) -> None:
    samples = [make_sample(i, round=i or None, neutralised=bool(i)) for i in range(3)]
    path = tmp_path / "样本.jsonl"
    path.write_bytes(as_jsonl(samples))
    assert read_samples(path) == samples
    path.write_bytes(as_jsonl(samples) + b'{"id": "x"}\n')
    with pytest.raises(SftError, match=r"样本.jsonl: line 4: no sample"):
        read_samples(path)


# A run over HTTP: long enough to be summarised, with drafts left unsent, replies that break the contract once, and twice.


def answer(call: Call) -> str:
    system, user = (m["content"] for m in call.body["messages"])
    name, now = re.search(r"你就是(.+?)。\n", system), re.search(r"现在是 (\S+)（", user)
    assert name and now
    asked_again = "你刚才交的用不了" in user
    draw = int(content_hash(user.split("\n\n你刚才交的用不了")[0] + name[1])[:4], 16)
    if draw % 7 == 0 and not asked_again:
        return "我想想"
    if draw % 41 == 1:
        return '{"role": "谁"}'
    at = datetime.fromisoformat(now[1]) + timedelta(seconds=5 + draw % 90)
    text = f"{draw}号<|im_end|>" if draw % 11 == 0 else f"说到{draw}"
    return json.dumps({"role": name[1], "response": {"content": text, "timestamp": at.isoformat(), "end": draw % 5 == 0}}, ensure_ascii=False)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("样本")
    with serve(answer) as served:
        entry = {
            "name": "toy", "endpoint": served.url, "model": "scripted", "server": "openai", "policy": "chat", "partner": "toy",
            "retries": 0, "timeout_s": 10.0, "concurrency": 4,
        }  # fmt: skip
        systems = folder / "systems.yaml"
        systems.write_text(json.dumps({"systems": [entry]}), encoding="utf-8")
        counts = generate(
            folder / "run", "toy", cases=6, max_messages=30, window=4, systems_file=systems, progress=lambda _line: None
        )
        assert counts["done"] == 6
        yield folder / "run"


def test_the_prompts_of_a_run_over_http_are_those_of_the_first_requests_to_the_byte(played: Path, library: Library) -> None:
    run = Run(played)
    context = Context.of_run(run, library, default_skills_dir())
    reasons: Counter[str] = Counter()
    seen = Counter[str]()
    for dialogue in run.dialogues().values():
        case = f"{dialogue.binding}-{dialogue.evaluated_role}-{dialogue.sample}"
        calls = [json.loads(line) for line in (run.calls / f"{case}.jsonl").read_text(encoding="utf-8").splitlines()]
        first = {tuple(row["salt"].split("/")[-2:]): row for row in calls}
        by_key = {row["key"]: row for row in calls}
        found = samples_of(dialogue, context.prompts(dialogue), category="Sport", source="accepted", sides="both")
        reasons += found.left_out
        assert dialogue.asks is not None
        for sample in found.samples:
            ask = dialogue.asks[sample.ask]
            place = f"{sample.speaker}{sample.ask // 2 + 1}"
            assert sample.row()["prompt"] == first[place, "0"]["messages"]
            assert ask.call is not None and ask.decision is not None
            final = by_key[ask.call]
            assert final["salt"].endswith(f"/{place}/{1 if (place, '1') in first else 0}")
            seen["asked twice"] += (place, "1") in first
            seen["with a draft"] += ask.previous_draft is not None
            seen["with a summary"] += "【前面聊过的" in sample.user
            seen["neutralised"] += sample.neutralised
            plan = decided(sample, dialogue.speakers[ask.speaker].name, ask.now)
            at = ask.now + timedelta(seconds=plan.delay_s)
            assert (plan.content, at, plan.end) == (without_control_tokens(ask.decision.content), ask.decision.at, ask.decision.end)
        assert len(found.samples) + found.left_out.total() == len(dialogue.asks)
        own = samples_of(dialogue, context.prompts(dialogue), category="Sport", source="accepted")
        assert own.samples == [s for s in found.samples if s.speaker == dialogue.evaluated_role]
    assert reasons["broken reply"] >= 1
    assert all(seen[what] >= 3 for what in ("asked twice", "with a draft", "with a summary", "neutralised")), seen


def test_of_a_repaired_dialogue_only_what_went_out_or_was_silence_is_taken(library: Library) -> None:
    entry = next(e for e in gold_entries(library, default_cards_dir()) if e.dialogue.dialogue_id == "gold-b01")
    # what a written dialogue marks with ~ was held and never sent; the lines of b01 that begin with it are its unsent drafts
    held = [line for line in as_lines(entry.dialogue) if line.startswith("~")]
    assert held
    taken = samples_of(entry.dialogue, entry.context.prompts(entry.dialogue), category="Sport", source="repaired", sides="both")
    reason = "an unsent draft of a repaired dialogue, which nobody repaired"
    assert taken.left_out[reason] == len(held)
    kept = Counter(json.loads(s.completion)["response"]["content"] for s in taken.samples if not s.silent)
    assert kept == Counter(m.content for m in entry.dialogue.messages[1:])


def test_words_that_were_planned_dropped_and_said_later_are_no_sent_draft() -> None:
    """b plans 在 at second 9, a writes again before that, and b says 在 five minutes later: only the second decision went out."""
    late = Decision(content="在", at=AT + timedelta(seconds=300), end=False)
    dialogue, prompts = by_hand(
        Ask(speaker="a", now=AT, decision=SAID), Ask(speaker="b", now=AT, decision=SAID), Ask(speaker="a", now=AT, decision=SAID),
        Ask(speaker="b", now=AT, decision=late),
    )  # fmt: skip
    said = [("a", "在吗"), ("a", "在"), ("b", "在")]
    messages = [Message(speaker=s, content=c, at=AT + timedelta(seconds=9 * i), opener=i == 0) for i, (s, c) in enumerate(said)]
    dialogue = dialogue.model_copy(update={"messages": messages})
    found = samples_of(dialogue, prompts, category="Sport", source="repaired", sides="both")
    assert [s.ask for s in found.samples] == [0, 3]
