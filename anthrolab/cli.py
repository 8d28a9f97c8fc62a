"""The command line: one function call per verb."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Literal, NoReturn, Optional

import typer

from anthrolab import __version__
from anthrolab.errors import AnthrolabError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Run, judge, measure and report models that chat like people (AnthroDial).",
)
cards = typer.Typer(no_args_is_help=True, help="Check persona, scenario and binding cards; export their JSON Schema.")
app.add_typer(cards, name="cards")

INTERRUPTED = 130
"""What typer makes of Ctrl-C."""

RunDir = Annotated[Path, typer.Argument(help="A run folder made by `anthrolab run`.")]
Systems = Annotated[Optional[Path], typer.Option("--systems", help="Systems file (default: data/systems.yaml).")]
Cards = Annotated[Optional[Path], typer.Option("--cards", help="Folder of cards (default: data/).")]
Skills = Annotated[Optional[Path], typer.Option("--skills", help="Folder of skills (default: data/skills).")]
Pins = Annotated[Optional[list[str]], typer.Option("--skill", help="NAME=VERSION of a skill (default: its newest).")]
Summary = Annotated[str, typer.Option(help='Who summarises older messages: "rules", "none", or a chat system.')]
MinGap = Annotated[int, typer.Option(help="Least seconds between two messages of one speaker.")]
FollowUps = Annotated[str, typer.Option(help="Least seconds before the 1st, 2nd ... unanswered follow-up, e.g. 5,20,60.")]
TypingSpeed = Annotated[int, typer.Option(help="Characters a minute; tells a draft being typed from one that waits.")]
RubricFile = Annotated[Optional[Path], typer.Option("--rubric", help="Rubric file (default: data/rubric.yaml).")]


@app.command()
def run(
    system: Annotated[str, typer.Option(help="Name of the tested system in the systems file.")],
    run: Annotated[Path, typer.Option("--run", help="Run folder; the same command again goes on where it stopped.")],
    cases: Annotated[str, typer.Option(help="How many cases, one per binding first; or all.")] = "all",
    samples: Annotated[int, typer.Option(help="Dialogues per case.")] = 1,
    partner: Annotated[Optional[str], typer.Option(help="Reference partner (default: the system's own).")] = None,
    max_messages: Annotated[int, typer.Option(help="Longest dialogue, opener included.")] = 50,
    window: Annotated[int, typer.Option(help="Messages shown verbatim in a prompt.")] = 12,
    summary: Summary = "rules",
    min_gap: MinGap = 0,
    follow_up_delays: FollowUps = "",
    typing_speed: TypingSpeed = 0,
    skill: Pins = None,
    seed: Annotated[int, typer.Option(help="Seed of the run.")] = 0,
    systems: Systems = None,
    cards: Cards = None,
    skills: Skills = None,
) -> None:
    """Generate the dialogues of a run. Exit code 1 if some could not be had.

    Example: anthrolab run --system gemma-3-270m --cases 12 --max-messages 24 --run runs/quick
    """
    from anthrolab.bench.run import generate
    from anthrolab.bench.settings import Pace

    counts = generate(
        run, system, cases=_number(cases), samples=samples, partner=partner, max_messages=max_messages,
        window=window, pace=Pace(min_gap, _seconds(follow_up_delays), typing_speed), summary=summary,
        skills=_pins(skill), seed=seed, systems_file=systems, cards_dir=cards, skills_dir=skills, progress=_say,
    )  # fmt: skip
    if counts["done"] < counts["planned"]:
        raise typer.Exit(1)


@app.command()
def sessions(
    system: Annotated[str, typer.Option(help="Name of the tested system in the systems file.")],
    memory: Annotated[str, typer.Option(help="Chat system that updates the speakers' memories after each session.")],
    run: Annotated[Path, typer.Option("--run", help="Run folder; the same command again goes on where it stopped.")],
    series: Annotated[str, typer.Option(help="Which series of the cards' series/ folder.")] = "r01",
    partner: Annotated[Optional[str], typer.Option(help="Reference partner (default: the system's own).")] = None,
    role: Annotated[str, typer.Option(help="Side of the tested system: a or b.")] = "a",
    max_messages: Annotated[int, typer.Option(help="Longest dialogue, opener included.")] = 50,
    window: Annotated[int, typer.Option(help="Messages shown verbatim in a prompt.")] = 12,
    summary: Summary = "rules",
    min_gap: MinGap = 0,
    follow_up_delays: FollowUps = "",
    typing_speed: TypingSpeed = 0,
    skill: Pins = None,
    seed: Annotated[int, typer.Option(help="Seed of the run.")] = 0,
    systems: Systems = None,
    cards: Cards = None,
    skills: Skills = None,
) -> None:
    """Play a series: several chats of one pair, days apart, each remembering the other. Exit code 1 if an update failed.

    Example: anthrolab sessions --system qwen3-8b --memory qwen3-8b --series r01 --run runs/series
    """
    from anthrolab.bench.sessions import play_series
    from anthrolab.bench.settings import Pace

    counts = play_series(
        run, system, series, memory, partner=partner, role=_side(role), max_messages=max_messages, window=window,
        pace=Pace(min_gap, _seconds(follow_up_delays), typing_speed), summary=summary, skills=_pins(skill), seed=seed,
        systems_file=systems, cards_dir=cards, skills_dir=skills, progress=_say,
    )  # fmt: skip
    _say(f"{run}: {counts['done']} of {counts['planned']} sessions, {counts['failed_updates']} failed updates of a memory")
    if counts["failed_updates"]:
        raise typer.Exit(1)


@app.command()
def judge(
    run: RunDir,
    judge: Annotated[str, typer.Option(help='"rules", or the name of a system that serves as model judge.')] = "rules",
    rubric: RubricFile = None,
    systems: Systems = None,
    cards: Cards = None,
) -> None:
    """Gate and judge a run and write its ledger.

    Exit code 1 if a case is not done or a verdict is incomplete, 2 if the judge answered nothing that can be used.

    Example: anthrolab judge runs/quick --judge rules
    """
    from anthrolab.bench.judge import judge_run

    counts = judge_run(run, judge, rubric_file=rubric, systems_file=systems, cards_dir=cards, progress=_say)
    if counts["boxes"] and not counts["assessed"]:
        raise AnthrolabError(f"judge {judge} answered no checkbox in a usable way; look into {run}/verdicts.jsonl")
    if counts["incomplete"] or counts["done"] < counts["planned"]:
        raise typer.Exit(1)


@app.command()
def tables(
    ledger: Annotated[Path, typer.Argument(help="Folder with cases.parquet and checkboxes.parquet.")],
    out: Annotated[Path, typer.Option(help="Folder for table7.csv .. table11.csv and coverage.csv.")],
    rubric: Annotated[Optional[Path], typer.Option("--rubric", help="Take the weights of this rubric file.")] = None,
) -> None:
    """Write the paper's Tables 7-11 and the coverage of a ledger as CSV.

    Example: anthrolab tables runs/quick/ledgers/rules --out reports/quick/tables
    """
    from anthrolab.bench.tables import write_tables
    from anthrolab.judging.rubric import load_rubric

    weights = {d.id: d.weight for d in load_rubric(rubric).dimensions} if rubric else None
    for path in write_tables(ledger, out, weights):
        typer.echo(path)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="One or more judged run folders.")],
    out: Annotated[Path, typer.Option(help="Folder for index.html and the tables.")] = Path("reports/latest"),
    rubric: RubricFile = None,
    cards: Cards = None,
) -> None:
    """Render one self-contained HTML report of judged runs beside the published numbers.

    Example: anthrolab report runs/quick --out reports/quick
    """
    from anthrolab.show.report import write_report

    typer.echo(write_report(runs, out, rubric_file=rubric, cards_dir=cards))


@app.command()
def notebooks(
    names: Annotated[list[str], typer.Argument(help="Notebooks by number or name, in order, e.g. 02 03 04.")],
    run: Annotated[Path, typer.Option("--run", help="Run folder; executed copies go to its notebooks/.")],
    parameters: Annotated[Optional[list[str]], typer.Option("-p", help="NAME=VALUE for a notebook parameter.")] = None,
) -> None:
    """Execute notebooks headless with papermill, in order, stopping at the first failure.

    Example: anthrolab notebooks 02 03 04 --run runs/quick -p cases=12
    """
    from anthrolab.show.notebooks import run_notebooks

    run_notebooks(names, run, parameters or [], progress=typer.echo)


@app.command()
def l0(
    file: Annotated[Path, typer.Argument(help="Dialogues, one JSON object a line.")],
    cards: Cards = None,
) -> None:
    """Run the deterministic validity gate on dialogues; one JSON line each. Exit code 1 if a line is unreadable.

    Example: anthrolab l0 runs/quick/dialogues.jsonl
    """
    from anthrolab.cards.library import default_cards_dir, load_library
    from anthrolab.judging.l0 import gate_file

    library = load_library(cards or default_cards_dir())
    broken = False
    for row in gate_file(file, library.personas, library.all_scenarios()):
        broken = broken or "error" in row
        sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
    if broken:
        raise typer.Exit(1)


@app.command()
def timing(
    path: Annotated[Path, typer.Argument(help="A run folder, or dialogues, one JSON object a line.")],
    side: Annotated[str, typer.Option(help="evaluated, partner or both.")] = "both",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object: side -> measures, instead of a table.")] = False,
) -> None:
    """Measure how the tested side and its partner time their messages: delays, bursts, silences, interruptions. No scores.

    Example: anthrolab timing runs/quick --side evaluated
    """
    from anthrolab.show.tables import as_text
    from anthrolab.show.timing import SIDES, timing_at, timing_row, timing_text

    sides = [s for s in SIDES if side in (s, "both")]
    if not sides:
        raise AnthrolabError(f"--side {side}: give evaluated, partner or both")
    timings = timing_at(path, sides)
    if as_json:
        sys.stdout.write(json.dumps({s: timing_row(t) for s, t in timings.items()}, ensure_ascii=False, indent=1) + "\n")
    else:
        typer.echo(as_text(timing_text(timings, f"Timing: {path}")))


@cards.command("check")
def cards_check(folder: Annotated[Path, typer.Argument(help="Folder with personas/, scenarios/, bindings.yaml.")]) -> None:
    """Check every card of a folder; one line per problem with file, field and fix.

    Example: anthrolab cards check data
    """
    from anthrolab.cards.library import load_library
    from anthrolab.cards.skill import load_skills

    library = load_library(folder)
    if (folder / "skills").is_dir():
        load_skills(folder / "skills")
    typer.echo(
        f"{folder}: {len(library.personas)} personas, {len(library.scenarios)} scenarios, {len(library.bindings)} bindings, "
        f"{len(library.memories)} memories, {len(library.series)} series: all good"
    )


@cards.command("schema")
def cards_schema(out: Annotated[Path, typer.Option(help="Folder for the *.schema.json files.")] = Path("data/schemas")) -> None:
    """Write the JSON Schemas of the cards, for completion and checking in editors.

    Example: anthrolab cards schema --out data/schemas
    """
    from anthrolab.cards.schema import write_schemas

    for path in write_schemas(out):
        typer.echo(path)


@app.command()
def doctor(
    system: Annotated[
        Optional[str], typer.Option(help="Probe the endpoint of this system with some twenty requests.")
    ] = None,
    systems: Systems = None,
) -> None:
    """Say what works on this machine and what does not, with the fix; or which settings a system's endpoint needs.

    Exit code 1 if something needed fails, or if the endpoint cannot serve the system's policy.

    Example: anthrolab doctor --system gemma-3-270m
    """
    from anthrolab.models.doctor import LIMIT_S, advise, check_lines, diagnose, probe_endpoint, probe_lines
    from anthrolab.models.systems import default_systems_path, find_system, load_systems

    known = load_systems(systems or default_systems_path())
    if system is not None:
        entry = find_system(known, system)
        _say(f"asking {entry.name} some twenty short questions (at most {LIMIT_S:g} s)")
        found = probe_endpoint(entry)
        for line in probe_lines(entry, found):
            typer.echo(line)
        if not advise(entry, found).serves:
            raise typer.Exit(1)
        return
    checks = diagnose(known)
    for line in check_lines(checks):
        typer.echo(line)
    if any(check.status == "fail" for check in checks):
        raise typer.Exit(1)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def main() -> None:
    """The entry point: mendable errors are one line on stderr and exit code 2, Ctrl-C is 130.

    Output is UTF-8 whatever the locale; bytes of a path that the locale could not read go out as they came in.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    try:
        app()
    except AnthrolabError as e:
        sys.stderr.write(f"error: {e}\n")
        sys.exit(2)
    except OSError as e:
        if e.filename is not None:  # a file of ours would have come as AnthrolabError
            raise
        _no_output(e)
    except SystemExit as e:
        if e.code == INTERRUPTED:
            sys.stderr.write("stopped; the same command goes on from here\n")
        try:
            sys.stdout.flush()
        except OSError as unwritten:
            _no_output(unwritten)
        raise


def _no_output(error: OSError) -> NoReturn:
    """End without another try at flushing a standard output that cannot be written."""
    if not isinstance(error, BrokenPipeError):
        sys.stderr.write(f"error: standard output cannot be written ({error.strerror}); free some space or write elsewhere\n")
    sys.stderr.flush()
    os._exit(1 if isinstance(error, BrokenPipeError) else 2)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _number(cases: str) -> int | None:
    if cases == "all":
        return None
    if not (cases.isascii() and cases.isdigit()):
        raise AnthrolabError(f"--cases {cases}: give a number, or all")
    return int(cases)


def _seconds(listed: str) -> tuple[int, ...]:
    parts = [part.strip() for part in listed.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise AnthrolabError(f"--follow-up-delays {listed}: give whole seconds with commas between, e.g. 5,20,60")
    return tuple(int(part) for part in parts)


def _pins(given: Optional[list[str]]) -> dict[str, str]:
    pins = dict(pin.partition("=")[::2] for pin in given or [])
    for name, version in pins.items():
        if not version:
            raise AnthrolabError(f"--skill {name}: give NAME=VERSION, e.g. message_style=v1")
    return pins


def _side(role: str) -> Literal["a", "b"]:
    if role == "a":
        return "a"
    if role == "b":
        return "b"
    raise AnthrolabError(f"--role {role}: give a or b")
