"""High mountains."""

from __future__ import annotations

import numpy as np

from pictopic.demo.scenes.buildings import draw_house
from pictopic.demo.scenes.ground import hills, paint_grass, paint_mountains, paint_rocks, paint_water, peaks
from pictopic.demo.scenes.land import Height, flat_land, ground_at, see_land, slices
from pictopic.demo.scenes.noise import CLOUDS, EVERYWHERE, ROWS, step
from pictopic.demo.scenes.plants import Leaves, foliage, make_tree, plant, tree_line
from pictopic.demo.scenes.sky import paint_sky
from pictopic.demo.scenes.stage import Stage
from pictopic.demo.scenes.things import draw_birds
from pictopic.demo.scenes.view import planes


def draw_mountain(stage: Stage) -> None:
    """Mountains, with a meadow, woods, rocks, snow or a lake before them."""
    camera = stage.look(
        horizon=stage.between(120, 215), height=stage.between(4, 60), focal=stage.between(200, 340),
        centre=stage.between(90, 166),
    )  # fmt: skip
    start = stage.between(900, 3500)
    stage.see_as_far_as(2 * start)
    paint_sky(stage, camera.horizon)
    high = start * stage.between(0.35, 0.75)
    shape = peaks(stage, start, high)
    rolling = hills(stage, 20 * camera.height, stage.between(0.1, 1.5) * camera.height, 40 * camera.height)

    def height(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        return shape(x, z) + rolling(x, z)

    land = see_land(camera, stage.light, height, slices(2 * camera.height, start, start * 3, 50, 180))
    paint_grass(stage, land, land.everywhere)
    paint_mountains(stage, land, start, high)
    leaves = foliage(stage)
    front = stage.pick(["meadow", "lake", "woods", "rocks", "snow"], (0.25, 0.25, 0.25, 0.15, 0.1))
    if front == "lake":
        _paint_lake(stage, start, leaves)
    elif front == "rocks":
        paint_rocks(stage, stage.between(25, 60))
    else:
        if front == "snow":
            drifts = land.grain(stage.noise, CLOUDS, 40)
            land.paint(stage, (238, 242, 250), step(land.z, start * 0.55, start * 0.4), "snow", 0.1 * drifts)
        _plant_trees(stage, height, stage.count(8, 20) if front == "woods" else stage.count(0, 6), leaves)
    if stage.chance(0.2):
        _paint_fog(stage)
    if stage.chance(0.1):
        foot = (stage.between(40, 216), camera.horizon + stage.between(15, 40))
        draw_house(stage, foot, stage.between(14, 26), 300)
    if stage.chance(0.1):
        draw_birds(stage, 100)


def _paint_lake(stage: Stage, start: float, leaves: Leaves) -> None:
    shore = stage.camera.horizon + stage.between(4, 30)
    land = flat_land(stage.camera)
    paint_water(stage, land, np.clip(land.rows - shore + 0.5, 0, 1) * land.everywhere, "water", 0.1)
    if stage.chance(0.7):
        tree_line(stage, shore + 1, stage.between(4, 12), start * 0.3, leaves)


def _plant_trees(stage: Stage, height: Height, n: int, leaves: Leaves) -> None:
    tall = stage.camera.height
    trees = [make_tree(stage, stage.pick(["conifer", "conifer", "round"]), leaves) for _ in range(2)]
    for depth in np.sort(stage.rng.uniform(4, 25, n))[::-1].tolist():
        z = depth * tall
        x = stage.between(-0.65, 0.65) * z
        plant(stage, stage.pick(trees), (x, ground_at(height, x, z), z), stage.between(1.2, 2.4) * tall)


def _paint_fog(stage: Stage) -> None:
    """Clouds before the mountains."""
    level = stage.between(0.5, 0.95) * stage.camera.horizon
    band = np.exp(-(((ROWS - level) / stage.between(8, 20)) ** 2)) * step(stage.noise.field(CLOUDS, 4.0), -0.8, 0.6)
    stage.canvas.layer(planes(stage.light.haze, band) * EVERYWHERE, band * 0.9, "cloud")
