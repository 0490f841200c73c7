"""Small copies of data sets, laid out as the real ones are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PIL import Image

from tests.support.pictures import made_photo


def write_picture(path: Path, seed: int = 0, side: int = 8) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(made_photo(side, side, seed)).save(path)


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def labelme_xml(*objects: str, deleted: str = "") -> str:
    """Annotations with these objects, and one that is deleted."""
    items = [(name, 0) for name in objects] + ([(deleted, 1)] if deleted else [])
    inside = "".join(
        f"<object><name>{name}</name><deleted>{flag}</deleted><verified>0</verified>"
        f"<polygon><username>someone</username><pt><x>1</x><y>2</y></pt></polygon></object>"
        for name, flag in items
    )
    return f"<annotation><filename>a.jpg</filename><folder>scenes</folder>{inside}</annotation>"


def column(source, name: str) -> dict[str, object]:
    """A column of a source's rows, by file name."""
    return dict(zip(source.rows["file_name"].to_pylist(), source.rows[name].to_pylist(), strict=True))


@pytest.fixture
def real_data() -> Path:
    """The folder of real data that the environment names."""
    folder = os.environ.get("PICTOPIC_DATA")
    if not folder:
        pytest.skip("PICTOPIC_DATA names no folder with the real data sets")
    return Path(folder)
