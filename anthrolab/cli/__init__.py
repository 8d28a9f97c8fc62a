"""The command line: one function call per verb."""

import os
import sys
from typing import NoReturn

import typer

from anthrolab.cli import cards, chat, grpo, judging, loop, machine, play, show, training
from anthrolab.errors import AnthrolabError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Run, judge, measure and report models that chat like people (AnthroDial).",
)
for _verbs in (play.app, chat.app, judging.app, show.app):
    app.add_typer(_verbs)
app.add_typer(cards.app, name="cards")
app.add_typer(loop.app, name="loop")
app.add_typer(training.app, name="sft")
app.add_typer(grpo.app, name="grpo")
app.add_typer(machine.app)

INTERRUPTED = 130
"""What typer makes of Ctrl-C."""


def main() -> None:
    """The entry point: mendable errors are one line on stderr and exit code 2, Ctrl-C is 130.

    Output is UTF-8 whatever the locale; bytes of a path that the locale could not read go out as they came in.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    try:
        app()
    except AnthrolabError as e:
        sys.stderr.write(f"error: {e}\n")
        sys.exit(2)
    except OSError as e:
        if e.filename is not None:  # a file of ours would have come as AnthrolabError
            raise
        _no_output(e)
    except SystemExit as e:
        if e.code == INTERRUPTED:
            sys.stderr.write("stopped; the same command goes on from here\n")
        try:
            sys.stdout.flush()
        except OSError as unwritten:
            _no_output(unwritten)
        raise


def _no_output(error: OSError) -> NoReturn:
    """End without another try at flushing a standard output that cannot be written."""
    if not isinstance(error, BrokenPipeError):
        sys.stderr.write(f"error: standard output cannot be written ({error.strerror}); free some space or write elsewhere\n")
    sys.stderr.flush()
    os._exit(1 if isinstance(error, BrokenPipeError) else 2)
