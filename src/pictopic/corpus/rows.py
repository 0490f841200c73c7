"""Rows: the container of documents that estimators and tasks read from."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from pictopic.corpus.readers import CountsInParts, DenseRows, MappedRows, RowReader, RowsInParts

if TYPE_CHECKING:
    from pictopic.corpus.corpus import Corpus


class Rows:
    """Documents: their words, global features and labels, read from memory or disk as needed.

    All estimators accept them as X.  A selection of rows is a list of numbers: nothing is copied.

    Parameters
    ----------
    counts : {array-like, sparse matrix, RowReader} of shape (n_documents, n_words)
    global_features : {array-like, DenseRows} of shape (n_documents, n_features), optional
        NaN where a picture has none.
    labels : sequence of length n_documents, optional
        As estimators take y, or anything else with one entry per document that can be indexed by an array of numbers.
    n_annotation_words : int, default=0
        Number of last columns that are annotation words (tags).

    Examples
    --------
    >>> from pictopic import Rows
    >>> rows = Rows([[2, 0, 1], [0, 3, 0], [1, 1, 1]], labels=["sea", "city", "sea"], n_annotation_words=1)
    >>> selection = rows[[2, 1]]
    >>> selection.read().toarray().tolist(), selection.labels.tolist()
    ([[1, 1, 1], [0, 3, 0]], ['sea', 'city'])
    >>> selection.has_tag().tolist(), selection.without_tags().read().toarray().tolist()
    ([[True], [False]], [[1, 1, 0], [0, 3, 0]])
    """

    CHUNK = 512  # rows

    def __init__(self, counts: Any, global_features: Any = None, labels: Any = None, *, n_annotation_words: int = 0):
        self._counts = counts if isinstance(counts, RowReader) else check_counts(sparse.csr_array(counts), "Rows")
        n_words = self._counts.shape[1]
        if not 0 <= n_annotation_words <= n_words:
            raise ValueError(f"n_annotation_words={n_annotation_words}, but there are {n_words} columns only")
        self.n_annotation_words = n_annotation_words
        self._numbers: np.ndarray | None = None  # of the rows that are selected; None: all
        self._is_without_tags = False
        self._features = self._of_length("global_features", _check_features(global_features))
        self._labels = self._of_length("labels", np.asarray(labels) if isinstance(labels, list | tuple) else labels)

    @classmethod
    def of(cls, corpus: Corpus) -> Rows:
        """All rows of a corpus."""
        n = corpus.vocabulary.n_annotation_words
        return cls(corpus.counts, corpus.global_features, corpus.labels, n_annotation_words=n)

    def _changed(self, **attributes: Any) -> Rows:
        rows = copy.copy(self)
        vars(rows).update(attributes)
        return rows

    def __len__(self) -> int:
        return self._counts.shape[0] if self._numbers is None else len(self._numbers)

    def __getitem__(self, indices: np.ndarray | Sequence[int] | slice) -> Rows:
        return self._changed(_numbers=self.numbers[indices if isinstance(indices, slice) else np.asarray(indices)])

    @property
    def numbers(self) -> np.ndarray:
        """Numbers of these rows among all rows."""
        return np.arange(self._counts.shape[0]) if self._numbers is None else self._numbers

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of words."""
        return len(self), self._counts.shape[1]

    @property
    def n_visual(self) -> int:
        """Number of columns of visual words."""
        return self.shape[1] - self.n_annotation_words

    @property
    def n_global_features(self) -> int:
        """Number of global features, 0 without."""
        return 0 if self._features is None else self._features.shape[1]

    @property
    def labels(self) -> Any:
        """Labels of these rows, or None."""
        return self._labels if self._labels is None or self._numbers is None else self._labels[self._numbers]

    def with_labels(self, labels: Any) -> Rows:
        """The same rows with other labels, one per row."""
        return self._as_a_whole()._changed(_labels=self._of_length("labels", labels))

    def with_features(self, global_features: Any) -> Rows:
        """The same rows with other global features, one row each."""
        features = self._of_length("global_features", _check_features(global_features))
        return self._as_a_whole()._changed(_features=features)

    def without_features(self) -> Rows:
        """The same rows, without global features."""
        return self._changed(_features=None)

    def loaded(self) -> Rows:
        """The same rows in memory, to be sent elsewhere."""
        n = self.n_annotation_words
        return Rows(self.read(), self.read_features(), self.labels, n_annotation_words=n)

    def _as_a_whole(self) -> Rows:
        """The selected rows as a whole, so that columns can be replaced."""
        numbers = self._numbers
        if numbers is None:
            return self
        counts, features = self._counts, self._features
        is_read = isinstance(counts, RowReader)
        return self._changed(
            _counts=CountsInParts([counts], self.shape[1], numbers) if is_read else counts[numbers],
            _features=RowsInParts([features], numbers) if isinstance(features, DenseRows)
            else None if features is None else features[numbers],
            _labels=self.labels,
            _numbers=None,
        )  # fmt: skip

    def _of_length(self, name: str, values: Any) -> Any:
        if values is not None and len(values) != len(self):
            raise ValueError(f"X has {len(self)} rows, but {name} has {len(values)}")
        return values

    def without_tags(self) -> Rows:
        """The same pictures without tags, as new ones come; rows that have only tags keep them."""
        return self._changed(_is_without_tags=self.n_visual > 0)

    def has_tag(self) -> np.ndarray:
        """Which tags each picture has, of shape (n, n_annotation_words)."""
        X = self._changed(_is_without_tags=False).read()
        return np.asarray(X[:, self.n_visual :].toarray() > 0)

    def word_counts(self) -> np.ndarray:
        """How often each word occurs, of shape (n_words,)."""
        total = np.zeros(self.shape[1], np.int64)
        for chunk in self.chunks():
            total += np.asarray(self.read(chunk).sum(axis=0, dtype=np.int64))
        return total

    def read(self, batch: np.ndarray | slice = slice(None)) -> sparse.csr_array:
        """Counts of the rows at these positions of the selection, by default of all."""
        is_whole = self._numbers is None and isinstance(batch, slice) and batch == slice(None)
        if is_whole and not isinstance(self._counts, RowReader):
            X = self._counts
        else:
            X = self._counts[self._numbers_of(batch)]
        return _first_columns(X, self.n_visual) if self._is_without_tags else X

    def read_features(self, batch: np.ndarray | slice = slice(None)) -> np.ndarray | None:
        """Global features of the same rows as float32, or None if there are none."""
        if self._features is None:
            return None
        numbers = self._numbers_of(batch)
        features = np.asarray(self._features[numbers], np.float32)
        infinite = np.argwhere(np.isinf(features))
        if infinite.size:
            row, column = infinite[0]
            raise ValueError(f"global_features has infinity in row {numbers[row]}, column {column}")
        return features

    def _numbers_of(self, batch: np.ndarray | slice) -> np.ndarray:
        if self._numbers is not None:
            return self._numbers[batch]
        return np.arange(*batch.indices(len(self))) if isinstance(batch, slice) else np.asarray(batch)

    def chunks(self, size: int = CHUNK) -> Iterator[slice]:
        """Slices of at most `size` rows."""
        return (slice(start, min(start + size, len(self))) for start in range(0, len(self), size))


def _check_features(global_features: Any) -> np.ndarray | DenseRows | None:
    if isinstance(global_features, np.memmap) and getattr(global_features, "_mmap", None) is not None:
        global_features = MappedRows(global_features)  # it may be larger than memory
    elif global_features is not None and not isinstance(global_features, DenseRows):
        global_features = np.asarray(global_features)
    if global_features is not None and global_features.ndim != 2:
        raise ValueError(f"global_features must have two dimensions, got {global_features.ndim}")
    return global_features


def _first_columns(X: sparse.csr_array, n_columns: int) -> sparse.csr_array:
    """Counts in which all but the first columns are 0."""
    is_first = X.indices < n_columns
    ends = np.concatenate([[0], np.cumsum(is_first)])[X.indptr].astype(X.indptr.dtype)
    return sparse.csr_array((X.data[is_first], X.indices[is_first], ends), shape=X.shape)


def check_counts(X: sparse.csr_array, name: str) -> sparse.csr_array:
    """Counts as int32 with sorted columns and without stored zeros; X itself if it is like that already.

    A ValueError names the first entry that is not a whole number from 0 on; `name` is that of the estimator.
    """
    if X.dtype != np.int32 or not X.has_canonical_format or not X.data.all():
        X = X.copy()
        X.sum_duplicates()
    data = X.data
    if data.dtype.kind == "f":
        _refuse(X, np.isnan(data), "Input X contains NaN{}: counts must be known")
        _refuse(X, np.isinf(data), "Input X contains infinity{}: counts must be finite")
    elif data.dtype.kind not in "biu":
        raise ValueError(f"X must hold counts, not {data.dtype} values (complex data not supported)")
    _refuse(X, data < 0, f"Negative values in data passed to {name}{{}}: a word cannot occur fewer than 0 times")
    if data.dtype.kind == "f":
        _refuse(X, data != np.floor(data), "X must hold whole counts, but has a fraction{}; nothing is rounded")
    _refuse(X, data > np.iinfo(np.int32).max, "X has a count above 2147483647{}")
    if data.dtype != np.int32:
        X = sparse.csr_array((data.astype(np.int32), X.indices, X.indptr), shape=X.shape)
    if not X.data.all():
        X.eliminate_zeros()
    return X


def _refuse(X: sparse.csr_array, wrong: np.ndarray, message: str) -> None:
    places = np.flatnonzero(wrong)
    if places.size:
        row = int(np.searchsorted(X.indptr, places[0], side="right")) - 1
        where = f" (row {row}, column {X.indices[places[0]]}: {X.data[places[0]]})"
        raise ValueError(message.format(where))
