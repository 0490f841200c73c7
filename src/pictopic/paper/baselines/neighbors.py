"""Tags of the most similar pictures, by any features or by colours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from PIL import Image
from scipy import sparse
from sklearn.base import BaseEstimator, _fit_context
from sklearn.model_selection import KFold
from sklearn.utils import Tags, check_consistent_length
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from pictopic.paper.baselines.base import AT_LEAST_ONE, check_indicator, root_shares
from pictopic.tasks.metrics import f_measure_at_k
from pictopic.words.pictures import PictureSource, open_picture, rgb

_TOP = 5  # tags, as in the paper
_FOLDS = 5
_HUES, _SATURATIONS, _VALUES = 8, 4, 4
_COLORS = _HUES * _SATURATIONS * _VALUES
_QUERIES = 512  # that are compared at once: memory is so many times the number of training pictures


class BaseNeighborAnnotator(BaseEstimator):
    """Tags by the vote of the nearest training pictures.

    A subclass says what is compared (`_similarity`) and how much a vote counts (`_scores`).
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_neighbors": [*AT_LEAST_ONE, "array-like"],
        "random_state": ["random_state"],
    }

    n_neighbors: Any
    random_state: Any

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags

    def _check_features(self, X: Any, *, reset: bool) -> np.ndarray:
        """Features of the rows of X, ready to be compared."""
        raise NotImplementedError

    def _similarity(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """How similar each row of A is to each of B."""
        raise NotImplementedError

    def _scores(self, rows: np.ndarray, similarity: np.ndarray, tags: sparse.csr_array) -> np.ndarray:
        """Scores of the tags from the neighbours' rows and similarities, (n, k), and the tags of all rows."""
        raise NotImplementedError

    def _fit(self, features: np.ndarray, Y: np.ndarray) -> None:
        check_consistent_length(features, Y)
        self.features_, self.tags_ = features, sparse.csr_array(Y.astype(np.float64))
        candidates = [int(k) for k in np.atleast_1d(self.n_neighbors)]
        if min(candidates) < 1:
            raise ValueError(f"n_neighbors must be at least 1, got {min(candidates)}")
        self.n_neighbors_ = candidates[0] if len(candidates) == 1 or len(Y) < 2 else self._best(candidates)

    def _best(self, candidates: Sequence[int]) -> int:
        """The number of neighbours with the largest F-measure, each picture annotated by those of other folds."""
        n = len(self.features_)
        best_tags = {k: np.empty((n, min(_TOP, self.tags_.shape[1])), np.int64) for k in candidates}
        folds = KFold(min(_FOLDS, n), shuffle=True, random_state=self.random_state)
        for train, held_out in folds.split(self.features_):
            rows, similarity = self._nearest(self.features_[held_out], self.features_[train], max(candidates))
            for k in candidates:
                scores = self._scores(rows[:, :k], similarity[:, :k], self.tags_[train])
                best_tags[k][held_out] = np.argsort(-scores, axis=1, kind="stable")[:, :_TOP]
        true = [columns.tolist() for columns in np.split(self.tags_.indices, self.tags_.indptr[1:-1])]
        return max(candidates, key=lambda k: f_measure_at_k(true, best_tags[k].tolist(), _TOP))

    def _nearest(self, queries: np.ndarray, collection: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows and similarities of the k most similar rows of a collection, best first; of equal ones the first."""
        return nearest_rows(queries, collection, k, self._similarity)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the tags, (n, n_tags): the larger, the likelier; of equal ones, the first column is meant."""
        check_is_fitted(self)
        rows, similarity = self._nearest(self._check_features(X, reset=False), self.features_, self.n_neighbors_)
        return self._scores(rows, similarity, self.tags_)


def nearest_rows(
    queries: np.ndarray, collection: np.ndarray, k: int, similarity: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and similarities of the k most similar rows of a collection, best first; of equal ones the first.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.baselines.neighbors import nearest_rows
    >>> rows, nearest = nearest_rows(np.eye(2), np.array([[0.5, 0], [1, 0], [0, 1]]), 2, lambda A, B: A @ B.T)
    >>> rows.tolist(), nearest.tolist()
    ([[1, 0], [2, 0]], [[1.0, 0.5], [1.0, 0.0]])
    """
    parts = []
    for start in range(0, len(queries), _QUERIES):
        similarities = similarity(queries[start : start + _QUERIES], collection)
        rows = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
        parts.append((rows, np.take_along_axis(similarities, rows, axis=1)))
    rows, nearest = (np.concatenate(part) for part in zip(*parts, strict=True))
    return rows, nearest


def votes(rows: np.ndarray, weights: np.ndarray, tags: sparse.csr_array) -> np.ndarray:
    """The sum of the weights of the neighbours that have each tag, (n, n_tags).

    The neighbours are `rows`, (n, k), of the 0/1 matrix `tags`, with `weights`, (n, k).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pictopic.paper.baselines.neighbors import votes
    >>> tags = sparse.csr_array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> votes(np.array([[0, 1], [1, 2]]), np.array([[1.0, 0.5], [1.0, 0.25]]), tags).tolist()
    [[1.5, 0.5], [1.0, 1.25]]
    """
    n, k = rows.shape
    weighted = sparse.csr_array((weights.ravel(), rows.ravel(), np.arange(0, n * k + 1, k)), (n, tags.shape[0]))
    return (weighted @ tags).toarray()


class NeighborAnnotator(BaseNeighborAnnotator):
    """Tags of the nearest pictures by the cosine of square-rooted features.

    A neighbour's vote counts exp(10 (similarity - 1)): 1 for a picture like the query, e times less for each tenth of
    similarity that it lacks.

    Parameters
    ----------
    n_neighbors : int or sequence of int, default=(5, 8, 12, 20, 30)
        How many neighbours vote, or numbers to choose from by the mean F-measure of the five best tags in
        cross-validation.
    random_state : int, RandomState instance or None, default=0
        Of the folds.

    Attributes
    ----------
    n_neighbors_ : int
        How many neighbours vote.
    features_ : ndarray of shape (n_pictures, n_features)
        Of the training pictures.
    tags_ : csr_array of shape (n_pictures, n_tags)
        Of the training pictures.

    References
    ----------
    A. Makadia, V. Pavlovic, S. Kumar, "A New Baseline for Image Annotation", ECCV 2008.  Simplified: theirs takes tags
    from the nearest picture first and averages distances of seven features; here all neighbours vote at once, with
    weights that fall off exponentially as in TagProp, but not learnt, and one row of features per picture is compared.

    Examples
    --------
    Several histograms weigh the same if each is divided by its sum before they are joined.

    >>> import numpy as np
    >>> from pictopic.paper.baselines import NeighborAnnotator
    >>> X = np.array([[4, 1, 0], [3, 2, 0], [0, 1, 5], [0, 2, 6]])
    >>> Y = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 0]])  # sea, tree, sky
    >>> model = NeighborAnnotator(n_neighbors=2).fit(X, Y)
    >>> np.argsort(-model.decision_function([[5, 1, 0], [0, 1, 1]]), kind="stable")[:, 0].tolist()
    [0, 1]
    """

    def __init__(self, *, n_neighbors=(5, 8, 12, 20, 30), random_state=0):
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, Y: Any) -> NeighborAnnotator:
        """Keep pictures and their tags, and choose the number of neighbours.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_pictures, n_features)
            Not negative.
        Y : 0/1 matrix of shape (n_pictures, n_tags)

        Returns
        -------
        self
        """
        self._fit(self._check_features(X, reset=True), check_indicator(Y))
        return self

    def _check_features(self, X: Any, *, reset: bool) -> np.ndarray:
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset)
        check_non_negative(X, type(self).__name__)
        return root_shares(X)

    def _similarity(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return A @ B.T

    def _scores(self, rows: np.ndarray, similarity: np.ndarray, tags: sparse.csr_array) -> np.ndarray:
        return votes(rows, np.exp(10 * (similarity - 1)), tags)


def hsv_histograms(paths: Iterable[PictureSource]) -> np.ndarray:
    """Colours in 2 x 2 regions: 8 hues x 4 saturations x 4 values.

    Parameters
    ----------
    paths : iterable of path, bytes, PIL image or numpy array

    Returns
    -------
    int64 ndarray of shape (n_pictures, 512)
        Numbers of pixels: 128 colours in the region at the top left, then in the one at the top right, ...

    References
    ----------
    Colour histograms as in A. Makadia, V. Pavlovic, S. Kumar, "A New Baseline for Image Annotation", ECCV 2008; there
    one for the whole picture, of 16 levels per channel, and in RGB and LAB, too.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.baselines import hsv_histograms
    >>> picture = np.zeros((4, 6, 3), np.uint8)
    >>> picture[:2, 3:] = (255, 0, 0)
    >>> counts = hsv_histograms([picture])
    >>> counts.shape, np.flatnonzero(counts[0]).tolist(), counts[0].max().item()
    ((1, 512), [0, 143, 256, 384], 6)
    """
    histograms = [_histogram(path) for path in paths]
    return np.array(histograms, np.int64).reshape(len(histograms), 4 * _COLORS)


def _histogram(path: PictureSource) -> np.ndarray:
    hsv = np.asarray(Image.fromarray(rgb(open_picture(path))).convert("HSV")).astype(np.int64)
    hue, saturation, value = (hsv[..., k] * n // 256 for k, n in enumerate((_HUES, _SATURATIONS, _VALUES)))
    cells = (hue * _SATURATIONS + saturation) * _VALUES + value
    down, across = cells.shape[0] // 2, cells.shape[1] // 2
    quarters = [quarter for half in (cells[:down], cells[down:]) for quarter in (half[:, :across], half[:, across:])]
    return np.concatenate([np.bincount(quarter.ravel(), minlength=_COLORS) for quarter in quarters])
