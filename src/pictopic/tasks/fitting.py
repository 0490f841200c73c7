"""From a corpus to everything that answers questions about pictures: network, class head, tag thresholds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pictopic.corpus.corpus import Corpus
from pictopic.models.deep import DeepDocNADE, SupDeepDocNADE
from pictopic.models.docnade import DocNADE, SupDocNADE
from pictopic.models.documents import PICTURES_FIRST
from pictopic.models.run import Run
from pictopic.tasks.annotate import TagThresholds
from pictopic.tasks.classify import ClassHead, fit_class_head
from pictopic.tasks.likelihood import compare_with_unigram
from pictopic.tasks.metrics import f_measure_at_k, mean_average_precision
from pictopic.tasks.splits import LEAST_HELD_OUT, choose_parts, rows_to_learn_from

DEEP_FROM = 50  # rows: of 60 made-up scenes a deep model already learns more, in about the same time
_TOP = 5  # tags, as in the paper
_LAYERS = (512, 512)
_THREADS_FROM = 2_000  # rows
TRIAL, FINAL = "trial", "final"  # the trainings of a fit


Fit = Callable[[Any, Any, Any, dict[str, Any]], Any]  # estimator, X, y, others of `fit` -> the fitted estimator


class Rows:
    """Counts and global features of some pictures, with and without their tags.

    Parameters
    ----------
    X : csr_array of shape (n, n_words)
    features : array of shape (n, n_features) or None
    n_annotation_words : int
    """

    def __init__(self, X: sparse.csr_array, features: Any, n_annotation_words: int):
        self.X, self.n_annotation_words = sparse.csr_array(X), n_annotation_words
        self.features = None if features is None else np.asarray(features)

    @classmethod
    def of(cls, corpus: Corpus) -> Rows:
        """All rows of a corpus."""
        return cls(corpus.X, corpus.global_features, corpus.vocabulary.n_annotation_words)

    def __len__(self) -> int:
        return self.X.shape[0]

    def __getitem__(self, rows: np.ndarray) -> Rows:
        return Rows(self.X[rows], None if self.features is None else self.features[rows], self.n_annotation_words)

    @property
    def n_visual(self) -> int:
        """Number of columns of visual words."""
        return self.X.shape[1] - self.n_annotation_words

    def without_tags(self) -> Rows:
        """The same pictures as one would meet them: without tags; but if there are only tags, with them."""
        if not self.n_visual:
            return self
        X = self.X.copy()
        X.data *= X.indices < self.n_visual
        X.eliminate_zeros()  # in place: not in the caller's counts
        return Rows(X, self.features, self.n_annotation_words)

    def has_tag(self) -> np.ndarray:
        """Which tags each picture has, (n, n_annotation_words)."""
        return self.X[:, self.n_visual :].toarray() > 0


class Network:
    """A fitted estimator, shallow or deep, behind one interface: only the deep ones take global features."""

    def __init__(self, estimator: Any):
        self.estimator = estimator

    @property
    def is_deep(self) -> bool:
        """Whether it is a deep one."""
        return isinstance(self.estimator, DeepDocNADE | SupDeepDocNADE)

    @property
    def predicts_tags_only(self) -> bool:
        """Whether it was trained to predict tags from pictures, and knows nothing of how probable visual words are."""
        return self.is_deep and self.estimator.split == PICTURES_FIRST

    def _features(self, rows: Rows) -> dict[str, Any]:
        return {"global_features": rows.features} if self.is_deep and rows.features is not None else {}

    def represent(self, rows: Rows) -> np.ndarray:
        """Hidden representations, (n, n_components)."""
        return self.estimator.transform(rows.X, **self._features(rows))

    def tag_proba(self, rows: Rows) -> np.ndarray:
        """p(next word) over the annotation words, renormalised, (n, n_annotation_words)."""
        columns = np.arange(rows.n_visual, rows.X.shape[1])
        p = self.estimator.next_word_proba(rows.X, columns=columns, **self._features(rows))
        return p / np.maximum(p.sum(axis=1, keepdims=True), 1e-12)

    def class_proba(self, rows: Rows) -> np.ndarray:
        """The network's own p(class), (n, classes)."""
        return self.estimator.predict_proba(rows.X, **self._features(rows))

    def own_head(self) -> tuple[np.ndarray, np.ndarray]:
        """U and d."""
        if self.is_deep:
            return self.estimator.parameters_["U"], self.estimator.parameters_["d"]
        return self.estimator.coef_, self.estimator.intercept_


@dataclass
class HeldOut:
    """What a network that had not seen them said of the pictures that were held out.

    The network that answers has learnt from them, too: asked now, it would be too good.
    """

    rows: np.ndarray  # numbers of the pictures in the corpus
    class_proba: np.ndarray | None  # (n, classes), in the order of the head's classes
    tag_proba: np.ndarray | None  # (n, n_annotation_words)


@dataclass
class Fitted:
    """What learning came to."""

    network: Network
    head: ClassHead | None  # None: there are no classes to tell apart
    thresholds: TagThresholds | None  # None: there are no tags, or too few pictures
    figures: dict[str, float]  # on the held-out part
    held_out: HeldOut | None = None  # None: too few rows to hold some out

    @property
    def n_validation(self) -> int:
        """How many pictures were held out."""
        return 0 if self.held_out is None else len(self.held_out.rows)


def fit_everything(
    corpus: Corpus,
    *,
    kind: str,
    random_state: int,
    n_jobs: int | None,
    verbose: int,
    options: dict[str, Any] | None = None,
    trial: bool = False,
    init: Any = None,
    fit: Fit | None = None,
    run: Run | None = None,
) -> Fitted:
    """Learn from a corpus; what can be chosen is chosen on a part of it that is held out, and learnt from at last.

    Parameters
    ----------
    corpus : Corpus
        Its own split is used if it has parts "train" and "validation" (or "val", "valid", "dev"); "test" is never
        looked at.
    kind : {"auto", "shallow", "deep"}
    random_state, n_jobs, verbose
        Of the estimator.
    options : dict, optional
        Others of the estimator.
    trial : bool, default=False
        Whether only the figures are wanted: what is held out is not learnt from.
    init : DeepDocNADE or SupDeepDocNADE, optional
        A pretrained model of the same words to start from.  Where there are classes, only the rows that have one are
        learnt from: the others were when it was pretrained.
    fit : callable, optional
        What trains, such as on a cluster; default: the estimator's own `fit`.
    run : Run, optional
        Its checkpoints are in the sub-folders ``trial``, of the training that leaves the held-out part out, and
        ``final``, of the training on everything.  With `finish`, the final training's model is taken if at least half
        of it is done, otherwise the trial's.

    Returns
    -------
    Fitted
    """
    rows, labels = Rows.of(corpus), usable_labels(corpus)
    if not rows.X.sum():
        raise ValueError("there is nothing to learn from: no picture has a visual word or a tag")
    options = dict(options or {})
    if init is not None:
        if kind == "shallow":
            raise ValueError("a shallow model cannot start from a pretrained one, which is deep")
        kind = "deep"
        options |= {name: getattr(init, name) for name in ("n_components", "output", "activation")} | {"init": init}
    estimator = _estimator(rows, labels, kind, random_state, n_jobs, verbose)
    network = Network(estimator.set_params(**options))
    fitted = _fit(network, corpus, random_state, trial, fit or _fit_here, run or Run())
    if init is not None:
        fitted.network.estimator.set_params(init=None)  # learnt from; it is not needed any more
    return fitted


def _fit_here(estimator: Any, X: Any, y: Any, arguments: dict[str, Any]) -> Any:
    return estimator.fit(X, y, **arguments)


def _fit(network: Network, corpus: Corpus, random_state: int, only_trial: bool, fit: Fit, run: Run) -> Fitted:
    """Choose on the held-out part, then learn from everything."""
    rows, labels = Rows.of(corpus), usable_labels(corpus)
    train, held_out = choose_parts(corpus)
    if not len(held_out):
        _train(network, rows, labels, _wanted(network, labels, train), held_out, fit, run.part(FINAL))
        head = None if labels is None else _own_classes(network, labels, corpus.classes)
        return Fitted(network, head, None, {})
    trial = Network(copy.deepcopy(network.estimator))
    _train(trial, rows, labels, _wanted(network, labels, train), held_out, fit, run.part(TRIAL))
    figures: dict[str, float] = {}
    head, found = None, HeldOut(held_out, None, None)
    thresholds = _fit_tags(trial, rows, train, found, figures)
    if labels is not None:
        head = _fit_classes(trial, rows, labels, train, found, corpus.classes, random_state, figures)
    figures |= compare_with_unigram(trial, rows[held_out], rows[train])
    fitted = Fitted(network, head, thresholds, figures, found)
    history = trial.estimator.history_
    stopped = trial.estimator.stop_reason_ == "interrupted" or not history["validation_score"]
    if only_trial or stopped or (run.finish and not _has_checkpoint(run.part(FINAL))):
        network.estimator = trial.estimator  # somebody does not want to wait any longer
        return fitted
    passes = int(np.argmax(history["validation_score"])) + 1
    _train_on_all(fitted, corpus, fit, run, max_iter=passes)
    if 2 * network.estimator.n_iter_ < passes:  # interrupted: the trial has learnt more
        network.estimator = trial.estimator
    else:
        _learn_head(fitted, corpus)
        network.estimator.history_ = history  # of the run that has both curves
    return fitted


def _has_checkpoint(run: Run) -> bool:
    return run.checkpoint is not None and bool(run.checkpoint.names())


def refit(fitted: Fitted, corpus: Corpus, passes: int, run: Run | None = None) -> Fitted:
    """Go on learning, from a collection that has grown, or whose tags have changed.

    What was chosen stays as it was, and so does what is known of how good the answers are: the network has seen the
    pictures that were held out.

    Parameters
    ----------
    fitted : Fitted
        Where to go on from; its network and head are changed.
    corpus : Corpus
        With the same words; its first rows are those that were learnt from.
    passes : int
    run : Run, optional
        As for `fit_everything`.

    Returns
    -------
    Fitted

    Raises
    ------
    ValueError
        If there are classes that the model does not know.
    """
    if fitted.held_out is None and len(choose_parts(corpus)[1]):
        # Large enough now to hold some out; but these pictures are known already: it has to start over.
        return _fit(fitted.network, corpus, fitted.network.estimator.random_state, False, _fit_here, run or Run())
    labels = {label for row_labels in corpus.label_lists for label in row_labels or ()}
    new = [] if fitted.head is None else sorted(labels - set(fitted.head.classes))
    if new:
        raise ValueError(f"the model does not know the class {new[0]!r}: learn anew with pictopic fit")
    history = fitted.network.estimator.history_
    _train_on_all(fitted, corpus, _fit_here, run or Run(), warm_start=True, max_iter=passes)
    _learn_head(fitted, corpus)
    fitted.network.estimator.history_ = history  # it has both curves
    return fitted


def usable_labels(corpus: Corpus) -> np.ndarray | None:
    """Labels, if there are at least two classes to tell apart."""
    labels = corpus.labels
    if labels is None or (labels.ndim == 1 and len({name for name in labels if name is not None}) < 2):
        return None
    return labels


def known_rows(labels: np.ndarray) -> np.ndarray:
    """Which rows have labels."""
    if labels.ndim == 2:
        return np.asarray(~np.isnan(labels.astype(np.float64)).any(axis=1))
    return np.array([name is not None for name in labels], dtype=bool)


def usual_split(n_visual: int, n_annotation_words: int) -> str:
    """How a deep model's contexts are drawn: tags must be told from pictures alone; without pictures, from others."""
    return "pictures_first" if n_visual and n_annotation_words else "ordering"


def _estimator(rows: Rows, labels: Any, kind: str, seed: int, n_jobs: int | None, verbose: int) -> Any:
    deep = kind == "deep" or (kind == "auto" and len(rows) >= DEEP_FROM)
    # Small products gain nothing from threads, and wait for each other on a busy machine.
    n_jobs = n_jobs if len(rows) >= _THREADS_FROM else 1
    options: dict[str, Any] = {
        "n_annotation_words": rows.n_annotation_words, "random_state": seed, "n_jobs": n_jobs, "verbose": verbose,
    }  # fmt: skip
    if deep:
        options["split"] = usual_split(rows.n_visual, rows.n_annotation_words)
        options["n_components"] = _LAYERS
        return SupDeepDocNADE(**options) if labels is not None else DeepDocNADE(**options)
    return SupDocNADE(**options) if labels is not None else DocNADE(**options)


def _train(
    network: Network, rows: Rows, labels: Any, train: np.ndarray, held_out: np.ndarray, fit: Fit, run: Run
) -> None:
    part = rows[train]
    arguments: dict[str, Any] = {"run": run}
    if network.is_deep and rows.features is not None:
        arguments["global_features"] = part.features
    if len(held_out):
        arguments["X_val"] = rows[held_out].X
        if network.is_deep and rows.features is not None:
            arguments["global_features_val"] = rows[held_out].features
    if labels is not None and len(held_out):
        arguments["y_val"] = labels[held_out]
    network.estimator = fit(network.estimator, part.X, None if labels is None else labels[train], arguments)


def _wanted(network: Network, labels: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    """Those to train on: of a pretrained network only the rows with classes, as it has learnt from the others."""
    if labels is None or getattr(network.estimator, "init", None) is None:
        return rows
    return rows[known_rows(labels)[rows]]


def _train_on_all(fitted: Fitted, corpus: Corpus, fit: Fit, run: Run, **changes: Any) -> None:
    """Train the network on everything, with some options changed for the time being."""
    network, rows, labels = fitted.network, Rows.of(corpus), usable_labels(corpus)
    changes["validation_fraction"] = None
    before = {name: getattr(network.estimator, name) for name in changes}
    network.estimator.set_params(**changes)
    everything = rows_to_learn_from(corpus)
    try:
        _train(network, rows, labels, _wanted(network, labels, everything), everything[:0], fit, run.part(FINAL))
    finally:
        network.estimator.set_params(**before)


def _learn_head(fitted: Fitted, corpus: Corpus) -> None:
    """Train the head on everything, with what the network makes of it."""
    network, rows, labels = fitted.network, Rows.of(corpus), usable_labels(corpus)
    if fitted.head is not None and labels is not None:
        everything = rows_to_learn_from(corpus)
        known = everything[known_rows(labels)[everything]]
        fitted.head.learn(network.represent(rows[known].without_tags()), labels[known], network.own_head())


def _fit_tags(
    trial: Network, rows: Rows, train: np.ndarray, held_out: HeldOut, figures: dict[str, float]
) -> TagThresholds | None:
    if not rows.n_annotation_words or not rows.n_visual:  # tags would be told from themselves
        return None
    part = rows[held_out.rows]
    has_tag = part.has_tag()
    tagged = has_tag.any(axis=1)
    p = held_out.tag_proba = trial.tag_proba(part.without_tags())
    if not tagged.any() or len(part) < LEAST_HELD_OUT:
        return None
    frequency = rows[train].has_tag().sum(axis=0)
    true = [np.flatnonzero(own).tolist() for own in has_tag[tagged]]
    figures["tags"] = f_measure_at_k(true, np.argsort(-p[tagged], axis=1, kind="stable")[:, :_TOP].tolist(), _TOP)
    usual = np.argsort(-frequency, kind="stable")[:_TOP].tolist()
    figures["tags_baseline"] = f_measure_at_k(true, [usual] * len(true), _TOP)
    return TagThresholds.fit(p[tagged], has_tag[tagged])


def _own_classes(network: Network, labels: np.ndarray, classes: list[str]) -> ClassHead:
    """The network's own head, where there are too few pictures to choose by."""
    none = np.zeros((0, 0))
    return fit_class_head(none, labels[:0], none, labels[:0], network.own_head(), _names(network, labels, classes))


def _names(network: Network, labels: np.ndarray, classes: list[str]) -> list[str]:
    """Classes in the network's order."""
    return [str(name) for name in network.estimator.classes_] if labels.ndim == 1 else classes


def _fit_classes(
    trial: Network,
    rows: Rows,
    labels: np.ndarray,
    train: np.ndarray,
    held_out: HeldOut,
    classes: list[str],
    random_state: int,
    figures: dict[str, float],
) -> ClassHead:
    Z_val = trial.represent(rows[held_out.rows].without_tags())
    known = known_rows(labels)
    train, told = train[known[train]], known[held_out.rows]
    Z, y, y_val = trial.represent(rows[train].without_tags()), labels[train], labels[held_out.rows[told]]
    names = _names(trial, labels, classes)
    head = fit_class_head(Z, y, Z_val[told], y_val, trial.own_head(), names, random_state)
    held_out.class_proba = head.predict_proba(Z_val)
    if not told.any():
        return head
    figures["classes"] = head.scores[head.name]
    if labels.ndim == 1:
        values, counts = np.unique(y.astype(str), return_counts=True)
        figures["classes_baseline"] = float(np.mean(y_val.astype(str) == values[counts.argmax()]))
    else:
        figures["classes_baseline"] = mean_average_precision(y_val, np.tile(y.mean(axis=0), (len(y_val), 1)))
    return head
