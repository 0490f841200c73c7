"""The colour and texture descriptors of MPEG-7 (ISO/IEC 15938-3)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import fft, sparse

from pictopic.kernels.color_histogram import hsv_histogram
from pictopic.kernels.color_structure import count_windows, hmmd_cells
from pictopic.kernels.edge_histogram import edge_counts
from pictopic.kernels.pooling import mean_colors
from pictopic.words.pixels import as_rgb, center_square, resized


def mpeg7(rgb: np.ndarray) -> np.ndarray:
    """All five descriptors, one after the other.

    Parameters
    ----------
    rgb : ndarray of shape (height, width, 3), uint8

    Returns
    -------
    ndarray of shape (897,), float32
        `color_structure` (256), `scalable_color` (256), `color_layout` (192), `edge_histogram` (150) and
        `homogeneous_texture` (43).

    Notes
    -----
    Manjunath, Ohm, Vasudevan and Yamada, "Color and texture descriptors" (2001), describe them all.  Together with
    GIST these are the 1857 global features of the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.mpeg7 import mpeg7
    >>> mpeg7(np.zeros((48, 64, 3), np.uint8)).shape
    (897,)
    """
    parts = (color_structure, scalable_color, color_layout, edge_histogram, homogeneous_texture)
    return np.concatenate([part(rgb) for part in parts])


# ---- Color Structure Descriptor (CSD): in how many small windows of a picture each colour occurs ---------------------

_CSD_COLORS = 256
_CSD_WINDOW = 8  # pixels per side of the structuring element

# Shares of windows, and the number of steps between each of them and the next: fine for rare colours.
_CSD_SHARES = np.array([0.0, 0.037, 0.08, 0.195, 0.32, 1.0])
_CSD_STEPS = np.array([25, 20, 35, 35, 140])


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
    counts = np.zeros(_CSD_COLORS, np.int64)
    count_windows(cells, _CSD_WINDOW, counts)
    n_windows = (max(0, height - _CSD_WINDOW) + 1) * (max(0, width - _CSD_WINDOW) + 1)
    return _quantized(counts / n_windows)


def _quantized(shares: np.ndarray) -> np.ndarray:
    """Shares between 0 and 1 as 0 to 255: 0 for none at all, then steps that grow wider."""
    part = np.searchsorted(_CSD_SHARES[1:-1], shares, side="right")
    firsts = 1 + np.cumsum(_CSD_STEPS) - _CSD_STEPS
    widths = np.diff(_CSD_SHARES)
    levels = np.floor(firsts[part] + (shares - _CSD_SHARES[part]) * (_CSD_STEPS / widths)[part])
    return np.where(shares > 0, np.minimum(levels, 255), 0).astype(np.float32)


# ---- Scalable Color Descriptor (SCD): a colour histogram, from coarse to fine ----------------------------------------

_VALUE, _SATURATION, _HUE = 0, 1, 2
# Which neighbours are taken together, step by step, until one number is left.
_SCD_STEPS = (_HUE, _SATURATION, _VALUE, _HUE, _SATURATION, _VALUE, _HUE, _HUE)


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
    for axis in _SCD_STEPS:
        first, second = (histogram.take(range(start, histogram.shape[axis], 2), axis) for start in (0, 1))
        details.append((second - first).ravel())
        histogram = first + second
    return np.concatenate([histogram.ravel(), *reversed(details)])


# ---- Color Layout Descriptor (CLD): which colours are where, as waves over the picture -------------------------------

_CLD_SIDE = 8

# From red, green and blue to Y, Cb and Cr (ITU-R BT.601, full range).
_TO_YCBCR = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
_CLD_GREY = np.array([0.0, 128.0, 128.0])
# Zigzag: by diagonals, which are walked up and down in turn.
_CLD_ZIGZAG = sorted(
    range(_CLD_SIDE * _CLD_SIDE),
    key=lambda k: (sum(divmod(k, _CLD_SIDE)), k if sum(divmod(k, _CLD_SIDE)) % 2 else -k),
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
    thumbnail = np.empty((_CLD_SIDE, _CLD_SIDE, 3))
    mean_colors(as_rgb(rgb), thumbnail)
    waves = fft.dctn(thumbnail @ _TO_YCBCR.T + _CLD_GREY, axes=(0, 1), norm="ortho")
    return waves.reshape(-1, 3)[_CLD_ZIGZAG].T.ravel().astype(np.float32)


# ---- Edge Histogram Descriptor (EHD): which kinds of edges are where -------------------------------------------------

_EHD_SIDE = 4  # sub-images per side
_EHD_KINDS = ("vertical", "horizontal", "45 degrees", "135 degrees", "no direction")
_EHD_BLOCKS = 1100  # per picture, approximately
_EHD_THRESHOLD = 11.0  # a weaker edge is none


def edge_histogram(rgb: np.ndarray) -> np.ndarray:
    """Share of the blocks with each of five kinds of edges, in parts of the picture.

    Parameters
    ----------
    rgb : ndarray of shape (height, width, 3), uint8

    Returns
    -------
    ndarray of shape (150,), float32
        Five shares (vertical, horizontal, 45 degrees, 135 degrees, no direction) in each of the 4 x 4 sub-images (80),
        in the whole picture (5), and in the 13 groups of sub-images (65): 4 columns, 4 rows, the 4 quarters and the
        middle.

    Notes
    -----
    Definition: ISO/IEC 15938-3 for the 80; Won, Park and Park, "Efficient use of MPEG-7 edge histogram descriptor"
    (2002), for the others.  A picture has about 1100 square blocks; the luminances of a block's quarters, weighted by
    five filters of 2 x 2 numbers, tell its kind of edge.

    Different here: shares are not quantised to 3 bits; rows and columns of blocks (not pixels) are dealt out evenly to
    the sub-images, so that each has some in any picture; a side of fewer than eight pixels is first made longer by
    repeating them (the reference software enlarges pictures below 70 pixels).

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.mpeg7 import edge_histogram
    >>> picture = np.zeros((64, 64, 3), np.uint8)
    >>> picture[:, 13:] = 255
    >>> features = edge_histogram(picture)
    >>> features[:5].tolist(), features[80:85].tolist()  # one block in eight of the upper left part; of the whole
    ([0.125, 0.0, 0.0, 0.0, 0.0], [0.03125, 0.0, 0.0, 0.0, 0.0])
    """
    picture = _not_too_small(as_rgb(rgb))
    height, width = picture.shape[:2]
    size = max(2, 2 * (min(math.isqrt(height * width // _EHD_BLOCKS), height // _EHD_SIDE, width // _EHD_SIDE) // 2))
    counts = np.zeros((_EHD_SIDE, _EHD_SIDE, len(_EHD_KINDS)), np.int64)
    edge_counts(picture, size, _EHD_THRESHOLD, counts)
    local = counts / np.outer(_shared_out(height // size), _shared_out(width // size))[:, :, None]
    parts = (local, local.mean(axis=(0, 1)), _groups(local))
    return np.concatenate([part.ravel() for part in parts]).astype(np.float32)


def _not_too_small(picture: np.ndarray) -> np.ndarray:
    """The picture with pixels repeated until there is a block of 2 x 2 for each sub-image."""
    for axis in (0, 1):
        if picture.shape[axis] < 2 * _EHD_SIDE:
            picture = picture.repeat(-(-2 * _EHD_SIDE // picture.shape[axis]), axis)
    return as_rgb(picture)


def _shared_out(n: int) -> np.ndarray:
    """How many of n rows of blocks each row of sub-images gets."""
    return np.bincount(_EHD_SIDE * np.arange(n) // n, minlength=_EHD_SIDE)


def _groups(local: np.ndarray) -> np.ndarray:
    """Mean shares in the 13 groups of sub-images."""
    corners = [(0, 0), (0, 2), (2, 0), (2, 2), (1, 1)]
    squares = [local[i : i + 2, j : j + 2].mean(axis=(0, 1)) for i, j in corners]
    return np.concatenate([local.mean(axis=0), local.mean(axis=1), squares])


# ---- Homogeneous Texture Descriptor (HTD): how coarse a picture's texture is, and which way it runs ------------------

_HTD_SIZE = 128  # side of the square that is looked at
_HTD_SCALES = 5
_HTD_ORIENTATIONS = 6

# Zeros around the square, so that the narrow channels of the coarse scales have enough frequencies in them.
_HTD_PADDED = 2 * _HTD_SIZE


def homogeneous_texture(rgb: np.ndarray) -> np.ndarray:
    """Brightness, contrast, and the energies of 30 bands of frequencies.

    The square in the middle of the picture is scaled to 128 x 128 pixels.  Its spectrum is cut by Gaussians into five
    octaves (3/4, 3/8, ..., 3/64 of the highest frequency) of six directions (0, 30, ..., 150 degrees).  Turning the
    picture by 30 degrees moves each octave's numbers one place on, the last one to the first place.

    Parameters
    ----------
    rgb : ndarray of shape (height, width, 3), uint8

    Returns
    -------
    ndarray of shape (43,), float32
        Mean and standard deviation of the luminance (2); the energies e (30), finest octave first, and in each the
        directions in which brightness changes, from across (0 degrees) turning left; the energy deviations d, as their
        means of each octave (5) and of each direction (6).

    Notes
    -----
    Definition: ISO/IEC 15938-3; Ro, Kim, Kang, Manjunath and Kim, "MPEG-7 homogeneous texture descriptor" (2001).
    With the picture's power spectrum in polar coordinates and a channel's Gaussian G, e = log10(1 + mean of
    (G w F)^2), and d = log10(1 + standard deviation of the same), over all frequencies w and angles.

    The standard has 62 numbers: mean, standard deviation, 30 energies and 30 deviations; or 32 without the deviations.
    The paper's global features have 43 (1857 less the lengths of all the others), and it does not say which: here
    these are the 32 and 5 + 6 means of the deviations.  Also different: the reference software looks at the upper left
    128 x 128 pixels, with hard borders, here it is the middle of the whole picture, fading out round about; numbers
    are not quantised to 8 bits; smaller pictures are scaled up, for which the standard has no value.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.mpeg7 import homogeneous_texture
    >>> brightness = 128 + 100 * np.sin(np.arange(128) * 2 * np.pi * 24 / 128)  # 3/8 of the highest frequency
    >>> picture = np.broadcast_to(brightness[:, None, None], (128, 128, 3)).astype(np.uint8)  # changes downwards
    >>> energies = homogeneous_texture(picture)[2:32].reshape(5, 6)
    >>> [int(k) for k in np.unravel_index(energies.argmax(), (5, 6))]  # second octave, 90 degrees
    [1, 3]
    """
    picture = as_rgb(rgb)
    square = resized(picture, _HTD_SIZE, center_square(picture)) @ np.array([0.299, 0.587, 0.114])
    energies, deviations = _channels(square)
    parts = ([square.mean(), square.std()], energies.ravel(), deviations.mean(axis=1), deviations.mean(axis=0))
    return np.concatenate(parts).astype(np.float32)


def _channels(square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Energy and energy deviation of each channel, both of shape (_HTD_SCALES, _HTD_ORIENTATIONS)."""
    window = _window()
    faded = ((square - (square * window).sum() / window.sum()) * window).astype(np.float32)
    spectrum = fft.rfft2(faded, s=(_HTD_PADDED, _HTD_PADDED))
    power = (spectrum.real**2 + spectrum.imag**2).ravel().astype(np.float64)
    of_power, of_squares = _weights()
    means = of_power @ power
    variances = np.maximum(0, of_squares @ power**2 - means**2)
    shape = (_HTD_SCALES, _HTD_ORIENTATIONS)
    return np.log10(1 + means).reshape(shape), np.log10(1 + np.sqrt(variances)).reshape(shape)


@lru_cache(maxsize=1)
def _window() -> np.ndarray:
    """1 in the middle, and down to 0 on a circle: with hard borders their own frequencies would drown the texture's."""
    places = (np.arange(_HTD_SIZE) + 0.5) / (_HTD_SIZE / 2) - 1
    radius = np.hypot(places[:, None], places)
    return 0.5 + 0.5 * np.cos(np.pi * np.clip(2 * radius - 1, 0, 1))


@lru_cache(maxsize=1)
def _weights() -> tuple[sparse.csr_array, sparse.csr_array]:
    """What turns a power spectrum, and its square, into each channel's mean of (G w F)^2 and of its square.

    Means are over angles and radii.  On the square grid of the Fourier transform a point stands for an area of angles
    and radii that is as large as 1 / w.
    """
    vertical, across = 2 * fft.fftfreq(_HTD_PADDED)[:, None], 2 * fft.rfftfreq(_HTD_PADDED)
    radius = np.hypot(vertical, across)
    area = np.zeros_like(radius)
    np.divide(1, radius, out=area, where=(radius > 0) & (radius <= 1))
    area[:, [0, -1]] /= 2  # of these two columns the transform has both halves, of the others one
    area /= area.sum()
    channels = (_gaussian(radius, np.arctan2(-vertical, across), s, r) * radius for s, r in np.ndindex(5, 6))
    squared = [channel.ravel() ** 2 for channel in channels]
    return _without_crumbs(squared, area), _without_crumbs([g**2 for g in squared], area)


def _gaussian(radius: np.ndarray, angle: np.ndarray, scale: int, orientation: int) -> np.ndarray:
    """A channel's G: at half its height it touches its neighbours."""
    half = np.sqrt(2 * np.log(2))
    width, turn = 0.5**scale / 4 / half, np.radians(15) / half
    turned = (angle - np.radians(30) * orientation + np.pi / 2) % np.pi - np.pi / 2
    return np.exp(-0.5 * ((radius - 0.75 * 0.5**scale) / width) ** 2 - 0.5 * (turned / turn) ** 2)


def _without_crumbs(channels: list[np.ndarray], area: np.ndarray) -> sparse.csr_array:
    """The weights as a sparse matrix: nine in ten are next to nothing."""
    weights = np.array(channels) * area.ravel()
    return sparse.csr_array(np.where(weights > 1e-6 * weights.max(axis=1, keepdims=True), weights, 0))
