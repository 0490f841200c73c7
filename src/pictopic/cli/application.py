"""The program `pictopic`, to which the commands are added, and its common options."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from pictopic.cli.output import MisuseError

app = typer.Typer(
    help="Learn topics from pictures, their tags and their classes; then classify, tag, find and explain.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(print_it: bool) -> None:
    if print_it:
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


def main() -> None:
    """Run a command: exit code 2 for misuse, 1 for failure, and one line that says what is wrong."""
    try:
        app(standalone_mode=True)
    except (ValueError, OSError, RuntimeError, ImportError, ArithmeticError, MemoryError) as error:
        if "--debug" in sys.argv:
            traceback.print_exc()
        else:
            print(f"pictopic: {_one_line(error)}", file=sys.stderr)
        sys.exit(2 if isinstance(error, MisuseError) else 1)


def _one_line(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "not enough memory: give it fewer or smaller pictures, or fewer --jobs"
    return " ".join(str(error).split()) or type(error).__name__
