"""What several tests use."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.RandomState:
    return np.random.RandomState(0)


@pytest.fixture
def topics(rng) -> tuple[np.ndarray, np.ndarray]:
    """Counts of two kinds of documents over 12 words, and their kinds: easy to tell apart."""
    y = np.arange(80) % 2
    rates = np.where(y[:, None] == np.repeat([0, 1], 6), 1.5, 0.1)
    return rng.poisson(rates), y
