"""What pairs of histograms have in common."""

from __future__ import annotations

import numpy as np
from numba import njit

from pictopic.kernels.elementary import FAST

_BLOCK = 16  # rows of b that stay in the first-level cache while all rows of a pass by


@njit(**FAST)
def intersections(a, b, out):
    """out[i, j] = sum over k of min(a[i, k], b[j, k]), for float32 arrays."""
    for first in range(0, b.shape[0], _BLOCK):
        last = min(first + _BLOCK, b.shape[0])
        for i in range(a.shape[0]):
            for j in range(first, last):
                total = np.float32(0)
                for k in range(a.shape[1]):
                    total += a[i, k] if a[i, k] < b[j, k] else b[j, k]
                out[i, j] = total
