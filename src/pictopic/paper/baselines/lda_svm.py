"""Latent Dirichlet allocation, and a support vector machine on its topics."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from scipy.special import gammaln, psi
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from pictopic.corpus.rows import Rows
from pictopic.models.inputs import check_rows, document_lengths
from pictopic.models.likelihood import perplexity_of
from pictopic.paper.baselines.base import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    ONE_OR_SEVERAL,
    CountsClassifier,
    FeatureClassifier,
)


class LDAClassifier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FeatureClassifier, CountsClassifier):
    """LDA without the classes, then an SVM on each picture's topic proportions.

    What supervision adds to a topic model is what it does better than this.  Topics are learnt from all columns, tags
    included; a picture's topics are then looked for in its visual words alone, in training as in use.

    Parameters
    ----------
    n_components : int, default=100
        Number of topics.
    max_iter : int, default=20
        Passes over the documents.
    C : float or sequence of float, default=(1, 3, 10, 30, 100)
    gamma : float or sequence of float, default=(0.3, 1, 3, 10)
        Of the RBF SVM on the proportions' square roots, or values to choose from by cross-validation (accuracy).  Where
        y is a 0/1 matrix, a linear SVM for each class, its C by mean average precision.
    doc_topic_prior : float or None, default=None
        alpha of LDA; None is 1 / n_components.
    n_annotation_words : int, default=0
        So many of the last columns of X are annotation words.
    cv : int, default=5
        Number of folds of the SVM's cross-validation; see `HistogramSVM`.
    random_state : int, RandomState instance or None, default=0
        Of LDA and the folds.
    n_jobs : int or None, default=None
        Processes of LDA; None is 1.

    Attributes
    ----------
    lda_ : LatentDirichletAllocation
    best_params_ : dict
        C and, for one class per row, gamma.
    classes_ : ndarray of shape (n_classes,)
        Class labels, or column numbers of a 0/1 matrix.
    classifier_ : SVC or OneVsRestClassifier
    n_iter_ : int
        Passes over the documents.

    References
    ----------
    D. Blei, A. Ng, M. Jordan, "Latent Dirichlet Allocation", JMLR 2003; M. Hoffman, D. Blei, F. Bach, "Online learning
    for LDA", NIPS 2010.  Nothing is simplified: scikit-learn's LatentDirichletAllocation and SVMs.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.baselines import LDAClassifier
    >>> X = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 1]] * 5)
    >>> model = LDAClassifier(n_components=2).fit(X, ["sea", "sea", "city", "city"] * 5)
    >>> model.predict([[3, 1, 0, 0], [0, 0, 1, 1]]).tolist()
    ['sea', 'city']
    >>> model.transform([[3, 1, 0, 0]]).shape
    (1, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        **FeatureClassifier._parameter_constraints,
        "n_components": AT_LEAST_ONE,
        "max_iter": AT_LEAST_ONE,
        "C": ONE_OR_SEVERAL,
        "gamma": ONE_OR_SEVERAL,
        "doc_topic_prior": [None, Interval(Real, 0, None, closed="neither")],
        "n_annotation_words": NOT_NEGATIVE,
        "n_jobs": [None, Integral],
    }
    _several_classes = True

    def __init__(
        self, *, n_components=100, max_iter=20, C=(1, 3, 10, 30, 100), gamma=(0.3, 1, 3, 10), doc_topic_prior=None,
        n_annotation_words=0, cv=5, random_state=0, n_jobs=None,
    ):  # fmt: skip
        self.n_components = n_components
        self.max_iter = max_iter
        self.C = C
        self.gamma = gamma
        self.doc_topic_prior = doc_topic_prior
        self.n_annotation_words = n_annotation_words
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.lda_.components_.shape[0]

    def _fit_features(self, X: sparse.csr_array) -> np.ndarray:
        # Batch, not online: for a thousand pictures it is as fast, and held-out perplexity was 3 % lower.
        self.lda_ = LatentDirichletAllocation(
            self.n_components, doc_topic_prior=self.doc_topic_prior, max_iter=self.max_iter, learning_method="batch",
            random_state=self.random_state, n_jobs=self.n_jobs,
        ).fit(X)  # fmt: skip
        self.n_iter_ = self.lda_.n_iter_
        return self._features(X)

    def _proportions(self, X: sparse.csr_array) -> np.ndarray:
        return self.lda_.transform(Rows(X, n_annotation_words=self.n_annotation_words).without_tags().read())

    def _features(self, X: sparse.csr_array) -> np.ndarray:
        return np.sqrt(self._proportions(X))

    def _candidates(self, several: bool) -> tuple[Any, dict[str, Any]]:
        if several:
            return OneVsRestClassifier(LinearSVC(random_state=self.random_state)), {"estimator__C": self.C}
        return SVC(), {"C": self.C, "gamma": self.gamma}

    def transform(self, X: Any) -> np.ndarray:
        """Topic proportions of the visual words, (n, n_components); annotation words are not looked at."""
        check_is_fitted(self)
        return self._proportions(check_rows(self, X, reset=False).read())

    def log_likelihood(self, X: Any) -> np.ndarray:
        """Lower bound on the log-likelihood of each document, annotation words included, given the topics; (n,).

        The terms of scikit-learn's bound that belong to the documents: its own also has one for the topics, which makes
        few documents look less likely than many.
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False).read()
        gamma = self.lda_.transform(X, normalize=False)
        alpha = self.lda_.doc_topic_prior_
        expected = psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))
        prior = gammaln(alpha * gamma.shape[1]) - gammaln(gamma.sum(axis=1))
        prior += ((alpha - gamma) * expected + gammaln(gamma) - gammaln(alpha)).sum(axis=1)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        p = (np.exp(expected) @ self.lda_.exp_dirichlet_component_)[rows, X.indices]
        words = np.bincount(rows, X.data * np.log(np.maximum(p, np.finfo(float).tiny)), minlength=X.shape[0])
        return words + prior

    def perplexity(self, X: Any, per: Literal["word", "document"] = "word") -> float:
        """Perplexity from the bound, an upper bound on the model's; see `pictopic.tasks.metrics.perplexity`."""
        return perplexity_of(-self.log_likelihood(X), document_lengths(check_rows(self, X, reset=False).read()), per)
