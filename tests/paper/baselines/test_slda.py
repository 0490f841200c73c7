import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from pictopic.paper.baselines import SupervisedLDA
from pictopic.paper.baselines.slda import (
    Documents,
    Parameters,
    Posterior,
    best_eta,
    e_step,
    initial_parameters,
    log_prior,
    m_step,
)
from tests.support.slda_reference import Model, bound, lambdas, random_model


@parametrize_with_checks([SupervisedLDA(n_components=4)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def drawn():
    """Counts with tags, and classes, drawn from a known model; the last 100 without tags."""
    rng = np.random.RandomState(0)
    n_topics, n_words, n_tags, length = 4, 30, 12, 50
    model = random_model(rng, n_topics, n_words, n_tags, 3, scale=10)
    model.beta = rng.dirichlet(np.full(n_words, 0.1), n_topics)
    model.pi = rng.dirichlet(np.full(n_tags, 0.1), n_topics)
    X, y = np.zeros((400, n_words + n_tags), int), np.zeros(400, int)
    for d in range(400):
        z = rng.choice(n_topics, length, p=rng.dirichlet(np.full(n_topics, model.alpha)))
        for k in z:
            X[d, rng.choice(n_words, p=model.beta[k])] += 1
        for k in rng.choice(z, 3):
            X[d, n_words + rng.choice(n_tags, p=model.pi[k])] += 1
        scores = np.exp(model.eta @ np.bincount(z, minlength=n_topics) / length)
        y[d] = rng.choice(3, p=scores / scores.sum())
    X[300:, n_words:] = 0
    return model, X, y


@pytest.fixture(scope="module")
def fitted(drawn):
    _, X, y = drawn
    return SupervisedLDA(n_components=4, alpha=0.3, n_annotation_words=12).fit(X[:300], y[:300])


def matched(found, true):
    """Which true topic each found one is, by the cosine, and those cosines."""
    cosine = (found / np.linalg.norm(found, axis=1, keepdims=True)) @ (true / np.linalg.norm(true, axis=1)[:, None]).T
    rows, columns = linear_sum_assignment(-cosine)
    return columns, cosine[rows, columns]


def test_topics_classes_and_tags_of_a_known_model_are_found_again(drawn, fitted):
    model, X, y = drawn
    order, cosine = matched(fitted.components_, model.beta)
    assert (cosine > 0.98).all()
    assert (matched(fitted.tag_components_, model.pi[order])[1] > 0.9).all()
    # eta is known up to a number a topic.
    found, true = (eta - eta.mean(axis=0) for eta in (fitted.coef_, model.eta[:, order]))
    assert np.corrcoef(found.ravel(), true.ravel())[0, 1] > 0.9
    assert fitted.score(X[300:], y[300:]) > np.bincount(y[300:]).max() / 100 + 0.15


def test_bound_rises(fitted):
    assert (np.diff(fitted.bounds_) > -1e-3).all()
    assert fitted.n_iter_ == len(fitted.bounds_) < fitted.max_iter


def test_tags_are_the_mean_of_their_topics_tags(drawn, fitted):
    _, X, _ = drawn
    scores = fitted.tag_scores(X[:20])
    np.testing.assert_allclose(scores, fitted.transform(X[:20]) @ fitted.tag_components_)
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-6)


def test_tags_that_go_with_words_are_told_from_them():
    # Two kinds of pictures with words of their own; a has the tags 0 and 1, b the tag 2.
    a, b = [5, 4, 0, 0, 1, 1, 0], [0, 0, 6, 3, 0, 0, 1]
    model = SupervisedLDA(n_components=2, n_annotation_words=3, smoothing=1e-3).fit([a, b] * 10, ["a", "b"] * 10)
    scores = model.tag_scores([[9, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0], [5, 4, 6, 3, 0, 0, 0]])
    np.testing.assert_allclose(scores, [[0.5, 0.5, 0], [0, 0, 1], [0.25, 0.25, 0.5]], atol=0.02)


def test_new_pictures_are_described_by_their_visual_words_alone(drawn, fitted):
    _, X, _ = drawn
    hidden = X[:30].copy()
    hidden[:, 30:] = 0
    np.testing.assert_array_equal(fitted.transform(X[:30]), fitted.transform(hidden))
    np.testing.assert_array_equal(fitted.transform(X[:30])[7:9], fitted.transform(sparse.csr_array(X[7:9])))


def test_a_picture_without_words_has_all_topics_alike(fitted):
    np.testing.assert_allclose(fitted.transform(np.zeros((1, 42), int)), [[0.25] * 4])


def test_unlabelled_pictures_teach_words(drawn):
    _, X, y = drawn
    some = y[:300].astype(object)
    some[50:] = None
    model = SupervisedLDA(n_components=4, alpha=0.3, n_annotation_words=12).fit(X[:300], some)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X[300:], y[300:]) > np.bincount(y[300:]).max() / 100


@pytest.mark.parametrize(
    ("y", "message"), [([[0, 1], [1, 0]], "one class a row"), ([1, 1], "at least two classes"), (None, "requires y")]
)
def test_bad_classes_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        SupervisedLDA().fit([[1, 2], [2, 1]], y)


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
