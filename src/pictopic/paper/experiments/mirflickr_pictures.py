"""What a model does with MIR Flickr's test rows, as people can look at it: where it fails, what it finds, its tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pictopic.paper.experiments.mirflickr_data import Collection, LabelledSplit
from pictopic.paper.experiments.pictures import (
    Captioned,
    Failures,
    Generated,
    Neighbors,
    draw_failures,
    draw_generated,
    draw_neighbors,
)
from pictopic.paper.experiments.results import Figure
from pictopic.tasks.annotate import rank_tags, tag_proba
from pictopic.tasks.search import Index

_EXAMPLES = 3  # of a kind of failure, as in the paper
_QUERIES = 4
_FOUND = 4
_GENERATED, _GENERATED_TAGS = 6, 8
_LEAST_TAGS = 3  # of a query: one with fewer says little about what it shows
_SHOWN_TAGS = 8


def illustrate(model: Any, split: LabelledSplit, classes: Sequence[str]) -> dict[str, Any]:
    """Failures, neighbours and generated tags of test rows, as numbers of the split's test rows and texts.

    Parameters
    ----------
    model : SupDeepDocNADE
    split : LabelledSplit
    classes : sequence of str

    Returns
    -------
    dict
        For JSON; `draw` makes figures of it.
    """
    tags = tags_of(split)
    order = np.random.RandomState(split.seed).permutation(len(tags))
    queries = [int(row) for row in order if len(tags[row]) >= _LEAST_TAGS][:_QUERIES]
    found: dict[str, Any] = {
        "tags": {},
        "failures": find_failures(model.predict_proba(split.test), split.Y_test, classes, tags),
        "neighbors": find_neighbors(model.transform(split.test), queries),
        "generated": [],
    }
    if split.test.n_visual and split.annotations:
        rows = order[:_GENERATED]
        p = tag_proba(model, split.test[rows].without_tags())
        for row, own in zip(rows, p, strict=True):
            generated = [name for name, _ in rank_tags(own, split.annotations, _GENERATED_TAGS)]
            found["generated"].append([int(row), generated])
    return found | {"tags": {str(row): tags[row] for row in sorted(_rows_of(found))}}


def tags_of(split: LabelledSplit) -> list[list[str]]:
    """The tags of the test rows that are words."""
    X = split.test.read()[:, split.test.n_visual :].tocsr()
    return [[split.annotations[k] for k in X.indices[a:b]] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]


def find_failures(
    p: np.ndarray, Y: np.ndarray, classes: Sequence[str], tags: Sequence[Sequence[str]]
) -> list[dict[str, Any]]:
    """Examples of failures, by kinds that can be told without looking at pictures.

    Parameters
    ----------
    p, Y : arrays of shape (n, n_classes)
        How sure the model is of each class, and 1 where it is right.
    classes : sequence of str
    tags : sequence of n lists of str

    Returns
    -------
    list of dicts
        With "kind" and "items": (row, class, p), another class and another row each.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.experiments.mirflickr_pictures import find_failures
    >>> p, Y = np.array([[0.9, 0.2], [0.8, 0.7]]), np.array([[0, 1], [1, 0]])
    >>> for found in find_failures(p, Y, ["sea", "sky"], [["sea"], []]):
    ...     print(found["kind"], found["items"])
    sure of a wrong class [[1, 'sky', 0.7]]
    misses a class [[0, 'sky', 0.2], [1, 'sea', 0.8]]
    a tag names a class that is not among the labels [[0, 'sea', 0.9]]
    misses a class of a row without tags [[1, 'sea', 0.8]]
    """
    right = Y != 0
    named = np.array([[name.removesuffix("_r1") in own for name in classes] for own in tags])
    untagged = np.array([not own for own in tags])[:, None]
    kinds = {
        "sure of a wrong class": (~right & ~named, -p),
        "misses a class": (right, p),
        "a tag names a class that is not among the labels": (~right & named, -p),
        "misses a class of a row without tags": (right & untagged, p),
    }
    found = []
    for kind, (where, badness) in kinds.items():
        items = [[row, classes[k], float(p[row, k])] for row, k in _first(where, badness)]
        if items:
            found.append({"kind": kind, "items": items})
    return found


def _first(where: np.ndarray, badness: np.ndarray) -> Iterator[tuple[int, int]]:
    """The places with the smallest numbers, among those that are given, each in a row and column of its own."""
    rows, columns = np.nonzero(where)
    seen_rows: set[int] = set()
    seen_columns: set[int] = set()
    for k in np.argsort(badness[rows, columns], kind="stable"):
        row, column = int(rows[k]), int(columns[k])
        if row not in seen_rows and column not in seen_columns:
            yield row, column
            seen_rows.add(row)
            seen_columns.add(column)
        if len(seen_rows) == _EXAMPLES:
            return


def find_neighbors(Z: np.ndarray, queries: Sequence[int]) -> list[list[int]]:
    """For each query, its row and those most similar to it among all others.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.experiments.mirflickr_pictures import find_neighbors
    >>> find_neighbors(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.5]]), [0])
    [[0, 2, 1]]
    """
    if not queries:
        return []
    rows, _ = Index.build(Z, kind="exact").search(Z[queries], k=_FOUND, exclude=list(queries))
    return [[query, *own[own >= 0].tolist()] for query, own in zip(queries, rows, strict=True)]


def _rows_of(found: dict[str, Any]) -> set[int]:
    rows = {item[0] for kind in found["failures"] for item in kind["items"]}
    rows |= {row for own in found["neighbors"] for row in own}
    return rows | {row for row, _ in found["generated"]}


def draw(found: dict[str, Any], split: LabelledSplit, collection: Collection, folder: Path) -> list[Figure]:
    """Draw what `illustrate` found; where there are no pictures, with their tags only.

    Parameters
    ----------
    found : dict
    split : LabelledSplit
    collection : Collection
    folder : Path

    Returns
    -------
    list of Figure
    """

    def path(row: int) -> Path | None:
        return collection.path(int(split.test_rows[row]))

    def text(row: int) -> str:
        return ", ".join(found["tags"][str(row)][:_SHOWN_TAGS]) or "no tags"

    figures = []
    if found["failures"]:
        kinds = []
        for own in found["failures"]:
            items = [Captioned(path(row), f"{name}: {p:.3f} ({text(row)})") for row, name, p in own["items"]]
            kinds.append(Failures(own["kind"], items))
        figures.append(draw_failures(kinds, folder))
    if found["neighbors"]:
        captioned = [[Captioned(path(row), text(row)) for row in rows] for rows in found["neighbors"]]
        figures.append(draw_neighbors([Neighbors(query, others) for query, *others in captioned], folder))
    if found["generated"]:
        made = [Generated(path(row), found["tags"][str(row)], tags) for row, tags in found["generated"]]
        figures.append(draw_generated(made, folder))
    return figures
