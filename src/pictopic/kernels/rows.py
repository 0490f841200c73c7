"""Rows of a CSR matrix of counts as the dense input of a network: weighted, normalised, in one pass."""

from __future__ import annotations

import numpy as np
from numba import njit

from pictopic.kernels.elementary import FAST

NORMALIZATIONS = {"none": 0, "std": 1, "sqrt": 2}


@njit(**FAST)
def fill_rows(indptr, indices, counts, n_visual, rho, kind, out):
    """Write each row's counts into ``out``, which must be 0 elsewhere; as `pictopic.models.network.normalize_counts`.

    Columns from `n_visual` on count `rho` times.  A row is computed from that row alone.
    """
    for row in range(indptr.size - 1):
        total = 0.0
        squares = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            value = np.float64(counts[j])
            if indices[j] >= n_visual:
                value *= rho
            if kind == 2:
                value = np.sqrt(value)
            out[row, indices[j]] = value
            total += value
            squares += value * value
        if kind == 0 or total == 0.0:
            continue
        mean = total / out.shape[1]
        variance = squares / out.shape[1] - mean * mean
        deviation = np.sqrt(variance) if variance > 0.0 else 0.0
        scale = 1.0 / (deviation if deviation > 1e-3 * mean else mean)
        for j in range(indptr[row], indptr[row + 1]):
            out[row, indices[j]] *= scale
