"""What the four estimators share: options, random numbers, classes, what training leaves behind, and files."""

from __future__ import annotations

import hashlib
import inspect
import json
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import average_precision_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from pictopic.corpus.rows import Rows
from pictopic.models.inputs import Labels, check_rows, encode_labels, no_labels
from pictopic.models.run import Run
from pictopic.models.training import Outcome, Trainer

if TYPE_CHECKING:
    from pictopic.models.checkpoint import Checkpoint

_LEAST_STEPS = 12  # of an epoch, unless its batches become too small
_LEAST_BATCH = 8


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the estimators; see `DocNADE` and `DeepDocNADE` for the options.

    A subclass declares the options that it adds, or whose defaults it changes, and passes the others on:
    ``def __init__(self, *, smoothing="auto", **options)``.  Its signature shows all of them, so that scikit-learn finds
    them there.
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "output": [StrOptions({"tree", "softmax"})],
        "activation": [StrOptions({"relu", "tanh", "sigmoid"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"adam", "sgd"})],
        "learning_rate": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "n_annotation_words": [Interval(Integral, 0, None, closed="left")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "averaging": [None, Interval(Real, 0, 1, closed="neither")],
        "validation_fraction": [None, Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "device": [str],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }
    # Options that do not change what a run computes, or only how long it goes on: not part of a checkpoint's identity.
    _FREE_OPTIONS: ClassVar[frozenset[str]] = frozenset(
        {"max_iter", "n_iter_no_change", "verbose", "warm_start", "init", "random_state", "n_jobs"}
    )
    _LEARNING_RATES: ClassVar[dict[str, float]]  # what "auto" is for each solver
    _LARGEST_BATCH: ClassVar[int]  # what "auto" is at most
    _zero_biases: ClassVar[bool] = False  # whether the output biases b start at zero instead of the words' frequencies

    # What `partial_fit` goes on from: the solver's memory and its random numbers.
    _solver_state: dict[str, Any] | None = None
    _solver_rng: np.random.RandomState | None = None
    n_iter_: int
    best_validation_score_: float | None
    history_: dict[str, list[float]]
    stop_reason_: str
    data_fingerprint_: str

    # ---- options -----------------------------------------------------------------------------------------------------

    def __init__(
        self,
        *,
        n_components,
        output,
        activation,
        solver,
        dropout,
        max_iter=200,
        batch_size="auto",
        learning_rate="auto",
        n_annotation_words=0,
        averaging=0.998,
        validation_fraction=0.1,
        n_iter_no_change=10,
        random_state=None,
        n_jobs=None,
        device="cpu",
        warm_start=False,
        verbose=0,
    ):
        self.n_components = n_components
        self.output = output
        self.activation = activation
        self.solver = solver
        self.dropout = dropout
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.n_annotation_words = n_annotation_words
        self.averaging = averaging
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.warm_start = warm_start
        self.verbose = verbose

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "__init__" in vars(cls):
            cls.__init__.__signature__ = _with_inherited_options(cls)  # type: ignore[attr-defined]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _n_jobs(self) -> int:
        return effective_n_jobs(self.n_jobs)

    def _learning_rate(self) -> float:
        return self._LEARNING_RATES[self.solver] if self.learning_rate == "auto" else self.learning_rate

    def _batch_size(self, n_documents: int) -> int:
        """Documents per step."""
        if self.batch_size != "auto":
            return self.batch_size
        return min(self._LARGEST_BATCH, max(_LEAST_BATCH, n_documents // _LEAST_STEPS))

    def _generative_weight(self) -> float:
        return 1.0

    # Whether it is trained to predict tags from pictures, and knows nothing of how probable visual words are.
    predicts_tags_only = False

    # ---- input -------------------------------------------------------------------------------------------------------

    def _check_X(self, X: Any, global_features: Any = None, *, reset: bool) -> Rows:
        """X with its global features, checked."""
        return check_rows(self, X, global_features, reset=reset)

    def _check(self, X: Any, y: Any, global_features: Any = None, *, reset: bool, classes: Any = None) -> Rows:
        """X with its global features and encoded classes, checked; without classes here."""
        rows = self._check_X(X, global_features, reset=reset)
        return rows.with_labels(no_labels(len(rows)))

    # ---- training ----------------------------------------------------------------------------------------------------

    def _fit_rows(self, documents: Rows, held_out: Rows | None, run: Run | None) -> Any:
        """Train on documents; stop on those held out, by default a fraction of them."""
        run = run or Run()
        random_state = self._run_random_state(run)
        if held_out is None:
            rng = check_random_state(random_state)
            rows, others = split_held_out(documents.labels, self.validation_fraction, rng)
            documents, held_out = documents[rows], documents[others]
        self._fit(documents, self._usable(held_out), run, random_state)
        return self

    def _usable(self, held_out: Rows) -> Rows | None:
        """Held-out documents that can be scored; None: there are none."""
        return held_out if any(held_out.read(chunk).nnz for chunk in held_out.chunks()) else None

    def _run_random_state(self, run: Run) -> Any:
        """Where all random numbers of a fit come from."""
        raise NotImplementedError

    def _fit(self, documents: Rows, held_out: Rows | None, run: Run, random_state: Any) -> None:
        """Train until `max_iter`, or until the held-out documents are predicted no better."""
        raise NotImplementedError

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

        options = sorted(self.get_params(deep=False).items())
        return json.dumps({
            "model": type(self).__name__,
            "seed": int(seed),
            "options": {name: plain(value) for name, value in options if name not in self._FREE_OPTIONS},
            "start": _digest(self._start()),
            "data": fingerprint,
            "held_out": held_out_fingerprint,
        })  # fmt: skip

    def _start(self) -> dict[str, np.ndarray]:
        """The parameters that training starts from."""
        raise NotImplementedError

    def _set_theta(self, theta: Any) -> None:
        """Make these the model's parameters."""
        raise NotImplementedError

    def _keep(self, outcome: Outcome, fingerprint: str) -> None:
        """Keep the result of `fit`."""
        self._set_theta(outcome.theta)
        self._solver_state = None
        self.n_iter_ = outcome.n_iter
        self.stop_reason_ = outcome.reason
        self.best_validation_score_ = outcome.best_score
        self.history_ = outcome.history
        self.data_fingerprint_ = fingerprint

    def _keep_pass(self, outcome: Outcome, trainer: Trainer, rng: np.random.RandomState, fingerprint: str) -> None:
        """Keep the result of one `partial_fit`, and what the next one needs."""
        self._set_theta(outcome.theta)
        self._solver_state, self._solver_rng = trainer.state(), rng
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1
        self.stop_reason_ = outcome.reason
        self.history_ = getattr(self, "history_", {})
        for name, values in outcome.history.items():
            self.history_.setdefault(name, []).extend(values)
        self.best_validation_score_ = None
        self.data_fingerprint_ = fingerprint

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, folder: Any) -> None:
        """Write the model to a folder; `pictopic.load` reads it back.

        Parameters
        ----------
        folder : path
            Made if it does not exist; a model that is there already is replaced as a whole.
        """
        from pictopic.models.persistence import save

        check_is_fitted(self)
        save(self, folder)


class SupervisedMixin(ClassifierMixin):
    """Classes: their encoding, their probabilities from a hidden layer, and how good those are."""

    classes_: np.ndarray
    multi_label_: bool
    generative_weight: float

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _generative_weight(self) -> float:
        return self.generative_weight

    def _check(self, X: Any, y: Any, global_features: Any = None, *, reset: bool, classes: Any = None) -> Rows:
        rows = self._check_X(X, global_features, reset=reset)
        y = rows.labels if y is None else y
        return rows.with_labels(self._check_y(y, len(rows), reset=reset, classes=classes))

    def _usable(self, held_out: Rows) -> Rows | None:
        labelled = np.flatnonzero(held_out.labels.known)
        return held_out[labelled] if labelled.size else None

    def _check_y(self, y: Any, n_documents: int, *, reset: bool, classes: Any = None) -> Labels:
        """Labels of documents; with `reset`, the classes are learnt from them or taken from `classes`."""
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        known = np.unique(classes) if reset and classes is not None else None if reset else self.classes_
        labels, found, multi_label = encode_labels(y, n_documents, known)
        if reset:
            if len(found) < 2:
                raise ValueError(f"y must have at least two classes, but has {len(found)} class: {found.tolist()}")
            self.classes_, self.multi_label_ = found, multi_label
        elif multi_label != self.multi_label_:
            raise ValueError("y must be one label per row or a 0/1 matrix, as it was when the model was first fitted")
        return labels

    def _proba_of(self, h: np.ndarray, U: np.ndarray, d: np.ndarray) -> np.ndarray:
        """p(y | v) from hidden layers; in float64, so that a row's value does not depend on the rows beside it."""
        scores = h.astype(np.float64) @ U.astype(np.float64).T + d
        return expit(scores) if self.multi_label_ else softmax(scores, axis=1)

    def _classes_from(self, p: np.ndarray) -> np.ndarray:
        """The most probable classes, or a 0/1 matrix of those above one half."""
        return (p > 0.5).astype(np.int64) if self.multi_label_ else self.classes_[p.argmax(axis=1)]

    def _goodness(self, p: np.ndarray, indicator: np.ndarray, metric: str = "loss") -> float:
        """How good probabilities are, larger is better: minus the class loss, accuracy, or mean average precision."""
        y = indicator.astype(bool)
        if metric == "accuracy":
            if self.multi_label_:
                return float(((p > 0.5) == y).mean())
            return float(y[np.arange(len(y)), p.argmax(axis=1)].mean())
        if metric == "map":
            some = y.any(axis=0)
            return float(np.mean([average_precision_score(y[:, k], p[:, k]) for k in np.flatnonzero(some)]))
        tiny = 1e-12
        losses = -np.log(np.maximum(p[y], tiny)).sum()
        if self.multi_label_:
            losses -= np.log(np.maximum(1 - p[~y], tiny)).sum()
        return -float(losses) / len(y)


def _with_inherited_options(cls: type) -> inspect.Signature:
    """Signature of a class' ``__init__`` in which ``**options`` are replaced by what the class above it takes."""
    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    passes_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    inherited = dict(inspect.signature(super(cls, cls).__init__).parameters) if passes_on else {}  # type: ignore[arg-type]
    declared = {name: own for name, own in signature.parameters.items() if own.kind is not own.VAR_KEYWORD}
    return signature.replace(parameters=list((inherited | declared).values()))


def split_held_out(labels: Labels, fraction: float | None, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows to hold out: the same fraction of each class, or of all rows without classes.

    Numbers are rounded down, so that a class too small to be split stays in training.
    """
    n = len(labels.known)
    if fraction is None:
        return np.arange(n), np.zeros(0, np.int64)
    order = rng.permutation(n)
    if labels.indicator.shape[1] == 0:
        groups = [order]
    else:
        # A multi-label row counts for its rarest class.
        rarity = np.argsort(labels.indicator.sum(axis=0), kind="stable")
        first = rarity[labels.indicator[:, rarity].argmax(axis=1)]
        groups = [order[labels.known[order] & (first[order] == k)] for k in range(labels.indicator.shape[1])]
    held_out = np.sort(np.concatenate([group[: int(fraction * len(group))] for group in groups]))
    return np.setdiff1d(np.arange(n), held_out), held_out


def _digest(arrays: dict[str, np.ndarray]) -> str:
    """SHA-256 of named arrays."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
