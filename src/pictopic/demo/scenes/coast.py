"""The sea and its shores."""

from __future__ import annotations

import numpy as np

from pictopic.demo.scenes.ground import (
    ROCK,
    Pair,
    hills,
    paint_grass,
    paint_mountains,
    paint_rocks,
    paint_water,
    peaks,
    shades,
)
from pictopic.demo.scenes.land import Land, flat_land, see_land, slices
from pictopic.demo.scenes.noise import COLUMNS, HILLS, LEAVES, SIZE, step
from pictopic.demo.scenes.plants import foliage, make_tree, plant
from pictopic.demo.scenes.sky import paint_sky
from pictopic.demo.scenes.stage import Stage
from pictopic.demo.scenes.things import draw_birds, draw_boat, draw_lighthouse, draw_person, draw_umbrella

_SAND: list[Pair] = [
    ((150, 124, 88), (226, 204, 160)),
    ((170, 160, 144), (228, 222, 208)),
    ((110, 98, 84), (176, 162, 140)),
]


def draw_coast(stage: Stage) -> None:
    """Sea, with a beach, rocks or a headland."""
    camera = stage.look(
        horizon=stage.between(70, 165), height=stage.between(2, 14), focal=stage.between(180, 280),
        centre=stage.between(90, 166),
    )  # fmt: skip
    paint_sky(stage, camera.horizon)
    sea = flat_land(camera)
    paint_water(stage, sea, sea.everywhere, "sea", stage.between(0, 1.1))
    side = stage.pick([-1.0, 1.0])
    behind = stage.pick(["open", "hills", "peaks", "headland"], (0.34, 0.2, 0.16, 0.3))
    if behind != "open":
        _paint_far_shore(stage, behind, side)
    for _ in range(stage.pick([0, 1, 2, 4], (0.5, 0.25, 0.15, 0.1))):
        depth = stage.between(0.02, 0.25)
        draw_boat(stage, (stage.between(15, 240), camera.horizon + depth * 120), 8 + 90 * depth, 400)
    front = stage.pick(["sea", "sand", "rock"], (0.2, 0.55, 0.25))
    if front == "sand":
        _paint_beach(stage, sea, side)
    elif front == "rock":
        slope = (COLUMNS[0] - SIZE / 2) * side * stage.between(0, 0.5)
        paint_rocks(stage, np.clip(stage.between(25, 70) + slope, 0, 150))
    if stage.chance(0.6 if front == "sea" else 0.25):
        draw_birds(stage, camera.horizon)


def _paint_far_shore(stage: Stage, kind: str, side: float) -> None:
    """Land behind the sea: hills or mountains along the horizon, or a headland on one side."""
    start = stage.between(300, 3000)
    steep = {"hills": (0.04, 0.12), "peaks": (0.12, 0.3), "headland": (0.1, 0.3)}[kind]
    high = start * stage.between(*steep)
    shape = peaks(stage, start, high) if kind == "peaks" else hills(stage, start, high * 1.5, start)
    reach = stage.between(-0.15, 0.2)

    def height(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        if kind != "headland":
            return shape(x, z) - high * 0.15
        rise = step(side * x / z, reach, reach + 0.3) * step(z, start * 0.45, start * 0.6)
        return (shape(x, z) + high * 0.5) * rise - high * 0.06

    land = see_land(stage.camera, stage.light, height, slices(start * 0.4, start, start * 4, 10, 130))
    land = land._replace(seen=land.seen * step(land.y, 0, 1) * (land.z > start * 0.42))
    if kind == "peaks":
        paint_mountains(stage, land, start, high)
        return
    grain = land.grain(stage.noise, LEAVES, 40)
    tag = "hill" if kind == "hills" else "cliff"
    land.paint(stage, shades(stage.pick(ROCK), 0.5 + grain * 0.3), land.everywhere, tag, grain * 0.1)
    green = step(grain * 0.2 - land.steep * stage.between(0.3, 1.5), -0.8, -0.5)
    land.paint(stage, shades(foliage(stage), 0.4 + grain * 0.3), green, "hill", grain * 0.1)
    if kind == "headland" and stage.chance(0.15):
        column = int(SIZE / 2 + side * stage.between(50, 110))
        rows = np.flatnonzero(land.seen[:, column])
        if len(rows):
            draw_lighthouse(stage, (column, land.top + rows[0] + 2), stage.between(22, 44), start)


def _paint_beach(stage: Stage, sea: Land, side: float) -> None:
    """Sand with breaking waves before it."""
    camera = stage.camera
    row = stage.between(camera.horizon + 25, 235)  # where the water ends, in the middle of the picture
    line = camera.focal * camera.height / (row - camera.horizon)
    slant = stage.between(0, 2.2) * side
    bay = stage.noise.near(HILLS, sea.x * 30 / line + SIZE, sea.z * 6 / line)
    ashore = (line + sea.x * slant - sea.z) / sea.z + 0.07 * bay
    grain = sea.grain(stage.noise, LEAVES, 30)
    foam = sea.grain(stage.noise, LEAVES, 34, 5.0)
    for distance in (0.0, stage.between(0.12, 0.2), stage.between(0.28, 0.45)):
        breaker = np.exp(-(((ashore + distance + 0.05) / 0.035) ** 2)) * step(
            foam, -0.6 + 2 * distance, 0.6 + 2 * distance
        )
        sea.paint(stage, (238, 242, 242), breaker, "wave")
    dry = step(ashore, 0.05, 0.25)
    dark, pale = stage.pick(_SAND)
    wet = (dark[0] * 0.75, dark[1] * 0.75, dark[2] * 0.75)
    sea.paint(
        stage, shades((wet, pale), 0.1 + 0.7 * dry + 0.1 * grain), step(ashore, -0.02, 0.02), "sand", grain * 0.06
    )
    if stage.chance(0.25):
        paint_grass(stage, sea, step(ashore + 0.25 * bay + 0.1 * grain, 0.9, 1.1))
    elif stage.chance(0.25):
        paint_rocks(stage, stage.between(10, 40))
    _furnish_beach(stage, line, slant)


def _furnish_beach(stage: Stage, line: float, slant: float) -> None:
    """People, sunshades and palms."""

    def on_sand() -> tuple[float, float, float]:
        z = line * stage.between(0.45, 0.85)
        x = stage.between(-0.5, 0.5) * z
        return x, 0.0, min(z, max((line + x * slant) * 0.9, 2.0))

    if stage.chance(0.18):
        palm = make_tree(stage, "palm", foliage(stage))
        for _ in range(stage.count(1, 3)):
            plant(stage, palm, on_sand(), stage.between(0.3, 0.6) * line)
    if stage.chance(0.25):
        for _ in range(stage.count(1, 4)):
            place = on_sand()
            size = min(max(2.0 * stage.camera.scale(place[2]), 9), 40)
            draw_umbrella(stage, stage.camera.project([place])[0], size)
    for _ in range(stage.pick([0, 2, 5], (0.5, 0.3, 0.2))):
        place = on_sand()
        if place[2] > 8:
            draw_person(stage, place)
