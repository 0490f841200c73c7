"""Running sums over packed documents, for the softmax output on the CPU: one pass instead of torch's five."""

from __future__ import annotations

import numpy as np
from numba import njit

from pictopic.kernels.elementary import FAST

_f = np.float32


@njit(**FAST)
def sums_before(words, offsets, W, c, out):
    """out[i] = c + sum of W over the words of the same document before position i."""
    for d in range(offsets.size - 1):
        for i in range(offsets[d], offsets[d + 1]):
            if i == offsets[d]:
                for h in range(out.shape[1]):
                    out[i, h] = c[h]
            else:
                w = words[i - 1]
                for h in range(out.shape[1]):
                    out[i, h] = out[i - 1, h] + W[w, h]


@njit(**FAST)
def add_sums_after(words, offsets, delta, after_all, out):
    """out[word at i] += after_all[document] + sum of delta over the positions of the same document after i.

    `after_all` is used up.
    """
    for d in range(offsets.size - 1):
        for i in range(offsets[d + 1] - 1, offsets[d] - 1, -1):
            w = words[i]
            for h in range(out.shape[1]):
                out[w, h] += after_all[d, h]
            for h in range(out.shape[1]):
                after_all[d, h] += delta[i, h]
