"""What a check of the JSON contract found: a row for every reply, and the shares (`contract.py` asks)."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from anthrolab.intervals import Rate
from anthrolab.loop.sft.samples import Sample

_LABEL_TIME = re.compile(r"timestamp \S+ clipped")


@dataclass(frozen=True)
class Row:
    """What one sample's reply was. `error`: why it is no decision, `recovered`: what was bent back or clipped to read it;
    `silent`: a valid decision to send nothing (False where there is none)."""

    id: str
    valid: bool
    error: str | None
    recovered: str | None
    silent: bool
    text: str


@dataclass(frozen=True)
class ContractResult:
    """The shares of a check.

    samples: how many were to be asked; valid: of those answered; strict: valid with nothing bent back or clipped, of those
    answered; silent: of the valid ones; silent_in_data: of the decisions in the file on the same samples as `valid`.
    errors: broken replies by kind; mended: valid replies by label; faults: samples without an answer, by fault of the endpoint.
    """

    system: str
    structured: bool
    samples: int
    valid: Rate
    strict: Rate
    silent: Rate
    silent_in_data: Rate
    errors: dict[str, int]
    mended: dict[str, int]
    faults: dict[str, int]

    @property
    def missing(self) -> int:
        """Samples that still have no answer; the same command asks for them again."""
        return self.samples - self.valid.of


def kind_of(error: str) -> str:
    """A contract error without what it quotes, so that errors of one kind count as one.

    >>> kind_of("role is '乙', not '甲'"), kind_of("response.end is 'false', not true or false")
    ('role is not the own name', 'response.end is not true or false')
    """
    if error.startswith("role is ") and ", not " in error:
        return "role is not the own name"
    error = re.sub(r" is .*, not ", " is not ", error, flags=re.DOTALL)
    error = re.sub(r" gives .* twice ", " gives a key twice ", error, flags=re.DOTALL)
    return error if error.startswith("no reply (") else re.sub(r" \(.*\)$", "", error, flags=re.DOTALL)


def result_of(
    system: str, structured: bool, samples: Sequence[Sample], rows: Sequence[Row], faults: Iterable[str]
) -> ContractResult:
    """The shares of the samples that have a row; `faults` are those of the others that were tried."""
    silent_of = {s.id: s.silent for s in samples}
    valid = [row for row in rows if row.valid]
    return ContractResult(
        system=system,
        structured=structured,
        samples=len(samples),
        valid=Rate(len(valid), len(rows)),
        strict=Rate(sum(row.recovered is None for row in valid), len(rows)),
        silent=Rate(sum(row.silent for row in valid), len(valid)),
        silent_in_data=Rate(sum(silent_of[row.id] for row in valid), len(valid)),
        errors=_counts(kind_of(row.error) for row in rows if row.error is not None),
        mended=_counts(_LABEL_TIME.sub("timestamp clipped", part) for row in valid if row.recovered for part in row.recovered.split("; ")),
        faults=_counts(faults),
    )


def _counts(kinds: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(kinds).items(), key=lambda pair: (-pair[1], pair[0])))


def lines_of(result: ContractResult) -> list[str]:
    """A result in a few lines to print."""
    how = "with structured output" if result.structured else "by the prompt alone"
    lines = [
        f"{result.system}, {how}: {_said(result.valid)} keep the contract",
        f"  as it came, with nothing bent back or clipped: {_said(result.strict)}",
        f"  silent: {_said(result.silent)} of the valid ones; in the data, on the same asks: {_said(result.silent_in_data)}",
    ]
    for what, counts in (("broken", result.errors), ("mended", result.mended), ("no answer", result.faults)):
        lines += [f"  {what}: {number} {kind}" for kind, number in counts.items()]
    if result.missing:
        lines.append(f"  {result.missing} of {result.samples} samples have no answer yet and count in no share; give the same command again")
    return lines


def _said(rate: Rate) -> str:
    if rate.value is None or rate.interval is None:
        return "0 of 0"
    low, high = rate.interval.low, rate.interval.high
    return f"{rate.part} of {rate.of} ({rate.value:.1%}, 95% interval {low:.1%} to {high:.1%})"
