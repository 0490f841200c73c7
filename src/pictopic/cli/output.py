"""What commands have in common: misuse, progress, answers for machines."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


class MisuseError(ValueError):
    """The command was given something it cannot work with: exit code 2."""


@contextmanager
def misuse() -> Iterator[None]:
    """What is wrong inside is the user's input."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise MisuseError(str(error)) from error


def tell_warnings() -> None:
    """Warnings as one line each."""
    warnings.showwarning = lambda message, *_, **__: print(f"pictopic: {message}", file=sys.stderr)
    warnings.simplefilter("always", UserWarning)


@contextmanager
def progress_bars(unit: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each stage of a long job, on standard error: how much is done, how fast, and time left.

    Where standard error is no terminal, a line when a stage begins.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:>26}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def tell(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                if not console.is_terminal:
                    print(f"{stage} ({total} {unit})" if total > 1 else stage, file=sys.stderr, flush=True)
                tasks[stage] = bars.add_task(stage, total=total, rate="")
            bars.update(tasks[stage], completed=done, total=total)
            speed = next((task.speed for task in bars.tasks if task.id == tasks[stage]), None)
            if speed and total > 1:
                bars.update(tasks[stage], rate=f"{speed:,.0f} {unit}/s")

        yield tell


def answer(content: dict[str, Any], lines: list[str], as_json: bool) -> None:
    """Print an answer: for people, or as one JSON object."""
    typer.echo(json.dumps(content, ensure_ascii=False) if as_json else "\n".join(lines))
