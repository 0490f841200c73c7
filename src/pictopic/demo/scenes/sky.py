"""The sky, with clouds, sun, moon, and now and then something rare."""

from __future__ import annotations

import numpy as np

from pictopic.demo.scenes.canvas import placed
from pictopic.demo.scenes.noise import CLOUDS, COLUMNS, EVERYWHERE, ROWS, SIZE, step
from pictopic.demo.scenes.stage import Stage
from pictopic.demo.scenes.view import darker, mix, planes


def paint_sky(stage: Stage, horizon: float) -> None:
    """Fill the picture with sky, down to somewhat below the horizon; the ground will be painted over it."""
    light = stage.light
    rows = ROWS[: int(horizon) + 24]
    above = np.clip((horizon - rows) / SIZE, 0.004, None)  # height above the horizon
    sky = mix(light.skyline, light.zenith, np.clip(above * 1.5, 0, 1) ** 0.7 + 0 * COLUMNS)
    sun = (SIZE * (0.5 + 0.45 * light.side), horizon - stage.between(0.03, 0.45) * SIZE)
    if not light.night:
        distance = np.hypot(COLUMNS - sun[0], rows - sun[1])
        sky += np.exp(distance / -60) * planes(70 * light.sun, distance)
    stage.canvas.layer(sky, EVERYWHERE[: len(rows)], "sky")
    if light.night:
        if stage.chance(0.3):
            stage.canvas.ellipse((sun[0], max(sun[1], 20)), 11, 11, (225, 225, 215), "moon")
    elif light.clouds < 0.6 and sun[1] > 8 and stage.chance(0.3):
        red, green, blue = (light.sun * 60).tolist()
        size = stage.between(9, 15)
        stage.canvas.ellipse(sun, size, size, (red + 195, green + 190, blue + 165), "sun")
    if light.clouds > -1.1:
        _paint_clouds(stage, above)
    if stage.chance(0.008):
        _paint_balloon(stage, horizon)
    if light.clouds > 0 and not light.night and stage.chance(0.012):
        _paint_rainbow(stage, horizon)


def _paint_clouds(stage: Stage, above: np.ndarray) -> None:
    """Clouds lie in a plane above the camera, so they crowd together towards the horizon."""
    light = stage.light
    rows = int(np.count_nonzero(above > 0.005))
    if not rows:
        return
    away = 1 / (above[:rows] + 0.3)
    size = stage.between(0.15, 0.4)
    u = (COLUMNS - SIZE / 2) * away * size + stage.between(0, SIZE)
    v = away * size * 230 + stage.between(0, SIZE) + 0 * u
    waves = stage.noise.at(CLOUDS, u, v)
    underside = waves - stage.noise.near(CLOUDS, u, v - 3)
    density = waves + light.clouds - 0.25
    lit = np.clip(0.75 - underside * 0.45 - density * 0.16, 0, 1)
    colours = mix(light.skyline * 0.62 + light.shade * 40, light.sun * 228 + 18, lit) * (0.3 if light.night else 1)
    thickness = step(density, -0.1, stage.between(0.3, 1.1)) * np.clip(above[:rows] * 12, 0, 1)
    stage.canvas.layer(colours, thickness * stage.between(0.6, 1), "cloud")


def _paint_balloon(stage: Stage, horizon: float) -> None:
    middle, size = (stage.between(30, 226), stage.between(0.2, 0.6) * horizon), stage.between(12, 24)
    colour = stage.light.seen(stage.pick([(220, 70, 50), (240, 190, 50), (70, 110, 200)]), 0)
    for part, shade in ((1.0, 1.0), (0.6, 1.2), (0.2, 0.9)):
        stage.canvas.ellipse(middle, size * part, size * 1.1, darker(colour, shade), "balloon")
    basket = placed([(-0.1, -0.75), (0.1, -0.75), (0.07, -0.9), (-0.07, -0.9)], middle, size)
    stage.canvas.polygon(basket, (90, 60, 40), "balloon")


def _paint_rainbow(stage: Stage, horizon: float) -> None:
    x, radius = SIZE * (0.5 - 0.3 * stage.light.side), stage.between(90, 150)
    distance = (np.hypot(COLUMNS - x, ROWS - horizon - 20) - radius) / 7
    bands = np.stack([np.exp(-((distance - middle) ** 2) * 3) for middle in (0.6, 0.0, -0.6)])
    stage.canvas.layer(bands * 255, np.clip(bands.max(axis=0), 0, 1) * 0.55, "rainbow")
