"""The best column of each row of scores, in one pass while they are in the cache."""

from __future__ import annotations

import numpy as np
from numba import njit

from pictopic.kernels.elementary import FAST

BLOCK = 64  # columns that are compared at once, in vector code


@njit(**FAST)
def best_columns(scores, offsets, best, value):
    """``(scores + offsets).argmax(axis=1)`` and ``.max(axis=1)``; of equal ones, the first.

    Parameters
    ----------
    scores : float32 array of shape (n_rows, n_columns)
        The number of columns a multiple of `BLOCK`.
    offsets : float32 array of shape (n_columns,)
    best : int32 array of shape (n_rows,)
        Filled.
    value : float32 array of shape (n_rows,)
        Filled.
    """
    # Of each of BLOCK lanes the largest so far, and the block it was in: no lane waits for another.
    top, where = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.int32)
    for i in range(scores.shape[0]):
        row = scores[i]
        for k in range(BLOCK):
            top[k], where[k] = row[k] + offsets[k], 0
        for block in range(1, row.size // BLOCK):
            columns = row[block * BLOCK : (block + 1) * BLOCK]
            offset = offsets[block * BLOCK : (block + 1) * BLOCK]
            for k in range(BLOCK):
                score = columns[k] + offset[k]
                better = score > top[k]
                top[k] = score if better else top[k]
                where[k] = block if better else where[k]
        value[i], best[i] = top[0], BLOCK * where[0]
        for k in range(1, BLOCK):
            column = BLOCK * where[k] + k
            if top[k] > value[i] or (top[k] == value[i] and column < best[i]):
                value[i], best[i] = top[k], column
