"""A small loop folder made by hand, with the real records, filter, skill files and A/B, and no model."""

import json
from pathlib import Path
from typing import Any

from anthrolab.bench.cases import select_cases
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.cards.skill import SKILLS, SkillName, default_skills_dir, load_skills
from anthrolab.files import append_line, content_hash, write_atomic
from anthrolab.loop.ab import SkillTest
from anthrolab.loop.attribution import attribute, failures_of
from anthrolab.loop.evolution import evidence_of
from anthrolab.loop.folder import Loop, LoopSettings
from anthrolab.loop.paired import Outcome, compare, sentences, verdict_of
from anthrolab.loop.records import RECORDS, FailureRecord, write_records
from anthrolab.loop.skill_files import Evolution, Rollback, begin_skills, keep_evolution, mend_skills, newest_pins

HELD_BACK = ["b07", "b08"]
STATUSES = ({"accepted": 4, "rejected": 6, "invalid": 1, "undecided": 1}, {"accepted": 6, "rejected": 5, "invalid": 1, "undecided": 0},
            {"accepted": 7, "rejected": 5, "invalid": 0, "undecided": 0})  # fmt: skip
"""Dialogues of each round by status."""

FAILING = ({"D1.3": 5, "D2.1": 3, "E4.1": 4, "L0-05": 1}, {"D1.3": 1, "E4.1": 5, "E5.4": 2, "D3.2": 1}, {"E4.1": 2, "D3.2": 3})
"""Failure records of each round by checkbox or constraint."""

CHAT = "首先我们要明确一点，其次再谈别的"


def record(box: str, number: int = 0, round: int = 1, **changes: Any) -> FailureRecord:
    """A failure record; `changes` replace fields."""
    values: dict[str, Any] = {
        "id": f"t-r{round}-b01-a-{number}/{box}/2", "dialogue_id": f"t-r{round}-b01-a-{number}", "binding": "b01", "scenario": "s01",
        "category": "Sport", "evaluated_role": "a", "sample": number, "kind": "gate" if box.startswith("L0") else "checkbox",
        "dimension": None if box.startswith("L0") else box.split(".")[0], "box": box, "scope": "turn", "turn_index": 1,
        "message_index": 2, "text": CHAT, "context": ["2026-03-06 20:31:00 周子航：周末有空没", "2026-03-06 20:31:20 林晓雯：有啊 咋了"],
        "reason": "“首先”是作文腔", "suggestion": "删掉首先、其次，直接说", "judge": "oracle", "round": round,
    }  # fmt: skip
    return FailureRecord.model_validate({**values, **changes})


def begin_loop(path: Path, **changes: Any) -> Loop:
    """A loop without rounds, with the skills that come with anthrolab; `changes` replace settings."""
    cases = [c.id for c in select_cases(load_library(default_cards_dir()), 12)]
    loop = Loop(path)
    loop.begin(LoopSettings(**{"system": "toy", "judge": "oracle", "writer": "pen", "cases": cases, "held_back": HELD_BACK, **changes}))
    begin_skills(loop.skills_dir, load_skills(default_skills_dir()))
    return loop


def add_failures(loop: Loop, number: int, counts: dict[str, int], **changes: Any) -> list[FailureRecord]:
    """The failure records of a round, each of a dialogue of its own."""
    rows = [record(box, i, number, **changes) for box, count in counts.items() for i in range(count)]
    write_records(loop.round_dir(number) / RECORDS, rows)
    return rows


def make_loop(path: Path, *, rounds: int = 3, evolve: bool = True, ab: bool = True, rollback: bool = True) -> Loop:
    """A loop of some rounds. Each rewrites the skill that most failures belong to (if `evolve`), the second one's rewrite is
    refused; the first has an A/B (if `ab`); at the end the newest version of the first skill is rolled back (if `rollback`)."""
    loop = begin_loop(path)
    for number in range(1, rounds + 1):
        rows = add_failures(loop, number, FAILING[number - 1])
        _statuses(loop, number)
        if evolve:
            _evolve(loop, number, rows)
    if evolve and ab:
        _ab(loop)
    if evolve and rollback:
        old = load_skills(loop.skills_dir, {"message_style": "v1"})[0]
        row = Rollback(
            skill="message_style", version="v3", restored="v1", replaced="v2", text=old.text, hash=content_hash(old.text),
            reason="A/B 说不清 <b>先退回去</b>",
        )  # fmt: skip
        append_line(loop.path / "rollbacks.jsonl", row.model_dump_json())
        mend_skills(loop)
    return loop


def rewritten(old: str, number: int) -> str:
    """A new text of a skill: a line changed, a line added, one taken away."""
    lines = old.split("\n")
    lines[3] = lines[3].replace("也行", "都行") + "别端着。"
    return "\n".join([*lines[:-1], f"- 第{number}轮添的：说一件手边的小事，一句就够，别绕。"])


def _evolve(loop: Loop, number: int, rows: list[FailureRecord]) -> None:
    found = attribute(rows)
    assert found.target is not None
    old = next(s for s in load_skills(loop.skills_dir) if s.name == found.target)
    own: dict[str, Any] = {
        "round": number, "skills": newest_pins(loop), "counts": dict(found.counts), "unattributed": found.unattributed,
        "buffer": len(rows), "skill": old.name, "before": old.version, "before_hash": content_hash(old.text),
        "evidence": evidence_of(failures_of(old.name, rows)), "writer": "pen", "writer_identity": "http://pen", "call": "0" * 16,
    }  # fmt: skip
    if number == 2:
        own |= {"outcome": "refused", "error": "text has 2210 characters; at least 294 and at most 1500"}
    else:
        text = rewritten(old.text, number)
        after = f"v{int(old.version[1:]) + 1}"
        own |= {"outcome": "rewritten", "after": after, "text": text, "after_hash": content_hash(text), "changes": ["把<短句>说明白", "添了一条"]}
    keep_evolution(loop, Evolution.model_validate(own))


def _statuses(loop: Loop, number: int) -> None:
    """What the readers of a round's counts need of filtered.jsonl and repairs.jsonl."""
    counts = STATUSES[number - 1]
    rows = [{"binding": "b01", "filter_result": {"status": s}} for s, n in counts.items() for i in range(n)]
    rows += [{"binding": "b07", "filter_result": {"status": s}} for s in ["accepted"] * number + ["rejected"] * (4 - number)]
    write_atomic(loop.round_dir(number) / "filtered.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
    repairs = [{"dialogue_id": f"d{i}", "outcome": "repaired" if i < number else "failed"} for i in range(counts["rejected"])]
    write_atomic(loop.round_dir(number) / "repairs.jsonl", "".join(json.dumps(r) + "\n" for r in repairs))


def _ab(loop: Loop) -> None:
    gains = [4.0, 6.5, 3.0, 8.0, -1.0, 5.5, 2.5, 7.0]
    arms = [
        [Outcome(f"b{i:02}-{role}", f"b{i:02}", {"score": 80 + add * gain, "accepted": float(add), "valid": 1.0, "D1": 0.8 + add * 0.01 * gain})
         for i, gain in enumerate(gains) for role in "ab"]
        for add in (0, 1)
    ]  # fmt: skip
    quantities = compare(arms[0], arms[1], ["D1", "D2"], seed=0)
    counts = {arm: {"planned": 16, "accepted": n, "rejected": 16 - n, "invalid": 0, "undecided": 0} for arm, n in (("before", 0), ("after", 16))}
    verdict = verdict_of(quantities[0])
    result = SkillTest(
        round=1, skill="message_style", versions=["v1", "v2"], system="toy", judge="oracle", judge_identity="2" * 16,
        cases=[o.case_id for o in arms[0]], samples=1, seed=0, counts=counts, quantities=quantities, verdict=verdict,
        said=sentences(quantities, verdict, counts),
    )  # fmt: skip
    write_atomic(loop.ab_dir(1) / "result.json", json.dumps(result.model_dump(mode="json"), ensure_ascii=False))


def texts(loop: Loop) -> dict[tuple[SkillName, str], str]:
    """Every file of the loop's skills, by skill and version."""
    return {(name, p.stem): p.read_text("utf-8") for name in SKILLS for p in sorted((loop.skills_dir / name).iterdir())}
