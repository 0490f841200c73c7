"""The commands."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Learn topics from pictures, their tags and their classes; then classify, tag, find and explain.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        import pictopic

        typer.echo(f"pictopic {pictopic.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option(help="Show where in the code an error came from.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    context.obj = {"debug": debug}


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the model and the report.")] = Path("pictopic-demo"),
    seed: Annotated[int, typer.Option(help="Another number makes up other pictures.")] = 0,
) -> None:
    """Learn from a small built-in collection of tagged pictures and say what it found.

    Takes a few seconds, needs no data and no network.  Writes OUT/report.md and the model, OUT/model.
    """
    from pictopic.demo import run

    typer.echo(run(out, seed))


def main() -> None:
    """Run a command: exit code 2 for misuse, 1 for failure, and one line that says what is wrong."""
    debug = "--debug" in sys.argv
    try:
        app(standalone_mode=True)
    except (ValueError, OSError) as error:
        if debug:
            traceback.print_exc()
        else:
            print(f"pictopic: {error}", file=sys.stderr)
        sys.exit(1)
