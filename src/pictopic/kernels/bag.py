"""Hidden layers of whole documents: the sum of their words' rows, then the activation."""

from __future__ import annotations

import numpy as np
from numba import njit

from pictopic.kernels.elementary import FAST, RELU, TANH, sigmoid, tanh

_f = np.float32


@njit(**FAST)
def represent(first, last, indptr, indices, counts, W, c, activation, out):
    """out[d] = g(c + sum over words of count * W[word]) for the documents first..last-1 of a CSR matrix.

    A row is computed from that row alone, in the order of its columns: the same bits in every batch.
    """
    for d in range(first, last):
        for h in range(out.shape[1]):
            out[d, h] = c[h]
        p = indptr[d]
        end = indptr[d + 1]
        # Four words at a time: the sum is loaded and stored once for them.
        while p + 4 <= end:
            w0, w1, w2, w3 = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
            n0, n1, n2, n3 = _f(counts[p]), _f(counts[p + 1]), _f(counts[p + 2]), _f(counts[p + 3])
            for h in range(out.shape[1]):
                out[d, h] += n0 * W[w0, h] + n1 * W[w1, h] + n2 * W[w2, h] + n3 * W[w3, h]
            p += 4
        while p < end:
            w0, n0 = indices[p], _f(counts[p])
            for h in range(out.shape[1]):
                out[d, h] += n0 * W[w0, h]
            p += 1
        if activation == RELU:
            for h in range(out.shape[1]):
                a = out[d, h]
                out[d, h] = a if a > _f(0) else _f(0)
        elif activation == TANH:
            for h in range(out.shape[1]):
                out[d, h] = tanh(out[d, h])
        else:
            for h in range(out.shape[1]):
                out[d, h] = sigmoid(out[d, h])
