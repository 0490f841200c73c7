"""The two steps of variational EM for supervised LDA."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

MAX_SWEEPS = 100  # over a document whose topics are looked for from scratch
_SWEEPS_A_STEP = 4  # in training, where each step goes on from the last
_SWEEP_TOL = 1e-4
_DOCUMENTS_A_TOPIC = 5  # to begin with
_MAX_LBFGS = 8  # iterations a step: eta goes on from the last step, too


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
    rows = rng.randint(words.shape[0], size=(n_topics, _DOCUMENTS_A_TOPIC))
    topics = np.array([words[own].sum(axis=0) for own in rows]) + words.sum() / n_topics / words.shape[1]
    topics *= rng.gamma(100.0, 0.01, topics.shape)
    return Parameters(_shares(topics), np.full((n_topics, n_tags), 1 / max(n_tags, 1)), np.zeros((n_classes, n_topics)))


def e_step(
    documents: Documents,
    parameters: Parameters,
    alpha: float,
    posterior: Posterior,
    max_sweeps: int = _SWEEPS_A_STEP,
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
    found = minimize(loss, eta.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _MAX_LBFGS})
    return found.x.reshape(shape)


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
