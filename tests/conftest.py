"""What several tests use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings

# How long an example takes is nobody's fault: the first one loads compiled code, and machines are busy.
settings.register_profile("pictopic", deadline=None)
settings.load_profile("pictopic")


@pytest.fixture
def rng() -> np.random.RandomState:
    return np.random.RandomState(0)


@pytest.fixture
def topics(rng) -> tuple[np.ndarray, np.ndarray]:
    """Counts of two kinds of documents over 12 words, and their kinds: easy to tell apart."""
    y = np.arange(80) % 2
    rates = np.where(y[:, None] == np.repeat([0, 1], 6), 1.5, 0.1)
    return rng.poisson(rates), y


def made_photo(height: int, width: int, seed: int = 0) -> np.ndarray:
    """A made-up colour picture with what photographs have: soft shading, edges, texture and flat parts."""
    rng = np.random.RandomState(seed)
    y, x = np.mgrid[:height, :width]
    picture = np.stack([60 + 90 * y / height, 80 + 60 * x / width, 120 - 50 * y / height], axis=2)
    for _ in range(12):
        centre, radius = rng.uniform(0, 1, 2) * (height, width), rng.uniform(0.05, 0.3) * min(height, width)
        inside = (y - centre[0]) ** 2 + (x - centre[1]) ** 2 < radius**2
        wave = 25 * np.sin(x * rng.uniform(0.1, 1.2) + y * rng.uniform(0.1, 1.2))
        picture[inside] = rng.uniform(0, 255, 3) + (wave[inside, None] if rng.uniform() < 0.6 else 0)
    picture += rng.normal(0, 3, (height, width, 1)) * (x[..., None] > width // 3)
    return np.clip(picture, 0, 255).astype(np.uint8)


@pytest.fixture
def photo() -> np.ndarray:
    """A made-up RGB picture, 96 x 128 pixels."""
    return made_photo(96, 128)
