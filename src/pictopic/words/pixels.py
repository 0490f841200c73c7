"""Pixels as words and features take them: 8 bits per channel, checked, and at a fixed size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from PIL import Image, TiffImagePlugin

_STRIP = 1 << 20  # pixels
# 65535 / 255 = 257, so that black stays black and white white.
FROM_16_BITS = ((np.arange(1 << 16) + 128) // 257).astype(np.uint8)


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


def as_plain(image: Image.Image) -> Image.Image:
    """Convert a decoded picture to mode "L", "RGB" or "YCbCr": 8 bits per channel, transparent parts white.

    Examples
    --------
    >>> from PIL import Image
    >>> as_plain(Image.new("RGBA", (1, 1), (0, 0, 0, 0))).getpixel((0, 0))
    (255, 255, 255)
    """
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _eight_bits(image)
    if image.has_transparency_data:
        mode = "L" if image.mode in ("1", "L", "LA", "La") else "RGB"
        plain = Image.new(mode, image.size)
        for rows in _strips(image.height, image.width):
            strip = image.crop((0, rows.start, image.width, rows.stop))
            white = Image.new("RGBA", strip.size, "white")
            white.alpha_composite(strip.convert("LA").convert("RGBA") if strip.mode == "La" else strip.convert("RGBA"))
            plain.paste(white.convert(mode), (0, rows.start))
        return plain
    if image.mode in ("L", "RGB", "YCbCr"):
        return image
    return image.convert("L" if image.mode == "1" else "RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    values = np.asarray(image)
    tags = image.tag_v2 if isinstance(image, TiffImagePlugin.TiffImageFile) else {}
    if image.mode in ("I", "F") and image.format != "PNG":
        pixels = _stretched(values)
    else:
        bits = tags.get(258, (16,))[0]
        pixels = np.empty(values.shape, np.uint8)
        for rows in _strips(*values.shape):
            strip = values[rows]
            if bits < 16:  # there are TIFFs with 12
                strip = strip * np.uint32(65535) // np.uint32((1 << bits) - 1)
            pixels[rows] = FROM_16_BITS[np.clip(strip, 0, 65535)]
        transparent = image.info.get("transparency")
        if isinstance(transparent, int):
            pixels[values == transparent] = 255
    # Pillow leaves 16-bit and floating-point TIFFs whose 0 is white as they are.
    return Image.fromarray(255 - pixels if tags.get(262) == 0 else pixels)


def _stretched(values: np.ndarray) -> np.ndarray:
    """Values between their smallest and their largest one, as 0 to 255; what is not a number becomes 0."""
    pixels = np.zeros(values.shape, np.uint8)
    known = np.isfinite(values)
    if not known.any():
        return pixels
    first = values.flat[known.argmax()]
    low, high = (float(extreme(values, where=known, initial=first)) for extreme in (np.min, np.max))
    for rows in _strips(*values.shape):  # because of float64's size
        share = (np.where(known[rows], values[rows], low) - np.float64(low)) / ((high - low) or 1.0)
        pixels[rows] = np.rint(255 * share)
    return pixels


def _strips(height: int, width: int) -> Iterator[slice]:
    """Rows of a picture in parts of at most a million pixels: what is made of a whole picture takes much memory."""
    step = max(1, _STRIP // width)
    for top in range(0, height, step):
        yield slice(top, min(top + step, height))
