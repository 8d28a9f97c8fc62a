"""A case as HTML: its chat with the failures marked, or what a ledger alone knows of it; and two of them side by side."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup

from anthrolab.bench.ledger import GLOBAL_DIMENSIONS, LOCAL_DIMENSIONS
from anthrolab.show.bubbles import Chat, chat_html, chat_view, marked_chat
from anthrolab.show.coverage import L0_NAMES
from anthrolab.show.failures import GATE_UNKNOWN, NO_TURNS, Failures
from anthrolab.show.pages import asset, environment

Case = Mapping[str, Any]
"""A row of `Failures.cases`."""
Failing = Collection[tuple[str, int | None]]
"""Failures of one case: id of checkbox or constraint, message index."""


@dataclass(frozen=True)
class Card:
    """One score card in print: its name (a turn, or the dialogue), and for each dimension what failed and how many
    checkboxes were not assessed (None: the dimension is not there)."""

    name: str
    cells: list[tuple[list[str], int] | None]


@dataclass(frozen=True)
class Pair:
    """One checkbox or constraint in two cases: failed and assessed in each (assessed 0: not assessed)."""

    id: str
    text: str
    left: tuple[int, int]
    right: tuple[int, int]


def chat_of(failures: Failures, case: Case) -> Chat | None:
    """The chat of a case; None where its source has no dialogues, or the case was not done."""
    source = failures.sources[case["number"]]
    dialogue = source.dialogues.get((case["case_id"], case["sample"]))
    if source.measured is None or dialogue is None:
        return None
    m, key = source.measured, dialogue.dialogue_id
    return chat_view(
        dialogue,
        gate=m.gate[key],
        verdicts={m.judge_label: m.verdicts[key]} if key in m.verdicts else {},
        rubric=m.rubric,
        scenario=(source.scenarios or {}).get(dialogue.scenario or ""),
        valid=case["valid"],
    )


def case_html(failures: Failures, case: Case, failing: Failing = ()) -> str:
    """One case as an HTML fragment (style: `explorer_style`), with some of its failures marked.

    Where there is no chat it says why, and what failed at which turn.
    """
    return environment().get_template("case.html").render(panes=[_pane(failures, case, failing)], pairs=[], names=("", ""))


def beside_html(failures: Failures, left: Case, right: Case, failing: Failing = ()) -> str:
    """Two cases side by side, the failures `failing` of the left one marked, and of the right one those of the same
    ids; above them what fails in either of them."""
    ids = {id for id, _ in failing}
    own = failures.rows.filter((pl.col("case") == right["case"]) & pl.col("id").is_in(ids))
    same = set(own.select("id", "message_index").iter_rows())
    panes = [_pane(failures, left, failing), _pane(failures, right, same)]
    names = (_name(left, right), _name(right, left))
    return environment().get_template("case.html").render(panes=panes, pairs=pairs(failures, left, right), names=names)


def explorer_style() -> str:
    """The style of chats and panes, as a CSS text."""
    return asset("chats.css") + asset("explorer.css")


def pairs(failures: Failures, left: Case, right: Case) -> list[Pair]:
    """Every checkbox and constraint that fails in at least one of two cases, with its counts in both."""
    counts = [_counts(failures, case) for case in (left, right)]
    words, none = texts(failures, left["source"]), (0, 0)
    failed = {id for c in counts for id, (n, _) in c.items() if n}
    gates = [id for id in (*L0_NAMES, GATE_UNKNOWN, NO_TURNS) if id in failed]
    boxes = sorted(failed - set(gates), key=_number)
    return [Pair(id, words.get(id, ""), counts[0].get(id, none), counts[1].get(id, none)) for id in [*gates, *boxes]]


def texts(failures: Failures, source: str | None = None) -> dict[str, str]:
    """What the ids mean in a source (None: in any run): the wording of its rubric, and the names of the constraints.

    A ledger alone does not say how its checkboxes are worded.
    """
    measured = next((s.measured for s in failures.sources if s.measured and source in (None, s.name)), None)
    boxes = {b.id: b.question for b in measured.rubric.boxes()} if measured else {}
    unknown = {GATE_UNKNOWN: "invalid; the ledger does not say why", NO_TURNS: "the tested side said nothing"}
    return boxes | L0_NAMES | unknown


def _pane(failures: Failures, case: Case, failing: Failing) -> dict[str, Any]:
    chat = chat_of(failures, case)
    return {
        "case": case,
        "chat": Markup(chat_html([marked_chat(chat, failing)])) if chat else None,
        "why": "" if chat else _why_no_chat(failures, case),
        "tables": [] if chat else [t for t in _cards(failures, case) if t[1]],
        "chosen": {id for id, _ in failing},
    }


def _why_no_chat(failures: Failures, case: Case) -> str:
    source = failures.sources[case["number"]]
    if source.measured is None:
        return source.note + ("; not done, or not judged" if case["valid"] is None else "")
    end = f"-{case['case_id']}-{case['sample']}"
    fault = next((f for f in source.measured.failures if str(f["dialogue_id"]).endswith(end)), None)
    return "not done yet" + (f"; last time: {fault['fault']}: {fault['error']}" if fault else "")


def _boxes(failures: Failures, case: Case) -> pl.DataFrame:
    return failures.sources[case["number"]].ledger.checkboxes.filter(pl.col("case") == case["ledger_case"])


def _cards(failures: Failures, case: Case) -> list[tuple[tuple[str, ...], list[Card]]]:
    """The turns' cards and the dialogue's: the dimensions, and a row for each card."""
    cells: dict[tuple[int | None, str], tuple[list[str], int]] = {}
    for turn, dimension, box, passed in _boxes(failures, case).select("turn_index", "dimension", "checkbox", "passed").iter_rows():
        failed, unassessed = cells.get((turn, dimension), ([], 0))
        cells[turn, dimension] = ([*failed, f"{dimension}.{box}"] if passed is False else failed, unassessed + (passed is None))
    turns = sorted({turn for turn, _ in cells if turn is not None})
    local = [Card(f"turn {t}", [cells.get((t, d)) for d in LOCAL_DIMENSIONS]) for t in turns]
    whole = [Card("dialogue", [cells.get((None, d)) for d in GLOBAL_DIMENSIONS])] if cells else []
    return [(LOCAL_DIMENSIONS, local), (GLOBAL_DIMENSIONS, whole)]


def _counts(failures: Failures, case: Case) -> dict[str, tuple[int, int]]:
    """Failed and assessed by id; of a constraint 0 assessed unless it failed, since a ledger does not say."""
    gate = failures.rows.filter((pl.col("case") == case["case"]) & (pl.col("kind") != "checkbox"))["id"]
    failed, assessed = Counter(gate), Counter(gate)
    for dimension, box, passed in _boxes(failures, case).select("dimension", "checkbox", "passed").iter_rows():
        failed[f"{dimension}.{box}"] += passed is False
        assessed[f"{dimension}.{box}"] += passed is not None
    return {id: (failed[id], assessed[id]) for id in assessed}


def _number(id: str) -> tuple[str, int]:
    dimension, _, box = id.rpartition(".")
    return (dimension, int(box))


def _name(case: Case, other: Case) -> str:
    """What tells a case from the other one."""
    parts = [str(case["system"]), str(case["source"]), f"sample {case['sample']}"]
    told = [p for p, o in zip(parts, (other["system"], other["source"], f"sample {other['sample']}"), strict=True) if p != o]
    return " · ".join(told or parts[:1])
