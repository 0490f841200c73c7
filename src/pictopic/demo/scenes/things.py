"""People, animals, boats, signs and other things."""

from __future__ import annotations

import math

import numpy as np

from pictopic.demo.scenes.canvas import placed
from pictopic.demo.scenes.stage import Stage, draw_box, draw_face
from pictopic.demo.scenes.view import Colour, Place, Point, darker

_CLOTHES: list[Colour] = [
    (150, 50, 50), (50, 70, 120), (40, 42, 48), (200, 195, 185), (90, 110, 80), (190, 150, 70), (110, 90, 120),
]  # fmt: skip


def draw_person(stage: Stage, place: Place) -> None:
    """Somebody who stands or walks."""
    foot, z = stage.camera.project([place])[0], place[2]
    size = stage.camera.scale(z) * stage.between(1.5, 1.9)
    canvas, light = stage.canvas, stage.light
    coat, trousers = (stage.vary(stage.pick(_CLOTHES), 8) for _ in range(2))
    stride = stage.between(0.02, 0.13)
    for side in (-1, 1):
        leg = placed([(side * stride, 0), (side * 0.03, 0.48)], foot, size)
        canvas.line(leg, 0.1 * size, light.seen(trousers, z, 0.5), "person")
        arm = placed([(side * 0.11, 0.78), (side * stage.between(0.1, 0.2), 0.45)], foot, size)
        canvas.line(arm, 0.06 * size, light.seen(coat, z, 0.4), "person")
    body = placed([(-0.11, 0.8), (0.11, 0.8), (0.09, 0.42), (-0.09, 0.42)], foot, size)
    canvas.polygon(body, light.seen(coat, z, 0.6), "person")
    hair, face = placed([(0, 0.93), (0, 0.89)], foot, size)
    canvas.ellipse(hair, 0.14 * size, 0.14 * size, light.seen((60, 45, 35), z, 0.5), "person")
    canvas.ellipse(face, 0.11 * size, 0.13 * size, light.seen((205, 165, 140), z, 0.7), "person")


def draw_boat(stage: Stage, foot: Point, size: float, z: float) -> None:
    """A sailing boat or a motor boat; size in pixels."""
    canvas, light = stage.canvas, stage.light
    hull = stage.vary(stage.pick([(235, 235, 232), (60, 70, 100), (170, 60, 50), (110, 80, 55)]), 6)
    shape = [(-0.5, 0.14), (0.55, 0.16), (0.38, 0.0), (-0.4, 0.0)]
    canvas.polygon(placed(shape, foot, size), light.seen(hull, z, 0.8), "boat")
    if stage.chance(0.65):
        mast, sail = light.seen((90, 80, 70), z), stage.vary((240, 238, 230), 6)
        canvas.line(placed([(0, 0.1), (0, 1.25)], foot, size), 0.035 * size, mast, "boat")
        main = placed([(0.04, 1.2), (0.45, 0.24), (0.04, 0.22)], foot, size)
        canvas.polygon(main, light.seen(sail, z, 0.95), "boat")
        jib = placed([(-0.04, 1.1), (-0.36, 0.24), (-0.04, 0.22)], foot, size)
        canvas.polygon(jib, light.seen(sail, z, 0.75), "boat")
    else:
        cabin = placed([(-0.25, 0.14), (-0.22, 0.36), (0.14, 0.36), (0.22, 0.14)], foot, size)
        canvas.polygon(cabin, light.seen((225, 225, 222), z, 0.7), "boat")
        glass = placed([(-0.18, 0.2), (-0.16, 0.31), (0.1, 0.31), (0.14, 0.2)], foot, size)
        canvas.polygon(glass, light.seen((60, 80, 100), z), "boat")


def draw_birds(stage: Stage, low: float) -> None:
    """A flock in the sky, above a row of the picture."""
    x, y = stage.between(30, 226), stage.between(0.15, 0.85) * low
    colour = stage.light.seen(stage.pick([(40, 40, 45), (235, 235, 235), (70, 65, 65)]), 0, 0.8)
    for _ in range(stage.count(2, 8)):
        middle = (x + stage.rng.normal(0, 24), y + stage.rng.normal(0, 12))
        lift = stage.between(0.15, 0.5)
        wings = [(-1, lift), (-0.4, lift * 1.2), (0, 0), (0.4, lift * 1.2), (1, lift)]
        stage.canvas.line(placed(wings, middle, stage.between(3, 7)), 1.3, colour, "bird")


def draw_lamp(stage: Stage, x: float, z: float, arm: float = 0.0, high: float = 7.0) -> None:
    """A street light; its arm goes so many metres to the right."""
    foot, top, head = stage.camera.project([(x, 0, z), (x, high, z), (x + arm, high + 0.15, z)])
    width = max(0.14 * stage.camera.scale(z), 0.6)
    stage.canvas.line([foot, top, head], width, stage.light.seen((88, 92, 96), z, 0.5), "light")
    size = max(0.7 * stage.camera.scale(z), 1.6)
    if stage.light.night:
        stage.canvas.ellipse(head, size * 1.9, size * 1.3, (128, 112, 80))
    glow = (255, 225, 160) if stage.light.night else stage.light.seen((215, 215, 205), z, 0.9)
    stage.canvas.ellipse(head, size, size * 0.45, glow, "light")


def draw_round_sign(stage: Stage, x: float, z: float) -> None:
    """A traffic sign on a post."""
    draw_face(stage, (x - 0.05, x + 0.05), (0, 2.6), z, (110, 114, 118), 0.5, "sign")
    middle, size = stage.camera.project([(x, 2.6, z)])[0], 0.85 * stage.camera.scale(z)
    colour = stage.pick([(190, 40, 40), (35, 75, 150), (225, 190, 60)])
    stage.canvas.ellipse(middle, size, size, stage.light.seen(colour, z, 0.8), "sign")
    stage.canvas.ellipse(middle, size * 0.7, size * 0.7, stage.light.seen((235, 235, 230), z, 0.8), "sign")


def draw_board(stage: Stage, x: float, z: float, wide: float, low: float, high: float) -> None:
    """A board with names of towns, between two posts; lengths in metres."""
    thick = wide * 0.028
    for foot in (x - wide * 0.4, x + wide * 0.4):
        draw_box(stage, (foot - thick, foot + thick), (0, high), (z, z + 0.1), (110, 114, 118), "sign")
    draw_face(stage, (x - wide / 2, x + wide / 2), (low, high), z, (230, 232, 230), 0.8, "sign")
    rim = 0.03 * wide
    colour = stage.pick([(30, 90, 60), (35, 75, 150)])
    draw_face(stage, (x - wide / 2 + rim, x + wide / 2 - rim), (low + rim, high - rim), z, colour, 0.8, "sign")
    for part in (0.25, 0.5, 0.72)[: 2 if wide < 4 else 3]:
        start, end = sorted(x + stage.between(-0.42, 0.42) * wide for _ in range(2))
        level = low + (high - low) * part
        draw_face(stage, (start, end), (level, level + 0.1 * (high - low)), z, (235, 235, 230), 0.8, "sign")


def draw_fence(stage: Stage, start: Place, end: Place, high: float = 1.1, kind: str = "wood") -> None:
    """A fence of a kind "wood", "white" or "rail", from a place to another one."""
    colour: Colour = {"wood": (120, 98, 74), "white": (225, 225, 220), "rail": (170, 174, 178)}[kind]
    n = max(int(math.dist(start, end) / (2.5 * high)), 2)
    posts = [(x, y, z) for x, y, z in np.linspace(start, end, n).tolist()]
    thick = 0.11 if kind != "rail" else 0.35
    for level in (0.45, 0.9):
        line = stage.camera.project((x, y + level * high, z) for x, y, z in posts)
        for a, b, (_, _, z) in zip(line, line[1:], posts, strict=False):
            width = max(thick * high * stage.camera.scale(z), 0.5)
            stage.canvas.line([a, b], width, stage.light.seen(colour, z, 0.75), "fence")
    for x, y, z in posts:
        post = stage.camera.project([(x, y, z), (x, y + high, z)])
        width = max(0.12 * high * stage.camera.scale(z), 0.6)
        stage.canvas.line(post, width, stage.light.seen(colour, z, 0.5), "fence")


def draw_cow(stage: Stage, foot: Point, size: float, z: float) -> None:
    """A cow; size in pixels."""
    canvas = stage.canvas
    colour = stage.vary(stage.pick([(120, 72, 45), (45, 40, 38), (225, 220, 212)]), 8)
    coat, shaded = stage.light.seen(colour, z, 0.7), stage.light.seen(colour, z, 0.4)
    for leg in (-0.36, -0.24, 0.26, 0.38):
        canvas.line(placed([(leg, 0), (leg, 0.35)], foot, size), 0.08 * size, shaded, "cow")
    flip = stage.pick([-1, 1])
    body, head, spot = placed([(0, 0.45), (flip * 0.55, stage.pick([0.55, 0.15])), (-0.1 * flip, 0.5)], foot, size)
    canvas.ellipse(body, size, 0.42 * size, coat, "cow")
    canvas.ellipse(head, 0.26 * size, 0.2 * size, darker(coat, 0.9), "cow")
    if stage.chance(0.5):
        canvas.ellipse(spot, 0.3 * size, 0.22 * size, stage.light.seen((232, 228, 220), z, 0.8), "cow")


def draw_hay(stage: Stage, foot: Point, size: float, z: float) -> None:
    """A bale of hay; size in pixels."""
    canvas, light = stage.canvas, stage.light
    shadow, back, front = placed([(0.3, 0.08), (0.2, 0.5), (0, 0.5)], foot, size)
    canvas.ellipse(shadow, 1.3 * size, 0.25 * size, light.seen((60, 58, 34), z, 0.2))
    canvas.ellipse(back, size, size, light.seen((168, 138, 72), z, 0.4), "hay")
    canvas.ellipse(front, size * 0.85, size, light.seen((205, 176, 104), z, 0.9), "hay")
    canvas.ellipse(front, size * 0.4, size * 0.5, light.seen((176, 146, 82), z, 0.6), "hay")


def draw_umbrella(stage: Stage, foot: Point, size: float) -> None:
    """A sunshade on the beach; size in pixels."""
    colour = stage.light.seen(stage.pick([(210, 60, 50), (60, 110, 180), (235, 190, 70), (240, 240, 235)]), 0, 0.9)
    top = placed([(0, 0.85)], foot, size)[0]
    stage.canvas.line([foot, top], max(size * 0.05, 0.6), (120, 110, 100), "umbrella")
    dome = placed([(0.62 * math.cos(a), 0.35 * math.sin(a)) for a in np.linspace(0, math.pi, 9)], top, size)
    stage.canvas.polygon(dome, colour, "umbrella")
    for k in (1, 4, 6):
        stage.canvas.polygon([dome[k], dome[k + 1], top], darker(colour, 0.75), "umbrella")


def draw_lighthouse(stage: Stage, foot: Point, size: float, z: float) -> None:
    """A lighthouse; size in pixels."""
    canvas, light = stage.canvas, stage.light
    striped = stage.chance(0.6)
    for k in range(5):
        low, high, half = 0.17 * k, 0.17 * (k + 1), 0.13 - 0.012 * k
        colour: Colour = (190, 50, 45) if striped and k % 2 else (238, 236, 230)
        ring = [(-half, low), (half, low), (half * 0.9, high), (-half * 0.9, high)]
        canvas.polygon(placed(ring, foot, size), light.seen(colour, z, 0.9), "lighthouse")
        shaded = [(half * 0.35, low), (half, low), (half * 0.9, high), (half * 0.3, high)]
        canvas.polygon(placed(shaded, foot, size), light.seen(colour, z, 0.45), "lighthouse")
    lantern = [(-0.09, 0.85), (0.09, 0.85), (0.07, 0.95), (-0.07, 0.95)]
    canvas.polygon(placed(lantern, foot, size), light.seen((70, 70, 74), z), "lighthouse")
    roof = [(-0.08, 0.95), (0.08, 0.95), (0, 1.04)]
    canvas.polygon(placed(roof, foot, size), light.seen((150, 45, 40), z), "lighthouse")
