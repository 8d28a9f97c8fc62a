"""What a judge gets right and wrong on labelled dialogues.

A positive is a violation or a failed checkbox. What counts once (a `Unit`):
- a turn's checkbox that must fail: that box of that turn;
- a dialogue's checkbox, or a constraint, that must fail: that id of that dialogue; a constraint is found where a
  violation is reported at a labelled message;
- an id that must fail nowhere (`holds`): that id of that dialogue. It is one false alarm if any turn or message fails it.
Whatever no label speaks of is not counted.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from anthrolab.errors import AnthrolabError
from anthrolab.intervals import Rate
from anthrolab.judging.l0.result import SEVERITY, L0Result
from anthrolab.judging.labelled.items import UNTOUCHED, Labelled
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.scores import case_pass
from anthrolab.judging.verdict import Verdict

Source = Literal["gate", "judge", "both"]
"""Whose answer: the rules of the L0 gate, the judge, or a constraint that either may find violated (L0-06, L0-08)."""


class LabelError(AnthrolabError):
    """A label that does not fit the dialogue or the rubric."""


@dataclass(frozen=True)
class Unit:
    """One labelled thing and what was said of it.

    failed: the failure was found (of a positive), or alleged (of what holds); None where there is no answer.
    elsewhere: not found here, but alleged in another turn or message of the dialogue.
    message: where a positive stands (from 0); None for what has no one place.
    """

    item: str
    id: str
    source: Source
    positive: bool
    failed: bool | None
    elsewhere: bool = False
    message: int | None = None


@dataclass(frozen=True)
class Measure:
    """One id as one source answered it.

    positives = found + missed + unanswered; `elsewhere` is the part of the last two that was alleged in another turn
    or message. held: dialogues in which the id must not fail; of these false_alarms and held_unanswered.
    asked, answered: all answers asked for in the labelled dialogues, one a turn for a turn's checkbox.
    """

    id: str
    source: Source
    found: int
    missed: int
    unanswered: int
    elsewhere: int
    held: int
    false_alarms: int
    held_unanswered: int
    asked: int
    answered: int

    @property
    def positives(self) -> int:
        """How many failures there were to find."""
        return self.found + self.missed + self.unanswered

    @property
    def recall(self) -> Rate:
        """Failures found, of all labelled ones: an unanswered one is not found."""
        return Rate(self.found, self.positives)

    @property
    def precision(self) -> Rate:
        """Failures found, of these and the false alarms. It depends on the labelled set's mix of both."""
        return Rate(self.found, self.found + self.false_alarms)

    @property
    def false_alarm_rate(self) -> Rate:
        """Dialogues with a false alarm, of those in which the id holds."""
        return Rate(self.false_alarms, self.held)

    @property
    def coverage(self) -> Rate:
        """Answers given, of those asked for."""
        return Rate(self.answered, self.asked)


def units(
    items: Sequence[Labelled], verdicts: Mapping[str, Verdict], gates: Mapping[str, L0Result], rubric: Rubric
) -> list[Unit]:
    """All units of the items, by what verdicts and gate results (by item id; either may lack some) say of them.

    LabelError for a label with an id or a turn that there is not.
    """
    return [unit for item in items for unit in _units(item, verdicts.get(item.id), gates.get(item.id), rubric)]


def measures(
    found: Iterable[Unit], verdicts: Mapping[str, Verdict], gates: Mapping[str, L0Result], rubric: Rubric
) -> list[Measure]:
    """One measure per id and source that was asked, constraints first, then checkboxes in the rubric's order."""
    asked = _asked(verdicts, gates)
    grouped: dict[tuple[str, Source], list[Unit]] = defaultdict(list)
    for unit in found:
        grouped[unit.id, unit.source].append(unit)
    order = [(i, s) for i in (*SEVERITY, *(b.id for b in rubric.boxes())) for s in _SOURCES]
    return [_measure(i, s, grouped[i, s], asked[i, s]) for i, s in order if asked[i, s].of or grouped[i, s]]


def answered_ids(measured: Iterable[Measure]) -> set[str]:
    """Ids that the judge itself answers at least once: what can be asked about its recall by place and length."""
    return {m.id for m in measured if m.source == "judge" and m.answered}


def strict_outcome(verdict: Verdict) -> bool | None:
    """What strict ACC takes from a verdict: every assessed checkbox passed, and the judge found nothing fatal."""
    fatal = any(SEVERITY[a.id] == "fatal" for a in verdict.judge_violations())  # type: ignore[index]
    return False if fatal else case_pass(verdict)


def gold_passed(
    items: Iterable[Labelled], verdicts: Mapping[str, Verdict], gates: Mapping[str, L0Result]
) -> Rate:
    """Untouched gold dialogues that gate and judge pass strictly, of those that were judged."""
    judged = [i.id for i in items if i.edit == UNTOUCHED and i.id in verdicts]
    passed = [i for i in judged if gates[i].valid and strict_outcome(verdicts[i])]
    return Rate(len(passed), len(judged))


_SOURCES: tuple[Source, ...] = ("gate", "judge", "both")


def _units(item: Labelled, verdict: Verdict | None, gate: L0Result | None, rubric: Rubric) -> Iterator[Unit]:
    boxes = _answers(verdict) if verdict else defaultdict(dict)
    constraints = dict(_constraints(verdict, gate))
    turns = {t.turn_index: t.message_index for t in verdict.turns} if verdict else {}
    for i in {f.id: None for f in item.fails}:
        labels = [f for f in item.fails if f.id == i]
        if i in SEVERITY:
            wanted = {f.message for f in labels}
            for source in _SOURCES:
                if (i, source) in constraints:
                    yield _constraint(item.id, i, source, wanted, constraints[i, source])
        elif i not in rubric.dimension_of:
            raise _unknown(item, i, rubric)
        elif verdict and rubric.dimension_of[i].scope == "dialogue":
            yield Unit(item.id, i, "judge", True, boxes[i].get(None))
        elif verdict:
            for label in labels:
                if label.turn not in turns:
                    raise LabelError(f"{item.id}: {i}: turn {label.turn}: the dialogue has turns 1 to {len(turns)}; mend the label")
                alleged = boxes[i][label.turn]
                elsewhere = not alleged and any(boxes[i].values())
                yield Unit(item.id, i, "judge", True, alleged, elsewhere, turns[label.turn])
    for i in item.holds:
        if i in SEVERITY:
            for source in _SOURCES:
                if (i, source) in constraints:
                    messages, answered = constraints[i, source]
                    yield Unit(item.id, i, source, False, bool(messages) if messages or answered else None)
        elif i not in rubric.dimension_of:
            raise _unknown(item, i, rubric)
        elif verdict:
            yield Unit(item.id, i, "judge", False, _any(boxes[i].values()))


def _constraint(
    item: str, i: str, source: Source, wanted: set[int | None], said: tuple[list[int], bool]
) -> Unit:
    messages, answered = said
    found = bool(messages) and (None in wanted or not wanted.isdisjoint(messages))
    place = next(iter(wanted)) if len(wanted) == 1 else None
    return Unit(item, i, source, True, True if found else False if answered else None, bool(messages) and not found, place)


def _answers(verdict: Verdict) -> dict[str, dict[int | None, bool | None]]:
    """Box id -> turn (None: the dialogue) -> failed."""
    answers: dict[str, dict[int | None, bool | None]] = defaultdict(dict)
    for turn in verdict.turns:
        for box in turn.boxes:
            answers[box.id][turn.turn_index] = None if box.passed is None else not box.passed
    for box in verdict.dialogue:
        answers[box.id][None] = None if box.passed is None else not box.passed
    return answers


def _constraints(verdict: Verdict | None, gate: L0Result | None) -> Iterator[tuple[tuple[str, Source], tuple[list[int], bool]]]:
    """(id, source) -> messages of the evaluated role that are said to violate it, and whether there is an answer."""
    by_gate = {i: [v.message_index for v in gate.violations if v.id == i] for i in SEVERITY} if gate else {}
    executed = set(gate.executed) if gate else set()
    for i, messages in by_gate.items():
        yield (i, "gate"), (messages, i in executed)
    for answer in verdict.l0 if verdict else []:
        said = [] if answer.message_index is None else [answer.message_index]
        yield (answer.id, "judge"), (said, answer.violated is not None)
        if answer.id in executed:
            yield (answer.id, "both"), ([*by_gate[answer.id], *said], answer.violated is not None)


def _any(answers: Iterable[bool | None]) -> bool | None:
    """True if one is True, None if there is none or one is unknown, else False."""
    said = list(answers)
    return True if True in said else None if None in said or not said else False


def _asked(verdicts: Mapping[str, Verdict], gates: Mapping[str, L0Result]) -> dict[tuple[str, Source], Rate]:
    asked: dict[tuple[str, Source], Rate] = defaultdict(lambda: Rate(0, 0))
    for verdict in verdicts.values():
        for box in verdict.boxes():
            asked[box.id, "judge"] += Rate(box.passed is not None, 1)
    for key in {**verdicts, **gates}:
        for place, (_, answered) in _constraints(verdicts.get(key), gates.get(key)):
            asked[place] += Rate(answered, 1)
    return asked


def _measure(i: str, source: Source, labelled: Sequence[Unit], asked: Rate) -> Measure:
    positives = [u for u in labelled if u.positive]
    holds = [u for u in labelled if not u.positive]
    return Measure(
        i,
        source,
        found=sum(u.failed is True for u in positives),
        missed=sum(u.failed is False for u in positives),
        unanswered=sum(u.failed is None for u in positives),
        elsewhere=sum(u.elsewhere for u in positives),
        held=len(holds),
        false_alarms=sum(u.failed is True for u in holds),
        held_unanswered=sum(u.failed is None for u in holds),
        asked=asked.of,
        answered=asked.part,
    )


def _unknown(item: Labelled, i: str, rubric: Rubric) -> LabelError:
    return LabelError(f"{item.id}: {i}: is neither a constraint nor a checkbox of the rubric {rubric.name}; mend the label")
