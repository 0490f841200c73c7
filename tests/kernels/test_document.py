import numpy as np
import pytest

from pictopic.kernels.document import backpropagate, hidden_layers, times_derivative
from pictopic.kernels.elementary import ACTIVATIONS
from pictopic.kernels.learning import aligned_zeros
from pictopic.kernels.simd import padded

N_WORDS, N_HIDDEN = 9, 5
WIDTH = padded(N_HIDDEN + 1)
LEAVES = np.array([1, 1, 4, 7])
ORDER = np.array([2, 0, 3, 1])  # the third of the leaves comes first
FUNCTIONS = {
    "relu": (lambda a: np.maximum(a, 0), lambda a: (a > 0) * 1.0),
    "tanh": (np.tanh, lambda a: 1 - np.tanh(a) ** 2),
    "sigmoid": (lambda a: 1 / (1 + np.exp(-a)), lambda a: np.exp(-a) / (1 + np.exp(-a)) ** 2),
}


def normal(rng, n):
    """Rows of random numbers, 0 from the unit that is always on."""
    rows = aligned_zeros((n, WIDTH))
    rows[:, :N_HIDDEN] = rng.normal(size=(n, N_HIDDEN))
    return rows


def activations(W, c):
    """Sums of the rows of the words before each position, as a plain loop, in the order of the leaves."""
    sums, total = np.zeros((len(LEAVES), WIDTH)), c[0].astype(float)
    for i in ORDER:
        sums[i] = total
        total = total + W[LEAVES[i]]
    return sums, total


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_hidden_layers_are_those_of_the_words_before(rng, activation):
    W, c = normal(rng, N_WORDS), normal(rng, 1)
    mask = np.abs(normal(rng, 1))
    act, hidden = aligned_zeros((1, WIDTH)), aligned_zeros((len(LEAVES), WIDTH))
    hidden_layers(LEAVES, ORDER, len(LEAVES), W, c, ACTIVATIONS[activation], mask, N_HIDDEN, act, hidden)
    sums, total = activations(W, c)
    expected = FUNCTIONS[activation][0](sums) * mask
    np.testing.assert_allclose(hidden[:, :N_HIDDEN], expected[:, :N_HIDDEN], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(hidden[:, N_HIDDEN], 1)
    np.testing.assert_allclose(act[0], total, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_gradients_pass_through_the_activations(rng, activation):
    act, gradient = normal(rng, 3).astype(float), normal(rng, 3)
    function, derivative = FUNCTIONS[activation]
    hidden = aligned_zeros((3, WIDTH))
    keep = np.float32(0.5)
    mask = aligned_zeros((1, WIDTH))
    mask[0, :N_HIDDEN] = 1 / keep  # no unit is dropped
    hidden[:] = function(act) * mask
    times_derivative(hidden, 0, 3, gradient, ACTIVATIONS[activation], mask, keep, N_HIDDEN)
    expected = gradient * mask * derivative(act)
    np.testing.assert_allclose(hidden[:, :N_HIDDEN], expected[:, :N_HIDDEN], rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(hidden[:, N_HIDDEN], 0)


def test_a_words_row_gets_the_gradients_of_the_positions_after_it(rng):
    gradient, delta = normal(rng, len(LEAVES)), normal(rng, 1)
    out_W, out_c, touched = aligned_zeros((N_WORDS, WIDTH)), aligned_zeros((1, WIDTH)), np.zeros(N_WORDS, np.bool_)
    expected, last = np.zeros((N_WORDS, WIDTH)), delta[0].astype(float)
    for t, i in enumerate(ORDER):
        expected[LEAVES[i]] += 0.5 * (last + gradient[ORDER[t + 1 :]].sum(axis=0))
    backpropagate(LEAVES, ORDER, len(LEAVES), delta, gradient, out_W, out_c, touched, np.float32(0.5))
    np.testing.assert_allclose(out_W, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(out_c[0], 0.5 * (last + gradient.sum(axis=0)), rtol=1e-4, atol=1e-6)
    assert np.flatnonzero(touched).tolist() == [1, 4, 7]
