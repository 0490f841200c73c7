"""Checking that a matrix holds counts of words, and saying where it does not."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data


def check_counts(estimator: BaseEstimator, X: Any, *, reset: bool) -> sparse.csr_array:
    """Return X as a CSR matrix of int32 counts, or raise a ValueError that names the first wrong entry.

    Parameters
    ----------
    estimator : estimator
        Whose input X is; `reset` says whether it learns the number and names of the columns now.
    X : {array-like, sparse matrix} of shape (n_documents, n_words)
        Whole numbers from 0 on, of any numeric type.
    reset : bool

    Returns
    -------
    csr_array
        Columns sorted, no zeros stored, never the caller's own memory.
    """
    X = validate_data(estimator, X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, reset=reset)
    X = sparse.csr_array(X, copy=True)
    X.sum_duplicates()
    data = X.data
    if data.dtype.kind == "f":
        _refuse(X, np.isnan(data), "Input X contains NaN{}: counts must be known")
        _refuse(X, np.isinf(data), "Input X contains infinity{}: counts must be finite")
    elif data.dtype.kind not in "biu":
        raise ValueError(f"X must hold counts, not {data.dtype} values (complex data not supported)")
    name = type(estimator).__name__
    _refuse(X, data < 0, f"Negative values in data passed to {name}{{}}: a word cannot occur fewer than 0 times")
    if data.dtype.kind == "f":
        _refuse(X, data != np.floor(data), "X must hold whole counts, but has a fraction{}; nothing is rounded")
    _refuse(X, data > np.iinfo(np.int32).max, "X has a count above 2147483647{}")
    X = sparse.csr_array((data.astype(np.int32), X.indices, X.indptr), shape=X.shape)
    X.eliminate_zeros()
    return X


def _refuse(X: sparse.csr_array, wrong: np.ndarray, message: str) -> None:
    places = np.flatnonzero(wrong)
    if places.size:
        row = int(np.searchsorted(X.indptr, places[0], side="right")) - 1
        where = f" (row {row}, column {X.indices[places[0]]}: {X.data[places[0]]})"
        raise ValueError(message.format(where))


def document_lengths(X: sparse.csr_array) -> np.ndarray:
    """Number of words of each document, D."""
    return np.asarray(X.sum(axis=1, dtype=np.int64)).ravel()


def fingerprint(X: sparse.csr_array, labels: np.ndarray | None = None) -> str:
    """SHA-256 of the counts (and labels) a model was fitted on."""
    digest = hashlib.sha256(repr(X.shape).encode())
    for array in (X.indptr.astype("<i8"), X.indices.astype("<i8"), X.data.astype("<i4")):
        digest.update(np.ascontiguousarray(array).data)
    if labels is not None:
        digest.update(np.ascontiguousarray(labels).data)
    return digest.hexdigest()
