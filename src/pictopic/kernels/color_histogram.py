"""How often each colour occurs in a picture.  All in whole numbers: the same on every machine."""

from __future__ import annotations

import numpy as np
from numba import njit

from pictopic.kernels.elementary import FAST

_i = np.int32


@njit(**FAST)
def hue_level(red, green, blue, top, difference, n_levels):
    """Which of `n_levels` equal parts of the colour circle a colour lies in; 0, the part of red, for greys.

    `top` is the largest of the three and `difference` how much larger than the smallest it is.
    """
    if difference == 0:
        return _i(0)
    if top == red:
        position = green - blue  # in parts of which the whole circle has 6 x difference
        if position < 0:
            position += 6 * difference
    elif top == green:
        position = 2 * difference + blue - red
    else:
        position = 4 * difference + red - green
    return _i(position * n_levels) // _i(6 * difference)


@njit(**FAST)
def hsv_histogram(rgb, counts):
    """Add up a picture's pixels in ``counts[value, saturation, hue]``, of shape (4, 4, 16)."""
    for y in range(rgb.shape[0]):
        for x in range(rgb.shape[1]):
            red, green, blue = _i(rgb[y, x, 0]), _i(rgb[y, x, 1]), _i(rgb[y, x, 2])
            top = max(red, max(green, blue))
            difference = top - min(red, min(green, blue))
            # 4 difference / top, rounded down, with full saturation in the last of the four levels; no division.
            saturation = 0
            if top > 0:
                saturation = _i(4 * difference >= top) + _i(2 * difference >= top) + _i(4 * difference >= 3 * top)
            counts[top >> 6, saturation, hue_level(red, green, blue, top, difference, _i(16))] += 1
