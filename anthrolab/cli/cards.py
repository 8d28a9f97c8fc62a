"""Verbs about cards."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Check persona, scenario and binding cards; export their JSON Schema.")


@app.command("check")
def cards_check(folder: Annotated[Path, typer.Argument(help="Folder with personas/, scenarios/, bindings.yaml.")]) -> None:
    """Check every card of a folder, alone and against each other, and play its gold dialogues.

    One line per problem with file or card, field and fix; exit code 2 if there is one.

    Example: anthrolab cards check data
    """
    from anthrolab.cards.library import CardError, load_library
    from anthrolab.cards.lint import lint
    from anthrolab.cards.skill import load_skills
    from anthrolab.judging.testable import untestable
    from anthrolab.runtime.written import load_gold

    library = load_library(folder)
    if (folder / "skills").is_dir():
        load_skills(folder / "skills")
    if found := [str(finding) for finding in (*lint(library), *untestable(library.personas))]:
        raise CardError([f"{folder}: {line}" for line in found])
    gold = load_gold(folder, library)
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
