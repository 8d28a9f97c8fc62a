"""Stops and faults in print: why chats stopped, whose fault a failure is, how replies came out, and the warnings."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from anthrolab.bench.printing import as_percent, ratio
from anthrolab.metrics.stops import Audit, Ending, Fate, Flag, Judged, audit
from anthrolab.show.blocks import Block
from anthrolab.show.measured import Measured
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table

Audited = tuple[Measured, Audit]

ENDINGS: dict[Ending, str] = {
    "silence": "Both sides decided to send nothing",
    "horizon": "The next message lay beyond the time of the scenario",
    "max_messages": "The chat had all messages that it may have",
    "tested_never_spoke": "The tested side never wrote a message",
    "partner_never_spoke": "The partner never wrote a message",
    "tested_broke": "The tested side's last reply broke the output contract",
    "partner_broke": "The partner's last reply broke the output contract",
    "both_broke": "The last replies of both sides broke the output contract",
    "guard": "A guard dropped the last draft (a repetition, too many in a row, goodbyes without end)",
    "closed": "Closed; no log says how",
    "not_said": "The record does not say",
}
SHORT_ENDINGS: dict[Ending, str] = {
    "silence": "both fell silent",
    "horizon": "the time was up",
    "max_messages": "the message limit was reached",
    "tested_never_spoke": "the tested side never wrote",
    "partner_never_spoke": "the partner never wrote",
    "tested_broke": "the tested side's last reply broke the contract",
    "partner_broke": "the partner's last reply broke the contract",
    "both_broke": "both last replies broke the contract",
    "guard": "a guard dropped the last draft",
    "closed": "closed, no log says how",
    "not_said": "",
}
"""The same in the line over a chat, which says nothing where the record does not."""
ENDPOINT = "Nobody's: an endpoint"
FATES: dict[Fate, tuple[str, str]] = {
    "fatal": ("Tested system", "Invalid: it broke a fatal constraint of the gate"),
    "said_nothing": ("Tested system", "Invalid: it said nothing"),
    "tested_reply": ("Tested system", "Not had: its model answered with nothing usable, or declined"),
    "unanswered": ("Partner", "Invalid: it never answered the tested side's opener"),
    "partner_reply": ("Partner", "Not had: its model answered with nothing usable, or declined"),
    "tested_endpoint": (ENDPOINT, "Not had: the tested system's endpoint failed"),
    "partner_endpoint": (ENDPOINT, "Not had: the partner's endpoint failed"),
    "other_endpoint": (ENDPOINT, "Not had: the endpoint of another model (such as a summariser) failed"),
    "unknown_endpoint": (ENDPOINT, "Not had: an endpoint failed; the record does not say whose"),
    "other_reply": ("Another model", "Not had: a model that plays neither side answered with nothing usable"),
    "unknown_reply": ("Not known", "Not had: a model answered with nothing usable; the record does not say whose"),
    "incomplete": ("Judge", "Valid, but the judge gave no answer to some call"),
    "unreadable": ("Judge", "Valid, but an answer of the judge could not be used"),
    "limit": ("Nobody's: a limit", "Not had: it would have cost or taken more than the command allowed"),
    "missing": ("Nobody's: not tried", "Not tried yet"),
    "not_judged": ("Nobody's: not judged", "Valid by the gate, not judged yet"),
    "scored": ("None", "Valid and judged"),
}
_NO_FAULT_OF_A_JUDGE = ("no_rule", "undecided", "no_persona", "no_scenario", "no_turns")
"""Why a checkbox can be unassessed although the judge did all that it can."""


def audit_of(m: Measured, call_trouble: Mapping[str, Counter[str]] | None = None) -> Audit:
    """The audit of a run as one judge saw it; `call_trouble` as in `metrics.stops.audit`."""
    judged: dict[str, Judged] = {}
    for key, dialogue in m.dialogues.items():
        verdict = m.verdicts.get(key)
        if m.case(dialogue)["valid"] is False:
            judged[key] = "no_turns" if m.gate[key]["reason"] == "no_turns" else "fatal"
        elif verdict is None:
            judged[key] = "not_judged"
        elif not verdict.complete:
            judged[key] = "incomplete"
        elif any(reason not in _NO_FAULT_OF_A_JUDGE for reason in verdict.unassessed()):
            judged[key] = "unreadable"
    planned = int(m.manifest["counts"]["planned"])
    return audit(m.dialogues.values(), m.failures, planned, judged=judged, call_trouble=call_trouble)


def warning(m: Measured, flags: Sequence[Flag]) -> str | None:
    """The banner of a row that should not be read as it stands: one sentence with the numbers; None without a flag."""
    return f"Do not read this row as how {m.system} chats: {_clauses(m, flags)}." if flags else None


def with_warning(block: Block, text: str | None) -> Block:
    """The block with the banner in its heading, which stands over its rows in every table."""
    return replace(block, heading=f"{block.heading} · {text}") if text else block


def banners(audited: Sequence[Audited]) -> list[str]:
    """The banners at the top of a report: one for each run and distinct warning, with the run's name."""
    found = [(m, a.flags()) for m, a in audited]
    lines = [f"Run {m.run}: do not read its row as how {m.system} chats: {_clauses(m, flags)}." for m, flags in found if flags]
    return list(dict.fromkeys(lines))


def stops_table(runs: Sequence[Audited]) -> PrintedTable:
    """Why dialogues stopped, with those that were never finished, over the plan; one entry of each run (any judge's)."""
    rows = []
    for m, a in runs:
        rows += [(why, m.run, n, a.planned) for key, why in ENDINGS.items() if (n := a.endings[key])]
        rows += [("Never finished: not tried", m.run, n, a.planned) for n in [a.fates["missing"]] if n]
        failed = a.planned - a.endings.total() - a.fates["missing"]
        rows += [("Never finished: failed", m.run, failed, a.planned)] if failed else []
    return plain_table(
        "stops-by-reason", "Why chats stopped", "Dialogues of the plan, valid or not. A chat that a broken reply or a mute side ended says "
        "little about how the other side chats.",
        _counted(rows, ["Why it stopped", "Run"]),
    )  # fmt: skip


def faults_table(audited: Sequence[Audited]) -> PrintedTable:
    """What became of every planned dialogue and whose fault that is, over the plan, one group of rows for each run and judge."""
    rows = [
        (whose, f"{m.run}, {m.judge_label}", what, a.fates[fate], a.planned)
        for m, a in audited
        for fate, (whose, what) in FATES.items()
        if a.fates[fate]
    ]
    return plain_table(
        "faults", "Whose fault", "Every planned dialogue once. What was not had or not judged is scored nowhere and stays to be done.",
        _counted(rows, ["Whose fault", "Run, judge", "What became of the dialogue"]),
    )  # fmt: skip


def replies_table(runs: Sequence[Audited]) -> PrintedTable:
    """How the replies of each side came out: a row for the tested side and one for its partner."""
    rows = []
    for m, a in runs:
        for name, r in ((f"{m.system}, tested", a.tested), (f"{m.partner}, partner", a.partner)):
            rows.append(
                {
                    "System, side": name,
                    "Run": m.run,
                    "Asks": str(r.asks) if r.asks else NO_VALUE,
                    "Broken": _part(r.broken, r.asks),
                    "Bent back": _part(r.recovered, r.asks),
                    "How bent back": _listed(r.kinds),
                    "Silent": _part(r.silent, r.asks),
                    "Empty": _part(r.empty, r.asks),
                    "Dialogues": str(r.dialogues),
                    "Never wrote": _part(r.mute, r.dialogues),
                    "Failed attempts": _listed(r.failed),
                }
            )
    frame = pl.DataFrame(rows)
    if all(cell == NO_VALUE for cell in frame["Failed attempts"]):
        frame = frame.drop("Failed attempts")
    return plain_table(
        "replies", "Replies by side", "Counts, with shares of the asks, over all finished dialogues; never wrote: of the dialogues.", frame,
        [
            "Broken: broke the output contract even when asked twice; no decision, so the side was silent by accident. Bent back: "
            "read only after mending, or only at the second ask. Silent: decided to send nothing. Empty: silent without saying so, "
            "by a blank text. Never wrote: the other side wrote, this one never did; the given opener is nobody's. "
            f"Failed attempts: of model calls that were made again. {NO_VALUE}: not measured, or none.",
        ],
    )  # fmt: skip


def _counted(rows: Sequence[tuple[str | int, ...]], labels: Sequence[str]) -> pl.DataFrame:
    """Rows of labels, a count and the plan, with the share printed."""
    printed = [(*row[:-2], str(row[-2]), _share(int(row[-2]), int(row[-1]))) for row in rows]
    return pl.DataFrame(printed, schema=dict.fromkeys((*labels, "Dialogues", "Of the plan"), pl.String), orient="row")


def _clauses(m: Measured, flags: Sequence[Flag]) -> str:
    return "; ".join(_clause(m, flag) for flag in flags)


def _clause(m: Measured, flag: Flag) -> str:
    part, of = flag.part, flag.of
    if flag.kind == "not_done":
        return f"{part} of {of} planned dialogues ({_percent(part, of)}) are not there"
    if flag.kind == "unjudged":
        return f"the judge ({m.judge_label}) gave no usable answer to some call in {part} of {of} valid dialogues that it was given ({_percent(part, of)})"
    who = m.system if flag.side == "tested" else f"its partner {m.partner}"
    counted = f"{part} of {of} replies of {who} ({_percent(part, of)})"
    if flag.kind == "mute":
        return f"{who} never wrote a message in {part} of {of} dialogues ({_percent(part, of)})"
    if flag.kind == "broken":
        return f"{counted} broke the output contract even when asked twice"
    if flag.kind == "empty":
        return f"{counted} were empty, cut off or nothing but reasoning, failed attempts counted"
    return f"{counted} had to be bent back or asked for twice" + (f" (mostly: {flag.detail})" if flag.detail else "")


def _percent(part: int, of: int) -> str:
    return as_percent(ratio(part, of), 1)


def _share(part: int, of: int) -> str:
    return f"{_percent(part, of)} of {of}" if of else NO_VALUE


def _part(part: int, of: int) -> str:
    return f"{part} ({_percent(part, of)})" if of else NO_VALUE


def _listed(counts: Mapping[str, int]) -> str:
    """Such as `asked twice 3, trailing comma dropped 1`, the most frequent first."""
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda x: (-x[1], x[0]))) or NO_VALUE
