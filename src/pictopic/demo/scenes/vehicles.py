"""Cars, trucks and buses."""

from __future__ import annotations

import math

from pictopic.demo.scenes.canvas import placed
from pictopic.demo.scenes.stage import Span, Stage, draw_box, draw_face, draw_quad
from pictopic.demo.scenes.view import Colour, Point, darker

_PAINTS: list[Colour] = [
    (170, 30, 30), (30, 60, 130), (200, 202, 205), (120, 124, 130), (30, 32, 36), (225, 225, 222), (60, 90, 70),
    (190, 150, 60),
]  # fmt: skip
_BIG_PAINTS: list[Colour] = [(215, 215, 212), (190, 195, 200), (80, 110, 160), (170, 60, 50), (200, 160, 60)]
_TYRE: Colour = (24, 24, 26)
_GLASS: Colour = (52, 62, 74)


def _draw_shadow(stage: Stage, x: Span, z: Span) -> None:
    ground = [(x[0], 0.0, z[0]), (x[1], 0.0, z[0]), (x[1], 0.0, z[1]), (x[0], 0.0, z[1])]
    draw_quad(stage, ground, (38, 38, 42), 0.4, None)


def draw_car(stage: Stage, x: float, z: float, away: bool = True) -> None:
    """A car on the road, seen from behind or from the front; x is its middle."""
    paint = stage.vary(stage.pick(_PAINTS), 8)
    left, right, back = x - 0.88, x + 0.88, z + stage.between(3.8, 4.6)
    _draw_shadow(stage, (left - 0.1, right + 0.1), (z - 0.1, back))
    for wheel in (left, right - 0.25):
        draw_face(stage, (wheel, wheel + 0.25), (0, 0.5), z + 0.05, _TYRE, 0.5, "car")
    draw_box(stage, (left, right), (0.28, 0.85), (z, back), paint, "car")
    if z < 60:
        _draw_wheels(stage, left if x > 0 else right, (z, back))
    _draw_cabin(stage, (left, right), (z, back), paint, away)
    lamp: Colour = (200, 30, 25) if away else (250, 245, 215)
    for place in (left + 0.08, right - 0.38):
        shape = stage.camera.project([(place + u, v, z) for u, v in ((0, 0.55), (0.3, 0.55), (0.3, 0.72), (0, 0.72))])
        stage.canvas.polygon(shape, darker(lamp, 1.2 if stage.light.night else 0.9), "car")
    draw_face(stage, (x - 0.25, x + 0.25), (0.45, 0.56), z, (215, 215, 200), 0.6, "car")


def _draw_wheels(stage: Stage, side: float, z: Span) -> None:
    circle = [(math.cos(k * 0.63), math.sin(k * 0.63)) for k in range(10)]
    for middle in (z[0] + 0.8, z[1] - 0.8):
        for radius, colour in ((0.33, _TYRE), (0.18, (130, 132, 136))):
            rim = [(side, 0.33 + radius * up, middle + radius * along) for along, up in circle]
            draw_quad(stage, rim, colour, 0.5, "car")


def _draw_cabin(stage: Stage, x: Span, z: Span, paint: Colour, away: bool) -> None:
    """Windows and roof: narrower above than below."""
    (left, right), (front, back) = x, z
    start, end = (front + 0.4, back - 1.1) if away else (front + 1.1, back - 0.3)
    roof_start, roof_end = start + 0.5, end - 0.6
    inside = (left + 0.2, right - 0.2)
    visible = (right, inside[1]) if right < 0 else (left, inside[0])
    if left > 0 or right < 0:
        low, high = visible
        side = [(low, 0.85, start), (low, 0.85, end), (high, 1.42, roof_end), (high, 1.42, roof_start)]
        draw_quad(stage, side, _GLASS, 0.6, "car")
    if stage.camera.height > 1.42:
        roof = [(inside[0], 1.42, roof_start), (inside[1], 1.42, roof_start)]
        draw_quad(stage, [*roof, (inside[1], 1.42, roof_end), (inside[0], 1.42, roof_end)], paint, 1.0, "car")
    window = [(left + 0.08, 0.85, start), (right - 0.08, 0.85, start)]
    draw_quad(stage, [*window, (inside[1], 1.4, roof_start), (inside[0], 1.4, roof_start)], _GLASS, 0.8, "car")
    draw_face(stage, inside, (1.36, 1.44), roof_start, paint, 0.8, "car")


def draw_parked_car(stage: Stage, x: float, z: float) -> None:
    """A car that is seen from its side."""
    paint = stage.vary(stage.pick(_PAINTS), 8)
    foot, metre = stage.camera.project([(x, 0.0, z)])[0], stage.camera.scale(z)
    long = stage.between(3.9, 4.7) * stage.pick([-1, 1])
    canvas, light = stage.canvas, stage.light

    def outline(shape: list[Point]) -> list[Point]:
        return placed([(u * long, v) for u, v in shape], foot, metre)

    glass = light.seen((60, 72, 84), z)
    canvas.polygon(outline([(-0.52, 0.0), (0.52, 0.0), (0.5, 0.14), (-0.5, 0.14)]), light.seen((30, 30, 34), z, 0.3))
    body = [(-0.5, 0.3), (-0.5, 0.8), (-0.42, 0.92), (0.2, 0.98), (0.46, 0.85), (0.5, 0.6), (0.5, 0.3)]
    canvas.polygon(outline(body), light.seen(paint, z), "car")
    canvas.polygon(outline([(-0.42, 0.9), (-0.32, 1.42), (0.04, 1.45), (0.24, 0.96)]), light.seen(paint, z, 0.6), "car")
    canvas.polygon(outline([(-0.36, 0.93), (-0.29, 1.33), (-0.12, 1.36), (-0.12, 0.95)]), glass, "car")
    canvas.polygon(outline([(-0.09, 0.95), (-0.09, 1.36), (0.03, 1.36), (0.19, 0.97)]), glass, "car")
    canvas.line(outline([(-0.49, 0.6), (0.49, 0.6)]), 0.03 * metre, light.seen(paint, z, 0.4), "car")
    for middle in outline([(-0.3, 0.33), (0.31, 0.33)]):
        for size, colour in ((0.66, _TYRE), (0.36, (140, 142, 146))):
            canvas.ellipse(middle, size * metre, size * metre, light.seen(colour, z, 0.5), "car")


def draw_truck(stage: Stage, x: float, z: float, tag: str = "truck") -> None:
    """A truck, or with the tag "bus" a bus, from behind; x is its middle."""
    long, high = (9.0, 3.6) if tag == "truck" else (10.0, 3.0)
    paint = stage.vary(stage.pick(_BIG_PAINTS), 8)
    _draw_shadow(stage, (x - 1.35, x + 1.35), (z - 0.2, z + long))
    for wheel in (x - 1.2, x + 0.75):
        draw_box(stage, (wheel, wheel + 0.45), (0, 0.9), (z + 0.2, z + 1.2), _TYRE, tag)
    draw_box(stage, (x - 1.25, x + 1.25), (0.6, high), (z, z + long), paint, tag)
    if tag == "bus":
        draw_face(stage, (x - 1.1, x + 1.1), (1.6, 2.7), z, _GLASS, 0.7, tag)
        edge = x - 1.25 if x > 0 else x + 1.25
        band = [(edge, 1.6, z + 0.3), (edge, 1.6, z + long), (edge, 2.6, z + long), (edge, 2.6, z + 0.3)]
        draw_quad(stage, band, _GLASS, 0.6, tag)
    else:
        for seam in (x - 1.22, x - 0.02, x + 1.17):
            draw_face(stage, (seam, seam + 0.05), (0.7, high), z, darker(paint, 0.6), 0.5, tag)
    for lamp in (x - 1.15, x + 0.85):
        draw_face(stage, (lamp, lamp + 0.3), (0.75, 0.95), z, (230, 40, 34), 0.8, tag)
