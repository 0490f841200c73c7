"""Pixels as the picture features take them: checked, and at a fixed size."""

from __future__ import annotations

import numpy as np
from PIL import Image


def as_rgb(rgb: np.ndarray) -> np.ndarray:
    """Check that an array is a picture.

    Parameters
    ----------
    rgb : ndarray of shape (height, width, 3), uint8
        Red, green and blue of each pixel.

    Returns
    -------
    ndarray of shape (height, width, 3), uint8
        The same pixels, C-contiguous and read-only.

    Examples
    --------
    >>> import numpy as np
    >>> as_rgb(np.zeros((2, 4, 3), np.uint8)).shape
    (2, 4, 3)
    >>> as_rgb(np.zeros((2, 4), np.uint8))
    Traceback (most recent call last):
        ...
    ValueError: a picture is a uint8 array of shape (height, width, 3), got uint8 of shape (2, 4)
    """
    pixels = np.asarray(rgb)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise ValueError(
            f"a picture is a uint8 array of shape (height, width, 3), got {pixels.dtype} of shape {pixels.shape}"
        )
    if pixels.size == 0:
        raise ValueError(f"the picture has no pixels: its shape is {pixels.shape}")
    # Always read-only, because numba compiles a kernel anew for each kind of array.
    pixels = np.ascontiguousarray(pixels).view()
    pixels.flags.writeable = False
    return pixels


def resized(
    rgb: np.ndarray,
    size: int,
    box: tuple[float, float, float, float] | None = None,
    method: Image.Resampling = Image.Resampling.BILINEAR,
) -> np.ndarray:
    """A picture, or a box of it, squeezed into a square; many pixels that become one are averaged.

    Parameters
    ----------
    rgb : ndarray of shape (height, width, 3), uint8
    size : int
        Width and height of the result.
    box : tuple of float or None, default=None
        Left, upper, right and lower edge of the part to take; None takes everything.
    method : Image.Resampling, default=BILINEAR

    Returns
    -------
    ndarray of shape (size, size, 3), uint8

    Examples
    --------
    >>> import numpy as np
    >>> resized(np.full((3, 5, 3), 7, np.uint8), 2).tolist()
    [[[7, 7, 7], [7, 7, 7]], [[7, 7, 7], [7, 7, 7]]]
    """
    return np.asarray(Image.fromarray(rgb).resize((size, size), method, box=box))


def center_square(rgb: np.ndarray, share: float = 1.0) -> tuple[float, float, float, float]:
    """The box, for `resized`, of the square in the middle whose side is `share` of the picture's shorter side.

    Examples
    --------
    >>> import numpy as np
    >>> center_square(np.zeros((100, 300, 3), np.uint8))
    (100.0, 0.0, 200.0, 100.0)
    """
    height, width = rgb.shape[:2]
    side = share * min(height, width)
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side
