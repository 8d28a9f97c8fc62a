"""What the doctor found, as text for a terminal: the checks of a machine, the probe of an endpoint."""

import json
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anthrolab.models.doctor.advice import Advice, advise, thinks, turning_ways
from anthrolab.models.doctor.findings import MEANINGS, NO_REPLY, NOT_SENT, OPEN, Finding, Outcome, find
from anthrolab.models.doctor.machine import Check
from anthrolab.models.structured import RUNGS
from anthrolab.models.systems import System

MARGIN = "    "
"""Before a line of settings."""


def terminal_width() -> int:
    """Columns of the terminal, from 60 to 100; 100 where there is none."""
    return min(100, max(60, shutil.get_terminal_size((100, 24)).columns))


def check_lines(checks: Sequence[Check]) -> Iterator[str]:
    """One line a check, and its fix below it; as wide as they are."""
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        yield f"{check.status:<4}  {check.name:<{width}}  {check.detail}"
        if check.fix:
            yield f"{'':<4}  {'':<{width}}  -> {check.fix}"


def probe_lines(system: System, found: Sequence[Finding], width: int | None = None) -> Iterator[str]:
    """What a probe of the system found: the matrix, the rest, the settings to use, and the verdict.

    In `width` columns, those of the terminal by default; a line of settings is never broken.
    """
    page = _Page(system, found, advise(system, found), width or terminal_width())
    blocks = (page.head(), page.matrix(), page.rest(), page.legend(), page.settings(), page.notes(), page.verdict())
    for i, block in enumerate(block for block in blocks if block):
        yield from block if i == 0 else ["", *block]


@dataclass(frozen=True)
class _Page:
    """The parts of the text on a probe, each a list of lines; empty if there is nothing to say."""

    system: System
    found: Sequence[Finding]
    advice: Advice
    width: int

    @property
    def crossed(self) -> list[Finding]:
        return [f for f in self.found if f.asked in (*RUNGS, "line")] if self.system.policy == "chat" else []

    def head(self) -> list[str]:
        asked, system = sum(f.outcome != "not asked" for f in self.found), self.system
        where = "embedded" if system.embedded else system.endpoint
        how = f"({system.server}, {system.policy}); {asked} request{'s' if asked != 1 else ''}"
        return self._wrapped(f"{system.name}: {system.model} at {where} {how}")

    def matrix(self) -> list[str]:
        """Thinking x structured output, in as many tables as the width asks for, and what the server said or sent
        where that was not as asked."""
        crossed = self.crossed
        if not crossed:
            return []
        ways = list(dict.fromkeys(f.way for f in crossed))
        usual = {way: find(crossed, "prompt", way) for way in ways}
        columns = [["thinks", *(u.thought if (u := usual[way]) else "" for way in ways)]]
        for asked in dict.fromkeys(f.asked for f in crossed):
            cells = [_cell(find(crossed, asked, way), usual[way]) for way in ways]
            columns.append([self._name(asked), *cells])
        lines = _tables(["thinking", *map(str, ways)], columns, self.width)
        told: set[tuple[str, Outcome]] = set()
        for f in crossed:
            same = {(f.detail, f.outcome), *(() if f.outcome in NO_REPLY else ((f.asked, f.outcome),))}
            if f.outcome not in ("ok", "not asked") and not same & told:
                lines += self._wrapped(f"  {f.way}, {self._name(f.asked)}: {f.outcome}, {f.detail}", 4)
                told |= same
        unasked, turns = thinks(crossed, NOT_SENT), dict.fromkeys(way.style for way in turning_ways(crossed))
        if unasked is not None:
            open_ways = any(f.outcome in OPEN for f in crossed if f.asked == "prompt" and f.way.on is not None)
            what = ", ".join(turns) or ("not known" if open_ways else "nothing")
            does = "thinks" if unasked else "does not think"
            lines += self._wrapped(f"  it {does} unasked; what changes that: {what}", 4)
        return lines

    def rest(self) -> list[str]:
        rows = [f for f in self.found if f not in self.crossed and f.asked not in ("max_tokens_field", "sampling")]
        texts = (f"{self._name(f.asked):<22}{f.outcome:<14}{f.detail}" for f in rows)
        return [line for text in texts for line in self._wrapped(text, 36)]

    def legend(self) -> list[str]:
        seen = [f"{o} = {meaning}" for o, meaning in MEANINGS.items() if any(f.outcome == o for f in self.found)]
        if any(f.thought == "unseen" for f in self.found):
            seen.append("unseen = more tokens were counted than were sent")
        return self._wrapped("; ".join(seen)) if seen else []

    def settings(self) -> list[str]:
        if self.advice.problems:
            return []
        settings, lines = self.advice.settings, list[str]()
        what = "settings to use" if self.advice.serves else "settings so far"
        head = f"{what} (systems.yaml, {self.system.name}):{'' if settings else ' those of the entry'}"
        for choice in self.advice.choices:
            said = (
                "or:"
                if lines
                else "it thinks unless told not to; so that the entry says which, write instead of the same fields below:"
            )
            lines += self._commented(said)
            lines += [f"{MARGIN}#   {_setting(name, value)}" for name, value in choice.items()]
        for name, value in settings.items():
            if name in self.advice.reasons:
                was = json.dumps(getattr(self.system, name), ensure_ascii=False)
                lines += self._commented(f"instead of {was}: {self.advice.reasons[name]}")
            lines.append(MARGIN + _setting(name, value))
        return [head, *lines]

    def notes(self) -> list[str]:
        notes = [line for note in self.advice.notes for line in self._wrapped(f"  - {note}", 4)]
        return ["notes:", *notes] if notes else []

    def verdict(self) -> list[str]:
        policy, advice = self.system.policy, self.advice
        said = [f"cannot serve policy {policy}: {problem}" for problem in advice.problems]
        if advice.unknown and not said:
            said = [f"not known whether it can serve policy {policy}: {'; '.join(advice.unknown)}"]
        return [line for text in said or [f"can serve policy {policy}"] for line in self._wrapped(text, 4)]

    def _name(self, asked: str) -> str:
        """What a column is called: the constraint on a line by its name at this server."""
        return {"vllm": "regex", "llama.cpp": "grammar"}.get(self.system.server, asked) if asked == "line" else asked

    def _commented(self, text: str) -> list[str]:
        return self._wrapped(f"{MARGIN}# {text}", f"{MARGIN}# ")

    def _wrapped(self, text: str, indent: int | str = 2) -> list[str]:
        after = indent if isinstance(indent, str) else " " * indent
        return textwrap.wrap(text, self.width, subsequent_indent=after, drop_whitespace=True, break_on_hyphens=False)


def _tables(names: Sequence[str], columns: Sequence[Sequence[str]], width: int) -> list[str]:
    """The columns beside the names of the rows; those that do not fit go into another table below."""
    lines, left = list[str](), list(columns)
    while left:
        rows = [f"{name:<{max(map(len, names))}}" for name in names]
        taken = 0
        for column in left:
            room = max(map(len, column))
            if taken and len(rows[0]) + 2 + room > width:
                break
            rows = [f"{row}  {cell:<{room}}" for row, cell in zip(rows, column, strict=True)]
            taken += 1
        left = left[taken:]
        lines += [*([""] if lines else []), *(row.rstrip() for row in rows)]
    return lines


def _setting(name: str, value: object) -> str:
    return f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def _cell(f: Finding | None, usual: Finding | None) -> str:
    if f is None or f.outcome == "not asked":
        return "-"
    if f.outcome == "ok" and usual and usual.thought and f.thought and (f.thought == "no") != (usual.thought == "no"):
        return "ok, no thought" if f.thought == "no" else "ok, thinks"
    return f.outcome
