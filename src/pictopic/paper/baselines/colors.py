"""Which colours a picture has, and roughly where."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from PIL import Image

from pictopic.words.pictures import PictureSource, open_picture, rgb

_HUES, _SATURATIONS, _VALUES = 8, 4, 4
_COLORS = _HUES * _SATURATIONS * _VALUES


def hsv_histograms(paths: Iterable[PictureSource]) -> np.ndarray:
    """Colours in 2 x 2 regions: 8 hues x 4 saturations x 4 values.

    Parameters
    ----------
    paths : iterable of path, bytes, PIL image or numpy array
        Pictures.

    Returns
    -------
    int64 ndarray of shape (n_pictures, 512)
        Numbers of pixels: 128 colours in the region at the top left, then in the one at the top right, ...

    References
    ----------
    Colour histograms as in A. Makadia, V. Pavlovic, S. Kumar, "A New Baseline for Image Annotation", ECCV 2008; there
    one for the whole picture, of 16 levels a channel, and in RGB and LAB, too.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.baselines import hsv_histograms
    >>> picture = np.zeros((4, 6, 3), np.uint8)
    >>> picture[:2, 3:] = (255, 0, 0)
    >>> counts = hsv_histograms([picture])
    >>> counts.shape, np.flatnonzero(counts[0]).tolist(), counts[0].max().item()
    ((1, 512), [0, 143, 256, 384], 6)
    """
    found = [_histogram(path) for path in paths]
    return np.array(found, np.int64).reshape(len(found), 4 * _COLORS)


def _histogram(path: PictureSource) -> np.ndarray:
    hsv = np.asarray(Image.fromarray(rgb(open_picture(path))).convert("HSV")).astype(np.int64)
    hue, saturation, value = (hsv[..., k] * n // 256 for k, n in enumerate((_HUES, _SATURATIONS, _VALUES)))
    cells = (hue * _SATURATIONS + saturation) * _VALUES + value
    down, across = cells.shape[0] // 2, cells.shape[1] // 2
    quarters = [quarter for half in (cells[:down], cells[down:]) for quarter in (half[:, :across], half[:, across:])]
    return np.concatenate([np.bincount(quarter.ravel(), minlength=_COLORS) for quarter in quarters])
