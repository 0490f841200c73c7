"""A collection as a map: pictures that are alike lie near each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

_DIMENSIONS = 50  # of what t-SNE compares
_PERPLEXITY = 30.0
_LEAST = 4  # rows, for t-SNE to say more than PCA
_NEIGHBOURS = 5  # landmarks that say where another row lies
_APART = 0.002  # by how much rows at the same place are moved


def project(vectors: Any, n_landmarks: int = 2000, random_state: int = 0) -> np.ndarray:
    """Places of rows in the plane: t-SNE of some of them, the others between those that they are most like.

    Parameters
    ----------
    vectors : array of shape (n, n_features)
    n_landmarks : int, default=2000
        How many rows t-SNE places, chosen by chance; the time grows with them.
    random_state : int, default=0

    Returns
    -------
    float32 array of shape (n, 2)
        Within 0 and 1; the same for the same vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.projection import project
    >>> rng = np.random.RandomState(0)
    >>> places = project(np.repeat([[0.0, 9.0], [9.0, 0.0]], 20, axis=0) + rng.normal(size=(40, 2)))
    >>> places.shape, bool(places.min() >= 0), bool(places.max() <= 1)
    ((40, 2), True, True)
    """
    vectors = np.asarray(vectors, dtype=np.float32)
    n, rng = len(vectors), np.random.RandomState(random_state)
    # Sums in another order would make another map: one thread, in which the order is always the same.
    with threadpool_limits(1):
        compared = _compared(vectors, random_state)
        chosen = np.sort(rng.permutation(n)[:n_landmarks])
        places = np.empty((n, 2))
        places[chosen] = _within(_place(compared[chosen], random_state))
        others = np.setdiff1d(np.arange(n), chosen)
        if len(others):
            places[others] = _between(compared[others], compared[chosen], places[chosen])
    places += rng.uniform(-_APART, _APART, places.shape)
    return np.clip(places, 0, 1).astype(np.float32)


def _compared(vectors: np.ndarray, random_state: int) -> np.ndarray:
    """The directions in which the rows differ most, strongest first; at least two columns."""
    centred = vectors - vectors.mean(axis=0) if len(vectors) else vectors
    n_components = min(_DIMENSIONS, *vectors.shape)
    if n_components and centred.any():
        solver = "covariance_eigh" if len(vectors) > vectors.shape[1] else "full"
        centred = PCA(n_components, svd_solver=solver, random_state=random_state).fit_transform(centred)
    found = np.zeros((len(vectors), max(2, n_components)), np.float32)
    found[:, :n_components] = centred[:, :n_components]
    return found


def _place(rows: np.ndarray, random_state: int) -> np.ndarray:
    """Places of the landmarks."""
    flat = rows[:, :2]
    if len(rows) < _LEAST or not rows.any():
        return flat
    start = flat / max(float(flat[:, 0].std()), 1e-12) * 1e-4  # as t-SNE itself would begin with PCA
    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    return TSNE(perplexity=perplexity, init=start, random_state=random_state, n_jobs=1).fit_transform(rows)


def _within(places: np.ndarray) -> np.ndarray:
    """The same within 0 and 1, in the middle, neither wider nor higher than it was."""
    if not len(places):
        return places
    low, high = places.min(axis=0), places.max(axis=0)
    size = max(float((high - low).max()), 1e-12)
    return 0.5 + (places - (low + high) / 2) / size * (1 - 2 * _APART)


def _between(rows: np.ndarray, landmarks: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Means of the places of the nearest landmarks; the more alike they are, the more they count."""
    nearest = NearestNeighbors(n_neighbors=min(_NEIGHBOURS, len(landmarks)), algorithm="brute").fit(landmarks)
    distances, numbers = nearest.kneighbors(rows)
    # Relative to the nearest: the density of the landmarks differs from place to place.
    weights = np.exp(1 - (distances / np.maximum(distances[:, :1], 1e-12)) ** 2)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("nk,nkd->nd", weights, places[numbers])
