"""Training one network in several processes of a Ray cluster, with Ray Train."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pictopic.cluster.connection import connected
from pictopic.corpus.rows import Rows
from pictopic.models.deep_model import DeepModel
from pictopic.models.run import Run

_FAILURES = 8  # workers that may be lost before it is given up


def run_together(
    function: Callable[..., Any],
    *arguments: Any,
    workers: int,
    threads: int | None = None,
    gpu: bool = False,
    address: str = "auto",
    verbose: bool = False,
) -> Any:
    """Call a function in several processes at once, in which `fit` trains one model together.

    If a worker is lost, all begin anew, with as many as there are: `fit` goes on from its checkpoint.

    Parameters
    ----------
    function : callable
        Called as ``function(threads, *arguments)`` in each process.
    *arguments
        Put into Ray's store once, however many workers there are.
    workers : int
    threads : int, optional
        Per worker; default: as many as the cluster has processors for.
    gpu : bool, default=False
        Whether each worker has a graphics card.
    address : str, default="auto"
        See `connected`.
    verbose : bool, default=False
        Whether the output of the workers is printed here.

    Returns
    -------
    object
        The answer of the first process.
    """
    with connected(address, log_to_driver=verbose) as ray, tempfile.TemporaryDirectory(prefix="pictopic-") as folder:
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer
        from ray.train.v2.api.exceptions import TrainingFailedError

        threads = threads or fair_threads((node["Resources"].get("CPU", 0) for node in _alive(ray)), workers)
        trainer = TorchTrainer(
            partial(_work, function, threads),
            train_loop_config={"arguments": [ray.put(argument) for argument in arguments]},
            torch_config=TorchConfig(backend="nccl" if gpu else "gloo"),
            scaling_config=ScalingConfig(
                num_workers=(1, workers) if workers > 1 else 1, use_gpu=gpu, resources_per_worker={"CPU": threads}
            ),
            run_config=RunConfig(
                name="pictopic", storage_path=folder, failure_config=FailureConfig(max_failures=_FAILURES)
            ),
        )
        try:
            answer = trainer.fit().return_value
        except TrainingFailedError as error:
            raise RuntimeError(f"training on the cluster was given up: {error}") from None
        if isinstance(answer, _Refused):
            raise answer.error
        return copy.deepcopy(answer)  # arrays are in Ray's store, which ends


def _work(function: Callable[..., Any], threads: int, config: dict[str, Any]) -> Any:
    import ray
    from torch import distributed

    from pictopic.cluster.group import ProcessGroup
    from pictopic.models.training import together

    peers = ProcessGroup()
    try:
        with together(peers):
            answer = function(threads, *ray.get(config["arguments"]))
    except (ValueError, TypeError, ArithmeticError, OSError) as error:
        # Not a lost worker (that is a RuntimeError of torch's): to begin anew would not help.  Peers that did not meet
        # the error must not wait for this one.
        distributed.destroy_process_group()
        answer = _Refused(error)
    return answer if peers.rank == 0 else None


@dataclass
class _Refused:
    """An error that is the caller's."""

    error: Exception


def _alive(ray: Any) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def fair_threads(processors: Iterable[float], workers: int) -> int:
    """Number of threads per worker, for workers spread over machines with these numbers of processors.

    Examples
    --------
    >>> from pictopic.cluster.training import fair_threads
    >>> fair_threads([16, 16, 8], workers=4)
    8
    """
    machines = [int(number) for number in processors]
    if sum(machines) < workers:
        raise ValueError(f"the cluster has {sum(machines)} processors, which are too few for {workers} workers")
    return max(n for n in range(1, max(machines) + 1) if sum(machine // n for machine in machines) >= workers)


def fit_on_cluster(
    estimator: Any,
    rows: Rows,
    held_out: Rows | None,
    run: Run,
    *,
    address: str,
    workers: int,
    threads: int | None = None,
) -> Any:
    """Fit an estimator on a cluster: what `tasks.fit` takes as `fit`.  The data go through Ray's store."""
    return run_together(
        _fit, estimator, rows.loaded(), held_out and held_out.loaded(), run.for_workers(),
        workers=workers, threads=threads, gpu=_gpu(estimator), address=address,
    )  # fmt: skip


def fit_rows_on_cluster(
    estimator: Any,
    corpus: Any,
    rows: Any,
    held_out: Any,
    run: Run | None = None,
    *,
    address: str,
    workers: int,
    threads: int | None = None,
) -> Any:
    """Fit an estimator to a corpus on a cluster: what `tasks.pretraining` takes as `fit`.

    Every machine reads the corpus itself, under the same path or URL.
    """
    return run_together(
        _fit_rows, estimator, corpus.location, corpus.row_numbers, rows, held_out, run and run.for_workers(),
        workers=workers, threads=threads, gpu=_gpu(estimator), address=address,
    )  # fmt: skip


def _gpu(estimator: Any) -> bool:
    if not isinstance(estimator, DeepModel):
        raise ValueError(f"{type(estimator).__name__} cannot be trained on a cluster: only the deep models can")
    return estimator.device != "cpu"


def _fit(threads: int, estimator: Any, rows: Rows, held_out: Rows | None, run: Run) -> Any:
    return _without_machine(estimator.set_params(n_jobs=threads).fit(rows, X_val=held_out, run=run))


def _fit_rows(
    threads: int, estimator: Any, corpus: str, numbers: Any, rows: Any, held_out: Any, run: Run | None
) -> Any:
    from pictopic.corpus.corpus import Corpus
    from pictopic.tasks.pretraining import fit_rows

    opened = Corpus.open(corpus)[numbers]
    return _without_machine(fit_rows(estimator.set_params(n_jobs=threads), opened, rows, held_out, run))


def _without_machine(estimator: Any) -> Any:
    """The estimator without what need not be sent back: what it started from."""
    return estimator.set_params(init=None)
