"""Classifiers without topics: the most frequent class, and support vector machines on counts or other features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import euclidean_distances
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from pictopic.paper.baselines.base import (
    NOT_NEGATIVE,
    ONE_OR_SEVERAL,
    CountsClassifier,
    FeatureClassifier,
    check_indicator,
    root_shares,
    visual_columns,
)


class HistogramSVM(FeatureClassifier, CountsClassifier):
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
        "n_annotation_words": NOT_NEGATIVE,
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


class TfidfClassifier(FeatureClassifier, CountsClassifier):
    """Linear SVM on words weighted by how few documents have them.

    Looks at all columns: as in the paper, where the tags of MIR Flickr's pictures are known and only the classes are
    asked for.

    Parameters
    ----------
    C : float or sequence of float, default=(0.03, 0.1, 0.3, 1.0)
        The SVM's C, or values to choose from by cross-validation: by accuracy, or by mean average precision where y is
        a 0/1 matrix.
    cv : int, default=5
        Number of folds; see `HistogramSVM`.
    random_state : int, RandomState instance or None, default=0
        Of the folds and the SVM.

    Attributes
    ----------
    best_params_ : dict
        C.
    classes_ : ndarray of shape (n_classes,)
        Class labels, or column numbers of a 0/1 matrix.
    weights_ : TfidfTransformer
    classifier_ : LinearSVC or OneVsRestClassifier

    References
    ----------
    K. Sparck Jones, "A statistical interpretation of term specificity and its application in retrieval", 1972.  Nothing
    is simplified: scikit-learn's TfidfTransformer and LinearSVC, one SVM against all others for each class.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.baselines import TfidfClassifier
    >>> X = np.array([[2, 1, 0, 5], [1, 2, 0, 5], [0, 0, 1, 5], [0, 0, 2, 5]] * 5)
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]] * 5)
    >>> TfidfClassifier().fit(X, Y).predict([[1, 1, 0, 9], [0, 0, 3, 9]]).tolist()
    [[1, 0], [0, 1]]
    """

    _parameter_constraints: ClassVar[dict] = {**FeatureClassifier._parameter_constraints, "C": ONE_OR_SEVERAL}
    _several_classes = True

    def __init__(self, *, C=(0.03, 0.1, 0.3, 1.0), cv=5, random_state=0):
        self.C = C
        self.cv = cv
        self.random_state = random_state

    def _fit_features(self, X: sparse.csr_array) -> sparse.csr_array:
        self.weights_ = TfidfTransformer().fit(X)
        return self._features(X)

    def _features(self, X: sparse.csr_array) -> sparse.csr_array:
        weighted = self.weights_.transform(X)
        places = (part.astype(np.int32) for part in (weighted.indices, weighted.indptr))  # liblinear takes no others
        return sparse.csr_array((weighted.data, *places), weighted.shape)

    def _candidates(self, several: bool) -> tuple[Any, dict[str, Any]]:
        svm = LinearSVC(random_state=self.random_state)
        return (OneVsRestClassifier(svm), {"estimator__C": self.C}) if several else (svm, {"C": self.C})


class AverageKernelSVM(FeatureClassifier):
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
        **FeatureClassifier._parameter_constraints,
        "blocks": ["array-like", None],
        "C": ONE_OR_SEVERAL,
    }

    def __init__(self, *, blocks=None, C=(1, 3, 10, 30, 100), cv=5, random_state=0):
        self.blocks = blocks
        self.C = C
        self.cv = cv
        self.random_state = random_state

    def _check_X(self, X: Any, *, reset: bool) -> np.ndarray:
        return validate_data(self, X, dtype=np.float64, reset=reset)

    def _fit_features(self, X: np.ndarray) -> np.ndarray:
        blocks = (X.shape[1],) if self.blocks is None else tuple(self.blocks)
        if sum(blocks) != X.shape[1] or min(blocks) < 1:
            raise ValueError(f"blocks={blocks} do not add up to the {X.shape[1]} columns of X")
        self.scaler_ = StandardScaler().fit(X)
        self._kinds = _kinds(self.scaler_.transform(X), blocks)
        self._blocks = blocks
        distances = [euclidean_distances(kind, squared=True) for kind in self._kinds]
        self._widths = [max(float(part.mean()), 1e-12) for part in distances]
        return _mean_kernel(distances, self._widths)

    def _features(self, X: np.ndarray) -> np.ndarray:
        kinds = _kinds(self.scaler_.transform(X), self._blocks)
        distances = [euclidean_distances(a, b, squared=True) for a, b in zip(kinds, self._kinds, strict=True)]
        return _mean_kernel(distances, self._widths)

    def _candidates(self, several: bool) -> tuple[Any, dict[str, Any]]:
        return SVC(kernel="precomputed"), {"C": self.C}


def _kinds(X: np.ndarray, blocks: Sequence[int]) -> list[np.ndarray]:
    return np.split(X, np.cumsum(blocks)[:-1], axis=1)


def _mean_kernel(distances: Sequence[np.ndarray], widths: Sequence[float]) -> np.ndarray:
    return np.mean([np.exp(-part / width) for part, width in zip(distances, widths, strict=True)], axis=0)


class MostFrequent(CountsClassifier):
    """The most frequent class, or the most frequent tags, for every picture.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, or column numbers of a 0/1 matrix.
    frequencies_ : ndarray of shape (n_classes,)
        Shares of the training pictures that have them.

    References
    ----------
    scikit-learn's DummyClassifier, which has no scores for the columns of a 0/1 matrix.

    Examples
    --------
    >>> from pictopic.paper.baselines import MostFrequent
    >>> X = [[1, 0], [0, 2], [3, 1]]
    >>> MostFrequent().fit(X, ["sea", "city", "sea"]).predict([[9, 9]]).tolist()
    ['sea']
    >>> MostFrequent().fit(X, [[1, 0], [1, 1], [1, 0]]).decision_function([[9, 9]]).tolist()
    [[1.0, 0.333...]]
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any) -> MostFrequent:
        """Count the classes, (n,), or the tags, (n, n_tags); X is not looked at."""
        several = sparse.issparse(y) or np.ndim(y) == 2
        y = check_indicator(y) if several else y
        self.classifier_ = DummyClassifier(strategy="prior").fit(X, y)
        self.classes_ = np.arange(y.shape[1]) if several else self.classifier_.classes_
        self.frequencies_ = y.mean(axis=0) if several else self.classifier_.class_prior_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The most frequent class; of a 0/1 matrix, the columns that more than half of the rows have."""
        check_is_fitted(self)
        return self.classifier_.predict(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """The training frequencies, the same for every row; (n, n_classes)."""
        check_is_fitted(self)
        return np.tile(self.frequencies_, (X.shape[0] if hasattr(X, "shape") else len(X), 1))
