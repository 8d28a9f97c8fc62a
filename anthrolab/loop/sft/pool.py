"""The pool of training samples on disk: made of dialogues, split, without duplicates, with its data card.

    train.jsonl, held_out.jsonl        TRL's prompt-completion format (loop/sft/samples.py), one sample a line
    train.parquet, held_out.parquet    the same columns
    sharegpt.json                      the training samples as ShareGPT conversations
    table1.csv                         Table 1 of train and held-out samples together
    data_card.json, data_card.md       counts, hashes, licences, what is not known

Pure from its arguments: the same dialogues and settings give the same bytes, and nothing that is there already is written
again. The card is written last and holds the hashes of all other files.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from anthrolab.bench.printing import as_csv
from anthrolab.cards.library import Library
from anthrolab.cards.skill import Skill
from anthrolab.loop.sft.data_card import UNKNOWN, card_json, card_markdown, facts_of, file_facts
from anthrolab.loop.sft.duplicates import NEAR, without_copies_of, without_duplicates
from anthrolab.loop.sft.entries import Entry, gold_entries, licence_of
from anthrolab.loop.sft.sample_files import as_jsonl, as_parquet, write_if_new
from anthrolab.loop.sft.samples import Sample, SftError, Sides, samples_of
from anthrolab.loop.sft.sharegpt import sharegpt
from anthrolab.loop.sft.split import Split, pairs_of_bindings, split_by_pairs, split_by_share
from anthrolab.loop.sft.table1 import table1
from anthrolab.runtime.prompt import prompts_hash


@dataclass(frozen=True)
class PoolSettings:
    """sides: whose decisions are taken. held_out: a share of the samples (0 to 1), drawn by `seed`, or the bindings whose
    pairs are held out. near: see `duplicates.py`. licences: lines for the data card."""

    sides: Sides = "evaluated"
    held_out: float | tuple[str, ...] = 0.1
    seed: int = 0
    near: float = NEAR
    licences: tuple[str, ...] = ()


@dataclass(frozen=True)
class PoolCounts:
    """Where every ask went: `asks` is the sum of `left_out`, the three kinds of duplicates, `train` and `held_out`.
    `silent_duplicates`: silences among the three kinds. `dialogues_left_out`: whole dialogues, of whose asks nothing is known."""

    dialogues: int
    asks: int
    train: int
    held_out: int
    exact_duplicates: int
    near_duplicates: int
    copies_of_held_out: int
    silent_duplicates: int
    left_out: dict[str, int] = field(default_factory=dict)
    dialogues_left_out: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Pool:
    """The samples of a pool, split, and their counts."""

    split: Split
    counts: PoolCounts

    @property
    def samples(self) -> list[Sample]:
        """Train and held-out samples."""
        return [*self.split.train, *self.split.held_out]


def build_pool(entries: Sequence[Entry], settings: PoolSettings) -> Pool:
    """The pool of these dialogues, in memory.

    SftError if a dialogue stands there twice, or if its record does not fit its context (other cards, skills or limits).
    """
    samples: list[Sample] = []
    left_out: Counter[str] = Counter()
    dialogues_left_out: Counter[str] = Counter()
    asks, seen = 0, set()
    for entry in entries:
        key = entry.dialogue.dialogue_id
        if key in seen:
            raise SftError(f"{key}: stands twice in the pool; give one of the two")
        seen.add(key)
        if not entry.dialogue.asks:
            dialogues_left_out["no asks in its record"] += 1
            continue
        asks += len(entry.dialogue.asks)
        samples += _samples(entry, settings.sides, left_out)
    split = _split(samples, entries, settings)
    held_out = without_duplicates(split.held_out, settings.near)
    uncopied = without_copies_of(held_out.samples, split.train, settings.near)
    train = without_duplicates(uncopied.samples, settings.near)
    counts = PoolCounts(
        dialogues=len(entries),
        asks=asks,
        train=len(train.samples),
        held_out=len(held_out.samples),
        exact_duplicates=held_out.exact + train.exact,
        near_duplicates=held_out.near + train.near,
        copies_of_held_out=uncopied.exact + uncopied.near,
        silent_duplicates=held_out.silent + uncopied.silent + train.silent,
        left_out=dict(sorted(left_out.items())),
        dialogues_left_out=dict(dialogues_left_out),
    )
    return Pool(Split(train.samples, held_out.samples, split.held_pairs), counts)


def write_pool(out: Path, entries: Iterable[Entry], settings: PoolSettings) -> PoolCounts:
    """Make the pool of these dialogues and write its files; returns its counts. The same call again changes nothing."""
    given = list(entries)
    pool = build_pool(given, settings)
    files = {
        "train.jsonl": as_jsonl(pool.split.train),
        "held_out.jsonl": as_jsonl(pool.split.held_out),
        "train.parquet": as_parquet(pool.split.train),
        "held_out.parquet": as_parquet(pool.split.held_out),
        "sharegpt.json": sharegpt(pool.split.train).encode("utf-8"),
        "table1.csv": as_csv(table1(pool.samples)).encode("utf-8"),
    }
    card = _card(pool, given, settings, files)
    files["data_card.md"] = card_markdown(card, pool.samples).encode("utf-8")
    files["data_card.json"] = card_json(card).encode("utf-8")
    if out.is_dir():
        foreign = sorted(p.name for p in out.iterdir() if p.name not in files and not p.name.startswith("."))
        if foreign:
            raise SftError(f"{out}: holds other files ({foreign[0]}); give the training data a folder of its own")
    for name, content in files.items():
        write_if_new(out / name, content)
    return pool.counts


def gold_pool(out: Path, library: Library, cards_dir: Path, settings: PoolSettings, skills: Sequence[Skill] = ()) -> PoolCounts:
    """The pool of the hand-written dialogues (`gold_entries`), both sides of them."""
    own = replace(settings, sides="both", licences=(licence_of(cards_dir), *settings.licences))
    return write_pool(out, gold_entries(library, cards_dir, skills), own)


def _samples(entry: Entry, sides: Sides, left_out: Counter[str]) -> list[Sample]:
    dialogue, context = entry.dialogue, entry.context
    try:
        prompts = context.prompts(dialogue)
    except ValueError as e:
        raise SftError(f"{e}; give the cards, skills and limits that it was played with") from e
    category = context.library.all_scenarios()[dialogue.scenario or ""].category
    taken = samples_of(dialogue, prompts, category=category, source=entry.source, round=entry.round, sides=sides, stale_from=entry.stale_from)
    left_out.update(taken.left_out)
    return taken.samples


def _split(samples: Sequence[Sample], entries: Sequence[Entry], settings: PoolSettings) -> Split:
    if isinstance(settings.held_out, tuple):
        libraries = list({id(e.context.library): e.context.library for e in entries}.values())
        return split_by_pairs(samples, pairs_of_bindings(libraries, settings.held_out) if libraries else ())
    return split_by_share(samples, settings.held_out, settings.seed)


def _card(pool: Pool, entries: Sequence[Entry], settings: PoolSettings, files: dict[str, bytes]) -> dict[str, Any]:
    contexts = list({id(e.context): e.context for e in entries}.values())
    made_by = Counter(e.made_by for e in entries)
    own = asdict(settings)
    licences = list(own.pop("licences")) or ["Cards: not stated."]
    if any(e.source != "gold" for e in entries):
        licences.append("Messages by models: the terms of the models under \"Where they come from\" apply as well.")
    held_people = {person for s in pool.split.held_out for person in s.pair.split("+")}
    return {
        "counts": asdict(pool.counts),
        "pool": facts_of(pool.samples),
        "train": facts_of(pool.split.train),
        "held_out": facts_of(pool.split.held_out),
        "split": {
            "held_pairs": pool.split.held_pairs,
            "people_held_out": len(held_people),
            "people_in_both": pool.split.people_in_both,
        },
        "settings": own,
        "made_by": dict(sorted(made_by.items())),
        "made_with": {
            "prompts": prompts_hash(),
            "cards": sorted({c.library.content_hash() for c in contexts}),
            "skills": sorted({skill.label for c in contexts for skill in c.skills}),
            "windows": sorted({c.limits.window for c in contexts}),
            "summaries": sorted({c.past for c in contexts}),
        },
        "files": file_facts(files),
        "licences": licences,
        "not_known": list(UNKNOWN),
    }
