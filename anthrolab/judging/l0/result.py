"""What the gate says about one dialogue."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

ConstraintId = Literal["L0-01", "L0-02", "L0-03", "L0-04", "L0-05", "L0-06", "L0-07", "L0-08", "L0-09", "L0-10"]
Severity = Literal["fatal", "major"]

SEVERITY: dict[ConstraintId, Severity] = {
    "L0-01": "fatal",  # AI identity exposure
    "L0-02": "fatal",  # text-message medium
    "L0-03": "fatal",  # non-co-presence
    "L0-04": "fatal",  # output contract
    "L0-05": "fatal",  # hard repetition
    "L0-06": "fatal",  # persona hard facts
    "L0-07": "major",  # ability and permission
    "L0-08": "major",  # time logic
    "L0-09": "fatal",  # safety and ethics
    "L0-10": "major",  # stale memory use
}
"""The ten constraints and their severities (paper Table 3)."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken constraint. `message_index` counts from 0 into the dialogue's messages; for L0-04 it is the last
    message that the ask could see (-1: none). `evidence` is the offending span, or says what happened."""

    id: ConstraintId
    message_index: int
    evidence: str

    @property
    def severity(self) -> Severity:
        """Fatal makes the case invalid; major is kept for diagnosis."""
        return SEVERITY[self.id]

    def as_row(self) -> dict[str, str | int]:
        """The violation as printed by `anthrolab l0`."""
        return {
            "id": self.id,
            "severity": self.severity,
            "message_index": self.message_index,
            "evidence": self.evidence,
        }


@dataclass(frozen=True, slots=True)
class L0Result:
    """The verdict on one dialogue.

    `valid` is False if the evaluated role broke a fatal constraint (`reason` "fatal") or said nothing ("no_turns").
    `violations` are the evaluated role's, `partner_violations` the other side's, each ordered by message_index;
    the partner's never decide validity. `executed` lists the constraints that ran on the evaluated role.
    """

    valid: bool
    reason: Literal["fatal", "no_turns"] | None
    violations: tuple[Violation, ...]
    partner_violations: tuple[Violation, ...]
    executed: tuple[ConstraintId, ...]

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "L0Result":
        """The verdict again from such a line."""
        own, theirs = (
            tuple(Violation(v["id"], v["message_index"], v["evidence"]) for v in row[key])
            for key in ("violations", "partner_violations")
        )
        return cls(row["valid"], row["reason"], own, theirs, tuple(row["executed"]))

    def as_row(self, dialogue_id: str) -> dict[str, object]:
        """The verdict as one line of `anthrolab l0`."""
        return {
            "dialogue_id": dialogue_id,
            "valid": self.valid,
            "reason": self.reason,
            "violations": [v.as_row() for v in self.violations],
            "partner_violations": [v.as_row() for v in self.partner_violations],
            "executed": list(self.executed),
        }
