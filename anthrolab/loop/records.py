"""Failure records (paper section 4.5): what failed where, what was said around it, why, and how it may be mended."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from anthrolab.cards.scenario import Scenario
from anthrolab.errors import AnthrolabError
from anthrolab.files import write_atomic
from anthrolab.judging.materials import WINDOW
from anthrolab.judging.rubric import Rubric, Scope
from anthrolab.judging.verdict import RULES
from anthrolab.loop.filter import Filtered
from anthrolab.loop.folder import FAILURES
from anthrolab.loop.hints import NO_TURNS, Hints
from anthrolab.loop.rows import read_rows
from anthrolab.models.fence import inert
from anthrolab.runtime.dialogue import Dialogue, Record

Kind = Literal["checkbox", "gate", "judge_gate"]
"""A failed checkbox; a constraint of the gate broken as the rules say, or as the judge says."""

RECORDS = FAILURES
"""The file of a round's records."""

NOT_SENT = ("L0-04", NO_TURNS)
"""Failures without a message: what is at fault was never sent."""


class RecordsError(AnthrolabError):
    """A file of failure records that cannot be used."""


class FailureRecord(Record):
    """One failure of the evaluated role in one dialogue.

    id: `<dialogue_id>/<box>/<message_index or ->`. dimension: null for the gate. box: id of the checkbox or constraint.
    turn_index counts evaluated turns from 1, message_index messages from 0. text: the failed message, null for the whole
    dialogue and for what was never sent. context: the five messages before it (of the whole dialogue: its last five), one line each, with time and
    name. reason: the judge's, or the gate's evidence, as it is. suggestion: how it may be mended, in Chinese.
    """

    id: str
    dialogue_id: str
    binding: str | None = None
    scenario: str | None = None
    category: str | None = None
    evaluated_role: str
    sample: int = 0
    kind: Kind
    dimension: str | None = None
    box: str
    scope: Scope
    turn_index: int | None = None
    message_index: int | None = None
    text: str | None = None
    context: list[str] = Field(default=[])
    reason: str | None = None
    suggestion: str
    judge: str | None = None
    round: int | None = None

    def to_line(self) -> str:
        """The record as one JSON line, fields in declared order."""
        return self.model_dump_json()


def failure_records(
    filtered: Filtered, rubric: Rubric, hints: Hints, scenarios: Mapping[str, Scenario], round: int | None = None
) -> list[FailureRecord]:
    """Every failure of a dialogue that was not accepted: violations first, then checkboxes in the order of the turns.

    An accepted one has none. `scenarios`: cards by id, for the category. What fails twice under one id is one record, with both reasons.
    """
    result = filtered.filter_result
    if result.status == "accepted":
        return []
    dialogue, judge = filtered.bare(), result.judge
    made = [
        record_at(dialogue, "gate" if v.by == RULES else "judge_gate", v.id, v.message_index, v.evidence, rubric, hints, scenarios,
                  judge=v.by, round=round)
        for v in result.violations
    ]  # fmt: skip
    if not dialogue.turns():
        made.append(record_at(dialogue, "gate", NO_TURNS, None, result.why, rubric, hints, scenarios, judge=RULES, round=round))
    made += [
        record_at(dialogue, "checkbox", f.id, f.message_index, f.reason, rubric, hints, scenarios, judge=judge, round=round)
        for f in result.failed
    ]
    return once_each(made)


def record_at(
    dialogue: Dialogue, kind: Kind, box: str, message_index: int | None, reason: str | None, rubric: Rubric, hints: Hints,
    scenarios: Mapping[str, Scenario], *, judge: str | None, round: int | None = None,
) -> FailureRecord:  # fmt: skip
    """One failure of a dialogue as a record; `message_index` None: of the whole dialogue."""
    messages = dialogue.messages
    there = message_index is not None and 0 <= message_index < len(messages)
    end = message_index if there and message_index is not None else len(messages)
    text = messages[end].content if there and box not in NOT_SENT else None
    if there and box in NOT_SENT:
        end += 1  # the message before what was not sent
    elif message_index is not None and message_index < 0:
        end = 0
    turns = {position: number for number, position in enumerate(dialogue.turns(), 1)}
    scenario = scenarios.get(dialogue.scenario or "")
    dimension = rubric.dimension_of.get(box) if kind == "checkbox" else None
    return FailureRecord(
        id=f"{dialogue.dialogue_id}/{box}/{'-' if message_index is None else message_index}",
        dialogue_id=dialogue.dialogue_id, binding=dialogue.binding, scenario=dialogue.scenario,
        category=scenario.category if scenario else None, evaluated_role=dialogue.evaluated_role, sample=dialogue.sample,
        kind=kind, dimension=dimension.id if dimension else None, box=box, scope="dialogue" if message_index is None else "turn",
        turn_index=turns.get(message_index) if message_index is not None and text is not None else None,
        message_index=message_index, text=text, context=_lines(dialogue, max(0, end - WINDOW), end),
        reason=reason, suggestion=hints.of(box, rubric), judge=judge, round=round,
    )  # fmt: skip


def once_each(records: Iterable[FailureRecord]) -> list[FailureRecord]:
    """The records with every id once, in order; the reasons of those that share one stand in the first, each once."""
    groups: dict[str, list[FailureRecord]] = {}
    for record in records:
        groups.setdefault(record.id, []).append(record)

    def one(same: list[FailureRecord]) -> FailureRecord:
        reasons = dict.fromkeys(r.reason for r in same if r.reason)
        return same[0] if len(same) == 1 else same[0].model_copy(update={"reason": "；".join(reasons) or None})

    return [one(same) for same in groups.values()]


def write_records(path: Path, records: Iterable[FailureRecord]) -> None:
    """Write them, one a line; the file is replaced as a whole."""
    write_atomic(path, "".join(record.to_line() + "\n" for record in records))


def read_records(path: Path) -> list[FailureRecord]:
    """The records of a file; RecordsError names the line that is none."""
    return read_rows(path, FailureRecord, RecordsError, "remove the file and give the loop's command again")


def _lines(dialogue: Dialogue, first: int, end: int) -> list[str]:
    """Messages `first` up to before `end`, each on one line with nothing in it that acts."""
    names = {side: participant.name for side, participant in dialogue.speakers.items()}
    return [f"{m.at:%Y-%m-%d %H:%M:%S} {inert(names[m.speaker])}：{inert(m.content)}" for m in dialogue.messages[first:end]]
