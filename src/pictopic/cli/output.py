"""What commands have in common: misuse, progress, answers for machines."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import typer

_WORKERS = 2
JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]

CLUSTER = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Work on a Ray cluster: its address, as host:6379, or auto for the one of RAY_ADDRESS or a local one.",
    ),
]

WORKERS = Annotated[int | None, typer.Option(min=1, help="Processes of the cluster that learn together.  [2]")]


class MisuseError(ValueError):
    """The command was given something it cannot work with: exit code 2."""


@contextmanager
def misuse() -> Iterator[None]:
    """What is wrong inside is the user's input."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise MisuseError(str(error)) from error


@contextmanager
def cluster_workers(address: str | None) -> Iterator[Any]:
    """A build's workers on a cluster; None without an address, for processes of this machine."""
    if address is None:
        yield None
        return
    from pictopic.cluster.connection import connected
    from pictopic.cluster.workers import RayWorkers

    with connected(address) as ray:
        yield RayWorkers(ray)


def trainer(name: str, address: str | None, workers: int | None, **options: Any) -> Callable[..., Any] | None:
    """A function of `pictopic.cluster.training`; None without an address, for this process."""
    if address is None:
        if workers is not None:
            raise ValueError("--workers is for a cluster: name one with --cluster, or start one with --cluster auto")
        return None
    from pictopic.cluster import training

    return partial(getattr(training, name), address=address, workers=workers or _WORKERS, **options)


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
