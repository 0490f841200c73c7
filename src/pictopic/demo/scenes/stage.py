"""A scene being painted: its canvas, light and random numbers, flat faces and boxes, and the photo of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from PIL import ImageFilter

from pictopic.demo.scenes.canvas import Canvas, as_image
from pictopic.demo.scenes.noise import CLOUDS, COLUMNS, ROWS, SIZE, Noise
from pictopic.demo.scenes.view import Camera, Colour, Light, Place, choose_light

T = TypeVar("T")
Span = tuple[float, float]  # from, to; in metres

_GRAY = np.array([0.3, 0.59, 0.11])
_FROM_MIDDLE = ((COLUMNS - SIZE / 2) ** 2 + (ROWS - SIZE / 2) ** 2) / (SIZE * SIZE / 2)


class Stage:
    """A scene being painted: its canvas, camera and light, its random numbers and random fields; see `choose_light`."""

    def __init__(self, rng: np.random.Generator, night: float = 0.0):
        self.rng = rng
        self.noise = Noise(rng)
        self.light: Light = choose_light(rng, night)
        self.canvas = Canvas()
        self.camera = Camera()

    def look(self, **options: float) -> Camera:
        """Choose where the picture is taken from; see `Camera`."""
        self.camera = Camera(**options)
        return self.camera

    def see_as_far_as(self, metres: float) -> None:
        """Let the haze begin farther away, if it would hide what is at this distance."""
        self.light = replace(self.light, sight=max(self.light.sight, metres))

    def chance(self, probability: float) -> bool:
        """Whether something happens."""
        return bool(self.rng.random() < probability)

    def between(self, low: float, high: float) -> float:
        """A number between two."""
        return float(self.rng.uniform(low, high))

    def count(self, low: int, high: int) -> int:
        """A whole number from low to high."""
        return int(self.rng.integers(low, high + 1))

    def distances(self, near: float, far: float, n: int) -> list[float]:
        """Random distances, the farthest first."""
        return sorted(self.rng.uniform(near, far, n).tolist(), reverse=True)

    def pick(self, options: Sequence[T], chances: Sequence[float] | None = None) -> T:
        """One of several."""
        at = self.rng.random()
        if chances is None:
            return options[int(at * len(options))]
        for option, chance in zip(options, chances, strict=True):
            at -= chance
            if at < 0:
                return option
        return options[-1]

    def vary(self, colour: Colour, much: float = 12.0) -> Colour:
        """A colour that is a bit different each time: lighter or darker, and less so in its hue."""
        shift, (red, green, blue) = self.rng.normal(0, much), self.rng.normal(0, much / 2.5, 3)
        return colour[0] + shift + red, colour[1] + shift + green, colour[2] + shift + blue


def draw_quad(stage: Stage, corners: Sequence[Place], colour: Colour, lit: float, tag: str | None) -> None:
    """A flat thing with any corners, in the sun and haze."""
    points = stage.camera.project(corners)
    xs = [x for x, _ in points]
    # Most of a street's details are too small to be seen, or outside of the picture.
    if max(xs) < 0 or min(xs) > SIZE or max(xs) - min(xs) < 0.4:
        return
    z = sum(corner[2] for corner in corners) / len(corners)
    stage.canvas.polygon(points, stage.light.seen(colour, z, lit), tag)


def draw_face(stage: Stage, x: Span, y: Span, z: float, colour: Colour, lit: float, tag: str | None) -> None:
    """An upright rectangle that faces the camera."""
    (left, right), (low, high) = x, y
    draw_quad(stage, [(left, low, z), (right, low, z), (right, high, z), (left, high, z)], colour, lit, tag)


def draw_box(stage: Stage, x: Span, y: Span, z: Span, colour: Colour, tag: str | None) -> None:
    """A box: those of its sides that the camera sees."""
    (left, right), (low, high), (front, back) = x, y, z
    if high < stage.camera.height:
        top = [(left, high, front), (right, high, front), (right, high, back), (left, high, back)]
        draw_quad(stage, top, colour, 0.95, tag)
    for edge, outside in ((left, -1), (right, 1)):
        if edge * outside < 0:
            side = [(edge, low, front), (edge, low, back), (edge, high, back), (edge, high, front)]
            draw_quad(stage, side, colour, 0.45 + 0.4 * outside * stage.light.side, tag)
    draw_face(stage, x, y, front, colour, 0.6, tag)


def take_photo(stage: Stage) -> np.ndarray:
    """The finished picture, uint8 of shape (256, 256, 3)."""
    image = stage.canvas.image()
    image = image.convert("RGB", _development(stage, float(np.asarray(image.reduce(32)).mean())))
    softness = stage.pick([0.0, stage.between(0.05, 0.25), stage.between(0.25, 0.6)], (0.5, 0.35, 0.15))
    if softness:
        row = (softness * softness, softness, softness * softness)
        image = image.filter(ImageFilter.Kernel((3, 3), (*row, softness, 1, softness, *row)))
    # Dark corners, and dirt and wear on what was painted evenly.
    factor = 1.0 + 0.015 * stage.noise.field(CLOUDS) - stage.between(0, 0.3) * _FROM_MIDDLE
    grain = stage.rng.standard_normal((SIZE, SIZE), dtype=np.float32) * stage.between(0.8, 4.5)
    planes = np.stack([np.asarray(plane) for plane in image.split()])
    return np.array(as_image(planes * factor + grain))


def _development(stage: Stage, brightness: float) -> tuple[float, ...]:
    """Exposure, colour cast, saturation and contrast: all of them linear, so one matrix with offsets, row by row."""
    longer = min(max((132 / max(brightness, 1)) ** 0.4, 0.92), 1.5)  # dark scenes are exposed longer
    exposure = longer * stage.between(0.9, 1.15) * stage.rng.normal(1, 0.03, 3)
    saturation = stage.pick([stage.between(0.75, 1.15), 0.0], (0.94, 0.06))
    contrast = stage.between(0.85, 1.2)
    matrix = contrast * (saturation * np.eye(3) + (1 - saturation) * _GRAY[None, :]) * exposure[None, :]
    offset = (1 - contrast) * 118
    return tuple(float(part) for row in matrix for part in (*row, offset))
