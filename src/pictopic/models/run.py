"""Settings of one training run that are not options of the model, and its progress display."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pictopic.storage import is_remote, local

if TYPE_CHECKING:
    from pictopic.models.checkpoint import Checkpoint

_BAR_SECONDS = 0.2  # between two updates of the progress bar


class Status(NamedTuple):
    """Progress of a training run."""

    epoch: int  # the current epoch, counted from 1
    max_iter: int  # maximum number of epochs
    done: int  # documents seen in all epochs
    total: int  # maximum number of documents to see; `done` once training has ended
    loss: float  # -log p per document in the current epoch
    score: float | None  # held-out score of the last epoch, larger is better
    best_score: float | None


@dataclass
class Run:
    """Settings of one training run, the argument `run` of the estimators' `fit`.

    Parameters
    ----------
    checkpoint : Checkpoint or path, optional
        Where the run's state is saved and resumed from.  A resumed `fit` ends with the same parameters as if it had
        never stopped.
    max_minutes : float, optional
        Time limit, which may end training in the middle of an epoch; time before a resumed checkpoint counts.
    log_dir : path, optional
        Folder for TensorBoard curves (needs ``pip install 'pictopic[tensorboard]'``).
    raise_on_interrupt : bool, default=False
        Effect of Ctrl-C.  False: `fit` returns the best model so far.  True: `fit` writes a checkpoint and raises the
        KeyboardInterrupt.
    finish : bool, default=False
        Do not train, but return the best model of the checkpoint.
    report : callable, optional
        Called with `stage` and a `Status` after each minibatch and each epoch.
    stage : str, default=""
        Name of this training among several.

    Examples
    --------
    >>> from pictopic import DocNADE, Run
    >>> epochs = []
    >>> run = Run(report=lambda stage, status: epochs.append(status.epoch))
    >>> model = DocNADE(n_components=2, max_iter=3, random_state=0).fit([[2, 1], [1, 2]], run=run)
    >>> max(epochs), model.stop_reason_
    (3, 'max_iter')
    """

    checkpoint: Checkpoint | None = None
    max_minutes: float | None = None
    log_dir: str | os.PathLike[str] | None = None
    raise_on_interrupt: bool = False
    finish: bool = False
    report: Callable[[str, Status], None] | None = None
    stage: str = ""

    def __post_init__(self) -> None:
        if self.max_minutes is not None and not self.max_minutes > 0:
            raise ValueError(f"max_minutes must be more than 0, got {self.max_minutes}")
        if isinstance(self.checkpoint, str | os.PathLike):
            from pictopic.models.checkpoint import Checkpoint

            self.checkpoint = Checkpoint(os.fspath(self.checkpoint))

    def part(self, name: str) -> Run:
        """Return the run of one of several trainings, with checkpoints and curves in sub-folders of this name."""
        log_dir = None if self.log_dir is None else Path(self.log_dir, name)
        return replace(self, checkpoint=self.checkpoint and self.checkpoint.below(name), log_dir=log_dir, stage=name)

    def for_workers(self) -> Run:
        """Return the run for processes elsewhere, which cannot report to this one or be interrupted by its user."""
        checkpoint = self.checkpoint
        if checkpoint is not None and not is_remote(checkpoint.folder):
            checkpoint = replace(checkpoint, folder=Path(local(checkpoint.folder)).absolute())
        return replace(self, checkpoint=checkpoint, raise_on_interrupt=False, report=None)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer signals that raise exceptions (Ctrl-C) to the end of the block.

    A checkpoint of half a step could not be resumed to the same model.
    """
    if threading.current_thread() is not threading.main_thread():  # signals are handled elsewhere
        yield
        return
    received: list[tuple[int, Any]] = []
    current = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in current.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda *arguments: received.append(arguments))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for number, frame in received[:1]:
        handlers[number](number, frame)


class Progress:
    """Progress display: a bar or one line per epoch on standard error, and TensorBoard curves.

    Parameters
    ----------
    max_iter, n_documents : int
        Number of epochs, and of documents per epoch.
    verbose : int
        0 (nothing), 1 (bar) or 2 (lines).
    name : str
        Name of the model.
    log_dir : str or None
        Folder for TensorBoard; None for no curves.
    """

    def __init__(self, max_iter: int, n_documents: int, verbose: int, name: str, log_dir: str | None = None):
        self.max_iter, self.n_documents, self.verbose, self.name = max_iter, n_documents, verbose, name
        self.log_dir = log_dir
        self.bar: Any = None
        self.writer: Any = None
        self.figures = ""
        self._shown = self._from = 0.0
        self._first: int | None = None

    def __enter__(self) -> Progress:
        if self.log_dir is not None:
            self.writer = _summary_writer(self.log_dir)
        if self.verbose == 1:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TimeRemainingColumn())
            self.bar = Bar(*columns, console=Console(stderr=True))
            self.bar.start()
            self.task = self.bar.add_task(self.name, total=self.max_iter * self.n_documents)
        return self

    def advance(self, n_seen: int, loss: float) -> None:
        """Update the bar with the number of documents seen so far, and the current epoch's loss per document."""
        if self.bar is None:
            return
        now = time.monotonic()
        if self._first is None:
            self._first, self._from = n_seen, now
        if now - self._shown < _BAR_SECONDS:
            return
        self._shown = now
        rate = (n_seen - self._first) / max(now - self._from, 1e-9)
        figures = self.figures or f"nll/document {loss:.1f}"
        epoch = min(n_seen // max(self.n_documents, 1) + 1, self.max_iter)
        text = f"{self.name}: epoch {epoch}/{self.max_iter}  {figures}  {rate:,.0f} documents/s"
        self.bar.update(self.task, completed=n_seen, description=text)

    def report(self, epoch: int, history: dict[str, list[float]]) -> None:
        """Show a finished epoch."""
        parts = [f"nll/word {history['nll'][-1]:.4f}"]
        if any(history["class_loss"]):
            parts.append(f"class loss {history['class_loss'][-1]:.4f}")
        if history["validation_score"]:
            parts.append(f"validation {history['validation_score'][-1]:.4f}")
        self.figures = "  ".join(parts)
        if self.writer is not None:
            for name, values in history.items():
                if values:
                    self.writer.add_scalar(name, values[-1], epoch)
        if self.bar is not None:
            self.bar.update(self.task, completed=epoch * self.n_documents,
                            description=f"{self.name}: epoch {epoch}/{self.max_iter}  {self.figures}")  # fmt: skip
        elif self.verbose:
            print(f"{self.name}: epoch {epoch}  {self.figures}", file=sys.stderr)

    def __exit__(self, *exc: object) -> None:
        if self.bar is not None:
            self.bar.stop()
        if self.writer is not None:
            self.writer.close()


def _summary_writer(log_dir: str) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ImportError("log_dir needs TensorBoard: pip install 'pictopic[tensorboard]'") from None
    return SummaryWriter(log_dir)
