"""What an estimator keeps of its training."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from pictopic.models.training import Outcome, Trainer

if TYPE_CHECKING:
    from pictopic.models.checkpoint import Checkpoint


class TrainedMixin:
    """Parameters, number of passes, history and fingerprint, after `fit` or after a pass of `partial_fit`."""

    # Options that do not change what a run computes, or only how long it goes on: not part of a checkpoint's identity.
    _FREE_OPTIONS: ClassVar[set[str]] = {
        "max_iter", "n_iter_no_change", "max_minutes", "checkpoint", "log_dir", "verbose", "warm_start", "init",
        "random_state", "n_jobs",
    }  # fmt: skip

    # What `partial_fit` goes on from: the solver's memory and its random numbers.
    _solver_state: dict[str, Any] | None = None
    _solver_rng: np.random.RandomState | None = None
    n_iter_: int
    best_validation_score_: float | None
    history_: dict[str, list[float]]
    stop_reason_: str
    data_fingerprint_: str

    if TYPE_CHECKING:
        random_state: Any
        get_params: Callable[..., dict[str, Any]]

        def _set_theta(self, theta: Any) -> None: ...
        def _get_arrays(self) -> dict[str, np.ndarray]: ...

    def _drawn_seed(self, checkpoint: Checkpoint | None) -> int:
        """A seed from `random_state`; without a number there, that of the run to resume, if there is one."""
        if checkpoint is not None and not isinstance(self.random_state, Integral):
            state = checkpoint.peek()
            if state is not None:
                return int(json.loads(state["identity"])["seed"])
        return int(check_random_state(self.random_state).randint(2**31))

    def _identity(self, seed: int, fingerprint: str, held_out_fingerprint: str | None) -> str:
        """What decides the result of a run, as JSON."""
        from pictopic.models.persistence import plain

        free = self._FREE_OPTIONS
        if getattr(self, "schedule", "constant") != "constant":  # a cosine ends at max_iter
            free = free - {"max_iter"}
        options = self.get_params(deep=False)
        return json.dumps({
            "model": type(self).__name__,
            "seed": int(seed),
            "options": {name: plain(value) for name, value in sorted(options.items()) if name not in free},
            "start": _digest(self._start()),
            "data": fingerprint,
            "held_out": held_out_fingerprint,
        })  # fmt: skip

    def _start(self) -> dict[str, np.ndarray]:
        """What training starts from."""
        return self._get_arrays()

    def _keep(self, outcome: Outcome, fingerprint: str) -> None:
        """Keep what `fit` came to."""
        self._set_theta(outcome.theta)
        self._solver_state = None
        self.n_iter_ = outcome.n_iter
        self.stop_reason_ = outcome.reason
        self.best_validation_score_ = outcome.best_score
        self.history_ = outcome.history
        self.data_fingerprint_ = fingerprint

    def _keep_pass(self, outcome: Outcome, trainer: Trainer, rng: np.random.RandomState, fingerprint: str) -> None:
        """Keep what a pass of `partial_fit` came to, and what the next one needs."""
        self._set_theta(outcome.theta)
        self._solver_state, self._solver_rng = trainer.state(), rng
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1
        self.stop_reason_ = outcome.reason
        self.history_ = getattr(self, "history_", {})
        for name, values in outcome.history.items():
            self.history_.setdefault(name, []).extend(values)
        self.best_validation_score_ = None
        self.data_fingerprint_ = fingerprint


def _digest(arrays: dict[str, np.ndarray]) -> str:
    """SHA-256 of named arrays."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
