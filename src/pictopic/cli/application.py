"""The program `pictopic`, to which the commands are added, and its common options."""

from __future__ import annotations

from typing import Annotated

import typer

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
