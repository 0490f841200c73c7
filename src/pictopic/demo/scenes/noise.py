"""Random fields that look like nature: as rough on every scale as clouds, rock or leaves are."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

SIZE = 256  # of pictures and of fields, in pixels

# The pixels' middles.
ROWS = np.arange(SIZE, dtype=np.float32)[:, None] + 0.5
COLUMNS = np.arange(SIZE, dtype=np.float32)[None, :] + 0.5
EVERYWHERE = np.ones((SIZE, SIZE), np.float32)


# How fast the waves of a field become smaller with their frequency.
LEAVES, CLOUDS, HILLS = 0.9, 1.6, 2.2


@lru_cache(maxsize=16)
def _spectrum(slope: float, stretch: float) -> np.ndarray:
    """Amplitude of each wave: its frequency to the power of -slope; the field's standard deviation is about 1."""
    rows = np.fft.fftfreq(SIZE)[:, None] * SIZE
    columns = np.fft.rfftfreq(SIZE)[None, :] * SIZE * stretch
    frequency = np.hypot(rows, columns)
    frequency[0, 0] = np.inf
    amplitude = frequency**-slope
    power = 2 * (amplitude[:, 1:] ** 2).sum() + (amplitude[:, 0] ** 2).sum()  # other columns stand for two waves each
    return (amplitude * SIZE**2 / np.sqrt(2 * power)).astype(np.float32)


def white_waves(rng: np.random.Generator) -> np.ndarray:
    """Random waves of all frequencies, which `fractal` makes a field of; complex64."""
    return rng.standard_normal((SIZE, SIZE // 2 + 1, 2), dtype=np.float32).view(np.complex64)[..., 0]


def fractal(waves: np.ndarray, slope: float = CLOUDS, stretch: float = 1.0) -> np.ndarray:
    """A random field with mean 0 and standard deviation about 1 that goes on at its opposite edge.

    Parameters
    ----------
    waves : array
        See `white_waves`.
    slope : float, default=CLOUDS
        0 is white noise, `LEAVES`, `CLOUDS` and `HILLS` are smoother and smoother.
    stretch : float, default=1
        How much longer than high its features are.

    Returns
    -------
    float32 array of shape (256, 256)

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.demo.scenes.noise import fractal, white_waves
    >>> field = fractal(white_waves(np.random.default_rng(0)), 0.9)
    >>> field.shape, bool(abs(field.mean()) < 0.01), bool(0.8 < field.std() < 1.2)
    ((256, 256), True, True)
    """
    return np.fft.irfft2(waves * _spectrum(slope, stretch), s=(SIZE, SIZE)).astype(np.float32, copy=False)


class Noise:
    """The random fields of one picture: each kind is made once and then looked at from random places.

    All kinds are made of the same waves; because of the random places one does not see that.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.demo.scenes.noise import CLOUDS, HILLS, Noise
    >>> noise = Noise(np.random.default_rng(0))
    >>> noise.field(CLOUDS).shape, noise.at(HILLS, np.zeros(3), np.arange(3.0)).shape
    ((256, 256), (3,))
    """

    def __init__(self, rng: np.random.Generator):
        self._rng = rng
        self._waves = white_waves(rng)
        self._fields: dict[tuple[float, float], np.ndarray] = {}
        self._bordered: dict[tuple[float, float], np.ndarray] = {}

    def _field(self, slope: float, stretch: float) -> np.ndarray:
        if (slope, stretch) not in self._fields:
            self._fields[slope, stretch] = fractal(self._waves, slope, stretch)
        return self._fields[slope, stretch]

    def field(self, slope: float, stretch: float = 1.0) -> np.ndarray:
        """A field of this kind, shifted by a random distance."""
        row, column = self._rng.integers(0, SIZE, 2)
        return np.roll(self._field(slope, stretch), (row, column), (0, 1))

    def line(self, slope: float) -> np.ndarray:
        """One row of a field, float32 of shape (256,)."""
        return self._field(slope, 1.0)[self._rng.integers(0, SIZE)]

    def at(self, slope: float, x: np.ndarray, y: np.ndarray, stretch: float = 1.0) -> np.ndarray:
        """A field's values at any places, interpolated; it repeats itself every 256."""
        field, width = self._with_border(slope, stretch), SIZE + 1
        x, y = np.asarray(x, np.float32), np.asarray(y, np.float32)
        left, top = np.floor(x), np.floor(y)
        right, down = x - left, y - top
        place = (top.astype(np.int32) & (SIZE - 1)) * width + (left.astype(np.int32) & (SIZE - 1))
        above, below = field[place], field[place + width]
        above += (field[place + 1] - above) * right
        below += (field[place + width + 1] - below) * right
        return above + (below - above) * down

    def near(self, slope: float, x: np.ndarray, y: np.ndarray, stretch: float = 1.0) -> np.ndarray:
        """As `at`, but not interpolated: quicker, for fine textures."""
        column, row = (np.asarray(part, np.float32).astype(np.int32) & (SIZE - 1) for part in (x, y))
        return self._field(slope, stretch).ravel()[row * SIZE + column]

    def _with_border(self, slope: float, stretch: float) -> np.ndarray:
        """A field, flat, with its first row and column once more at its end."""
        if (slope, stretch) not in self._bordered:
            field = np.pad(self._field(slope, stretch), ((0, 1), (0, 1)), mode="wrap")
            self._bordered[slope, stretch] = field.ravel()
        return self._bordered[slope, stretch]


def step(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """0 below low, 1 above high, smooth between them (low above high: the other way round)."""
    part = np.clip((values - low) / (high - low), 0, 1)
    return part * part * (3 - 2 * part)
