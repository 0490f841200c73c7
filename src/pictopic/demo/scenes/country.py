"""Scenes of the country: meadows and fields, mountains, and a highway through them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from pictopic.demo.scenes.buildings import draw_house, draw_tower
from pictopic.demo.scenes.ground import (
    hills,
    paint_far_hills,
    paint_grass,
    paint_mountains,
    paint_path,
    paint_road,
    paint_rocks,
    paint_water,
    peaks,
)
from pictopic.demo.scenes.land import Height, Land, flat_land, ground_at, see_land, slices
from pictopic.demo.scenes.noise import CLOUDS, EVERYWHERE, HILLS, LEAVES, ROWS, step
from pictopic.demo.scenes.plants import Leaves, foliage, make_tree, paint_flowers, plant, tree_line
from pictopic.demo.scenes.sky import paint_sky
from pictopic.demo.scenes.stage import Stage, draw_box
from pictopic.demo.scenes.things import (
    draw_birds,
    draw_board,
    draw_cow,
    draw_fence,
    draw_hay,
    draw_lamp,
    draw_person,
    draw_round_sign,
)
from pictopic.demo.scenes.vehicles import draw_car, draw_truck
from pictopic.demo.scenes.view import Colour, darker, planes

_CROPS: list[Colour] = [
    (202, 172, 96), (216, 196, 70), (122, 92, 66), (104, 140, 58), (150, 160, 84), (176, 146, 98),
]  # fmt: skip


def _relief(stage: Stage, behind: str, start: float, steep: float) -> Height:
    """Mountains ("peaks") or hills that begin at a distance; `steep` is their height over it."""
    return peaks(stage, start, start * steep) if behind == "peaks" else hills(stage, start, start * steep, start)


def _paint_relief(stage: Stage, land: Land, behind: str, start: float, steep: float) -> None:
    """Grass, and what grows on the mountains or hills behind it."""
    paint_grass(stage, land, land.everywhere)
    if behind == "peaks":
        paint_mountains(stage, land, start, start * steep)
    elif behind == "hills":
        paint_far_hills(stage, land, start)


# ---- Meadows and fields under a wide sky -----------------------------------------------------------------------------


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
    shape = _relief(stage, behind, start, steep)
    rolling = hills(stage, 20, stage.between(0, 0.35) * camera.height + 0.4, 150)

    def height(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        return shape(x, z) + rolling(x, z)

    land = see_land(camera, stage.light, height, slices(2.5 * camera.height, start, start * 5, 80, 110))
    _paint_relief(stage, land, behind, start, steep)
    if stage.chance(0.6):
        _paint_fields(stage, land, start)
    _paint_ways(stage, land)
    _furnish_fields(stage, land, height)


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
    is_sown = cell * 5 % 11 < stage.count(5, 11)
    colours = crops[:, cell] * (1 + 0.09 * grain + 0.12 * furrows)
    land.paint(stage, colours, is_sown * before_hills, "field", 0.08 * grain)


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


def _furnish_fields(stage: Stage, land: Land, height: Height) -> None:
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


# ---- High mountains --------------------------------------------------------------------------------------------------


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
    for depth in stage.distances(4, 25, n):
        z = depth * tall
        x = stage.between(-0.65, 0.65) * z
        plant(stage, stage.pick(trees), (x, ground_at(height, x, z), z), stage.between(1.2, 2.4) * tall)


def _paint_fog(stage: Stage) -> None:
    """Clouds before the mountains."""
    level = stage.between(0.5, 0.95) * stage.camera.horizon
    band = np.exp(-(((ROWS - level) / stage.between(8, 20)) ** 2)) * step(stage.noise.field(CLOUDS, 4.0), -0.8, 0.6)
    stage.canvas.layer(planes(stage.light.haze, band) * EVERYWHERE, band * 0.9, "cloud")


# ---- A wide road to the horizon --------------------------------------------------------------------------------------


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
        for z in stage.distances(140, 400, stage.count(3, 7)):
            x = stage.between(-0.6, 0.6) * z
            draw_tower(stage, x, z, z * stage.between(0.08, 0.22), z * stage.between(0.1, 0.4))
    if behind == "woods" or stage.chance(0.3):
        tree_line(stage, camera.horizon + 2, stage.between(5, 26), 150, leaves)
    even = land._replace(lit=np.full_like(land.lit, 0.75), seen=land.seen * (land.z < 400))
    if road.other:
        paint_road(stage, even, road.middle(land.z) + road.other, road.half, road.lanes)
    paint_road(stage, even, road.middle(land.z), road.half, road.lanes)
    _furnish_highway(stage, road, leaves)


def _paint_country(stage: Stage, road: _Road, behind: str) -> Land:
    """What the road goes through."""
    start = stage.between(200, 1200)
    steep = {"hills": stage.between(0.03, 0.12), "peaks": stage.between(0.12, 0.3)}.get(behind, 0.005)
    shape = _relief(stage, behind, start, steep)
    bank = stage.pick([0.0, stage.between(1, 6)])

    def height(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        if not bank:
            return shape(x, z)
        beside = np.abs(x - road.middle(z)) - road.half
        return shape(x, z) + bank * step(beside, 14, 40) * step(z, 5, 40) * (
            1 + 0.2 * stage.noise.at(HILLS, x, z * 0.3)
        )

    land = see_land(stage.camera, stage.light, height, slices(3, start, start * 5, 90, 90))
    _paint_relief(stage, land, behind, start, steep)
    return land


def _furnish_highway(stage: Stage, road: _Road, leaves: Leaves) -> None:
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
