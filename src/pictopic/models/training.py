"""The training loop: epochs, early stopping, history, progress."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from pictopic.models.parameters import Theta


class Trainer(Protocol):
    """What the loop needs: a step on a minibatch, and the parameters to be used."""

    def learn(self, documents: np.ndarray, seed: int) -> tuple[float, float]:
        """One step; the sums of -log p(v) and -log p(y | v) before it."""

    def parameters(self) -> Any:
        """A copy of the parameters to be used."""


@dataclass
class Outcome:
    """What training came to."""

    theta: Theta
    n_iter: int
    best_score: float | None
    history: dict[str, list[float]] = field(default_factory=dict)


def train(
    trainer: Trainer,
    n_documents: int,
    n_words: float,
    n_labelled: int,
    *,
    max_iter: int,
    batch_size: int,
    n_iter_no_change: int,
    rng: np.random.RandomState,
    validate: Callable[[Any], float] | None = None,
    verbose: int = 0,
    name: str = "model",
) -> Outcome:
    """Run epochs over all documents in fresh random order until `max_iter` or no better validation score.

    Parameters
    ----------
    trainer : Trainer
    n_documents : int
        Documents are 0..n_documents-1 for the trainer.
    n_words, n_labelled : number
        What the history's losses are divided by: -log p(v) a word, -log p(y | v) a labelled document.
    max_iter : int
        Largest number of epochs.
    batch_size : int
        Documents a call of ``trainer.learn``.
    n_iter_no_change : int
        Stop after so many epochs without a better score; only with `validate`.
    rng : RandomState
        Draws the order of the documents and the seeds of the steps.
    validate : callable, optional
        Parameters -> score, larger is better.  The parameters of the best epoch are returned; without it, the last.
    verbose : int
        1: a progress bar; 2: a line an epoch.
    name : str
        For the progress bar.

    Returns
    -------
    Outcome
        After Ctrl-C, the best model so far (with a warning).
    """
    history: dict[str, list[float]] = {"nll": [], "class_loss": [], "validation_score": [], "seconds": []}
    best: tuple[float, int, Any] | None = None
    begin = time.perf_counter()
    epoch = 0
    with _Progress(max_iter, verbose, name) as report:
        try:
            for epoch in range(1, max_iter + 1):
                nll = class_loss = 0.0
                order = rng.permutation(n_documents)
                for start in range(0, n_documents, batch_size):
                    seed = int(rng.randint(2**31))
                    losses = trainer.learn(order[start : start + batch_size], seed)
                    nll, class_loss = nll + losses[0], class_loss + losses[1]
                history["nll"].append(nll / max(n_words, 1))
                history["class_loss"].append(class_loss / max(n_labelled, 1))
                history["seconds"].append(time.perf_counter() - begin)
                if not np.isfinite(nll + class_loss):
                    raise FloatingPointError(
                        f"the loss became {nll + class_loss} in epoch {epoch}; try a smaller learning_rate"
                    )
                if validate is not None:
                    theta = trainer.parameters()
                    score = validate(theta)
                    history["validation_score"].append(score)
                    if best is None or score > best[0]:
                        best = (score, epoch, theta)
                report(epoch, history)
                if best is not None and epoch - best[1] >= n_iter_no_change:
                    break
        except KeyboardInterrupt:
            kept = f"the model of epoch {best[1]}" if best else f"the model after {max(epoch - 1, 0)} epochs"
            warnings.warn(f"training of {name} was interrupted: keeping {kept}", stacklevel=3)
    if best is None:
        return Outcome(trainer.parameters(), epoch, None, history)
    return Outcome(best[2], epoch, best[0], history)


class _Progress:
    """Progress on standard error: nothing, a bar, or a line an epoch."""

    def __init__(self, max_iter: int, verbose: int, name: str):
        self.max_iter, self.verbose, self.name = max_iter, verbose, name
        self.bar: Any = None

    def __enter__(self) -> Callable[[int, dict[str, list[float]]], None]:
        if self.verbose == 1:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.bar = Progress(*columns, console=Console(stderr=True))
            self.bar.start()
            self.task = self.bar.add_task(self.name, total=self.max_iter)
        return self.report

    def report(self, epoch: int, history: dict[str, list[float]]) -> None:
        """Show the last epoch."""
        if not self.verbose:
            return
        parts = [f"{self.name}: epoch {epoch}", f"nll/word {history['nll'][-1]:.4f}"]
        if any(history["class_loss"]):
            parts.append(f"class loss {history['class_loss'][-1]:.4f}")
        if history["validation_score"]:
            parts.append(f"validation {history['validation_score'][-1]:.4f}")
        if self.bar is not None:
            self.bar.update(self.task, completed=epoch, description="  ".join(parts))
        else:
            import sys

            print("  ".join(parts), file=sys.stderr)

    def __exit__(self, *exc: object) -> None:
        if self.bar is not None:
            self.bar.stop()
