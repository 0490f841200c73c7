"""Shared parts of the commands: options, misuse, progress, answers as text or JSON."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

_WORKERS = 2  # of a cluster, by default
_BAR_SECONDS, _LINE_SECONDS = 0.1, 10.0  # between two updates of a bar, and two lines if there is no terminal
_TRAININGS = {"trial": "trial training", "final": "final training"}
JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]

LABEL_COLUMN = Annotated[str, typer.Option(help="Column of the classes.")]
TAGS_COLUMN = Annotated[str, typer.Option(help="Column of the tags.")]

CLUSTER = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Work on a Ray cluster: its address, as host:6379, or auto for the one of RAY_ADDRESS or a local one.",
    ),
]

WORKERS = Annotated[int | None, typer.Option(min=1, help="Processes of the cluster that learn together.  [2]")]


class MisuseError(ValueError):
    """Invalid input of the user: exit code 2."""


@contextmanager
def misuse() -> Iterator[None]:
    """Turn errors of the block into misuse, except unreadable pictures, which are failures."""
    try:
        yield
    except (ValueError, OSError) as error:
        from pictopic.words.pictures import PictureError

        if isinstance(error, PictureError):
            raise
        raise MisuseError(str(error)) from error


@contextmanager
def cluster_workers(address: str | None) -> Iterator[Any]:
    """Provide workers on a cluster for a build; without an address None, for processes of this machine."""
    if address is None:
        yield None
        return
    from pictopic.cluster.connection import connected
    from pictopic.cluster.workers import RayWorkers

    with connected(address) as ray:
        yield RayWorkers(ray)


def cluster_options(address: str | None, workers: int | None) -> dict[str, Any] | None:
    """Return options of the functions in `pictopic.cluster.training`; None to train in this process."""
    if address is not None:
        return {"address": address, "workers": workers or _WORKERS}
    if workers is not None:
        raise ValueError("--workers is for a cluster: name one with --cluster, or start one with --cluster auto")
    return None


def print_warnings() -> None:
    """Print each warning as one line."""
    warnings.showwarning = lambda message, *_, **__: print(f"pictopic: {message}", file=sys.stderr)
    warnings.simplefilter("always", UserWarning)


class Bars:
    """Progress bars on standard error, one per stage of a long job, with speed and time left.

    If standard error is not a terminal, a line is printed when a stage begins, and one every ten seconds.
    """

    def __init__(self, unit: str):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description:>26}"), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"), TimeRemainingColumn(), TextColumn("{task.fields[detail]}"),
        )  # fmt: skip
        self.unit, self.terminal = unit, console.is_terminal
        self.bars = Progress(*columns, console=console, disable=not self.terminal)
        self.tasks: dict[str, Any] = {}
        self.shown = 0.0
        self.begun: dict[str, tuple[float, int]] = {}  # when a stage began, and how much was already done
        self.ended: set[str] = set()

    def __call__(self, stage: str, done: int, total: int, detail: str = "") -> None:
        """Show how much of a stage is done."""
        now = time.monotonic()
        begins = stage not in self.begun or done < self.begun[stage][1]
        if begins:
            self.begun[stage] = (now, done)
            self.ended.discard(stage)
        if self.terminal:
            if begins or done >= total or now - self.shown >= _BAR_SECONDS:
                self.shown = now
                self._draw(stage, done, total, detail)
        elif begins:
            self.shown = now
            self._print(f"{stage} ({total} {self.unit})" if total > 1 and not detail else stage)
        elif stage not in self.ended and (now - self.shown >= _LINE_SECONDS or (detail and done >= total)):
            self.shown = now
            if done >= total:
                self.ended.add(stage)
            begin, before = self.begun[stage]
            left = (now - begin) * (total - done) / max(done - before, 1)
            time_left = f"{left / 60:.0f} min left" if left >= 90 else f"{left:.0f} s left"
            parts = [f"{stage}: {done / max(total, 1):.0%}", detail, time_left if done < total else ""]
            self._print(", ".join(part for part in parts if part))

    def _draw(self, stage: str, done: int, total: int, detail: str) -> None:
        if stage not in self.tasks:
            self.tasks[stage] = self.bars.add_task(stage, total=total, rate="", detail="")
        task = self.tasks[stage]
        self.bars.update(task, completed=done, total=total, detail=detail)
        speed = next((bar.speed for bar in self.bars.tasks if bar.id == task), None)
        if speed and total > 1:
            self.bars.update(task, rate=f"{speed:,.0f} {self.unit}/s")

    def _print(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


@contextmanager
def progress_bars(unit: str) -> Iterator[Bars]:
    """Show progress bars inside the block."""
    bars = Bars(unit)
    with bars.bars:
        yield bars


def training_report(bars: Bars) -> Callable[[str, Any], None]:
    """Return a `Run.report` that shows a training run as a stage, with epoch, loss and held-out score."""

    def report(stage: str, status: Any) -> None:
        detail = f"epoch {status.epoch}/{status.max_iter}"
        if status.loss == status.loss:  # not before the first step
            detail += f"  loss {status.loss:.4g}"
        if status.score is not None:
            detail += f"  held-out score {status.score:.4f} (best {status.best_score:.4f})"
        bars(_TRAININGS.get(stage, stage), status.done, status.total, detail)

    return report


def answer(content: dict[str, Any], lines: list[str], as_json: bool) -> None:
    """Print an answer as text, or as one JSON object."""
    typer.echo(json.dumps(content, ensure_ascii=False) if as_json else "\n".join(lines))
