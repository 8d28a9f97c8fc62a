"""Verbs that let systems chat."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from anthrolab.cli.options import (
    Cache,
    Cards,
    Deadline,
    FollowUps,
    MaxCost,
    MinGap,
    Pins,
    Skills,
    Summary,
    Systems,
    TypingSpeed,
    effort,
    pins,
    say,
    seconds,
    side,
    which_cases,
)  # fmt: skip

app = typer.Typer()


@app.command()
def run(
    system: Annotated[str, typer.Option(help="Name of the tested system in the systems file.")],
    run: Annotated[Path, typer.Option("--run", help="Run folder; the same command again goes on where it stopped.")],
    cases: Annotated[str, typer.Option(help="How many cases, one per binding first; all; or a selection, FILE.jsonl.")] = "all",
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
    cache: Cache = None,
    max_cost: MaxCost = None,
    deadline: Deadline = 60,
) -> None:
    """Generate the dialogues of a run. Exit code 1 if some could not be had.

    Ctrl-C waits a moment for replies that are paid for; the same command goes on where it stopped, also after a kill.

    Example: anthrolab run --system gemma-3-270m --cases 12 --max-messages 24 --run runs/quick
    """
    from anthrolab.bench.run import generate
    from anthrolab.bench.settings import Pace

    counts = generate(
        run, system, cases=which_cases(cases), samples=samples, partner=partner, max_messages=max_messages,
        window=window, pace=Pace(min_gap, seconds(follow_up_delays), typing_speed), summary=summary,
        skills=pins(skill), seed=seed, systems_file=systems, cards_dir=cards, skills_dir=skills,
        effort=effort(run, cache, max_cost, deadline), progress=say,
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
    cache: Cache = None,
    max_cost: MaxCost = None,
) -> None:
    """Play a series: several chats of one pair, days apart, each remembering the other. Exit code 1 if an update failed.

    Example: anthrolab sessions --system qwen3-8b --memory qwen3-8b --series r01 --run runs/series
    """
    from anthrolab.bench.sessions import play_series
    from anthrolab.bench.settings import Pace

    counts = play_series(
        run, system, series, memory, partner=partner, role=side(role), max_messages=max_messages, window=window,
        pace=Pace(min_gap, seconds(follow_up_delays), typing_speed), summary=summary, skills=pins(skill), seed=seed,
        systems_file=systems, cards_dir=cards, skills_dir=skills,
        effort=effort(run, cache, max_cost), progress=say,
    )  # fmt: skip
    say(f"{run}: {counts['done']} of {counts['planned']} sessions, {counts['failed_updates']} failed updates of a memory")
    if counts["failed_updates"]:
        raise typer.Exit(1)
