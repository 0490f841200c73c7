"""Meadows and fields under a wide sky."""

from __future__ import annotations

import math

import numpy as np

from pictopic.demo.scenes.buildings import draw_house
from pictopic.demo.scenes.ground import (
    hills,
    paint_far_hills,
    paint_grass,
    paint_mountains,
    paint_path,
    paint_water,
    peaks,
)
from pictopic.demo.scenes.land import Height, Land, ground_at, see_land, slices
from pictopic.demo.scenes.noise import HILLS, LEAVES, step
from pictopic.demo.scenes.plants import foliage, make_tree, paint_flowers, plant, tree_line
from pictopic.demo.scenes.sky import paint_sky
from pictopic.demo.scenes.stage import Stage
from pictopic.demo.scenes.things import draw_birds, draw_cow, draw_fence, draw_hay, draw_person
from pictopic.demo.scenes.view import Colour

_CROPS: list[Colour] = [
    (202, 172, 96), (216, 196, 70), (122, 92, 66), (104, 140, 58), (150, 160, 84), (176, 146, 98),
]  # fmt: skip


def draw_opencountry(stage: Stage) -> None:
    """Meadows and fields, hills or mountains behind them, and what stands on them."""
    camera = stage.look(
        horizon=stage.between(75, 165), height=stage.between(1.7, 25), focal=stage.between(180, 300),
        centre=stage.between(90, 166),
    )  # fmt: skip
    paint_sky(stage, camera.horizon)
    start = stage.between(200, 1500)
    behind = stage.pick(["flat", "hills", "peaks"], (0.25, 0.5, 0.25))
    steep = {"flat": 0.004, "hills": stage.between(0.02, 0.12), "peaks": stage.between(0.15, 0.3)}[behind]
    shape = peaks(stage, start, start * steep) if behind == "peaks" else hills(stage, start, start * steep, start)
    rolling = hills(stage, 20, stage.between(0, 0.35) * camera.height + 0.4, 150)

    def height(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        return shape(x, z) + rolling(x, z)

    land = see_land(camera, stage.light, height, slices(2.5 * camera.height, start, start * 5, 80, 110))
    paint_grass(stage, land, land.everywhere)
    if behind == "peaks":
        paint_mountains(stage, land, start, start * steep)
    elif behind == "hills":
        paint_far_hills(stage, land, start)
    if stage.chance(0.6):
        _paint_fields(stage, land, start)
    _paint_ways(stage, land)
    _furnish(stage, land, height)


def _paint_fields(stage: Stage, land: Land, start: float) -> None:
    """Fields like a patchwork, ploughed or sown in rows."""
    tall, turn = stage.camera.height, stage.between(-0.6, 0.6)
    along = land.x * math.cos(turn) + land.z * math.sin(turn)
    away = land.z * math.cos(turn) - land.x * math.sin(turn)
    column = np.floor(along / (tall * stage.between(15, 60))).astype(int)
    row = np.floor(away / (tall * stage.between(8, 30))).astype(int)
    cell = (column * 7 + row * 13) % 11
    crops = np.array([stage.vary(stage.pick(_CROPS), 8) for _ in range(11)], np.float32).T
    grain = land.grain(stage.noise, LEAVES, 30)
    furrows = np.sin(along * 2 * np.pi / (tall * 0.35)) * np.clip(12 * tall / land.z, 0, 1)
    before_hills = step(land.z, start * 0.6, start * 0.45) * step(land.z, tall * 4, tall * 5)
    some = cell * 5 % 11 < stage.count(5, 11)
    land.paint(stage, crops[:, cell] * (1 + 0.09 * grain + 0.12 * furrows), some * before_hills, "field", 0.08 * grain)


def _paint_ways(stage: Stage, land: Land) -> None:
    """A river or a path, or neither."""
    tall = stage.camera.height
    turn = stage.between(-0.35, 0.35) * land.z
    if stage.chance(0.15):
        middle = stage.between(-4, 4) * tall + turn + 4 * tall * np.sin(land.z / tall / 6)
        river = step(np.abs(land.x - middle) / tall, 1.6, 1.45) * step(land.z, tall * 100, tall * 80)
        paint_water(stage, land, river, "water", 0.1)
    elif stage.chance(0.35):
        paint_path(stage, land, stage.between(-2, 2) * tall + turn + tall * np.sin(land.z / tall / 9), 0.8 * tall**0.7)


def _furnish(stage: Stage, land: Land, height: Height) -> None:
    """Trees, animals, houses, the farthest first; then fences and flowers in front."""
    camera, tall, leaves = stage.camera, stage.camera.height, foliage(stage)
    trees = [make_tree(stage, stage.pick(["round", "round", "conifer", "poplar", "bare"]), leaves) for _ in range(2)]
    if stage.chance(0.45):
        z = tall * stage.between(20, 60)
        row = camera.project([(0.0, ground_at(height, 0, z), z)])[0][1]
        tree_line(stage, row + 2 * stage.noise.line(HILLS), stage.between(3, 14), z, leaves)
    counts = {
        "tree": (stage.pick([0, 1, 3, 8], (0.2, 0.3, 0.3, 0.2)), 5, 45),
        "cow": (stage.pick([0, 2, 6], (0.75, 0.1, 0.15)), 6, 20),
        "hay": (stage.pick([0, 3, 8], (0.8, 0.1, 0.1)), 5, 25),
        "house": (stage.pick([0, 1, 3], (0.6, 0.25, 0.15)), 15, 40),
        "person": (stage.pick([0, 2], (0.8, 0.2)) if tall < 6 else 0, 3, 8),
    }
    things = [(stage.between(near, far) * tall, kind) for kind, (n, near, far) in counts.items() for _ in range(n)]
    larger = tall**0.6  # from high above only large things are seen, so a high camera gets larger ones
    for z, kind in sorted(things, reverse=True):
        x = stage.between(-0.6, 0.6) * z
        place = (x, ground_at(height, x, z), z)
        if land.hides(camera, place):
            continue
        point, metre = camera.project([place])[0], camera.scale(z) * larger
        if kind == "tree":
            plant(stage, stage.pick(trees), place, stage.between(4, 9) * larger)
        elif kind == "cow":
            draw_cow(stage, point, 2.2 * metre, z)
        elif kind == "hay":
            draw_hay(stage, point, 1.6 * metre, z)
        elif kind == "house":
            draw_house(stage, point, 10 * metre, z)
        else:
            draw_person(stage, place)
    if stage.chance(0.3):
        z, slant = stage.between(3, 8) * tall, stage.between(-0.5, 0.5)
        start, end = (
            (x, ground_at(height, x, far), far) for x, far in ((-0.8 * z, z + slant * z), (0.8 * z, z - slant * z))
        )
        draw_fence(stage, start, end, 1.2 * larger, stage.pick(["wood", "white"]))
    if stage.chance(0.25):
        paint_flowers(stage, camera.horizon + 20, stage.count(60, 240))
    if stage.chance(0.12):
        draw_birds(stage, camera.horizon)
