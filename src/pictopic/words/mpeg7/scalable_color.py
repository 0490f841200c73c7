"""Scalable Color Descriptor (SCD): a colour histogram, from coarse to fine."""

from __future__ import annotations

import numpy as np

from pictopic.kernels.color_histogram import hsv_histogram
from pictopic.words.pixels import as_rgb

_VALUE, _SATURATION, _HUE = 0, 1, 2
# Which neighbours are taken together, step by step, until one number is left.
_STEPS = (_HUE, _SATURATION, _VALUE, _HUE, _SATURATION, _VALUE, _HUE, _HUE)


def scalable_color(rgb: np.ndarray) -> np.ndarray:
    """Haar transform of a histogram of 16 hues x 4 saturations x 4 values.

    Parameters
    ----------
    rgb : ndarray of shape (height, width, 3), uint8

    Returns
    -------
    ndarray of shape (256,), float32
        Whole numbers: the sum of the histogram, then differences between its halves, between the halves of these, and
        so on.

    Notes
    -----
    Definition: ISO/IEC 15938-3; Manjunath et al., "Color and texture descriptors" (2001).  The share of each colour is
    a number of 11 bits; this becomes one of 4 bits, 15 (x / 0.4)^0.4, so that rare colours count, too.  The Haar
    transform takes sums and differences of neighbours: in hue, saturation, value, hue, saturation, value, hue, hue.

    Different here: the standard goes on to subtract a mean from each coefficient and to cut it to 2 to 9 bits, which
    serves to store it; and its order is another one among coefficients of the same coarseness.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.mpeg7 import scalable_color
    >>> red = np.full((10, 10, 3), (255, 0, 0), np.uint8)
    >>> scalable_color(red)[:4].tolist()  # all in the first half of the hues
    [15.0, -15.0, -15.0, 0.0]
    """
    picture = as_rgb(rgb)
    counts = np.zeros((4, 4, 16), np.int64)
    hsv_histogram(picture, counts)
    shares = np.rint(counts * (2047 / counts.sum()))
    levels = np.rint(15 * np.minimum(1, shares / (0.4 * 2047)) ** 0.4)
    return _haar(levels).astype(np.float32)


def _haar(histogram: np.ndarray) -> np.ndarray:
    """Sums and differences of neighbours, coarsest first."""
    details = []
    for axis in _STEPS:
        first, second = (histogram.take(range(start, histogram.shape[axis], 2), axis) for start in (0, 1))
        details.append((second - first).ravel())
        histogram = first + second
    return np.concatenate([histogram.ravel(), *reversed(details)])
