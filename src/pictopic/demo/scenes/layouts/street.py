"""A street between two rows of buildings."""

from __future__ import annotations

import itertools

import numpy as np

from pictopic.demo.scenes.buildings import Wall, choose_style, draw_patch, draw_wall
from pictopic.demo.scenes.ground import paint_paving, paint_road
from pictopic.demo.scenes.land import flat_land
from pictopic.demo.scenes.plants import Leaves, foliage, make_tree, plant, tree_line
from pictopic.demo.scenes.sky import paint_sky
from pictopic.demo.scenes.stage import Stage
from pictopic.demo.scenes.things import draw_fence, draw_lamp, draw_person, draw_round_sign
from pictopic.demo.scenes.vehicles import draw_car, draw_truck


def draw_street(stage: Stage) -> None:
    """A street with cars, people, trees and lights."""
    camera = stage.look(
        horizon=stage.between(115, 165), height=stage.between(1.5, 3.2), focal=stage.between(170, 250),
        centre=stage.between(75, 181),
    )  # fmt: skip
    paint_sky(stage, camera.horizon)
    half, walk, end = stage.between(2.6, 6), stage.between(1.5, 3.5), stage.between(45, 110)
    middle = stage.between(-0.6, 0.6) * half
    leaves = foliage(stage)
    _close(stage, end, leaves)
    land = flat_land(camera)
    paint_paving(stage, land, land.everywhere)
    paint_road(stage, land, middle, half, 2)
    for side in (-1, 1):
        x = middle + side * (half + walk)
        if stage.chance(0.88):
            _draw_row(stage, side, x, end)
        else:
            _draw_park(stage, side, x, end, leaves)
    _furnish(stage, middle, half, walk, end, leaves)


def _close(stage: Stage, end: float, leaves: Leaves) -> None:
    """What one sees at the end of the street."""
    kind = stage.pick(["sky", "trees", "building", "hill"], (0.2, 0.35, 0.3, 0.15))
    low = stage.camera.horizon + 2
    if kind == "building":
        draw_wall(stage, Wall((-25, end + 8), (25, end + 8), stage.between(8, 22)), choose_style(stage))
    elif kind == "trees":
        tree_line(stage, low, stage.between(8, 28), end, leaves)
    elif kind == "hill":
        tree_line(stage, low, stage.between(12, 30), 900, leaves, "hill")


def _draw_row(stage: Stage, side: int, x: float, end: float) -> None:
    """Buildings along one side, the farthest first."""
    edges = [1.2]
    while edges[-1] < end:
        edges.append(edges[-1] + stage.between(6, 18))
    typical = stage.between(6, 19)
    for near, far in reversed(list(itertools.pairwise(edges))):
        if stage.chance(0.06):
            continue  # a gap, as for a side street
        high = typical * stage.between(0.7, 1.3)
        style = choose_style(stage, stage.pick(["shops", "doors", "windows"], (0.4, 0.4, 0.2)))
        gable = Wall((x, near), (x + 12, near), high) if side > 0 else Wall((x - 12, near), (x, near), high)
        draw_patch(stage, gable, (0, 12), (0, high), style.colour, "building")
        draw_wall(stage, Wall((x, far), (x, near), high) if side > 0 else Wall((x, near), (x, far), high), style)


def _draw_park(stage: Stage, side: int, x: float, end: float, leaves: Leaves) -> None:
    """Trees behind a fence, instead of buildings."""
    trees = [make_tree(stage, "round", leaves) for _ in range(2)]
    for z in np.arange(end, 8, -stage.between(5, 9)).tolist():
        plant(stage, stage.pick(trees), (x + side * stage.between(0, 4), 0.0, z), stage.between(6, 11))
    draw_fence(stage, (x, 0.0, end), (x, 0.0, 6.0), 1.2, stage.pick(["wood", "white"]))


def _furnish(stage: Stage, middle: float, half: float, walk: float, end: float, leaves: Leaves) -> None:
    """Cars, people, trees, lights and signs, the farthest first."""
    things: list[tuple[float, str, float]] = []  # distance, kind, x
    for side in (-1, 1):
        if stage.chance(0.7):
            parked = np.arange(stage.between(6, 14), end * 0.7, stage.between(5.5, 9)).tolist()
            things += [(z, "car", middle + side * (half - 1.1)) for z in parked if stage.chance(0.8)]
        if stage.chance(0.35):
            in_row = np.arange(stage.between(7, 16), end, 11).tolist()
            things += [(z, "tree", middle + side * (half + 0.8)) for z in in_row]
    if stage.chance(0.5):
        x = middle + stage.between(-0.3, 0.3) * half
        things.append((stage.between(10, 50), stage.pick(["car", "bus"], (0.8, 0.2)), x))
    for _ in range(stage.pick([0, 2, 6], (0.3, 0.4, 0.3))):
        x = middle + stage.pick([-1, 1]) * (half + stage.between(0.3, walk - 0.4))
        things.append((stage.between(7, 35), "person", x))
    if stage.chance(0.6):
        x = middle + stage.pick([-1, 1]) * (half + 0.4)
        things += [(z, "lamp", x) for z in np.arange(stage.between(7, 14), end, 20).tolist()]
    for _ in range(stage.pick([0, 1, 2], (0.45, 0.35, 0.2))):
        things.append((stage.between(7, 25), "sign", middle + stage.pick([-1, 1]) * (half + 0.5)))
    tree = make_tree(stage, stage.pick(["round", "round", "poplar", "bare"]), leaves)
    for z, kind, x in sorted(things, reverse=True):
        if kind == "car":
            draw_car(stage, x, z, away=x > middle)
        elif kind == "bus":
            draw_truck(stage, x, z, "bus")
        elif kind == "tree":
            plant(stage, tree, (x, 0.0, z), stage.between(5, 8))
        elif kind == "person":
            draw_person(stage, (x, 0.0, z))
        elif kind == "lamp":
            draw_lamp(stage, x, z, -1.2 if x > middle else 1.2)
        else:
            draw_round_sign(stage, x, z)
