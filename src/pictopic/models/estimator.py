"""Common base of the four estimators: options, random numbers, classes, results of training, files."""

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

_MIN_STEPS = 12  # per epoch, unless batches become too small
_MIN_BATCH = 8


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the estimators; see `DocNADE` and `DeepDocNADE` for the options.

    A subclass declares the options that it adds, or whose defaults it changes, and passes the others on:
    ``def __init__(self, *, smoothing="auto", **options)``.  Its signature lists all of them, as scikit-learn expects.
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "output": [StrOptions({"tree", "softmax"})],
        "activation": [StrOptions({"relu", "tanh", "sigmoid"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"adam", "sgd"})],
        "learning_rate": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "annotation_weight": [StrOptions({"balanced"}), Interval(Real, 0, None, closed="neither")],
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
    # Options that do not change what a run computes, or only its length: not part of a checkpoint's identity.
    _FREE_OPTIONS: ClassVar[frozenset[str]] = frozenset(
        {"max_iter", "n_iter_no_change", "verbose", "warm_start", "init", "random_state", "n_jobs"}
    )
    _LEARNING_RATES: ClassVar[dict[str, float]]  # value of "auto" for each solver
    _LARGEST_BATCH: ClassVar[int]  # upper limit of "auto"
    _zero_biases: ClassVar[bool] = False  # whether the output biases b start at zero instead of the words' frequencies

    # State that `partial_fit` continues from: the solver's memory and its random numbers.
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
        annotation_weight="balanced",
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
        self.annotation_weight = annotation_weight
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
        """Return the number of documents per step."""
        if self.batch_size != "auto":
            return self.batch_size
        return min(self._LARGEST_BATCH, max(_MIN_BATCH, n_documents // _MIN_STEPS))

    def _generative_weight(self) -> float:
        return 1.0

    def _rho(self, word_counts: np.ndarray) -> float:
        """Return rho: the option, or mean visual / mean annotation words, and 1 where either is absent."""
        if self.annotation_weight != "balanced":
            return float(self.annotation_weight)
        cut = len(word_counts) - self.n_annotation_words
        visual, annotation = int(word_counts[:cut].sum()), int(word_counts[cut:].sum())
        return visual / annotation if visual and annotation else 1.0

    # Whether the model predicts tags from pictures and does not model the probability of visual words.
    predicts_tags_only = False

    # ---- input -------------------------------------------------------------------------------------------------------

    def _check_X(self, X: Any, global_features: Any = None, *, reset: bool) -> Rows:
        """Check X and its global features."""
        return check_rows(self, X, global_features, reset=reset)

    def _check(self, X: Any, y: Any, global_features: Any = None, *, reset: bool, classes: Any = None) -> Rows:
        """Check X with its global features and encode y; here without classes."""
        rows = self._check_X(X, global_features, reset=reset)
        return rows.with_labels(no_labels(len(rows)))

    # ---- training ----------------------------------------------------------------------------------------------------

    def _fit_rows(self, documents: Rows, held_out: Rows | None, run: Run | None) -> Any:
        """Train on documents, with early stopping on those held out, by default a fraction."""
        run = run or Run()
        random_state = self._run_random_state(run)
        if held_out is None:
            rng = check_random_state(random_state)
            train_rows, held_out_rows = split_held_out(documents.labels, self.validation_fraction, rng)
            documents, held_out = documents[train_rows], documents[held_out_rows]
        self._fit(documents, self._usable(held_out), run, random_state)
        return self

    def _usable(self, held_out: Rows) -> Rows | None:
        """Return the held-out documents that can be scored, or None."""
        return held_out if any(held_out.read(chunk).nnz for chunk in held_out.chunks()) else None

    def _run_random_state(self, run: Run) -> Any:
        """Return the seed or generator of all random numbers of a fit."""
        raise NotImplementedError

    def _fit(self, documents: Rows, held_out: Rows | None, run: Run, random_state: Any) -> None:
        """Train until `max_iter`, or until the held-out score no longer improves."""
        raise NotImplementedError

    def _drawn_seed(self, checkpoint: Checkpoint | None) -> int:
        """Return a seed from `random_state`; if that is not a number, the seed of the run to resume, if any."""
        if checkpoint is not None and not isinstance(self.random_state, Integral):
            state = checkpoint.peek()
            if state is not None:
                return int(json.loads(state["identity"])["seed"])
        return int(check_random_state(self.random_state).randint(2**31))

    def _identity(self, seed: int, fingerprint: str, held_out_fingerprint: str | None) -> str:
        """Return everything that determines the result of a run, as JSON."""
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
        """Return the parameters that training starts from."""
        raise NotImplementedError

    def _set_theta(self, theta: Any) -> None:
        """Make these the model's parameters."""
        raise NotImplementedError

    def _keep(self, outcome: Outcome, fingerprint: str) -> None:
        """Store the result of `fit`."""
        self._set_theta(outcome.theta)
        self._solver_state = None
        self.n_iter_ = outcome.n_iter
        self.stop_reason_ = outcome.reason
        self.best_validation_score_ = outcome.best_score
        self.history_ = outcome.history
        self.data_fingerprint_ = fingerprint

    def _keep_pass(self, outcome: Outcome, trainer: Trainer, rng: np.random.RandomState, fingerprint: str) -> None:
        """Store the result of one `partial_fit`, and the state that the next one needs."""
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
            Created if missing; an existing model is replaced as a whole.
        """
        from pictopic.models.persistence import save

        check_is_fitted(self)
        save(self, folder)


class SupervisedMixin(ClassifierMixin):
    """Classes of a model: encoding, probabilities from a hidden layer, and validation scores."""

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
        """Encode labels; with `reset`, the classes are learnt from them or taken from `classes`."""
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        known = np.unique(classes) if reset and classes is not None else None if reset else self.classes_
        labels, fitted_classes, multi_label = encode_labels(y, n_documents, known)
        if reset:
            if len(fitted_classes) < 2:
                raise ValueError(
                    f"y must have at least two classes, but has {len(fitted_classes)} class: {fitted_classes.tolist()}"
                )
            self.classes_, self.multi_label_ = fitted_classes, multi_label
        elif multi_label != self.multi_label_:
            raise ValueError("y must be one label per row or a 0/1 matrix, as it was when the model was first fitted")
        return labels

    def _proba_of(self, h: np.ndarray, U: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Return p(y | v) from hidden layers; in float64, so that a row does not depend on the other rows."""
        scores = h.astype(np.float64) @ U.astype(np.float64).T + d
        return expit(scores) if self.multi_label_ else softmax(scores, axis=1)

    def _classes_from(self, p: np.ndarray) -> np.ndarray:
        """Return the most probable classes, or a 0/1 matrix of those above one half."""
        return (p > 0.5).astype(np.int64) if self.multi_label_ else self.classes_[p.argmax(axis=1)]

    def _proba_score(self, p: np.ndarray, indicator: np.ndarray, metric: str = "loss") -> float:
        """Score probabilities, larger is better: minus the class loss, accuracy, or mean average precision."""
        y = indicator.astype(bool)
        if metric == "accuracy":
            if self.multi_label_:
                return float(((p > 0.5) == y).mean())
            return float(y[np.arange(len(y)), p.argmax(axis=1)].mean())
        if metric == "map":
            occurs = y.any(axis=0)
            return float(np.mean([average_precision_score(y[:, k], p[:, k]) for k in np.flatnonzero(occurs)]))
        tiny = 1e-12
        losses = -np.log(np.maximum(p[y], tiny)).sum()
        if self.multi_label_:
            losses -= np.log(np.maximum(1 - p[~y], tiny)).sum()
        return -float(losses) / len(y)


def _with_inherited_options(cls: type) -> inspect.Signature:
    """Return the signature of ``__init__`` with ``**options`` replaced by the options of the base class."""
    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    passes_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    inherited = dict(inspect.signature(super(cls, cls).__init__).parameters) if passes_on else {}  # type: ignore[arg-type]
    declared = {name: option for name, option in signature.parameters.items() if option.kind is not option.VAR_KEYWORD}
    return signature.replace(parameters=list((inherited | declared).values()))


def split_held_out(labels: Labels, fraction: float | None, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Return rows to train on and to hold out: a fraction of each class, or of all rows without classes.

    Numbers are rounded down, so that a class too small to be split stays in the training rows.
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
    """Return the SHA-256 of named arrays."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
