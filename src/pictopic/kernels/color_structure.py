"""In how many windows of a picture each colour occurs."""

from __future__ import annotations

import numpy as np
from numba import njit

from pictopic.kernels.color_histogram import hue_level
from pictopic.kernels.elementary import FAST

_i = np.int32

# The colours of HMMD space in 256 cells: shells of the difference (max - min), each cut by hue and by sum.
_DIFFERENCES = (0, 6, 20, 60, 110)  # where each shell begins
_HUES = (1, 4, 16, 16, 16)  # number of hues in it
_SUMS = (32, 8, 4, 4, 4)  # number of sums in it
_FIRST_CELLS = (224, 192, 128, 64, 0)  # colourful ones first, greys last


@njit(**FAST)
def hmmd_cells(rgb, step, cells):
    """cells[y, x] = cell of pixel (step y, step x) in HMMD space."""
    for y in range(cells.shape[0]):
        for x in range(cells.shape[1]):
            i, j = y * step, x * step
            red, green, blue = _i(rgb[i, j, 0]), _i(rgb[i, j, 1]), _i(rgb[i, j, 2])
            top, low = max(red, max(green, blue)), min(red, min(green, blue))
            difference = top - low
            shell = (difference >= 6) + (difference >= 20) + (difference >= 60) + (difference >= 110)
            start, n_sums = _i(_DIFFERENCES[shell]), _i(_SUMS[shell])
            hue = hue_level(red, green, blue, top, difference, _i(_HUES[shell]))
            level = min(n_sums - 1, _i((top + low - start) * n_sums) // _i(2 * (255 - start)))
            cells[y, x] = _FIRST_CELLS[shell] + hue * n_sums + level


@njit(**FAST)
def count_windows(cells, window, counts):
    """counts[c] += number of positions of a window of `window` x `window` cells at which c occurs in it at least once.

    A window larger than the picture is cut to fit.  It moves down column by column; a colour's count changes only when
    its first pixel enters the window or its last one leaves, by the number of positions in between.
    """
    height, width = min(window, cells.shape[0]), min(window, cells.shape[1])
    n_positions = cells.shape[0] - height + 1
    inside = np.zeros(counts.size, np.int32)  # pixels of each colour in the window
    since = np.zeros(counts.size, np.int32)  # the position at which the colour came in
    for left in range(cells.shape[1] - width + 1):
        inside[:] = 0
        for y in range(height - 1):
            for x in range(left, left + width):
                inside[cells[y, x]] += 1
        since[:] = 0
        for top in range(n_positions):
            for x in range(left, left + width):
                c = cells[top + height - 1, x]
                if inside[c] == 0:
                    since[c] = top
                inside[c] += 1
            # The row above leaves after the row below came in, so that a colour in both of them stays inside.
            if top > 0:
                for x in range(left, left + width):
                    c = cells[top - 1, x]
                    inside[c] -= 1
                    if inside[c] == 0:
                        counts[c] += top - since[c]
        for c in range(counts.size):
            if inside[c] > 0:
                counts[c] += n_positions - since[c]
