"""Color Layout Descriptor (CLD): which colours are where, as waves over the picture."""

from __future__ import annotations

import numpy as np
from scipy import fft

from pictopic.kernels.pooling import mean_colors
from pictopic.words.pixels import as_rgb

SIDE = 8

# From red, green and blue to Y, Cb and Cr (ITU-R BT.601, full range).
_TO_YCBCR = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
_GREY = np.array([0.0, 128.0, 128.0])
# Zigzag: by diagonals, which are walked up and down in turn.
_ZIGZAG = sorted(
    range(SIDE * SIDE),
    key=lambda k: (sum(divmod(k, SIDE)), k if sum(divmod(k, SIDE)) % 2 else -k),
)


def color_layout(rgb: np.ndarray) -> np.ndarray:
    """Cosine transform of the mean colours of 8 x 8 blocks.

    Parameters
    ----------
    rgb : ndarray of shape (height, width, 3), uint8

    Returns
    -------
    ndarray of shape (192,), float32
        64 coefficients of each of Y, Cb and Cr, slow waves first (zigzag).  The first of each 64 is 8 times the mean.

    Notes
    -----
    Definition: ISO/IEC 15938-3; Kasutani and Yamada, "The MPEG-7 color layout descriptor" (2001).  Different here: all
    64 coefficients (by default the standard keeps 6, 3 and 3), not quantised; and blocks of a picture with fewer than
    eight rows or columns share pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.mpeg7 import color_layout
    >>> features = color_layout(np.full((40, 30, 3), 100, np.uint8)).reshape(3, 64)
    >>> features[:, :2].round(3).tolist()
    [[800.0, 0.0], [1024.0, 0.0], [1024.0, 0.0]]
    """
    thumbnail = np.empty((SIDE, SIDE, 3))
    mean_colors(as_rgb(rgb), thumbnail)
    waves = fft.dctn(thumbnail @ _TO_YCBCR.T + _GREY, axes=(0, 1), norm="ortho")
    return waves.reshape(-1, 3)[_ZIGZAG].T.ravel().astype(np.float32)
