"""Verbs of GRPO."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from anthrolab.cli.options import Cache, Cards, MaxCost, Systems, effort, named_settings, print_gates, say

if TYPE_CHECKING:
    from anthrolab.training.grpo.settings import GRPOSettings

app = typer.Typer(no_args_is_help=True, help="Train a policy on whole dialogues with GRPO and the capability-aware reward.")

Policy = Annotated[str, typer.Option(help="Folder of a finished fine-tuning, or a base model (gemma3-270m, a .gguf file, a folder of transformers, a name on its hub).")]
Out = Annotated[Path, typer.Option(help="Folder of this training.")]
Kind = Annotated[str, typer.Option(help="How the policy is asked: chat (JSON decisions) or transcript (a base model).")]
Judge = Annotated[str, typer.Option(help="rules, or a chat system that judges the dialogues.")]
Partner = Annotated[str, typer.Option(help="The system on the other side, or 'initial': the policy as it was at the beginning.")]
Reward = Annotated[Optional[Path], typer.Option(help="A file of reward settings, as notebook 08 writes it (default: the paper's).")]
From = Annotated[Optional[Path], typer.Option(help="A judged run of the policy: its scores per dimension are where the capability filter begins.")]
CasesToTrain = Annotated[Optional[int], typer.Option(min=1, help="Train on so many cases (default: all that are not held out).")]
HeldOut = Annotated[int, typer.Option(min=0, help="Hold out the first N cases of the benchmark, and every case of the same people.")]
Steps = Annotated[int, typer.Option(min=1, help="Optimiser steps in all; a finished training goes on with more.")]
Group = Annotated[int, typer.Option(min=2, help="Dialogues of one case (G).")]
Rubric = Annotated[Optional[Path], typer.Option(help="Rubric file (default: the one that comes with anthrolab).")]
Set = Annotated[
    Optional[list[str]],
    typer.Option("--set", help="NAME=VALUE of any other setting of anthrolab/training/grpo/settings.py, e.g. learning_rate=1e-5, beta=0, skills=none."),
]


@app.command()
def train(
    policy: Policy,
    out: Out,
    kind: Kind = "chat",
    judge: Judge = "rules",
    partner: Partner = "gemma-3-270m",
    reward: Reward = None,
    capability_from: From = None,
    cases: CasesToTrain = None,
    held_out_cases: HeldOut = 0,
    steps: Steps = 20,
    group: Group = 4,
    seed: Annotated[int, typer.Option(help="Seed of cases and draws.")] = 1,
    settings: Set = None,
    systems: Systems = None,
    cards: Cards = None,
    rubric: Rubric = None,
    cache: Cache = None,
    max_cost: MaxCost = None,
) -> None:
    """Run the gates, then train. The same command goes on after a kill.

    Example: anthrolab grpo train --policy runs/sft/tuned --out runs/grpo --held-out-cases 12 --steps 20
    """
    from anthrolab.training.grpo.train import Files
    from anthrolab.training.grpo.train import train as learn

    chosen = _settings(settings, policy, out, kind, judge, partner, reward, capability_from, cases, held_out_cases, steps, group, seed)
    done = learn(chosen, say, files=Files(systems, cards, rubric), effort=effort(out, cache, max_cost))
    print_gates(done.manifest.get("gates", []))
    typer.echo(done.tuned)


@app.command()
def preflight(
    policy: Policy,
    out: Out,
    kind: Kind = "chat",
    judge: Judge = "rules",
    partner: Partner = "gemma-3-270m",
    reward: Reward = None,
    capability_from: From = None,
    cases: CasesToTrain = None,
    held_out_cases: HeldOut = 0,
    steps: Steps = 20,
    group: Group = 4,
    seed: Annotated[int, typer.Option(help="Seed of cases and draws.")] = 1,
    settings: Set = None,
    systems: Systems = None,
    cards: Cards = None,
    rubric: Rubric = None,
    cache: Cache = None,
    max_cost: MaxCost = None,
) -> None:
    """Run the gates alone, over the first step's dialogues (which a training in the same folder takes over); exit code 2 if one fails."""
    from anthrolab.training.grpo.train import Files
    from anthrolab.training.grpo.train import preflight as look

    chosen = _settings(settings, policy, out, kind, judge, partner, reward, capability_from, cases, held_out_cases, steps, group, seed)
    seen = look(chosen, say, files=Files(systems, cards, rubric), effort=effort(out, cache, max_cost))
    print_gates(seen.as_rows())
    seen.require()


def _settings(
    given: Optional[list[str]], policy: str, out: Path, kind: str, judge: str, partner: str, reward: Optional[Path],
    capability_from: Optional[Path], cases: Optional[int], held_out_cases: int, steps: int, group: int, seed: int,
) -> "GRPOSettings":  # fmt: skip
    from anthrolab.training.grpo.settings import GRPOSettings

    named = {
        "policy": policy, "out": out, "kind": kind, "judge": judge, "partner": partner, "reward": reward, "capability_from": capability_from,
        "cases": cases, "held_out_cases": held_out_cases, "steps": steps, "group": group, "seed": seed,
    }  # fmt: skip
    return GRPOSettings.of(**named, **named_settings(given, named))
