"""A model of small patterns, and parts of its collection."""

from __future__ import annotations

import pytest

from pictopic import Corpus, PictureModel
from tests.support.patterns import QUICK, write_patterns


@pytest.fixture(scope="session")
def parts(tmp_path_factory) -> dict[str, Corpus]:
    """Eighty patterns to learn from, twenty others."""
    folder = write_patterns(tmp_path_factory.mktemp("report") / "photos", range(100))
    options = {name: QUICK[name] for name in ("n_words", "regions", "features", "n_jobs")}
    return Corpus.build(folder, folder.parent / "corpus", **options).split(0.2)


@pytest.fixture(scope="session")
def model(parts) -> PictureModel:
    """A shallow model; not to be changed."""
    return PictureModel(**QUICK, model="shallow").fit(parts["train"])
