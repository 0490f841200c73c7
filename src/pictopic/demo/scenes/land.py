"""The ground as the camera sees it: which place of it each pixel shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pictopic.demo.scenes.noise import COLUMNS, EVERYWHERE, LEAVES, ROWS, SIZE, Noise
from pictopic.demo.scenes.stage import Stage
from pictopic.demo.scenes.view import Camera, Colours, Light, Place

Height = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of the ground, in metres, at x and z


class Land(NamedTuple):
    """The ground as the camera sees it, pixel by pixel; arrays of shape (256 - top, 256)."""

    top: int  # the first row of the picture that shows any of it
    seen: np.ndarray  # 1 where there is ground, 0 where there is sky
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    lit: np.ndarray  # how much of the sun falls on it
    steep: np.ndarray  # rise over run

    @property
    def rows(self) -> np.ndarray:
        """The rows of the picture, (256 - top, 1)."""
        return ROWS[self.top :]

    @property
    def everywhere(self) -> np.ndarray:
        """A mask of all of it."""
        return EVERYWHERE[self.top :]

    def grain(self, noise: Noise, slope: float = LEAVES, fine: float = 30.0, stretch: float = 1.0) -> np.ndarray:
        """A texture that lies on the ground and is equally fine at all distances, as grass and gravel look."""
        return noise.near(slope, self.x / self.z * 220 + SIZE, self.rows - np.log(self.z) * fine + 2 * SIZE, stretch)

    def paint(
        self, stage: Stage, colours: Colours, mask: np.ndarray, tag: str | None, rough: np.ndarray | float = 0
    ) -> None:
        """Paint a part of the ground, in its light and haze; `rough` is more or less light here and there."""
        painted = stage.light.far(stage.light.on(colours, np.clip(self.lit + rough, 0, 1.2)), self.z)
        stage.canvas.layer(painted, mask * self.seen, tag, top=self.top)

    def hides(self, camera: Camera, place: Place) -> bool:
        """Whether there is a hill between the camera and a place."""
        column, row = camera.project([place])[0]
        if not (0 <= column < SIZE and self.top <= row < SIZE):
            return False
        return bool(self.z[int(row) - self.top, int(column)] < 0.8 * place[2])


def flat_land(camera: Camera) -> Land:
    """Ground without hills."""
    top = min(max(int(camera.horizon), 0), SIZE - 1)
    below = np.maximum(ROWS[top:] - camera.horizon, 0.05) + 0 * COLUMNS
    z = camera.focal * camera.height / below
    even = np.full_like(z, 0.7)
    return Land(top, np.clip(below + 0.5, 0, 1), (COLUMNS - camera.centre) / camera.focal * z, 0 * z, z, even, 0 * z)


def see_land(camera: Camera, light: Light, height: Height, depths: np.ndarray) -> Land:
    """Find out which place of the ground each pixel shows.

    The ground is cut into slices across the line of sight, from near to far.  A pixel shows the first slice that
    reaches up to it.

    Parameters
    ----------
    camera : Camera
        Not tilted.
    light : Light
    height : callable
        Height of the ground at arrays x and z.
    depths : array
        Distances of the slices, the nearest first.
    """
    z = np.asarray(depths, np.float32)[:, None]
    x = (COLUMNS - camera.centre) / camera.focal * z
    y = height(x, z * np.ones_like(x)).astype(np.float32)
    reach = camera.horizon - camera.focal * (y - camera.height) / z
    reach = np.minimum.accumulate(reach, axis=0)  # the row that all slices up to this one reach
    top = min(max(int(reach[-1].min()), 0), SIZE - 1)
    rows = ROWS[top:]

    behind = _first_slice(reach, top)
    second = np.minimum(behind, len(z) - 1)
    first = np.maximum(second - 1, 0)
    in_first, in_second = first * SIZE + np.arange(SIZE), second * SIZE + np.arange(SIZE)
    lower, upper = reach.ravel()[in_first], reach.ravel()[in_second]
    part = np.clip((lower - rows) / np.maximum(lower - upper, 1e-3), 0, 1)

    def between(values: np.ndarray) -> np.ndarray:
        low = values.ravel()[in_first]
        return low + (values.ravel()[in_second] - low) * part

    lit, steep = _slopes(x, y, z, light.side)
    inverse = 1 / z[:, 0]
    depth = 1 / (inverse[first] + (inverse[second] - inverse[first]) * part)
    # In front of the first slice the ground goes on as a plane.
    plane = z[0] * (reach[0] - camera.horizon) / np.maximum(rows - camera.horizon, 1)
    depth = np.where(behind == 0, np.clip(plane, 0.5, z[0]), depth)
    seen = (behind < len(z)).astype(np.float32)
    across = (COLUMNS - camera.centre) / camera.focal * depth
    return Land(top, seen, across, between(y), depth, between(lit), between(steep))


def _slopes(x: np.ndarray, y: np.ndarray, z: np.ndarray, side: float) -> tuple[np.ndarray, np.ndarray]:
    """How much sun falls on the slices, and how steep they are."""
    across = np.empty_like(y)
    across[:, 1:-1] = (y[:, 2:] - y[:, :-2]) / (x[:, 2:] - x[:, :-2])
    across[:, [0, -1]] = across[:, [1, -2]]
    away = np.empty_like(y)
    away[1:-1] = (y[2:] - y[:-2]) / (z[2:] - z[:-2])
    away[[0, -1]] = away[[1, -2]]
    steep = np.sqrt(across * across + away * away)
    towards_sun = (0.5 - across * side * 1.2 + away * 0.25) / np.sqrt(1 + steep * steep)
    return np.clip(0.15 + towards_sun, 0, 1), steep


def _first_slice(reach: np.ndarray, top: int) -> np.ndarray:
    """For each pixel from a row on the number of slices that stay below it; `reach` falls along its first axis."""
    n_rows = SIZE - top
    # The highest pixel of each slice in each column.
    pixel = np.clip(np.ceil(reach - 0.5) - top, 0, n_rows).astype(np.int32) * SIZE + np.arange(SIZE, dtype=np.int32)
    counts = np.bincount(pixel.ravel(), minlength=(n_rows + 1) * SIZE).reshape(n_rows + 1, SIZE)
    # A pixel is reached by the slices whose highest pixel is there or above.
    return len(reach) - np.cumsum(counts, axis=0)[:n_rows]


def slices(near: float, start: float, far: float, n_near: int, n_far: int) -> np.ndarray:
    """Distances for `see_land`: so many in front, and so many where mountains or hills begin, and behind."""
    edge = start * 0.45
    return np.concatenate([np.geomspace(near, edge, n_near, endpoint=False), np.geomspace(edge, far, n_far)])


def ground_at(height: Height, x: float, z: float) -> float:
    """Height of the ground at one place."""
    return float(height(np.array([x]), np.array([z]))[0])
