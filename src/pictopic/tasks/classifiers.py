"""Fitted classifiers as plain arrays: linear ones, and SVMs with an RBF kernel.

scikit-learn fits them; this module computes their scores, for fitted and loaded models alike.  No object is ever read
from a file, and libsvm, which trusts its input, never gets an array from one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pictopic.checks import array

_ROWS = 512  # compared with all support vectors at once
_MAX_SUPPORT_VECTORS = 10_000_000
_CERTAIN = 40.0  # score of a label that all pictures have; its negative where none has it


@dataclass(frozen=True)
class LinearClassifier:
    """Linear classifier of standardised representations.

    Parameters
    ----------
    mean, scale : arrays of shape (n_features,)
        Subtracted from the representation, which is then divided by `scale`.
    coef : array of shape (n_classes, n_features)
    intercept : array of shape (n_classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.classifiers import LinearClassifier
    >>> classifier = LinearClassifier(np.zeros(2), np.ones(2), np.eye(2), np.array([0.0, 0.5]))
    >>> classifier.scores(np.array([[1.0, 2.0]])).tolist()
    [[1.0, 2.5]]
    """

    mean: np.ndarray
    scale: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray

    @classmethod
    def of_network(cls, coef: np.ndarray, intercept: np.ndarray) -> LinearClassifier:
        """Return the network's last layer, U and d, as a classifier."""
        n_features = coef.shape[1]
        return cls(
            np.zeros(n_features), np.ones(n_features), *(np.array(part, np.float64) for part in (coef, intercept))
        )

    @classmethod
    def fit(cls, Z: np.ndarray, y: np.ndarray, C: float) -> tuple[LinearClassifier, np.ndarray]:
        """Fit logistic regression, for a 0/1 matrix one per column; return it and the classes in its order."""
        from sklearn.linear_model import LogisticRegression

        mean, scale, standardized = _standardized(Z)
        logistic = LogisticRegression(C=C, max_iter=1000)
        if np.ndim(y) == 1:
            logistic.fit(standardized, y)
            coef, intercept = logistic.coef_, logistic.intercept_
            if len(logistic.classes_) == 2:  # scikit-learn has a single row for both
                coef, intercept = np.vstack([np.zeros_like(coef), coef]), np.append(0.0, intercept)
            return cls(mean, scale, coef, intercept), logistic.classes_
        coef, intercept = np.zeros((y.shape[1], Z.shape[1])), np.zeros(y.shape[1])
        for k, column in enumerate(y.T):
            if len(np.unique(column)) < 2:  # nothing to tell apart
                intercept[k] = _CERTAIN if column[0] else -_CERTAIN
                continue
            logistic.fit(standardized, column)
            coef[k], intercept[k] = logistic.coef_[0], logistic.intercept_[0]
        return cls(mean, scale, coef, intercept), np.arange(y.shape[1])

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """Return the score of each class, (n, n_classes)."""
        return (np.asarray(Z, np.float64) - self.mean) / self.scale @ self.coef.T + self.intercept

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_classes: int) -> LinearClassifier:
        """Make a classifier of a file's arrays, checked; a ValueError says what is wrong."""
        mean, scale = _standardizer(arrays)
        coef = array(arrays, "coef", "<f8", (n_classes, len(mean)))
        return cls(mean, scale, coef, array(arrays, "intercept", "<f8", (n_classes,)))


@dataclass(frozen=True)
class RbfSvm:
    """Support vector machine with an RBF kernel, one against one.

    Parameters
    ----------
    mean, scale : arrays of shape (n_features,)
        Subtracted from the representation, which is then divided by `scale`.
    support_vectors : array of shape (n_vectors, n_features)
        Ordered by class.
    dual_coef : array of shape (n_classes - 1, n_vectors)
        In scikit-learn's layout: coefficients of class i against class j are in row j - 1 (i < j) or j (i > j).
    intercept : array of shape (n_classes * (n_classes - 1) / 2,)
    n_support : int array of shape (n_classes,)
        Number of support vectors of each class.
    gamma : float
    """

    mean: np.ndarray
    scale: np.ndarray
    support_vectors: np.ndarray
    dual_coef: np.ndarray
    intercept: np.ndarray
    n_support: np.ndarray
    gamma: float

    @classmethod
    def fit(cls, Z: np.ndarray, y: np.ndarray, C: float, gamma: float) -> tuple[RbfSvm, np.ndarray]:
        """Fit with scikit-learn; return the classifier and the classes in its order."""
        from sklearn.svm import SVC

        mean, scale, standardized = _standardized(Z)
        svc = SVC(C=C, gamma=gamma).fit(standardized, y)
        arrays = (svc.support_vectors_, svc.dual_coef_, svc.intercept_, svc.n_support_.astype(np.int64))
        return cls(mean, scale, *arrays, gamma), svc.classes_

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """Return the score of each class, (n, n_classes); of two classes, the first has score 0.

        All pairs of classes vote; distances from the boundaries break ties, as in scikit-learn's
        `decision_function` with ``decision_function_shape="ovr"``.
        """
        standardized = (np.asarray(Z, np.float64) - self.mean) / self.scale
        blocks = [self._scores(standardized[start : start + _ROWS]) for start in range(0, len(standardized), _ROWS)]
        return np.concatenate([np.zeros((0, len(self.n_support))), *blocks])

    def _scores(self, Z: np.ndarray) -> np.ndarray:
        kernel = self._kernel(Z)
        if len(self.n_support) == 2:
            decisions = (kernel @ self.dual_coef.T)[:, 0] + self.intercept[0]
            return np.stack([np.zeros(len(Z)), decisions], axis=1)
        ends = np.cumsum(self.n_support)
        # Terms of each class's support vectors, against each other class.
        slices = [slice(end - n, end) for n, end in zip(self.n_support, ends, strict=True)]
        terms = [kernel[:, vectors] @ self.dual_coef[:, vectors].T for vectors in slices]
        votes, sums = np.zeros((2, len(Z), len(ends)))
        pairs = zip(*np.triu_indices(len(ends), 1), self.intercept, strict=True)
        for first, second, intercept in pairs:
            decision = terms[first][:, second - 1] + terms[second][:, first] + intercept
            votes[:, first] += decision >= 0
            votes[:, second] += decision < 0
            sums[:, first] += decision
            sums[:, second] -= decision
        return votes + sums / (3 * (np.abs(sums) + 1))

    def _kernel(self, Z: np.ndarray) -> np.ndarray:
        squares = (Z**2).sum(axis=1)[:, None] - 2 * Z @ self.support_vectors.T + (self.support_vectors**2).sum(axis=1)
        return np.exp(-self.gamma * np.maximum(squares, 0))

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_classes: int, gamma: float) -> RbfSvm:
        """Make a classifier of a file's arrays, checked; a ValueError says what is wrong."""
        mean, scale = _standardizer(arrays)
        vectors = array(arrays, "support_vectors", "<f8", (None, len(mean)))
        dual_coef = array(arrays, "dual_coef", "<f8", (n_classes - 1, len(vectors)))
        intercept = array(arrays, "intercept", "<f8", (n_classes * (n_classes - 1) // 2,))
        n_support = array(arrays, "n_support", "<i8", (n_classes,), 0, _MAX_SUPPORT_VECTORS)
        if n_support.sum() != len(vectors):
            raise ValueError(f"'n_support' adds up to {n_support.sum()}, but there are {len(vectors)} support vectors")
        return cls(mean, scale, vectors, dual_coef, intercept, n_support, gamma)


Classifier = LinearClassifier | RbfSvm


def to_arrays(classifier: Classifier) -> dict[str, np.ndarray]:
    """Return the arrays of a classifier, for a file."""
    fields = vars(classifier).items()
    return {name: np.ascontiguousarray(value) for name, value in fields if isinstance(value, np.ndarray)}


def _standardized(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    standardized = scaler.fit_transform(np.asarray(Z, np.float64))
    return scaler.mean_, scaler.scale_, standardized


def _standardizer(arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    mean = array(arrays, "mean", "<f8", (None,))
    return mean, array(arrays, "scale", "<f8", mean.shape, least=1e-30)
