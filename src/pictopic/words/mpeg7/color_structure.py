"""Color Structure Descriptor (CSD): in how many small windows of a picture each colour occurs."""

from __future__ import annotations

import math

import numpy as np

from pictopic.kernels.color_structure import count_windows, hmmd_cells
from pictopic.words.pixels import as_rgb

N_COLORS = 256
WINDOW = 8  # pixels per side of the structuring element

# Shares of windows, and the number of steps between each of them and the next: fine for rare colours.
_SHARES = np.array([0.0, 0.037, 0.08, 0.195, 0.32, 1.0])
_STEPS = np.array([25, 20, 35, 35, 140])


def color_structure(rgb: np.ndarray) -> np.ndarray:
    """How many windows of 8 x 8 pixels have each of 256 colours in them.

    A histogram counts pixels; this counts windows, so that a colour scattered all over the picture gets more than the
    same number of pixels in one spot.

    Parameters
    ----------
    rgb : ndarray of shape (height, width, 3), uint8

    Returns
    -------
    ndarray of shape (256,), float32
        Whole numbers from 0 (in no window) to 255 (in every window), in the non-uniform steps of the standard.

    Notes
    -----
    Definition: ISO/IEC 15938-3; Messing, van Beek and Errico, "The MPEG-7 colour structure descriptor" (2001).
    Colours are cells of HMMD space (hue, max, min, difference).  Of a picture of 2^17 pixels or more only every K-th
    pixel of every K-th row is looked at, where K = 2^p and p = floor(log2(height x width) / 2 - 7.5).

    Different here: hue and sum are not rounded to whole numbers before they are cut into levels, and the window is cut
    to fit into a picture with fewer than eight (sampled) rows or columns, for which the standard has no value.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.mpeg7 import color_structure
    >>> picture = np.zeros((16, 16, 3), np.uint8)
    >>> picture[::4, ::4] = 255
    >>> features = color_structure(picture)
    >>> features[[224, 255]].tolist()  # one pixel in 16 is white, but every window has some white
    [255.0, 255.0]
    """
    picture = as_rgb(rgb)
    step = 2 ** max(0, math.floor(math.log2(picture.shape[0] * picture.shape[1]) / 2 - 7.5))
    height, width = -(-picture.shape[0] // step), -(-picture.shape[1] // step)
    cells = np.empty((height, width), np.uint8)
    hmmd_cells(picture, step, cells)
    counts = np.zeros(N_COLORS, np.int64)
    count_windows(cells, WINDOW, counts)
    n_windows = (max(0, height - WINDOW) + 1) * (max(0, width - WINDOW) + 1)
    return _quantized(counts / n_windows)


def _quantized(shares: np.ndarray) -> np.ndarray:
    """Shares between 0 and 1 as 0 to 255: 0 for none at all, then steps that grow wider."""
    part = np.searchsorted(_SHARES[1:-1], shares, side="right")
    firsts = 1 + np.cumsum(_STEPS) - _STEPS
    widths = np.diff(_SHARES)
    levels = np.floor(firsts[part] + (shares - _SHARES[part]) * (_STEPS / widths)[part])
    return np.where(shares > 0, np.minimum(levels, 255), 0).astype(np.float32)
