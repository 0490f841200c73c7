"""Supervised LDA: topics, classes and tags of pictures in one model."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from pictopic.models.counts import check_counts
from pictopic.models.labels import encode_labels
from pictopic.paper.baselines.base import visual_columns
from pictopic.paper.baselines.slda_em import (
    MAX_SWEEPS,
    Documents,
    Parameters,
    Posterior,
    e_step,
    initial_parameters,
    log_prior,
    m_step,
)


class SupervisedLDA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator):
    """Multi-class sLDA with annotations.

    A picture's topic proportions are drawn from a Dirichlet distribution, a topic for each of its words from them, and
    the word from the topic; its class from a softmax of the mean of these topics; and each of its tags from the topic
    of one of its words.  Learnt by variational EM, in which topics are pulled towards what tells classes apart.

    Parameters
    ----------
    n_components : int, default=100
        Number of topics.
    alpha : float, default=0.1
        Of the Dirichlet distribution: the smaller, the fewer topics a picture has.
    penalty : float, default=0.01
        On half the sum of squares of the class weights eta.
    smoothing : float, default=0.1
        What is added to the number of times that a topic has a word or a tag.
    max_iter : int, default=40
        Largest number of EM steps.
    tol : float, default=1e-5
        Stop when the bound rises by less than this share of itself.
    n_annotation_words : int, default=0
        So many of the last columns of X are annotation words (tags); how often a picture has a tag is not looked at.
    random_state : int, RandomState instance or None, default=0
        Of the topics to begin with.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_visual_words)
        p(word | topic), beta.
    tag_components_ : ndarray of shape (n_components, n_annotation_words)
        p(tag | topic), pi.
    coef_ : ndarray of shape (n_classes, n_components)
        eta.
    classes_ : ndarray of shape (n_classes,)
    bounds_ : list of float
        The lower bound on the log-likelihood, with the logs of the priors, before each EM step.
    n_iter_ : int
        Number of EM steps done.

    References
    ----------
    C. Wang, D. Blei, L. Fei-Fei, "Simultaneous Image Classification and Annotation", CVPR 2009, with its bound on the
    expected log-normaliser of the softmax (h phi) and its lambda, over the words a tag may come from.  Simplified:
    tokens of the same word in a picture share their variational topics; alpha is given, not learnt; topics are
    smoothed, and eta has an L2 penalty.

    Notes
    -----
    Memory in `fit` is 4 bytes x n_components x entries of X other than 0.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.baselines import SupervisedLDA
    >>> X = np.array([[2, 1, 0, 0, 1, 0], [1, 2, 0, 0, 1, 0], [0, 0, 1, 3, 0, 1], [0, 0, 2, 1, 0, 1]] * 5)
    >>> y = ["sea", "sea", "city", "city"] * 5
    >>> model = SupervisedLDA(n_components=2, n_annotation_words=2).fit(X, y)
    >>> new = [[3, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]]
    >>> model.predict(new).tolist(), model.tag_scores(new).argmax(axis=1).tolist()
    (['sea', 'city'], [0, 1])
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "penalty": [Interval(Real, 0, None, closed="neither")],
        "smoothing": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_annotation_words": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_components=100,
        alpha=0.1,
        penalty=0.01,
        smoothing=0.1,
        max_iter=40,
        tol=1e-5,
        n_annotation_words=0,
        random_state=0,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.penalty = penalty
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.n_annotation_words = n_annotation_words
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True
        tags.classifier_tags.poor_score = True  # on data whose rows differ in their sums rather than in their shares
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> SupervisedLDA:
        """Learn topics, classes and tags.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_words)
            Counts.
        y : array-like of shape (n,)
            A class a row.  Rows with None or NaN are unlabelled: they teach words and tags only.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = check_counts(self, X, reset=True)
        labels, self.classes_, several = encode_labels(y, X.shape[0])
        if several:
            raise ValueError(f"{type(self).__name__} takes one class a row, but y has shape {np.shape(y)}")
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least two classes, but has {len(self.classes_)} class")
        documents = self._documents(X)
        documents.tags = sparse.csr_array(X[:, documents.words.shape[1] :] > 0)
        documents.labels = np.where(labels.known, labels.indicator.argmax(axis=1), -1).astype(np.int64)
        parameters = self._learn(documents)
        self.components_, self.tag_components_ = parameters.topics, parameters.tag_topics
        self.coef_ = parameters.eta
        return self

    def _learn(self, documents: Documents) -> Parameters:
        """Variational EM."""
        rng = check_random_state(self.random_state)
        parameters = initial_parameters(documents, self.n_components, len(self.classes_), rng)
        posterior = Posterior.uniform(documents, self.n_components, self.alpha)
        self.bounds_: list[float] = []
        for _ in range(self.max_iter):
            bound = e_step(documents, parameters, self.alpha, posterior).sum()
            self.bounds_.append(float(bound + log_prior(parameters, self.smoothing, self.penalty)))
            parameters = m_step(documents, posterior, parameters, self.smoothing, self.penalty)
            if len(self.bounds_) > 1 and self.bounds_[-1] - self.bounds_[-2] < self.tol * abs(self.bounds_[-1]):
                break
        self.n_iter_ = len(self.bounds_)
        return parameters

    def _documents(self, X: sparse.csr_array) -> Documents:
        """Pictures of which only the visual words are known."""
        n = X.shape[0]
        no_tags = sparse.csr_array((n, self.n_annotation_words), dtype=bool)
        return Documents(visual_columns(X, self.n_annotation_words), no_tags, np.full(n, -1, np.int64))

    def transform(self, X: Any) -> np.ndarray:
        """The mean topics of each picture's visual words, phi: inference as in LDA, without class and tags.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_words)
            Counts; annotation words are not looked at.

        Returns
        -------
        ndarray of shape (n, n_components)
            Rows sum to 1.
        """
        check_is_fitted(self)
        documents = self._documents(check_counts(self, X, reset=False))
        n_topics = len(self.components_)
        posterior = Posterior.uniform(documents, n_topics, self.alpha, keep=False)
        e_step(
            documents, Parameters(self.components_, self.tag_components_, self.coef_), self.alpha, posterior, MAX_SWEEPS
        )
        total = (posterior.gamma - self.alpha).clip(0)
        sums = total.sum(axis=1, keepdims=True)
        return np.where(sums > 0, total / np.where(sums > 0, sums, 1), 1 / n_topics)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes: eta times the mean topics.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_words)
            Counts.

        Returns
        -------
        ndarray of shape (n, n_classes), or (n,) for two classes: the second one's score less the first one's
        """
        mean_topics = self.transform(X)
        scores = mean_topics @ self.coef_.T
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_words)
            Counts.

        Returns
        -------
        ndarray of shape (n,)
        """
        mean_topics = self.transform(X)
        return self.classes_[(mean_topics @ self.coef_.T).argmax(axis=1)]

    def tag_scores(self, X: Any) -> np.ndarray:
        """p(tag | picture): the mean over its words' topics of p(tag | topic).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_words)
            Counts; annotation words are not looked at.

        Returns
        -------
        ndarray of shape (n, n_annotation_words)
            Rows sum to 1.
        """
        mean_topics = self.transform(X)
        return mean_topics @ self.tag_components_
