"""Verbs about this machine and this program."""

from typing import Annotated, Optional

import typer

from anthrolab import __version__
from anthrolab.cli.options import Systems, say

app = typer.Typer()


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
        say(f"asking {entry.name} some twenty short questions (at most {LIMIT_S:g} s)")
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
