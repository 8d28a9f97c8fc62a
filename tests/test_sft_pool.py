"""The pool on disk: all asks accounted for, no leaks, read by the libraries that train, and to the byte the same each time."""

import json
import os
from collections import Counter
from dataclasses import asdict, replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.bench.run import generate
from anthrolab.bench.store import Run
from anthrolab.cards.gold import Written
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.cards.skill import default_skills_dir, load_skills
from anthrolab.loop.changes import apply
from anthrolab.loop.context import Context
from anthrolab.loop.filter import Filtered, FilterResult, Lineage, Status
from anthrolab.loop.filtering import write_filtered
from anthrolab.loop.folder import Loop, LoopSettings
from anthrolab.loop.repair import Repair
from anthrolab.loop.sft.entries import Entry, gold_entries, licence_of, loop_entries
from anthrolab.loop.sft.pool import PoolCounts, PoolSettings, build_pool, gold_pool, write_pool
from anthrolab.loop.sft.samples import Sample, SftError, read_samples
from anthrolab.loop.sft.sharegpt import messages_of
from anthrolab.loop.skill_files import begin_skills
from anthrolab.models.scripted import serve
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.runtime.written import as_lines, play_written, seats_of
from tests.test_sft_samples import answer

FILES = {
    "train.jsonl", "held_out.jsonl", "train.parquet", "held_out.parquet", "sharegpt.json", "table1.csv", "data_card.json",
    "data_card.md",
}  # fmt: skip
HELD = ("b01", "b02", "b03")
CARDS = default_cards_dir()


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library(CARDS)


@pytest.fixture(scope="module")
def gold(library: Library) -> list[Entry]:
    return gold_entries(library, CARDS)


@pytest.fixture(scope="module")
def pool_dir(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pool of the hand-written dialogues."""
    out = tmp_path_factory.mktemp("数据") / "gold"
    gold_pool(out, library, CARDS, PoolSettings(held_out=HELD))
    return out


def accounted(counts: PoolCounts) -> int:
    given_away = sum(counts.left_out.values()) + counts.exact_duplicates + counts.near_duplicates + counts.copies_of_held_out
    return given_away + counts.train + counts.held_out


def test_somebody_elses_folder_is_left_alone_and_a_cut_file_is_no_data(tmp_path: Path) -> None:
    library = load_library(default_cards_dir())
    entries = gold_entries(library, default_cards_dir())[:2]
    (tmp_path / "loop.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SftError, match=r"holds other files \(loop\.json\)"):
        write_pool(tmp_path, entries, PoolSettings("both", 0.5))
    write_pool(tmp_path / "own", entries, PoolSettings("both", 0.5))
    train = tmp_path / "own" / "train.jsonl"
    whole = train.read_bytes()
    train.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SftError, match="is cut off"):
        read_samples(train)


def test_the_gold_pool_holds_every_decision_of_both_sides_and_no_held_out_pair_in_train(pool_dir: Path, gold: list[Entry], library: Library) -> None:
    assert {p.name for p in pool_dir.iterdir()} == FILES
    train, held_out = read_samples(pool_dir / "train.jsonl"), read_samples(pool_dir / "held_out.jsonl")
    assert len({s.id for s in [*train, *held_out]}) == sum(len(e.dialogue.asks or []) for e in gold) == 2506
    assert {s.binding for s in held_out} == set(HELD)
    assert not {s.pair for s in train} & {s.pair for s in held_out}
    for s in [*train, *held_out]:
        assert s.binding is not None
        binding = library.bindings[s.binding]
        assert s.directed.split(">") == [binding.persona_a, binding.persona_b][:: 1 if s.speaker == "a" else -1]
        assert s.category == library.scenarios[binding.scenario].category and s.source == "gold"
    both = Counter(s.speaker for s in [*train, *held_out])
    assert both["a"] == both["b"] == 1253


def test_the_same_call_again_changes_nothing_and_another_folder_gets_the_same_bytes(pool_dir: Path, library: Library, tmp_path: Path) -> None:
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns, p.stat().st_ino) for p in pool_dir.iterdir()}
    gold_pool(pool_dir, library, CARDS, PoolSettings(held_out=HELD))
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns, p.stat().st_ino) for p in pool_dir.iterdir()} == before
    gold_pool(tmp_path / "again", library, CARDS, PoolSettings(held_out=HELD))
    assert {p.name: p.read_bytes() for p in (tmp_path / "again").iterdir()} == {p.name: data for p, (data, _, _) in before.items()}


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_that_a_killed_writer_never_wrote_or_that_was_changed_is_made_again(name: str, gold: list[Entry], tmp_path: Path) -> None:
    few = gold[:4]
    write_pool(tmp_path, few, PoolSettings(sides="both"))
    whole = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    (tmp_path / name).write_bytes(whole[name][:50])
    write_pool(tmp_path, few, PoolSettings(sides="both"))
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == whole
    os.unlink(tmp_path / name)
    write_pool(tmp_path, few, PoolSettings(sides="both"))
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == whole


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_the_datasets_library_reads_prompt_and_completion_as_lists_of_messages(kind: str, pool_dir: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    ending = "jsonl" if kind == "json" else kind
    files = {part: str(pool_dir / f"{part}.{ending}") for part in ("train", "held_out")}
    loaded = datasets.load_dataset(kind, data_files=files, cache_dir=str(tmp_path))
    for part in files:
        samples = read_samples(pool_dir / f"{part}.jsonl")
        assert len(loaded[part]) == len(samples)
        for i in range(0, len(samples), 97):
            row = loaded[part][i]
            assert (row["prompt"], row["completion"]) == samples[i].messages()
            assert Sample.of_row(row) == samples[i]


def test_parquet_and_jsonl_hold_the_same(pool_dir: Path) -> None:
    frame = pl.read_parquet(pool_dir / "train.parquet")
    assert [Sample.of_row(row) for row in frame.iter_rows(named=True)] == read_samples(pool_dir / "train.jsonl")


def test_sharegpt_conversations_are_the_training_samples(pool_dir: Path) -> None:
    conversations = json.loads((pool_dir / "sharegpt.json").read_text(encoding="utf-8"))
    samples = read_samples(pool_dir / "train.jsonl")
    assert [c["id"] for c in conversations] == [s.id for s in samples]
    assert all([m["from"] for m in c["conversations"]] == ["system", "human", "gpt"] for c in conversations)
    for conversation, sample in zip(conversations, samples, strict=True):
        prompt, completion = sample.messages()
        assert messages_of(conversation) == [*prompt, *completion]


def test_the_data_card_says_what_is_in_the_files(pool_dir: Path, gold: list[Entry]) -> None:
    card = json.loads((pool_dir / "data_card.json").read_text(encoding="utf-8"))
    train, held_out = read_samples(pool_dir / "train.jsonl"), read_samples(pool_dir / "held_out.jsonl")
    for name, facts in card["files"].items():
        data = (pool_dir / name).read_bytes()
        assert facts == {"bytes": len(data), "sha256": sha256(data).hexdigest()}
    assert set(card["files"]) == FILES - {"data_card.json", "data_card.md"}
    assert (card["counts"]["train"], card["counts"]["held_out"]) == (len(train), len(held_out)) == (card["train"]["samples"], card["held_out"]["samples"])
    assert card["pool"]["silences"] == sum(s.silent for s in [*train, *held_out])
    for part, samples in (("train", train), ("held_out", held_out)):
        for by in card[part]["by"].values():
            assert sum(by.values()) == len(samples)
    assert card["made_with"]["cards"] == [gold[0].context.library.content_hash()] and card["made_with"]["skills"] == []
    people = [{p for s in half for p in s.pair.split("+")} for half in (train, held_out)]
    assert card["split"]["people_in_both"] == sorted(people[0] & people[1]) and card["split"]["people_held_out"] == len(people[1])
    assert card["licences"] == ["Cards and hand-written chats: Creative Commons Attribution 4.0 International (CC BY 4.0)."]
    said = (pool_dir / "data_card.md").read_text(encoding="utf-8")
    for text in ("CC BY 4.0", card["files"]["train.jsonl"]["sha256"], "## Not known", "Emotional support", "3 pairs held out"):
        assert text in said


def changed(entry: Entry, number: int, change: dict[int, str]) -> Entry:
    """The dialogue again as another sample of its case, with other messages."""
    messages = [m.model_copy(update={"content": change[i]}) if i in change else m for i, m in enumerate(entry.dialogue.messages)]
    asks = [
        a.model_copy(update={"decision": a.decision.model_copy(update={"content": next((change[i] for i in change if entry.dialogue.messages[i].content == a.decision.content), a.decision.content)})})
        for a in entry.dialogue.asks or [] if a.decision
    ]  # fmt: skip
    again = entry.dialogue.model_copy(update={"dialogue_id": f"{entry.dialogue.dialogue_id}-{number}", "messages": messages, "asks": asks})
    return replace(entry, dialogue=again)


def test_a_dialogue_given_twice_under_other_names_gives_its_samples_once(gold: list[Entry]) -> None:
    two = [gold[0], replace(gold[0], dialogue=gold[0].dialogue.model_copy(update={"dialogue_id": "again"}))]
    counts = build_pool(two, PoolSettings(sides="both", held_out=0.0)).counts
    asks = len(gold[0].dialogue.asks or [])
    assert (counts.asks, counts.train, counts.exact_duplicates) == (2 * asks, asks, asks)
    assert accounted(counts) == counts.asks


def test_a_small_change_leaves_near_duplicates_that_are_dropped_and_counted(gold: list[Entry]) -> None:
    long = max(range(3, len(gold[0].dialogue.messages)), key=lambda i: len(gold[0].dialogue.messages[i].content))
    text = gold[0].dialogue.messages[long].content
    pool = build_pool([gold[0], changed(gold[0], 1, {long: text + "哈"})], PoolSettings(sides="both", held_out=0.0))
    assert pool.counts.near_duplicates >= 1 and accounted(pool.counts) == pool.counts.asks
    kept = [s for s in pool.samples if s.response["content"] in (text, text + "哈")]
    assert {s.dialogue_id for s in kept} == {gold[0].dialogue.dialogue_id}


def test_a_held_out_chat_that_other_people_have_too_is_dropped_from_train(library: Library, gold: list[Entry]) -> None:
    first = library.bindings["b01"]
    others = first.model_copy(update={"id": "b51", "persona_b": library.bindings["b02"].persona_b})
    wider = Library(library.personas, library.scenarios, {**library.bindings, "b51": others}, library.memories)
    written = Written(binding="b51", lines=as_lines(gold[0].dialogue))
    copy = Entry(play_written(written, seats_of(wider, "b51"), "copy"), Context(wider), "gold")
    pool = build_pool([gold[0], copy, gold[5]], PoolSettings("both", ("b01",)))
    asks = len(gold[0].dialogue.asks or [])
    assert pool.counts.copies_of_held_out > 0.9 * asks
    assert pool.counts.held_out == asks and accounted(pool.counts) == pool.counts.asks
    assert sum(s.dialogue_id == gold[5].dialogue.dialogue_id for s in pool.split.train) == len(gold[5].dialogue.asks or [])


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_every_ask_is_accounted_for_and_no_pair_is_in_both_halves(gold: list[Entry], data: st.DataObject) -> None:
    entries = data.draw(st.lists(st.sampled_from(gold), max_size=6, unique_by=lambda e: e.dialogue.dialogue_id))
    entries = [replace(e, dialogue=e.dialogue.model_copy(update={"evaluated_role": data.draw(st.sampled_from("ab"))})) for e in entries]
    held = data.draw(st.one_of(st.floats(0, 1), st.lists(st.sampled_from([f"b{i:02d}" for i in range(1, 51)]), max_size=4).map(tuple)))
    pool = build_pool(entries, PoolSettings(data.draw(st.sampled_from(["evaluated", "both"])), held, seed=data.draw(st.integers(0, 3))))
    assert accounted(pool.counts) == pool.counts.asks == sum(len(e.dialogue.asks or []) for e in entries)
    assert not {s.pair for s in pool.split.train} & {s.pair for s in pool.split.held_out}
    assert not {s.pair for s in pool.split.train} & set(pool.split.held_pairs)


def test_a_dialogue_without_asks_is_counted_and_a_strange_log_or_a_second_one_is_an_error(gold: list[Entry]) -> None:
    bare = replace(gold[1], dialogue=gold[1].dialogue.model_copy(update={"asks": None}))
    counts = build_pool([gold[0], bare], PoolSettings()).counts
    assert counts.dialogues == 2 and counts.dialogues_left_out == {"no asks in its record": 1} and accounted(counts) == counts.asks
    with pytest.raises(SftError, match="stands twice"):
        build_pool([gold[0], gold[0]], PoolSettings())
    late = gold[0].dialogue.messages[1].at + timedelta(seconds=1)
    other = gold[0].dialogue.model_copy(update={"messages": [gold[0].dialogue.messages[0], gold[0].dialogue.messages[1].model_copy(update={"at": late})]})
    with pytest.raises(SftError, match=r"gold-b01: .*; give the cards, skills and limits"):
        build_pool([replace(gold[0], dialogue=other)], PoolSettings())


def test_an_empty_pool_has_all_its_files(tmp_path: Path) -> None:
    counts = write_pool(tmp_path, [], PoolSettings(held_out=("b01",)))
    assert counts.train == counts.held_out == 0 and {p.name for p in tmp_path.iterdir()} == FILES
    assert read_samples(tmp_path / "train.jsonl") == [] and json.loads((tmp_path / "sharegpt.json").read_text()) == []
    assert pl.read_parquet(tmp_path / "train.parquet").height == 0


def test_skills_stand_in_gold_prompts_only_if_they_are_given(library: Library, tmp_path: Path) -> None:
    skills = load_skills(default_skills_dir())
    gold_pool(tmp_path, library, CARDS, PoolSettings(held_out=0.0), skills)
    assert all(skill.text in read_samples(tmp_path / "train.jsonl")[0].system for skill in skills)
    card = json.loads((tmp_path / "data_card.json").read_text(encoding="utf-8"))
    assert card["made_with"]["skills"] == sorted(s.label for s in skills)
    assert licence_of(tmp_path) == "Cards and hand-written chats: not stated (no LICENSE beside them)."


# A loop with one round: accepted, repaired, rejected, undecided and held-back dialogues.


@pytest.fixture(scope="module")
def loop(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Loop:
    folder = tmp_path_factory.mktemp("环")
    loop = Loop(folder / "first")
    cases = ["b01-a", "b02-b", "b03-a", "b04-b", "b05-a"]
    loop.begin(LoopSettings(system="toy", cases=cases, held_back=["b03"]))
    begin_skills(loop.skills_dir, load_skills(default_skills_dir()))
    with serve(answer) as served:
        entry = {"name": "toy", "endpoint": served.url, "model": "scripted", "server": "openai", "policy": "chat", "partner": "toy", "retries": 0, "timeout_s": 10.0}
        systems = folder / "systems.yaml"
        systems.write_text(json.dumps({"systems": [entry]}), encoding="utf-8")
        generate(loop.run(1).path, "toy", cases=cases, max_messages=14, skills_dir=loop.skills_dir, systems_file=systems, progress=lambda _line: None)
    context = Context.of_run(loop.run(1), library, loop.skills_dir)
    statuses: list[Status] = ["accepted", "rejected", "accepted", "undecided", "rejected"]
    filtered = [Filtered.of(d, result(status)) for d, status in zip(loop.run(1).dialogues().values(), statuses, strict=True)]
    write_filtered(loop.round_dir(1) / "filtered.jsonl", filtered)
    turn = filtered[1].turns()[0]
    mended = apply(filtered[1].bare(), {turn: "换成这句话了"}, context.rules(filtered[1]))
    lineage = Lineage(parent=filtered[1].dialogue_id, parent_hash="0" * 16, changed=[turn], records=[], writer="toy", attempt=1, round=1)
    rows = [repair(filtered[1], "repaired", Filtered.of(mended, result("accepted"), lineage)), repair(filtered[4], "failed", None)]
    (loop.round_dir(1) / "repairs.jsonl").write_text("".join(r.to_line() + "\n" for r in rows), encoding="utf-8")
    return loop


def result(status: Status) -> FilterResult:
    return FilterResult(status=status, why="by hand", final_score=None, grade=None)


def repair(dialogue: Dialogue, outcome: Any, mended: Filtered | None) -> Repair:
    return Repair(
        dialogue_id=dialogue.dialogue_id, outcome=outcome, why="by hand", dialogue_hash="0", judge="toy", judge_identity="0", rubric="0",
        writer="toy", basis="0", dialogue=mended,
    )  # fmt: skip


def test_a_loops_pool_holds_accepted_and_repaired_dialogues_and_holds_back_what_was_held_back(loop: Loop, library: Library) -> None:
    own = PoolSettings(held_out=tuple(loop.settings().held_back))
    counts = write_pool(loop.sft_dir, loop_entries(loop, library, upto=1), own)
    train, held_out = read_samples(loop.sft_dir / "train.jsonl"), read_samples(loop.sft_dir / "held_out.jsonl")
    assert (counts.train, counts.held_out) == (len(train), len(held_out)) and accounted(counts) == counts.asks
    run = Run(loop.run(1).path)
    ids = list(run.dialogues())
    assert {(s.dialogue_id, s.source, s.round) for s in train} == {(ids[0], "accepted", 1), (ids[1], "repaired", 1)}
    assert {s.dialogue_id for s in held_out} == {ids[2]} and {s.binding for s in held_out} == {"b03"}
    assert all(s.speaker == run.dialogues()[s.dialogue_id].evaluated_role for s in [*train, *held_out])
    assert "换成这句话了" in {s.response["content"] for s in train if s.source == "repaired"}
    card = json.loads((loop.sft_dir / "data_card.json").read_text(encoding="utf-8"))
    assert card["made_by"] == {"toy against toy": 2, "toy against toy, repaired by toy": 1}
    assert card["made_with"]["skills"] == sorted(s.label for s in load_skills(default_skills_dir()))
    assert card["licences"][0] == "Cards: not stated." and "Messages by models" in card["licences"][1]
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in loop.sft_dir.iterdir()}
    assert write_pool(loop.sft_dir, loop_entries(loop, library, upto=1), own) == counts
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in loop.sft_dir.iterdir()} == before


def test_prompts_whose_summary_a_model_made_before_the_repair_are_left_out(loop: Loop, library: Library) -> None:
    rows = (loop.round_dir(1) / "repairs.jsonl").read_text(encoding="utf-8").splitlines()
    mended = Repair.model_validate_json(rows[0]).dialogue
    assert mended is not None
    context = Context.of_run(loop.run(1), library, loop.skills_dir)
    assert Entry(mended, context, "repaired").stale_from is None
    assert Entry(mended, replace(context, past="logged"), "repaired").stale_from == mended.turns()[0]
    assert Entry(mended.bare(), replace(context, past="logged"), "accepted").stale_from is None


def test_settings_stand_in_the_card(gold: list[Entry], tmp_path: Path) -> None:
    settings = PoolSettings("both", 0.3, 7, 0.9, ("Mine.",))
    write_pool(tmp_path, gold[:3], settings)
    card = json.loads((tmp_path / "data_card.json").read_text(encoding="utf-8"))
    own = {k: v for k, v in asdict(settings).items() if k != "licences"}
    assert card["settings"] == own and card["licences"] == ["Mine."]
