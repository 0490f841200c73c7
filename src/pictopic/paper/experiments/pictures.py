"""The paper's figures that show pictures."""

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
    Cell,
    Row,
    Text,
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
    """A picture, what was said of it, and what is true."""

    path: PictureSource | None
    predicted_class: str
    true_class: str
    predicted_tags: Sequence[str] = ()
    true_tags: Sequence[str] = ()


class Association(NamedTuple):
    """What goes with a class: visual words, each as its patches, and tags."""

    class_name: str
    words: Sequence[Sequence[Image.Image | None]]
    tags: Sequence[str]


class Captioned(NamedTuple):
    """A picture and what to say of it."""

    path: PictureSource | None
    text: str


class Neighbors(NamedTuple):
    """A picture and those found to be like it, the most similar first."""

    query: Captioned
    found: Sequence[Captioned]


class Generated(NamedTuple):
    """A picture, its tags, and those that were made up for it."""

    path: PictureSource | None
    true_tags: Sequence[str]
    tags: Sequence[str]


class Failures(NamedTuple):
    """Pictures with which a model failed for the same reason."""

    kind: str
    items: Sequence[Captioned]


def draw_predictions(
    right: Sequence[Prediction], wrong: Sequence[Prediction], folder: Path, name: str = "predictions"
) -> Figure:
    """Draw pictures with their predicted class and tags in blue, and the true ones in black.

    Parameters
    ----------
    right, wrong : sequences of Prediction
        The upper and the lower row.
    folder : Path
    name : str, default="predictions"
        Of the file, without ".png".

    Returns
    -------
    Figure

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.paper.experiments.pictures import Prediction, draw_predictions
    >>> item = Prediction(None, "coast", "coast", ["sea", "sky"], ["sea"])
    >>> draw_predictions([item], [], Path(tempfile.mkdtemp())).file
    'predictions.png'
    """
    rows: list[Row] = []
    for title, items in (("Rightly classified", right), ("Wrongly classified", wrong)):
        if items:
            rows += [Text(title), [captioned(item.path, _prediction(item)) for item in items]]
    columns = max(len(right), len(wrong))
    caption = (
        "Predicted class and annotation (in blue) of rightly and of wrongly classified pictures, and the true ones."
    )
    return _save(rows, [SIDE] * columns, folder, name, caption)


def draw_associations(classes: Sequence[Association], folder: Path, name: str = "associations") -> Figure:
    """Draw the visual words and the tags that go with classes: a row each, with the class in red.

    Parameters
    ----------
    classes : sequence of Association
        Of each visual word at most 16 patches are shown.
    folder : Path
    name : str, default="associations"
        Of the file, without ".png".

    Returns
    -------
    Figure

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from pictopic.paper.experiments.pictures import Association, draw_associations
    >>> word = [Image.new("RGB", (16, 16), "green")] * 16
    >>> draw_associations([Association("forest", [word] * 4, ["tree", "path"])], Path(tempfile.mkdtemp())).file
    'associations.png'
    """
    rows = []
    for own in classes:
        texts = [Text(own.class_name, RED, bold=True, lines=2), *(Text(tag, lines=1) for tag in own.tags)]
        words = [Cell(picture=mosaic(patches, _PATCHES, _PATCH)) for patches in own.words]
        rows.append([Cell(texts, left=True), *words])
    columns = max((len(own.words) for own in classes), default=0)
    caption = "Visual words (each as 16 patches) and tags that go most with each class (in red)."
    return _save(rows, [_NARROW, *[_MOSAIC] * columns], folder, name, caption)


def draw_neighbors(queries: Sequence[Neighbors], folder: Path, name: str = "retrieval") -> Figure:
    """Draw pictures and those found to be like them: a row a query.

    Parameters
    ----------
    queries : sequence of Neighbors
    folder : Path
    name : str, default="retrieval"
        Of the file, without ".png".

    Returns
    -------
    Figure

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.paper.experiments.pictures import Captioned, Neighbors, draw_neighbors
    >>> query = Neighbors(Captioned(None, "sea, sky"), [Captioned(None, "sea, boat")])
    >>> draw_neighbors([query], Path(tempfile.mkdtemp())).file
    'retrieval.png'
    """
    columns = max((len(own.found) for own in queries), default=0)
    titles = ["query", *(_ORDINALS.get(k, f"{k}th most similar") for k in range(1, columns + 1))]
    rows: list[Row] = [[Cell([Text(title, GRAY, lines=1)]) for title in titles]] if queries else []
    rows += [[captioned(item.path, [Text(item.text)]) for item in (own.query, *own.found)] for own in queries]
    caption = "Queries (first column) and the pictures most similar to them, with their tags."
    return _save(rows, [SIDE] * (columns + 1), folder, name, caption)


def draw_generated(items: Sequence[Generated], folder: Path, name: str = "generated-tags") -> Figure:
    """Draw pictures with their true tags and those that were made up from their pixels alone: a row each.

    Parameters
    ----------
    items : sequence of Generated
    folder : Path
    name : str, default="generated-tags"
        Of the file, without ".png".

    Returns
    -------
    Figure

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.paper.experiments.pictures import Generated, draw_generated
    >>> draw_generated([Generated(None, ["sea"], ["sea", "sky", "beach"])], Path(tempfile.mkdtemp())).file
    'generated-tags.png'
    """
    rows: list[Row] = []
    for item in items:
        shown = captioned(item.path, (), _NARROW)
        if shown.boxed:
            shown = shown._replace(texts=[Text("no picture", GRAY)])
        texts = [Text(", ".join(item.true_tags), BLACK, lines=6), Text(", ".join(item.tags), BLUE, lines=6)]
        rows.append([shown, *(Cell([text], left=True) for text in texts)])
    if rows:
        titles = ("picture", "ground truth", "generated tags")
        rows.insert(0, [Cell([Text(title, GRAY, lines=1)], left=True) for title in titles])
    caption = "Tags generated from the picture alone, beside the true ones; blank where there are none."
    return _save(rows, [_NARROW, _WIDE, _WIDE], folder, name, caption)


def draw_failures(kinds: Sequence[Failures], folder: Path, name: str = "failures") -> Figure:
    """Draw pictures with which a model failed: a row a reason, which stands at the left.

    Parameters
    ----------
    kinds : sequence of Failures
        The text of a picture: a class and how sure the model was of it.
    folder : Path
    name : str, default="failures"
        Of the file, without ".png".

    Returns
    -------
    Figure

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.paper.experiments.pictures import Captioned, Failures, draw_failures
    >>> kinds = [Failures("misleading colours", [Captioned(None, "sky: 0.995")])]
    >>> draw_failures(kinds, Path(tempfile.mkdtemp())).file
    'failures.png'
    """
    rows = [
        [Cell([Text(own.kind, bold=True, lines=6)]), *(captioned(item.path, [Text(item.text)]) for item in own.items)]
        for own in kinds
    ]
    columns = max((len(own.items) for own in kinds), default=0)
    caption = (
        "Pictures with which the model failed, by the reason; below each a class and how sure the model was of it."
    )
    return _save(rows, [_NARROW, *[SIDE] * columns], folder, name, caption)


def _prediction(item: Prediction) -> list[Text]:
    """Class and tags, predicted and true; a data set without tags has only the classes."""
    return [
        Text(item.predicted_class, BLUE, bold=True, lines=1),
        Text(", ".join(item.predicted_tags), BLUE),
        Text(item.true_class, bold=True, lines=1),
        Text(", ".join(item.true_tags)),
    ]


def _save(rows: Sequence[Row], widths: Sequence[int], folder: Path, name: str, caption: str) -> Figure:
    if not rows:
        raise ValueError(f"there is nothing to draw as {name!r}")
    file = f"{name}.png"
    write_png(compose(rows, widths), folder / file)
    return Figure(file, caption)
