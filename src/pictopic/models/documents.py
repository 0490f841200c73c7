"""What a deep model reads: rows of counts, their global features and their labels, in memory or on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array

from pictopic.corpus.rows import DenseRows, MappedRows, RowReader
from pictopic.models.counts import check_counts, document_lengths
from pictopic.models.labels import Labels, no_labels

CHUNK = 512  # rows that are read at a time
PICTURES_FIRST = "pictures_first"  # the split in which tags are predicted from all visual words


@dataclass
class Documents:
    """Some rows of a corpus.  Nothing is copied: a subset is a list of row numbers."""

    counts: sparse.csr_array | RowReader
    features: np.ndarray | DenseRows | None  # (n, F), None without global features; NaN where they are missing
    labels: Labels
    rows: np.ndarray  # which rows of the above

    @classmethod
    def of(cls, counts: Any, features: Any = None, labels: Labels | None = None) -> Documents:
        """All rows."""
        n = counts.shape[0]
        return cls(counts, features, no_labels(n) if labels is None else labels, np.arange(n))

    def __len__(self) -> int:
        return len(self.rows)

    def subset(self, index: np.ndarray) -> Documents:
        """The documents with these places in `rows`."""
        return Documents(self.counts, self.features, self.labels, self.rows[index])

    def without_last_columns(self, n: int) -> Documents:
        """The same documents, with none of the last `n` words."""
        return Documents(_FirstColumns(self.counts, self.counts.shape[1] - n), self.features, self.labels, self.rows)

    def read(self, index: np.ndarray | slice) -> sparse.csr_array:
        """Counts of the documents with these places in `rows`."""
        return self.counts[self.rows[index]]

    def read_features(self, index: np.ndarray | slice) -> np.ndarray | None:
        """Global features of the same documents."""
        if self.features is None:
            return None
        rows = self.rows[index]
        features = np.asarray(self.features[rows], np.float32)
        infinite = np.argwhere(np.isinf(features))
        if infinite.size:
            row, column = infinite[0]
            raise ValueError(f"global_features has infinity in row {rows[row]}, column {column}")
        return features

    def read_labels(self, index: np.ndarray | slice) -> Labels:
        """Labels of the same documents."""
        rows = self.rows[index]
        return Labels(self.labels.indicator[rows], self.labels.known[rows])

    def chunks(self, size: int = CHUNK) -> Iterator[slice]:
        """Slices of at most `size` documents."""
        return (slice(start, min(start + size, len(self))) for start in range(0, len(self), size))


class _FirstColumns(RowReader):
    """Counts in which all but the first columns are 0."""

    def __init__(self, counts: sparse.csr_array | RowReader, n_columns: int):
        self._counts, self._n_columns, self.shape = counts, n_columns, counts.shape

    def __getitem__(self, rows: np.ndarray) -> sparse.csr_array:
        X = self._counts[rows]
        return sparse.csr_array((X.data * (X.indices < self._n_columns), X.indices, X.indptr), shape=X.shape)


@dataclass
class Statistics:
    """What one pass over the documents tells."""

    word_counts: np.ndarray  # (Q,)
    squares: np.ndarray  # (Q,) sum over the documents of the squared count
    mean_length: float
    feature_mean: np.ndarray  # (F,), of those that are not missing
    feature_scale: np.ndarray  # (F,) standard deviation, 1 where a feature is constant
    fingerprint: str  # SHA-256 of everything


def describe(documents: Documents) -> Statistics:
    """Read the documents once."""
    digest = hashlib.sha256(repr((len(documents), documents.counts.shape[1])).encode())
    word_counts = np.zeros(documents.counts.shape[1], np.int64)
    squared_counts = np.zeros(len(word_counts))
    n_features = 0 if documents.features is None else documents.features.shape[1]
    number = np.zeros(n_features)
    mean, squares = np.zeros(n_features), np.zeros(n_features)  # squares: sum of squared deviations from the mean
    for chunk in documents.chunks(4 * CHUNK):
        X = documents.read(chunk)
        squared_counts += np.bincount(X.indices, weights=X.data.astype(np.float64) ** 2, minlength=len(word_counts))
        word_counts += np.bincount(X.indices, weights=X.data, minlength=len(word_counts)).astype(np.int64)
        for array in (document_lengths(X), X.indptr.astype("<i8"), X.indices.astype("<i4"), X.data.astype("<i4")):
            digest.update(np.ascontiguousarray(array).data)
        f = documents.read_features(chunk)
        if f is not None:
            digest.update(np.ascontiguousarray(f).data)
            number, mean, squares = _add_moments(number, mean, squares, f.astype(np.float64))
        digest.update(np.ascontiguousarray(documents.read_labels(chunk).indicator).data)
        digest.update(np.ascontiguousarray(documents.read_labels(chunk).known).data)
    scale = np.sqrt(squares / np.maximum(number, 1))
    scale[scale <= 1e-7 * np.maximum(1.0, np.abs(mean))] = 1.0
    return Statistics(
        word_counts, squared_counts, float(word_counts.sum() / max(len(documents), 1)), mean.astype(np.float32),
        scale.astype(np.float32), digest.hexdigest(),
    )  # fmt: skip


def _add_moments(number, mean, squares, f: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number, mean and squared deviations of each column with the rows `f` added (Chan's pairwise update)."""
    there = ~np.isnan(f)
    n = there.sum(axis=0)
    m = np.where(there, f, 0.0).sum(axis=0) / np.maximum(n, 1)
    s = (np.where(there, f - m, 0.0) ** 2).sum(axis=0)
    total = np.maximum(number + n, 1)
    delta = m - mean
    return number + n, mean + delta * n / total, squares + s + delta**2 * number * n / total


def check_documents(
    estimator: BaseEstimator, X: Any, features: Any, *, reset: bool, labels: Labels | None = None
) -> Documents:
    """Counts and global features as `Documents`, or a ValueError that says what is wrong with them.

    Parameters
    ----------
    estimator : estimator
        `reset` says whether it learns the numbers of columns now.
    X : {array-like, sparse matrix, RowReader, Corpus} of shape (n_documents, n_words)
    features : {array-like, memory map} of shape (n_documents, n_features) or None
        NaN where a picture has none.
    reset : bool
    labels : Labels, optional
    """
    if isinstance(getattr(X, "counts", None), RowReader):
        X = X.counts  # of a Corpus
    counts = _check_reader(estimator, X, reset) if isinstance(X, RowReader) else check_counts(estimator, X, reset=reset)
    if features is not None:
        features = _check_features(features, counts.shape[0])
    if reset:
        estimator.n_global_features_ = 0 if features is None else features.shape[1]
    elif features is not None and features.shape[1] != estimator.n_global_features_:
        raise ValueError(
            f"global_features has {features.shape[1]} columns, but {type(estimator).__name__} was fitted with "
            f"{estimator.n_global_features_}"
        )
    return Documents.of(counts, features, labels)


def _check_reader(estimator: BaseEstimator, X: RowReader, reset: bool) -> RowReader:
    if reset:
        estimator.n_features_in_ = X.shape[1]
        if X.shape[0] < 1:
            raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return X


def _check_features(features: Any, n_documents: int) -> np.ndarray | DenseRows:
    if isinstance(features, np.memmap) and getattr(features, "_mmap", None) is not None:
        features = MappedRows(features)  # it may be larger than memory, and is checked as it is read
    elif not isinstance(features, DenseRows):
        features = check_array(features, dtype="numeric", ensure_all_finite=False, ensure_min_features=0)
    if features.ndim != 2:
        raise ValueError(f"global_features must have two dimensions, got {features.ndim}")
    if features.shape[0] != n_documents:
        raise ValueError(f"X has {n_documents} rows, but global_features has {features.shape[0]}")
    return features
