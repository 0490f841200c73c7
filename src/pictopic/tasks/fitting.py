"""From a corpus to everything that answers questions about pictures: network, class head, tag thresholds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pictopic.corpus.corpus import Corpus
from pictopic.models.deep import DeepDocNADE, SupDeepDocNADE
from pictopic.models.docnade import DocNADE, SupDocNADE
from pictopic.tasks.annotate import TagThresholds
from pictopic.tasks.classify import ClassHead, fit_class_head
from pictopic.tasks.metrics import f_measure_at_k, mean_average_precision

DEEP_FROM = 50  # rows: of 60 made-up scenes a deep model already learns more, in about the same time
_HELD_OUT = 0.15
_LEAST_HELD_OUT = 12  # rows; with fewer, nothing can be said about how good a model is
_TOP = 5  # tags, as in the paper
_LAYERS = (512, 512)
_THREADS_FROM = 2_000  # rows
VALIDATION = ("validation", "val", "valid", "dev")  # names of that part


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
class Fitted:
    """What learning came to."""

    network: Network
    head: ClassHead | None  # None: there are no classes to tell apart
    thresholds: TagThresholds | None  # None: there are no tags, or too few pictures
    figures: dict[str, float]  # on the validation part
    n_validation: int


def fit_everything(
    corpus: Corpus,
    *,
    kind: str,
    random_state: int,
    n_jobs: int | None,
    verbose: int,
    options: dict[str, Any] | None = None,
    init: Any = None,
    fit: Fit | None = None,
) -> Fitted:
    """Learn from a corpus; what can be chosen is chosen on a part of it that is held out.

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
    init : DeepDocNADE or SupDeepDocNADE, optional
        A pretrained model of the same words to start from.  Where there are classes, only the rows that have one are
        learnt from: the others were when it was pretrained.
    fit : callable, optional
        What trains, such as on a cluster; default: the estimator's own `fit`.

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
    fitted = _fit(Network(estimator.set_params(**options)), corpus, random_state, fit or _fit_here)
    if init is not None:
        fitted.network.estimator.set_params(init=None)  # learnt from; it is not needed any more
    return fitted


def _fit_here(estimator: Any, X: Any, y: Any, arguments: dict[str, Any]) -> Any:
    return estimator.fit(X, y, **arguments)


def _fit(network: Network, corpus: Corpus, random_state: int, fit: Fit = _fit_here) -> Fitted:
    rows, labels = Rows.of(corpus), usable_labels(corpus)
    train, held_out = choose_parts(corpus)
    if labels is not None and getattr(network.estimator, "init", None) is not None:
        train = train[known_rows(labels)[train]]
    _train(network, rows, labels, train, held_out, fit)
    figures: dict[str, float] = {}
    head = thresholds = None
    if len(held_out) >= _LEAST_HELD_OUT:
        thresholds = _fit_tags(network, rows, train, held_out, figures)
    if labels is not None:
        head = _fit_classes(network, rows, labels, train, held_out, corpus.classes, random_state, figures)
    return Fitted(network, head, thresholds, figures, len(held_out))


def refit(fitted: Fitted, corpus: Corpus, passes: int, random_state: int) -> Fitted:
    """Go on learning, from a collection that has grown.

    Parameters
    ----------
    fitted : Fitted
        Where to go on from; its network is changed.
    corpus : Corpus
        With the same words.
    passes : int
        At most.
    random_state : int

    Returns
    -------
    Fitted
    """
    estimator = fitted.network.estimator
    before = {name: getattr(estimator, name) for name in ("warm_start", "max_iter")}
    estimator.set_params(warm_start=True, max_iter=passes)
    try:
        return _fit(fitted.network, corpus, random_state)
    finally:
        estimator.set_params(**before)


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


def choose_parts(corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows to learn from, and of those to choose by."""
    splits = np.array(corpus.splits, dtype=object)
    validation = np.flatnonzero(np.isin(splits.astype(str), VALIDATION))
    train = np.flatnonzero(splits.astype(str) == "train")
    if len(train) and len(validation):
        return train, validation
    usable = train if len(train) else np.flatnonzero(splits.astype(str) != "test")
    if len(usable) * _HELD_OUT < _LEAST_HELD_OUT:
        return usable, np.zeros(0, np.int64)
    part = corpus[usable].split(_HELD_OUT, random_state=0)["test"]
    held_out = np.isin(corpus.row_numbers[usable], part.row_numbers)
    return usable[~held_out], usable[held_out]


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


def _train(network: Network, rows: Rows, labels: Any, train: np.ndarray, held_out: np.ndarray, fit: Fit) -> None:
    part = rows[train]
    arguments: dict[str, Any] = {}
    if network.is_deep and rows.features is not None:
        arguments["global_features"] = part.features
    if len(held_out):
        arguments["X_val"] = rows[held_out].X
        if network.is_deep and rows.features is not None:
            arguments["global_features_val"] = rows[held_out].features
    if labels is not None and len(held_out):
        arguments["y_val"] = labels[held_out]
    network.estimator = fit(network.estimator, part.X, None if labels is None else labels[train], arguments)


def _fit_tags(
    network: Network, rows: Rows, train: np.ndarray, held_out: np.ndarray, figures: dict[str, float]
) -> TagThresholds | None:
    if not rows.n_annotation_words or not rows.n_visual:  # tags would be told from themselves
        return None
    has_tag = rows[held_out].has_tag()
    tagged = has_tag.any(axis=1)
    if not tagged.any():
        return None
    p = network.tag_proba(rows[held_out].without_tags())
    frequency = rows[train].has_tag().sum(axis=0)
    true = [np.flatnonzero(own).tolist() for own in has_tag[tagged]]
    figures["tags"] = f_measure_at_k(true, np.argsort(-p[tagged], axis=1, kind="stable")[:, :_TOP].tolist(), _TOP)
    usual = np.argsort(-frequency, kind="stable")[:_TOP].tolist()
    figures["tags_baseline"] = f_measure_at_k(true, [usual] * len(true), _TOP)
    return TagThresholds.fit(p[tagged], has_tag[tagged])


def _fit_classes(
    network: Network,
    rows: Rows,
    labels: np.ndarray,
    train: np.ndarray,
    held_out: np.ndarray,
    classes: list[str],
    random_state: int,
    figures: dict[str, float],
) -> ClassHead:
    train, held_out = (part[known_rows(labels)[part]] for part in (train, held_out))
    names = [str(name) for name in network.estimator.classes_] if labels.ndim == 1 else classes
    Z = network.represent(rows[train].without_tags())
    if not len(held_out):
        return fit_class_head(Z, labels[train], Z[:0], labels[:0], network.own_head(), names, random_state)
    Z_val = network.represent(rows[held_out].without_tags())
    head = fit_class_head(Z, labels[train], Z_val, labels[held_out], network.own_head(), names, random_state)
    figures["classes"] = head.scores[head.name]
    if labels.ndim == 1:
        values, counts = np.unique(labels[train].astype(str), return_counts=True)
        figures["classes_baseline"] = float(np.mean(labels[held_out].astype(str) == values[counts.argmax()]))
    else:
        usual = np.tile(labels[train].mean(axis=0), (len(held_out), 1))
        figures["classes_baseline"] = mean_average_precision(labels[held_out], usual)
    return head
