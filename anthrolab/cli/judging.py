"""Verbs that gate, judge and measure chats."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from anthrolab.cli.options import Cards, RubricFile, RunDir, Systems, say
from anthrolab.errors import AnthrolabError

app = typer.Typer()


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

    counts = judge_run(run, judge, rubric_file=rubric, systems_file=systems, cards_dir=cards, progress=say)
    if counts["boxes"] and not counts["assessed"]:
        raise AnthrolabError(f"judge {judge} answered no checkbox in a usable way; look into {run}/verdicts.jsonl")
    if counts["incomplete"] or counts["done"] < counts["planned"]:
        raise typer.Exit(1)


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
