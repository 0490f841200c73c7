"""What everything that paints a scene needs: canvas, light, random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from pictopic.demo.scenes.canvas import Canvas
from pictopic.demo.scenes.noise import Noise
from pictopic.demo.scenes.view import Camera, Colour, Light, choose_light

T = TypeVar("T")


class Stage:
    """A scene being painted: its canvas, camera and light, its random numbers and random fields.

    Parameters
    ----------
    rng : numpy.random.Generator
    night : float, default=0
        How probable it is that it is night.
    mist : float, default=0.12
        How probable it is that one does not see far.
    """

    def __init__(self, rng: np.random.Generator, night: float = 0.0, mist: float = 0.12):
        self.rng = rng
        self.noise = Noise(rng)
        self.light: Light = choose_light(rng, night, mist)
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
