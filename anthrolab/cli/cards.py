"""Verbs about cards."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Optional

import typer

from anthrolab.cli.options import Cache, Deadline, MaxCost, Systems, effort, say, side
from anthrolab.errors import AnthrolabError

app = typer.Typer(no_args_is_help=True, help="Check, draft, import and export cards; write their JSON Schemas and the gold dialogues.")


@app.command("check")
def cards_check(folder: Annotated[Path, typer.Argument(help="Folder with personas/, scenarios/, bindings.yaml.")]) -> None:
    """Check every card of a folder, alone and against each other, and play its gold dialogues.

    One line per problem with file or card, field and fix; exit code 2 if there is one.

    Example: anthrolab cards check data
    """
    from anthrolab.cards.library import FOLDERS, CardError, load_library
    from anthrolab.cards.lint import lint
    from anthrolab.cards.skill import load_skills
    from anthrolab.judging.testable import untestable
    from anthrolab.runtime.dialogue import Dialogue
    from anthrolab.runtime.written import WrittenError, load_gold
    from anthrolab.yaml_files import suggest

    library = load_library(folder)
    if (folder / "skills").is_dir():
        load_skills(folder / "skills")
    problems = [f"{folder}: {finding}" for finding in (*lint(library), *untestable(library.personas))]
    for inside in sorted(f.name for f in folder.iterdir() if f.is_dir() and f.name not in FOLDERS and not f.name.startswith(".")):
        problems.append(f"{folder / inside}: is not read{suggest(inside.lower(), FOLDERS)}; rename it or put it elsewhere")
    gold: dict[str, Dialogue] = {}
    try:
        gold = load_gold(folder, library)
    except WrittenError as e:
        problems += e.problems
    if problems:
        raise CardError(problems)
    typer.echo(
        f"{folder}: {len(library.personas)} personas, {len(library.scenarios)} scenarios, {len(library.bindings)} bindings, "
        f"{len(library.memories)} memories, {len(library.series)} series, {len(gold)} gold dialogues: all good"
    )


@app.command("schema")
def cards_schema(out: Annotated[Path, typer.Option(help="Folder for the *.schema.json files.")] = Path("data/schemas")) -> None:
    """Write the JSON Schemas of the cards, for completion and checking in editors.

    Example: anthrolab cards schema --out data/schemas
    """
    from anthrolab.cards.schema import write_schemas

    for path in write_schemas(out):
        typer.echo(path)


@app.command("draft")
def cards_draft(
    writer: Annotated[str, typer.Option(help="The chat system that writes.")],
    out: Annotated[Path, typer.Option(help="Folder for the cards; the same command goes on in it.")],
    personas: Annotated[int, typer.Option(help="Personas to have.")] = 261,
    scenarios: Annotated[int, typer.Option(help="Scenarios to have.")] = 334,
    bindings: Annotated[Optional[int], typer.Option(help="Directed pairs (default: 400 to 334 scenarios, as in the paper).")] = None,
    quotas: Annotated[Optional[Path], typer.Option(help="YAML file of other shares (default: categories as in the paper's Table 1, people about as in data/).")] = None,
    seed: Annotated[int, typer.Option(help="Another plan with the same shares.")] = 0,
    attempts: Annotated[int, typer.Option(help="Drafts of one card before its slot is left open.")] = 3,
    systems: Systems = None,
    cache: Cache = None,
    max_cost: MaxCost = None,
    deadline: Deadline = 60,
) -> None:
    """Have a model draft personas and scenarios to quotas; a draft that the linter or its quota refuses comes again with the reasons.

    Exit code 1 if a card is still to be had, 2 if the writer cannot be asked. What became of every draft: OUT/.drafting/report.json.

    Example: anthrolab cards draft --writer qwen-72b --out pool --personas 20 --scenarios 24
    """
    from anthrolab.loop.drafting.drafting import draft_cards

    counts = draft_cards(
        out, writer, personas=personas, scenarios=scenarios, bindings=bindings, quotas_file=quotas, seed=seed, attempts=attempts,
        systems_file=systems, effort=effort(out, cache, max_cost, deadline), progress=say,
    )  # fmt: skip
    if not counts.complete:
        raise typer.Exit(1)


@app.command("import")
def cards_import(
    path: Annotated[Path, typer.Argument(help="A Character Card (.json, .png), or a folder in AnthroDial's layout.")],
    to: Annotated[Path, typer.Option("--to", help="Folder of cards; what is not whole goes into its drafts/.")],
) -> None:
    """Import cards of other formats. Nothing is invented or overwritten; every repair is a line on stderr.

    Example: anthrolab cards import nurse.png --to my-cards
    """
    from anthrolab.cards.exchange.verbs import import_into

    _written(*import_into(path, to))


@app.command("export")
def cards_export(
    source: Annotated[Path, typer.Argument(help="A folder of cards, or one persona's .yaml.")],
    out: Annotated[Path, typer.Option(help="New folder; for one persona the .json or .png file.")],
    form: Annotated[str, typer.Option("--format", help="anthrodial, v2, v3, or png (a V3 image with the V2 card in it).")],
    image: Annotated[Optional[Path], typer.Option(help="PNG to put the card into (default: plain grey).")] = None,
) -> None:
    """Export cards for AnthroDial's own code or as Character Cards.

    Example: anthrolab cards export data --format anthrodial --out out
    """
    from anthrolab.cards.exchange.verbs import FORMATS, export_to

    if form not in FORMATS:
        raise AnthrolabError(f"--format {form}: give {', '.join(FORMATS)}")
    _written(*export_to(source, FORMATS[form], out, image))


@app.command("gold")
def cards_gold(
    out: Annotated[Path, typer.Option(help="File for the dialogues, one JSON object a line.")],
    folder: Annotated[Optional[Path], typer.Option("--cards", help="Folder of cards with gold/ (default: data/).")] = None,
    role: Annotated[str, typer.Option(help="Evaluated side: a or b.")] = "a",
) -> None:
    """Write the gold dialogues as dialogue records, with every decision behind them.

    Example: anthrolab cards gold --out gold.jsonl --role b
    """
    from anthrolab.cards.library import default_cards_dir, load_library
    from anthrolab.files import write_atomic
    from anthrolab.runtime.written import load_gold

    cards = folder or default_cards_dir()
    found = load_gold(cards, load_library(cards)).values()
    if not found:
        raise AnthrolabError(f"{cards / 'gold'}: no gold dialogue here; name a folder of cards that has some")
    evaluated = side(role)
    write_atomic(out, "".join(d.model_copy(update={"evaluated_role": evaluated, "dialogue_id": f"{d.dialogue_id}-{evaluated}"}).to_line() + "\n" for d in found))
    typer.echo(out)


def _written(paths: Iterable[Path], warnings: Iterable[str]) -> None:
    """Warnings for the person who waits, on stderr; the files on stdout."""
    for warning in warnings:
        say(warning)
    for path in paths:
        typer.echo(path)
