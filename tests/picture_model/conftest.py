"""A small collection that can be learnt: stripes and dots, with tags for their colours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pictopic import PictureModel
from tests.corpus.conftest import write_metadata

QUICK = {"n_words": 12, "regions": "1x1", "features": ("cld",), "n_jobs": 1, "verbose": 0}


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


@pytest.fixture(scope="session")
def patterns(tmp_path_factory) -> Path:
    return write_patterns(tmp_path_factory.mktemp("patterns") / "photos", range(100))


@pytest.fixture(scope="session")
def model(patterns) -> PictureModel:
    """A shallow model of a hundred pictures; not to be changed."""
    return PictureModel(**QUICK, model="shallow").fit(patterns)


@pytest.fixture(scope="session")
def plain_model(tmp_path_factory) -> PictureModel:
    """A deep model of pictures with neither tags nor classes; not to be changed."""
    folder = tmp_path_factory.mktemp("plain") / "photos"
    folder.mkdir()
    for number in range(100):
        Image.fromarray(pattern(number)[0]).save(folder / f"{number}.png")
    return PictureModel(**QUICK).fit(folder)


@pytest.fixture(scope="session")
def deep_model(model) -> PictureModel:
    """A deep one of the same; not to be changed."""
    return PictureModel(**QUICK, model="deep").fit(model.corpus_)
