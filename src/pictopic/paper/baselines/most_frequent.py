"""Answers that do not look at the picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from pictopic.paper.baselines.base import check_indicator


class MostFrequent(ClassifierMixin, BaseEstimator):
    """The most frequent class, or the most frequent tags, for every picture.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, or column numbers of a 0/1 matrix.
    frequencies_ : ndarray of shape (n_classes,)
        Shares of the training pictures that have them.

    References
    ----------
    scikit-learn's DummyClassifier; it gives no scores of the columns of a 0/1 matrix.

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
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> MostFrequent:
        """Count classes or tags.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_words)
            Not looked at.
        y : array-like of shape (n,), or 0/1 matrix of shape (n, n_tags)

        Returns
        -------
        self
        """
        several = sparse.issparse(y) or np.ndim(y) == 2
        y = check_indicator(y) if several else y
        self.classifier_ = DummyClassifier(strategy="prior").fit(X, y)
        self.classes_ = np.arange(y.shape[1]) if several else self.classifier_.classes_
        self.frequencies_ = y.mean(axis=0) if several else self.classifier_.class_prior_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The most frequent class; of a 0/1 matrix, the columns that more than half of the rows have.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_words)

        Returns
        -------
        ndarray of shape (n,) or (n, n_tags)
        """
        check_is_fitted(self)
        return self.classifier_.predict(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """The training frequencies, the same for every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_words)

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        check_is_fitted(self)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        return np.tile(self.frequencies_, (n, 1))
