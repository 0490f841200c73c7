"""What is painted on, and what remembers which part of it shows what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from pictopic.demo.scenes.noise import SIZE
from pictopic.demo.scenes.tags import TAGS
from pictopic.demo.scenes.view import Colour, Point

FINE = 2  # things are drawn this many times larger, for smooth edges

_NUMBER = {tag: number for number, tag in enumerate(TAGS, 1)}


class Canvas:
    """A picture being painted.  What is painted later hides what was there, also from the tags.

    All places are in pixels of the finished picture.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.demo.scenes.canvas import Canvas
    >>> canvas = Canvas()
    >>> canvas.layer(np.full((3, 256, 256), 200.0), np.ones((256, 256)), "sky")
    >>> canvas.polygon([(0, 0), (255, 0), (255, 127), (0, 127)], (90, 20, 20), "building")
    >>> canvas.shares()
    {'sky': 0.5, 'building': 0.5}
    >>> canvas.image().size
    (256, 256)
    """

    def __init__(self) -> None:
        self._image = Image.new("RGB", (SIZE * FINE, SIZE * FINE))
        self._areas = Image.new("L", (SIZE, SIZE))  # the number of the tag of each pixel
        self._draw = ImageDraw.Draw(self._image)
        self._draw_area = ImageDraw.Draw(self._areas)

    def layer(self, colours: np.ndarray, mask: np.ndarray, tag: str | None = None, left: int = 0, top: int = 0) -> None:
        """Paint colours, (3, height, width), where a mask from 0 to 1, (height, width), says, from a corner on."""
        rows = np.flatnonzero(mask.any(axis=1))
        if not len(rows):
            return
        first, last = int(rows[0]), int(rows[-1]) + 1
        mask, colours, top = mask[first:last], colours[:, first:last], top + first
        image = as_image(colours)
        shape = Image.fromarray((mask * 255).astype(np.uint8))
        # Each pixel becomes a square of equal ones, which `image` averages again: as if it had never been enlarged.
        size = (image.width * FINE, image.height * FINE)
        fine_shape = None if mask.min() == 1 else shape.resize(size, Image.Resampling.NEAREST)
        self._image.paste(image.resize(size, Image.Resampling.NEAREST), (left * FINE, top * FINE), fine_shape)
        self._mark(shape, (left, top), tag)

    def _mark(self, mask: Image.Image, corner: tuple[int, int], tag: str | None) -> None:
        if tag:
            self._areas.paste(_NUMBER[tag], corner, mask.convert("1", dither=Image.Dither.NONE))

    def polygon(self, points: Sequence[Point], colour: Colour, tag: str | None = None) -> None:
        """Fill a polygon."""
        self._draw.polygon(_fine(points), fill=_rgb(colour))
        if tag:
            self._draw_area.polygon(points, fill=_NUMBER[tag])

    def ellipse(self, middle: Point, width: float, height: float, colour: Colour, tag: str | None = None) -> None:
        """Fill an ellipse."""
        (x, y), w, h = middle, width / 2, height / 2
        box = [(x - w, y - h), (x + w, y + h)]
        self._draw.ellipse(_fine(box), fill=_rgb(colour))
        if tag:
            self._draw_area.ellipse(box, fill=_NUMBER[tag])

    def line(self, points: Sequence[Point], width: float, colour: Colour, tag: str | None = None) -> None:
        """Draw a line through points."""
        self._draw.line(_fine(points), fill=_rgb(colour), width=max(round(width * FINE), 1))
        if tag:
            self._draw_area.line(points, fill=_NUMBER[tag], width=max(round(width), 1))

    def sprite(self, image: Image.Image, foot: Point, width: float, height: float, tag: str | None = None) -> None:
        """Paste a picture with transparent parts, with the middle of its lower edge at a point."""
        wide, high = max(round(width), 1), max(round(height), 1)
        left, top = round(foot[0] - width / 2), round(foot[1] - height)
        if -wide < left < SIZE and -high < top < SIZE:
            image = image.resize((wide * FINE, high * FINE), Image.Resampling.BILINEAR)
            mask = image.getchannel("A")
            self._image.paste(image, (left * FINE, top * FINE), mask)
            self._mark(mask.reduce(FINE), (left, top), tag)

    def image(self) -> Image.Image:
        """The picture, 256 x 256."""
        return self._image.reduce(FINE)

    def shares(self) -> dict[str, float]:
        """How much of the picture shows what: the share of its pixels for each tag that is visible at all."""
        counts = self._areas.histogram()
        return {tag: counts[number] / SIZE**2 for tag, number in _NUMBER.items() if counts[number]}


def as_image(colours: np.ndarray) -> Image.Image:
    """A picture of planes (3, height, width) of red, green and blue from 0 to 255."""
    return Image.merge("RGB", [Image.fromarray(plane) for plane in np.clip(colours, 0, 255).astype(np.uint8)])


def _rgb(colour: Colour) -> tuple[int, int, int]:
    red, green, blue = colour
    return min(max(int(red), 0), 255), min(max(int(green), 0), 255), min(max(int(blue), 0), 255)


def _fine(points: Sequence[Point]) -> list[Point]:
    return [(x * FINE, y * FINE) for x, y in points]


def placed(shape: Sequence[Point], foot: Point, size: float) -> list[Point]:
    """The points of a shape that is given in units of its size, to the right of and up from its foot.

    Examples
    --------
    >>> from pictopic.demo.scenes.canvas import placed
    >>> placed([(0, 0), (0.5, 1)], foot=(100, 200), size=10)
    [(100, 200), (105.0, 190)]
    """
    x, y = foot
    return [(x + u * size, y - v * size) for u, v in shape]
