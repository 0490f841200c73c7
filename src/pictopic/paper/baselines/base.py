"""What the baselines share: which columns they look at, and how their options are chosen."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.utils import Tags, check_array, check_consistent_length, column_or_1d
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from pictopic.models.inputs import check_rows
from pictopic.tasks.metrics import mean_average_precision

# Constraints of options.
ONE_OR_SEVERAL = [Interval(Real, 0, None, closed="neither"), "array-like"]  # a value, or those to choose from
NOT_NEGATIVE = [Interval(Integral, 0, None, closed="left")]
AT_LEAST_ONE = [Interval(Integral, 1, None, closed="left")]


def visual_columns(X: sparse.csr_array, n_annotation_words: int) -> sparse.csr_array:
    """The counts of the visual words: all columns but the last `n_annotation_words`.

    Examples
    --------
    >>> from scipy import sparse
    >>> from pictopic.paper.baselines.base import visual_columns
    >>> visual_columns(sparse.csr_array([[1, 2, 3], [4, 5, 6]]), 1).toarray().tolist()
    [[1, 2], [4, 5]]
    """
    n_visual = X.shape[1] - n_annotation_words
    if n_visual < 1:
        raise ValueError(f"n_annotation_words={n_annotation_words} leaves no visual words: X has {X.shape[1]} columns")
    return X[:, :n_visual]


def root_shares(X: Any) -> np.ndarray:
    """Square roots of each row's shares: vectors of length 1, whose products compare histograms.

    X is an array or sparse matrix without negative values; a row without counts stays 0.

    Examples
    --------
    >>> from pictopic.paper.baselines.base import root_shares
    >>> root_shares([[9, 16], [0, 0]]).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    dense = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    total = dense.sum(axis=1, keepdims=True)
    return np.sqrt(dense / np.where(total > 0, total, 1.0))


def fit_best(
    estimator: Any, options: dict[str, Any], X: Any, y: np.ndarray, cv: int, random_state: Any
) -> tuple[Any, dict[str, Any]]:
    """Fit a classifier with the options that are best in cross-validation.

    Parameters
    ----------
    estimator : classifier
    options : dict of str to (float or sequence of float)
        Values of its options to choose from.
    X : features
    y : ndarray of shape (n,) or (n, n_classes)
        One class per row: by accuracy, folds with the same share of each class, and no more folds than the smallest
        class has rows.  A 0/1 matrix: by mean average precision.
    cv, random_state : int
        Number of folds, and what they are drawn with.

    Returns
    -------
    estimator : classifier
        Fitted on all rows.
    best : dict
        The options taken; the first of each if there is nothing to choose from or a class has one row only.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVC
    >>> from pictopic.paper.baselines.base import fit_best
    >>> X, y = np.arange(10.0)[:, None], np.arange(10) > 4
    >>> fit_best(SVC(), {"C": [1e-3, 10.0], "gamma": 1.0}, X, y, cv=3, random_state=0)[1]
    {'C': 10.0, 'gamma': 1.0}
    """
    grid = {name: np.atleast_1d(values).tolist() for name, values in options.items()}
    several = y.ndim == 2
    n_folds = min(cv, len(y) if several else int(np.unique(y, return_counts=True)[1].min()))
    if n_folds < 2 or all(len(values) == 1 for values in grid.values()):
        first = {name: values[0] for name, values in grid.items()}
        return estimator.set_params(**first).fit(X, y), first
    folds = (KFold if several else StratifiedKFold)(n_folds, shuffle=True, random_state=random_state)
    scoring = make_scorer(mean_average_precision, response_method="decision_function") if several else "accuracy"
    search = GridSearchCV(estimator, grid, cv=folds, scoring=scoring).fit(X, y)
    return search.best_estimator_, search.best_params_


class CountsClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of counts, as scikit-learn's checks need to know it."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True
        tags.classifier_tags.poor_score = True  # on data whose rows differ in their sums rather than in their shares
        return tags


class FeatureClassifier(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier on features of its input, with the best of its options in cross-validation.

    A subclass says what the features are and which classifier takes them.
    """

    _parameter_constraints: ClassVar[dict] = {
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }
    _several_classes = False  # whether y may be a 0/1 matrix

    cv: int
    random_state: Any

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self._several_classes
        return tags

    def _check_X(self, X: Any, *, reset: bool) -> Any:
        return check_rows(self, X, reset=reset).read()

    def _fit_features(self, X: Any) -> Any:
        """Features of the training rows; what has to be known of them to make features of others is learnt."""
        return self._features(X)

    def _features(self, X: Any) -> Any:
        raise NotImplementedError

    def _candidates(self, several: bool) -> tuple[Any, dict[str, Any]]:
        """A classifier, and the values of its options to choose from."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Any:
        """Learn classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_words)
        y : array-like of shape (n,)
            One class per row; where several are allowed, or a 0/1 matrix of shape (n, n_classes).

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = self._check_X(X, reset=True)
        y = self._check_y(y)
        check_consistent_length(X, y)
        features = self._fit_features(X)
        classifier, options = self._candidates(y.ndim == 2)
        self.classifier_, best = fit_best(classifier, options, features, y, self.cv, self.random_state)
        self.best_params_ = {name.rpartition("__")[2]: value for name, value in best.items()}
        self.classes_ = np.arange(y.shape[1]) if y.ndim == 2 else np.unique(y)
        return self

    def _check_y(self, y: Any) -> np.ndarray:
        y = y if sparse.issparse(y) else np.asarray(y)
        if sparse.issparse(y) or (y.ndim == 2 and y.shape[1] > 1):
            if not self._several_classes:
                raise ValueError(f"{type(self).__name__} takes one class a row, but y has shape {y.shape}")
            return check_indicator(y)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if len(classes := np.unique(y)) < 2:
            raise ValueError(f"y must have at least two classes, but has {len(classes)} class")
        return y

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, (n,), or a 0/1 matrix of its classes, (n, n_classes)."""
        features = self._checked_features(X)
        return self.classifier_.predict(features)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes, (n, n_classes), or (n,) for one class per row out of two."""
        features = self._checked_features(X)
        return self.classifier_.decision_function(features)

    def _checked_features(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._features(self._check_X(X, reset=False))


def check_indicator(Y: Any) -> np.ndarray:
    """A 0/1 matrix as a dense array of int64, or a ValueError.

    Examples
    --------
    >>> from pictopic.paper.baselines.base import check_indicator
    >>> check_indicator([[True, False]]).tolist()
    [[1, 0]]
    """
    Y = check_array(Y.toarray() if sparse.issparse(Y) else Y, dtype=None)
    if not np.isin(Y, (0, 1)).all():
        raise ValueError("Y must be a matrix of 0 and 1: a row for each row of X, a column for each tag or class")
    return Y.astype(np.int64)
