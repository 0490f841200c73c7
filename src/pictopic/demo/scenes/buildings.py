"""Walls with windows, doors and shops; houses and towers."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pictopic.demo.scenes.canvas import placed
from pictopic.demo.scenes.noise import SIZE
from pictopic.demo.scenes.stage import Span, Stage, draw_quad
from pictopic.demo.scenes.view import Colour, Place, Point, darker

PLASTER: list[Colour] = [
    (196, 178, 150), (170, 120, 96), (205, 198, 186), (150, 92, 74), (186, 160, 118), (160, 164, 166),
    (132, 108, 92), (214, 190, 160), (176, 142, 132), (140, 150, 158),
]  # fmt: skip


@dataclass(frozen=True)
class Style:
    """How a wall looks; lengths in metres."""

    colour: Colour
    storey: float  # height of a storey
    bay: float  # width of a bay, with one window
    window: tuple[float, float]  # width and height of a window, as shares of bay and storey
    glass: Colour = (58, 68, 80)
    frame: Colour | None = None  # of the windows
    ground: str = "windows"  # what is on street level: "windows", "shops" or "doors"
    balconies: float = 0.0  # how often a window has one
    ledges: bool = False  # between storeys
    shutters: bool = False


@dataclass(frozen=True)
class Wall:
    """An upright wall from one place (x, z) to another: the left end, as seen from outside, first."""

    start: Point
    end: Point
    high: float

    @cached_property
    def wide(self) -> float:
        """In metres."""
        return math.dist(self.start, self.end)

    @cached_property
    def along(self) -> Point:
        """Direction from start to end."""
        return (self.end[0] - self.start[0]) / self.wide, (self.end[1] - self.start[1]) / self.wide

    def place(self, u: float, v: float, out: float = 0.0) -> Place:
        """A place u metres from the start, v metres above the ground and `out` metres in front of the wall."""
        (x, z), (right, away) = self.start, self.along
        return x + right * u + away * out, v, z + away * u - right * out

    def places(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Many places, (..., 3)."""
        return np.stack([self.start[0] + self.along[0] * u, v, self.start[1] + self.along[1] * u], axis=-1)

    def lit(self, side: float) -> float:
        """How much sun falls on it."""
        return min(max(0.5 + 0.45 * self.along[1] * side + 0.15 * self.along[0], 0.05), 1)

    def faces_camera(self) -> bool:
        """Whether one sees its outside."""
        return self.along[1] * self.start[0] - self.along[0] * self.start[1] < 0


def draw_patch(
    stage: Stage,
    wall: Wall,
    u: Span,
    v: Span,
    colour: Colour,
    tag: str | None,
    out: float = 0.0,
    lit: float | None = None,
) -> None:
    """A rectangle on a wall, or some metres in front of it."""
    corners = [wall.place(u[0], v[0], out), wall.place(u[1], v[0], out), wall.place(u[1], v[1], out)]
    lit = wall.lit(stage.light.side) if lit is None else lit
    draw_quad(stage, [*corners, wall.place(u[0], v[1], out)], colour, lit, tag)


def choose_style(stage: Stage, ground: str = "windows") -> Style:
    """A random style of city buildings."""
    colour = stage.vary(stage.pick(PLASTER), 14)
    return Style(
        colour=colour,
        storey=stage.between(2.9, 3.9),
        bay=stage.between(2.2, 3.8),
        window=(stage.between(0.35, 0.62), stage.between(0.45, 0.68)),
        glass=stage.pick([(58, 68, 80), (44, 48, 54), (96, 112, 128)]),
        frame=stage.pick([(225, 222, 214), (70, 60, 52), darker(colour, 0.75)]),
        ground=ground,
        balconies=stage.pick([0.0, 0.35, 0.8], (0.6, 0.25, 0.15)),
        ledges=stage.chance(0.5),
        shutters=stage.chance(0.25),
    )


def draw_wall(stage: Stage, wall: Wall, style: Style) -> None:
    """A wall with its windows, and what is on street level."""
    left, right = stage.camera.project([wall.place(0, 0), wall.place(wall.wide, 0)])
    if max(left[0], right[0]) < 0 or min(left[0], right[0]) > SIZE:
        return
    everywhere = (0.0, wall.wide)
    draw_patch(stage, wall, everywhere, (0, wall.high), style.colour, "building")
    pixels = abs(right[0] - left[0]) / wall.wide  # a metre, on average
    first = style.storey * 1.15 if style.ground != "windows" else 0.0
    if pixels > 2 and style.ledges:
        for level in np.arange(max(first, style.storey), wall.high, style.storey).tolist():
            draw_patch(stage, wall, everywhere, (level - 0.12, level + 0.1), darker(style.colour, 1.12), None, 0.1)
    draw_patch(stage, wall, everywhere, (wall.high - 0.45, wall.high), darker(style.colour, 0.8), None, 0.25)
    _draw_windows(stage, wall, style, first)
    if first and pixels > 0.7:
        _draw_street_level(stage, wall, style, first)


def _draw_windows(stage: Stage, wall: Wall, style: Style, first: float) -> None:
    """All windows of a wall, from a height on."""
    columns, storeys = _grid(stage, wall, style, first)
    if not columns or not storeys:
        return
    bay, storey = wall.wide / columns, (wall.high - 0.6 - first) / storeys
    half, tall = bay * style.window[0] / 2, storey * style.window[1]
    middles, lows = np.meshgrid((np.arange(columns) + 0.5) * bay, first + np.arange(storeys) * storey)
    middles, lows = middles.ravel(), lows.ravel() + (storey - tall) * 0.55
    sides, levels = np.array([-1, 1, 1, -1]), np.array([0, 0, 1, 1])
    glass = wall.places(middles[:, None] + sides * half, lows[:, None] + levels * tall)
    points = stage.camera.project_all(glass)
    seen = ((points.max(axis=1) > 0) & (points.min(axis=1) < SIZE)).all(axis=1)
    width = np.ptp(points[:, :, 0], axis=1)
    z = (wall.start[1] + wall.end[1]) / 2
    shown = np.flatnonzero(seen & (width > 0.5))
    colours = _glass_colours(stage, style, len(middles)).tolist()
    frame = None if style.frame is None else stage.light.seen(style.frame, z, wall.lit(stage.light.side))
    for k in shown.tolist():
        corners = points[k].tolist()
        if frame and width[k] > 2.5:
            rim = max(0.05 * width[k], 0.6)
            stage.canvas.line([*corners, corners[0]], 2 * rim, frame, "building")
        stage.canvas.polygon(corners, colours[k], "window")
        if width[k] > 4:
            _draw_extras(stage, wall, style, (middles[k], lows[k]), (half, tall), frame)


def _grid(stage: Stage, wall: Wall, style: Style, first: float) -> tuple[int, int]:
    """How many windows a wall has beside and above each other; from afar one sees fewer and larger ones."""
    left, right, top = stage.camera.project([wall.place(0, 0), wall.place(wall.wide, 0), wall.place(0, wall.high)])
    columns = min(max(int(wall.wide / style.bay), 1), int(abs(right[0] - left[0]) / 4))
    storeys = min(int((wall.high - 0.6 - first) / style.storey), int((left[1] - top[1]) / 4))
    return columns, storeys


def _draw_extras(stage: Stage, wall: Wall, style: Style, corner: Point, size: Point, frame: Colour | None) -> None:
    """What a large enough window has: a bar, shutters, a balcony."""
    (middle, low), (half, tall) = corner, size
    if frame:
        bar = stage.camera.project([wall.place(middle, low), wall.place(middle, low + tall)])
        stage.canvas.line(bar, 0.7, frame)
    if style.shutters:
        for side in (-1.5, 1.5):
            u = middle + side * half + 0.1 * side
            draw_patch(stage, wall, (u - half * 0.45, u + half * 0.45), (low, low + tall), (70, 84, 72), "window")
    if stage.chance(style.balconies):
        _draw_balcony(stage, wall, (middle - half - 0.35, middle + half + 0.35), low - 0.15)


def _glass_colours(stage: Stage, style: Style, n: int) -> np.ndarray:
    """Windows reflect the sky more or less; at night some are bright."""
    reflected = np.clip(stage.between(0, 0.6) + stage.rng.normal(0, 0.12, (n, 1)), 0, 0.9)
    colours = np.asarray(style.glass) * stage.light.shade * 1.3 * (1 - reflected) + stage.light.skyline * reflected
    if stage.light.night:
        bright = stage.rng.random((n, 1)) < 0.4
        colours = np.where(bright, np.array([250, 210, 130]) * stage.rng.uniform(0.6, 1, (n, 1)), colours)
    return colours


def _draw_balcony(stage: Stage, wall: Wall, u: Span, v: float) -> None:
    draw_patch(stage, wall, u, (v - 0.15, v), (150, 146, 140), "balcony", 0.7, 0.3)
    draw_patch(stage, wall, u, (v, v + 0.85), (84, 82, 80), "balcony", 0.75)
    for x in np.arange(u[0] + 0.15, u[1], 0.3).tolist():
        draw_patch(stage, wall, (x, x + 0.1), (v + 0.08, v + 0.75), (165, 160, 152), "balcony", 0.76)


def _draw_street_level(stage: Stage, wall: Wall, style: Style, high: float) -> None:
    """Shops, doors and windows side by side."""
    at = 0.4
    while at < wall.wide - 1.4:
        if style.ground == "shops" and stage.chance(0.65) and wall.wide - at > 3:
            wide = min(stage.between(2.8, 5.0), wall.wide - at - 0.3)
            _draw_shop(stage, wall, (at, at + wide), high)
            at += wide + 0.4
        elif stage.chance(0.5):
            _draw_door(stage, wall, (at + 0.2, at + 1.4), min(high - 0.5, 2.5))
            at += 1.9
        else:
            draw_patch(stage, wall, (at + 0.3, at + 1.7), (0.9, high - 0.8), style.glass, "window")
            draw_patch(stage, wall, (at + 0.97, at + 1.03), (0.9, high - 0.8), darker(style.colour, 0.7), None)
            at += 2.1


def _draw_door(stage: Stage, wall: Wall, u: Span, high: float) -> None:
    colour = stage.pick([(92, 56, 36), (40, 62, 52), (120, 40, 36), (48, 58, 84), (150, 130, 100)])
    draw_patch(stage, wall, (u[0] - 0.15, u[1] + 0.15), (0, high + 0.2), (206, 200, 190), "building")
    draw_patch(stage, wall, u, (0, high), colour, "door")
    middle = (u[0] + u[1]) / 2
    for panel in ((u[0] + 0.12, middle - 0.08), (middle + 0.08, u[1] - 0.12)):
        draw_patch(stage, wall, panel, (0.3, high * 0.45), darker(colour, 0.75), "door")
        draw_patch(stage, wall, panel, (high * 0.52, high - 0.25), darker(colour, 0.75), "door")


def _draw_shop(stage: Stage, wall: Wall, u: Span, high: float) -> None:
    """A shop window and a door, with a board above them, and perhaps an awning."""
    trims: list[Colour] = [(60, 42, 36), (36, 56, 66), (120, 36, 36), (40, 70, 50), (190, 180, 160)]
    draw_patch(stage, wall, u, (0, high - 0.2), stage.vary(stage.pick(trims), 6), "shop")
    bright = stage.light.night or stage.chance(0.3)
    glass: Colour = (240, 210, 150) if bright else (64, 72, 80)
    lit = 1.0 if bright else None
    split = u[0] + (u[1] - u[0]) * stage.between(0.55, 0.75)
    draw_patch(stage, wall, (u[0] + 0.15, split - 0.1), (0.5, high - 1.0), glass, "shop", lit=lit)
    draw_patch(stage, wall, (split + 0.1, u[1] - 0.15), (0.1, high - 1.0), glass, "door", lit=lit)
    for _ in range(stage.count(3, 7)):  # on display
        at, size = stage.between(u[0] + 0.2, split - 0.5), stage.between(0.2, 0.5)
        red, green, blue = stage.rng.uniform(40, 220, 3).tolist()
        draw_patch(stage, wall, (at, at + size), (0.55, 0.6 + size * 1.6), (red, green, blue), "shop")
    end = u[0] + 0.3 + (u[1] - u[0]) * stage.between(0.3, 0.8)
    draw_patch(stage, wall, (u[0] + 0.3, end), (high - 0.72, high - 0.42), (236, 230, 210), "sign")
    if stage.chance(0.5):
        _draw_awning(stage, wall, u, high - 0.9)


def _draw_awning(stage: Stage, wall: Wall, u: Span, v: float) -> None:
    colours: list[Colour] = [stage.pick([(170, 50, 44), (50, 90, 70), (60, 80, 130), (200, 160, 80)]), (232, 226, 212)]
    edges = np.linspace(u[0], u[1], 9).tolist()
    lit = min(wall.lit(stage.light.side) + 0.2, 1)
    for k, (left, right) in enumerate(itertools.pairwise(edges)):
        stripe = [
            wall.place(left, v - 0.6, 1.1),
            wall.place(right, v - 0.6, 1.1),
            wall.place(right, v),
            wall.place(left, v),
        ]
        draw_quad(stage, stripe, colours[k % 2], lit, "shop")


def draw_house(stage: Stage, foot: Point, size: float, z: float) -> None:
    """A house far away; size in pixels."""
    canvas, light = stage.canvas, stage.light
    wall = stage.vary(stage.pick([(230, 224, 210), (170, 90, 70), (190, 170, 140), (150, 60, 50)]), 6)
    roof = stage.vary(stage.pick([(140, 70, 52), (90, 84, 84), (110, 90, 76)]), 6)
    front = [(-0.5, 0), (0.25, 0), (0.25, 0.45), (-0.5, 0.45)]
    canvas.polygon(placed(front, foot, size), light.seen(wall, z, 0.75), "house")
    gable = [(0.25, 0), (0.5, 0.03), (0.5, 0.45), (0.38, 0.79), (0.25, 0.45)]
    canvas.polygon(placed(gable, foot, size), light.seen(wall, z, 0.4 if light.side < 0 else 0.85), "house")
    top = [(-0.55, 0.43), (0.24, 0.43), (0.38, 0.81), (-0.42, 0.81)]
    canvas.polygon(placed(top, foot, size), light.seen(roof, z, 0.8), "house")
    if size > 14:
        for u in (-0.38, -0.12, 0.1):
            window = [(u, 0.34), (u + 0.1, 0.34), (u + 0.1, 0.16), (u, 0.16)]
            canvas.polygon(placed(window, foot, size), light.seen((60, 66, 76), z), "house")


def draw_tower(stage: Stage, x: float, z: float, wide: float, high: float) -> None:
    """A tall building, turned so that one sees two of its sides."""
    turn, deep = stage.between(-0.75, 0.75), wide * stage.between(0.6, 1)
    right, away = math.cos(turn), math.sin(turn)
    corners = [(-wide / 2, 0.0), (wide / 2, 0.0), (wide / 2, deep), (-wide / 2, deep)]
    corners = [(x + u * right - v * away, z + u * away + v * right) for u, v in corners]
    style = _tower_style(stage)
    walls = [Wall(start, end, high) for start, end in zip(corners, [*corners[1:], corners[0]], strict=True)]
    for wall in sorted(walls, key=lambda wall: -wall.start[1] - wall.end[1]):
        if wall.faces_camera():
            draw_wall(stage, wall, style)
    if stage.chance(0.3):
        middle = (corners[0][0] + corners[2][0]) / 2, (corners[0][1] + corners[2][1]) / 2
        top = stage.between(1.1, 1.3) * high
        mast = stage.camera.project([(middle[0], high, middle[1]), (middle[0], top, middle[1])])
        width = max(0.5 * stage.camera.scale(z), 0.8)
        stage.canvas.line(mast, width, stage.light.seen((120, 124, 130), z, 0.5), "building")


def _tower_style(stage: Stage) -> Style:
    kind = stage.pick(["glass", "concrete", "brick", "bands"])
    if kind == "glass":
        tint = stage.vary(stage.pick([(70, 100, 130), (60, 80, 84), (110, 130, 145), (50, 56, 66)]), 10)
        return Style(darker(tint, 1.25), 3.6, stage.between(1.8, 3), (0.86, 0.84), glass=tint)
    if kind == "bands":
        return Style(stage.vary((196, 192, 184), 16), 3.5, stage.between(4, 7), (0.97, 0.5), glass=(50, 58, 68))
    colour = stage.vary(stage.pick(PLASTER), 14)
    size = (stage.between(0.4, 0.65), stage.between(0.42, 0.65))
    return Style(colour, 3.3, stage.between(2.2, 4), size, ledges=kind == "concrete" and stage.chance(0.5))
