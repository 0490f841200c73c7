"""Folders of pictures, metadata files and keywords."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pictopic.corpus.sources import Source


def save_picture(path: Path, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8)).save(path, **options)


def xmp_packet(word: str) -> bytes:
    return (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:subject><rdf:Bag><rdf:li>{word}</rdf:li></rdf:Bag></dc:subject></rdf:RDF>"
    ).encode()


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with three pictures."""
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        save_picture(tmp_path / name)
    return tmp_path


def write_csv(folder: Path, *lines: str) -> Path:
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def column(source: Source, name: str) -> list[Any]:
    return source.rows[name].to_pylist()
