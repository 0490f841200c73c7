"""A support vector machine on several kinds of features at once."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.metrics import euclidean_distances
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pictopic.paper.baselines.base import ONE_OR_SEVERAL, fit_best


class AverageKernelSVM(ClassifierMixin, BaseEstimator):
    """SVM on the mean of RBF kernels, one for each kind of features.

    Each kind is standardised, and its kernel's width is the mean distance between training rows, so that no kind drowns
    another.

    Parameters
    ----------
    blocks : sequence of int or None, default=None
        How many columns each kind of features has, in their order; None: all columns are one kind.
    C : float or sequence of float, default=(1, 3, 10, 30, 100)
        The SVM's C, or values to choose from by cross-validation.
    cv : int, default=5
    random_state : int, RandomState instance or None, default=0
        Of the folds.

    Attributes
    ----------
    best_params_ : dict
        C.
    classes_ : ndarray of shape (n_classes,)

    References
    ----------
    M. Guillaumin, J. Verbeek, C. Schmid, "Multimodal semi-supervised learning for image classification", CVPR 2010.
    Simplified: the kernels' weights are equal instead of learnt, which P. Gehler, S. Nowozin, "On feature combination
    for multiclass object classification", ICCV 2009, found to be hardly worse.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.baselines import AverageKernelSVM
    >>> X = np.array([[0.0, 5.0, 1.0], [0.1, 5.0, 1.0], [1.0, 5.0, 0.0], [1.1, 5.0, 0.1]] * 5)
    >>> model = AverageKernelSVM(blocks=(2, 1)).fit(X, ["sea", "sea", "city", "city"] * 5)
    >>> model.predict([[0.0, 5.0, 0.9], [1.0, 5.0, 0.0]]).tolist()
    ['sea', 'city']
    """

    _parameter_constraints: ClassVar[dict] = {
        "blocks": ["array-like", None],
        "C": ONE_OR_SEVERAL,
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(self, *, blocks=None, C=(1, 3, 10, 30, 100), cv=5, random_state=0):
        self.blocks = blocks
        self.C = C
        self.cv = cv
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> AverageKernelSVM:
        """Learn classes.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        blocks = (X.shape[1],) if self.blocks is None else tuple(self.blocks)
        if sum(blocks) != X.shape[1] or min(blocks) < 1:
            raise ValueError(f"blocks={blocks} do not add up to the {X.shape[1]} columns of X")
        self.scaler_ = StandardScaler().fit(X)
        self._kinds = _kinds(self.scaler_.transform(X), blocks)
        self._blocks = blocks
        distances = [euclidean_distances(kind, squared=True) for kind in self._kinds]
        self._widths = [max(float(own.mean()), 1e-12) for own in distances]
        kernel = _mean_kernel(distances, self._widths)
        svm = SVC(kernel="precomputed")
        self.classifier_, self.best_params_ = fit_best(svm, {"C": self.C}, kernel, y, self.cv, self.random_state)
        self.classes_ = self.classifier_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row of X."""
        kernel = self._kernel(X)
        return self.classifier_.predict(kernel)

    def decision_function(self, X: Any) -> np.ndarray:
        """How much speaks for each class."""
        kernel = self._kernel(X)
        return self.classifier_.decision_function(kernel)

    def _kernel(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = self.scaler_.transform(validate_data(self, X, dtype=np.float64, reset=False))
        kinds = _kinds(X, self._blocks)
        distances = [euclidean_distances(a, b, squared=True) for a, b in zip(kinds, self._kinds, strict=True)]
        return _mean_kernel(distances, self._widths)


def _kinds(X: np.ndarray, blocks: Sequence[int]) -> list[np.ndarray]:
    return np.split(X, np.cumsum(blocks)[:-1], axis=1)


def _mean_kernel(distances: Sequence[np.ndarray], widths: Sequence[float]) -> np.ndarray:
    return np.mean([np.exp(-own / width) for own, width in zip(distances, widths, strict=True)], axis=0)
