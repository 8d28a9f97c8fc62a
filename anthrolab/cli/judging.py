"""Verbs that gate, judge and measure chats."""

import json
import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from anthrolab.cli.options import Cache, Cards, Deadline, MaxCost, RubricFile, RunDir, Systems, effort, say
from anthrolab.errors import AnthrolabError

app = typer.Typer()


@app.command()
def judge(
    run: RunDir,
    judge: Annotated[str, typer.Option(help='"rules", or the name of a system that serves as model judge.')] = "rules",
    rubric: RubricFile = None,
    systems: Systems = None,
    cards: Cards = None,
    cache: Cache = None,
    max_cost: MaxCost = None,
    deadline: Deadline = 60,
) -> None:
    """Gate and judge a run and write its ledger. A judge of the tested system's family is warned about.

    Exit code 1 if a case is not done or a verdict is incomplete, 2 if the judge answered nothing that can be used.

    Example: anthrolab judge runs/quick --judge rules
    """
    from anthrolab.bench.judge import judge_run

    _warn_of_family(run, judge, systems)
    counts = judge_run(
        run, judge, rubric_file=rubric, systems_file=systems, cards_dir=cards,
        effort=effort(run, cache, max_cost, deadline), progress=say,
    )  # fmt: skip
    if counts["boxes"] and not counts["assessed"]:
        from anthrolab.bench.store import Run

        said = next((e.message for v in Run(run).verdicts(judge).values() for e in v.errors), f"look into {run}/verdicts.jsonl")
        raise AnthrolabError(f"judge {judge} answered no checkbox in a usable way: {said}")
    if counts["incomplete"] or counts["done"] < counts["planned"]:
        raise typer.Exit(1)


def _warn_of_family(run: Path, judge: str, systems: Optional[Path]) -> None:
    """Before anything is asked (and paid for)."""
    from anthrolab.bench.store import Run
    from anthrolab.judging.verdict import RULES
    from anthrolab.models.family import same_family
    from anthrolab.models.systems import default_systems_path, find_system, load_systems

    if judge != RULES:
        asked = find_system(load_systems(systems or default_systems_path()), judge)
        if line := same_family(asked, Run(run).manifest()["settings"]["system"]):
            say(f"warning: {line}")


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


@app.command("judge-check")
def judge_check(
    judge: Annotated[str, typer.Option(help='"rules", or the name of a system that serves as model judge.')] = "rules",
    labels: Annotated[
        Optional[Path], typer.Option(help="Human labels: a .csv or .jsonl with dialogue, turn, box, rater, value; or a folder of them.")
    ] = None,
    dialogues: Annotated[Optional[Path], typer.Option(help="Chats of real people, one JSON object a line.")] = None,
    repeats: Annotated[int, typer.Option(help="How often each labelled dialogue is judged.")] = 2,
    limit: Annotated[Optional[int], typer.Option(min=0, help="At most so many labelled dialogues, of every id alike.")] = None,
    out: Annotated[Optional[Path], typer.Option(help="Folder (default: runs/judge-check-NAME); the same command goes on there.")] = None,
    rubric: RubricFile = None,
    systems: Systems = None,
    cards: Cards = None,
    cache: Cache = None,
    max_cost: MaxCost = None,
    deadline: Deadline = 60,
) -> None:
    """Check a judge on dialogues whose failures are known, and beside people. Exit code 1 if it is not fit for strict ACC.

    Example: anthrolab judge-check --judge rules
    """
    from anthrolab.bench.store import Run
    from anthrolab.cards.library import default_cards_dir, load_library
    from anthrolab.judging.calibration.check import check_judge, labelled_set
    from anthrolab.judging.rubric import load_rubric
    from anthrolab.show.judge_check import judge_check_text
    from anthrolab.show.rating_tables import pairs_table
    from anthrolab.show.tables import as_text

    folder, out = cards or default_cards_dir(), out or Path("runs") / f"judge-check-{judge}"
    library, asked, may_take = load_library(folder), load_rubric(rubric), effort(out, cache, max_cost, deadline)
    items, gold = labelled_set(folder, library, asked)
    checked = check_judge(
        judge, items, gold, library, asked, out=out, repeats=repeats, limit=limit, labels_file=labels, dialogues_file=dialogues,
        systems_file=systems, engine_for=lambda known: may_take.engine(Run(out), *known), deadline_s=may_take.deadline_s,
        progress=say,
    )  # fmt: skip
    typer.echo(judge_check_text(checked))
    if checked.pairs:
        typer.echo("\n" + as_text(pairs_table(checked.pairs)))
    if not checked.fitness.fit:
        raise typer.Exit(1)


@app.command()
def agreement(
    run: RunDir,
    judges: Annotated[str, typer.Option(help="Two judges whose verdicts stand in the run, with a comma between (default: every two).")] = "",
    retest: Annotated[str, typer.Option(help="A judge of the run that is to judge some of it again.")] = "",
    dialogues: Annotated[int, typer.Option(min=1, help="How many dialogues it judges again.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the draw of dialogues, and of the intervals.")] = 0,
    rubric: RubricFile = None,
    systems: Systems = None,
    cards: Cards = None,
    cache: Cache = None,
    max_cost: MaxCost = None,
    deadline: Deadline = 60,
) -> None:
    """Print how far two judges of a run agree, and how often a judge answers otherwise when it is asked again.

    Exit code 1 if a verdict of the retest is incomplete; the same command again asks for what is missing.

    Example: anthrolab agreement runs/quick --judges rules,qwen3-8b --retest qwen3-8b --dialogues 20
    """
    from anthrolab.bench.second_judge import retest as judge_again
    from anthrolab.judging.rubric import load_rubric
    from anthrolab.show.measured import load_all, load_measured
    from anthrolab.show.second_judge import agreement_tables, as_lines, pair_table, retest_table

    asked = load_rubric(rubric)
    names = [name.strip() for name in judges.split(",") if name.strip()]
    if judges and (len(names) != 2 or names[0] == names[1]):
        raise AnthrolabError(f"--judges {judges}: name two of the run's judges with a comma between")
    tables, incomplete = [], 0
    if names:
        tables.append(pair_table(*(load_measured(run, name, asked) for name in names), seed=seed))
    if retest:
        found = judge_again(
            run, retest, dialogues, seed=seed, rubric_file=rubric, systems_file=systems, cards_dir=cards,
            effort=effort(run, cache, max_cost, deadline), progress=say,
        )  # fmt: skip
        tables.append(retest_table(found, run.resolve().name))
        incomplete = found.incomplete
    if not names and not retest:
        tables = agreement_tables(run, load_all(run, asked), seed=seed)
    if not tables:
        raise AnthrolabError(f"{run}: only one judge judged it, and once; judge it by another, or again with --retest NAME")
    typer.echo(as_lines(tables))
    if incomplete:
        raise typer.Exit(1)


@app.command()
def labelled(
    out: Annotated[Path, typer.Option(help="File for the items, one JSON object a line.")],
    seed: Annotated[int, typer.Option(help="Seed of the edits.")] = 1,
    folder: Annotated[Optional[Path], typer.Option("--cards", help="Folder of cards with gold/ and labelled/banks/.")] = None,
    rubric: RubricFile = None,
) -> None:
    """Make the labelled set anew from gold dialogues, banks of lines and a seed.

    Example: anthrolab labelled --seed 1 --out data/labelled/set.jsonl
    """
    from anthrolab.cards.library import default_cards_dir, load_library
    from anthrolab.judging.labelled.bank import load_banks
    from anthrolab.judging.labelled.items import save_labelled
    from anthrolab.judging.labelled.whole_set import Counts, make_set
    from anthrolab.judging.rubric import load_rubric
    from anthrolab.runtime.written import load_gold

    cards = folder or default_cards_dir()
    library = load_library(cards)
    banks = load_banks(cards / "labelled" / "banks")
    items = make_set(load_gold(cards, library), library, banks, load_rubric(rubric), seed, Counts())
    save_labelled(items, out)
    typer.echo(f"{out}: {len(items)} items")
