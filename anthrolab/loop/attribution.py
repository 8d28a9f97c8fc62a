"""Which skill is rewritten: majority attribution over the recent failures (paper section 4.5). Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from anthrolab.cards.skill import SKILLS, SkillName
from anthrolab.loop.records import FailureRecord

SKILL_OF_DIMENSION: Mapping[str, SkillName] = {
    "D1": "message_style", "D2": "message_style", "D5": "message_style",
    "D3": "human_like_reply", "D4": "human_like_reply",
    "E1": "human_like_reply", "E2": "human_like_reply", "E3": "human_like_reply",
    "E4": "topic_progression", "E5": "topic_progression",
}  # fmt: skip
"""The map mu of the paper: naturalness and timing to the style of messages, proactivity and the dialogue's arc to topic
progression, persona, boundary, context, scene, social and emotional fit to the human-like reply. A dimension of another
rubric that does not stand here belongs to no skill."""

SKILL_OF_CONSTRAINT: Mapping[str, SkillName] = {
    "L0-01": "human_like_reply", "L0-02": "human_like_reply", "L0-03": "human_like_reply", "L0-05": "topic_progression",
    "L0-06": "human_like_reply", "L0-07": "human_like_reply", "L0-08": "human_like_reply", "L0-10": "human_like_reply",
}  # fmt: skip
"""Ours: the paper's map knows dimensions only. Broken constraints of the gate that a rule on how to chat can mend. Not
L0-04, since the output contract stands elsewhere in the prompt, and not L0-09: harm is not a matter of style."""

ROUNDS = 1
"""Rounds that the buffer reaches back. Failures of earlier rounds were made under earlier texts of the skills: they say
nothing of what the present text lacks."""

LIMIT = 400
"""The most records in the buffer."""


@dataclass(frozen=True)
class Attribution:
    """target: k*, the skill to rewrite; None if no failure belongs to any. counts: failures of each skill, all three;
    unattributed: failures that no skill can mend."""

    target: SkillName | None
    counts: Mapping[SkillName, int]
    unattributed: int


def skill_of(record: FailureRecord) -> SkillName | None:
    """mu: the skill that a failure belongs to; None if no skill can mend it."""
    if record.dimension is not None:
        return SKILL_OF_DIMENSION.get(record.dimension)
    return SKILL_OF_CONSTRAINT.get(record.box)


def recent_failures(
    records: Iterable[FailureRecord], round: int, *, rounds: int = ROUNDS, limit: int = LIMIT, held_back: Collection[str] = ()
) -> list[FailureRecord]:
    """The buffer F_r after a round: the records of the last `rounds` rounds, `round` included, of which the newest `limit`
    (the later in the order given the newer, and those of later rounds newer still), oldest first.

    Records of bindings that are held back are left out: what measures a skill must not have taught it.
    """
    own = [r for r in records if r.round is not None and round - rounds < r.round <= round and r.binding not in held_back]
    own.sort(key=lambda r: r.round or 0)
    return own[max(0, len(own) - limit) :]


def attribute(buffer: Sequence[FailureRecord]) -> Attribution:
    """The target skill by majority attribution:

        k* = argmax over k of the sum over (d, .) in F_r of [mu(d) = k]

    Of equal counts the first in the order of SKILLS wins. Every record counts once, so a dimension that is judged at
    every turn weighs more than one that is judged once a dialogue; that is the paper's formula.
    """
    found = Counter(skill_of(record) for record in buffer)
    counts = {skill: found[skill] for skill in SKILLS}
    most = max(counts.values())
    target = next((skill for skill in SKILLS if counts[skill] == most), None) if most else None
    return Attribution(target, counts, found[None])


def failures_of(skill: SkillName, buffer: Iterable[FailureRecord]) -> list[FailureRecord]:
    """The part of the buffer that belongs to a skill."""
    return [record for record in buffer if skill_of(record) == skill]


def by_box(failures: Sequence[FailureRecord]) -> list[tuple[str, list[FailureRecord]]]:
    """The failures of each checkbox or constraint, the most frequent first."""
    groups: dict[str, list[FailureRecord]] = {}
    for record in failures:
        groups.setdefault(record.box, []).append(record)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))


def examples(failures: Sequence[FailureRecord], most: int) -> list[FailureRecord]:
    """At most so many of the failures, each of another dialogue where there are so many dialogues."""
    first: dict[str, FailureRecord] = {}
    for record in failures:
        first.setdefault(record.dialogue_id, record)
    shown = {record.id for record in first.values()}
    return [*first.values(), *(record for record in failures if record.id not in shown)][:most]
