"""Classes: what SupDocNADE and SupDeepDocNADE share, and what the latter says of documents with global features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score, average_precision_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from pictopic.corpus.rows import Rows
from pictopic.models.inputs import Labels, encode_labels


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


class DeepSupervisedMixin(SupervisedMixin):
    """Classes of documents with global features."""

    validation_metric: str
    parameters_: dict[str, np.ndarray]

    if TYPE_CHECKING:

        def _represent(self, parameters: dict[str, np.ndarray], documents: Rows) -> np.ndarray: ...

    @property
    def coef_(self) -> np.ndarray:
        """U."""
        return self.parameters_["U"]

    @property
    def intercept_(self) -> np.ndarray:
        """D."""
        return self.parameters_["d"]

    def _validation_score(self, parameters: dict[str, np.ndarray], held_out: Rows, seed: int) -> float:
        """Larger is better: what `validation_metric` says of the held-out documents' classes."""
        if self.predicts_tags_only:
            held_out = held_out.without_tags()
        return self._goodness(
            self._class_proba(parameters, held_out), held_out.labels.indicator, self.validation_metric
        )

    def _class_proba(self, parameters: dict[str, np.ndarray], documents: Rows) -> np.ndarray:
        return self._proba_of(self._represent(parameters, documents), parameters["U"], parameters["d"])

    def predict_proba(self, X: Any, *, global_features: Any = None) -> np.ndarray:
        """p(y | v) of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.  Columns of a modality that is missing are 0.
        global_features : array-like of shape (n_documents, n_features), optional

        Returns
        -------
        ndarray of shape (n_documents, n_classes)
            In the order of `classes_`.  Rows sum to one, unless a document can have several classes.
        """
        check_is_fitted(self)
        return self._class_proba(self.parameters_, self._check_X(X, global_features, reset=False))

    def predict(self, X: Any, *, global_features: Any = None) -> np.ndarray:
        """The most probable class of each document, or a 0/1 matrix of the classes above one half.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.
        global_features : array-like of shape (n_documents, n_features), optional

        Returns
        -------
        ndarray of shape (n_documents,) or (n_documents, n_classes)
        """
        return self._classes_from(self.predict_proba(X, global_features=global_features))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, global_features: Any = None) -> float:
        """Accuracy: share of the documents whose class (or all of whose classes) is predicted.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.
        y : array-like of shape (n_documents,), or 0/1 matrix of shape (n_documents, n_classes)
        sample_weight : array-like of shape (n_documents,), optional
        global_features : array-like of shape (n_documents, n_features), optional

        Returns
        -------
        float
        """
        predicted = self.predict(X, global_features=global_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))
