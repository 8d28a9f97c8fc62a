"""The data card of a pool: what is in it, what was left out, what it was made with, and what nobody knows about it."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from anthrolab.bench.published import published_source
from anthrolab.loop.sft.samples import Sample
from anthrolab.loop.sft.table1 import PAPER_COVERAGE, beside_paper, coverage

UNKNOWN = (
    "Whether a model trained on this chats better: only a benchmark of it says so.",
    "Whether all likeness to real people, chats or test sets is absent: only copies inside the pool were looked for.",
    "What a dialogue's judge overlooked: an accepted dialogue has passed one judge, and a hand-written one its author and the gate.",
)
"""What stands in every card under "Not known"."""


def file_facts(files: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """Size and whole SHA-256 of each file by name."""
    return {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}


def counts_by(samples: Sequence[Sample]) -> dict[str, dict[str, int]]:
    """Samples by source, category, side and round, each sorted by name."""
    keys: dict[str, Callable[[Sample], object]] = {
        "source": lambda s: s.source, "category": lambda s: s.category, "side": lambda s: s.speaker,
        "round": lambda s: "none" if s.round is None else s.round,
    }  # fmt: skip
    return {name: {str(k): n for k, n in sorted(Counter(map(key, samples)).items(), key=lambda kn: str(kn[0]))} for name, key in keys.items()}


def facts_of(samples: Sequence[Sample]) -> dict[str, Any]:
    """Everything that can be counted from samples alone.

    silences: decisions to send nothing; silences_with_text: those among them that carry a text all the same, as logged.
    neutralised: messages whose control tokens were made harmless. mended: replies that were bent or asked for twice.
    """
    silent = [s for s in samples if s.silent]
    return {
        **coverage(samples),
        "silences": len(silent),
        "silences_with_text": sum(bool(s.response["content"].strip()) for s in silent),
        "neutralised": sum(s.neutralised for s in samples),
        "mended": sum(s.recovered is not None for s in samples),
        "by": counts_by(samples),
    }


def card_json(card: Mapping[str, Any]) -> str:
    """The card as indented JSON."""
    return json.dumps(card, ensure_ascii=False, indent=1) + "\n"


def card_markdown(card: Mapping[str, Any], samples: Sequence[Sample]) -> str:
    """The card for people; `samples` are those of the pool, for Table 1."""
    counts, split, pool = card["counts"], card["split"], card["pool"]
    lines = [
        "# Data card",
        "",
        f"{pool['samples']:,} samples of {pool['dialogues']:,} dialogues: {counts['train']:,} to train on, {counts['held_out']:,} held out. "
        "A sample is one decision of one speaker: the two-message prompt that the runtime built at that ask, and the decision "
        "(message, time, or silence) as JSON. The chats are in Chinese, between invented people, in virtual time.",
        "",
        *_table(("", "samples"), [
            ("silences (nothing is sent)", pool["silences"]),
            ("of these, silences that carry a text, as logged", pool["silences_with_text"]),
            ("messages whose control tokens were neutralised", pool["neutralised"]),
            ("from replies that were mended or asked for twice", pool["mended"]),
        ]),
        *(line for name, by in pool["by"].items() for line in _table((name, "samples"), list(by.items()))),
        "## Where they come from",
        "",
        *_table(("made by", "dialogues"), list(card["made_by"].items())),
        "## What was left out",
        "",
        f"{counts['dialogues']:,} dialogues with {counts['asks']:,} asks were given. Asks without a sample, and duplicates:",
        "",
        *_table(("reason", "count"), [
            *counts["left_out"].items(),
            ("exact duplicate of an earlier sample", counts["exact_duplicates"]),
            ("near duplicate of an earlier sample", counts["near_duplicates"]),
            ("copy of a held-out sample, dropped from train", counts["copies_of_held_out"]),
            ("of these three, silences", counts["silent_duplicates"]),
            *((f"whole dialogue: {reason}", n) for reason, n in counts["dialogues_left_out"].items()),
        ]),
        "## Held out",
        "",
        f"By pair of personas, in either direction: {len(split['held_pairs'])} pairs held out, none of them in train. "
        f"{len(split['people_in_both'])} of the {split['people_held_out']} people of held-out samples stand in train too, with other partners.",
        "",
        f"## Table 1, beside {published_source(1)}",
        "",
        *_table(*_frame(samples)),
        "The paper's pool: " + ", ".join(f"{n:,} {key.replace('_', ' ')}" for key, n in PAPER_COVERAGE.items())
        + ". This one: " + ", ".join(f"{pool[key]:,} {key.replace('_', ' ')}" for key in PAPER_COVERAGE) + ".",
        "",
        "## Made with",
        "",
        *_table(("what", "value"), [(k, _said(v)) for k, v in {**card["made_with"], **card["settings"]}.items()]),
        "## Files",
        "",
        *_table(("file", "bytes", "SHA-256"), [(name, f["bytes"], f["sha256"]) for name, f in card["files"].items()]),
        "## Licences",
        "",
        *(f"- {line}" for line in card["licences"]),
        "",
        "## Not known",
        "",
        *(f"- {line}" for line in card["not_known"]),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _frame(samples: Sequence[Sample]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    frame = beside_paper(samples)
    return tuple(frame.columns), list(frame.iter_rows())


def _said(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    def line(cells: Sequence[object]) -> str:
        return "| " + " | ".join(f"{c:,}" if isinstance(c, int) else _plain(str(c)) for c in cells) + " |"

    return [line(head), "|" + "---|" * len(head), *map(line, rows), ""]


def _plain(text: str) -> str:
    """Text that cannot end a cell of a Markdown table or start HTML in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("\n", " ")
