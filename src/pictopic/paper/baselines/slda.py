"""Supervised LDA: topics, classes and tags of pictures in one model, learnt by variational EM."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from pictopic.models.inputs import check_rows, encode_labels
from pictopic.paper.baselines.base import AT_LEAST_ONE, NOT_NEGATIVE, CountsClassifier, visual_columns

MAX_SWEEPS = 100  # over a document whose topics are looked for from scratch
_SWEEPS_PER_STEP = 4  # in training, where each step goes on from the last
_SWEEP_TOL = 1e-4
_DOCUMENTS_PER_TOPIC = 5  # to begin with
_MAX_LBFGS = 8  # iterations per step: eta goes on from the last step, too


@dataclass
class Documents:
    """Pictures: their words, their tags and their classes."""

    words: sparse.csr_array  # (n, n_words) counts
    tags: sparse.csr_array  # (n, n_tags), each stored entry one tag
    labels: np.ndarray  # (n,) int64; -1 where the class is unknown

    @property
    def lengths(self) -> np.ndarray:
        """Number of visual words, N."""
        return np.asarray(self.words.sum(axis=1), np.float64).ravel()


@dataclass
class Parameters:
    """What EM learns."""

    topics: np.ndarray  # (n_topics, n_words): p(word | topic), beta
    tag_topics: np.ndarray  # (n_topics, n_tags): p(tag | topic), pi
    eta: np.ndarray  # (n_classes, n_topics)


@dataclass
class Posterior:
    """What is believed of the documents' topics."""

    phi: np.ndarray  # (n_entries, n_topics) float32: topics of each word of each document
    gamma: np.ndarray  # (n, n_topics): Dirichlet over the documents' topics

    @classmethod
    def uniform(cls, documents: Documents, n_topics: int, alpha: float, keep: bool = True) -> Posterior:
        """All topics alike; with `keep`, phi has a row for each entry of the counts, else it is a place to work."""
        words = documents.words
        n_rows = words.nnz if keep else int(np.diff(words.indptr).max(initial=0))
        phi = np.full((n_rows, n_topics), 1 / n_topics, np.float32)
        return cls(phi, alpha + np.repeat(documents.lengths[:, None] / n_topics, n_topics, axis=1))


def initial_parameters(documents: Documents, n_topics: int, n_classes: int, rng: np.random.RandomState) -> Parameters:
    """Topics that begin as the words of a few documents each, with noise, so that they differ; tags alike in all."""
    words, n_tags = documents.words, documents.tags.shape[1]
    rows = rng.randint(words.shape[0], size=(n_topics, _DOCUMENTS_PER_TOPIC))
    topics = np.array([words[sample].sum(axis=0) for sample in rows]) + words.sum() / n_topics / words.shape[1]
    topics *= rng.gamma(100.0, 0.01, topics.shape)
    return Parameters(_shares(topics), np.full((n_topics, n_tags), 1 / max(n_tags, 1)), np.zeros((n_classes, n_topics)))


def e_step(
    documents: Documents, parameters: Parameters, alpha: float, posterior: Posterior, max_sweeps: int = _SWEEPS_PER_STEP
) -> np.ndarray:
    """Improve the posterior in place; returns the bound on log p(words, tags, class) of each document, (n,)."""
    from pictopic.kernels.slda import infer

    words, tags = documents.words, documents.tags
    bounds = np.empty(words.shape[0])
    infer(
        words.indptr, words.indices, words.data, documents.lengths, tags.indptr, tags.indices, documents.labels,
        *_tables(parameters), parameters.eta, alpha, max_sweeps, _SWEEP_TOL,
        posterior.phi, posterior.gamma, bounds,
    )  # fmt: skip
    return bounds


def m_step(
    documents: Documents, posterior: Posterior, parameters: Parameters, smoothing: float, penalty: float
) -> Parameters:
    """The parameters that make the bound, with the priors' logs, as large as it gets (eta: larger)."""
    from pictopic.kernels.slda import add_topics

    words, tags = documents.words, documents.tags
    n_topics = len(parameters.topics)
    topics, tag_topics = np.zeros((words.shape[1], n_topics)), np.zeros((tags.shape[1], n_topics))
    add_topics(
        words.indptr, words.indices, words.data, documents.lengths, tags.indptr, tags.indices,
        _tables(parameters)[1], posterior.phi, topics, tag_topics,
    )  # fmt: skip
    eta = best_eta(documents, posterior, parameters.eta, penalty)
    return Parameters(_shares(topics.T + smoothing), _shares(tag_topics.T + smoothing), eta)


def best_eta(documents: Documents, posterior: Posterior, eta: np.ndarray, penalty: float) -> np.ndarray:
    """Class weights that raise the classes' part of the bound less the penalty, from `eta` on, by L-BFGS."""
    from pictopic.kernels.slda import class_bound

    words = documents.words

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        eta = flat.reshape(shape)
        gradient = np.zeros(shape)
        bound = class_bound(words.indptr, words.data, documents.lengths, documents.labels, posterior.phi, eta, gradient)
        return 0.5 * penalty * float(flat @ flat) - bound, penalty * flat - gradient.ravel()

    shape = eta.shape
    best = minimize(loss, eta.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _MAX_LBFGS})
    return best.x.reshape(shape)


def log_prior(parameters: Parameters, smoothing: float, penalty: float) -> float:
    """What smoothing and penalty add to the bound, up to a constant."""
    logs = np.log(parameters.topics).sum() + np.log(parameters.tag_topics).sum()
    return float(smoothing * logs - 0.5 * penalty * (parameters.eta**2).sum())


def _tables(parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
    """p(word | topic) and log p(tag | topic), a row for each word or tag."""
    return (
        np.ascontiguousarray(parameters.topics.T, np.float32),
        np.ascontiguousarray(np.log(parameters.tag_topics.T), np.float32),
    )


def _shares(counts: np.ndarray) -> np.ndarray:
    return counts / counts.sum(axis=1, keepdims=True)


class SupervisedLDA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CountsClassifier):
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
        "n_components": AT_LEAST_ONE,
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "penalty": [Interval(Real, 0, None, closed="neither")],
        "smoothing": [Interval(Real, 0, None, closed="neither")],
        "max_iter": AT_LEAST_ONE,
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_annotation_words": NOT_NEGATIVE,
        "random_state": ["random_state"],
    }

    def __init__(
        self, *, n_components=100, alpha=0.1, penalty=0.01, smoothing=0.1, max_iter=40, tol=1e-5, n_annotation_words=0,
        random_state=0,
    ):  # fmt: skip
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
            One class per row.  Rows with None or NaN are unlabelled: they teach words and tags only.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = check_rows(self, X, reset=True).read()
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

        Returns an array of shape (n, n_components) whose rows sum to 1.
        """
        check_is_fitted(self)
        documents = self._documents(check_rows(self, X, reset=False).read())
        n_topics = len(self.components_)
        posterior = Posterior.uniform(documents, n_topics, self.alpha, keep=False)
        parameters = Parameters(self.components_, self.tag_components_, self.coef_)
        e_step(documents, parameters, self.alpha, posterior, MAX_SWEEPS)
        total = (posterior.gamma - self.alpha).clip(0)
        sums = total.sum(axis=1, keepdims=True)
        return np.where(sums > 0, total / np.where(sums > 0, sums, 1), 1 / n_topics)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes, eta times the mean topics; of two classes the second one's less the first one's."""
        mean_topics = self.transform(X)
        scores = mean_topics @ self.coef_.T
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        mean_topics = self.transform(X)
        return self.classes_[(mean_topics @ self.coef_.T).argmax(axis=1)]

    def tag_scores(self, X: Any) -> np.ndarray:
        """p(tag | picture), the mean over its words' topics of p(tag | topic); (n, n_annotation_words)."""
        mean_topics = self.transform(X)
        return mean_topics @ self.tag_components_
