"""Verbs of the closed loop."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from anthrolab.cli.options import (
    Cache,
    Cards,
    Deadline,
    MaxCost,
    RubricFile,
    RunDir,
    Skills,
    Summary,
    Systems,
    effort,
    say,
    which_cases,
)
from anthrolab.errors import AnthrolabError

if TYPE_CHECKING:
    from anthrolab.loop.filter import Thresholds

app = typer.Typer(no_args_is_help=True, help="The closed loop: rounds of generating, judging, filtering, repairing and learning.")

LoopDir = Annotated[Path, typer.Argument(help="A loop's folder; made by `anthrolab loop run`.")]


def _thresholds(s_dialogue: float, s_turn: float) -> "Thresholds":
    from anthrolab.loop.filter import Thresholds

    for option, value, below in (("--s-dialogue", s_dialogue, False), ("--s-turn", s_turn, True)):
        if not (0 <= value < 1 or (value == 1 and not below)):
            raise AnthrolabError(f"{option} {value}: a score from 0 to 1" + (", below 1" if below else ""))
    return Thresholds(dialogue=s_dialogue, turn=s_turn)


@app.command("run")
def loop_run(
    loop: LoopDir,
    system: Annotated[str, typer.Option(help="Name of the tested system in the systems file.")],
    judge: Annotated[str, typer.Option(help='"rules", or a chat system that judges. The rules judge alone accepts nothing.')] = "rules",
    writer: Annotated[Optional[str], typer.Option(help="Chat system that repairs dialogues and rewrites skills (default: neither is done).")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How many rounds the loop is to have in all; those that are there stay.")] = 1,
    partner: Annotated[Optional[str], typer.Option(help="Reference partner (default: the system's own).")] = None,
    cases: Annotated[str, typer.Option(help="How many cases a round has, one per binding first; all; or FILE.jsonl.")] = "all",
    samples: Annotated[int, typer.Option(min=1, help="Dialogues per case and round.")] = 1,
    held_back: Annotated[str, typer.Option(help="Share of persona pairs that teach nothing (0.2), or bindings with commas between.")] = "0.2",
    s_dialogue: Annotated[float, typer.Option(help="Accepted from this S_dialogue on (paper: 1.0).")] = 1.0,
    s_turn: Annotated[float, typer.Option(help="Accepted above this S_turn (paper: 0.9).")] = 0.9,
    attempts: Annotated[int, typer.Option(min=0, help="Rewrites of a rejected dialogue.")] = 2,
    most_changes: Annotated[int, typer.Option(min=1, help="Messages that may be rewritten for a fault of the whole dialogue.")] = 3,
    buffer_rounds: Annotated[int, typer.Option(min=1, help="Latest rounds whose failures a skill is rewritten by.")] = 1,
    sides: Annotated[str, typer.Option(help="Whose decisions become training data: evaluated (the judged side) or both.")] = "evaluated",
    go_on: Annotated[bool, typer.Option("--go-on", help="Finish a round although a server failed: what it failed at is counted and left out.")] = False,
    max_messages: Annotated[int, typer.Option(min=2, help="Longest dialogue, opener included.")] = 50,
    window: Annotated[int, typer.Option(min=1, help="Messages shown verbatim in a prompt.")] = 12,
    summary: Summary = "rules",
    seed: Annotated[int, typer.Option(help="Seed of the loop; round N is drawn with seed + N - 1.")] = 0,
    systems: Systems = None,
    cards: Cards = None,
    skills: Skills = None,
    rubric: RubricFile = None,
    cache: Cache = None,
    max_cost: MaxCost = None,
    deadline: Deadline = 60,
) -> None:
    """Have the rounds of a loop: dialogues, verdicts, repairs, a better skill, training data. The same command goes on.

    Example: anthrolab loop run loops/first --system qwen3-8b --judge judge-32b --writer judge-32b --rounds 2
    """
    from anthrolab.cards.library import default_cards_dir, load_library
    from anthrolab.loop.folder import LoopSettings
    from anthrolab.loop.held_back import held_back_bindings
    from anthrolab.loop.round import have_rounds
    from anthrolab.loop.workshop import Files

    if sides not in ("evaluated", "both"):
        raise AnthrolabError(f"--sides {sides}: give evaluated or both")
    held = held_back_bindings(load_library(cards or default_cards_dir()), held_back, seed)
    settings = LoopSettings(
        system=system, partner=partner, judge=judge, writer=writer, cases=which_cases(cases), samples=samples, held_back=held,
        thresholds=_thresholds(s_dialogue, s_turn), seed=seed, max_messages=max_messages, window=window, summary=summary,
        repair_attempts=attempts, most_changes=most_changes, buffer_rounds=buffer_rounds, sides="both" if sides == "both" else "evaluated",
    )  # fmt: skip
    have_rounds(
        loop, settings, rounds, files=Files(systems, cards, rubric), skills_dir=skills, go_on=go_on,
        effort=effort(loop, cache, max_cost, deadline), progress=say,
    )  # fmt: skip


@app.command("filter")
def loop_filter(
    run: RunDir,
    judge: Annotated[str, typer.Option(help="The judge whose verdicts decide.")] = "rules",
    out: Annotated[Optional[Path], typer.Option(help="File for the dialogues with their filter_result (default: none).")] = None,
    s_dialogue: Annotated[float, typer.Option(help="Accepted from this S_dialogue on (paper: 1.0).")] = 1.0,
    s_turn: Annotated[float, typer.Option(help="Accepted above this S_turn (paper: 0.9).")] = 0.9,
    cards: Cards = None,
    rubric: RubricFile = None,
) -> None:
    """Say what the acceptance filter makes of a judged run, one line a dialogue, and why.

    Example: anthrolab loop filter runs/quick --judge rules
    """
    from anthrolab.bench.store import Run
    from anthrolab.cards.library import default_cards_dir, load_library
    from anthrolab.judging.rubric import load_rubric
    from anthrolab.loop.filtering import counted, filter_run, write_filtered

    library = load_library(cards or default_cards_dir())
    filtered = filter_run(Run(run), judge, library, load_rubric(rubric), _thresholds(s_dialogue, s_turn))
    for one in filtered:
        typer.echo(f"{one.dialogue_id}\t{one.filter_result.status}\t{one.filter_result.why}")
    say(f"{run}: " + ", ".join(f"{n} {status}" for status, n in counted(filtered).items()))
    if out is not None:
        write_filtered(out, filtered)


@app.command("ab")
def loop_ab(
    loop: LoopDir,
    round: Annotated[int, typer.Option("--round", min=1, help="The round whose rewritten skill is tried.")],
    systems: Systems = None,
    cards: Cards = None,
    rubric: RubricFile = None,
    cache: Cache = None,
    max_cost: MaxCost = None,
    deadline: Deadline = 60,
) -> None:
    """Try the skills before a round against those after it, on the held-back bindings, and test the difference in pairs.

    Example: anthrolab loop ab loops/first --round 1
    """
    from anthrolab.loop.round import try_skills
    from anthrolab.loop.workshop import Files

    try_skills(loop, round, files=Files(systems, cards, rubric), effort=effort(loop, cache, max_cost, deadline), progress=say)


@app.command("sft")
def loop_sft(loop: LoopDir, cards: Cards = None) -> None:
    """Write the training data of a loop's finished rounds anew (a round does it by itself).

    Example: anthrolab loop sft loops/first
    """
    from anthrolab.cards.library import load_library
    from anthrolab.loop.folder import Loop, LoopError
    from anthrolab.loop.round import finished_rounds, loop_pool
    from anthrolab.loop.workshop import Files

    made, files = Loop(loop), Files(cards=cards)
    made.settings()
    with made.locked():
        if not (done := finished_rounds(made)):
            raise LoopError(f"{loop}: has no finished round; have one with `anthrolab loop run`")
        pool = loop_pool(made, load_library(files.cards_dir), files, upto=done[-1])
    say(f"{made.sft_dir}: {pool.train} samples to train, {pool.held_out} held out, of {pool.dialogues} dialogues")


@app.command("rollback")
def loop_rollback(
    loop: LoopDir,
    skill: Annotated[str, typer.Option(help="message_style, topic_progression or human_like_reply.")],
    to: Annotated[Optional[str], typer.Option(help="Version to go back to (default: the one that the newest was made from).")] = None,
    reason: Annotated[str, typer.Option(help="Why; stands in the history.")] = "",
) -> None:
    """Take an older text of a skill back, as a new version; nothing is lost. Later rounds use it.

    Example: anthrolab loop rollback loops/first --skill message_style --reason "A/B: worse"
    """
    from anthrolab.cards.skill import SKILLS
    from anthrolab.loop.folder import Loop
    from anthrolab.loop.skill_files import roll_back

    if skill not in SKILLS:
        raise AnthrolabError(f"--skill {skill}: give {', '.join(SKILLS)}")
    made = roll_back(Loop(loop), skill, to=to, reason=reason)
    typer.echo(f"{skill}: {made.skill.version} has the text of {made.made_from}" if made else f"{skill}: has that text already")
