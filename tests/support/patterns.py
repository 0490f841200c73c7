"""A small collection that can be learnt: stripes and dots, with tags for their colours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from tests.support.folders import write_metadata

QUICK = {"n_words": 12, "regions": "1x1", "features": ("cld",), "n_jobs": 1, "verbose": 0}
# Of a deep model that learns the patterns in a second; the usual network takes eight, and its answers are the same.
SMALL_NETWORK = {"n_components": (32, 32), "learning_rate": 0.01, "dropout": 0.0, "averaging": None}


def pattern(number: int) -> tuple[np.ndarray, str, list[str]]:
    """Pixels, label and tags of a picture."""
    rng = np.random.RandomState(number)
    y, x = np.mgrid[:64, :64]
    stripes, red = bool(number % 2), bool(number // 2 % 2)
    phase, width = rng.uniform(0, 6), rng.uniform(0.5, 0.8)
    wave = np.sin(width * x + phase) if stripes else np.sin(width * x + phase) * np.sin(width * y)
    grey = 120 + 60 * wave + rng.normal(0, 6, (64, 64))
    colour = np.array([1.3, 0.8, 0.6] if red else [0.6, 0.8, 1.3])
    tags = ["lines" if stripes else "spots", "red" if red else "blue"]
    return np.clip(grey[:, :, None] * colour, 0, 255).astype(np.uint8), "stripes" if stripes else "dots", tags


def write_patterns(folder: Path, numbers: range, **changes: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in numbers:
        pixels, label, tags = pattern(number)
        Image.fromarray(pixels).save(folder / f"{number}.png")
        rows.append({"file_name": f"{number}.png", "tags": ";".join(tags), "label": label} | changes)
    write_metadata(folder, rows)
    return folder
