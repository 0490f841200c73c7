"""Inside a forest."""

from __future__ import annotations

import numpy as np

from pictopic.demo.scenes.ground import GRASS, Pair, paint_grass, paint_path, shades
from pictopic.demo.scenes.land import flat_land
from pictopic.demo.scenes.noise import CLOUDS, COLUMNS, EVERYWHERE, LEAVES, ROWS, SIZE, step
from pictopic.demo.scenes.plants import Leaves, foliage, make_tree, paint_leaves, plant, tree_line
from pictopic.demo.scenes.sky import paint_sky
from pictopic.demo.scenes.stage import Stage
from pictopic.demo.scenes.things import draw_person
from pictopic.demo.scenes.view import Point, mix, planes

_BARK: dict[str, Pair] = {
    "beech": ((58, 52, 44), (138, 128, 112)),
    "birch": ((120, 116, 110), (226, 222, 214)),
    "pine": ((66, 46, 36), (150, 110, 82)),
}
_THICK: dict[str, Point] = {"beech": (0.3, 0.8), "birch": (0.18, 0.35), "pine": (0.25, 0.5)}


def draw_forest(stage: Stage) -> None:
    """A forest from inside or, more rarely, its edge from outside."""
    leaves = foliage(stage)
    if stage.chance(0.18):
        _draw_edge(stage, leaves)
    else:
        _draw_inside(stage, leaves)


def _draw_edge(stage: Stage, leaves: Leaves) -> None:
    """Trees behind a meadow."""
    camera = stage.look(horizon=stage.between(105, 185), height=stage.between(1.6, 4), focal=stage.between(180, 260))
    paint_sky(stage, camera.horizon)
    land = flat_land(camera)
    paint_grass(stage, land, land.everywhere)
    tree_line(stage, camera.horizon + 4, stage.between(40, 130), 60, leaves)
    kinds = ["round", "round", "poplar"] if stage.chance(0.5) else ["conifer", "conifer", "round"]
    trees = [make_tree(stage, stage.pick(kinds), leaves) for _ in range(3)]
    for z in stage.distances(14, 45, stage.count(10, 18)):
        plant(stage, stage.pick(trees), (stage.between(-0.65, 0.65) * z, 0.0, z), stage.between(8, 17))
    if stage.chance(0.4):
        turn = stage.between(-0.2, 0.2)
        paint_path(stage, land._replace(seen=land.seen * (land.z < 14)), land.z * turn, stage.between(0.7, 1.2))


def _draw_inside(stage: Stage, leaves: Leaves) -> None:
    """Trunks and leaves, and what light comes through them."""
    camera = stage.look(horizon=stage.between(115, 195), height=1.6, focal=220)
    _paint_background(stage, leaves)
    paint_leaves(stage, leaves, -0.2 - (ROWS - camera.horizon) / 250, 1.2, 60)
    _paint_floor(stage, leaves)
    tree_line(stage, camera.horizon + 6, stage.between(8, 40), 50, leaves, "leaves")
    kind = stage.pick(list(_BARK), (0.5, 0.2, 0.3))
    for depth in stage.distances(0.1, 1, stage.count(7, 30)):
        z = max(60 * depth**1.3, 3.0)
        _draw_trunk(stage, stage.between(-0.6, 0.6) * z, z, kind)
        if stage.chance(0.1):
            paint_leaves(stage, leaves, stage.between(-1.9, -1.0) - (ROWS[:170] - 100) / 120, 1.0, z, 170)
    if stage.chance(0.5):
        bush = make_tree(stage, "bush", leaves)
        for z in stage.distances(4, 14, stage.count(2, 8)):
            plant(stage, bush, (stage.between(-0.6, 0.6) * z, 0.0, z), stage.between(0.6, 1.8), "bush")
    if stage.chance(0.12):
        z = stage.between(7, 16)
        draw_person(stage, (stage.between(-0.2, 0.2) * z, 0.0, z))
    if stage.chance(0.55):
        paint_leaves(stage, leaves, stage.between(-0.9, -0.1) - ROWS[:190] / 70, 0.9, 4, 190)
    if stage.light.clouds < 0.2 and stage.chance(0.35):
        _paint_rays(stage)


def _paint_background(stage: Stage, leaves: Leaves) -> None:
    """Leaves far away, more or less bright, and the sky between them."""
    light, noise = stage.light, stage.noise
    bright = light.skyline * 0.5 + light.on(leaves[1], 1.0) * 0.5
    part = stage.between(0.1, 1.3) - np.abs(ROWS - stage.camera.horizon) / 150 + 0.3 * noise.field(CLOUDS)
    stage.canvas.layer(mix(light.on(leaves[0], 0.4), bright, np.clip(part, 0, 1)), EVERYWHERE, "leaves")
    if stage.chance(0.6):
        gaps = step(noise.field(CLOUDS) + stage.between(-1.6, -0.3) - ROWS / 160, -0.12, 0.12)
        stage.canvas.layer(planes(light.skyline, gaps) * EVERYWHERE, gaps, "sky")


def _paint_floor(stage: Stage, leaves: Leaves) -> None:
    land = flat_land(stage.camera)
    grain = land.grain(stage.noise, LEAVES, 30)
    dappled = stage.noise.near(CLOUDS, land.x * 14 + SIZE, land.z * 8) * 0.3
    kind = stage.pick(["grass", "litter", "moss"])
    pair = {"grass": stage.pick(GRASS), "litter": ((70, 48, 32), (158, 118, 78)), "moss": leaves}[kind]
    tag = "leaves" if kind == "litter" else "grass"
    land.paint(stage, shades(pair, 0.4 + 0.25 * grain), land.everywhere, tag, dappled - 0.1)
    if stage.chance(0.4):
        bend = stage.between(-0.08, 0.08) * np.minimum(land.z, 40) ** 1.3
        paint_path(stage, land, stage.between(-0.5, 0.5) + bend, stage.between(0.7, 1.2), dappled - 0.05)


def _draw_trunk(stage: Stage, x: float, z: float, kind: str) -> None:
    """A trunk that goes up out of the picture."""
    (foot_x, foot_y), scale = stage.camera.project([(x, 0.0, z)])[0], stage.camera.scale(z)
    wide, lean = stage.between(*_THICK[kind]) * scale, stage.rng.normal(0, 0.03)
    middle = foot_x + (foot_y - ROWS) * lean + 1.5 * np.sin(ROWS / 40 + x)
    roots = np.exp(np.minimum(ROWS - foot_y, 0) / (0.25 * scale + 1))
    half = wide / 2 * (0.75 + 0.25 * ROWS / foot_y + 0.6 * roots)
    left, right = max(int((middle - half).min()) - 1, 0), min(int((middle + half).max()) + 2, SIZE)
    if right <= left:
        return
    columns = COLUMNS[:, left:right]
    across = (columns - middle) / half
    mask = np.clip((1 - np.abs(across)) * half + 0.5, 0, 1) * np.clip(foot_y - ROWS + 0.5, 0, 1)
    bark = stage.noise.near(LEAVES, columns * 6 / max(wide / 8, 1) + SIZE, ROWS * 0.6 + x * 50 + 40 * SIZE)
    if kind == "birch":
        scars = stage.noise.near(LEAVES, columns * 0.5 + SIZE, ROWS * 4 + x * 60 + 40 * SIZE) > 1.1
        bark = np.where(scars, -3.0, bark * 0.4)
    lit = np.clip(0.4 + 0.45 * across * stage.light.side + 0.12 * bark, 0, 1)
    colours = stage.light.far(stage.light.on(shades(_BARK[kind], 0.45 + 0.28 * bark), lit), z * 3)
    stage.canvas.layer(colours, mask, "trunk" if wide > 3 else "tree", left)
    if kind != "birch" and stage.chance(0.5):
        _draw_boughs(stage, (foot_x, foot_y), lean, scale, wide, stage.light.seen(_BARK[kind][0], z * 3, 0.4))


def _draw_boughs(
    stage: Stage, foot: Point, lean: float, scale: float, wide: float, colour: tuple[float, float, float]
) -> None:
    for _ in range(stage.count(1, 4)):
        y = stage.between(0, foot[1] * 0.7)
        x = foot[0] + (foot[1] - y) * lean
        reach, rise = stage.pick([-1, 1]) * stage.between(0.8, 2.5) * scale, stage.between(-0.1, 0.5)
        bough = [(x, y), (x + reach * 0.5, y - abs(reach) * 0.1), (x + reach, y - abs(reach) * rise)]
        stage.canvas.line(bough, max(wide * 0.12, 0.6), colour, "tree")


def _paint_rays(stage: Stage) -> None:
    """Beams of sunlight between the trees."""
    slant = COLUMNS + ROWS * stage.light.side * stage.between(0.3, 0.9)
    beams = step(stage.noise.near(CLOUDS, slant * 0.8 + 2 * SIZE, 0 * slant + 7), 0.2, 1.2) * np.clip(
        1 - ROWS / 230, 0, 1
    )
    stage.canvas.layer(planes(stage.light.sun * 225, beams) * EVERYWHERE, beams * stage.between(0.15, 0.4))
