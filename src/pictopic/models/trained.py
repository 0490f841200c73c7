"""What an estimator keeps of its training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pictopic.models.training import Outcome, Trainer


class TrainedMixin:
    """Parameters, number of passes, history and fingerprint, after `fit` or after a pass of `partial_fit`."""

    # What `partial_fit` goes on from: the solver's memory and its random numbers.
    _solver_state: dict[str, Any] | None = None
    _solver_rng: np.random.RandomState | None = None
    n_iter_: int
    best_validation_score_: float | None
    history_: dict[str, list[float]]
    data_fingerprint_: str

    if TYPE_CHECKING:

        def _set_theta(self, theta: Any) -> None: ...

    def _keep(self, outcome: Outcome, fingerprint: str) -> None:
        """Keep what `fit` came to."""
        self._set_theta(outcome.theta)
        self._solver_state = None
        self.n_iter_ = outcome.n_iter
        self.best_validation_score_ = outcome.best_score
        self.history_ = outcome.history
        self.data_fingerprint_ = fingerprint

    def _keep_pass(self, outcome: Outcome, trainer: Trainer, rng: np.random.RandomState, fingerprint: str) -> None:
        """Keep what a pass of `partial_fit` came to, and what the next one needs."""
        self._set_theta(outcome.theta)
        self._solver_state, self._solver_rng = trainer.state(), rng
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1
        self.history_ = getattr(self, "history_", {})
        for name, values in outcome.history.items():
            self.history_.setdefault(name, []).extend(values)
        self.best_validation_score_ = None
        self.data_fingerprint_ = fingerprint
