"""Fixtures of several packages, each made once per worker."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from PIL import Image

from pictopic import PictureModel
from tests.support.patterns import QUICK, SMALL_NETWORK, pattern, write_patterns
from tests.support.pictures import made_photo

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


@pytest.fixture
def photo() -> np.ndarray:
    """A made-up RGB picture, 96 x 128 pixels."""
    return made_photo(96, 128)


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
    return PictureModel(**QUICK, options=SMALL_NETWORK).fit(folder)


@pytest.fixture(scope="session")
def deep_model(model) -> PictureModel:
    """A deep one of the same; not to be changed."""
    return PictureModel(**QUICK, model="deep", options=SMALL_NETWORK).fit(model.corpus_)
