"""Spatial pyramid matching: pictures are alike that have the same words in the same places."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.svm import SVC
from sklearn.utils import Tags

from pictopic.models.inputs import check_rows
from pictopic.paper.baselines.base import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    ONE_OR_SEVERAL,
    CountsClassifier,
    FeatureClassifier,
    check_indicator,
    visual_columns,
)
from pictopic.paper.baselines.neighbors import BaseNeighborAnnotator, votes


def pyramids(X: Any, n_regions: int) -> np.ndarray:
    """Each picture's histogram of words and the histograms of its regions, as shares that sum to 1/2 on each level.

    X has counts of visual words, one region after the other, (n, n_regions * n_words); the result is float32 of shape
    (n, n_words + n_regions * n_words).

    Examples
    --------
    >>> from pictopic.paper.baselines.spatial_pyramid import pyramids
    >>> pyramids([[2, 0, 1, 1]], n_regions=2).tolist()
    [[0.375, 0.125, 0.25, 0.0, 0.125, 0.125]]
    """
    counts = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    if counts.shape[1] % n_regions:
        raise ValueError(f"{counts.shape[1]} columns of visual words cannot be divided into n_regions={n_regions}")
    shares = counts / (2 * np.maximum(counts.sum(axis=1, keepdims=True), 1))
    whole = shares.reshape(len(shares), n_regions, -1).sum(axis=1)
    return np.hstack([whole, shares]).astype(np.float32)


def pyramid_match(A: Any, B: Any, n_regions: int = 4) -> np.ndarray:
    """Similarity of pictures: what their histograms have in common, as a whole and region by region.

    Half of the intersection of the pictures' histograms plus half of the sum of their regions' intersections: the
    pyramid match kernel of two levels.  Histograms are divided by the picture's number of words.

    Parameters
    ----------
    A : {ndarray, sparse matrix} of shape (n, n_regions * n_words)
        Counts of visual words, one region after the other.
    B : {ndarray, sparse matrix} of shape (m, n_regions * n_words)
    n_regions : int, default=4

    Returns
    -------
    float32 ndarray of shape (n, m)
        From 0, nothing in common, to 1.

    Examples
    --------
    The same words in other places are half as similar.

    >>> from pictopic.paper.baselines.spatial_pyramid import pyramid_match
    >>> pyramid_match([[2, 0, 0, 0]], [[4, 0, 0, 0], [0, 0, 4, 0], [0, 4, 0, 0]], n_regions=2).tolist()
    [[1.0, 0.5, 0.0]]
    """
    return _match(pyramids(A, n_regions), pyramids(B, n_regions))


def _match(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of pyramids: shares that are halved before have half as much in common."""
    from pictopic.kernels.intersection import intersections

    out = np.empty((len(a), len(b)), np.float32)
    intersections(a, b, out)
    return out


class SpatialPyramidClassifier(FeatureClassifier, CountsClassifier):
    """SVM with the pyramid match kernel of two levels.

    Parameters
    ----------
    n_regions : int, default=4
        Of the counts: their columns are the words of the first region, then those of the next, ...
    C : float or sequence of float, default=(1, 3, 10, 30, 100)
        The SVM's C, or values to choose from by cross-validation (accuracy).
    n_annotation_words : int, default=0
        So many of the last columns of X are annotation words; they are not looked at.
    cv : int, default=5
        Number of folds; see `HistogramSVM`.
    random_state : int, RandomState instance or None, default=0
        Of the folds.

    Attributes
    ----------
    best_params_ : dict
        C.
    classes_ : ndarray of shape (n_classes,)
    classifier_ : SVC
    pyramids_ : float32 ndarray
        Of the training pictures.

    References
    ----------
    S. Lazebnik, C. Schmid, J. Ponce, "Beyond Bags of Features: Spatial Pyramid Matching for Recognizing Natural Scene
    Categories", CVPR 2006.  Simplified: two levels (the whole picture and its regions, of weight 1/2 each), as in the
    comparison of the paper; the visual words are those of the counts; and the SVMs are pairwise (scikit-learn's SVC),
    not one against all.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.baselines import SpatialPyramidClassifier
    >>> X = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 1]] * 5)
    >>> model = SpatialPyramidClassifier(n_regions=2).fit(X, ["above", "above", "below", "below"] * 5)
    >>> model.predict([[3, 1, 0, 0], [0, 0, 1, 1]]).tolist()
    ['above', 'below']
    """

    _parameter_constraints: ClassVar[dict] = {
        **FeatureClassifier._parameter_constraints,
        "n_regions": AT_LEAST_ONE,
        "C": ONE_OR_SEVERAL,
        "n_annotation_words": NOT_NEGATIVE,
    }

    def __init__(self, *, n_regions=4, C=(1, 3, 10, 30, 100), n_annotation_words=0, cv=5, random_state=0):
        self.n_regions = n_regions
        self.C = C
        self.n_annotation_words = n_annotation_words
        self.cv = cv
        self.random_state = random_state

    def _pyramids(self, X: sparse.csr_array) -> np.ndarray:
        return pyramids(visual_columns(X, self.n_annotation_words), self.n_regions)

    def _fit_features(self, X: sparse.csr_array) -> np.ndarray:
        self.pyramids_ = self._pyramids(X)
        return _match(self.pyramids_, self.pyramids_)

    def _features(self, X: sparse.csr_array) -> np.ndarray:
        return _match(self._pyramids(X), self.pyramids_)

    def _candidates(self, several: bool) -> tuple[Any, dict[str, Any]]:
        return SVC(kernel="precomputed"), {"C": self.C}


class SpatialPyramidAnnotator(BaseNeighborAnnotator):
    """Tags that most of the nearest pictures have, by the pyramid match.

    Of tags that as many of the neighbours have, those of the more similar ones come first.

    Parameters
    ----------
    n_regions : int, default=4
        Of the counts; see `SpatialPyramidClassifier`.
    n_neighbors : int or sequence of int, default=(5, 8, 12, 20, 30, 50)
        How many neighbours vote, or numbers to choose from by the mean F-measure of the five best tags in
        cross-validation.
    n_annotation_words : int, default=0
        So many of the last columns of X are annotation words: the tags, and nothing to compare pictures by.
    random_state : int, RandomState instance or None, default=0
        Of the folds.

    Attributes
    ----------
    n_neighbors_ : int
        How many neighbours vote.
    features_ : float32 ndarray
        Pyramids of the training pictures.
    tags_ : csr_array of shape (n_pictures, n_tags)
        Of the training pictures.

    References
    ----------
    The paper's SPM: the tags most frequent among the k nearest pictures by Lazebnik's kernel (see
    `SpatialPyramidClassifier`).  The paper does not say what decides between equally frequent ones.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.baselines import SpatialPyramidAnnotator
    >>> X = np.array([[4, 1, 0, 0, 1, 0], [3, 2, 0, 0, 1, 0], [0, 0, 5, 2, 0, 1], [0, 0, 6, 1, 0, 1]])
    >>> model = SpatialPyramidAnnotator(n_regions=2, n_neighbors=2, n_annotation_words=2).fit(X)
    >>> model.decision_function([[5, 2, 0, 0, 0, 0]]).argmax(axis=1).tolist()
    [0]
    """

    _parameter_constraints: ClassVar[dict] = {
        **BaseNeighborAnnotator._parameter_constraints,
        "n_regions": AT_LEAST_ONE,
        "n_annotation_words": NOT_NEGATIVE,
    }

    def __init__(self, *, n_regions=4, n_neighbors=(5, 8, 12, 20, 30, 50), n_annotation_words=0, random_state=0):
        self.n_regions = n_regions
        self.n_neighbors = n_neighbors
        self.n_annotation_words = n_annotation_words
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, Y: Any = None) -> SpatialPyramidAnnotator:
        """Keep pictures and their tags, and choose the number of neighbours.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_pictures, n_words)
            Counts.
        Y : 0/1 matrix of shape (n_pictures, n_tags), optional
            Default: which of the annotation words of X are there.

        Returns
        -------
        self
        """
        counts = check_rows(self, X, reset=True).read()
        features = self._pyramids(counts)
        if Y is None and not self.n_annotation_words:
            raise ValueError(
                "there are no tags to learn: give Y, or say with n_annotation_words which columns they are"
            )
        n_visual = counts.shape[1] - self.n_annotation_words
        self._fit(features, check_indicator(counts[:, n_visual:] > 0 if Y is None else Y))
        return self

    def _pyramids(self, counts: sparse.csr_array) -> np.ndarray:
        return pyramids(visual_columns(counts, self.n_annotation_words), self.n_regions)

    def _check_features(self, X: Any, *, reset: bool) -> np.ndarray:
        return self._pyramids(check_rows(self, X, reset=reset).read())

    def _similarity(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return _match(A, B)

    def _scores(self, rows: np.ndarray, similarity: np.ndarray, tags: sparse.csr_array) -> np.ndarray:
        k = rows.shape[1]
        # No similarity is above 1: their sum, divided by k + 1, never outweighs a vote.
        return votes(rows, 1 + similarity.astype(np.float64) / (k + 1), tags)
