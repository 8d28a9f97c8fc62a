"""Options that several verbs share, and how their texts are read."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer

from anthrolab.errors import AnthrolabError

if TYPE_CHECKING:
    from anthrolab.bench.effort import Effort

RunDir = Annotated[Path, typer.Argument(help="A run folder made by `anthrolab run`.")]
Systems = Annotated[Optional[Path], typer.Option("--systems", help="Systems file (default: data/systems.yaml).")]
Cards = Annotated[Optional[Path], typer.Option("--cards", help="Folder of cards (default: data/).")]
Skills = Annotated[Optional[Path], typer.Option("--skills", help="Folder of skills (default: data/skills), or none.")]
Pins = Annotated[Optional[list[str]], typer.Option("--skill", help="NAME=VERSION of a skill (default: its newest).")]
Summary = Annotated[str, typer.Option(help='Who summarises older messages: "rules", "none", or a chat system.')]
MinGap = Annotated[int, typer.Option(help="Least seconds between two messages of one speaker.")]
FollowUps = Annotated[str, typer.Option(help="Least seconds before the 1st, 2nd ... unanswered follow-up, e.g. 5,20,60.")]
TypingSpeed = Annotated[int, typer.Option(help="Characters a minute; tells a draft being typed from one that waits.")]
RubricFile = Annotated[Optional[Path], typer.Option("--rubric", help="Rubric file (default: data/rubric.yaml).")]
Cache = Annotated[
    Optional[str], typer.Option("--cache", help="File of replies that runs share (default: replies.sqlite beside the run); none for none.")
]
MaxCost = Annotated[
    Optional[float], typer.Option("--max-cost", help="USD that the whole run may cost; no request is sent beyond it.")
]
Deadline = Annotated[float, typer.Option("--deadline", help="Minutes that one dialogue or one verdict may take.")]


def effort(run: Path, cache: Optional[str], max_cost: Optional[float], deadline: float = 60) -> "Effort":
    """What the command may take."""
    from anthrolab.bench.effort import Effort
    from anthrolab.bench.spend import default_cache

    file = None if cache == "none" else Path(cache) if cache else default_cache(run)
    return Effort(file, max_cost, 60 * deadline)


def say(line: str) -> None:
    """A line for the person who waits, on stderr."""
    typer.echo(line, err=True)


def which_cases(cases: str) -> int | list[str] | None:
    """`all` (None), a number, or a file of selected cases."""
    if cases == "all":
        return None
    if cases.isascii() and cases.isdigit():
        return int(cases)
    if not cases.endswith(".jsonl"):
        raise AnthrolabError(f"--cases {cases}: give a number, all, or a selection (.jsonl, as notebook 05 saves it)")
    from anthrolab.bench.selection import selected_cases

    return selected_cases(Path(cases))


def seconds(listed: str) -> tuple[int, ...]:
    """Whole seconds with commas between."""
    parts = [part.strip() for part in listed.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise AnthrolabError(f"--follow-up-delays {listed}: give whole seconds with commas between, e.g. 5,20,60")
    return tuple(int(part) for part in parts)


def pins(given: Optional[list[str]]) -> dict[str, str]:
    """NAME=VERSION of skills as a table."""
    pins = dict(pin.partition("=")[::2] for pin in given or [])
    for name, version in pins.items():
        if not version:
            raise AnthrolabError(f"--skill {name}: give NAME=VERSION, e.g. message_style=v1")
    return pins


def side(role: str) -> Literal["a", "b"]:
    """The letter of a side."""
    if role == "a":
        return "a"
    if role == "b":
        return "b"
    raise AnthrolabError(f"--role {role}: give a or b")


def named_settings(given: Optional[list[str]], options: Mapping[str, Any]) -> dict[str, Any]:
    """NAME=VALUE of settings without an option of their own; values are JSON, and a text may go without its quotes."""
    others: dict[str, Any] = {}
    for one in given or []:
        name, equals, value = one.partition("=")
        if not equals:
            raise AnthrolabError(f"--set {one}: give NAME=VALUE, e.g. lora_rank=8")
        if name in options:
            raise AnthrolabError(f"--set {name}: has an option of its own, --{name.replace('_', '-')}")
        try:
            others[name] = json.loads(value)
        except ValueError:
            others[name] = value
    return others


def print_gates(gates: Sequence[Mapping[str, Any]]) -> None:
    """A line a gate."""
    for gate in gates:
        typer.echo(f"{'ok  ' if gate['passed'] else 'FAIL'} {gate['name']}: {gate['seen']}")
