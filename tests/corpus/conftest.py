"""A folder of pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from pictopic import Corpus
from pictopic.corpus import store
from tests.support.folders import write_metadata
from tests.support.pictures import made_photo

WORDS = {"n_words": 6, "step": 12, "regions": "2x2", "n_jobs": 1}  # options of a quick build


def write_pictures(folder: Path, n: int, first: int = 0) -> list[dict[str, str]]:
    """Pictures 0.jpg, 1.jpg, ..., and rows of metadata for them."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for k in range(first, first + n):
        Image.fromarray(made_photo(48, 64, seed=k)).save(folder / f"{k}.jpg")
        kind = "round" if k % 2 else "square"
        rows.append({"file_name": f"{k}.jpg", "tags": f"Tag{k % 3}; all", "label": kind, "part": "ab"[k % 3 == 0]})
    return rows


@pytest.fixture
def photos(tmp_path) -> Path:
    """Twelve pictures with tags, labels and a split."""
    folder = tmp_path / "photos"
    write_metadata(folder, write_pictures(folder, 12))
    return folder


@pytest.fixture
def corpus(photos, tmp_path):
    return Corpus.build(photos, tmp_path / "corpus", **WORDS, split_column="part", features=("cld",))


@pytest.fixture
def sharded(photos, tmp_path, monkeypatch):
    """The same rows in several shards."""
    monkeypatch.setattr(store, "ROWS_PER_SHARD", 4)
    monkeypatch.setattr("pictopic.corpus.chunks.CHUNK_SIZE", 1)
    return Corpus.build(photos, tmp_path / "sharded", **WORDS, split_column="part", features=("cld",))
