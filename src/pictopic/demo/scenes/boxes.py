"""Flat faces and boxes in the world, which things and buildings are made of."""

from __future__ import annotations

from collections.abc import Sequence

from pictopic.demo.scenes.noise import SIZE
from pictopic.demo.scenes.stage import Stage
from pictopic.demo.scenes.view import Colour, Place

Span = tuple[float, float]  # from, to; in metres


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
