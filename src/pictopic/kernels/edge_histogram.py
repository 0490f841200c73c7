"""Which kinds of edges the blocks of a picture have."""

from __future__ import annotations

import numpy as np
from numba import njit

from pictopic.kernels.elementary import FAST


@njit(**FAST)
def _brightness(rgb, top, left, size):
    """1000 times the sum of the luminances in the square of `size` pixels whose upper left corner is (top, left)."""
    total = np.int64(0)
    for y in range(top, top + size):
        for x in range(left, left + size):
            total += 299 * np.int32(rgb[y, x, 0]) + 587 * np.int32(rgb[y, x, 1]) + 114 * np.int32(rgb[y, x, 2])
    return total


@njit(**FAST)
def _edge(a, b, c, d, threshold):
    """Kind of edge of a block with quarters a, b above c, d: 0 to 4, or -1 if it is weaker than `threshold`."""
    kind, strength = 0, np.float64(abs(a - b + c - d))  # vertical
    horizontal = np.float64(abs(a + b - c - d))
    if horizontal > strength:
        kind, strength = 1, horizontal
    rising = np.sqrt(2.0) * abs(a - d)  # 45 degrees
    if rising > strength:
        kind, strength = 2, rising
    falling = np.sqrt(2.0) * abs(b - c)  # 135 degrees
    if falling > strength:
        kind, strength = 3, falling
    crossed = 2.0 * abs(a - b - c + d)  # no direction
    if crossed > strength:
        kind, strength = 4, crossed
    return kind if strength >= threshold else -1


@njit(**FAST)
def edge_counts(rgb, size, threshold, counts):
    """counts[i, j, k] += number of blocks with an edge of kind k in sub-image (i, j).

    Blocks are squares of `size` pixels, an even number; what is left over on the right and below is not looked at.
    Rows and columns of blocks are dealt out evenly to the sub-images.
    """
    n_rows, n_columns = rgb.shape[0] // size, rgb.shape[1] // size
    half = size // 2
    limit = 1000.0 * threshold * half * half
    for i in range(n_rows):
        for j in range(n_columns):
            top, left = i * size, j * size
            kind = _edge(
                _brightness(rgb, top, left, half),
                _brightness(rgb, top, left + half, half),
                _brightness(rgb, top + half, left, half),
                _brightness(rgb, top + half, left + half, half),
                limit,
            )
            if kind >= 0:
                counts[counts.shape[0] * i // n_rows, counts.shape[1] * j // n_columns, kind] += 1
