"""The training loop: epochs, early stopping, history, checkpoints, progress."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pictopic.models.run import Progress, Run, Status, uninterrupted

if TYPE_CHECKING:  # the shallow models train without torch
    from torch import Tensor

    from pictopic.models.checkpoint import Checkpoint

T = TypeVar("T")

_AHEAD = 2  # minibatches read in advance
_SHOWN_ROWS = 8  # rows of a bad minibatch that an error names


class Trainer(ABC):
    """Interface between the training loop and a model: steps on minibatches, parameters, state."""

    reads_ahead = False  # whether `load` is slow enough to run in the background

    def load(self, documents: np.ndarray, seed: int) -> tuple[Any, ...]:
        """Read a minibatch; return the arguments of `learn`."""
        return documents, seed

    @abstractmethod
    def learn(self, *minibatch: Any) -> tuple[float, float]:
        """Do one step; return the sums of -log p(v) and -log p(y | v) before it."""

    @abstractmethod
    def parameters(self) -> Any:
        """Return a copy of the parameters of the model: averages, if there are any."""

    def to_arrays(self, parameters: Any) -> dict[str, np.ndarray]:
        """Return parameters as named arrays, for a checkpoint."""
        return parameters

    def from_arrays(self, arrays: dict[str, np.ndarray]) -> Any:
        """Return parameters from named arrays, the inverse of `to_arrays`."""
        return arrays

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the state from which training can be resumed: named "tensors" and plain numbers.

        Calling this does not change the training.
        """

    @abstractmethod
    def resume(self, state: dict[str, Any]) -> None:
        """Continue from a `state`."""


@dataclass
class Outcome:
    """Result of a training run."""

    theta: Any
    n_iter: int
    best_score: float | None
    reason: str  # why training ended: "max_iter", "converged" (no better score), "time" or "interrupted"
    history: dict[str, list[float]] = field(default_factory=dict)


@dataclass
class _Position:
    """Position of a training run, as saved in a checkpoint next to the trainer's state."""

    seed: int  # with the epoch and the minibatch's number, source of all random numbers
    epoch: int = 0  # finished epochs
    batch: int = 0  # finished minibatches of the current epoch
    step: int = 0  # finished minibatches of all epochs
    nll: float = 0.0  # sums over the current epoch
    class_loss: float = 0.0
    seconds: float = 0.0  # elapsed so far
    best_score: float | None = None
    best_epoch: int = 0
    history: dict[str, list[float]] = field(
        default_factory=lambda: {"nll": [], "class_loss": [], "validation_score": [], "seconds": []}
    )

    def count(self, nll: float, class_loss: float) -> None:
        """Count a finished minibatch."""
        self.nll, self.class_loss = self.nll + nll, self.class_loss + class_loss
        self.batch, self.step = self.batch + 1, self.step + 1

    def end_epoch(self, n_words: float, n_labelled: int) -> None:
        """Finish an epoch after its last minibatch."""
        self.history["nll"].append(self.nll / max(n_words, 1))
        self.history["class_loss"].append(self.class_loss / max(n_labelled, 1))
        self.epoch, self.batch, self.nll, self.class_loss = self.epoch + 1, 0, 0.0, 0.0


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
    run: Run | None = None,
    identity: str = "",
    row_numbers: np.ndarray | None = None,
    peers: Peers | None = None,
    verbose: int = 0,
    name: str = "model",
) -> Outcome:
    """Train for epochs over all documents in random order, until `max_iter` or no better validation score.

    Parameters
    ----------
    trainer : Trainer
    n_documents : int
        Documents are 0..n_documents-1 for the trainer.
    n_words, n_labelled : number
        Divisors of the history's losses: -log p(v) per word, -log p(y | v) per labelled document.
    max_iter : int
        Maximum number of epochs.
    batch_size : int
        Documents per call of ``trainer.learn``.
    n_iter_no_change : int
        Number of epochs without a better score before stopping; only with `validate`.
    rng : RandomState
        Draws the seed of the documents' order and of all steps.
    validate : callable, optional
        Parameters -> score, larger is better.  The parameters of the best epoch are returned; without it, the last.
    run : Run, optional
        Checkpoints, a time limit, the effect of Ctrl-C, and progress reports.
    identity : str
        Everything that determines the run; a checkpoint with another identity is refused.
    row_numbers : ndarray, optional
        The user's row numbers of the documents, for error messages.
    peers : Peers, optional
        Other processes that train the same model.  The first one decides, and writes checkpoints.
    verbose : int
        1: a progress bar; 2: one line per epoch.
    name : str
        Name shown in the progress bar.

    Returns
    -------
    Outcome
        After Ctrl-C, the best model so far (with a warning), unless `run` says otherwise.
    """
    run, peers = run or Run(), peers or Peers()
    saver = _Saver(run.checkpoint, identity, trainer, peers)
    position, best = saver.resume(_Position(seed=int(rng.randint(2**31))))
    if run.finish and not saver.resumed:
        where = "" if run.checkpoint is None else f" in {run.checkpoint.folder}"
        raise ValueError(f"there is no checkpoint{where} to finish with: nothing has been learnt yet")
    begin = time.perf_counter() - position.seconds

    def out_of_time() -> bool:
        limit = run.max_minutes
        return limit is not None and peers.agree(lambda: time.perf_counter() - begin >= 60 * limit)

    def score() -> tuple[Any, float]:
        theta = trainer.parameters()
        return theta, peers.agree(lambda: validate(theta))  # type: ignore[misc]

    def improve(theta: Any, score: float) -> None:
        nonlocal best
        if position.best_score is None or score > position.best_score:
            position.best_score, position.best_epoch, best = score, position.epoch, theta

    def report_status(loss: float, ended: bool = False) -> None:
        if run.report is None or peers.rank:
            return
        done = position.epoch * n_documents + min(position.batch * batch_size, n_documents)
        scores = position.history["validation_score"]
        epoch, total = min(position.epoch + 1, max_iter), done if ended else max_iter * n_documents
        run.report(
            run.stage,
            Status(epoch, max_iter, done, total, loss, scores[-1] if scores else None, position.best_score),
        )

    log_dir = None if run.log_dir is None else str(run.log_dir)
    if peers.rank:  # the first process reports for all
        verbose, log_dir = 0, None
    loss = float("nan")
    with Progress(max_iter, n_documents, verbose, name, log_dir) as progress:
        try:
            while not (reason := _ended(position, max_iter, n_iter_no_change, run.finish)):
                order = np.random.default_rng([position.seed, position.epoch]).permutation(n_documents)
                for documents, minibatch in _minibatches(trainer, position, order, batch_size):
                    if out_of_time():
                        reason = "time"
                        break
                    with uninterrupted():
                        nll, class_loss = trainer.learn(*minibatch)
                        if not np.isfinite(nll + class_loss):
                            message = _bad_loss(nll + class_loss, position, documents, row_numbers, run.checkpoint)
                            raise FloatingPointError(message)
                        position.count(nll, class_loss)
                        position.seconds = time.perf_counter() - begin
                    seen = min(position.batch * batch_size, n_documents)
                    loss = position.nll / seen
                    progress.advance(position.epoch * n_documents + seen, loss)
                    report_status(loss)
                    if seen < n_documents:
                        saver.save_if_due(position, best)
                if reason:
                    saver.save(position, best)
                    if validate is not None and position.batch:
                        improve(*score())
                    break
                scored = None if validate is None else score()  # an interrupt here changes nothing
                with uninterrupted():
                    position.end_epoch(n_words, n_labelled)
                    if scored is not None:
                        improve(*scored)
                        position.history["validation_score"].append(scored[1])
                    position.seconds = time.perf_counter() - begin
                    position.history["seconds"].append(position.seconds)
                progress.report(position.epoch, position.history)
                report_status(loss)
                saver.save_if_due(position, best)
            else:
                saver.save(position, best)
            report_status(loss, ended=True)
        except KeyboardInterrupt:
            reason = "interrupted"
            saver.save(position, best)
            if run.raise_on_interrupt:
                raise
            epoch_text = f"of epoch {position.best_epoch}" if best is not None else f"after {position.epoch} epochs"
            warnings.warn(f"training of {name} was interrupted: keeping the model {epoch_text}", stacklevel=3)
    theta = trainer.parameters() if best is None else best
    return Outcome(theta, position.epoch, position.best_score, reason, position.history)


def _ended(position: _Position, max_iter: int, n_iter_no_change: int, finish: bool) -> str:
    """Return why training ends after this epoch; "" if it does not."""
    if position.epoch >= max_iter:
        return "max_iter"
    if position.best_score is not None and position.epoch - position.best_epoch >= n_iter_no_change:
        return "converged"
    return "interrupted" if finish else ""


def _minibatches(
    trainer: Trainer, position: _Position, order: np.ndarray, batch_size: int
) -> Iterator[tuple[np.ndarray, tuple[Any, ...]]]:
    """Yield the remaining minibatches of the epoch, read in the background for trainers with `reads_ahead`."""
    parts = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]

    def load(k: int) -> tuple[np.ndarray, tuple[Any, ...]]:
        seed = int(np.random.default_rng([position.seed, epoch, k, 1]).integers(2**31))
        return parts[k], trainer.load(parts[k], seed)

    epoch = position.epoch
    numbers = range(position.batch, len(parts))
    if not trainer.reads_ahead:
        yield from map(load, numbers)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="minibatches") as pool:
        waiting: list[Future] = [pool.submit(load, k) for k in numbers[:_AHEAD]]
        for k in numbers:
            ready = waiting.pop(0).result()
            if k + _AHEAD < len(parts):
                waiting.append(pool.submit(load, k + _AHEAD))
            yield ready


def _bad_loss(value, position: _Position, documents, row_numbers, checkpoint: Checkpoint | None) -> str:
    rows = sorted((documents if row_numbers is None else row_numbers[documents]).tolist())
    shown = ", ".join(map(str, rows[:_SHOWN_ROWS])) + (", ..." if len(rows) > _SHOWN_ROWS else "")
    hint = f"; the last good checkpoint is in {checkpoint.folder}" if checkpoint is not None else ""
    return (
        f"the loss became {value} in epoch {position.epoch + 1}, step {position.step + 1}, rows {shown}; "
        f"try a smaller learning_rate{hint}"
    )


class _Saver:
    """Writer and reader of a run's checkpoints; without a `Checkpoint`, it does nothing."""

    def __init__(self, checkpoint: Checkpoint | None, identity: str, trainer: Trainer, peers: Peers):
        self.checkpoint, self.identity, self.trainer, self.peers = checkpoint, identity, trainer, peers
        self.resumed = False  # whether the run continues from a checkpoint
        self._saved: tuple[int, int] | None = None  # step and epoch of the last checkpoint

    def save_if_due(self, position: _Position, best: Any) -> None:
        """Write a checkpoint if it is due."""
        if self.checkpoint is not None and not self.peers.rank and self.checkpoint.due(position.epoch):
            self.save(position, best)

    def save(self, position: _Position, best: Any) -> None:
        """Write a checkpoint, unless this position is already saved."""
        if self.checkpoint is None or self.peers.rank or self._saved == (position.step, position.epoch):
            return
        state = self.trainer.state()
        tensors = {f"trainer.{key}": tensor for key, tensor in state.pop("tensors").items()}
        if best is not None:
            tensors |= {f"best.{key}": array for key, array in self.trainer.to_arrays(best).items()}
        content = {"identity": self.identity, "trainer": state, "run": vars(position)}
        if self.checkpoint.save(position.step, position.epoch, tensors, content):
            self._saved = (position.step, position.epoch)

    def resume(self, position: _Position) -> tuple[_Position, Any]:
        """Restore the trainer from a checkpoint; return the position to continue from and the best parameters."""
        if self.checkpoint is None:
            return position, None
        loaded = self.peers.agree(self.checkpoint.load)
        best = None
        if loaded is not None:
            tensors, state = loaded
            if state.get("identity") != self.identity:
                raise ValueError(
                    f"{self.checkpoint.folder} has a checkpoint of another run (other options or other data); "
                    "choose another folder, or delete that one"
                )
            self.trainer.resume({"tensors": _below(tensors, "trainer."), **state["trainer"]})
            position = _Position(**state["run"])
            arrays = {name: tensor.numpy() for name, tensor in _below(tensors, "best.").items()}
            best = self.trainer.from_arrays(arrays) if arrays else None
            self.resumed, self._saved = True, (position.step, position.epoch)
        self.checkpoint.begin(position.epoch)
        return position, best


def _below(tensors: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


# ---- several processes that train one model --------------------------------------------------------------------------


class Peers:
    """The processes that train one model together: here a single one; `pictopic.cluster.group` has several.

    Call the same `fit` in each process, inside `together`; the estimators need no option for it.  All processes have
    the same documents and draw the same random numbers; each computes the gradient of its part of every minibatch, and
    the gradients are summed.  The result is that of one process, up to rounding.

    Examples
    --------
    >>> from pictopic.models.training import Peers
    >>> Peers().part(10)
    slice(0, 10, None)
    """

    rank = 0  # number of this process
    size = 1  # number of processes

    def part(self, n: int) -> slice:
        """Return this process's part of the `n` documents of a minibatch."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes."""

    def agree(self, decide: Callable[[], T]) -> T:
        """Return what the first process decides; the others wait for it."""
        return decide()


_current: ContextVar[Peers | None] = ContextVar("peers", default=None)


def current() -> Peers:
    """Return the peers that this process trains with."""
    return _current.get() or Peers()


@contextmanager
def together(peers: Peers) -> Iterator[None]:
    """Train with these peers inside the block."""
    token = _current.set(peers)
    try:
        yield
    finally:
        _current.reset(token)
