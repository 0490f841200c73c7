"""Measures of how good representations and predictions are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import normalize


def retrieval_precision(
    queries: np.ndarray,
    query_labels: Any,
    collection: np.ndarray,
    collection_labels: Any,
    fraction: float = 0.02,
    batch_size: int = 1024,
) -> float:
    """Mean share of the nearest neighbours that have the query's label.

    Parameters
    ----------
    queries : ndarray of shape (n_queries, n_features)
        Representations that are looked up.
    query_labels : array-like of shape (n_queries,)
    collection : ndarray of shape (n_documents, n_features)
        Representations among which they are looked up, by cosine similarity.
    collection_labels : array-like of shape (n_documents,)
    fraction : float, default=0.02
        How many neighbours count: this share of the collection, rounded down, and at least one.
    batch_size : int, default=1024
        Queries at a time; memory is batch_size x n_documents.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.metrics import retrieval_precision
    >>> collection = np.array([[1.0, 0.1], [1.0, 0.2], [0.1, 1.0], [0.2, 1.0]])
    >>> retrieval_precision(collection[:1], ["a"], collection, ["a", "b", "b", "b"], fraction=0.5)
    0.5
    """
    query_labels, collection_labels = np.asarray(query_labels), np.asarray(collection_labels)
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must lie in (0, 1], got {fraction}")
    k = max(1, int(fraction * len(collection)))
    collection = normalize(collection)
    hits = 0.0
    for start in range(0, len(queries), batch_size):
        similarity = normalize(queries[start : start + batch_size]) @ collection.T
        nearest = np.argpartition(-similarity, k - 1, axis=1)[:, :k]
        hits += (collection_labels[nearest] == query_labels[start : start + batch_size, None]).mean(axis=1).sum()
    return float(hits / len(queries))
