"""A support vector machine on histograms of visual words."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.svm import SVC
from sklearn.utils._param_validation import Interval

from pictopic.paper.baselines.base import ONE_OR_SEVERAL, FeatureClassifier, root_shares, visual_columns


class HistogramSVM(FeatureClassifier):
    """RBF SVM on the square roots of each picture's shares of visual words.

    Square roots make the Euclidean distance the Hellinger distance between histograms, in which frequent words do not
    drown rare ones.  No topics: whatever a topic model learns should be better than this.

    Parameters
    ----------
    C : float or sequence of float, default=(1, 3, 10, 30, 100)
    gamma : float or sequence of float, default=(0.3, 1, 3, 10)
        The SVM's C and its kernel's gamma, or values to choose from by cross-validation (accuracy).
    n_annotation_words : int, default=0
        So many of the last columns of X are annotation words; they are not looked at.
    cv : int, default=5
        Number of folds; fewer where a class has fewer rows, and where it has one, the first values are taken.
    random_state : int, RandomState instance or None, default=0
        Of the folds.

    Attributes
    ----------
    best_params_ : dict
        C and gamma.
    classes_ : ndarray of shape (n_classes,)
    classifier_ : SVC

    References
    ----------
    R. Arandjelovic, A. Zisserman, "Three things everyone should know to improve object retrieval", CVPR 2012 (square
    roots).  Nothing is simplified: it is scikit-learn's SVC.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.baselines import HistogramSVM
    >>> X = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 1]] * 5)
    >>> model = HistogramSVM().fit(X, ["sea", "sea", "city", "city"] * 5)
    >>> model.predict([[3, 1, 0, 0], [0, 0, 1, 1]]).tolist()
    ['sea', 'city']
    """

    _parameter_constraints: ClassVar[dict] = {
        **FeatureClassifier._parameter_constraints,
        "C": ONE_OR_SEVERAL,
        "gamma": ONE_OR_SEVERAL,
        "n_annotation_words": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(self, *, C=(1, 3, 10, 30, 100), gamma=(0.3, 1, 3, 10), n_annotation_words=0, cv=5, random_state=0):
        self.C = C
        self.gamma = gamma
        self.n_annotation_words = n_annotation_words
        self.cv = cv
        self.random_state = random_state

    def _features(self, X: sparse.csr_array) -> np.ndarray:
        return root_shares(visual_columns(X, self.n_annotation_words))

    def _candidates(self, several: bool) -> tuple[Any, dict[str, Any]]:
        return SVC(), {"C": self.C, "gamma": self.gamma}
