"""Tags that pictures of a collection probably should have, and tags that they probably should not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pictopic.corpus.rows import Rows
from pictopic.tasks.annotate import tag_proba
from pictopic.tasks.fitting import Fitted

KEPT = 500  # pictures a tag and list: nobody looks at more, and a large collection must not fill the memory


class Suggestions(NamedTuple):
    """For each tag the pictures without it that probably should have it, and those with it that are in doubt."""

    missing: Ranking  # the most probable first
    doubtful: Ranking  # the least probable first


class Ranking(NamedTuple):
    """For each tag some pictures, in order."""

    rows: np.ndarray  # (n_tags, k); -1 where there are no more
    probabilities: np.ndarray  # (n_tags, k)

    def of(self, tag: int) -> list[tuple[int, float]]:
        """Row and probability of the pictures of a tag, by its number."""
        found = zip(self.rows[tag], self.probabilities[tag], strict=True)
        return [(int(row), float(p)) for row, p in found if row >= 0]


def suggest(fitted: Fitted, rows: Rows, kept: int = KEPT) -> Suggestions:
    """Compare the tags of a collection with those that the model gives to the pictures alone.

    Parameters
    ----------
    fitted : Fitted
    rows : Rows
        The collection.
    kept : int, default=500
        Pictures a tag and list.

    Returns
    -------
    Suggestions
        With the probability that a picture has a tag; without thresholds, the share of a tag among all.

    Raises
    ------
    ValueError
        If the collection has no tags, or no pictures to tell them from.
    """
    if not rows.n_annotation_words:
        raise ValueError("the collection has no tags: none can be missing")
    if not rows.n_visual:
        raise ValueError("the collection was not made of pictures: there is nothing to tell its tags from")
    missing, doubtful = _Best(rows.n_annotation_words, kept), _Best(rows.n_annotation_words, kept)
    for numbers, p, has_tag in _each_chunk(fitted, rows):
        missing.add(numbers, np.where(has_tag, -np.inf, p))
        doubtful.add(numbers, np.where(has_tag, -p, -np.inf))
    return Suggestions(missing.ranking(1.0), doubtful.ranking(-1.0))


def tag_probabilities(fitted: Fitted, p: np.ndarray) -> np.ndarray:
    """The probability that a picture has each tag, where one has learnt to tell it; otherwise p(next word)."""
    return p if fitted.thresholds is None else fitted.thresholds.probabilities(p.astype(np.float64))


def _each_chunk(fitted: Fitted, rows: Rows) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    for chunk in rows.chunks():
        some = rows[chunk]
        p = tag_proba(fitted.estimator, some.without_tags())
        yield np.arange(chunk.start, chunk.stop), tag_probabilities(fitted, p), some.has_tag()


class _Best:
    """The rows with the highest values of each tag, of all that were added; -inf does not count."""

    def __init__(self, n_tags: int, kept: int):
        self.kept = kept
        self._rows, self._values = np.full((n_tags, 0), -1), np.zeros((n_tags, 0))

    def add(self, numbers: np.ndarray, values: np.ndarray) -> None:
        """Values of some rows, (n, n_tags)."""
        rows = np.concatenate([self._rows, np.broadcast_to(numbers, values.T.shape)], axis=1)
        values = np.concatenate([self._values, values.T], axis=1)
        order = np.argsort(-values, axis=1, kind="stable")[:, : self.kept]  # of equals the first
        self._rows, self._values = np.take_along_axis(rows, order, 1), np.take_along_axis(values, order, 1)

    def ranking(self, sign: float) -> Ranking:
        is_there = np.isfinite(self._values)
        return Ranking(np.where(is_there, self._rows, -1), np.where(is_there, sign * self._values, 0.0))
