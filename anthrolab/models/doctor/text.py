"""What the doctor found, as text for a terminal: the checks of a machine, the probe of an endpoint."""

import json
import textwrap
from collections.abc import Iterator, Sequence

from anthrolab.models.doctor.advice import advise, thinks, turning_ways
from anthrolab.models.doctor.findings import MEANINGS, NO_REPLY, NOT_SENT, Finding, Outcome, find
from anthrolab.models.doctor.machine import Check
from anthrolab.models.structured import RUNGS
from anthrolab.models.systems import System

WIDTH = 100
"""Columns of the terminal that the text of a probe is written for."""


def check_lines(checks: Sequence[Check]) -> Iterator[str]:
    """One line a check, and its fix below it; as wide as they are."""
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        yield f"{check.status:<4}  {check.name:<{width}}  {check.detail}"
        if check.fix:
            yield f"{'':<4}  {'':<{width}}  -> {check.fix}"


def probe_lines(system: System, found: Sequence[Finding]) -> Iterator[str]:
    """What a probe of the system found: the matrix, the rest, and the settings to use, in WIDTH columns."""
    advice = advise(system, found)
    asked = sum(f.outcome != "not asked" for f in found)
    where = "embedded" if system.embedded else system.endpoint
    yield from _wrapped(
        f"{system.name}: {system.model} at {where} ({system.server}, {system.policy}); {asked} requests"
    )
    yield ""
    crossed = [f for f in found if f.asked in (*RUNGS, "line")] if system.policy == "chat" else []
    if crossed:
        yield from _matrix(system, crossed)
        yield ""
    for f in found:
        if f not in crossed and f.asked not in ("max_tokens_field", "sampling"):
            yield from _wrapped(f"{_name(system, f.asked):<26}{f.outcome:<14}{f.detail}", 40)
    seen = [f"{outcome} = {MEANINGS[outcome]}" for outcome in MEANINGS if any(f.outcome == outcome for f in found)]
    if any(f.thought == "unseen" for f in found):
        seen.append("unseen = more tokens were counted than were sent")
    if seen:
        yield ""
        yield from _wrapped("; ".join(seen))
    if advice.serves:
        yield ""
        yield f"settings to use (systems.yaml, {system.name}):{'' if advice.settings else ' those of the entry'}"
    for name, value in advice.settings.items() if advice.serves else ():
        if name in advice.reasons:
            was = json.dumps(getattr(system, name), ensure_ascii=False)
            yield from _wrapped(f"    # instead of {was}: {advice.reasons[name]}", "    # ")
        yield f"    {name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
    if advice.notes:
        yield ""
        yield "notes:"
    for note in advice.notes:
        yield from _wrapped(f"  - {note}", 4)
    yield ""
    for problem in advice.problems:
        yield from _wrapped(f"cannot serve policy {system.policy}: {problem}", 4)
    if advice.serves:
        yield f"can serve policy {system.policy}"


def _matrix(system: System, crossed: Sequence[Finding]) -> Iterator[str]:
    """Thinking x structured output, and what the server said or sent where that was not as asked."""
    columns = list(dict.fromkeys(f.asked for f in crossed))
    yield f"{'thinking':<26}{'thinks':<8}{''.join(f'{_name(system, c):<16}' for c in columns)}".rstrip()
    for way in dict.fromkeys(f.way for f in crossed):
        usual = find(crossed, "prompt", way)
        cells = [_cell(find(crossed, column, way), usual) for column in columns]
        yield f"{way!s:<26}{usual.thought if usual else '':<8}{''.join(f'{c:<16}' for c in cells)}".rstrip()
    told: set[tuple[str, Outcome]] = set()
    for f in crossed:
        same = {(f.detail, f.outcome), *(() if f.outcome in NO_REPLY else ((f.asked, f.outcome),))}
        if f.outcome not in ("ok", "not asked") and not same & told:
            yield from _wrapped(f"  {f.way}, {_name(system, f.asked)}: {f.outcome}, {f.detail}", 4)
            told |= same
    unasked, turns = thinks(crossed, NOT_SENT), dict.fromkeys(way.style for way in turning_ways(crossed))
    if unasked is not None:
        yield f"  it {'thinks' if unasked else 'does not think'} unasked; what changes that: {', '.join(turns) or 'nothing'}"


def _cell(f: Finding | None, usual: Finding | None) -> str:
    if f is None or f.outcome == "not asked":
        return "-"
    if f.outcome == "ok" and usual and usual.thought and f.thought and (f.thought == "no") != (usual.thought == "no"):
        return "ok, no thought" if f.thought == "no" else "ok, thinks"
    return f.outcome


def _name(system: System, asked: str) -> str:
    """What a column is called: the constraint on a line by its name at this server."""
    return {"vllm": "regex", "llama.cpp": "grammar"}.get(system.server, asked) if asked == "line" else asked


def _wrapped(text: str, indent: int | str = 2) -> list[str]:
    after = indent if isinstance(indent, str) else " " * indent
    return textwrap.wrap(text, WIDTH, subsequent_indent=after, drop_whitespace=True, break_on_hyphens=False) or [""]
