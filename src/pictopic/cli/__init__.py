"""The commands.  They hold no logic: what they print comes from the package."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
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
    out: Annotated[Path, typer.Option(help="Folder for the pictures, the model and the report.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Another number makes up other pictures.")] = 0,
    pictures: Annotated[int, typer.Option(min=40, help="How many pictures.")] = 400,
) -> None:
    """Learn from made-up pictures of scenes, and say how good that is.

    Takes one or two minutes, needs no data and no network.  Writes OUT/report.html, to look at in a browser, the model
    OUT/model, and OUT/pictures.

    Example: pictopic demo --out demo
    """
    from pictopic.cli.output import misuse, progress_bars, training_report
    from pictopic.files import check_place

    with misuse():  # before all that takes long to load
        check_place(out, "a demonstration", "pictures")
        out.mkdir(exist_ok=True)
    from pictopic.cli.jobs import stoppable
    from pictopic.demo import run
    from pictopic.files import lock_beside

    with stoppable(), lock_beside(out), progress_bars("pictures") as progress:
        text = run(out, seed, pictures, progress, training_report(progress))
    typer.echo(text)


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


from pictopic.cli import corpus as _corpus  # noqa: E402, F401 - their commands join `app`
from pictopic.cli import fit as _fit  # noqa: E402, F401
from pictopic.cli import model as _model  # noqa: E402, F401
from pictopic.cli import pretrain as _pretrain  # noqa: E402, F401
from pictopic.cli import reproduce as _reproduce  # noqa: E402, F401
from pictopic.cli import serve as _serve  # noqa: E402, F401
