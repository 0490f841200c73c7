"""Homogeneous Texture Descriptor (HTD): how coarse a picture's texture is, and which way it runs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import fft, sparse

from pictopic.words.pixels import as_rgb, center_square, resized

SIZE = 128  # side of the square that is looked at
N_SCALES = 5
N_ORIENTATIONS = 6

# Zeros around the square, so that the narrow channels of the coarse scales have enough frequencies in them.
_PADDED = 2 * SIZE


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
    square = resized(picture, SIZE, center_square(picture)) @ np.array([0.299, 0.587, 0.114])
    energies, deviations = _channels(square)
    parts = ([square.mean(), square.std()], energies.ravel(), deviations.mean(axis=1), deviations.mean(axis=0))
    return np.concatenate(parts).astype(np.float32)


def _channels(square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Energy and energy deviation of each channel, both of shape (N_SCALES, N_ORIENTATIONS)."""
    window = _window()
    faded = ((square - (square * window).sum() / window.sum()) * window).astype(np.float32)
    spectrum = fft.rfft2(faded, s=(_PADDED, _PADDED))
    power = (spectrum.real**2 + spectrum.imag**2).ravel().astype(np.float64)
    of_power, of_squares = _weights()
    means = of_power @ power
    variances = np.maximum(0, of_squares @ power**2 - means**2)
    shape = (N_SCALES, N_ORIENTATIONS)
    return np.log10(1 + means).reshape(shape), np.log10(1 + np.sqrt(variances)).reshape(shape)


@lru_cache(maxsize=1)
def _window() -> np.ndarray:
    """1 in the middle, and down to 0 on a circle: with hard borders their own frequencies would drown the texture's."""
    places = (np.arange(SIZE) + 0.5) / (SIZE / 2) - 1
    radius = np.hypot(places[:, None], places)
    return 0.5 + 0.5 * np.cos(np.pi * np.clip(2 * radius - 1, 0, 1))


@lru_cache(maxsize=1)
def _weights() -> tuple[sparse.csr_array, sparse.csr_array]:
    """What turns a power spectrum, and its square, into each channel's mean of (G w F)^2 and of its square.

    Means are over angles and radii.  On the square grid of the Fourier transform a point stands for an area of angles
    and radii that is as large as 1 / w.
    """
    vertical, across = 2 * fft.fftfreq(_PADDED)[:, None], 2 * fft.rfftfreq(_PADDED)
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
