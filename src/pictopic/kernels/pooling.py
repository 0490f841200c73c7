"""Means over the blocks of a picture."""

from __future__ import annotations

import numpy as np
from numba import njit

from pictopic.kernels.elementary import FAST


@njit(**FAST)
def mean_magnitudes(responses, out):
    """out[k, i, j] = mean of |responses[k]| over block (i, j), for as many equal blocks as `out` has.

    The sides of `responses` (complex64) must be multiples of those of `out` (float32).
    """
    n_rows, n_columns = out.shape[1], out.shape[2]
    height, width = responses.shape[1] // n_rows, responses.shape[2] // n_columns
    scale = np.float32(1.0 / (height * width))
    for k in range(responses.shape[0]):
        for i in range(n_rows):
            for j in range(n_columns):
                total = np.float32(0.0)
                for y in range(i * height, (i + 1) * height):
                    for x in range(j * width, (j + 1) * width):
                        z = responses[k, y, x]
                        total += np.sqrt(z.real * z.real + z.imag * z.imag)
                out[k, i, j] = total * scale


@njit(**FAST)
def mean_colors(rgb, out):
    """out[i, j] = mean colour of block (i, j) of a picture, for as many blocks as `out` has.

    Blocks are as equal as whole pixels allow.  Where there are fewer pixels than blocks, blocks share them.
    """
    height, width = rgb.shape[0], rgb.shape[1]
    n_rows, n_columns = out.shape[0], out.shape[1]
    for i in range(n_rows):
        top = i * height // n_rows
        bottom = max(top + 1, (i + 1) * height // n_rows)
        for j in range(n_columns):
            left = j * width // n_columns
            right = max(left + 1, (j + 1) * width // n_columns)
            red, green, blue = 0, 0, 0
            for y in range(top, bottom):
                for x in range(left, right):
                    red += rgb[y, x, 0]
                    green += rgb[y, x, 1]
                    blue += rgb[y, x, 2]
            n = (bottom - top) * (right - left)
            out[i, j, 0], out[i, j, 1], out[i, j, 2] = red / n, green / n, blue / n
