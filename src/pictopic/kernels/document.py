"""A document's hidden layers, forwards and backwards in the order of time."""

from __future__ import annotations

import numpy as np
from numba import njit

from pictopic.kernels.elementary import FAST, RELU, TANH, sigmoid, tanh
from pictopic.kernels.simd import add_row, rectify, where_positive

_f = np.float32


@njit(**FAST)
def activate(act, hidden, i, activation, mask, bias):
    """hidden[i] = g(act[0]) * mask[0], with 1 at `bias`, the unit that is always on."""
    if activation == RELU:
        rectify(hidden, i, act, mask)
    elif activation == TANH:
        for h in range(hidden.shape[1]):
            hidden[i, h] = tanh(act[0, h]) * mask[0, h]
    else:
        for h in range(hidden.shape[1]):
            hidden[i, h] = sigmoid(act[0, h]) * mask[0, h]
    hidden[i, bias] = _f(1)


@njit(**FAST)
def times_derivative(hidden, start, rows, gradient, activation, mask, keep, bias):
    """hidden[start + r] = gradient[r] * mask[0] * g'(act), from the values that the (masked) hidden layers have."""
    for r in range(rows):
        i = start + r
        if activation == RELU:
            where_positive(hidden, i, gradient, r, _f(1) / keep)
        elif activation == TANH:
            for h in range(hidden.shape[1]):
                g = hidden[i, h] * keep
                hidden[i, h] = gradient[r, h] * mask[0, h] * (_f(1) - g * g)
        else:
            for h in range(hidden.shape[1]):
                g = hidden[i, h] * keep
                hidden[i, h] = gradient[r, h] * mask[0, h] * g * (_f(1) - g)
        hidden[i, bias] = _f(0)


@njit(**FAST)
def hidden_layers(leaves, order, n, W, c, activation, mask, bias, act, hidden):
    """h_i = g(c + sum of W over the words before i), from the running sum: O(H) per word.

    `order[t]` is the row (of the leaf-sorted document) that comes at time t; its hidden layer goes to the
    same row of `hidden`.  Afterwards `act` holds the sum over all words.
    """
    zero = np.int64(0)
    for h in range(c.shape[1]):
        act[0, h] = c[0, h]
    if activation == RELU:
        # Not by way of `activate`: too large to be inlined, and a call costs as much as the work.
        for t in range(n):
            i = order[t]
            rectify(hidden, i, act, mask)
            hidden[i, bias] = _f(1)
            add_row(act, zero, W, np.int64(leaves[i]), _f(1))
    else:
        for t in range(n):
            i = order[t]
            activate(act, hidden, i, activation, mask, bias)
            add_row(act, zero, W, np.int64(leaves[i]), _f(1))


@njit(**FAST)
def backpropagate(leaves, order, n, delta, gradient, out_W, out_c, touched, step):
    """From the gradients by each position's activations to those of W and c.

    `delta` comes in as the class loss's gradient by the last activations.  W[v_i] enters the positions *after* i
    only, so it takes delta before position i's own gradient is added: Algorithm 2 as printed has it the other
    way round, and is wrong.
    """
    for t in range(n - 1, -1, -1):
        i = order[t]
        w = np.int64(leaves[i])
        touched[w] = True
        add_row(out_W, w, delta, np.int64(0), step)
        add_row(delta, np.int64(0), gradient, i, _f(1))
    add_row(out_c, np.int64(0), delta, np.int64(0), step)
