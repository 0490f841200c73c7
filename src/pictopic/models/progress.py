"""What is seen of a training run: a progress bar, lines, or curves in TensorBoard."""

from __future__ import annotations

import sys
import time
from typing import Any

_EVERY = 0.2  # seconds between two changes of the bar


class Progress:
    """Progress on standard error (nothing, a bar, or one line per epoch), and to TensorBoard if a folder is given.

    Parameters
    ----------
    max_iter, n_documents : int
        Epochs, and documents an epoch.
    verbose : int
        0, 1 (bar) or 2 (lines).
    name : str
        What is being trained.
    log_dir : str or None
        Folder for TensorBoard.
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
        """So many documents have been seen so far; the loss of this epoch, a document."""
        if self.bar is None:
            return
        now = time.monotonic()
        if self._first is None:
            self._first, self._from = n_seen, now
        if now - self._shown < _EVERY:
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
