"""What the ground is made of: grass, rock and snow, water, sand, roads."""

from __future__ import annotations

import numpy as np

from pictopic.demo.scenes.land import Height, Land
from pictopic.demo.scenes.noise import CLOUDS, COLUMNS, HILLS, LEAVES, ROWS, SIZE, step
from pictopic.demo.scenes.plants import foliage
from pictopic.demo.scenes.stage import Stage
from pictopic.demo.scenes.view import Colour, mix, planes

Pair = tuple[Colour, Colour]  # a dark and a light shade

GRASS: list[Pair] = [
    ((58, 82, 34), (124, 142, 64)),
    ((96, 104, 48), (168, 160, 84)),
    ((74, 102, 44), (150, 172, 80)),
    ((120, 104, 62), (190, 168, 110)),
]
ROCK: list[Pair] = [
    ((78, 72, 68), (156, 146, 134)),
    ((92, 74, 60), (176, 150, 124)),
    ((62, 64, 70), (138, 140, 146)),
]
ASPHALT: list[Colour] = [(92, 92, 94), (120, 116, 110), (74, 75, 80), (138, 132, 124)]
PAVEMENT: list[Colour] = [(168, 162, 152), (140, 138, 136), (176, 158, 136)]


def shades(pair: Pair, part: np.ndarray) -> np.ndarray:
    """From the dark shade, at 0 and below, to the light one, at 1 and above."""
    return mix(pair[0], pair[1], np.clip(part, 0, 1))


def hills(stage: Stage, start: float, high: float, wide: float) -> Height:
    """Smooth hills that begin at a distance; lengths in metres."""
    x0, z0 = stage.rng.uniform(0, SIZE, 2)
    size = wide / 40

    def height(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        wavy = stage.noise.at(HILLS, x / size + x0, z / size + z0)
        return step(z, start * 0.5, start * 2) * high * np.clip(0.45 + 0.5 * wavy, 0, None)

    return height


def peaks(stage: Stage, start: float, high: float) -> Height:
    """Mountains with ridges and gullies that begin at a distance; lengths in metres."""
    size = start * stage.between(0.014, 0.026)
    x0, z0, x1, z1 = stage.rng.uniform(0, SIZE, 4)

    def height(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        u, v = x / size, z / size
        ridge = 1.15 - np.abs(stage.noise.at(HILLS, u + x0, v + z0))
        gully = 0.5 - np.abs(stage.noise.at(HILLS, u * 3.5 + x1, v * 3.5 + z1))
        crag = stage.noise.near(CLOUDS, u * 5 + z1 + 9 * SIZE, v * 5 + x1)
        shape = ridge * 0.8 + (gully * 0.3 + crag * 0.03) * np.clip(ridge, 0.2, 1)
        return step(z, start * 0.45, start * 1.5) * high * np.maximum(shape, -0.1)

    return height


def paint_mountains(stage: Stage, land: Land, start: float, high: float) -> None:
    """Rock, woods and snow on mountains that begin at a distance."""
    noise = stage.noise
    grain = land.grain(noise, LEAVES, 40)
    scale = 300 / start
    rough = noise.near(CLOUDS, land.x * scale + SIZE, (land.y + land.z * 0.3) * scale)
    level = land.y / high
    far = step(land.z, start * 0.45, start * 0.5)
    land.paint(stage, shades(stage.pick(ROCK), 0.5 + 0.2 * grain + 0.15 * rough), far, "peak", grain * 0.06)
    limit = stage.between(-0.3, 0.7)
    if limit > 0:
        woods = step(level + 0.1 * rough + land.steep * 0.12 - 0.12, limit, limit - 0.08) * far
        land.paint(
            stage, shades(foliage(stage), 0.3 + 0.3 * grain), woods, "tree" if limit > 0.35 else "peak", grain * 0.12
        )
    limit = stage.pick([stage.between(0.05, 0.5), stage.between(0.5, 1.0), 2.0], (0.4, 0.35, 0.25))
    if limit < 2:
        snow = step(level + 0.12 * rough - land.steep * 0.14, limit, limit + 0.06) * far
        land.paint(stage, (236, 240, 248), snow, "snow", grain * 0.03)


def paint_far_hills(stage: Stage, land: Land, start: float) -> None:
    """Meadows and woods on hills that begin at a distance."""
    leaves = foliage(stage)
    grain = land.grain(stage.noise, LEAVES, 40)
    far = step(land.z, start * 0.5, start * 0.6)
    woods = step(stage.noise.near(CLOUDS, land.x / start * 150 + SIZE, land.z / start * 60), 0.2, 0.5)
    land.paint(stage, shades(leaves, 0.5 - 0.4 * woods + 0.25 * grain), far, "hill", (0.1 + 0.1 * woods) * grain)


def paint_grass(stage: Stage, land: Land, mask: np.ndarray, tag: str = "grass") -> None:
    """Grass in patches."""
    blades = land.grain(stage.noise, LEAVES, 30)
    patches = stage.noise.near(CLOUDS, land.x * 2 + SIZE, land.z * 0.7)
    land.paint(stage, shades(stage.pick(GRASS), 0.45 + 0.22 * blades + 0.2 * patches), mask, tag, blades * 0.12)


def paint_water(stage: Stage, land: Land, mask: np.ndarray, tag: str, rough: float) -> None:
    """Sea or lake; rough from 0, a mirror, to 1."""
    light = stage.light
    deep = np.array(stage.vary(stage.pick([(28, 74, 104), (36, 96, 110), (54, 84, 96), (24, 58, 92)]), 8))
    waves = land.grain(stage.noise, LEAVES, 34, 5.0)
    flat = np.clip(1.1 - 2.7 / np.log1p(land.z), 0.05, 0.9)  # far away water reflects the sky
    reflected = np.clip(flat * 0.75 + 0.16 * waves * (0.3 + rough), 0, 1)
    colours = mix(deep * (light.sun * 0.6 + light.shade * 0.4), light.skyline * 0.7 + light.zenith * 0.3, reflected)
    if light.clouds < 0.3 and not light.night:
        sun = SIZE * (0.5 + 0.45 * light.side)
        glitter = np.exp(-(((COLUMNS - sun) / 34) ** 2)) * step(waves, 0.4, 0.8) * 0.75
        colours = mix(colours, light.sun * 225, glitter)
    stage.canvas.layer(light.far(colours, land.z * 0.3), mask * land.seen, tag, top=land.top)
    if rough > 0.3:
        gusts = stage.noise.near(CLOUDS, land.x + SIZE, land.z * 0.5)
        land.paint(stage, (232, 240, 244), step(waves + 0.4 * gusts, 2.4 - rough, 2.7 - rough) * mask, "wave")


def paint_rocks(stage: Stage, high: float | np.ndarray) -> None:
    """Rocks along the lower edge of the picture; their height in pixels may differ from column to column."""
    noise = stage.noise
    tops = high * np.clip(0.5 + 0.5 * noise.line(HILLS) + 0.1 * noise.line(CLOUDS), -0.2, 2)
    bumps = noise.field(CLOUDS)
    to_the_sun = bumps - np.roll(bumps, (2, -2 if stage.light.side > 0 else 2), (0, 1))
    colours = stage.light.on(shades(stage.pick(ROCK), 0.5 + bumps * 0.25), np.clip(0.45 + to_the_sun * 0.7, 0, 1))
    stage.canvas.layer(colours, np.clip(ROWS - SIZE + tops[None, :] + 0.5, 0, 1), "rock")


def paint_path(stage: Stage, land: Land, middle: np.ndarray, half: float, rough: np.ndarray | float = 0) -> None:
    """A path; `middle` is its x at each pixel, `half` of its width in metres."""
    grain = land.grain(stage.noise, LEAVES, 30)
    way = step(np.abs(land.x - middle) + 0.12 * half * grain, half, half * 0.75)
    land.paint(stage, shades(((116, 96, 74), (190, 168, 134)), 0.5 + 0.2 * grain), way, "path", 0.1 * grain + rough)


def paint_paving(stage: Stage, land: Land, mask: np.ndarray) -> None:
    """Slabs of a sidewalk."""
    grain = land.grain(stage.noise, LEAVES, 30)
    slabs = (np.floor(land.x / 0.8) + np.floor(land.z / 0.8)) % 2 * np.clip(12 / land.z, 0, 1)
    colour = stage.vary(stage.pick(PAVEMENT), 8)
    land.paint(stage, planes(colour, grain) * (1 + 0.06 * grain + 0.05 * slabs), mask, "sidewalk")


def paint_road(stage: Stage, land: Land, middle: np.ndarray | float, half: float, lanes: int) -> None:
    """A road with marked lanes; `middle` is its x at each pixel, `half` of its width in metres."""
    grain = land.grain(stage.noise, LEAVES, 30)
    across = land.x - middle
    pixel = np.maximum(land.z / 220, 0.02)  # in metres
    inside = np.clip((half - np.abs(across)) / pixel + 0.5, 0, 1)
    worn = 0.05 * np.cos(across / (2 * half) * lanes * 4 * np.pi)
    colours = planes(stage.vary(stage.pick(ASPHALT), 8), grain) * (1 + 0.07 * grain + worn)
    dashes = (land.z + stage.between(0, 9)) % 9 < 4.5
    lines = np.zeros_like(across)
    for k in range(lanes + 1):
        edge = k in (0, lanes)
        place = (half - 0.35) * (-1 if k == 0 else 1) if edge else half * (2 * k / lanes - 1)
        line = np.clip((0.09 - np.abs(across - place)) / pixel + 0.5, 0, 1)
        lines = np.maximum(lines, line if edge else line * dashes)
    colours = mix(colours, (226, 224, 212), lines * np.clip(60 / land.z, 0, 1) * 0.9)
    land.paint(stage, colours, inside, "road")
