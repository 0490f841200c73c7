"""Trees, bushes, leaves and flowers."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from pictopic.demo.scenes.noise import CLOUDS, LEAVES, ROWS, SIZE, step
from pictopic.demo.scenes.stage import Stage
from pictopic.demo.scenes.view import Colour, Light, Place, mix

Leaves = tuple[Colour, Colour]  # dark and light ones

_FOLIAGE: dict[str, Leaves] = {
    "summer": ((38, 66, 30), (104, 132, 58)),
    "spring": ((70, 98, 40), (152, 172, 82)),
    "dark": ((22, 44, 30), (70, 96, 58)),
    "autumn": ((104, 60, 30), (204, 148, 66)),
    "dry": ((84, 80, 44), (158, 146, 88)),
    "olive": ((62, 70, 42), (132, 136, 84)),
}
_SEASONS = {"summer": 0.34, "spring": 0.16, "dark": 0.17, "autumn": 0.14, "dry": 0.07, "olive": 0.12}
_BARK: Leaves = ((52, 42, 34), (126, 106, 86))


def foliage(stage: Stage) -> Leaves:
    """Dark and light leaves of a random season."""
    return _FOLIAGE[stage.pick(list(_SEASONS), list(_SEASONS.values()))]


class Sprite(NamedTuple):
    """A small picture with transparent parts."""

    colours: np.ndarray  # (3, height, width)
    alpha: np.ndarray  # (height, width), from 0 to 1

    def image(self, light: Light, z: float) -> Image.Image:
        """As it looks from a distance in metres."""
        pixels = np.empty((*self.alpha.shape, 4), np.uint8)
        pixels[..., :3] = np.moveaxis(np.clip(light.far(self.colours, z), 0, 255), 0, 2)
        pixels[..., 3] = self.alpha * 255
        return Image.fromarray(pixels)


class _Crown(NamedTuple):
    """How a tree with leaves is built: size of the sprite, balls of leaves, trunk; shares of its size."""

    height: int
    width: int
    balls: int
    spread: float  # how far from the middle balls are
    top: float
    bottom: float
    radius: float
    flat: float  # height of a ball over its width
    trunk: float  # half of its width


_CROWNS = {
    "round": _Crown(88, 72, 10, 0.52, 0.22, 0.55, 0.4, 0.55, 0.06),
    "poplar": _Crown(96, 32, 6, 0.2, 0.24, 0.8, 0.5, 0.55, 0.12),
    "bush": _Crown(40, 64, 9, 0.62, 0.5, 0.85, 0.34, 1.0, 0.0),
    "conifer": _Crown(96, 48, 0, 0, 0, 0, 0, 0, 0.07),
}


def make_tree(stage: Stage, kind: str, leaves: Leaves) -> Sprite:
    """Draw a tree of a kind "round", "conifer", "poplar", "bush", "palm" or "bare"."""
    if kind in ("palm", "bare"):
        return _drawn_tree(stage, kind, leaves)
    crown = _CROWNS[kind]
    y, x = np.mgrid[0 : 1 : crown.height * 1j, -1 : 1 : crown.width * 1j].astype(np.float32)
    leafy = stage.noise.field(LEAVES)[: crown.height, : crown.width]
    density, lit = _conifer(stage, x, y) if kind == "conifer" else _heap_of_balls(stage, x, y, crown)
    alpha = step(density + leafy * 0.24, 0.05, 0.2)
    lit = np.clip(lit + leafy * 0.22, 0, 1)
    colours = stage.light.on(mix(stage.vary(leaves[0], 6), stage.vary(leaves[1], 10), lit), lit)
    if crown.trunk:
        trunk = (np.abs(x) < crown.trunk) & (y > 0.6) & (alpha < 0.5)
        round_ = np.clip(0.5 + x / crown.trunk * stage.light.side / 2, 0, 1)
        colours = np.where(trunk, stage.light.on(mix(*_BARK, round_), 0.5), colours)
        alpha = np.where(trunk, 1.0, alpha)
    return Sprite(colours, alpha)


def _heap_of_balls(stage: Stage, x: np.ndarray, y: np.ndarray, crown: _Crown) -> tuple[np.ndarray, np.ndarray]:
    """Density of leaves, and light on them."""
    density, lit = np.full_like(x, -1.0), np.zeros_like(x)
    for _ in range(crown.balls):
        radius = crown.radius * stage.between(0.7, 1.1)
        across = (x - stage.between(-crown.spread, crown.spread)) / radius
        down = (y - stage.between(crown.top, crown.bottom)) / (radius * crown.flat)
        ball = 1 - across * across - down * down
        in_front = ball > density
        density = np.where(in_front, ball, density)
        lit = np.where(in_front, 0.45 + 0.3 * across * stage.light.side - 0.35 * down, lit)
    return density, lit


def _conifer(stage: Stage, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    saw = (y * stage.between(6, 10)) % 1
    half = y * 0.85 * (0.6 + 0.4 * saw) * stage.between(0.8, 1.1) + 0.03
    density = np.where(y < 0.93, (half - np.abs(x)) * 1.5, -1)
    return density, 0.35 + 0.3 * x / half * stage.light.side + 0.25 * saw


def _drawn_tree(stage: Stage, kind: str, leaves: Leaves) -> Sprite:
    image = Image.new("RGBA", (192, 224))
    draw = ImageDraw.Draw(image)
    bark = _opaque(stage.light.seen((82, 68, 56), 0, 0.5))
    if kind == "palm":
        _draw_palm(stage, draw, bark, leaves)
    else:
        _draw_branch(stage, draw, (96, 224), -math.pi / 2, 68, 12, bark)
    pixels = np.moveaxis(np.asarray(image, np.float32), 2, 0)
    return Sprite(pixels[:3], pixels[3] / 255)


def _opaque(colour: Colour) -> tuple[int, ...]:
    return (*(min(max(int(part), 0), 255) for part in colour), 255)


def _draw_palm(stage: Stage, draw: ImageDraw.ImageDraw, bark: tuple[int, ...], leaves: Leaves) -> None:
    x, y = 96 + stage.between(-28, 28), 68.0
    draw.line([(96, 224), (96 + (x - 96) * 0.3, 140), (x, y)], fill=bark, width=7, joint="curve")
    for angle in stage.rng.uniform(0, 2 * np.pi, 26):
        right, down = math.cos(angle), math.sin(angle)
        shade = _opaque(stage.light.seen(leaves[stage.count(0, 1)], 0, stage.between(0.4, 0.9)))
        knee, tip = (x + 36 * right, y - 18 + 16 * down), (x + 66 * right, y + 12 + 30 * down)
        draw.polygon([(x, y), knee, tip, (knee[0], knee[1] + 8)], fill=shade)


def _draw_branch(
    stage: Stage, draw: ImageDraw.ImageDraw, foot: tuple[float, float], angle: float, length: float, width: float,
    colour: tuple[int, ...],
) -> None:  # fmt: skip
    """A branch and those that grow from it."""
    tip = (foot[0] + length * math.cos(angle), foot[1] + length * math.sin(angle))
    draw.line([foot, tip], fill=colour, width=max(int(width), 1))
    if length > 13:
        for turn in (stage.between(-0.7, -0.15), stage.between(0.15, 0.7)):
            _draw_branch(stage, draw, tip, angle + turn, length * stage.between(0.62, 0.82), width * 0.6, colour)


def plant(stage: Stage, sprite: Sprite, place: Place, height: float, tag: str = "tree") -> None:
    """Put a tree or bush, of a height in metres, at a place."""
    x, y = stage.camera.project([place])[0]
    tall = height * stage.camera.scale(place[2])
    if tall > 1.5:
        wide = tall * sprite.alpha.shape[1] / sprite.alpha.shape[0]
        stage.canvas.sprite(sprite.image(stage.light, place[2]), (x, y + 0.02 * tall), wide, tall, tag)


def tree_line(
    stage: Stage, base: float | np.ndarray, height: float, z: float, leaves: Leaves, tag: str = "tree"
) -> None:
    """Paint a row of trees far away.

    `base` is the row of the picture where they stand, perhaps one per column; their height is in pixels, their distance
    z in metres.
    """
    noise, light = stage.noise, stage.light
    outline = noise.line(CLOUDS) * 0.2 + noise.line(stage.pick([LEAVES, CLOUDS])) * 0.14
    tops = height * np.clip(0.75 + outline, 0.1, 1.5)
    base = np.broadcast_to(np.asarray(base, np.float32), (SIZE,))
    first, last = max(int((base - tops).min()), 0), min(int(base.max()) + 2, SIZE)
    if first >= last:
        return
    rows = ROWS[first:last]
    mask = np.clip(rows - (base - tops) + 0.5, 0, 1) * np.clip(base - rows + 0.5, 0, 1)
    up = (base - rows) / np.maximum(tops, 1)
    lit = np.clip(0.2 + 0.5 * up + 0.22 * noise.field(LEAVES)[first:last], 0, 1)
    stage.canvas.layer(light.far(light.on(mix(*leaves, lit), lit), z), mask, tag, top=first)


def paint_leaves(
    stage: Stage, leaves: Leaves, share: float | np.ndarray, slope: float, z: float, rows: int = SIZE
) -> None:
    """Paint leaves over a part of the picture.

    Parameters
    ----------
    share : float or array
        How much of the picture they cover, from -2, nothing, to 2, all of it; may differ from row to row.
    slope : float
        How rough they are; see `fractal`.
    z : float
        Distance in metres.
    rows : int, default=256
        How many rows of the picture, from the top.
    """
    noise, light = stage.noise, stage.light
    mask = step(noise.field(slope)[:rows] + share, -0.12, 0.12)
    lit = np.clip(0.5 + 0.2 * noise.field(LEAVES) + 0.25 * noise.field(CLOUDS) - ROWS / 1200, 0, 1)[:rows]
    stage.canvas.layer(light.far(light.on(mix(*leaves, lit), lit), z), mask, "leaves")


def paint_flowers(stage: Stage, top: float, n: int) -> None:
    """Scatter flowers below a row of the picture, larger in front."""
    colour = stage.pick([(228, 60, 60), (240, 220, 90), (245, 240, 240), (170, 110, 200), (240, 150, 180)])
    patches = stage.noise.field(CLOUDS)
    for x, depth in zip(stage.rng.uniform(0, SIZE, n), np.sort(stage.rng.uniform(0.1, 1, n)), strict=True):
        y = top + (SIZE - 1 - top) * depth
        if patches[int(y), int(x)] > -0.3:
            size = 1 + 3.6 * depth * depth
            shade = stage.light.seen(colour, 0, stage.between(0.5, 1))
            stage.canvas.ellipse((x, y), size, size * 0.8, shade, "flower")
