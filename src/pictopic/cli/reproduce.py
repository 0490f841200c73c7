"""Commands for the paper's experiments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pictopic.cli.application import app
from pictopic.cli.output import JSON, MisuseError, answer, misuse
from pictopic.paper.datasets.layouts import LAYOUTS

_SUMMARIES = {
    "labelme": "Classes and tags of scenes (section 6.1): SupDocNADE, DocNADE and what they are compared with.",
    "uiuc-sports": "Classes and tags of sports (section 6.1): SupDocNADE, DocNADE and what they are compared with.",
    "mirflickr": "Several classes a picture (section 6.2): SupDeepDocNADE, its layers, pretraining and tag weights.",
    "corel5k": "Tags of photographs, and how much their weight matters.",
    "text": "Perplexity, retrieval and classification on text, beside LDA.",
}

group = typer.Typer(
    help="Work out the paper's tables and figures again, on data that you have.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(group, name="reproduce")


def _help(name: str) -> str:
    """Return the help of a command: its summary, and the layout of the data with line breaks."""
    layout = LAYOUTS[name].help_text().replace("\n\n", "\n\n\b\n")
    return (
        f"{_SUMMARIES[name]}\n\nWrites OUT/results.json, OUT/results.md and figures.  Ctrl-C stops it and writes what "
        f"there is; started again, it goes on.\n\n\b\n{layout}\n\n\b\nExample:\n"
        f"  pictopic reproduce {name} --data DIR --out results/{name} --budget 30"
    )


def _add(name: str) -> None:
    @group.command(name, help=_help(name), short_help=_SUMMARIES[name])
    def command(
        data: Annotated[Path, typer.Option("--data", help="Folder of the data set, or of several.")],
        out: Annotated[Path, typer.Option("--out", help="Folder for results, figures and what is done already.")],
        budget: Annotated[
            float | None, typer.Option(min=0.001, help="Minutes: everything is scaled down to them.  [no limit]")
        ] = None,
        jobs: Annotated[int, typer.Option(help="Processes; -1: one for each core.")] = -1,
        seed: Annotated[int, typer.Option(help="Another number draws other splits and starts elsewhere.")] = 0,
        as_json: JSON = False,
    ) -> None:
        _reproduce(name, data, out, budget, jobs, seed, as_json)


for _name in LAYOUTS:
    _add(_name)


def _reproduce(name: str, data: Path, out: Path, budget: float | None, jobs: int, seed: int, as_json: bool) -> None:
    from pictopic.paper.datasets.layouts import LayoutError
    from pictopic.paper.experiments.document import console_table
    from pictopic.paper.experiments.reproduce import reproduce

    def log(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    try:
        results = reproduce(name, data, out, budget=budget, n_jobs=jobs, random_state=seed, log=log)
    except LayoutError as error:
        raise MisuseError(str(error)) from error
    except KeyboardInterrupt:
        print("pictopic: stopped; the same command goes on from here", file=sys.stderr)
        raise typer.Exit(130) from None
    lines = [line for table in results.tables for line in (console_table(table), "")]
    lines += [*results.notes, f"written to {out / 'results.md'}"]
    answer(results.to_dict(), lines, as_json)


@group.command("document")
def document(
    results: Annotated[list[Path], typer.Argument(help="Folders of experiments, or their results.json.")],
    out: Annotated[Path, typer.Option("--out", help="The Markdown file.")] = Path("docs/results.md"),
) -> None:
    """Write one document from the results of several experiments; curves are drawn beside it.

    Pictures are left out: most collections do not allow to publish them.

    Example: pictopic reproduce document results/labelme results/corel5k --out docs/results.md
    """
    from pictopic.paper.experiments.document import document as write

    with misuse():
        path = write(results, out)
    typer.echo(f"written to {path}")
