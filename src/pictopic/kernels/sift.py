"""Dense SIFT: gradients in eight directions, smoothed by a triangle along both axes, read off at 4 x 4 places.

A row of the `planes` holds eight numbers per pixel, one for each direction.  So both smoothings add whole rows, shifted
by rows or by eight numbers: long loops that LLVM turns into vector code.  Sums are taken afresh at every place; running
sums would need fewer additions, but leave rounding errors behind where a picture is flat.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pictopic.kernels.elementary import FAST

DIRECTIONS = 8
BINS = 4  # along each axis
SIZE = BINS * BINS * DIRECTIONS
_CLAMP = np.float32(0.2)  # Lowe's: no direction may outweigh the others
_TINY = np.float32(1e-10)

_f = np.float32


@njit(**FAST)
def eighths_of_a_turn(dx, dy):
    """Direction of (dx, dy) from 0 to 8, counted from x towards y: a polynomial of degree 11, exact to 1e-5."""
    ax, ay = abs(dx), abs(dy)
    z = min(ax, ay) / (max(ax, ay) + _f(1e-20))
    s = z * z
    p = _f(-0.01172120)
    p = p * s + _f(0.05265332)
    p = p * s + _f(-0.11643287)
    p = p * s + _f(0.19354346)
    p = p * s + _f(-0.33262347)
    p = p * s + _f(0.99997726)
    t = p * z * _f(1.27323954)  # atan(z) * 4 / pi
    t = _f(2.0) - t if ay > ax else t
    t = _f(4.0) - t if dx < _f(0.0) else t
    return _f(8.0) - t if dy < _f(0.0) else t


@njit(**FAST)
def _differences(row, out):
    """Half the difference of both neighbours; at the ends, the difference to the only one."""
    n = row.size
    if n == 1:
        out[0] = _f(0.0)
        return
    for x in range(1, n - 1):
        out[x] = _f(0.5) * (row[x + 1] - row[x - 1])
    out[0] = row[1] - row[0]
    out[n - 1] = row[n - 1] - row[n - 2]


@njit(**FAST)
def gradients(image, planes):
    """Share each pixel's gradient between the two directions nearest to its own.

    Parameters
    ----------
    image : float32 array of shape (height, width)
    planes : float32 array of shape (height, 8 * width)
        Filled.
    """
    height, width = image.shape
    dx = np.empty(width, np.float32)
    size = np.empty(width, np.float32)
    direction = np.empty(width, np.float32)
    for y in range(height):
        above, below = image[max(y - 1, 0)], image[min(y + 1, height - 1)]
        half = _f(0.5) if 0 < y < height - 1 else _f(1.0)
        _differences(image[y], dx)
        for x in range(width):
            dy = half * (below[x] - above[x])
            size[x] = np.sqrt(dx[x] * dx[x] + dy * dy)
            direction[x] = eighths_of_a_turn(dx[x], dy)
        out = planes[y]
        out[:] = _f(0.0)
        for x in range(width):
            first = np.int32(direction[x])
            second = (direction[x] - _f(first)) * size[x]
            out[DIRECTIONS * x + (first & 7)] = size[x] - second
            out[DIRECTIONS * x + ((first + 1) & 7)] = second


@njit(**FAST)
def _add_both(out, a, b, weight):
    for k in range(out.size):
        out[k] += weight * (a[k] + b[k])


@njit(**FAST)
def _smooth_down(planes, y, half, out):
    """Row y smoothed by a triangle of 2 half - 1 rows; the picture's first and last row go on outside it."""
    last = planes.shape[0] - 1
    row = planes[y]
    for k in range(out.size):
        out[k] = _f(half) * row[k]
    for i in range(1, half):
        _add_both(out, planes[max(y - i, 0)], planes[min(y + i, last)], _f(half - i))


@njit(**FAST)
def _smooth_across(wide, half, out):
    """`wide`, a row with half - 1 pixels added at both ends, smoothed by a triangle of 2 half - 1 pixels."""
    n = out.size
    margin = DIRECTIONS * (half - 1)
    middle = wide[margin : margin + n]
    for k in range(n):
        out[k] = _f(half) * middle[k]
    for i in range(1, half):
        shift = DIRECTIONS * i
        _add_both(
            out, wide[margin - shift : margin - shift + n], wide[margin + shift : margin + shift + n], _f(half - i)
        )


@njit(**FAST)
def _smooth_row(planes, y, half, wide, out):
    n = out.size
    margin = DIRECTIONS * (half - 1)
    _smooth_down(planes, y, half, wide[margin : margin + n])
    for k in range(margin):
        wide[k] = wide[margin + (k & 7)]
        wide[margin + n + k] = wide[margin + n - DIRECTIONS + (k & 7)]
    _smooth_across(wide, half, out)


@njit(**FAST)
def _normalise(values, out):
    """Length 1, nothing above 0.2, length 1 again; zeros stay zeros."""
    total = _f(0.0)
    for k in range(SIZE):
        total += values[k] * values[k]
    scale = _f(1.0) / (np.sqrt(total) + _TINY)
    total = _f(0.0)
    for k in range(SIZE):
        value = min(values[k] * scale, _CLAMP)
        values[k] = value
        total += value * value
    scale = _f(1.0) / (np.sqrt(total) + _TINY)
    for k in range(SIZE):
        out[k] = values[k] * scale


@njit(**FAST)
def describe(planes, bin_size, step, weights, out, contrast):
    """Descriptors of all patches of one size, row by row.

    Parameters
    ----------
    planes : float32 array of shape (height, 8 * width)
        Of `gradients`.
    bin_size, step : int
        A patch begins every `step` pixels; its bins' centres lie `bin_size` pixels apart.
    weights : float32 array of shape (16,)
        Of the bins.
    out : float32 array of shape (n_patches, 128)
        Filled: bins from top to bottom, in each row from left to right, in each bin eight directions.
    contrast : float32 array of shape (n_patches,)
        Filled: the sum of a descriptor's numbers before they are normalised.
    """
    height, n = planes.shape
    reach = (BINS - 1) * bin_size
    n_down, n_across = (height - 1 - reach) // step + 1, (n // DIRECTIONS - 1 - reach) // step + 1
    wide = np.empty(n + 2 * DIRECTIONS * (bin_size - 1), np.float32)
    # Smoothed rows are used by up to four rows of patches: row y stays in slot y % (reach + 1) until it is passed.
    rows = np.empty((reach + 1, n), np.float32)
    held = np.full(reach + 1, -1, np.int64)
    values = np.empty(SIZE, np.float32)
    at = 0
    for i in range(n_down):
        for j in range(BINS):
            y = i * step + j * bin_size
            slot = y % (reach + 1)
            if held[slot] != y:
                held[slot] = y
                _smooth_row(planes, y, bin_size, wide, rows[slot])
        for q in range(n_across):
            for j in range(BINS):
                row = rows[(i * step + j * bin_size) % (reach + 1)]
                for c in range(BINS):
                    start = DIRECTIONS * (q * step + c * bin_size)
                    weight = weights[BINS * j + c]
                    for k in range(DIRECTIONS):
                        values[DIRECTIONS * (BINS * j + c) + k] = weight * row[start + k]
            total = _f(0.0)
            for k in range(SIZE):
                total += values[k]
            contrast[at] = total
            _normalise(values, out[at])
            at += 1
