"""A linear support vector machine on TF-IDF weights."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from pictopic.paper.baselines.base import ONE_OR_SEVERAL, FeatureClassifier


class TfidfClassifier(FeatureClassifier):
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

    def _learn_features(self, X: sparse.csr_array) -> None:
        self.weights_ = TfidfTransformer().fit(X)

    def _features(self, X: sparse.csr_array) -> sparse.csr_array:
        weighted = self.weights_.transform(X)
        places = (part.astype(np.int32) for part in (weighted.indices, weighted.indptr))  # liblinear takes no others
        return sparse.csr_array((weighted.data, *places), weighted.shape)

    def _candidates(self, several: bool) -> tuple[Any, dict[str, Any]]:
        svm = LinearSVC(random_state=self.random_state)
        return (OneVsRestClassifier(svm), {"estimator__C": self.C}) if several else (svm, {"C": self.C})
