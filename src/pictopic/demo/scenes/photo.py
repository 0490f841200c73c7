"""What a camera makes of a scene: exposure, colours, softness, noise."""

from __future__ import annotations

import numpy as np
from PIL import ImageFilter

from pictopic.demo.scenes.canvas import as_image
from pictopic.demo.scenes.noise import CLOUDS, COLUMNS, ROWS, SIZE
from pictopic.demo.scenes.stage import Stage

_GRAY = np.array([0.3, 0.59, 0.11])
_FROM_MIDDLE = ((COLUMNS - SIZE / 2) ** 2 + (ROWS - SIZE / 2) ** 2) / (SIZE * SIZE / 2)


def take_photo(stage: Stage) -> np.ndarray:
    """The finished picture, uint8 of shape (256, 256, 3)."""
    image = stage.canvas.image()
    image = image.convert("RGB", _development(stage, float(np.asarray(image.reduce(32)).mean())))
    softness = stage.pick([0.0, stage.between(0.05, 0.25), stage.between(0.25, 0.6)], (0.5, 0.35, 0.15))
    if softness:
        row = (softness * softness, softness, softness * softness)
        image = image.filter(ImageFilter.Kernel((3, 3), (*row, softness, 1, softness, *row)))
    # Dark corners, and dirt and wear on what was painted evenly.
    factor = 1.0 + 0.015 * stage.noise.field(CLOUDS) - stage.between(0, 0.3) * _FROM_MIDDLE
    grain = stage.rng.standard_normal((SIZE, SIZE), dtype=np.float32) * stage.between(0.8, 4.5)
    planes = np.stack([np.asarray(plane) for plane in image.split()])
    return np.array(as_image(planes * factor + grain))


def _development(stage: Stage, brightness: float) -> tuple[float, ...]:
    """Exposure, colour cast, saturation and contrast: all of them linear, so one matrix with offsets, row by row."""
    longer = min(max((132 / max(brightness, 1)) ** 0.4, 0.92), 1.5)  # dark scenes are exposed longer
    exposure = longer * stage.between(0.9, 1.15) * stage.rng.normal(1, 0.03, 3)
    saturation = stage.pick([stage.between(0.75, 1.15), 0.0], (0.94, 0.06))
    contrast = stage.between(0.85, 1.2)
    matrix = contrast * (saturation * np.eye(3) + (1 - saturation) * _GRAY[None, :]) * exposure[None, :]
    offset = (1 - contrast) * 118
    return tuple(float(part) for row in matrix for part in (*row, offset))
