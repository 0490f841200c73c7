"""Scenes of towns: a street, the facades across it, and towers."""

from __future__ import annotations

import itertools
import math

import numpy as np

from pictopic.demo.scenes.buildings import Wall, choose_style, draw_patch, draw_tower, draw_wall
from pictopic.demo.scenes.ground import ASPHALT, paint_grass, paint_paving, paint_road, paint_water
from pictopic.demo.scenes.land import flat_land
from pictopic.demo.scenes.noise import LEAVES, SIZE, step
from pictopic.demo.scenes.plants import Leaves, foliage, make_tree, plant, tree_line
from pictopic.demo.scenes.sky import paint_sky
from pictopic.demo.scenes.stage import Stage
from pictopic.demo.scenes.things import draw_birds, draw_fence, draw_lamp, draw_person, draw_round_sign
from pictopic.demo.scenes.vehicles import draw_car, draw_parked_car, draw_truck
from pictopic.demo.scenes.view import Camera, planes

# ---- A street between two rows of buildings --------------------------------------------------------------------------


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
    _furnish_street(stage, middle, half, walk, end, leaves)


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


def _furnish_street(stage: Stage, middle: float, half: float, walk: float, end: float, leaves: Leaves) -> None:
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


# ---- Facades across a street -----------------------------------------------------------------------------------------


def draw_insidecity(stage: Stage) -> None:
    """Facades with shops, doors and balconies, a sidewalk before them, people and cars."""
    camera = stage.look(
        horizon=stage.between(140, 195), height=stage.between(1.5, 3), focal=stage.between(190, 290),
        centre=stage.between(80, 176),
    )  # fmt: skip
    paint_sky(stage, camera.horizon)
    far, turn = stage.between(8, 17), float(np.clip(stage.rng.normal(0, 0.45), -0.95, 0.95))
    kerb = far * math.cos(turn) - stage.between(1.5, 4)
    land = flat_land(camera)
    grain = land.grain(stage.noise, LEAVES, 30)
    asphalt = planes(stage.vary(stage.pick(ASPHALT), 8), grain)
    land.paint(stage, asphalt * (1 + 0.07 * grain), land.everywhere, "road")
    across = land.z * math.cos(turn) - land.x * math.sin(turn)  # distance towards the facades
    paint_paving(stage, land, step(across, kerb, kerb + 0.05))
    land.paint(stage, (200, 196, 186), step(np.abs(across - kerb), 0.14, 0.1), None)
    _draw_facades(stage, far, turn)
    _furnish_sidewalk(stage, far, kerb, turn)


def _draw_facades(stage: Stage, far: float, turn: float) -> None:
    """Buildings side by side along a line that is turned a bit, and others behind the gaps."""
    typical = stage.between(7, 24)
    right, away = math.cos(turn), math.sin(turn)
    draw_wall(stage, Wall((-60, far + 16), (60, far + 16), typical * stage.between(0.5, 1)), choose_style(stage))
    reach = far * (1.6 + 3 * abs(turn))
    first, last = -reach, reach
    if away > 0.01:
        first = max(first, (2 - far) / away)  # nearer than two metres is too near
    elif away < -0.01:
        last = min(last, (2 - far) / away)
    at = first
    while at < last - 1:
        wide = min(stage.between(5, 15), last - at)
        start, end = ((right * u, far + away * u) for u in (at, at + wide))
        at += wide
        if stage.chance(0.95):
            style = choose_style(stage, stage.pick(["shops", "doors"], (0.65, 0.35)))
            draw_wall(stage, Wall(start, end, typical * stage.between(0.7, 1.3)), style)


def _furnish_sidewalk(stage: Stage, far: float, kerb: float, turn: float) -> None:
    """Cars, people, trees, lights and signs, the farthest first."""
    things = [
        (kerb + 0.4, kind) for kind, often in (("tree", 0.25), ("lamp", 0.35), ("sign", 0.35)) if stage.chance(often)
    ]
    things += [(kerb - 1.2, "car")] * stage.pick([0, 1, 2], (0.5, 0.3, 0.2))
    people = stage.rng.uniform(kerb * 0.7, far - 0.8, stage.pick([0, 1, 3, 6], (0.2, 0.3, 0.3, 0.2)))
    things += [(z, "person") for z in people.tolist()]
    for z, kind in sorted(things, reverse=True):
        x = stage.between(-0.5, 0.5) * z
        z = max(z + x * math.sin(turn), 5.0 if kind == "car" else 4.0)
        if kind == "car":
            draw_parked_car(stage, x, z)
        elif kind == "person":
            draw_person(stage, (x, 0.0, z))
        elif kind == "tree":
            tree = make_tree(stage, stage.pick(["round", "bare", "poplar"]), foliage(stage))
            plant(stage, tree, (x, 0.0, z), stage.between(4, 7))
        elif kind == "lamp":
            draw_lamp(stage, x, z, 0.6, 5)
        else:
            draw_round_sign(stage, x, z)


# ---- Towers, from below or from afar ---------------------------------------------------------------------------------


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
    distances = stage.distances(nearest, farthest, n)
    front = 0.9 * distances[-1]  # nothing of the town is nearer
    ground = stage.pick(["grass", "paving", "water" if afar else "road"], (0.3, 0.3, 0.4))
    if horizon < SIZE:
        _paint_ground(stage, ground, horizon, front)
    _draw_towers(stage, distances, afar)
    if ground == "road":
        for z in stage.distances(12, 45, stage.count(0, 4)):
            draw_car(stage, stage.pick([-4.0, 0.0, 4.0]), z, stage.chance(0.5))
    _furnish_towers(stage, front, ground)


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


def _furnish_towers(stage: Stage, front: float, ground: str) -> None:
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
