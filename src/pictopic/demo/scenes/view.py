"""Where a picture is taken from, and in what light."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pictopic.demo.scenes.noise import SIZE

Colour = tuple[float, float, float]  # red, green, blue, from 0 to 255
Colours = Colour | np.ndarray  # the same everywhere, or three planes (3, height, width): numpy is quicker that way
Place = tuple[float, float, float]  # in the world: x, y, z
Point = tuple[float, float]  # in the picture: x, y


@dataclass(frozen=True)
class Camera:
    """Turns places in the world into points of the picture.

    In the world x goes to the right, y up from the ground and z away from the camera, in metres; in the picture x goes
    to the right and y down, in pixels.

    Parameters
    ----------
    horizon : float, default=128
        Its row in the picture, for a camera that is not tilted.
    height : float, default=1.7
        Of the camera above the ground.
    focal : float, default=220
        Focal length in pixels; smaller is wider.
    centre : float, default=128
        The column that the camera looks to.
    tilt : float, default=0
        How far the camera looks up, in radians.

    Examples
    --------
    >>> from pictopic.demo.scenes.view import Camera
    >>> Camera().project([(0, 1.7, 10), (1, 0.7, 22)])
    [(128.0, 128.0), (138.0, 138.0)]
    """

    horizon: float = 128.0
    height: float = 1.7
    focal: float = 220.0
    centre: float = SIZE / 2
    tilt: float = 0.0

    def project(self, places: Iterable[Place]) -> list[Point]:
        """Points of the picture; in plain Python, which is quicker than numpy for a few."""
        up, away = self._up_and_away
        points = []
        for x, y, z in places:
            y = y - self.height
            scale = self.focal / max(z * away + y * up, 0.1)
            points.append((self.centre + x * scale, self.horizon - (y * away - z * up) * scale))
        return points

    def project_all(self, places: np.ndarray) -> np.ndarray:
        """Points (..., 2) of many places (..., 3)."""
        x, y, z = np.moveaxis(places, -1, 0)
        y = y - self.height
        up, away = self._up_and_away
        scale = self.focal / np.maximum(z * away + y * up, 0.1)
        return np.stack([self.centre + x * scale, self.horizon - (y * away - z * up) * scale], -1)

    @cached_property
    def _up_and_away(self) -> Point:
        return math.sin(self.tilt), math.cos(self.tilt)

    def scale(self, z: float) -> float:
        """Pixels a metre at a distance."""
        return self.focal / max(z, 0.1)


@dataclass(frozen=True)
class Light:
    """Time of day and weather, as colours."""

    zenith: np.ndarray
    skyline: np.ndarray
    sun: np.ndarray  # what sunlit colours are multiplied with
    shade: np.ndarray  # what colours in the shade are multiplied with
    haze: np.ndarray
    sight: float  # metres after which haze hides two thirds
    side: float  # where the sun is: from -1, left, to 1, right
    clouds: float  # from -1, clear, to 1, covered
    night: bool

    def on(self, colours: Colours, lit: float | np.ndarray = 0.7) -> np.ndarray:
        """Colours with so much of the sun on them, from 0 to 1."""
        colours, brightness = np.asarray(colours, np.float32), mix(self.shade, self.sun, lit)
        return planes(colours, brightness[0]) * planes(brightness, colours[0])

    def far(self, colours: Colours, z: float | np.ndarray) -> np.ndarray:
        """Colours as they look from a distance in metres."""
        return mix(self.haze, colours, np.exp(np.asarray(z, np.float32) / -self.sight))

    def seen(self, colour: Colour, z: float, lit: float = 0.7) -> Colour:
        """One colour with so much of the sun on it, from a distance; in plain Python, which is quicker for one."""
        clear = math.exp(-z / self.sight)
        red, green, blue = (
            haze + (part * (shade + (sun - shade) * lit) - haze) * clear
            for part, shade, sun, haze in zip(colour, *self._plain, strict=True)
        )
        return red, green, blue

    @cached_property
    def _plain(self) -> tuple[list[float], list[float], list[float]]:
        return self.shade.tolist(), self.sun.tolist(), self.haze.tolist()


def planes(colours: Colours, like: float | np.ndarray = 0.0) -> np.ndarray:
    """A colour, (3,), or planes of colours, (3, ...), so that they fit to an array (...)."""
    colours = np.asarray(colours, np.float32)
    return colours.reshape(3, *[1] * np.ndim(like)) if colours.ndim == 1 else colours


def mix(first: Colours, second: Colours, part: float | np.ndarray) -> np.ndarray:
    """From the first colour, where part is 0, to the second, where it is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.demo.scenes.view import mix
    >>> mix((0, 0, 0), (100, 200, 50), 0.5).tolist()
    [50.0, 100.0, 25.0]
    >>> mix((0, 0, 0), (100, 200, 50), np.zeros((4, 5))).shape
    (3, 4, 5)
    """
    part = np.asarray(part, np.float32)
    first, second = np.asarray(first, np.float32), np.asarray(second, np.float32)
    largest = max(first[0], second[0], part, key=np.ndim)
    first, second = planes(first, largest), planes(second, largest)
    return first + (second - first) * part


def darker(colour: Colour, factor: float) -> Colour:
    """A colour times a factor; more than 1 makes it lighter."""
    red, green, blue = colour
    return red * factor, green * factor, blue * factor


# zenith, colour above the horizon, sunlight, shade
_TIMES = {
    "day": ((62, 115, 190), (178, 205, 230), (1.12, 1.08, 1.0), (0.5, 0.56, 0.68)),
    "hazy": ((125, 160, 200), (215, 220, 222), (1.05, 1.02, 0.95), (0.6, 0.62, 0.66)),
    "overcast": ((150, 156, 166), (200, 203, 206), (0.85, 0.86, 0.88), (0.62, 0.64, 0.68)),
    "golden": ((98, 118, 165), (250, 200, 140), (1.22, 0.95, 0.68), (0.46, 0.43, 0.5)),
    "dusk": ((48, 56, 104), (226, 140, 118), (0.72, 0.56, 0.58), (0.3, 0.29, 0.42)),
    "night": ((10, 14, 34), (44, 44, 66), (0.34, 0.34, 0.42), (0.16, 0.17, 0.26)),
}
_MIST = 0.12  # how probable it is that one does not see far
_CHANCES = {"day": 0.38, "hazy": 0.16, "overcast": 0.2, "golden": 0.17, "dusk": 0.09}


def choose_light(rng: np.random.Generator, night: float = 0.0) -> Light:
    """A random time of day and weather; it is night with a probability of `night`."""
    dark = rng.random() < night
    time = "night" if dark else str(rng.choice(list(_CHANCES), p=list(_CHANCES.values())))
    zenith, skyline, sun, shade = (np.array(part, np.float32) for part in _TIMES[time])
    strength = rng.uniform(0.85, 1.1)
    zenith, skyline = (part * strength * rng.uniform(0.95, 1.05, 3).astype(np.float32) for part in (zenith, skyline))
    clouds = {"overcast": rng.uniform(0.3, 1.2), "hazy": rng.uniform(-1.5, 0.5)}.get(time, rng.uniform(-1.4, 0.8))
    misty = rng.random() < _MIST
    return Light(
        zenith=zenith,
        skyline=skyline,
        sun=sun * np.float32(rng.uniform(0.85, 1.1)),
        shade=shade * np.float32(rng.uniform(0.8, 1.15)),
        haze=skyline * 0.75 + zenith * 0.25,
        sight=float(np.exp(rng.uniform(4.0, 5.5) if misty else rng.uniform(8.0, 10.2))),
        side=float(rng.choice([-1, 1]) * rng.uniform(0.3, 1)),
        clouds=float(clouds),
        night=dark,
    )
