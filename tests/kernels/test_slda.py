import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad
from scipy.special import psi

from pictopic.kernels.slda import class_bound, digamma, infer, longest_row
from tests.support.slda_reference import bound, log_probability, normaliser, random_model, sweep

K, V, T, C = 3, 7, 5, 4
CASES = [([], -1), ([], 2), ([0, 3, 4], -1), ([1, 3], 0)]  # tags, class


def run(model, tokens, tags, label, phi, gamma, max_sweeps=1):
    """phi of each token, gamma and bound after some sweeps of the kernel."""
    words, counts = np.unique(tokens, return_counts=True)
    rows = np.array([phi[tokens.index(word)] for word in words], np.float32)
    gamma, bounds = gamma[None].copy(), np.empty(1)
    infer(
        np.array([0, len(words)]), words, counts, np.array([float(len(tokens))]), np.array([0, len(tags)]),
        np.array(tags, np.int64), np.array([label]), model.beta.T.astype(np.float32).copy(),
        np.log(model.pi.T).astype(np.float32).copy(), model.eta, model.alpha, max_sweeps, 0.0, rows, gamma, bounds,
    )  # fmt: skip
    return rows[np.searchsorted(words, tokens)], gamma[0], bounds[0]


@pytest.fixture
def document(rng):
    tokens = [0, 2, 2, 5, 5, 5, 6]
    phi = rng.dirichlet(np.ones(K), V)[tokens]  # the same for tokens of the same word
    return random_model(rng, K, V, T, C), tokens, phi, 0.3 + phi.sum(axis=0)


@pytest.mark.parametrize(("tags", "label"), CASES)
def test_sweeps_are_those_of_the_papers_equations(document, tags, label):
    model, tokens, phi, gamma = document
    for n_sweeps in (1, 2, 5):
        found = run(model, tokens, tags, label, phi, gamma, n_sweeps)
        expected_phi, expected_gamma = phi, gamma
        for _ in range(n_sweeps):
            expected_phi, expected_gamma = sweep(model, tokens, tags, label, expected_phi, expected_gamma)
        np.testing.assert_allclose(found[0], expected_phi, atol=2e-6)
        np.testing.assert_allclose(found[1], expected_gamma, rtol=2e-6)
        assert found[2] == pytest.approx(bound(model, tokens, tags, label, expected_phi, expected_gamma), abs=1e-5)


@pytest.mark.parametrize(("tags", "label"), CASES)
def test_bound_rises_to_what_enumeration_allows(document, tags, label):
    model, tokens, phi, gamma = document
    bounds = [run(model, tokens, tags, label, phi, gamma, n)[2] for n in (1, 2, 3, 5, 10, 30)]
    assert (np.diff(bounds) > -1e-5).all()
    exact = log_probability(model, tokens, tags, label)
    assert exact - 2 < bounds[-1] < exact


def test_class_weights_have_the_bound_and_gradient_of_the_papers_equations(rng):
    model = random_model(rng, K, V, T, C)
    X = sparse.csr_array(rng.poisson(1.0, (6, V)))
    labels = np.array([0, 1, -1, 3, 2, 2])
    phi = rng.dirichlet(np.ones(K), X.nnz).astype(np.float32)
    lengths = X.sum(axis=1).astype(float)

    def value(flat, gradient=None):
        gradient = np.zeros((C, K)) if gradient is None else gradient
        return class_bound(X.indptr, X.data, lengths, labels, phi, flat.reshape(C, K), gradient)

    def slope(flat):
        gradient = np.zeros((C, K))
        value(flat, gradient)
        return gradient.ravel()

    expected = 0.0
    for d, label in enumerate(labels):
        own = slice(X.indptr[d], X.indptr[d + 1])
        tokens = np.repeat(phi[own].astype(float), X.data[own], axis=0)
        if label >= 0:
            expected += model.eta[label] @ tokens.mean(axis=0) - np.log(normaliser(model, tokens).sum())
    assert value(model.eta.ravel()) == pytest.approx(expected, rel=1e-5)
    assert check_grad(value, slope, model.eta.ravel(), epsilon=1e-3) < 5e-3


def test_digamma_is_scipys():
    x = np.array([1e-3, 0.1, 0.7, 1.0, 5.9, 6.0, 40.0, 1e6])
    np.testing.assert_allclose([digamma(own) for own in x], psi(x), rtol=1e-9)


def test_longest_row():
    assert longest_row(np.array([0, 2, 2, 7])) == 5
    assert longest_row(np.array([0, 0])) == 1
