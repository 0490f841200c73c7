"""Input of the estimators: checks of X and y, encoding of y, statistics and chunks of documents."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, validate_data

from pictopic.corpus.readers import DenseRows, RowReader
from pictopic.corpus.rows import Rows, check_counts

PICTURES_FIRST = "pictures_first"  # the split in which tags are predicted from all visual words


def check_rows(estimator: BaseEstimator, X: Any, global_features: Any = None, *, reset: bool) -> Rows:
    """Check X and return it as `Rows`; a ValueError says what is wrong.

    Parameters
    ----------
    estimator : estimator
        Estimator that X is for; with `reset`, it learns the number and names of the columns.
    X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
        Non-negative whole numbers of any numeric type.
    global_features : {array-like, memory map, DenseRows} of shape (n_documents, n_features), optional
        Used instead of those in X.
    reset : bool

    Returns
    -------
    Rows
    """
    if isinstance(getattr(X, "counts", None), RowReader):
        X = Rows.of(X)  # a Corpus
    if isinstance(X, Rows | RowReader):
        _check_shape(estimator, X.shape, reset)
    else:
        X = validate_data(estimator, X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, reset=reset)
        X = check_counts(sparse.csr_array(X), type(estimator).__name__)
    if isinstance(X, Rows) and global_features is None:
        return X
    if not isinstance(global_features, DenseRows | np.memmap | None):
        global_features = check_array(global_features, dtype="numeric", ensure_all_finite=False, ensure_min_features=0)
    if isinstance(X, Rows):
        return X.with_features(global_features)
    return Rows(X, global_features, n_annotation_words=min(getattr(estimator, "n_annotation_words", 0), X.shape[1]))


def _check_shape(estimator: BaseEstimator, shape: tuple[int, int], reset: bool) -> None:
    if reset:
        estimator.n_features_in_ = shape[1]
        if shape[0] < 1:
            raise ValueError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    elif shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def check_sequences(sequences: Iterable[Any], n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """Check sequences of word ids; return them concatenated, and their lengths."""
    arrays = [np.asarray(sequence) for sequence in sequences]
    for row, array in enumerate(arrays):
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(f"sequence {row} must be a list of word ids (whole numbers)")
        if array.size and not (array.min() >= 0 and array.max() < n_words):
            raise ValueError(f"sequence {row} has a word id outside 0..{n_words - 1}")
    lengths = np.array([array.size for array in arrays], np.int64)
    return np.concatenate([np.zeros(0, np.int64), *arrays]).astype(np.int64), lengths


def check_columns(columns: Any, n_words: int) -> np.ndarray | None:
    """Check column numbers and return them as an array; None stays None."""
    if columns is None:
        return None
    columns = np.asarray(columns)
    if columns.ndim != 1 or (columns.size and columns.dtype.kind not in "iu"):
        raise ValueError("columns must be a list of column numbers")
    columns = columns.astype(np.int64)
    if columns.size and not (columns.min() >= 0 and columns.max() < n_words):
        raise ValueError(f"columns must lie in 0..{n_words - 1}")
    return columns


def document_lengths(X: sparse.csr_array) -> np.ndarray:
    """Return the number of words of each document, D."""
    return np.asarray(X.sum(axis=1, dtype=np.int64)).ravel()


@dataclass(frozen=True)
class Labels:
    """Encoded classes of documents."""

    indicator: np.ndarray  # (n, C) uint8: 1 where the document has the class
    known: np.ndarray  # (n,) False where the document is unlabelled

    def __len__(self) -> int:
        return len(self.known)

    def __getitem__(self, rows: np.ndarray | slice) -> Labels:
        return Labels(self.indicator[rows], self.known[rows])


def no_labels(n_documents: int) -> Labels:
    """Return the labels of documents without classes."""
    return Labels(np.zeros((n_documents, 0), np.uint8), np.zeros(n_documents, bool))


def encode_labels(y: Any, n_documents: int, classes: np.ndarray | None = None) -> tuple[Labels, np.ndarray, bool]:
    """Encode y as a 0/1 matrix.

    Parameters
    ----------
    y : array-like of shape (n_documents,), or 0/1 matrix of shape (n_documents, n_classes)
        A row that is None or NaN is unlabelled.
    n_documents : int
        Number of rows of X.
    classes : ndarray, optional
        Known classes; any other label is an error.

    Returns
    -------
    labels : Labels
    classes : ndarray
        Sorted class labels, or 0..n_classes-1 for a 0/1 matrix.
    multi_label : bool

    Examples
    --------
    >>> from pictopic.models.inputs import encode_labels
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
    # Without the missing labels, integers that had become float are integers again.
    known_labels = np.array(y[known].tolist()) if y.dtype == object or y.dtype.kind == "f" else y[known]
    check_classification_targets(known_labels)
    if known_labels.dtype.kind == "f":
        known_labels = known_labels.astype(np.int64) if not known.all() else known_labels
    if classes is None:
        classes = np.unique(known_labels)
    codes = np.searchsorted(classes, known_labels)
    wrong = np.flatnonzero(classes[np.minimum(codes, len(classes) - 1)] != known_labels)
    if wrong.size:
        row = np.flatnonzero(known)[wrong[0]]
        raise ValueError(f"y has a class that the model does not know in row {row}: {known_labels[wrong[0]].item()!r}")
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
    known_labels = np.asarray(y[known].tolist() if y.dtype == object else y[known]).reshape(-1, y.shape[1])
    if (
        known_labels.size
        and type_of_target(known_labels) not in ("multilabel-indicator", "binary")
        and not np.isin(known_labels, (0, 1)).all()
    ):
        check_classification_targets(known_labels)
        raise ValueError("y has several columns, so it must be a 0/1 matrix with a column for each class")
    if classes is not None and len(classes) != y.shape[1]:
        raise ValueError(f"y has {y.shape[1]} columns, but the model has {len(classes)} classes")
    indicator = np.zeros((n_documents, y.shape[1]), np.uint8)
    indicator[known] = known_labels
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


@dataclass
class Statistics:
    """Statistics of documents."""

    word_counts: np.ndarray  # (Q,)
    squares: np.ndarray  # (Q,) sum over the documents of the squared count
    mean_length: float
    feature_mean: np.ndarray  # (F,) of the values that are not missing
    feature_scale: np.ndarray  # (F,) standard deviation, 1 where a feature is constant
    fingerprint: str  # SHA-256 of everything


def summarize(documents: Rows) -> Statistics:
    """Compute the statistics in one pass over the documents."""
    labels = documents.labels
    digest = hashlib.sha256(repr((len(documents), documents.shape[1])).encode())
    word_counts = np.zeros(documents.shape[1], np.int64)
    squared_counts = np.zeros(len(word_counts))
    n_features = documents.n_global_features
    number = np.zeros(n_features)
    mean, squares = np.zeros(n_features), np.zeros(n_features)  # squares: sum of squared deviations from the mean
    for chunk in documents.chunks(4 * Rows.CHUNK):
        X = documents.read(chunk)
        squared_counts += np.bincount(X.indices, weights=X.data.astype(np.float64) ** 2, minlength=len(word_counts))
        word_counts += np.bincount(X.indices, weights=X.data, minlength=len(word_counts)).astype(np.int64)
        for array in (document_lengths(X), X.indptr.astype("<i8"), X.indices.astype("<i4"), X.data.astype("<i4")):
            digest.update(np.ascontiguousarray(array).data)
        f = documents.read_features(chunk)
        if f is not None:
            digest.update(np.ascontiguousarray(f).data)
            number, mean, squares = _add_moments(number, mean, squares, f.astype(np.float64))
        digest.update(np.ascontiguousarray(labels.indicator[chunk]).data)
        digest.update(np.ascontiguousarray(labels.known[chunk]).data)
    scale = np.sqrt(squares / np.maximum(number, 1))
    scale[scale <= 1e-7 * np.maximum(1.0, np.abs(mean))] = 1.0
    return Statistics(
        word_counts, squared_counts, float(word_counts.sum() / max(len(documents), 1)), mean.astype(np.float32),
        scale.astype(np.float32), digest.hexdigest(),
    )  # fmt: skip


def _add_moments(number, mean, squares, f: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add the rows `f` to number, mean and squared deviations of each column (Chan's pairwise update)."""
    is_known = ~np.isnan(f)
    n = is_known.sum(axis=0)
    m = np.where(is_known, f, 0.0).sum(axis=0) / np.maximum(n, 1)
    s = (np.where(is_known, f - m, 0.0) ** 2).sum(axis=0)
    total = np.maximum(number + n, 1)
    delta = m - mean
    return number + n, mean + delta * n / total, squares + s + delta**2 * number * n / total


def chunks(lengths: np.ndarray, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges ``first, last`` of documents with at most `size` words in all, or of one longer document.

    Examples
    --------
    >>> from pictopic.models.inputs import chunks
    >>> list(chunks([3, 3, 9, 1], size=6))
    [(0, 2), (2, 3), (3, 4)]
    """
    lengths = np.asarray(lengths)
    ends = np.cumsum(lengths)
    first = 0
    while first < len(lengths):
        before = ends[first] - lengths[first]
        last = max(first + 1, int(np.searchsorted(ends, before + size, side="right")))
        yield first, last
        first = last


def in_parts(n: int, n_jobs: int, run: Callable[[int, int], None], pool: ThreadPoolExecutor | None = None) -> None:
    """Call ``run(first, last)`` for `n_jobs` equal parts of 0..n-1, each in its own thread."""
    n_jobs = max(1, min(n_jobs, n))
    if n_jobs == 1:
        run(0, n)
        return
    cuts = [n * j // n_jobs for j in range(n_jobs + 1)]
    if pool is not None:
        list(pool.map(run, cuts[:-1], cuts[1:]))
        return
    with ThreadPoolExecutor(n_jobs) as threads:
        list(threads.map(run, cuts[:-1], cuts[1:]))
