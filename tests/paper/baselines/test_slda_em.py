import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from pictopic.paper.baselines.slda_em import (
    Documents,
    Parameters,
    Posterior,
    best_eta,
    e_step,
    initial_parameters,
    log_prior,
    m_step,
)
from tests.paper.baselines.slda_reference import Model, bound, lambdas

K, ALPHA, SMOOTHING, PENALTY = 3, 0.4, 0.2, 0.05


def documents(rng, n=12, labelled=True) -> Documents:
    words = sparse.csr_array(rng.poisson(0.8, (n, 9)).astype(np.int32))
    tags = sparse.csr_array(rng.uniform(size=(n, 5)) < 0.3)
    labels = np.arange(n) % 4 - 1 if labelled else np.full(n, -1)
    return Documents(words, tags, labels)


@pytest.mark.parametrize("labelled", [False, True])
def test_bound_never_falls_between_steps(rng, labelled):
    own = documents(rng, 40, labelled)
    parameters = initial_parameters(own, K, 3, rng)
    posterior = Posterior.uniform(own, K, ALPHA)
    bounds = []
    for _ in range(40):
        value = e_step(own, parameters, ALPHA, posterior).sum()
        bounds.append(value + log_prior(parameters, SMOOTHING, PENALTY))
        parameters = m_step(own, posterior, parameters, SMOOTHING, PENALTY)
    assert (np.diff(bounds) > -1e-4).all()
    assert bounds[-1] > bounds[0] + 10


def test_bounds_are_those_of_a_plain_loop_over_tokens(rng):
    own = documents(rng)
    parameters = initial_parameters(own, K, 3, rng)
    posterior = Posterior.uniform(own, K, ALPHA)
    for _ in range(3):
        bounds = e_step(own, parameters, ALPHA, posterior)
        before = parameters
        parameters = m_step(own, posterior, parameters, SMOOTHING, PENALTY)
    model = Model(before.topics, before.tag_topics, before.eta, ALPHA)
    for d in range(12):
        tokens, phi = expand(own, posterior, d)
        expected = bound(model, tokens, tags_of(own, d), own.labels[d], phi, posterior.gamma[d])
        assert bounds[d] == pytest.approx(expected, abs=1e-4)


def expand(own, posterior, d):
    """Words and phi of a document's tokens."""
    entries = slice(own.words.indptr[d], own.words.indptr[d + 1])
    counts = own.words.data[entries]
    return np.repeat(own.words.indices[entries], counts), np.repeat(
        posterior.phi[entries].astype(float), counts, axis=0
    )


def tags_of(own, d):
    return own.tags.indices[own.tags.indptr[d] : own.tags.indptr[d + 1]]


def test_topics_are_shares_of_the_tokens_that_come_from_them(rng):
    own = documents(rng)
    parameters = initial_parameters(own, K, 3, rng)
    posterior = Posterior.uniform(own, K, ALPHA)
    e_step(own, parameters, ALPHA, posterior)
    found = m_step(own, posterior, parameters, SMOOTHING, PENALTY)
    topics, tag_topics = np.full((K, 9), SMOOTHING), np.full((K, 5), SMOOTHING)
    model = Model(parameters.topics, parameters.tag_topics, parameters.eta, ALPHA)
    for d in range(12):
        tokens, phi = expand(own, posterior, d)
        for n, word in enumerate(tokens):
            topics[:, word] += phi[n]
        for source, tag in zip(lambdas(model, tags_of(own, d), phi), tags_of(own, d), strict=True):
            tag_topics[:, tag] += source @ phi
    np.testing.assert_allclose(found.topics, topics / topics.sum(axis=1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(found.tag_topics, tag_topics / tag_topics.sum(axis=1, keepdims=True), rtol=1e-5)


def test_class_weights_of_known_topics_are_those_of_logistic_regression(rng):
    # A word is a topic: there is nothing to expect, and the bound is the log-likelihood itself.
    words = sparse.csr_array((rng.poisson(2, (50, K)) + 1).astype(np.int32))
    labels = rng.randint(3, size=50)
    own = Documents(words, sparse.csr_array((50, 0), dtype=bool), labels)
    posterior = Posterior(np.eye(K, dtype=np.float32)[words.indices], np.ones((50, K)))
    eta = np.zeros((3, K))
    for _ in range(30):
        eta = best_eta(own, posterior, eta, 0.1)
    shares = words.toarray() / own.lengths[:, None]
    expected = LogisticRegression(C=10, fit_intercept=False, tol=1e-8, max_iter=1000).fit(shares, labels).coef_
    np.testing.assert_allclose(eta, expected, atol=2e-3)


def test_knowing_the_class_moves_topics_towards_it(rng):
    own = documents(rng)
    eta = np.array([[8.0, 0, 0], [0, 8, 0], [0, 0, 8]])
    parameters = Parameters(rng.dirichlet(np.ones(9), K), rng.dirichlet(np.ones(5), K), eta)
    without = Documents(own.words, own.tags, np.full(12, -1))
    scores = []
    for given in (own, without):
        posterior = Posterior.uniform(given, K, ALPHA)
        e_step(given, parameters, ALPHA, posterior, max_sweeps=50)
        scores.append((posterior.gamma - ALPHA) / own.lengths[:, None] @ eta.T)
    known = np.flatnonzero(own.labels >= 0)
    with_class, without_class = (own_scores[known, own.labels[known]] for own_scores in scores)
    assert (with_class > without_class).all()
