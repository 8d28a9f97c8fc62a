"""Verbs that print tables, reports and notebooks."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from anthrolab.cli.options import Cards, RubricFile

app = typer.Typer()


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
    partial: Annotated[
        bool, typer.Option("--partial", help="Of what is there so far, also while the run goes on; nobody is asked.")
    ] = False,
    rubric: RubricFile = None,
    cards: Cards = None,
) -> None:
    """Render one self-contained HTML report of judged runs beside the published numbers.

    Example: anthrolab report runs/quick --out reports/quick
    """
    from anthrolab.show.partial import write_partial_report
    from anthrolab.show.report import write_report

    write = write_partial_report if partial else write_report
    typer.echo(write(runs, out, rubric_file=rubric, cards_dir=cards))


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
