"""Towers, from below or from afar."""

from __future__ import annotations

import math

from pictopic.demo.scenes.buildings import Wall, choose_style, draw_tower, draw_wall
from pictopic.demo.scenes.ground import paint_grass, paint_paving, paint_road, paint_water
from pictopic.demo.scenes.land import flat_land
from pictopic.demo.scenes.noise import SIZE
from pictopic.demo.scenes.plants import foliage, make_tree, plant, tree_line
from pictopic.demo.scenes.sky import paint_sky
from pictopic.demo.scenes.stage import Stage
from pictopic.demo.scenes.things import draw_birds, draw_lamp
from pictopic.demo.scenes.vehicles import draw_car
from pictopic.demo.scenes.view import Camera


def draw_tallbuilding(stage: Stage) -> None:
    """One tower or several, with trees, low buildings, a road or water at their feet."""
    afar = stage.chance(0.4)
    camera = stage.look(
        height=stage.between(1.7, 20), focal=stage.between(200, 300), centre=stage.between(110, 150),
        tilt=stage.between(0.05, 0.25) if afar else stage.between(0.2, 0.55),
    )  # fmt: skip
    horizon = camera.horizon + camera.focal * math.tan(camera.tilt)
    paint_sky(stage, min(horizon, 300))
    n = stage.pick([3, 6, 9], (0.3, 0.4, 0.3)) if afar else stage.pick([1, 2, 4], (0.4, 0.35, 0.25))
    nearest, farthest = (140, 420) if afar else (35, 110)
    distances = sorted(stage.rng.uniform(nearest, farthest, n).tolist(), reverse=True)
    front = 0.9 * distances[-1]  # nothing of the town is nearer
    ground = stage.pick(["grass", "paving", "water" if afar else "road"], (0.3, 0.3, 0.4))
    if horizon < SIZE:
        _paint_ground(stage, ground, horizon, front)
    _draw_towers(stage, distances, afar)
    if ground == "road":
        for z in sorted(stage.rng.uniform(12, 45, stage.count(0, 4)).tolist(), reverse=True):
            draw_car(stage, stage.pick([-4.0, 0.0, 4.0]), z, stage.chance(0.5))
    _furnish(stage, front, ground)


def _paint_ground(stage: Stage, kind: str, horizon: float, front: float) -> None:
    """Grass or paving; before the towers perhaps a road or water."""
    camera = stage.camera
    land = flat_land(Camera(horizon, camera.height, camera.focal, camera.centre))
    if kind == "grass" or stage.chance(0.5):
        paint_grass(stage, land, land.everywhere)
    else:
        paint_paving(stage, land, land.everywhere)
    before = land._replace(seen=land.seen * (land.z < front))
    if kind == "road":
        paint_road(stage, before, 0.0, 6.0, 3)
    elif kind == "water":
        paint_water(stage, before, land.everywhere, "water", 0.2)


def _draw_towers(stage: Stage, distances: list[float], afar: bool) -> None:
    """Towers, the farthest first, and low buildings between them."""
    if stage.chance(0.6):
        _draw_low_buildings(stage, distances[0] * 1.1, 0.06)
    for z in distances:
        x = stage.between(-0.5, 0.5) * z if len(distances) > 1 else stage.between(-0.2, 0.2) * z
        high = z * (stage.between(0.25, 0.7) if afar else math.tan(stage.camera.tilt + stage.between(0.1, 0.42)))
        draw_tower(stage, x, z, min(z * stage.between(0.14, 0.42), 50), high)
    if stage.chance(0.35):
        _draw_low_buildings(stage, distances[-1] * 0.9, 0.1)


def _draw_low_buildings(stage: Stage, z: float, steep: float) -> None:
    """A row of buildings; `steep` is their height over their distance."""
    x = -0.8 * z
    while x < 0.8 * z:
        wide = stage.between(0.1, 0.3) * z
        if stage.chance(0.75):
            wall = Wall((x, z), (x + wide, z), max(steep * z * stage.between(0.5, 1.5), 4.0))
            draw_wall(stage, wall, choose_style(stage))
        x += wide


def _furnish(stage: Stage, front: float, ground: str) -> None:
    """Trees and street lights in front of the towers."""
    leaves = foliage(stage)
    kind = stage.pick(["line", "trees", "none"], (0.4, 0.35, 0.25))
    if kind == "line":
        foot = stage.camera.project([(0.0, 0.0, front)])[0][1]
        tree_line(stage, min(foot + 2, SIZE + 6), stage.between(8, 45), front, leaves)
    elif kind == "trees" and ground != "water":
        tree = make_tree(stage, stage.pick(["round", "round", "poplar", "bare", "palm"]), leaves)
        for _ in range(stage.count(1, 4)):
            z = stage.between(14, 30)
            plant(stage, tree, (stage.between(-0.5, 0.5) * z, 0.0, z), stage.between(6, 12))
    if ground != "water" and stage.chance(0.2):
        draw_lamp(stage, stage.between(-6, 6), 16, stage.pick([-1.5, 1.5]), 8)
    if stage.chance(0.08):
        draw_birds(stage, 100)
