"""The training loop: epochs, early stopping, history, checkpoints, progress."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pictopic.models.peers import Peers
from pictopic.models.progress import Progress

if TYPE_CHECKING:
    from pictopic.models.checkpoint import Checkpoint

_AHEAD = 2  # minibatches that are read in advance
_SHOWN_ROWS = 8  # rows of a bad minibatch that an error names


class Trainer(ABC):
    """What the loop needs: steps on minibatches, and the parameters to be used."""

    reads_ahead = False  # whether `load` takes long enough to be done in the background

    def load(self, documents: np.ndarray, seed: int) -> tuple[Any, ...]:
        """Read a minibatch: the arguments of `learn`."""
        return documents, seed

    @abstractmethod
    def learn(self, *minibatch: Any) -> tuple[float, float]:
        """One step; the sums of -log p(v) and -log p(y | v) before it."""

    @abstractmethod
    def parameters(self) -> Any:
        """A copy of the parameters to be used."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What a later trainer needs to go on from here."""

    @abstractmethod
    def resume(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""


@dataclass
class Outcome:
    """What training came to."""

    theta: Any
    n_iter: int
    best_score: float | None
    history: dict[str, list[float]] = field(default_factory=dict)


@dataclass
class _Run:
    """Where a training run stands: what a checkpoint holds beside the trainer's own state."""

    seed: int  # all random numbers come from it, the epoch and the number of the minibatch
    epoch: int = 0  # finished epochs
    batch: int = 0  # finished minibatches of the current epoch
    step: int = 0  # finished minibatches of all epochs
    nll: float = 0.0  # sums over the current epoch
    class_loss: float = 0.0
    seconds: float = 0.0  # that it has taken so far
    best_score: float | None = None
    best_epoch: int = 0
    history: dict[str, list[float]] = field(
        default_factory=lambda: {"nll": [], "class_loss": [], "validation_score": [], "seconds": []}
    )

    def count(self, nll: float, class_loss: float) -> None:
        """Another minibatch is done."""
        self.nll, self.class_loss = self.nll + nll, self.class_loss + class_loss
        self.batch, self.step = self.batch + 1, self.step + 1

    def end_epoch(self, n_words: float, n_labelled: int) -> None:
        """The last minibatch of an epoch is done."""
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
    checkpoint: Checkpoint | None = None,
    identity: str = "",
    row_numbers: np.ndarray | None = None,
    max_seconds: float | None = None,
    peers: Peers | None = None,
    log_dir: str | None = None,
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
        Draws the one seed from which the order of the documents and the seeds of the steps come.
    validate : callable, optional
        Parameters -> score, larger is better.  The parameters of the best epoch are returned; without it, the last.
    checkpoint : Checkpoint, optional
        Where to write the run down, and where to look for one to go on with.
    identity : str
        What the run depends on; a checkpoint with another identity is refused.
    row_numbers : ndarray, optional
        The user's row numbers of the documents, for errors.
    max_seconds : float, optional
        Stop after so long, counted over all runs that went on from each other, in the middle of an epoch if need be.
    peers : Peers, optional
        Other processes that train the same model.  The first one decides, and writes checkpoints.
    log_dir : str, optional
        Folder for TensorBoard.
    verbose : int
        1: a progress bar; 2: a line an epoch.
    name : str
        For the progress bar.

    Returns
    -------
    Outcome
        After Ctrl-C, the best model so far (with a warning).
    """
    peers = peers or Peers()
    run = _Run(seed=int(rng.randint(2**31)))
    saver = _Saver(checkpoint, identity, trainer, peers)
    run, best = saver.resume(run)
    begin = time.perf_counter() - run.seconds

    def out_of_time() -> bool:
        return max_seconds is not None and peers.agree(lambda: time.perf_counter() - begin >= max_seconds)

    def improve() -> float:
        nonlocal best
        theta = trainer.parameters()
        score = peers.agree(lambda: validate(theta))  # type: ignore[misc]
        if run.best_score is None or score > run.best_score:
            run.best_score, run.best_epoch, best = score, run.epoch, theta
        return score

    if peers.rank:  # one tells for all
        verbose, log_dir = 0, None
    with Progress(max_iter, n_documents, verbose, name, log_dir) as progress:
        try:
            while run.epoch < max_iter and not (best is not None and run.epoch - run.best_epoch >= n_iter_no_change):
                order = np.random.default_rng([run.seed, run.epoch]).permutation(n_documents)
                for documents, minibatch in _minibatches(trainer, run, order, batch_size):
                    if out_of_time():
                        break
                    nll, class_loss = trainer.learn(*minibatch)
                    if not np.isfinite(nll + class_loss):
                        raise FloatingPointError(_bad_loss(nll + class_loss, run, documents, row_numbers, checkpoint))
                    run.count(nll, class_loss)
                    run.seconds = time.perf_counter() - begin
                    seen = min(run.batch * batch_size, n_documents)
                    progress.advance(run.epoch * n_documents + seen, run.nll / seen)
                    if seen < n_documents:
                        saver.save_if_due(run, best)
                if run.batch * batch_size < n_documents:  # out of time
                    saver.save_if_due(run, best, at_once=True)
                    if validate is not None and run.batch:
                        improve()
                    break
                run.end_epoch(n_words, n_labelled)
                if validate is not None:
                    run.history["validation_score"].append(improve())
                run.seconds = time.perf_counter() - begin
                run.history["seconds"].append(run.seconds)
                progress.report(run.epoch, run.history)
                saver.save_if_due(run, best, at_once=run.epoch == max_iter)
        except KeyboardInterrupt:
            kept = f"the model of epoch {run.best_epoch}" if best is not None else f"the model after {run.epoch} epochs"
            warnings.warn(f"training of {name} was interrupted: keeping {kept}", stacklevel=3)
    theta = trainer.parameters() if best is None else best
    return Outcome(theta, run.epoch, run.best_score, run.history)


def _minibatches(
    trainer: Trainer, run: _Run, order: np.ndarray, batch_size: int
) -> Iterator[tuple[np.ndarray, tuple[Any, ...]]]:
    """The epoch's minibatches that are still to come, read in the background if the trainer wants that."""
    parts = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]

    def load(k: int) -> tuple[np.ndarray, tuple[Any, ...]]:
        seed = int(np.random.default_rng([run.seed, epoch, k, 1]).integers(2**31))
        return parts[k], trainer.load(parts[k], seed)

    epoch = run.epoch
    places = range(run.batch, len(parts))
    if not trainer.reads_ahead:
        yield from map(load, places)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="minibatches") as pool:
        waiting: list[Future] = [pool.submit(load, k) for k in places[:_AHEAD]]
        for k in places:
            ready = waiting.pop(0).result()
            if k + _AHEAD < len(parts):
                waiting.append(pool.submit(load, k + _AHEAD))
            yield ready


def _bad_loss(value, run: _Run, documents, row_numbers, checkpoint: Checkpoint | None) -> str:
    rows = sorted((documents if row_numbers is None else row_numbers[documents]).tolist())
    shown = ", ".join(map(str, rows[:_SHOWN_ROWS])) + (", ..." if len(rows) > _SHOWN_ROWS else "")
    kept = f"; the last good checkpoint is in {checkpoint.folder}" if checkpoint is not None else ""
    return (
        f"the loss became {value} in epoch {run.epoch + 1}, step {run.step + 1}, rows {shown}; "
        f"try a smaller learning_rate{kept}"
    )


class _Saver:
    """A run's way to its checkpoints and back; without a `Checkpoint`, nothing happens."""

    def __init__(self, checkpoint: Checkpoint | None, identity: str, trainer: Trainer, peers: Peers):
        self.checkpoint, self.identity, self.trainer, self.peers = checkpoint, identity, trainer, peers

    def save_if_due(self, run: _Run, best: Any, at_once: bool = False) -> None:
        """Write the run down, if it is time to."""
        if self.checkpoint is None or self.peers.rank or not (at_once or self.checkpoint.due(run.epoch)):
            return
        from torch import from_numpy

        state = self.trainer.state()
        tensors = {f"trainer.{key}": tensor for key, tensor in state.pop("tensors").items()}
        if best is not None:
            tensors |= {f"best.{key}": from_numpy(np.ascontiguousarray(array)) for key, array in best.items()}
        content = {"identity": self.identity, "trainer": state, "run": vars(run)}
        self.checkpoint.save(run.step, run.epoch, tensors, content)

    def resume(self, run: _Run) -> tuple[_Run, Any]:
        """The run to go on with, and its best parameters so far; the trainer is put into its state."""
        if self.checkpoint is None:
            return run, None
        found = self.peers.agree(self.checkpoint.load)
        best = None
        if found is not None:
            tensors, state = found
            if state.get("identity") != self.identity:
                raise ValueError(
                    f"{self.checkpoint.folder} has a checkpoint of another run (other options or other data); "
                    "choose another folder, or delete that one"
                )
            self.trainer.resume({"tensors": _below(tensors, "trainer."), **state["trainer"]})
            run = _Run(**state["run"])
            best = {name: tensor.numpy() for name, tensor in _below(tensors, "best.").items()} or None
        self.checkpoint.begin(run.epoch)
        return run, best


def _below(tensors: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
