"""A picture made of whole numbers, the same everywhere, for golden values."""

from __future__ import annotations

import numpy as np


def synthetic_picture(height: int = 128, width: int = 128) -> np.ndarray:
    """A slow change of colour, a dark disc, slanted stripes and a corner full of small squares."""
    y, x = np.mgrid[:height, :width]
    red = x * 255 // width
    green = y * 255 // height
    blue = 60 + 40 * ((x + 2 * y) // 9 % 4)
    picture = np.stack([red, green, blue], axis=2)
    disc = (4 * x - width) ** 2 + (4 * y - height) ** 2 < (min(height, width)) ** 2 // 2
    picture[disc] //= 4
    corner = (2 * x > width) & (2 * y > height)
    picture[corner] = (picture + 120 * ((x // 3 + y // 3) % 2)[:, :, None])[corner] % 256
    return picture.astype(np.uint8)
