"""The command that shows everything on made-up pictures: demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pictopic.cli.application import app


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
    from pictopic.demo.demonstration import run
    from pictopic.processes import lock_beside

    with stoppable(), lock_beside(out), progress_bars("pictures") as progress:
        text = run(out, seed, pictures, progress, training_report(progress))
    typer.echo(text)
