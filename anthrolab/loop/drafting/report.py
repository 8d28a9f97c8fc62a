"""What a plan has come to: planned, accepted, rejected by reason, what is still open and why, and what it cost."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anthrolab.bench.spend import read_spend
from anthrolab.cards.library import Library
from anthrolab.cards.lint import lint
from anthrolab.cards.statistics import persona_frame, scenario_frame
from anthrolab.judging.testable import untestable
from anthrolab.loop.drafting.desk import Desk
from anthrolab.loop.drafting.quotas import PERSONA_QUOTAS, SCENARIO_QUOTAS
from anthrolab.loop.drafting.reading import Reason
from anthrolab.models.systems import System

SHOWN = 8
"""Lines of one kind that are printed; report.json has all."""


@dataclass(frozen=True)
class Counts:
    """Cards: planned, accepted, and of the others those whose attempts are used up (open), that wait for a persona, or got no
    answer or were not tried; findings: what the linter says of the folder as a whole."""

    planned: int
    accepted: int
    open: int
    waiting: int
    findings: int

    @property
    def complete(self) -> bool:
        """Everything planned is there, and the linter finds nothing."""
        return self.accepted == self.planned and not self.findings


def make_report(desk: Desk, systems: Mapping[str, System]) -> dict[str, Any]:
    """The content of report.json. The same cards and calls give the same report."""
    corpus, plan, outcomes = desk.corpus, desk.plan, desk.folder.outcomes
    library = Library(dict(sorted(corpus.personas.items())), dict(sorted(corpus.scenarios.items())), corpus.bindings)
    rejected = Counter(key for rows in outcomes.values() for o in rows for key in {_sort(r) for r in o.reasons})
    used_up = [s.id for s in plan.slots if not desk.folder.accepted(s.id) and desk.attempt(s) > desk.attempts]
    waiting = {s.id: missing for s in plan.scenarios if not desk.folder.accepted(s.id) and (missing := desk.waits_for(s))}
    drafts = [o for rows in outcomes.values() for o in rows]
    return {
        "planned": {"personas": len(plan.personas), "scenarios": len(plan.scenarios), "bindings": plan.bindings},
        "accepted": {"personas": len(corpus.personas), "scenarios": len(corpus.scenarios), "bindings": len(corpus.bindings)},
        "quotas": _quotas(desk, library),
        "drafts": {"accepted": sum(o.card is not None for o in drafts), "rejected": sum(o.card is None for o in drafts)},
        "rejected": dict(sorted(rejected.items(), key=lambda item: (-item[1], item[0]))),
        "open": [{"slot": s, "attempts": len(outcomes[s]), "reasons": [r.said for r in outcomes[s][-1].reasons]} for s in used_up],
        "waiting": [{"slot": s, "for": missing} for s, missing in waiting.items()],
        "unanswered": [{"slot": s, "fault": e.fault, "error": str(e)} for s, e in sorted(desk.unanswered.items())],
        "findings": [str(f) for f in (*lint(library), *untestable(library.personas))],
        "writers": dict(sorted(Counter(o.system for o in drafts if o.card is not None).items())),
        "spend": _spend(desk, systems),
    }


def closing_lines(out: Path, report: Mapping[str, Any]) -> list[str]:
    """What is said at the end of a command."""
    planned, accepted, drafts = report["planned"], report["accepted"], report["drafts"]
    there = ", ".join(f"{accepted[kind]} of {planned[kind]} {kind}" for kind in planned)
    lines = [f"{out}: {there}; {drafts['accepted'] + drafts['rejected']} drafts, {drafts['rejected']} of them rejected"]
    lines += _some([f"  rejected {n} times: {reason}" for reason, n in report["rejected"].items()])
    lines += _some([f"  {row['slot']}: open after {row['attempts']} attempts: {'; '.join(row['reasons'])}" for row in report["open"]])
    if report["open"]:
        lines.append("  open slots are drafted again by the same command with higher --attempts")
    if report["waiting"]:
        lines.append(f"  {len(report['waiting'])} scenarios wait for personas that are not there")
    lines += _some([f"  {row['slot']}: no answer ({row['fault']}): {row['error']}" for row in report["unanswered"]])
    lines += _some([f"  {line}" for line in report["findings"]])
    for row in report["spend"]:
        money = "" if row["usd"] is None else f", {row['usd']:.2f} USD"
        lines.append(f"  {row['system']}: {row['calls']} calls, {row['tokens']} tokens{money}")
    return lines


def counts_of(report: Mapping[str, Any]) -> Counts:
    """The numbers that decide whether a command has done all."""
    total = {kind: report[kind]["personas"] + report[kind]["scenarios"] for kind in ("planned", "accepted")}
    return Counts(total["planned"], total["accepted"], len(report["open"]), len(report["waiting"]), len(report["findings"]))


def _sort(reason: Reason) -> str:
    """A reason as it is counted: what sort of fault, in which field."""
    if reason.kind == "reply":
        return "reply: no JSON object of a card"
    field = re.sub(r"\.\d+", "", reason.said.partition(":")[0])
    return f"{reason.kind}: {field}" if len(field) <= 60 else reason.kind


def _quotas(desk: Desk, library: Library) -> dict[str, Any]:
    """Of each part and value how many are planned, and how many of the accepted cards are counted as it."""
    slots: dict[str, list[Mapping[str, str]]] = {
        "personas": [s.quota for s in desk.plan.personas],
        "scenarios": [
            {"category": s.category, "horizon": f"{s.horizon_minutes} min", "opener": s.opener, "remote": "remote" if s.remote else "same place"}
            for s in desk.plan.scenarios
        ],
    }
    frames = {"personas": persona_frame(library), "scenarios": scenario_frame(library)}
    found: dict[str, Any] = {}
    for kind, parts in (("personas", PERSONA_QUOTAS), ("scenarios", SCENARIO_QUOTAS)):
        found[kind] = {}
        for part in parts:
            planned = Counter(slot[part] for slot in slots[kind])
            there = Counter(frames[kind][part].to_list()) if frames[kind].height else Counter()
            values = sorted(planned | there, key=lambda v: (-planned[v], v))
            found[kind][part] = {v: {"planned": planned[v], "accepted": there[v]} for v in values}
    return found


def _spend(desk: Desk, systems: Mapping[str, System]) -> list[dict[str, Any]]:
    rows = []
    for spent in read_spend(desk.folder.run):
        prices = systems[spent.system].prices if spent.system in systems else None
        tokens = spent.usage.prompt_tokens + spent.usage.completion_tokens
        rows.append({"system": spent.system, "calls": spent.usage.calls, "reused": spent.reused, "tokens": tokens, "usd": spent.cost(prices)})
    return rows


def _some(lines: list[str]) -> list[str]:
    more = len(lines) - SHOWN
    return lines if more <= 0 else [*lines[:SHOWN], f"  and {more} more: see .drafting/report.json"]
