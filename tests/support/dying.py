"""Work that is killed in its middle, once: what a test's workers do."""

from __future__ import annotations

import os
import signal

from pictopic.models.deep_training import DeepTrainer
from pictopic.models.training import current


def die_once(marker):
    """SIGKILL this process, unless it was done before."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def call_and_die(marker, function, *arguments):
    """Call a function; the first time, die before the answer is out."""
    answer = function(*arguments)
    die_once(marker)
    return answer


def fit_and_die(threads, estimator, X, y, run, marker, rank, step, log):
    """Fit; the first time, one process dies after some steps.  Every step of the first process is written down."""
    learn, peers, n_done = DeepTrainer.learn, current(), 0

    def learning(self, *minibatch):
        nonlocal n_done
        if peers.rank == rank and n_done == step:
            die_once(marker)
        n_done += 1
        answer = learn(self, *minibatch)
        if peers.rank == 0:
            with open(log, "a") as file:
                file.write(f"{self.solver.n_done} {peers.size}\n")
        return answer

    DeepTrainer.learn = learning
    try:
        return estimator.set_params(n_jobs=threads).fit(X, y, run=run)
    finally:
        DeepTrainer.learn = learn
