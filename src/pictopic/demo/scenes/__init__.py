"""Made-up pictures of eight kinds of scenes, with tags of what they show.

For the demo, for tests and for benchmarks where no photographs are at hand.  The scenes are those of the paper's first
experiment.  They are painted from scratch: a sky, a ground seen in perspective, and things that stand on it, in some
light and weather, through a camera.  What is visible in the end becomes the tags.
"""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from pictopic.demo.scenes.coast import draw_coast
from pictopic.demo.scenes.country import draw_highway, draw_mountain, draw_opencountry
from pictopic.demo.scenes.forest import draw_forest
from pictopic.demo.scenes.stage import Stage, take_photo
from pictopic.demo.scenes.tags import TAGS, given_tags, visible_tags
from pictopic.demo.scenes.town import draw_insidecity, draw_street, draw_tallbuilding
from pictopic.files import write_bytes, write_text

__all__ = ["SCENES", "TAGS", "Scene", "draw_scene", "write_scenes"]

_DRAW = {
    "highway": draw_highway, "insidecity": draw_insidecity, "coast": draw_coast, "forest": draw_forest,
    "tallbuilding": draw_tallbuilding, "street": draw_street, "opencountry": draw_opencountry,
    "mountain": draw_mountain,
}  # fmt: skip
SCENES = tuple(_DRAW)
_NIGHT = {"highway": 0.04, "insidecity": 0.07, "tallbuilding": 0.1, "street": 0.07}
_METADATA, _OPTIONS = "metadata.csv", "scenes.json"
_VERSION = 1  # of the pictures: raise it when they change, so that folders on disk are written anew


class Scene(NamedTuple):
    """A made-up picture and what is known of it."""

    pixels: np.ndarray  # uint8 of shape (256, 256, 3)
    label: str  # one of SCENES
    tags: list[str]  # as people would give them: some are missing, few are wrong
    true_tags: list[str]  # of all that is large enough to be seen, the most striking first


def draw_scene(number: int, seed: int = 0, label: str | None = None) -> Scene:
    """Make up a picture.

    Parameters
    ----------
    number : int
        Of the picture, from 0 on; each number is another picture, and always the same one.
    seed : int, default=0
        Another seed gives other pictures.
    label : str, optional
        One of `SCENES`.  Default: one after the other.

    Examples
    --------
    >>> from pictopic.demo.scenes import SCENES, draw_scene
    >>> SCENES
    ('highway', 'insidecity', 'coast', 'forest', 'tallbuilding', 'street', 'opencountry', 'mountain')
    >>> scene = draw_scene(2)
    >>> scene.label, scene.pixels.shape, "sea" in scene.true_tags
    ('coast', (256, 256, 3), True)
    """
    if label is None:
        label = SCENES[number % len(SCENES)]
    if label not in _DRAW:
        raise ValueError(f"there is no scene {label!r}; there are {', '.join(SCENES)}")
    stage = Stage(np.random.default_rng([seed, number]), _NIGHT.get(label, 0.0))
    _DRAW[label](stage)
    true_tags = visible_tags(stage.canvas.shares())
    return Scene(take_photo(stage), label, given_tags(stage.rng, true_tags), true_tags)


def write_scenes(folder: str | os.PathLike[str], n: int = 400, seed: int = 0, quality: int = 90) -> Path:
    """Write pictures and their tags to a folder, as `pictopic.Corpus.build` reads it; returns the folder.

    A folder that is there already and complete is left as it is.

    Parameters
    ----------
    folder : path
        For ``metadata.csv`` and ``images/<label>/<number>.jpg``.
    n : int, default=400
        How many pictures.
    seed : int, default=0
        As for `draw_scene`.
    quality : int, default=90
        Of the JPEG files, up to 95.

    Examples
    --------
    >>> import tempfile
    >>> from pictopic.demo.scenes import write_scenes
    >>> folder = write_scenes(tempfile.mkdtemp(), n=2)
    >>> sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
    ['images/highway/00000.jpg', 'images/insidecity/00001.jpg', 'metadata.csv', 'scenes.json']
    """
    folder = Path(folder)
    options = json.dumps({"n": n, "seed": seed, "quality": quality, "version": _VERSION})
    if not (folder / _OPTIONS).exists() and folder.is_dir() and any(folder.glob("[!.]*")):
        raise ValueError(f"{folder} has pictures that are not from here; give another folder")
    if (folder / _METADATA).exists():
        if (folder / _OPTIONS).read_text(encoding="utf-8") == options:
            return folder
        (folder / _METADATA).unlink()
    write_text(folder / _OPTIONS, options)
    rows = [_write_scene(folder, number, draw_scene(number, seed), quality) for number in range(n)]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["file_name", "tags", "label"])
    writer.writerows(rows)
    write_text(folder / _METADATA, table.getvalue())  # the last file: it says that the others are complete
    return folder


def _write_scene(folder: Path, number: int, scene: Scene, quality: int) -> tuple[str, str, str]:
    """Write a picture; returns its row of the metadata."""
    file_name = f"images/{scene.label}/{number:05d}.jpg"
    content = io.BytesIO()
    Image.fromarray(scene.pixels).save(content, "JPEG", quality=quality)
    write_bytes(folder / file_name, content.getvalue())
    return file_name, ";".join(scene.tags), scene.label
