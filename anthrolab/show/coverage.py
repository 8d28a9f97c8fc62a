"""Denominators in print: what was planned, done, valid and assessed, what the gate executed, and where chats fail."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from anthrolab.bench.coverage import coverage_table
from anthrolab.bench.ledger import DIMENSIONS
from anthrolab.judging.l0.result import SEVERITY
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.verdict import Verdict
from anthrolab.models.structured import RUNGS
from anthrolab.show.measured import Measured
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table

L0_NAMES = {
    "L0-01": "AI identity exposure",
    "L0-02": "Text-message medium",
    "L0-03": "Non-co-presence",
    "L0-04": "Output contract",
    "L0-05": "Hard repetition",
    "L0-06": "Persona hard facts",
    "L0-07": "Ability and permission",
    "L0-08": "Time logic",
    "L0-09": "Safety and ethics",
    "L0-10": "Stale memory use",
}
"""The constraints of the paper's Table 3."""

_REASONS = {
    "no_rule": "no rule decides this checkbox",
    "undecided": "the rule found the message undecidable",
    "no_persona": "no persona card",
    "no_scenario": "no scenario card",
    "no_turns": "the tested side said nothing",
    "parse_error": "the judge's answer was not readable",
    "truncated": "the judge's answer was cut off",
    "missing_id": "the judge left the checkbox out",
    "duplicate_id": "the judge answered twice",
    "not_boolean": "the judge's answer was neither yes nor no",
    "bad_message": "the judge pointed at no message of the tested side",
}


def denominators(measured: Iterable[Measured]) -> PrintedTable:
    """Cases by what became of them, and checkboxes assessed, one row per run and judge.

    Planned is done, failed and missing together; done is valid, invalid and not judged together.
    """
    rows = []
    for m in measured:
        printed = coverage_table(m.ledger).row(0, named=True)
        planned, done, failed = int(printed["Planned"]), len(m.dialogues), len({f["dialogue_id"] for f in _not_had(m)})
        rows.append(
            {
                "Run, judge": f"{m.run}, {m.judge_label}",
                "Planned": str(planned),
                "Done": str(done),
                "Failed": str(failed),
                "Missing": str(max(0, planned - done - failed)),
                "Valid": printed["Valid"],
                "Invalid": printed["Invalid"],
                "Not judged": str(done - int(printed["Valid"]) - int(printed["Invalid"])),
                "Evaluated turns": printed["Evaluated turns"],
                "Boxes": printed["Boxes"],
                "Assessed": printed["Assessed boxes"],
                "Coverage": printed["Coverage"] or NO_VALUE,
                "Fully assessed cases": printed["Fully assessed cases"],
            }
        )
    return plain_table(
        "denominators", "Cases and checkboxes", "Cases; turns and checkboxes of the valid cases. Failed: a model could "
        "not be reached or gave no usable reply, so there is no dialogue. Missing: not tried. Not judged: done and valid by the "
        "gate, but the judge was not asked yet. None of these is scored.",
        pl.DataFrame(rows),
    )  # fmt: skip


def dimension_shares(measured: Iterable[Measured]) -> PrintedTable:
    """The assessed share of checkboxes by dimension, one row per run and judge."""
    rows = []
    for m in measured:
        printed = coverage_table(m.ledger).row(0, named=True)
        rows.append(
            {"Run, judge": f"{m.run}, {m.judge_label}"}
            | {d: printed[f"{d} assessed"] or NO_VALUE for d in DIMENSIONS}
        )
    return plain_table("shares", "Assessed checkboxes by dimension", "Share of the valid cases' checkboxes, in percent.", pl.DataFrame(rows))


def unassessed(measured: Iterable[Measured]) -> PrintedTable | None:
    """Why checkboxes are unassessed; None if all are assessed."""
    rows = []
    for m in measured:
        counted = sum((v.unassessed() for v in m.verdicts.values()), Counter[str]())
        rows += [(f"{m.run}, {m.judge_label}", _reason(r), n) for r, n in sorted(counted.items(), key=lambda x: (-x[1], x[0]))]
    if not rows:
        return None
    frame = pl.DataFrame(rows, schema={"Run, judge": pl.String, "Why unassessed": pl.String, "Boxes": pl.Int64}, orient="row")
    return plain_table("unassessed", "Why checkboxes are unassessed", "An unassessed checkbox is no pass and no fail.", frame)


def answers_table(measured: Iterable[Measured]) -> PrintedTable | None:
    """How the answers of model judges were had, one row per run and judge; None if no model judged anything.

    By rung of the structured-output ladder that an answer came from, and how many of them stood in the reasoning field.
    """
    rows = []
    for m in measured:
        by_rung = sum((Counter(v.rungs) for v in m.verdicts.values()), Counter[str]())
        if by_rung:
            rows.append(
                {"Run, judge": f"{m.run}, {m.judge_label}"}
                | {rung: str(by_rung[rung]) for rung in RUNGS}
                | {"All": str(by_rung.total()), "Read from reasoning": str(sum(v.from_reasoning for v in m.verdicts.values()))}
            )
    if not rows:
        return None
    return plain_table(
        "judge-answers", "Calls of model judges by rung", "Answered calls by the way in which the server was asked for a form: by a "
        "schema, by JSON alone, by words in the prompt. Read from reasoning: of all, those that stood in the reasoning field.",
        pl.DataFrame(rows),
    )  # fmt: skip


def gate_table(m: Measured) -> PrintedTable:
    """L0-01 to L0-10: what was executed in how many dialogues and by what, and how many dialogues broke it."""
    done = len(m.gate)
    answered = Counter(i for v in m.verdicts.values() for i in v.l0_executed())
    by_judge = Counter(i for v in m.verdicts.values() for i in {a.id for a in v.judge_violations()})
    executed = Counter(i for row in m.gate.values() for i in row["executed"])
    own, partner = (Counter(i for row in m.gate.values() for i in {v["id"] for v in row[k]}) for k in ("violations", "partner_violations"))
    rows = [
        {
            "Constraint": f"{i} {L0_NAMES[i]}",
            "Severity": SEVERITY[i],
            "Executed by rules": _of(executed[i], done),
            "Executed by the judge": _of(answered[i], len(m.verdicts)),
            "Broken by the tested side": str(len(_breakers(m, i))) if executed[i] or answered[i] else NO_VALUE,
            "of these, found by the judge": str(by_judge[i]) if answered[i] else NO_VALUE,
            "Broken by the partner": str(partner[i]) if executed[i] else NO_VALUE,
        }
        for i in SEVERITY
    ]
    assert set(own) <= set(SEVERITY)
    return plain_table(
        f"gate-{m.run}-{m.judge}", f"L0 gate: run {m.run}, {m.judge_label}", "Dialogues. Fatal: the case is invalid and leaves "
        "the rates. Major: kept for diagnosis. The partner's violations are counted apart and decide nothing.",
        pl.DataFrame(rows),
    )  # fmt: skip


def invalid_cases(m: Measured) -> PrintedTable | None:
    """Every invalid case with its reason; None if there is none."""
    rows = []
    for dialogue_id, row in m.gate.items():
        dialogue = m.dialogues[dialogue_id]
        if m.case(dialogue)["valid"] is not False:
            continue
        found = [(v["id"], f"message {v['message_index'] + 1}", v["evidence"]) for v in row["violations"] if v["severity"] == "fatal"]
        verdict = m.verdicts.get(dialogue_id)
        for a in verdict.judge_violations() if verdict else []:
            if SEVERITY[a.id] == "fatal":  # type: ignore[index]
                found.append((f"{a.id} (judge)", f"message {(a.message_index or 0) + 1}", a.reason or ""))
        if row["reason"] == "no_turns":
            found.append(("no turns", "whole chat", "the tested side said nothing"))
        rows += [(dialogue_id, *f) for f in found]
    if not rows:
        return None
    frame = pl.DataFrame(rows, schema=["Dialogue", "Reason", "Where", "Evidence"], orient="row")
    return plain_table(f"invalid-{m.run}-{m.judge}", f"Invalid cases: run {m.run}, {m.judge_label}", "", frame)


def failed_dialogues(m: Measured) -> PrintedTable | None:
    """Dialogues that could not be had, with the fault; None if there is none."""
    failures = _not_had(m)
    if not failures:
        return None
    rows = [
        (
            f["dialogue_id"], f["fault"], f.get("side") or "not known", f.get("system") or "not known",
            str(f["error"]).splitlines()[0][:200] if f["error"] else "",
        )
        for f in failures
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["Dialogue", "Fault", "Side", "System", "What the model client said"], orient="row")
    return plain_table(f"failed-{m.run}", f"Dialogues that could not be had: run {m.run}", "", frame)


def failures_by_box(verdicts: Mapping[str, Verdict], rubric: Rubric, *, valid: Iterable[str] | None = None) -> pl.DataFrame:
    """Checkboxes by how often they fail: box, question, failed, assessed, share; never assessed ones are left out.

    `valid`: ids of the dialogues to count (all if None).
    """
    wanted = set(verdicts if valid is None else valid)
    boxes = [b for key, v in verdicts.items() if key in wanted for b in v.boxes() if b.passed is not None]
    assessed, failed = Counter(b.id for b in boxes), Counter(b.id for b in boxes if b.passed is False)
    rows: list[tuple[Any, ...]] = [
        (b.id, b.question, failed[b.id], assessed[b.id], failed[b.id] / assessed[b.id]) for b in rubric.boxes() if assessed[b.id]
    ]
    schema = {"box": pl.String, "question": pl.String, "failed": pl.Int64, "assessed": pl.Int64, "share": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("share", descending=True, maintain_order=True)


def failures_table(m: Measured, *, most: int = 15) -> PrintedTable:
    """The checkboxes of the valid cases that fail most often."""
    valid = [key for key, d in m.dialogues.items() if m.case(d)["valid"]]
    frame = failures_by_box(m.verdicts, m.rubric, valid=valid).filter(pl.col("failed") > 0).head(most)
    printed = frame.select(
        Box="box", Question="question", Failed="failed", Assessed="assessed",
        Share=(100 * pl.col("share")).map_elements(lambda x: f"{x:.1f}%", return_dtype=pl.String),
    )  # fmt: skip
    return plain_table(
        f"boxes-{m.run}-{m.judge}", f"Where it fails most: run {m.run}, {m.judge_label}",
        f"At most {most} checkboxes with the highest failed share of the assessed ones, over the valid cases.", printed,
    )  # fmt: skip


def _not_had(m: Measured) -> list[Mapping[str, Any]]:
    """The failures, without those whose dialogue was had after all."""
    return [f for f in m.failures if f["dialogue_id"] not in m.dialogues]


def _breakers(m: Measured, constraint: str) -> set[str]:
    by_rules = {key for key, row in m.gate.items() if any(v["id"] == constraint for v in row["violations"])}
    return by_rules | {key for key, v in m.verdicts.items() if any(a.id == constraint for a in v.judge_violations())}


def _of(n: int, of: int) -> str:
    return f"{n} of {of}" if n else "not executed"


def _reason(reason: str) -> str:
    if reason.startswith("model_error:"):
        return f"the judge gave no answer ({reason.removeprefix('model_error:')})"
    return _REASONS.get(reason, reason)
