"""A model's failures, neighbours and generated tags on MIR Flickr's test rows, for figures."""

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
    """Failures, neighbours and generated tags of a SupDeepDocNADE, as numbers of test rows and texts for JSON.

    `draw` makes figures of them.
    """
    tags = tags_of(split)
    order = np.random.RandomState(split.seed).permutation(len(tags))
    queries = [int(row) for row in order if len(tags[row]) >= _LEAST_TAGS][:_QUERIES]
    examples: dict[str, Any] = {
        "tags": {},
        "failures": find_failures(model.predict_proba(split.test), split.Y_test, classes, tags),
        "neighbors": find_neighbors(model.transform(split.test), queries),
        "generated": [],
    }
    if split.test.n_visual and split.annotations:
        rows = order[:_GENERATED]
        p = tag_proba(model, split.test[rows].without_tags())
        for row, row_p in zip(rows, p, strict=True):
            generated = [name for name, _ in rank_tags(row_p, split.annotations, _GENERATED_TAGS)]
            examples["generated"].append([int(row), generated])
    return examples | {"tags": {str(row): tags[row] for row in sorted(_rows_of(examples))}}


def tags_of(split: LabelledSplit) -> list[list[str]]:
    """The tags of the test rows that are words."""
    X = split.test.read()[:, split.test.n_visual :].tocsr()
    return [[split.annotations[k] for k in X.indices[a:b]] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]


def find_failures(
    p: np.ndarray, Y: np.ndarray, classes: Sequence[str], tags: Sequence[Sequence[str]]
) -> list[dict[str, Any]]:
    """Examples of failures, by kinds that can be told without looking at pictures.

    Each has a "kind" and "items" (row, class, p), of another row and another class each; p is how sure the model is of
    each class, (n, n_classes), and Y is 1 where it is right.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.experiments.mirflickr_pictures import find_failures
    >>> p, Y = np.array([[0.9, 0.2], [0.8, 0.7]]), np.array([[0, 1], [1, 0]])
    >>> for failures in find_failures(p, Y, ["sea", "sky"], [["sea"], []]):
    ...     print(failures["kind"], failures["items"])
    sure of a wrong class [[1, 'sky', 0.7]]
    misses a class [[0, 'sky', 0.2], [1, 'sea', 0.8]]
    a tag names a class that is not among the labels [[0, 'sea', 0.9]]
    misses a class of a row without tags [[1, 'sea', 0.8]]
    """
    right = Y != 0
    named = np.array([[name.removesuffix("_r1") in row_tags for name in classes] for row_tags in tags])
    untagged = np.array([not row_tags for row_tags in tags])[:, None]
    kinds = {
        "sure of a wrong class": (~right & ~named, -p),
        "misses a class": (right, p),
        "a tag names a class that is not among the labels": (~right & named, -p),
        "misses a class of a row without tags": (right & untagged, p),
    }
    failures = []
    for kind, (where, badness) in kinds.items():
        items = [[row, classes[k], float(p[row, k])] for row, k in _first(where, badness)]
        if items:
            failures.append({"kind": kind, "items": items})
    return failures


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
    return [[query, *similar[similar >= 0].tolist()] for query, similar in zip(queries, rows, strict=True)]


def _rows_of(examples: dict[str, Any]) -> set[int]:
    rows = {item[0] for kind in examples["failures"] for item in kind["items"]}
    rows |= {row for similar in examples["neighbors"] for row in similar}
    return rows | {row for row, _ in examples["generated"]}


def draw(examples: dict[str, Any], split: LabelledSplit, collection: Collection, folder: Path) -> list[Figure]:
    """Draw what `illustrate` returned; where there are no pictures, with their tags only."""

    def path(row: int) -> Path | None:
        return collection.path(int(split.test_rows[row]))

    def text(row: int) -> str:
        return ", ".join(examples["tags"][str(row)][:_SHOWN_TAGS]) or "no tags"

    figures = []
    if examples["failures"]:
        kinds = []
        for failures in examples["failures"]:
            items = [Captioned(path(row), f"{name}: {p:.3f} ({text(row)})") for row, name, p in failures["items"]]
            kinds.append(Failures(failures["kind"], items))
        figures.append(draw_failures(kinds, folder))
    if examples["neighbors"]:
        captioned = [[Captioned(path(row), text(row)) for row in rows] for rows in examples["neighbors"]]
        figures.append(draw_neighbors([Neighbors(query, others) for query, *others in captioned], folder))
    if examples["generated"]:
        made = [Generated(path(row), examples["tags"][str(row)], tags) for row, tags in examples["generated"]]
        figures.append(draw_generated(made, folder))
    return figures
