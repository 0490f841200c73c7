"""A wide road to the horizon."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from pictopic.demo.scenes.buildings import draw_tower
from pictopic.demo.scenes.ground import hills, paint_far_hills, paint_grass, paint_mountains, paint_road, peaks
from pictopic.demo.scenes.land import Land, see_land, slices
from pictopic.demo.scenes.noise import HILLS, step
from pictopic.demo.scenes.plants import Leaves, foliage, make_tree, plant, tree_line
from pictopic.demo.scenes.sky import paint_sky
from pictopic.demo.scenes.stage import Stage, draw_box
from pictopic.demo.scenes.things import draw_board, draw_fence, draw_lamp, draw_round_sign
from pictopic.demo.scenes.vehicles import draw_car, draw_truck
from pictopic.demo.scenes.view import darker


class _Road:
    """Where the road is, in metres."""

    def __init__(self, stage: Stage):
        self.lanes = stage.count(2, 4)
        self.half = self.lanes * 1.85 + 0.8  # of its width
        self.shift, self.curve = stage.between(-0.7, 0.7) * self.half, stage.rng.normal(0, 0.0006)
        # How far the lanes of the other direction are away; 0: there are none.
        self.other = stage.pick([-1.0, 1.0]) * (2 * self.half + stage.between(1.5, 6)) if stage.chance(0.55) else 0.0

    def middle(self, z: np.ndarray | float) -> np.ndarray:
        """Its x at a distance."""
        return self.shift + self.curve * np.minimum(z, 400) ** 2


def draw_highway(stage: Stage) -> None:
    """A road with cars, signs and bridges, through fields, woods or mountains, or into a town."""
    camera = stage.look(
        horizon=stage.between(95, 165), height=stage.between(1.5, 8), focal=stage.between(180, 300),
        centre=stage.between(80, 176),
    )  # fmt: skip
    paint_sky(stage, camera.horizon)
    road, leaves = _Road(stage), foliage(stage)
    behind = stage.pick(["flat", "hills", "peaks", "woods", "town"], (0.2, 0.3, 0.13, 0.2, 0.17))
    land = _paint_country(stage, road, behind)
    if behind == "town":
        for z in sorted(stage.rng.uniform(140, 400, stage.count(3, 7)).tolist(), reverse=True):
            x = stage.between(-0.6, 0.6) * z
            draw_tower(stage, x, z, z * stage.between(0.08, 0.22), z * stage.between(0.1, 0.4))
    if behind == "woods" or stage.chance(0.3):
        tree_line(stage, camera.horizon + 2, stage.between(5, 26), 150, leaves)
    even = land._replace(lit=np.full_like(land.lit, 0.75), seen=land.seen * (land.z < 400))
    if road.other:
        paint_road(stage, even, road.middle(land.z) + road.other, road.half, road.lanes)
    paint_road(stage, even, road.middle(land.z), road.half, road.lanes)
    _furnish(stage, road, leaves)


def _paint_country(stage: Stage, road: _Road, behind: str) -> Land:
    """What the road goes through."""
    start = stage.between(200, 1200)
    steep = {"hills": stage.between(0.03, 0.12), "peaks": stage.between(0.12, 0.3)}.get(behind, 0.005)
    shape = peaks(stage, start, start * steep) if behind == "peaks" else hills(stage, start, start * steep, start)
    bank = stage.pick([0.0, stage.between(1, 6)])

    def height(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        if not bank:
            return shape(x, z)
        beside = np.abs(x - road.middle(z)) - road.half
        return shape(x, z) + bank * step(beside, 14, 40) * step(z, 5, 40) * (
            1 + 0.2 * stage.noise.at(HILLS, x, z * 0.3)
        )

    land = see_land(stage.camera, stage.light, height, slices(3, start, start * 5, 90, 90))
    paint_grass(stage, land, land.everywhere)
    if behind == "peaks":
        paint_mountains(stage, land, start, start * steep)
    elif behind == "hills":
        paint_far_hills(stage, land, start)
    return land


def _furnish(stage: Stage, road: _Road, leaves: Leaves) -> None:
    """Rails, bridge, signs, trees and cars, the farthest first."""
    if stage.chance(0.6):
        edge = stage.pick([-1, 1]) * (road.half + 1.0)
        places = [(float(road.middle(z)) + edge, 0.0, z) for z in (120.0, 60.0, 30.0, 14.0, 6.0)]
        for start, end in itertools.pairwise(places):
            draw_fence(stage, start, end, 0.8, "rail")
    trees = [make_tree(stage, stage.pick(["round", "round", "conifer", "poplar", "bush"]), leaves) for _ in range(2)]
    lamp_side = stage.pick([-1, 1])

    def put_tree(x: float, z: float) -> None:
        side = stage.pick([-1, 1]) * (road.half + stage.between(5, 30))
        plant(stage, stage.pick(trees), (x + side, 0.0, z), stage.between(4, 11))

    def put_lamp(x: float, z: float) -> None:
        draw_lamp(stage, x + lamp_side * (road.half + 0.8), z, -lamp_side * 2.2, 10)

    things: list[tuple[float, Callable[[float, float], None]]] = []
    things += [(stage.between(14, 110), put_tree) for _ in range(stage.pick([0, 3, 10], (0.35, 0.35, 0.3)))]
    things += [(stage.between(12, 70), lambda x, z: _draw_sign(stage, road, x, z)) for _ in range(stage.count(0, 2))]
    if stage.chance(0.22):
        things.append((stage.between(25, 90), lambda x, z: _draw_bridge(stage, road, x, z)))
    if stage.chance(0.35):
        things += [(z, put_lamp) for z in np.arange(stage.between(10, 25), 120, 25).tolist()]
    n_cars = stage.pick([0, 2, 5, 10], (0.08, 0.32, 0.35, 0.25))
    cars = stage.rng.uniform(0.09, 1, n_cars) ** 1.7 * 130 + 7
    things += [(z, lambda x, z: _draw_vehicle(stage, road, x, z)) for z in cars.tolist()]
    for z, put in sorted(things, key=lambda thing: -thing[0]):
        put(float(road.middle(z)), z)


def _draw_vehicle(stage: Stage, road: _Road, x: float, z: float) -> None:
    lane = (stage.count(1, road.lanes) - 0.5) / road.lanes
    x += (road.half - 0.8) * (2 * lane - 1)
    if road.other and stage.chance(0.35):
        draw_car(stage, x + road.other, z, away=False)
    elif stage.chance(0.18):
        draw_truck(stage, x, z)
    else:
        draw_car(stage, x, z)


def _draw_sign(stage: Stage, road: _Road, x: float, z: float) -> None:
    beside = x + (road.half + 2.5) * stage.pick([-1, 1], (0.2, 0.8))
    kind = stage.pick(["across", "beside", "round"], (0.35, 0.45, 0.2))
    if kind == "round":
        draw_round_sign(stage, beside, z)
    elif kind == "beside":
        draw_board(stage, beside, z, 2.6, 2.2, 4.0)
    else:
        draw_board(stage, x, z, 2 * road.half, 5.6, 8.0)


def _draw_bridge(stage: Stage, road: _Road, x: float, z: float) -> None:
    colour = stage.vary((168, 162, 152), 12)
    for pillar in (x - road.half - 2, x + road.half + 2):
        draw_box(stage, (pillar - 0.6, pillar + 0.6), (0, 6), (z + 1, z + 2), colour, "bridge")
    draw_box(stage, (x - 90, x + 90), (5.6, 7.2), (z, z + 9), colour, "bridge")
    draw_box(stage, (x - 90, x + 90), (7.2, 8.1), (z, z + 0.2), darker(colour, 0.7), "bridge")
