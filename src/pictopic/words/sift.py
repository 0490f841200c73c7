"""Dense SIFT: descriptors of square patches on a regular grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from scipy import ndimage

from pictopic.kernels import sift as kernel

_WINDOW = 2.0  # standard deviation of the window over a patch, in bins
_PHOW_MAGNIFICATION = 6.0  # bin size over standard deviation of the smoothing


def dense_sift(
    gray: np.ndarray,
    *,
    step: int = 8,
    bin_sizes: int | Sequence[int] = 4,
    smooth: bool = False,
    min_contrast: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Describe the patches of a picture (Lowe 2004; VLFeat's ``dsift`` with a flat window).

    A patch has 4 x 4 bins, each a histogram of the directions of the gradients in it.  The first patch begins at the
    picture's corner, the next one `step` pixels on.

    Parameters
    ----------
    gray : array of shape (height, width)
        Grey levels from 0 to 255.
    step : int, default=8
        Distance of neighbouring patches, in pixels.
    bin_sizes : int or sequence of int, default=4
        Side of a bin in pixels, one or several; a patch has four times that side.
    smooth : bool, default=False
        Blur the picture by a sixth of the bin size first, as VLFeat's PHOW does.
    min_contrast : float, default=0
        Descriptors of patches with less contrast are set to zero.  VLFeat's PHOW takes 0.005.

    Returns
    -------
    descriptors : float32 array of shape (n_patches, 128)
        Of length 1, or 0 where the picture is flat.
    centres : float32 array of shape (n_patches, 3)
        x and y of each patch's centre and its bin size.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.sift import dense_sift
    >>> picture = np.add.outer(np.arange(64), 2 * np.arange(48))
    >>> descriptors, centres = dense_sift(picture, step=8, bin_sizes=4)
    >>> descriptors.shape, centres[:2].tolist()
    ((35, 128), [[6.0, 6.0, 4.0], [14.0, 6.0, 4.0]])

    A picture that grows brighter from corner to corner has gradients of one direction, between the first and second:

    >>> np.flatnonzero(descriptors[17] > 0.01)[:4].tolist()
    [0, 1, 8, 9]
    """
    gray, sizes = np.asarray(gray), _checked(gray, step, bin_sizes)
    n = n_patches(gray.shape[0], gray.shape[1], step, sizes)
    descriptors, centres = np.empty((n, kernel.SIZE), np.float32), np.empty((n, 3), np.float32)
    filled = 0
    for size, planes in _each_planes(gray, sizes, smooth):
        filled += _describe(planes, step, size, min_contrast, descriptors[filled:], centres[filled:])
    return descriptors, centres


def each_bin_size(
    gray: np.ndarray, *, step: int, bin_sizes: int | Sequence[int], smooth: bool = False, min_contrast: float = 0.0
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """What `dense_sift` returns, a bin size at a time: needs less memory."""
    gray, sizes = np.asarray(gray), _checked(gray, step, bin_sizes)
    for size, planes in _each_planes(gray, sizes, smooth):
        n = n_patches(gray.shape[0], gray.shape[1], step, [size])
        descriptors, centres = np.empty((n, kernel.SIZE), np.float32), np.empty((n, 3), np.float32)
        _describe(planes, step, size, min_contrast, descriptors, centres)
        yield descriptors, centres


def patch_grid(height: int, width: int, step: int, bin_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres of the patches of one size: y of each row of patches, x of each column."""
    reach = (kernel.BINS - 1) * bin_size
    y, x = (np.arange(0, n - reach, step, dtype=np.float32) + np.float32(reach / 2) for n in (height, width))
    return y, x


def n_patches(height: int, width: int, step: int, bin_sizes: Sequence[int]) -> int:
    """How many descriptors `dense_sift` returns for a picture of this size."""
    return sum(len(y) * len(x) for y, x in (patch_grid(height, width, step, size) for size in bin_sizes))


def _checked(gray: np.ndarray, step: int, bin_sizes: int | Sequence[int]) -> list[int]:
    if np.ndim(gray) != 2 or not np.size(gray):
        raise ValueError(f"expected a grey picture of shape (height, width), got shape {np.shape(gray)}")
    sizes = [int(size) for size in np.atleast_1d(bin_sizes)]
    if step < 1 or not sizes or min(sizes) < 1:
        raise ValueError(f"step and bin_sizes must be at least 1, got step={step} and bin_sizes={bin_sizes}")
    return sizes


def _each_planes(gray: np.ndarray, sizes: list[int], smooth: bool) -> Iterator[tuple[int, np.ndarray]]:
    """Each bin size with the gradients to use for it."""
    image = np.ascontiguousarray(gray, dtype=np.float32)
    planes = np.empty((image.shape[0], kernel.DIRECTIONS * image.shape[1]), np.float32)
    if not smooth:
        kernel.gradients(image, planes)
    for size in sizes:
        if smooth:
            kernel.gradients(ndimage.gaussian_filter(image, size / _PHOW_MAGNIFICATION, mode="nearest"), planes)
        yield size, planes


def _describe(
    planes: np.ndarray, step: int, bin_size: int, min_contrast: float, descriptors: np.ndarray, centres: np.ndarray
) -> int:
    """Fill the first rows of both arrays; how many."""
    height, width = planes.shape[0], planes.shape[1] // kernel.DIRECTIONS
    y, x = patch_grid(height, width, step, bin_size)
    n = len(y) * len(x)
    if n:
        centres[:n, 0], centres[:n, 1], centres[:n, 2] = np.tile(x, len(y)), np.repeat(y, len(x)), bin_size
        contrast = np.empty(n, np.float32)
        kernel.describe(planes, bin_size, step, _bin_weights(bin_size), descriptors, contrast)
        if min_contrast > 0:
            descriptors[:n][contrast * _contrast_scale(bin_size) < min_contrast] = 0
    return n


@lru_cache
def _bin_weights(bin_size: int) -> np.ndarray:
    """Mean of the Gaussian window over each bin: the flat window's weights."""
    inside = np.arange(1 - bin_size, bin_size)
    centres = bin_size * (np.arange(kernel.BINS) - (kernel.BINS - 1) / 2)
    means = np.exp(-0.5 * ((inside - centres[:, None]) / (bin_size * _WINDOW)) ** 2).mean(axis=1)
    return np.outer(means, means).astype(np.float32).ravel()


def _contrast_scale(bin_size: int) -> float:
    """From a sum over a patch's bins to VLFeat's unit: mean gradient of grey levels between 0 and 1."""
    # The kernel's triangles have a sum of bin_size ** 2 along each axis; VLFeat's of bin_size.
    return 1 / (255 * bin_size**2 * ((kernel.BINS - 1) * bin_size + 1) ** 2)
