import numpy as np
import pytest
from numba import njit
from scipy.special import expit

from pictopic.kernels import elementary


def _map(function):
    @njit
    def run(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    return run


@pytest.mark.parametrize(
    ("ours", "exact"),
    [
        (elementary.sigmoid, expit),
        (elementary.tanh, np.tanh),
        (elementary.softplus, lambda x: np.logaddexp(0, x)),
    ],
)
def test_function_is_exact_to_float32(ours, exact):
    x = np.linspace(-100, 100, 40_001).astype(np.float32)
    out = np.empty_like(x)
    _map(ours)(x, out)
    np.testing.assert_allclose(out, exact(x.astype(float)), rtol=3e-7, atol=3e-7)


def test_tanh_is_relatively_exact_near_zero():
    x = np.geomspace(1e-6, 1, 10_001).astype(np.float32)
    out = np.empty_like(x)
    _map(elementary.tanh)(x, out)
    np.testing.assert_allclose(out, np.tanh(x.astype(float)), rtol=5e-7)


def test_exponential_of_negative_is_exact_down_to_exp_minus_40():
    a = np.linspace(0, 39.9, 10_001).astype(np.float32)
    out = np.empty_like(a)
    _map(elementary.exp_negative)(a, out)
    np.testing.assert_allclose(out, np.exp(-a.astype(float)), rtol=3e-7)


def test_shuffle_draws_every_permutation_equally_often():
    counts: dict[tuple, int] = {}
    order = np.empty(4, np.int64)
    state = np.uint64(1)
    for _ in range(24_000):
        state = np.uint64(elementary.shuffle(order, 4, state))
        counts[tuple(order.tolist())] = counts.get(tuple(order.tolist()), 0) + 1
    assert len(counts) == 24
    chi_square = sum((n - 1000) ** 2 / 1000 for n in counts.values())
    assert chi_square < 50  # 23 degrees of freedom: above 49.7 one time in a thousand
