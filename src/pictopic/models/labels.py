"""Class labels: one a document, several a document, or none."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target


class Labels(NamedTuple):
    """Classes of the documents."""

    indicator: np.ndarray  # (n, C) uint8: 1 where the document has the class
    known: np.ndarray  # (n,) False where the document is unlabelled


def no_labels(n_documents: int) -> Labels:
    """Labels of documents without classes."""
    return Labels(np.zeros((n_documents, 0), np.uint8), np.zeros(n_documents, bool))


def encode_labels(y: Any, n_documents: int, classes: np.ndarray | None = None) -> tuple[Labels, np.ndarray, bool]:
    """Turn what a user calls y into `Labels`.

    Parameters
    ----------
    y : array-like of shape (n_documents,), or 0/1 matrix of shape (n_documents, n_classes)
        A row that is None or NaN is unlabelled.
    n_documents : int
        Number of rows of X.
    classes : ndarray, optional
        The classes, when they are known already; a label outside them is an error.

    Returns
    -------
    labels : Labels
    classes : ndarray
        Sorted class labels, or 0..n_classes-1 for a 0/1 matrix.
    multi_label : bool

    Examples
    --------
    >>> from pictopic.models.labels import encode_labels
    >>> labels, classes, multi_label = encode_labels(["sea", None, "city"], 3)
    >>> classes.tolist(), labels.indicator.tolist(), labels.known.tolist()
    (['city', 'sea'], [[0, 1], [0, 0], [1, 0]], [True, False, True])
    """
    if sparse.issparse(y):
        y = y.toarray()
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1:
        return _encode_matrix(y, n_documents, classes)
    y = column_or_1d(y, warn=True)
    _check_length(y, n_documents)
    known = ~_missing(y)
    # Without the missing ones, integers that had to become float are integers again.
    given = np.array(y[known].tolist()) if y.dtype == object or y.dtype.kind == "f" else y[known]
    check_classification_targets(given)
    if given.dtype.kind == "f":
        given = given.astype(np.int64) if not known.all() else given
    if classes is None:
        classes = np.unique(given)
    codes = np.searchsorted(classes, given)
    wrong = np.flatnonzero(classes[np.minimum(codes, len(classes) - 1)] != given)
    if wrong.size:
        row = np.flatnonzero(known)[wrong[0]]
        raise ValueError(f"y has a class that was not there before in row {row}: {given[wrong[0]].item()!r}")
    indicator = np.zeros((n_documents, len(classes)), np.uint8)
    indicator[np.flatnonzero(known), codes] = 1
    return Labels(indicator, known), classes, False


def _encode_matrix(y: np.ndarray, n_documents: int, classes: np.ndarray | None) -> tuple[Labels, np.ndarray, bool]:
    _check_length(y, n_documents)
    missing = _missing(y)
    known = np.asarray(~missing.all(axis=1))
    partly = np.flatnonzero(missing.any(axis=1) & known)
    if partly.size:
        raise ValueError(
            f"y has both known and missing labels in row {partly[0]}; a row is labelled in full or not at all"
        )
    given = np.asarray(y[known].tolist() if y.dtype == object else y[known]).reshape(-1, y.shape[1])
    if (
        given.size
        and type_of_target(given) not in ("multilabel-indicator", "binary")
        and not np.isin(given, (0, 1)).all()
    ):
        check_classification_targets(given)
        raise ValueError("y has several columns, so it must be a 0/1 matrix with a column for each class")
    if classes is not None and len(classes) != y.shape[1]:
        raise ValueError(f"y has {y.shape[1]} columns, but the model has {len(classes)} classes")
    indicator = np.zeros((n_documents, y.shape[1]), np.uint8)
    indicator[known] = given
    return Labels(indicator, known), np.arange(y.shape[1]), True


def _missing(y: np.ndarray) -> np.ndarray:
    if y.dtype == object:
        # None, NaN and pandas' NA; only a NaN differs from itself.
        flat = [v is None or type(v).__name__ == "NAType" or (isinstance(v, float) and v != v) for v in y.ravel()]
        return np.array(flat, dtype=bool).reshape(y.shape)
    return np.isnan(y) if y.dtype.kind == "f" else np.zeros(y.shape, bool)


def _check_length(y: np.ndarray, n_documents: int) -> None:
    if len(y) != n_documents:
        raise ValueError(f"X has {n_documents} rows, but y has {len(y)} (inconsistent numbers of samples)")
