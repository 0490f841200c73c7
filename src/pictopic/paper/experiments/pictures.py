"""The paper's figures that show pictures.

Each function draws one figure as a PNG file in a folder.

Examples
--------
>>> import tempfile
>>> from pathlib import Path
>>> from pictopic.paper.experiments.pictures import Prediction, draw_predictions
>>> item = Prediction(None, "coast", "coast", ["sea", "sky"], ["sea"])
>>> draw_predictions([item], [], Path(tempfile.mkdtemp())).file
'predictions.png'
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from pictopic.paper.experiments.page import (
    BLACK,
    BLUE,
    GRAY,
    RED,
    SIDE,
    PageRow,
    Text,
    Tile,
    captioned,
    compose,
    write_png,
)
from pictopic.paper.experiments.results import Figure
from pictopic.tasks.exports import mosaic
from pictopic.words.pictures import PictureSource

_PATCH = 56  # pixels of a patch
_PATCHES = 4  # in a row of a mosaic
_MOSAIC = mosaic([], _PATCHES, _PATCH).width
_NARROW, _WIDE = 240, 420  # pixels of columns with text
_ORDINALS = {1: "most similar", 2: "2nd most similar", 3: "3rd most similar"}


class Prediction(NamedTuple):
    """A picture, its predicted class and tags, and the true ones; a data set without tags has only the classes."""

    path: PictureSource | None
    predicted_class: str
    true_class: str
    predicted_tags: Sequence[str] = ()
    true_tags: Sequence[str] = ()


class Association(NamedTuple):
    """What goes with a class: visual words, each as its patches (at most 16 are shown), and tags."""

    class_name: str
    words: Sequence[Sequence[Image.Image | None]]
    tags: Sequence[str]


class Captioned(NamedTuple):
    """A picture and the text below it."""

    path: PictureSource | None
    text: str


class Neighbors(NamedTuple):
    """A picture and those similar to it, the most similar first."""

    query: Captioned
    similar: Sequence[Captioned]


class Generated(NamedTuple):
    """A picture, its tags, and those generated from its pixels alone."""

    path: PictureSource | None
    true_tags: Sequence[str]
    tags: Sequence[str]


class Failures(NamedTuple):
    """Pictures on which a model failed for the same reason; the text of each has a class and its probability."""

    kind: str
    items: Sequence[Captioned]


def draw_predictions(right: Sequence[Prediction], wrong: Sequence[Prediction], folder: Path) -> Figure:
    """Draw pictures with their predicted class and tags in blue and the true ones in black, first the right ones."""
    rows: list[PageRow] = []
    for title, items in (("Rightly classified", right), ("Wrongly classified", wrong)):
        if items:
            rows += [Text(title), [captioned(item.path, _prediction_texts(item)) for item in items]]
    columns = max(len(right), len(wrong))
    caption = (
        "Predicted class and annotation (in blue) of rightly and of wrongly classified pictures, and the true ones."
    )
    return _save(rows, [SIDE] * columns, folder, "predictions", caption)


def _prediction_texts(item: Prediction) -> list[Text]:
    return [
        Text(item.predicted_class, BLUE, bold=True, lines=1),
        Text(", ".join(item.predicted_tags), BLUE),
        Text(item.true_class, bold=True, lines=1),
        Text(", ".join(item.true_tags)),
    ]


def draw_associations(classes: Sequence[Association], folder: Path) -> Figure:
    """Draw the visual words and the tags that go with classes: one row per class, its name in red."""
    rows = []
    for class_name, words, tags in classes:
        texts = [Text(class_name, RED, bold=True, lines=2), *(Text(tag, lines=1) for tag in tags)]
        rows.append([Tile(texts, left=True), *(Tile(picture=mosaic(word, _PATCHES, _PATCH)) for word in words)])
    columns = max((len(item.words) for item in classes), default=0)
    caption = "Visual words (each as 16 patches) and tags that go most with each class (in red)."
    return _save(rows, [_NARROW, *[_MOSAIC] * columns], folder, "associations", caption)


def draw_neighbors(queries: Sequence[Neighbors], folder: Path) -> Figure:
    """Draw pictures and those similar to them: one row per query."""
    columns = max((len(item.similar) for item in queries), default=0)
    titles = ["query", *(_ORDINALS.get(k, f"{k}th most similar") for k in range(1, columns + 1))]
    rows: list[PageRow] = [[Tile([Text(title, GRAY, lines=1)]) for title in titles]] if queries else []
    rows += [
        [captioned(item.path, [Text(item.text)]) for item in (query, *similar)] for query, similar in queries
    ]  # fmt: skip
    caption = "Queries (first column) and the pictures most similar to them, with their tags."
    return _save(rows, [SIDE] * (columns + 1), folder, "retrieval", caption)


def draw_generated(items: Sequence[Generated], folder: Path) -> Figure:
    """Draw pictures with their true tags and those generated from their pixels alone: one row per picture."""
    rows: list[PageRow] = []
    for item in items:
        picture = captioned(item.path, (), _NARROW)
        if picture.boxed:
            picture = picture._replace(texts=[Text("no picture", GRAY)])
        texts = [Text(", ".join(item.true_tags), BLACK, lines=6), Text(", ".join(item.tags), BLUE, lines=6)]
        rows.append([picture, *(Tile([text], left=True) for text in texts)])
    if rows:
        titles = ("picture", "ground truth", "generated tags")
        rows.insert(0, [Tile([Text(title, GRAY, lines=1)], left=True) for title in titles])
    caption = "Tags generated from the picture alone, beside the true ones; blank where there are none."
    return _save(rows, [_NARROW, _WIDE, _WIDE], folder, "generated-tags", caption)


def draw_failures(kinds: Sequence[Failures], folder: Path) -> Figure:
    """Draw pictures on which a model failed: one row per reason, which stands at the left."""
    rows = [
        [Tile([Text(kind, bold=True, lines=6)]), *(captioned(item.path, [Text(item.text)]) for item in items)]
        for kind, items in kinds
    ]
    columns = max((len(failures.items) for failures in kinds), default=0)
    caption = (
        "Pictures with which the model failed, by the reason; below each a class and how sure the model was of it."
    )
    return _save(rows, [_NARROW, *[SIDE] * columns], folder, "failures", caption)


def _save(rows: Sequence[PageRow], widths: Sequence[int], folder: Path, name: str, caption: str) -> Figure:
    if not rows:
        raise ValueError(f"there is nothing to draw as {name!r}")
    file = f"{name}.png"
    write_png(compose(rows, widths), folder / file)
    return Figure(file, caption)
