"""Elementary functions that LLVM can vectorise, and a random stream that is the same in every thread.

numba calls the C library for `exp`, one value at a time.  Written as polynomials without a branch, the
same functions run eight or sixteen values at a time, to the last bits of float32.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# error_model: a division by zero must not add a branch to every loop.  nogil: minibatches run in threads.
# forceinline: a function that is called exists several times, optimised in different ways, and which of them runs would
# depend on whether the cache was filled; in the last digits, so would the model.
FAST = {"cache": True, "fastmath": True, "nogil": True, "error_model": "numpy", "forceinline": True}

RELU, TANH, SIGMOID = 0, 1, 2
ACTIVATIONS = {"relu": RELU, "tanh": TANH, "sigmoid": SIGMOID}

_f = np.float32
_i = np.int32
_u = np.uint64


@njit(**FAST)
def exp_negative(a):
    """exp(-a) for a >= 0 (Cephes' range reduction and polynomial).

    Below exp(-40), which is nothing beside 1 in float32, it stays at exp(-40): products of smaller numbers would
    become denormal, and arithmetic with those is a hundred times slower.
    """
    a = min(a, _f(40.0))
    n = np.floor(a * _f(1.44269504) + _f(0.5))
    r = n * _f(0.693359375) - a
    r = r + n * _f(-2.12194440e-4)
    p = _f(1.9875691500e-4)
    p = p * r + _f(1.3981999507e-3)
    p = p * r + _f(8.3334519073e-3)
    p = p * r + _f(4.1665795894e-2)
    p = p * r + _f(1.6666665459e-1)
    p = p * r + _f(5.0000001201e-1)
    p = p * r * r + r + _f(1.0)
    # 2**-n, put together from its bits.
    return p * _i((_i(127) - _i(n)) << _i(23)).view(np.float32)


@njit(**FAST)
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    e = exp_negative(abs(x))
    s = _f(1.0) / (_f(1.0) + e)
    return s if x >= _f(0.0) else e * s


@njit(**FAST)
def log_one_plus(e):
    """log(1 + e) for 0 <= e <= 1: 2 atanh(z) with z = e / (2 + e) <= 1/3, a short odd series."""
    z = e / (_f(2.0) + e)
    y = z * z
    p = _f(0.09090909)
    p = p * y + _f(0.11111111)
    p = p * y + _f(0.14285714)
    p = p * y + _f(0.2)
    p = p * y + _f(0.33333333)
    p = p * y + _f(1.0)
    return _f(2.0) * z * p


@njit(**FAST)
def softplus(x):
    """log(1 + exp(x)), which is -log sigmoid(-x)."""
    return max(x, _f(0.0)) + log_one_plus(exp_negative(abs(x)))


@njit(**FAST)
def tanh(x):
    """Hyperbolic tangent: (1 - e) / (1 + e) with e = exp(-2 |x|); near 0, where that cancels, Cephes' polynomial."""
    a = abs(x)
    e = exp_negative(_f(2.0) * a)
    far = (_f(1.0) - e) / (_f(1.0) + e)
    y = x * x
    p = _f(-5.70498872745e-3)
    p = p * y + _f(2.06390887954e-2)
    p = p * y + _f(-5.37397155531e-2)
    p = p * y + _f(1.33314422036e-1)
    p = p * y + _f(-3.33332819422e-1)
    near = x + x * y * p
    return near if a < _f(0.625) else (far if x >= _f(0.0) else -far)


@njit(**FAST)
def next_random(state):
    """Advance a splitmix64 stream: the new state and 64 random bits."""
    state = state + _u(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> _u(30))) * _u(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> _u(27))) * _u(0x94D049BB133111EB)
    return state, z ^ (z >> _u(31))


@njit(**FAST)
def shuffle(order, n, state):
    """Fill ``order[:n]`` with a random permutation of 0..n-1; return the advanced state."""
    for i in range(n):
        order[i] = i
    for i in range(n - 1, 0, -1):
        state, bits = next_random(state)
        # The high half of a 32 x 32 bit product: uniform on 0..i to within 2**-32 per draw, no division.
        j = np.int64(((bits >> _u(32)) * _u(i + 1)) >> _u(32))
        order[i], order[j] = order[j], order[i]
    return state
