"""Verbs of fine-tuning."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer

from anthrolab.cli.options import Cache, Cards, MaxCost, Skills, Systems, effort, named_settings, print_gates, say
from anthrolab.errors import AnthrolabError

if TYPE_CHECKING:
    from anthrolab.training.preflight import Preflight
    from anthrolab.training.settings import SFTSettings

app = typer.Typer(no_args_is_help=True, help="Fine-tune a model on decisions, and put it back to work as a system.")

DataDir = Annotated[Path, typer.Option(help="Folder with train.jsonl and held_out.jsonl.")]
Base = Annotated[str, typer.Option(help="gemma3-270m, a .gguf file, a folder of transformers, or a name on its hub.")]
Set = Annotated[
    Optional[list[str]],
    typer.Option("--set", help="NAME=VALUE of any other setting of anthrolab/training/settings.py, e.g. lora_rank=8, lora_rank=null."),
]
Backend = Annotated[str, typer.Option(help="plain, or unsloth (a GPU, and an environment of its own).")]
Training = Annotated[Path, typer.Argument(help="Folder of a finished training.")]


@app.command()
def data(
    out: Annotated[Path, typer.Option(help="Folder for train.jsonl, held_out.jsonl and the data card.")],
    held_out: Annotated[str, typer.Option(help="Share of the samples that teach nothing (0.2), or bindings with commas between; whole persona pairs.")] = "0.2",
    held_out_cases: Annotated[Optional[int], typer.Option(min=1, help="Hold out the bindings of the first N cases of `anthrolab run --cases N` instead.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    cards: Cards = None,
    skills: Skills = None,
) -> None:
    """Make training data of the hand-written dialogues (both sides, all decisions); those of a loop come from `anthrolab loop sft`.

    Take the skills that the model will be run with. Example: anthrolab sft data --out runs/sft/data --held-out-cases 12
    """
    from anthrolab.bench.cases import select_cases
    from anthrolab.bench.settings import NO_SKILLS, skills_folder
    from anthrolab.cards.library import default_cards_dir, load_library
    from anthrolab.cards.skill import load_skills
    from anthrolab.loop.sft.pool import PoolSettings, gold_pool

    folder = cards or default_cards_dir()
    library = load_library(folder)
    held: float | tuple[str, ...]
    if held_out_cases is not None:
        held = tuple(case.binding for case in select_cases(library, held_out_cases))
    else:
        try:
            held = float(held_out)
        except ValueError:
            held = tuple(part.strip() for part in held_out.split(",") if part.strip())
    texts = () if skills == NO_SKILLS else load_skills(skills_folder(skills, cards))
    pool = gold_pool(out, library, folder, PoolSettings(held_out=held, seed=seed), skills=texts)
    say(f"{out}: {pool.train} samples to train, {pool.held_out} held out, of {pool.dialogues} dialogues")
    if not pool.train:
        raise AnthrolabError("--held-out: leaves nothing to train on; give a smaller share")


@app.command()
def train(
    data: DataDir,
    out: Annotated[Path, typer.Option(help="Folder of this training.")],
    base: Base = "gemma3-270m",
    limit: Annotated[Optional[int], typer.Option(min=1, help="Train on so many samples, spread over the dialogues (default: all).")] = None,
    epochs: Annotated[float, typer.Option(help="How often every sample is seen.")] = 1.0,
    learning_rate: Annotated[float, typer.Option(help="Highest learning rate.")] = 5e-4,
    backend: Backend = "plain",
    seed: Annotated[int, typer.Option(help="Seed of adapter and order.")] = 1,
    settings: Set = None,
) -> None:
    """Run the gates, then fine-tune with LoRA on the completions only. The same command goes on after a kill.

    Example: anthrolab sft train --data sft/gold --out tuned/gemma --limit 600 --epochs 2
    """
    from anthrolab.training.sft import train as fine_tune

    chosen = _settings(settings, data=data, out=out, base=base, limit=limit, epochs=epochs, learning_rate=learning_rate, backend=backend, seed=seed)
    done = fine_tune(chosen, say)
    print_gates(done.manifest.get("gates", []))
    before, after = (done.manifest.get(f"held_out_loss_{when}") for when in ("before", "after"))
    if before is not None:
        typer.echo(f"held-out loss {before} to {after}")
    typer.echo(done.tuned)


@app.command()
def preflight(
    data: DataDir,
    base: Base = "gemma3-270m",
    limit: Annotated[Optional[int], typer.Option(min=1, help="Look at so many samples (default: all).")] = None,
    model: Annotated[bool, typer.Option("--model/--no-model", help="Run the gates that load the model too.")] = True,
    backend: Backend = "plain",
    settings: Set = None,
) -> None:
    """Run the gates without training; exit code 2 if one fails.

    Example: anthrolab sft preflight --data sft/gold --no-model
    """
    from anthrolab.training.sft import preflight as look

    seen: Preflight = look(_settings(settings, data=data, out=Path(), base=base, limit=limit, backend=backend), with_model=model)
    print_gates(seen.as_rows())
    seen.require()


@app.command("export")
def export_training(
    training: Training,
    gguf: Annotated[bool, typer.Option("--gguf/--no-gguf", help="Write a GGUF for the embedded server too.")] = True,
    base_gguf: Annotated[Optional[Path], typer.Option(help="GGUF of the base model (default: the base, if it is one).")] = None,
    quantize: Annotated[str, typer.Option(help="Q8_0 or F16.")] = "Q8_0",
    dtype: Annotated[str, typer.Option(help="Of the merged folder: float32 or bfloat16.")] = "float32",
) -> None:
    """Write the tuned model as one folder (for vLLM and transformers serve) and as a GGUF (for the embedded server).

    Example: anthrolab sft export tuned/gemma
    """
    from anthrolab.training.merge import export

    if dtype not in ("float32", "bfloat16"):
        raise AnthrolabError(f"--dtype {dtype}: give float32 or bfloat16")
    made = export(
        training, dtype="float32" if dtype == "float32" else "bfloat16", gguf=gguf, base_gguf=base_gguf,
        quantize=_quantize(quantize),
    )  # fmt: skip
    typer.echo(made.folder)
    if made.gguf is not None:
        typer.echo(made.gguf)


@app.command("export-base")
def export_untouched(
    out: Annotated[Path, typer.Argument(help="The .gguf file to write.")],
    base: Base = "gemma3-270m",
    quantize: Annotated[str, typer.Option(help="Q8_0 or F16.")] = "Q8_0",
) -> None:
    """Write the untouched base as a GGUF that answers chats, so that it can be asked what the tuned model is asked.

    Example: anthrolab sft export-base runs/sft/base.gguf
    """
    from anthrolab.training.merge import export_base

    typer.echo(export_base(base, out, quantize=_quantize(quantize)))


@app.command("add-system")
def add(
    name: Annotated[str, typer.Argument(help="Name of the new system.")],
    systems: Annotated[Path, typer.Option("--systems", help="Systems file to append to; begun as a copy of data/systems.yaml.")],
    partner: Annotated[str, typer.Option(help="Who plays the other side.")],
    gguf: Annotated[Optional[Path], typer.Option(help="A GGUF for the embedded server.")] = None,
    endpoint: Annotated[Optional[str], typer.Option(help="Or the address of a server.")] = None,
    model: Annotated[Optional[str], typer.Option(help="The server's name for the model.")] = None,
    server: Annotated[str, typer.Option(help="vllm, or openai (transformers serve).")] = "vllm",
) -> None:
    """Append a tuned model to a systems file, so that `anthrolab run --system NAME` works.

    Example: anthrolab sft add-system gemma-tuned --systems systems.yaml --gguf tuned/gemma/gemma.gguf --partner gemma-3-270m
    """
    from anthrolab.training.entry import add_system

    if server not in ("vllm", "openai"):
        raise AnthrolabError(f"--server {server}: give vllm or openai")
    add_system(
        systems, name, partner=partner, gguf=gguf, endpoint=endpoint, model=model, server="vllm" if server == "vllm" else "openai"
    )
    typer.echo(f"{systems}: {name}")


@app.command()
def contract(
    system: Annotated[str, typer.Option(help="A chat system of the systems file.")],
    data: Annotated[Path, typer.Option(help="A JSONL file of samples, e.g. held_out.jsonl.")],
    out: Annotated[Path, typer.Option(help="Folder of this check.")],
    limit: Annotated[Optional[int], typer.Option(min=1, help="Ask so many samples (default: all).")] = None,
    seed: Annotated[int, typer.Option(help="Which samples a limit takes, and the server's draw.")] = 0,
    structured: Annotated[bool, typer.Option("--structured", help="With the server's structured output.")] = False,
    systems: Systems = None,
    cache: Cache = None,
    max_cost: MaxCost = None,
) -> None:
    """How often a system keeps the JSON contract on held-out asks, without help from a grammar. Exit code 1 if some got no answer.

    Example: anthrolab sft contract --system gemma-tuned --data sft/gold/held_out.jsonl --out checks/tuned --systems systems.yaml
    """
    from anthrolab.training.contract import check_contract
    from anthrolab.training.contract_result import lines_of

    result = check_contract(
        system, data, out, limit=limit, seed=seed, structured=structured, systems_file=systems,
        effort=effort(out, cache, max_cost), progress=say,
    )  # fmt: skip
    for line in lines_of(result):
        typer.echo(line)
    if result.missing:
        raise typer.Exit(1)


def _quantize(name: str) -> Literal["Q8_0", "F16"]:
    if name == "Q8_0":
        return "Q8_0"
    if name == "F16":
        return "F16"
    raise AnthrolabError(f"--quantize {name}: give Q8_0 or F16")


def _settings(given: Optional[list[str]], **named: Any) -> "SFTSettings":
    """The named options, and NAME=VALUE of others."""
    from anthrolab.training.settings import SFTSettings

    return SFTSettings.of(**named, **named_settings(given, named))
