"""Facades across a street."""

from __future__ import annotations

import math

import numpy as np

from pictopic.demo.scenes.buildings import Wall, choose_style, draw_wall
from pictopic.demo.scenes.ground import ASPHALT, paint_paving
from pictopic.demo.scenes.land import flat_land
from pictopic.demo.scenes.noise import LEAVES, step
from pictopic.demo.scenes.plants import foliage, make_tree, plant
from pictopic.demo.scenes.sky import paint_sky
from pictopic.demo.scenes.stage import Stage
from pictopic.demo.scenes.things import draw_lamp, draw_person, draw_round_sign
from pictopic.demo.scenes.vehicles import draw_parked_car
from pictopic.demo.scenes.view import planes


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
    _furnish(stage, far, kerb, turn)


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


def _furnish(stage: Stage, far: float, kerb: float, turn: float) -> None:
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
