"""Tags by logistic regression and by the nearest pictures, on the same features: strong, and without topics."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, _fit_context
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import normalize
from sklearn.utils import Tags, check_consistent_length
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from pictopic.paper.baselines.base import AT_LEAST_ONE, ONE_OR_SEVERAL, check_indicator
from pictopic.paper.baselines.neighbors import nearest_rows, votes
from pictopic.tasks.metrics import f_measure_at_k

_TOP = 5  # tags, as in the paper
_HELD_OUT = 0.2  # of the pictures, to choose C by


class LogisticNeighborAnnotator(BaseEstimator):
    """The mean of two tag probabilities: logistic regression's, and the share of the nearest pictures with the tag.

    The kinds of features weigh the same: each is divided by its length, and two pictures are as similar as the mean of
    the kinds' cosines.  Histograms should be square-rooted before, other features standardised.

    Parameters
    ----------
    blocks : sequence of int or None, default=None
        How many columns each kind of features has, in their order; None: all columns are one kind.
    n_neighbors : int, default=40
        How many of the nearest pictures are asked.
    sharpness : float, default=20.0
        A neighbour counts exp(sharpness * similarity).
    C : float or sequence of float, default=(10, 100)
        The logistic regression's inverse regularisation, or values to choose from by the mean F-measure of the five
        best tags of a fifth of the pictures.
    random_state : int, RandomState instance or None, default=0
        Draws that fifth, and where logistic regression starts.

    Attributes
    ----------
    C_ : float
        Taken for the logistic regression.
    features_ : ndarray of shape (n_pictures, n_features)
        Of the training pictures; rows of length 1.
    tags_ : csr_array of shape (n_pictures, n_tags)
        Of the training pictures.
    classifier_ : MLPClassifier
        Without hidden layers, which is logistic regression of all tags at once.

    References
    ----------
    A. Makadia, V. Pavlovic, S. Kumar, "A New Baseline for Image Annotation", ECCV 2008 (neighbours); weights as in
    M. Guillaumin and others, "TagProp", ICCV 2009, but with a sharpness that is given, not learnt.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.baselines import LogisticNeighborAnnotator
    >>> X = np.array([[4, 1, 0], [3, 2, 0], [0, 1, 5], [0, 2, 6]])
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])  # sea, sky
    >>> model = LogisticNeighborAnnotator(n_neighbors=2, C=10).fit(X, Y)
    >>> model.predict_proba([[5, 1, 0], [0, 1, 1]]).round(1).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """

    _parameter_constraints: ClassVar[dict] = {
        "blocks": ["array-like", None],
        "n_neighbors": AT_LEAST_ONE,
        "sharpness": [Interval(Real, 0, None, closed="left")],
        "C": ONE_OR_SEVERAL,
        "random_state": ["random_state"],
    }

    def __init__(self, *, blocks=None, n_neighbors=40, sharpness=20.0, C=(10, 100), random_state=0):
        self.blocks = blocks
        self.n_neighbors = n_neighbors
        self.sharpness = sharpness
        self.C = C
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, Y: Any) -> LogisticNeighborAnnotator:
        """Keep pictures and their tags, and learn the logistic regression.

        Parameters
        ----------
        X : array-like of shape (n_pictures, n_features)
        Y : 0/1 matrix of shape (n_pictures, n_tags)

        Returns
        -------
        self
        """
        features, Y = self._features(X, reset=True), check_indicator(Y)
        check_consistent_length(features, Y)
        candidates = [float(C) for C in np.atleast_1d(self.C)]
        self.C_ = candidates[0]
        if len(candidates) > 1 and len(Y) >= 5:
            first, second = train_test_split(np.arange(len(Y)), test_size=_HELD_OUT, random_state=self.random_state)
            true = [np.flatnonzero(row) for row in Y[second]]
            if any(map(len, true)):
                self.C_ = max(candidates, key=lambda C: self._score(C, features, Y, first, second, true))
        self._learn(self.C_, features, Y)
        return self

    def _score(self, C: float, features: np.ndarray, Y: np.ndarray, first, second, true: list[np.ndarray]) -> float:
        self._learn(C, features[first], Y[first])
        best = np.argsort(-self._proba(features[second]), axis=1, kind="stable")[:, :_TOP]
        return f_measure_at_k(true, best.tolist(), _TOP)

    def _learn(self, C: float, features: np.ndarray, Y: np.ndarray) -> None:
        self.features_, self.tags_ = features, sparse.csr_array(Y.astype(np.float64))
        self.classifier_ = MLPClassifier((), solver="lbfgs", alpha=1 / C, max_iter=1000, random_state=self.random_state)
        # Of a single tag it wants a vector, of several a matrix.
        self.classifier_.fit(features, Y if Y.shape[1] > 1 else np.hstack([Y, 1 - Y]))

    def _features(self, X: Any, *, reset: bool) -> np.ndarray:
        X = validate_data(self, X, dtype=np.float64, reset=reset)
        blocks = (X.shape[1],) if self.blocks is None else tuple(self.blocks)
        if sum(blocks) != X.shape[1] or min(blocks) < 1:
            raise ValueError(f"blocks={blocks} do not add up to the {X.shape[1]} columns of X")
        kinds = np.split(X, np.cumsum(blocks)[:-1], axis=1)
        return np.hstack([normalize(kind) for kind in kinds]) / np.sqrt(len(blocks))

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each tag, (n, n_tags); of equal ones, the first column is meant."""
        check_is_fitted(self)
        return self._proba(self._features(X, reset=False))

    def _proba(self, features: np.ndarray) -> np.ndarray:
        rows, nearest = nearest_rows(features, self.features_, self.n_neighbors, lambda A, B: A @ B.T)
        weights = np.exp(self.sharpness * (nearest - nearest[:, :1]))
        shares = votes(rows, weights / weights.sum(axis=1, keepdims=True), self.tags_)
        logistic = self.classifier_.predict_proba(features)[:, : self.tags_.shape[1]]
        return (shares + logistic) / 2
