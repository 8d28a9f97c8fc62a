"""A small judged run on disk, made by hand with the real cards, records, store and ledger, and no model."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from anthrolab.bench.cases import Case, select_cases
from anthrolab.bench.ledger import write_ledger
from anthrolab.bench.store import Run
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.files import content_hash
from anthrolab.judging.rubric import Checkbox, Rubric, load_rubric
from anthrolab.judging.scores import box_rows
from anthrolab.judging.verdict import BoxVerdict, TurnVerdict, Verdict
from anthrolab.runtime.dialogue import Ask, Decision, Dialogue, Draft, Guarded, Message, Participant, other

SAID = ("在呢在呢", "刚看到 手上有点事", "那你说咋整", "行吧 先这样")


def make_run(
    folder: Path,
    *,
    system: str = "tiny-model",
    judge: str = "rules",
    cases: int = 12,
    said: tuple[str, ...] = SAID,
    answers_all: bool = False,
    partner_breaks: bool = True,
    failed_side: str | None = None,
) -> Path:
    """A run of `cases` cases: the last one failed, the one before it is invalid (an exact repetition).

    In the valid ones the judge fails D1.3 at every second turn and E3.1; it leaves checkboxes without a rule
    unassessed unless `answers_all`. `said`: what the tested side says, turn by turn. At the end the tested side decides
    to be silent, and the partner's reply breaks its contract if `partner_breaks` (else it is silent too). `failed_side`:
    whose endpoint the failed case names; None for a row that does not say.
    """
    library, rubric, run = load_library(default_cards_dir()), load_rubric(), Run(folder)
    planned = select_cases(library, cases)
    done = planned[:-1]
    dialogues = {c.id: _dialogue(f"{run.name}-{c.id}-0", c, library, said, partner_breaks) for c in done}
    gate = {c.id: _gate_row(dialogues[c.id], broken=c is done[-1]) for c in done}
    verdicts = {c.id: _verdict(dialogues[c.id], rubric, judge, answers_all) for c in done[:-1]}
    run.settle("dialogues.jsonl", [d.to_line() for d in dialogues.values()])
    run.settle("gate.jsonl", [json.dumps(row, ensure_ascii=False) for row in gate.values()])
    run.settle("verdicts.jsonl", [v.to_line() for v in verdicts.values()])
    fault = {"dialogue_id": f"{run.name}-{planned[-1].id}-0", "fault": "unreachable", "error": "no answer from the server"}
    if failed_side is not None:
        fault |= {"side": failed_side, "system": "tiny-partner" if failed_side == "partner" else system}
    run.settle("failures.jsonl", [json.dumps(fault)])
    _write_ledger(run, system, judge, planned, gate, verdicts, rubric)
    counts = {"planned": len(planned), "done": len(done)}
    run.write_manifest(
        {
            "run": run.name,
            "settings": {
                "system": {"name": system, "endpoint": "http://someone:secret@localhost:1/v1", "policy": "transcript"},
                "partner": {"name": "tiny-partner", "policy": "transcript"},
                "limits": {"max_messages": 24, "max_consecutive": 4, "max_delay_s": 600, "window": 12},
                "seed": 0,
                "samples": 1,
                "cases": [c.id for c in planned],
            },
            "hashes": {"cards": library.content_hash(), "prompts": "0" * 16},
            "code": ["1" * 16],
            "versions": [{"python": "3.11.0", "anthrolab": "0.1.0"}],
            "counts": {**counts, "failed": 1, "missing": 0},
            "judges": {
                judge: {
                    "identity": "2" * 16, "rubric": rubric.hash, "rubric_name": rubric.name,
                    "boxes": len(rubric.boxes()), "gate": content_hash(list(gate.values())), "counts": counts,
                }
            },
        }
    )  # fmt: skip
    return folder


def _dialogue(
    dialogue_id: str, case: Case, library: Library, said: tuple[str, ...], partner_breaks: bool
) -> Dialogue:
    binding = library.bindings[case.binding]
    scenario = library.scenarios[binding.scenario]
    people = {"a": library.personas[binding.persona_a], "b": library.personas[binding.persona_b]}
    tested, start = case.role, scenario.start
    messages = [Message(speaker=scenario.opener.speaker, content=scenario.opener.content, at=start, opener=True)]
    for i, text in enumerate(said):
        at = start + timedelta(seconds=40 * i + 20)
        messages.append(Message(speaker=tested, content=text, at=at, opener=False))
        reply = Message(speaker=other(tested), content=f"嗯 第{i + 1}句", at=at + timedelta(seconds=15), opener=False)
        messages.append(reply)
    late = messages[-1].at + timedelta(seconds=5)
    silent = Decision(content="", at=late, end=True)
    return Dialogue(
        dialogue_id=dialogue_id,
        binding=binding.id,
        scenario=scenario.id,
        evaluated_role=tested,
        speakers={
            "a": Participant(name=people["a"].name, persona=binding.persona_a),
            "b": Participant(name=people["b"].name, persona=binding.persona_b),
        },
        start=start,
        horizon_minutes=scenario.horizon_minutes,
        stop="closed",
        messages=messages,
        asks=[
            Ask(speaker=tested, now=late, previous_draft=Draft(content="算了不发了", at=late), decision=silent),
            Ask(speaker=other(tested), now=late, error="no line in the reply")
            if partner_breaks
            else Ask(speaker=other(tested), now=late, decision=silent),
        ],
        guards=[Guarded(speaker=tested, content=said[0], guard="self_repetition", at=messages[2].at + timedelta(seconds=1))],
    )


def _gate_row(dialogue: Dialogue, *, broken: bool) -> dict[str, Any]:
    own = {"id": "L0-05", "severity": "fatal", "message_index": dialogue.turns()[1], "evidence": "equals message 2"}
    return {
        "dialogue_id": dialogue.dialogue_id,
        "valid": not broken,
        "reason": "fatal" if broken else None,
        "violations": [own] if broken else [],
        "partner_violations": [],
        "executed": ["L0-01", "L0-02", "L0-03", "L0-04", "L0-05", "L0-06", "L0-08"],
    }


def _verdict(dialogue: Dialogue, rubric: Rubric, judge: str, answers_all: bool) -> Verdict:
    def box(b: Checkbox, failed: bool) -> BoxVerdict:
        if b.rule is None and not answers_all:
            return BoxVerdict(id=b.id, unassessed="no_rule")
        return BoxVerdict(id=b.id, passed=not failed, reason="“首先”是作文腔" if failed else None)

    turns = [
        TurnVerdict(
            turn_index=number,
            message_index=position,
            boxes=[box(b, b.id == "D1.3" and number % 2 == 0) for b in rubric.boxes("turn")],
        )
        for number, position in enumerate(dialogue.turns(), 1)
    ]
    whole = [box(b, b.id == _first_global_rule(rubric)) for b in rubric.boxes("dialogue")]
    return Verdict(
        dialogue_id=dialogue.dialogue_id, judge=judge, judge_identity="2" * 16, rubric=rubric.hash,
        turns=turns, dialogue=whole, dialogue_hash=content_hash(dialogue.to_line()),
    )  # fmt: skip


def _first_global_rule(rubric: Rubric) -> str:
    return next(b.id for b in rubric.boxes("dialogue") if b.rule is not None)


def _write_ledger(
    run: Run, system: str, judge: str, planned: list[Case], gate: dict[str, dict[str, Any]],
    verdicts: dict[str, Verdict], rubric: Rubric,
) -> None:  # fmt: skip
    import polars as pl

    cases = [
        {
            "system": system, "case_id": c.id, "sample": 0, "binding": c.binding, "role": c.role, "category": c.category,
            "valid": gate[c.id]["valid"] if c.id in gate else None,
        }
        for c in planned
    ]  # fmt: skip
    boxes = [
        {"system": system, "case_id": key, "sample": 0, **row._asdict()}
        for key, verdict in verdicts.items()
        for row in box_rows(verdict, rubric)
    ]
    write_ledger(run.ledger(judge), pl.DataFrame(cases), pl.DataFrame(boxes, infer_schema_length=None))
